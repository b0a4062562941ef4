"""Logs of Kafka 0.7 as segments: an offset is the byte of the partition's log, a file's name its first.

No release of 0.7 was found on Maven Central, and 0.8's migration tool wants its user's own jar. What judges
this is the layout as Kafka's implementation page has it, which `bytes_of` writes by hand.
"""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from coordwire.cli.__main__ import main
from coordwire.segments import Segment

FIRST = 1_000


def bytes_of(payload: bytes, attributes: int | None = 0) -> bytes:
    """A message: length, magic, attributes in magic 1, checksum of the payload, payload."""
    magic = b"\0" if attributes is None else bytes([1, attributes])
    body = magic + struct.pack(">I", crc32(payload)) + payload
    return struct.pack(">i", len(body)) + body


MESSAGES = [bytes_of(b"first", None), bytes_of(b"second"), bytes_of(b"")]
INSIDE = b"".join(bytes_of(payload) for payload in (b"a", b"bb"))
LOG = b"".join([*MESSAGES, bytes_of(gzip.compress(INSIDE), 1), bytes_of(b"last")])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "orders-0" / f"{FIRST:020}.kafka"
    path.parent.mkdir()
    path.write_bytes(LOG)
    return path


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_offsets_are_places_in_the_partitions_log(log: Path) -> None:
    with Segment(log) as segment:
        assert (segment.topic, segment.partition, segment.base_offset) == ("orders", 0, FIRST)
        results = [(record.offset, record.value) for batch in segment.batches() for record in batch]
        places = [FIRST + sum(map(len, MESSAGES[:count])) for count in range(4)]
        last = FIRST + len(LOG) - len(bytes_of(b"last"))
        assert results == [
            (places[0], b"first"), (places[1], b"second"), (places[2], b""), (places[3], b"a"),
            (places[3], b"bb"), (last, b"last"),
        ]  # fmt: skip
        batch = segment.find(offset=places[1])
        assert batch is not None
        assert batch.position == len(MESSAGES[0])
        assert list(segment.verify()) == []
        assert list(segment.cuts(10)) == [(0, len(LOG))]


def test_dump_and_verify(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["segment", "dump", str(log.parent), "--format", "json", "--text"]) == 0
    values = [(form["offset"], form["value"]) for form in lines(capsys)]
    assert values[0] == (FIRST, "first")
    assert [value for _, value in values] == ["first", "second", "", "a", "bb", "last"]
    assert main(["segment", "verify", str(log), "--format", "json"]) == 0
    (form,) = lines(capsys)
    assert (form["batches"], form["records"], form["faults"], form["firstOffset"]) == (5, 6, 0, FIRST)


def test_damage_is_found(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = bytearray(LOG)
    damaged[len(MESSAGES[0]) + 10] ^= 1
    log.write_bytes(damaged[:-3])
    assert main(["segment", "verify", str(log), "--format", "json"]) == 1
    fault, end, total = lines(capsys)
    assert (fault["position"], fault["length"]) == (len(MESSAGES[0]), len(MESSAGES[1]))
    assert "CRC-32" in fault["reason"]
    assert end["position"] == len(LOG) - len(bytes_of(b"last"))
    assert (total["batches"], total["faults"]) == (3, 2)


@pytest.mark.parametrize("words", [["recover", "--out", "x"], ["index"]])
def test_nothing_else_is_done_with_them(
    log: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["segment", words[0], str(log), *words[1:]]) == 2
    assert "a log of Kafka 0.7: it can be dumped and verified only" in capsys.readouterr().err
    assert [path.name for path in log.parent.iterdir()] == [log.name]
