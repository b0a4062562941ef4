"""Logs of Kafka 0.7 as tables: the rows of each source, in the pipeline too, and of logs that grow."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from coordwire.errors import CorruptBatch
from coordwire.segments import Segment
from coordwire.tables import pipeline
from coordwire.tables.options import Options
from coordwire.tables.readers.segment_reader import resume_position
from coordwire.tables.readers.sources import SOURCES, plan, read
from coordwire.tables.readers.splits import Part
from tests.segments.test_kafka_07 import FIRST, INSIDE, LOG, MESSAGES, bytes_of


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "logs" / "orders-3" / f"{FIRST:011}.kafka"
    path.parent.mkdir(parents=True)
    path.write_bytes(LOG)
    return path


def rows(path: Path, source: str, **options: Any) -> list[dict[str, Any]]:
    chosen = Options(paths=(str(path.parent.parent),), **options)
    definition = SOURCES[source]
    names = [column.name for column in definition.columns]
    tasks = plan(definition, chosen)
    return [
        row for task in tasks for batch in read(definition, task, chosen, names) for row in batch.to_pylist()
    ]


@pytest.mark.parametrize("split_size", [64, 128 << 20])
def test_records_and_messages_are_those_of_the_segment(log: Path, split_size: int) -> None:
    records = rows(log, "kafka-segment", split_size=split_size)
    batches = rows(log, "kafka-segment-batches", split_size=split_size)
    with Segment(log) as segment:
        messages = list(segment.batches())
        assert [(row["log_offset"], row["value"]) for row in records] == [
            (record.offset, record.value) for batch in messages for record in batch
        ]
        assert [(row["base_offset"], row["position"], row["size"], row["codec"]) for row in batches] == [
            (batch.base_offset, batch.position, batch.size, batch.codec) for batch in messages
        ]
    assert {(row["topic"], row["partition"], row["key"], row["time"]) for row in records} == {
        ("orders", 3, None, None)
    }
    assert {(row["producer_id"], row["timestamp_ms"], row["is_control"]) for row in records} == {
        (-1, -1, False)
    }
    assert [row["magic"] for row in records] == [0, 1, 1, 1, 1, 1]
    assert rows(log, "kafka-quarantine") == []


def test_ranges(log: Path) -> None:
    second = FIRST + len(MESSAGES[0])
    result = rows(log, "kafka-segment", starting_offset=second, ending_offset=second + 1)
    assert [row["value"] for row in result] == [b"second"]
    assert rows(log, "kafka-segment", starting_timestamp=0) == []


def test_damage_is_in_quarantine(log: Path) -> None:
    damaged = bytearray(LOG)
    damaged[len(MESSAGES[0]) + 10] ^= 1
    log.write_bytes(damaged[:-3])
    values = [row["value"] for row in rows(log, "kafka-segment")]
    assert values == [b"first", b"", b"a", b"bb"]
    bad = rows(log, "kafka-quarantine")
    places = [(row["position"], row["end_position"]) for row in bad]
    last = len(LOG) - len(bytes_of(b"last"))
    assert places == [(len(MESSAGES[0]), len(MESSAGES[0] + MESSAGES[1])), (last, len(LOG) - 3)]
    assert "CRC-32" in bad[0]["reason"]
    assert bad[1]["reason"] == "the file ends inside a message"
    with pytest.raises(CorruptBatch, match="CRC-32"):
        rows(log, "kafka-segment", mode="failfast")


def test_a_log_that_grows_goes_on_at_the_message_that_was_not_whole(log: Path) -> None:
    edges = [0]
    for message in (*MESSAGES, bytes_of(gzip.compress(INSIDE), 1), bytes_of(b"last")):
        edges.append(edges[-1] + len(message))
    for size in range(len(LOG) + 1):
        part = Part("segment", str(log), len(LOG), 0, len(LOG))
        assert resume_position(part, size) == max(edge for edge in edges if edge <= size)


def test_the_pipeline_has_them_too(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    summary = pipeline.run(pipeline.LocalEngine(1), [str(log.parent.parent)], str(out), report=False)
    assert summary.reused == 0
    records = pyarrow.parquet.read_table(out / "records", partitioning=None).to_pylist()
    assert sorted(row["value"] for row in records) == [b"", b"a", b"bb", b"first", b"last", b"second"]
    batches = pyarrow.parquet.read_table(out / "batches", partitioning=None).to_pylist()
    assert {row["base_offset"] for row in batches} == {row["log_offset"] for row in records}
    result = pipeline.run(pipeline.LocalEngine(1), [str(log.parent.parent)], str(out), report=False)
    assert result.reused == 1


def test_messages_out_of_range_are_not_among_the_batches(log: Path) -> None:
    second = FIRST + len(MESSAGES[0])
    result = rows(log, "kafka-segment-batches", starting_offset=second, ending_offset=second + 1)
    assert [row["base_offset"] for row in result] == [second]
    assert rows(log, "kafka-segment-batches", ending_timestamp=1 << 40) == []
