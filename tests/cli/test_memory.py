"""What a command takes for a frame of very many elements, held by a limit of its process's address space.

Strategy: the same limit for every command; a form of output that gathers what it writes, or keeps what it has
written, takes more than that.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from coordwire.frames import encode_request
from coordwire.messages import DeleteRecordsRequest, OffsetCommitKey, OffsetCommitValue
from coordwire.messages.delete_records import DeleteRecordsTopic
from coordwire.records import Record, encode_batch

ELEMENTS = 100_000
LIMIT = 112 << 20
"""Bytes: Python and its libraries take 30 MB, the decoded frame 15 MB, its JSON form 40 MB."""

pytestmark = pytest.mark.skipif(
    sys.implementation.name == "pypy", reason="PyPy takes more than the limit before it starts"
)

COMMANDS = [
    ("decode", "--format", "json"), ("decode", "--format", "json", "--deep"), ("decode", "--format", "tree"),
    ("decode", "--format", "tree", "--deep"), ("decode", "--format", "hex"), ("timeline", "--format", "json"),
    ("timeline", "--format", "story"), ("explain",), ("encode",),
    ("offsets", "--format", "json"), ("offsets", "--format", "table"),
]  # fmt: skip


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A frame of `ELEMENTS` topics, as such, as a line of JSON, and a segment of as many bytes."""
    folder = tmp_path_factory.mktemp("memory")
    topics = [DeleteRecordsTopic(name="", partitions=[]) for _ in range(ELEMENTS)]
    (folder / "frames").write_bytes(
        encode_request(DeleteRecordsRequest(topics=topics), version=2, correlation_id=1)
    )
    key = b"\0\1" + OffsetCommitKey(group="g", topic="t", partition=1).encode(version=0)
    value = b"\0\3" + OffsetCommitValue(offset=7).encode(version=3)
    log = folder / "__consumer_offsets-0" / "00000000000000000000.log"
    log.parent.mkdir()
    log.write_bytes(encode_batch([Record(offset=index, key=key, value=value) for index in range(5000)]))
    lines = limited(("decode", "--format", "json", str(folder / "frames")), None)
    (folder / "lines").write_bytes(lines.stdout)
    return {"frames": folder / "frames", "encode": folder / "lines", "offsets": log}


def limited(
    arguments: tuple[str, ...], stdin: Path | None, most: int = LIMIT
) -> subprocess.CompletedProcess[bytes]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))

    given_arguments = None if stdin is None else stdin.read_bytes()
    return subprocess.run(
        [sys.executable, "-m", "coordwire.cli", *arguments],
        input=given_arguments,
        capture_output=True,
        preexec_fn=limit,
        timeout=300,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_frame_of_very_many_elements(inputs: dict[str, Path], command: tuple[str, ...]) -> None:
    path = inputs.get(command[0], inputs["frames"])
    name = "-" if command[0] in ("explain", "encode") else str(path)
    ended = limited((*command, name), path if name == "-" else None)
    assert ended.returncode == 0, ended.stderr[-500:]
    assert ended.stdout or command[0] == "timeline"


def test_too_little_memory_is_said(inputs: dict[str, Path]) -> None:
    topics = [DeleteRecordsTopic(name="", partitions=[]) for _ in range(250_000)]
    path = inputs["frames"].with_name("more")
    path.write_bytes(encode_request(DeleteRecordsRequest(topics=topics), version=2, correlation_id=1))
    ended = limited(("decode", "--format", "json", str(path)), None, LIMIT // 2)
    assert ended.returncode == 2
    assert ended.stderr.endswith(b"coordwire: not enough memory\n")
    assert b"Traceback" not in ended.stderr


def test_a_tree_of_very_many_lines_ends_in_their_number(inputs: dict[str, Path]) -> None:
    written = limited(("decode", "--format", "tree", str(inputs["frames"])), None).stdout.decode()
    assert len(written.splitlines()) < ELEMENTS + 10
    assert "more lines (--format json shows all)" in written
