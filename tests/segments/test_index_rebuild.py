"""Indexes built anew: the bytes of a real broker's recovery, and what the rules say where it wrote none."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordwire.errors import CorruptBatch
from coordwire.records import Record, batches, encode_batch
from coordwire.segments import ProducerEntry, Producers, Segment, read_snapshot, rebuild
from coordwire.segments.segment import logs, producers_before
from tests.broker_sample import broker_sample

from .build import START_MS, batch, log, write

INTERVALS = {"several.segments": 256, "append-time": 256, "transactions": 256, "compacted": 128}


def interval(topic: str) -> int:
    return INTERVALS.get(topic, 1024 if topic.startswith("codec-") else 4096)


def rebuilt_logs() -> list[Path]:
    """The segments whose indexes the broker rebuilt; the metadata log was written to afterwards."""
    return [
        path for path in logs(broker_sample() / "rebuilt") if "__cluster_metadata" not in path.parent.name
    ]


def test_a_brokers_recovery_writes_the_same() -> None:
    seen = {"index": 0, "timeindex": 0, "txnindex": 0, "snapshot": 0}
    producers, folder = Producers(), Path()
    for path in rebuilt_logs():
        if path.parent != folder:
            producers, folder = Producers(), path.parent
        with Segment(path) as segment:
            assert segment.topic is not None
            assert segment.base_offset is not None
            rebuilt = rebuild(
                segment.batches(), segment.base_offset, interval=interval(segment.topic), producers=producers
            )
            for kind, data in rebuilt.files().items():
                sibling_path = segment.sibling_path(kind)
                assert sibling_path is not None
                assert sibling_path.read_bytes() == data, sibling_path
                seen[kind] += bool(data)
            if "txnindex" not in rebuilt.files():
                assert not segment.transaction_index
        snapshot = folder / f"{rebuilt.end_offset:020}.snapshot"
        if snapshot.exists() and expired(snapshot, rebuilt.producers) == 0:
            assert snapshot.read_bytes() == rebuilt.snapshot(), snapshot
            seen["snapshot"] += 1
    assert seen["index"] > 10
    assert seen["timeindex"] > 30
    assert seen["txnindex"] > 2
    assert seen["snapshot"] > 20


def expired(snapshot: Path, producers: Producers) -> int:
    """How many producers the broker had forgotten by its clock."""
    return len(producers.entries()) - len(read_snapshot(snapshot.read_bytes()).producer_entries)


def test_what_was_known_before_a_segment() -> None:
    """From the newest snapshot and the segments after it as from the log's start."""
    known, folder = Producers(), Path()
    for path in rebuilt_logs():
        if path.parent.name != "transactions-0":
            continue
        if path.parent != folder:
            known, folder = Producers(), path.parent
        with Segment(path) as segment:
            assert producers_before(segment).entries() == known.entries()
            for each in segment.batches():
                known.add(each)
    assert known.entries()


def test_without_snapshots(tmp_path: Path) -> None:
    facts = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    write(tmp_path, batch(0, **facts))
    write(tmp_path, batch(6), base=6).with_suffix(".snapshot").write_bytes(b"nonsense")
    with Segment(write(tmp_path, batch(9), base=9)) as segment:
        (entry,) = producers_before(segment).entries()
    assert (entry.producer_id, entry.last_offset, entry.last_sequence, entry.offset_delta) == (7, 2, 2, 2)


def test_an_entry_is_due_behind_the_interval() -> None:
    parts = log(5)
    size = len(parts[0])
    data = b"".join(parts)
    rebuilt = rebuild(batches(data), 0, interval=size)
    assert [entry.position for entry in rebuilt.offsets] == [2 * size, 4 * size]
    assert rebuilt.offsets[0].offset == 8
    rebuilt = rebuild(batches(data), 0, interval=size - 1)
    assert [entry.position for entry in rebuilt.offsets] == [size, 2 * size, 3 * size, 4 * size]
    assert rebuild(batches(data), 0).offsets == []
    assert rebuilt.end_offset == 15


def test_the_time_index_has_what_is_larger() -> None:
    stamps = [5, 9, 7, 9, 12, -1]
    data = b"".join(batch(3 * n, stamp=START_MS + stamp) for n, stamp in enumerate(stamps[:5]))
    rebuilt = rebuild(batches(data), 0, interval=0)
    assert rebuilt.times == [(START_MS + 11, 5), (START_MS + 14, 14)]
    assert rebuild(batches(b""), 5).times == []
    old = encode_batch([Record(0, value=b"x")], magic=0)
    assert rebuild(batches(old), 0).times == []


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (batch(0) + batch(0), "after offset"),
        (batch(3) + batch(0), "after offset"),
        (batch(1 << 31), "doesn't fit"),
        (batch(0)[:-1] + b"\1", "CRC-32C"),
    ],
)
def test_what_recovery_would_stop_at(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptBatch, match=reason):
        rebuild(batches(data), 0)


def test_the_order_of_javas_hash_map() -> None:
    """Written by a `HashMap` of these keys, put in in this order."""
    keys = [1000, 16, 0, 33, 1 << 32, 17, 5_000_000_000]
    entries = [ProducerEntry(producer_id=key, last_offset=-1, current_txn_first_offset=-1) for key in keys]
    producer_ids = [entry.producer_id for entry in Producers(entries).entries()]
    assert producer_ids == [16, 0, 33, 1 << 32, 17, 5_000_000_000, 1000]
