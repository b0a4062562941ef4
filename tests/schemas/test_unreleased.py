"""Versions that no release of Kafka has: declared, left out, and switched on by an option of the generator.

Strategy: the package is copied, its messages are generated with them there, and a process of its own writes
and reads each one; what OffsetDelete's is on the wire is written out by the flexible encoding's rules.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from coordwire.messages.keys import FACTS
from tests.interop.drift import unreleased

ROOT = Path(__file__).parents[2]
SWITCHED_ON = """
import json
from pathlib import Path
import schemas.__main__
assert schemas.__main__.main(["--unreleased"]) == 0
from coordwire.frames import decode_request, decode_response, encode_request, encode_response
from coordwire.messages import find_message
from coordwire.messages.offset_delete import (
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
)
from coordwire.versions import LASTING_CLIENT_KEYS, header_version

found = {}
for key in sorted(LASTING_CLIENT_KEYS):
    request, response = find_message(key, "request"), find_message(key, "response")
    version = request.versions[-1]
    wire = encode_request(request(), version=version, correlation_id=1, client_id="c")
    assert decode_request(wire).message == request(), key
    answer = encode_response(response(), version=version, correlation_id=1)
    assert decode_response(answer, api_key=key, version=version).message == response(), key
    found[key] = [version, header_version(key, version, "request")]
topic = OffsetDeleteRequestTopic(name="t", partitions=[OffsetDeleteRequestPartition(partition_index=3)])
body = OffsetDeleteRequest(group_id="g", topics=[topic]).encode(version=1)
print(json.dumps([found, body.hex()]))
"""


def test_versions_without_a_release_exist_once_they_are_switched_on(tmp_path: Path) -> None:
    kept = shutil.ignore_patterns("__pycache__", "*.so", "_speedups")
    for name in ("coordwire", "schemas"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=kept)
    result = subprocess.run(
        [sys.executable, "-c", SWITCHED_ON], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    found, body = json.loads(result.stdout.splitlines()[-1])
    assert {int(key): tuple(each) for key, each in found.items()} == {
        key: (first, 3) for key, first in unreleased().items()
    }
    assert bytes.fromhex(body) == b"\x02g" + b"\x02" + b"\x02t" + b"\x02\0\0\0\x03\0" + b"\0" + b"\0"


def test_until_then_they_do_not() -> None:
    for key, first in unreleased().items():
        assert FACTS[key].last == first - 1
        assert max(FACTS[key].request_headers.values()) < 3
