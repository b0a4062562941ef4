"""Judging, saving and indexing a segment is linear in its bytes, whatever is in it and beside it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordwire.messages.control_records import EndTxnMarker
from coordwire.messages.producer_snapshot import ProducerEntry
from coordwire.records import Record, batches, control_record, encode_batch, kafka_07
from coordwire.records.control import ControlType
from coordwire.segments import (
    OffsetIndex,
    OffsetPosition,
    Producers,
    Segment,
    TimeIndex,
    TimestampOffset,
    rebuild,
    recover,
    write_snapshot,
)
from tests.growth import assert_linear
from tests.records import test_growth as layouts

from .build import batch, write

SLACK = 1.25


@pytest.fixture
def place(tmp_path: Path) -> Callable[[bytes], Path]:
    """Where to put bytes as a segment."""
    return lambda data: write(tmp_path, data)


Place = Callable[[bytes], Path]


def read(path: Path, each: Callable[[Segment], object]) -> None:
    with Segment(path) as segment:
        each(segment)


@pytest.mark.parametrize("make", layouts.MADE)
def test_verify(place: Place, make: Callable[[int], bytes]) -> None:
    assert_linear(
        lambda n: place(make(n)),
        lambda path: read(path, lambda segment: list(segment.verify())),
        140,  # fewer nested batches begin with a sound one, which is read at once
        charges=layouts.CHARGES,
        slack=SLACK,
    )


@pytest.mark.parametrize("make", layouts.MADE)
def test_cuts(place: Place, make: Callable[[int], bytes]) -> None:
    """Also where the index points to headers that claim much."""

    def made(n: int) -> Path:
        path = place(data := make(n))
        entries = [(k + 1, at) for k, at in enumerate(range(61, len(data), 61))]
        path.with_suffix(".index").write_bytes(b"".join(a.to_bytes(4) + b.to_bytes(4) for a, b in entries))
        return path

    assert_linear(
        made,
        lambda path: read(path, lambda segment: list(segment.cuts(500))),
        250,
        charges=layouts.CHARGES,
        slack=SLACK,
    )


def save(path: Path) -> None:
    out = path.parent / "out"
    shutil.rmtree(out, ignore_errors=True)
    list(recover([path], out))


def disordered(n: int) -> bytes:
    """Offsets that fall, and in between others that rise."""
    parts = [[batch(2 * n - k, 1, 0), batch(3 * n + k, 1, 0), batch(k, 1, 0)] for k in range(n)]
    return b"".join(each for part in parts for each in part)


def epochs(n: int) -> bytes:
    return b"".join(batch(k, 1, 0, partition_leader_epoch=n - k if k % 2 else k) for k in range(n))


@pytest.mark.parametrize("make", [*layouts.MADE, disordered, epochs])
def test_recover(place: Place, make: Callable[[int], bytes]) -> None:
    assert_linear(lambda n: place(make(n)), save, 70, charges=layouts.CHARGES, slack=SLACK)


def damaged_07(n: int) -> bytes:
    """Messages of Kafka 0.7, one by one and many in one; the last is cut short."""
    values = [b"%d" % k for k in range(n)]
    return kafka_07.encode_messages(values) + kafka_07.encode_messages(values, codec="gzip")[:-1]


def test_recover_a_log_of_0_7(tmp_path: Path) -> None:
    def made(n: int) -> Path:
        path = tmp_path / f"{n:020}.kafka"
        path.write_bytes(damaged_07(n))
        return path

    assert_linear(made, save, 70, charges=layouts.CHARGES, slack=SLACK)


def test_fetch_a_message_of_0_7() -> None:
    """What is read for a message, whatever its size: less than four times that."""

    def read(data: bytes) -> int:
        sizes: list[int] = []

        def fetched(offset: int, max_bytes: int) -> bytes:
            sizes.append(max_bytes)
            return data[offset : offset + max_bytes]

        assert len(list(kafka_07.fetch(fetched, 0, 10, most_bytes=1 << 30))) == 1
        return sum(sizes)

    for n in (1_000, 2_000, 4_000):
        data = kafka_07.encode_messages([bytes(n)])
        assert read(data) < 4 * len(data)


def test_recover_many_segments(tmp_path: Path) -> None:
    def run(paths: list[Path]) -> None:
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        list(recover(paths, tmp_path / "out"))

    def made(n: int) -> list[Path]:
        return [write(tmp_path, batch(k, 1, 0), base=k) for k in range(n)]

    assert_linear(made, run, 30)


# --- what is beside the log


INDEXES: list[tuple[str, Callable[[int], bytes]]] = [
    ("index", lambda n: b"".join((n - k).to_bytes(4) + (60 * (n - k)).to_bytes(4) for k in range(n))),
    ("index", lambda n: OffsetIndex.pack([OffsetPosition(k, k) for k in range(n)], 0)),
    ("index", lambda n: b"\x7f" * 8 * n),
    ("timeindex", lambda n: TimeIndex.pack([TimestampOffset(k + 1, k) for k in range(n)], 0)),
    ("timeindex", lambda n: b"".join((n - k).to_bytes(8) + k.to_bytes(4) for k in range(n))),
    ("txnindex", lambda n: b"".join(b"\0\0" + k.to_bytes(8) * 4 for k in range(n))),
    ("txnindex", lambda n: b"\1" * 34 * n),
]


@pytest.mark.parametrize(("kind", "make"), INDEXES)
def test_indexes(place: Place, kind: str, make: Callable[[int], bytes]) -> None:
    def made(n: int) -> Path:
        path = place(b"".join(batch(3 * k, 1, 0) for k in range(n)))
        path.with_suffix(f".{kind}").write_bytes(make(n))
        return path

    assert_linear(made, lambda path: read(path, lambda segment: list(segment.verify())), 300)


TXN: dict[str, Any] = {"producer_epoch": 0, "transactional": True}


def transactions(n: int) -> bytes:
    """All are open before the first ends, and they end in their order."""
    begun = [
        encode_batch([Record(k)], base_offset=k, producer_id=k, base_sequence=0, **TXN) for k in range(n)
    ]
    marker = EndTxnMarker(coordinator_epoch=1)
    ended = [
        encode_batch(
            [control_record(ControlType.ABORT, marker, offset=n + k, timestamp=5)],
            control=True,
            producer_id=k,
            **TXN,
        )
        for k in range(n)
    ]
    return b"".join(begun + ended)


def test_open_transactions(place: Place) -> None:
    def index(path: Path) -> None:
        read(path, lambda segment: rebuild(segment.batches(), 0))

    assert_linear(lambda n: place(transactions(n)), index, 300)
    assert_linear(lambda n: place(transactions(n)), save, 100)


def test_a_producer_has_one_open_transaction() -> None:
    """Whatever a snapshot says; else each marker would have to look at all of them."""
    producers = Producers([ProducerEntry(producer_id=7, current_txn_first_offset=k) for k in range(50)])
    marker = EndTxnMarker(coordinator_epoch=1)
    facts: dict[str, Any] = {"control": True, "producer_id": 8, **TXN}
    begun = encode_batch([Record(90)], base_offset=90, producer_id=8, base_sequence=0, **TXN)
    ended = encode_batch([control_record(ControlType.ABORT, marker, offset=91, timestamp=5)], **facts)
    aborted = [producers.add(each) for each in batches(begun + ended)]
    assert aborted == [None, (8, 90, 91, 49, 0)]
    (entry, _) = producers.entries()
    assert entry.current_txn_first_offset == 49


def test_a_snapshot_of_one_producer_many_times(place: Place) -> None:
    """Each of its transactions would have to be looked at for each marker."""

    def made(n: int) -> Path:
        path = place(transactions(n))
        path = path.rename(path.with_name(f"{n:020}.log"))
        entries = [ProducerEntry(producer_id=n - 1, current_txn_first_offset=k) for k in range(n)]
        path.with_suffix(".snapshot").write_bytes(write_snapshot(entries))
        return path

    def index(path: Path) -> None:
        with Segment(path) as segment:
            assert segment.producer_snapshot is not None
            rebuild(segment.batches(), 0, producers=Producers(segment.producer_snapshot.producer_entries))

    assert_linear(made, index, 200)
