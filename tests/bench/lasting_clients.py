"""`python -m tests.bench.lasting_clients` measures commands on requests without their client's id (KIP-1313).

Strategy: the same traffic of groups is written twice: with request header version 2, and with version 3,
where only a connection's first request has a client id and an instance id. The commands run on both in turns,
the second in processes in which all flexible requests have header 3, as Kafka has announced for a later
release. Rules: the processor's time counts; a ratio is the median of the rounds' own. What both must write is
the same but for the header: `tests/capture/test_lasting_clients.py`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from coordwire.capture.formats.pcap import pcap_parts
from coordwire.versions import INSTANCE_ID, header_version
from tests.bench.commands import TREE, row
from tests.bench.group_traffic import MIXES, traffic

SWITCH = """
from coordwire import versions
for key, facts in versions.FACTS.items():
    headers = {first: 3 if head == 2 else head for first, head in facts.request_headers.items()}
    if key not in (18, 36):
        versions.FACTS[key] = facts._replace(request_headers=headers)
versions.LASTING_CLIENT_KEYS = frozenset(
    key for key, facts in versions.FACTS.items() if max(facts.request_headers.values()) >= 3
)
"""
"""Gives all flexible requests but ApiVersions and SaslAuthenticate the header of version 3."""

_START = """
import sys
sys.path.insert(0, sys.argv.pop(1))
{}
from coordwire.cli.__main__ import main
sys.exit(main())
"""
_COMMANDS = {
    "`decode --format json`": ["decode", "--format", "json"],
    "`decode --format line`": ["decode", "--format", "line"],
    "`decode --format json --api Heartbeat`": ["decode", "--format", "json", "--api", "Heartbeat"],
    "`timeline --format json`": ["timeline", "--format", "json"],
}

_CLIENT = 12
"""Where a request has its client id."""

Frame = tuple[int, int, bool, bytes]
"""As `pcap_parts` takes it."""


def without_clients(frames: Iterator[Frame], *, all_named: bool = False) -> Iterator[Frame]:
    """The same frames, whose requests' header is of version 3 where it was of version 2.

    all_named: not only a connection's first request has the client's ids.
    """
    seen: set[int] = set()
    for time_ns, connection, is_answer, data in frames:
        key, version = (int.from_bytes(data[at : at + 2]) for at in (4, 6))
        if data and not is_answer and header_version(key, version, "request") == 2:
            data = _rewritten(data, all_named or connection not in seen)
            seen.add(connection)
        yield time_ns, connection, is_answer, data


def _rewritten(data: bytes, is_named: bool) -> bytes:
    end = _CLIENT + 2 + int.from_bytes(data[_CLIENT : _CLIENT + 2])
    if data[end]:
        raise ValueError("expected a header without tagged fields")
    client = data[_CLIENT:end] + bytes((1, INSTANCE_ID, 16)) + bytes(16) if is_named else b"\xff\xff\0"
    body = data[4:_CLIENT] + client + data[end + 1 :]
    return len(body).to_bytes(4) + body


def _write(path: Path, frames: Iterator[Frame], count: int) -> None:
    with path.open("wb") as file:
        for part in pcap_parts(islice(frames, count)):
            file.write(part)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.lasting_clients", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--frames", type=int, default=200_000)
    parser.add_argument("--mostly", choices=MIXES, default="heartbeats")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        named, unnamed = Path(folder) / "v2.pcap", Path(folder) / "v3.pcap"
        _write(named, traffic(options.mostly), options.frames)
        _write(unnamed, without_clients(traffic(options.mostly)), options.frames)
        columns = ["header v2", "header v3"]
        head = ["the processor's seconds", *columns, "× header v3", "MiB"]
        print(f"| {' | '.join(head)} |\n|---|{'---:|' * (len(head) - 1)}")
        for name, arguments in _COMMANDS.items():
            programs = {
                column: [sys.executable, "-P", "-c", _START.format(switch), str(TREE), *arguments, str(path)]
                for column, switch, path in zip(columns, ("", SWITCH), (named, unnamed), strict=True)
            }
            print(row(name, programs, columns, options.rounds), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
