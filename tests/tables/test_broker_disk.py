"""A real broker's folders, by every source: what the plain readers say of the same files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

from coordwire.errors import UnreadableRange
from coordwire.records import batches
from coordwire.tables.options import Options
from coordwire.tables.readers.sources import SOURCES, plan, read
from coordwire.timeline.from_log.coordinator_log import CoordinatorRecord, Marker, read_file
from coordwire.timeline.from_log.files import find_files as find_logs
from tests.broker_sample import SAMPLE, unpack


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("broker")
    unpack(SAMPLE, folder)
    return folder / "data"


def rows(source: str, folder: Path, columns: list[str], **options: Any) -> list[dict[str, Any]]:
    selected = Options(paths=(str(folder),), **options)
    return [
        row
        for group in plan(SOURCES[source], selected)
        for batch in read(SOURCES[source], group, selected, columns)
        for row in batch.to_pylist()
    ]


@pytest.mark.parametrize("size", [4096, 1 << 30])
def test_records_and_headers(broker: Path, size: int) -> None:
    logs = sorted(path for path in broker.rglob("*") if path.suffix in (".log", ".checkpoint"))
    actual = [(str(path), batch) for path in logs for batch in batches(path.read_bytes())]
    names = ["input_file", "position", "size", "codec", "producer_id", "last_sequence", "delete_horizon_ms"]
    heads = rows("kafka-segment-batches", broker, names, split_size=size)
    assert [tuple(row.values()) for row in heads] == [
        (path, batch.position, batch.size, batch.codec, batch.producer_id, batch.last_sequence,
         batch.delete_horizon_ms)
        for path, batch in actual
    ]  # fmt: skip
    columns = ["input_file", "log_offset", "timestamp_ms", "key", "value", "is_control"]
    tuples = rows("kafka-segment", broker, columns, split_size=size)
    assert [tuple(row.values()) for row in tuples] == [
        (path, record.offset, record.timestamp, record.key, record.value, batch.is_control)
        for path, batch in actual
        for record in batch
    ]
    assert rows("kafka-quarantine", broker, ["input_file", "reason"], split_size=size) == []
    assert len(tuples) > 2000


def written(broker: Path) -> list[CoordinatorRecord | Marker]:
    """What the plain reader finds in the coordinators' logs; that of the controllers is none of them."""
    logs = [log for log in find_logs([str(broker)]) if log.log != "metadata"]
    return [item for log in logs for item in read_file(log) if not isinstance(item, UnreadableRange)]


def test_what_coordinators_wrote(broker: Path) -> None:
    expected = written(broker)
    columns = [
        "input_file",
        "log_offset",
        "kind",
        "group_id",
        "topic",
        "partition",
        "committed_offset",
        "marker",
    ]
    tuples = rows("kafka-offsets", broker, columns)
    place = lambda row: (row[0], row[1])  # noqa: E731
    assert sorted((tuple(row.values())[:6] for row in tuples), key=place) == sorted(
        (
            (item.file, item.log_offset, item.kind, item.group, item.topic, item.partition)
            if isinstance(item, CoordinatorRecord)
            else (item.file, item.log_offset, None, None, None, None)
            for item in expected
        ),
        key=place,
    )
    commits = [row for row in tuples if row["kind"] == "OffsetCommit" and row["committed_offset"] is not None]
    assert {row["group_id"] for row in commits} >= {"orders-classic"}
    assert [row for row in tuples if row["marker"] == "commit"]


def test_whose_log_it_is(broker: Path, tmp_path: Path) -> None:
    """Of two clusters with the same partition and offsets, one of them with two brokers."""
    for name, node, cluster in (("a", 1, "one"), ("b", 2, "one"), ("c", 1, "two")):
        shutil.copytree(broker / "__consumer_offsets-0", tmp_path / name / "__consumer_offsets-0")
        (tmp_path / name / "meta.properties").write_text(f"node.id={node}\ncluster.id={cluster}\n")
    first = sorted((tmp_path / "c" / "__consumer_offsets-0").glob("*.log"))[0]
    first.rename(f"{first}.deleted")
    tuples = rows(
        "kafka-offsets", tmp_path, ["broker_id", "cluster_id", "file_state", "log_offset", "input_file"]
    )
    assert {(row["broker_id"], row["cluster_id"], Path(row["input_file"]).parts[-3]) for row in tuples} == {
        ("1", "one", "a"), ("2", "one", "b"), ("1", "two", "c"),
    }  # fmt: skip
    assert {row["file_state"] for row in tuples if row["input_file"] == f"{first}.deleted"} == {"deleted"}
    assert {row["file_state"] for row in tuples if row["cluster_id"] == "one"} == {"live"}
