"""Which broker, cluster and state a segment is of; two brokers' copies and a segment's several names."""

from __future__ import annotations

import json
import os
import random
import struct
from base64 import urlsafe_b64decode
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

from coordwire.errors import CorruptBatch
from coordwire.records import Record, encode_batch
from coordwire.tables.options import Options
from coordwire.tables.readers.file_origins import FileOrigin, Origins
from coordwire.tables.readers.files import File, find_files
from coordwire.tables.readers.sources import SOURCES, plan, read
from tests.broker_sample import broker_sample
from tests.tables import pipeline_steps
from tests.tables.made_segments import START, partition, segment

LOG = f"{0:020}.log"


def meta(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "meta.properties").write_text(text)


def origins(folder: Path) -> dict[str, FileOrigin]:
    files = find_files([str(folder)])
    actual = Origins(files)
    return {os.path.relpath(file.path, folder): actual.of(file) for file in files if file.kind() == "segment"}


def rows(folder: Path, columns: list[str], source: str = "kafka-segment") -> list[tuple[Any, ...]]:
    options = Options(paths=(str(folder),))
    return [
        tuple(row.values())
        for group in plan(SOURCES[source], options)
        for batch in read(SOURCES[source], group, options, columns)
        for row in batch.to_pylist()
    ]


def test_brokers_by_their_meta_properties(tmp_path: Path) -> None:
    data = segment(random.Random(1), 2)
    for number in (1, 2):
        meta(tmp_path / f"b{number}", f"#\nnode.id={number}\nversion=1\r\ncluster.id = c-{number}\n")
        partition(tmp_path / f"b{number}", "orders", 0, data)
    meta(tmp_path / "old", "version=0\nbroker.id=7\n")
    partition(tmp_path / "old", "orders", 0, data)
    meta(tmp_path / "odd", "node.id=not a number\n")
    partition(tmp_path / "odd", "orders", 0, data)
    partition(tmp_path / "none", "orders", 0, data)
    (tmp_path / "b1" / "bootstrap.checkpoint").write_bytes(data)
    (tmp_path / "none" / "bootstrap.checkpoint").write_bytes(data)
    actual = origins(tmp_path)
    assert actual == {
        "b1/bootstrap.checkpoint": FileOrigin(None, None, "1", "c-1", "checkpoint"),
        f"b1/orders-0/{LOG}": FileOrigin("orders", 0, "1", "c-1", "live"),
        f"b2/orders-0/{LOG}": FileOrigin("orders", 0, "2", "c-2", "live"),
        "none/bootstrap.checkpoint": FileOrigin(None, None, None, None, "checkpoint"),
        f"none/orders-0/{LOG}": FileOrigin("orders", 0, str(tmp_path / "none"), None, "live"),
        f"odd/orders-0/{LOG}": FileOrigin("orders", 0, str(tmp_path / "odd"), None, "live"),
        f"old/orders-0/{LOG}": FileOrigin("orders", 0, "7", None, "live"),
    }
    named = find_files([str(tmp_path / "b1" / "orders-0" / LOG)])
    assert Origins(named).of(named[0]).broker == "1"  # though the listing doesn't have meta.properties


def test_a_hostile_meta_properties_is_none(tmp_path: Path) -> None:
    partition(tmp_path, "orders", 0, segment(random.Random(1), 1))
    place = tmp_path / "meta.properties"
    for make in (
        lambda: os.mkfifo(place),
        lambda: place.mkdir(),
        lambda: place.symlink_to("/dev/zero"),
        lambda: place.write_bytes(b"node.id=" + b"9" * 100_000),
        lambda: place.write_bytes(b"\xff" * 1000 + b"\n\0node.id=1"),
    ):
        make()
        [actual] = [item for name, item in origins(tmp_path).items() if name.endswith(".log")]
        assert (actual.broker, actual.cluster_id) == (str(tmp_path), None)
        place.rmdir() if place.is_dir() and not place.is_symlink() else place.unlink()


