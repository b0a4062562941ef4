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
from coordwire.cli.record_sets import batch_form
from coordwire.cli.segment.json_lines import batch_text
from coordwire.errors import CorruptBatch, LimitExceeded, OutOfRange
from coordwire.records import UnreadableRange, kafka_07
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


def test_lines_of_batches_are_those_of_their_forms(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["segment", "dump", str(log), "--format", "json"]) == 0
    forms = lines(capsys)
    assert all(form["headers"] == [] and form["timestamp"] == -1 for form in forms)
    with Segment(log) as segment:
        batches = list(segment.batches())
        assert [json.loads(batch_text(batch)) for batch in batches] == [
            batch_form(batch) for batch in batches
        ]


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


@pytest.mark.parametrize("kind", ["sum", "inside", "cut", "zeros", "few", "sound"])
def test_recovery_truncates_before_the_first_bad_message(
    kind: str, log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As Kafka 0.7 itself: what follows has its place as its offset, and would get another."""
    data = bytearray(LOG)
    end = {
        "sum": len(MESSAGES[0]), "inside": len(b"".join(MESSAGES)), "cut": len(LOG) - len(bytes_of(b"last")),
    }.get(kind, len(LOG))  # fmt: skip
    if kind == "sum":
        data[end + 10] ^= 1
    elif kind == "inside":  # the sum of the whole is right, that of a message in it is not
        wrong = bytearray(INSIDE)
        wrong[7] ^= 1
        data[end:] = bytes_of(gzip.compress(bytes(wrong)), 1) + bytes_of(b"last")
    elif kind == "cut":
        del data[-3:]
    elif kind == "zeros":
        data += bytes(100)
    elif kind == "few":
        data += bytes_of(b"more")[:3]
    log.write_bytes(data)
    out = tmp_path / "out"
    status = main(["segment", "recover", str(log), "--out", str(out), "--format", "json"])
    (form,) = lines(capsys)
    bad = len(data) - end
    assert (status, form["size"], form["badBytes"]) == (int(bad > 0), end, bad)
    assert (out / log.name).read_bytes() == data[:end]
    names = [log.name, *([f"{log.name}.quarantine", f"{log.name}.quarantine.jsonl"] if bad else [])]
    assert sorted(path.name for path in out.iterdir()) == names
    if bad:
        assert (out / f"{log.name}.quarantine").read_bytes() == data[end:]
        manifest = json.loads((out / f"{log.name}.quarantine.jsonl").read_text())
        assert (manifest["position"], manifest["length"]) == (end, bad)
    with Segment(out / log.name) as copy:
        assert list(copy.verify()) == []
    assert log.read_bytes() == data
    assert main(["segment", "recover", str(log), "--out", str(out)]) == 2  # nothing is overwritten
    assert "exists" in capsys.readouterr().err


def test_there_are_no_indexes(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["segment", "index", str(log)]) == 2
    assert "Kafka 0.7 has no indexes: a message's offset is its place in the log" in capsys.readouterr().err
    assert [path.name for path in log.parent.iterdir()] == [log.name]


def test_records_as_arrow(log: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")
    columns = ["offset", "timestamp", "key", "value", "batch_position", "codec"]
    with Segment(log) as segment:
        expected = [
            {
                "offset": record.offset, "timestamp": None, "key": None, "value": record.value,
                "batch_position": batch.position, "codec": batch.codec,
            }
            for batch in segment.batches() for record in batch
        ]  # fmt: skip
        assert segment.to_arrow(columns=columns).to_pylist() == expected
    damaged = bytearray(LOG)
    damaged[len(MESSAGES[0]) + 10] ^= 1
    log.write_bytes(damaged)
    skipped: list[UnreadableRange] = []
    with Segment(log) as segment:
        table = segment.to_arrow(columns=columns, on_error="skip", skipped=skipped)
        assert table.to_pylist() == expected[:1] + expected[2:]
        assert [(item.position, item.length) for item in skipped] == [(len(MESSAGES[0]), len(MESSAGES[1]))]
        with pytest.raises(CorruptBatch, match="CRC-32"):
            segment.to_arrow()


@pytest.mark.parametrize(("given", "on_error"), [("raise", "skip"), ("skip", "raise"), ("report", "skip")])
def test_arrow_refuses_batches_of_another_on_error(given: Any, on_error: Any) -> None:
    """A bad message would otherwise be missing without an error, or raise where it is to be skipped."""
    arrow = pytest.importorskip("coordwire.records.arrow")
    with pytest.raises(
        ValueError, match=f"expected batches of on_error='{on_error}', got those of '{given}'"
    ):
        arrow.iter_batches(kafka_07.batches(LOG, on_error=given), on_error=on_error)


def test_a_read_is_retried_with_twice_the_bytes() -> None:
    """ "Reads" of the implementation page: until a message is whole, up to a bound."""
    asked = []

    def read(offset: int, max_bytes: int) -> bytes:
        asked.append((offset, max_bytes))
        return LOG[offset - FIRST : offset - FIRST + max_bytes]

    def values(offset: int, max_bytes: int, most: int = 1_000) -> list[bytes | None]:
        asked.clear()
        reader = kafka_07.fetch(read, offset, max_bytes, most_bytes=most)
        return [record.value for batch in reader for record in batch]

    compressed = FIRST + len(b"".join(MESSAGES))
    needed = len(bytes_of(gzip.compress(INSIDE), 1))
    assert values(FIRST, 1_000) == [b"first", b"second", b"", b"a", b"bb", b"last"]
    assert values(compressed, needed // 4)[:2] == [b"a", b"bb"]
    assert asked == [(compressed, needed // 4 * factor) for factor in (1, 2, 4, 8)][: len(asked)]
    assert asked[-1][1] >= needed > asked[-2][1]
    with pytest.raises(LimitExceeded, match=f"offset {compressed}"):
        values(compressed, 8, most=needed - 1)
    assert asked[-1] == (compressed, needed - 1)
    assert values(FIRST + len(LOG), 10) == []  # the end of the log
    assert len(asked) == 1
    with pytest.raises(CorruptBatch):
        values(FIRST + 1, 100)
    with pytest.raises(OutOfRange):
        values(FIRST, 0)