def test_in_a_store_meta_properties_is_looked_for_a_bounded_number_of_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests: list[str] = []

    def no_file(path: str) -> Any:
        requests.append(path)
        raise FileNotFoundError(path)

    monkeypatch.setattr("coordwire.tables.readers.file_origins.open_stream", no_file)
    files = [File(f"s3://b/{number}/orders-{part}/{LOG}", 1, 0) for number in range(500) for part in range(3)]
    actual = Origins(files)
    assert {actual.of(file).broker for file in files} == {f"s3://b/{number}" for number in range(500)}
    assert len(requests) == 64
    listed = [*files, File("s3://b/499/meta.properties", 1, 0)]
    actual, requests[:] = Origins(listed), []
    for file in files:
        actual.of(file)
    assert len(requests) == 65


def test_states(tmp_path: Path) -> None:
    data = segment(random.Random(1), 1)
    names = {
        f"orders-0/{LOG}": "live",
        f"orders-0/{LOG}.deleted": "deleted",
        f"orders-0/{LOG}.cleaned": "cleaned",
        f"orders-0/{LOG}.swap": "swap",
        f"orders-1.0123456789abcdef-delete/{LOG}": "deleted",
        f"orders-2.0123456789abcdef-future/{LOG}": "future",
        f"orders-3.0123456789abcdef-stray/{LOG}": "stray",
        f"orders-2.0123456789abcdef-future/{LOG}.deleted": "deleted",
        f"__cluster_metadata-0/{0:020}-{1:010}.checkpoint": "checkpoint",
    }
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    assert {name: item.state for name, item in origins(tmp_path).items()} == names
    actual = {
        (os.path.relpath(path, tmp_path), state)
        for path, state in rows(tmp_path, ["input_file", "file_state"])
    }
    assert actual == set(names.items())


def test_a_brokers_rows_say_where_they_are_from() -> None:
    folder = broker_sample() / "data"
    columns = ["broker_id", "cluster_id", "file_state"]
    actual = set(rows(folder, columns)) | set(rows(folder, columns, "kafka-segment-batches"))
    cluster = "qOcaBAayQ1yXVTW4W_MLOw"
    assert actual == {("1", cluster, "live"), ("1", cluster, "checkpoint")}


def test_the_tables_have_the_same(tmp_path: Path) -> None:
    for broker in ("a", "b"):
        meta(tmp_path / "in" / broker, f"node.id={ord(broker)}\n")
        place = partition(tmp_path / "in" / broker, "orders", 0)
        records = [Record(timestamp=START, value=value) for value in (b"x", b"y")]
        (place / LOG).write_bytes(
            encode_batch(records, producer_id=4, producer_epoch=2, base_sequence=9, partition_leader_epoch=5)
        )
    tables = ("files", "records", "batches")
    pipeline_steps.run(tmp_path / "in", tmp_path / "out", tables=tables)
    for name, count in zip(tables, (2, 4, 2), strict=True):
        actual = [
            row
            for row in pipeline_steps.table_rows(tmp_path / "out", name)
            if row["input_file"].endswith(".log")
        ]
        assert len(actual) == count
        assert {(row["broker_id"], row["cluster_id"], row["file_state"]) for row in actual} == {
            ("97", None, "live"), ("98", None, "live"),
        }  # fmt: skip
        if name != "files":
            assert {
                (
                    row["producer_id"],
                    row["producer_epoch"],
                    row["base_sequence"] if name == "batches" else row["sequence"] - row["log_offset"],
                    row["partition_leader_epoch"],
                )
                for row in actual
            } == {(4, 2, 9, 5)}
    [broker] = {row["broker_id"] for row in pipeline_steps.table_rows(tmp_path / "out", "files")
                if row["input_file"].endswith(f"b/orders-0/{LOG}")}  # fmt: skip
    assert broker == "98"


# --- remote storage ---

ID, SEGMENT = "MWJ6FHTfRYy67jzwZdeqSQ", "tqimKeZwStOEOwRzT3L5oQ"


def uuid(text: str) -> bytes:
    return urlsafe_b64decode(text + "==")


def described(topic: str, partition: int, segment_id: str = SEGMENT, kind: int = 0) -> bytes:
    """A value of `__remote_log_metadata`: frame version, type, version, then the record, of which the rest
    is made up."""
    name = topic.encode()
    place = bytes([len(name) + 1]) + name + uuid(ID) + struct.pack(">i", partition) + b"\0"
    return bytes([1, kind, 0]) + place + uuid(segment_id) + b"\0" + bytes(40)


def test_remote_segments_by_their_paths(tmp_path: Path) -> None:
    data = segment(random.Random(1), 2)
    places = {
        f"tier/or-ders-{ID}/7/00000000000000001234-{SEGMENT}.log": ("or-ders", 7),
        f"tier/or-ders-3-{ID}/0-{SEGMENT}.log": ("or-ders", 3),
        f"tier/{ID}/2/00000000000000001234-{SEGMENT}.log": (None, None),
        f"tier/what/ever/00000000000000001234-{SEGMENT}.log": (None, None),
        f"tier/looks-3/00000000000000001234-{SEGMENT}.log": (None, None),
    }
    for name in places:
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
        path.with_suffix(".rsm-manifest").write_text('{"version": "1", "compression": false}')
    columns = ["input_file", "topic", "partition", "broker_id", "file_state"]
    expected = {(str(tmp_path / name), *place, None, "remote") for name, place in places.items()}
    assert set(rows(tmp_path, columns)) == expected
    size_each = len(rows(tmp_path / "tier" / ID, ["log_offset"]))
    assert len(rows(tmp_path, ["log_offset"])) == len(places) * size_each > 0
    assert {file.topic for file in find_files([str(tmp_path)])} == {None, "or-ders"}


def test_remote_segments_by_the_log_of_their_metadata(tmp_path: Path) -> None:
    data = segment(random.Random(1), 2)
    other = f"{SEGMENT[:20]}AA"
    for name in (f"x/{SEGMENT}.log", f"{ID}/2/5-{other}.log", f"wrong-{ID}/0/0-{SEGMENT}.log"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(data)
    valid = described("orders", 4)
    damaged = [
        described("pay", 9, kind=2),
        described("", 1),
        described("x" * 20, -1),
        described("\xff", 1)[:9],
    ]
    values = [None, b"", b"\1", b"\xff" * 60, *damaged, valid, *(valid[:size] for size in range(40))]
    log = encode_batch([Record(timestamp=START, value=value) for value in values])
    partition(tmp_path / "disk", "__remote_log_metadata", 3, log + b"\xff" * 70)
    actual = {name: item[:2] for name, item in origins(tmp_path).items() if "disk" not in name}
    assert actual == {
        f"x/{SEGMENT}.log": ("orders", 4),
        f"{ID}/2/5-{other}.log": ("orders", 2),  # by the topic's id
        f"wrong-{ID}/0/0-{SEGMENT}.log": ("orders", 4),
    }


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ({"compression": True}, "compressed"),
        ({"compression": True, "encryption": {"dataKey": "x"}}, "compressed and encrypted"),
        ({"compression": False, "encryption": {"dataKey": "x"}}, "encrypted"),
    ],
)
def test_what_remote_storage_has_in_another_form(tmp_path: Path, manifest: dict[str, Any], said: str) -> None:
    path = tmp_path / f"orders-{ID}" / "7" / f"{0:020}-{SEGMENT}.log"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(300))
    path.with_suffix(".rsm-manifest").write_text(json.dumps({"version": "1", **manifest}))
    assert rows(tmp_path, ["log_offset"]) == []
    expected = f"the segment is {said} in remote storage, as its .rsm-manifest says"
    assert rows(tmp_path, ["position", "end_position", "reason"], "kafka-quarantine") == [(0, 304, expected)]
    options = Options(paths=(str(tmp_path),), mode="failfast")
    [group] = plan(SOURCES["kafka-segment"], options)
    with pytest.raises(CorruptBatch, match=expected):
        list(read(SOURCES["kafka-segment"], group, options, ["log_offset"]))


@pytest.mark.parametrize("manifest", ["", "[", "7", '{"compression": "', "{}", "null"])
def test_a_manifest_that_says_nothing(tmp_path: Path, manifest: str) -> None:
    path = tmp_path / f"orders-{ID}" / "7" / f"{0:020}-{SEGMENT}.log"
    path.parent.mkdir(parents=True)
    path.write_bytes(segment(random.Random(1), 2))
    path.with_suffix(".rsm-manifest").write_text(manifest)
    assert rows(tmp_path, ["topic"])
