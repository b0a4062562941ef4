"""Logs on disk: a restart goes on, `Segment.verify` finds nothing wrong, and nothing foreign is touched."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coordwire.broker.cluster.cluster_state import ClusterState
from coordwire.broker.cluster.disk_logs import DiskLogs, open_cluster
from coordwire.broker.log.data_folder import DataFolder, DataFolderError
from coordwire.broker.log.disk import DiskStorage
from coordwire.broker.log.disk_loading import create_log, load_log
from coordwire.broker.log.partition_log import PartitionLog
from coordwire.broker.log.retention import SegmentRules
from coordwire.broker.log.validation import AppendRules, RefusedRecords, one_batch
from coordwire.broker.settings.broker_config import BrokerConfig
from coordwire.logs import LogRecord, encode_log_record, open_log_record
from coordwire.messages import PartitionChangeRecord
from coordwire.records import Record, encode_batch
from coordwire.segments import Segment, read_snapshot
from coordwire.segments.names import log_name
from coordwire.segments.segment import logs
from tests.broker.core import batch, records_of

NOW = 1_700_000_000_000
SMALL = SegmentRules(segment_bytes=1_000, index_interval=200)
CONFIG = BrokerConfig(offsets_partitions=2)


def clock() -> int:
    return NOW


def opened(path: Path, nodes: tuple[int, ...] = (1,)) -> ClusterState:
    return open_cluster(path, clock=clock, config=CONFIG, nodes=nodes)


def killed(cluster: ClusterState) -> None:
    """End as a process that was killed does."""
    assert isinstance(cluster.logs, DiskLogs)
    cluster.logs.abandon()


def closed(cluster: ClusterState) -> None:
    cluster.close()


ENDS: list[Callable[[ClusterState], None]] = [killed, closed]


def append(log: PartitionLog, data: bytes) -> int:
    return log.append(one_batch(data, 13), AppendRules(), NOW).base_offset


def verified(folder: Path) -> None:
    """No segment under a folder has a fault, nor has anything beside it."""
    for path in logs(folder):
        with Segment(path) as segment:
            assert list(segment.verify()) == []


@pytest.mark.parametrize("end", ENDS)
def test_a_restart_goes_on(tmp_path: Path, end: Callable[[ClusterState], None]) -> None:
    cluster = opened(tmp_path)
    topic = cluster.create_topic("orders", 3, settings={"retention.ms": "5", "segment.bytes": "1048576"})
    for partition in topic.partitions:
        for number in range(5):
            data = batch(b"%d" % number, producer_id=7, producer_epoch=0, base_sequence=number)
            append(partition.log, data)
    topic.partitions[1].log.delete_before(2)
    cluster.logs.started(topic.partitions[1])
    cluster.add_partitions(topic, 4)
    gone = cluster.create_topic("gone", 1)
    cluster.delete_topic(gone)
    first_id = cluster.new_producer_id()
    end(cluster)
    verified(tmp_path)

    reopened = opened(tmp_path)
    assert reopened.cluster_id == cluster.cluster_id
    assert list(reopened.topics) == ["orders"]
    result = reopened.topics["orders"]
    assert (result.id, len(result.partitions)) == (topic.id, 4)
    assert result.settings.own == {"retention.ms": "5", "segment.bytes": "1048576"}
    assert [partition.log.end_offset for partition in result.partitions] == [5, 5, 5, 0]
    assert [partition.log.start_offset for partition in result.partitions] == [0, 2, 0, 0]
    log = result.partitions[0].log
    assert list(records_of(log.read(0, 1 << 20).data)) == [(n, b"%d" % n) for n in range(5)]
    repeated = batch(b"4", producer_id=7, producer_epoch=0, base_sequence=4)
    assert append(log, repeated) == 4
    assert append(log, batch(b"5", producer_id=7, producer_epoch=0, base_sequence=5)) == 5
    assert reopened.new_producer_id() > first_id
    closed(reopened)
    verified(tmp_path)


sizes = st.lists(st.integers(1, 400), min_size=1, max_size=25)


@settings(max_examples=12, deadline=None)
@given(sizes, sizes, st.booleans(), st.integers(0, 30))
@example([400] * 12, [1], True, 16)  # whole segments go
def test_a_log_on_disk_is_the_one_in_memory(
    tmp_path_factory: pytest.TempPathFactory, before: list[int], after: list[int], kill: bool, start: int
) -> None:
    folder = tmp_path_factory.mktemp("log") / "orders-0"
    disk, memory = create_log(folder, UUID(int=5), SMALL), PartitionLog()

    def write(log: PartitionLog, numbers: list[int]) -> None:
        for size in numbers:
            records = [Record(timestamp=NOW - size, value=b"v" * size), Record(timestamp=NOW + size)]
            append(log, encode_batch(records, base_offset=0))

    def compare() -> None:
        for offset in range(memory.start_offset, memory.end_offset + 1):
            assert disk.read(offset, 700).data == memory.read(offset, 700).data

    for log in (disk, memory):
        write(log, before)
        for at in (start // 2, start):
            if at <= log.end_offset:
                log.delete_before(at)
    compare()
    verified_start = disk.start_offset
    if kill:
        disk.let_go()
    else:
        disk.close()
    verified(folder)
    disk = load_log(folder, SMALL, verified_start)
    for log in (disk, memory):
        write(log, after)
    assert (disk.start_offset, disk.end_offset) == (memory.start_offset, memory.end_offset)
    assert disk.epochs.entries == memory.epochs.entries
    compare()
    for time in (NOW - 200, NOW, NOW + 150):
        assert disk.find_time(time, disk.end_offset) == memory.find_time(time, memory.end_offset)
    assert all(path.stat().st_size <= 1_000 for path in folder.glob("*.log"))
    disk.close()
    verified(folder)


@settings(max_examples=25, deadline=None)
@given(sizes, sizes, st.booleans(), st.integers(0, 30), st.integers(0, 60))
def test_a_truncated_log_on_disk_is_the_one_in_memory(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[int],
    after: list[int],
    kill: bool,
    start: int,
    cut: int,
) -> None:
    folder = tmp_path_factory.mktemp("log") / "orders-0"
    disk, memory = create_log(folder, UUID(int=5), SMALL), PartitionLog()

    def write(log: PartitionLog, numbers: list[int], epoch: int) -> None:
        for at, size in enumerate(numbers):
            records = [Record(timestamp=NOW - size, value=b"v" * size), Record(timestamp=NOW + size)]
            who: dict[str, Any] = {"producer_id": 7, "producer_epoch": epoch, "transactional": True}
            append(log, encode_batch(records, base_offset=0, base_sequence=2 * (at % 3), **who))
            if at % 3 == 2:
                ended: dict[str, Any] = {
                    "committed": at % 2 == 0,
                    "coordinator_epoch": 0,
                    "version": 0,
                    "now": NOW,
                }
                log.end_transaction(7, epoch, **ended)
                epoch += 1

    for log in (disk, memory):
        write(log, before, 0)
        if start <= log.end_offset:
            log.delete_before(start)
        log.truncate(cut)
        log.lead(1)
    verified(folder)
    for number in (False, True):
        assert (disk.start_offset, disk.end_offset) == (memory.start_offset, memory.end_offset)
        assert disk.last_stable_offset == memory.last_stable_offset
        assert disk.epochs.entries == memory.epochs.entries
        for offset in range(memory.start_offset, memory.end_offset + 1):
            assert disk.read(offset, 700, committed=True) == memory.read(offset, 700, committed=True)
            assert disk.read(offset, 700).data == memory.read(offset, 700).data
        for time in (NOW - 200, NOW, NOW + 150):
            assert disk.find_time(time, disk.end_offset) == memory.find_time(time, memory.end_offset)
        if not number:
            for log in (disk, memory):
                write(log, after, 100)
            verified(folder)
            disk.let_go() if kill else disk.close()
            disk = load_log(folder, SMALL, memory.start_offset, 1)
    disk.close()
    verified(folder)


def test_a_segment_that_is_full_is_followed_by_another_with_a_snapshot(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    log = create_log(folder, UUID(int=5), SMALL)
    for number in range(12):
        append(log, batch(b"v" * 50, b"v" * 43, producer_id=3, producer_epoch=0, base_sequence=2 * number))
    bases = sorted(int(path.stem) for path in folder.glob("*.log"))
    assert bases == [0, 10, 20]
    for base in bases[1:]:
        snapshot = read_snapshot((folder / log_name(base, "snapshot")).read_bytes())
        assert [(entry.producer_id, entry.last_sequence) for entry in snapshot.producer_entries] == [
            (3, base - 1)
        ]
    log.delete_before(22)
    assert sorted(int(path.stem) for path in folder.glob("*.log")) == [20]
    assert next(records_of(log.read(22, 1 << 20).data))[0] == 22
    log.close()


# --- what a process that was killed leaves, and damage ---


def log_of(tmp_path: Path) -> tuple[Path, list[bytes]]:
    """A log of three batches, closed."""
    folder = tmp_path / "orders-0"
    log = create_log(folder, UUID(int=5), SegmentRules())
    for number in range(3):
        append(log, batch(b"value %d" % number))
    stored = [log.read(number, 1).data for number in range(3)]
    log.let_go()
    return folder, stored


def test_a_batch_of_offsets_that_were_there_is_refused(tmp_path: Path) -> None:
    folder, stored = log_of(tmp_path)
    path = folder / log_name(0)
    path.write_bytes(b"".join([*stored, stored[1]]))
    with pytest.raises(DataFolderError, match="offset 1 after offset 2"):
        load_log(folder, SegmentRules())


def test_an_unfinished_batch_at_the_end_is_cut_off(tmp_path: Path) -> None:
    folder, stored = log_of(tmp_path)
    path = folder / log_name(0)
    data = path.read_bytes()
    first_two = len(stored[0]) + len(stored[1])
    for cut in (0, 5, 40, len(stored[0]) - 1):
        path.write_bytes(data[:cut])
        log = load_log(folder, SegmentRules())
        assert (log.end_offset, path.stat().st_size) == (0, 0)
        log.close()
    for cut in range(first_two, len(data), 5):
        path.write_bytes(data[:cut])
        log = load_log(folder, SegmentRules())
        assert log.end_offset == 2
        assert path.stat().st_size == first_two
        assert append(log, batch(b"after")) == 2
        log.close()
        verified(folder)
        path.write_bytes(data)
    assert load_log(folder, SegmentRules()).end_offset == 3


def test_damage_before_sound_batches_is_not_touched(tmp_path: Path) -> None:
    folder, stored = log_of(tmp_path)
    path = folder / log_name(0)
    data = bytearray(path.read_bytes())
    data[len(stored[0]) + 70] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataFolderError, match=rf"damaged at byte {len(stored[0])} .*segment recover"):
        load_log(folder, SegmentRules())
    assert path.read_bytes() == data


@pytest.mark.parametrize("wrong", range(3))
def test_every_batch_of_the_newest_segment_is_checked_at_a_start(tmp_path: Path, wrong: int) -> None:
    """Whether others come before it in its segment, or none does, and whatever its records say."""
    folder, stored = log_of(tmp_path)
    path = folder / log_name(0)
    data = bytearray(path.read_bytes())
    place = sum(map(len, stored[:wrong]))
    data[place + 70] ^= 1
    path.write_bytes(data[: place + len(stored[wrong])])
    log = load_log(folder, SegmentRules())
    assert (log.end_offset, path.stat().st_size) == (wrong, place)
    log.close()
    path.write_bytes(data)
    if wrong < 2:
        with pytest.raises(DataFolderError, match=f"damaged at byte {place} "):
            load_log(folder, SegmentRules())


def test_a_batch_without_records_is_checked_at_a_start_too(tmp_path: Path) -> None:
    """As compaction leaves it."""
    folder, stored = log_of(tmp_path)
    path = folder / log_name(0)
    whole = path.read_bytes()
    empty = bytearray(encode_batch([], base_offset=3, last_offset=4, partition_leader_epoch=0))
    path.write_bytes(whole + empty)
    log = load_log(folder, SegmentRules())
    assert log.end_offset == 5
    log.close()
    empty[45] ^= 1
    path.write_bytes(whole + empty)
    log = load_log(folder, SegmentRules())
    assert (log.end_offset, path.stat().st_size) == (3, sum(map(len, stored)))


# --- folders ---


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("all my work")
    with pytest.raises(DataFolderError, match="not a broker's folder"):
        opened(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "thesis.txt"]


def test_a_folder_has_one_broker_and_its_node(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, cluster_id="c", node_id=1)
    folder.close({})
    with pytest.raises(DataFolderError, match="folder of node 1, expected node 2"):
        DataFolder(tmp_path, cluster_id="c", node_id=2)
    again = DataFolder(tmp_path, cluster_id="other", node_id=1)
    assert (again.cluster_id, again.was_clean) == ("c", True)
    again.abandon()
    last = DataFolder(tmp_path, cluster_id="other", node_id=1)
    assert not last.was_clean
    last.close({})


def test_deleting_a_topic_leaves_what_is_not_kafkas(tmp_path: Path) -> None:
    cluster = opened(tmp_path)
    topic = cluster.create_topic("orders", 2)
    append(topic.partitions[0].log, batch(b"v"))
    (tmp_path / "orders-0" / "notes.txt").write_text("mine")
    (tmp_path / "orders-0" / "00000000000000000009.log").symlink_to(tmp_path / "meta.properties")
    cluster.delete_topic(topic)
    remaining = [path for path in tmp_path.iterdir() if path.name.startswith("orders")]
    (kept,) = remaining
    assert kept.name.endswith("-delete")
    assert sorted(path.name for path in kept.iterdir()) == ["00000000000000000009.log", "notes.txt"]
    assert (tmp_path / "meta.properties").exists()
    closed(cluster)


def test_several_nodes_have_folders_of_their_own(tmp_path: Path) -> None:
    cluster = opened(tmp_path, (1, 2, 3))
    topic = cluster.create_topic("orders", 6, replication_factor=2)
    for number, partition in enumerate(topic.partitions):
        append(partition.log, batch(b"%d" % number))
    closed(cluster)
    places = {path.parent.name: path.name for path in tmp_path.glob("node-*/orders-*")}
    assert set(places) == {"node-1", "node-2", "node-3"}
    reopened = opened(tmp_path, (1, 2, 3))
    assert [
        (partition.leader, partition.log.end_offset) for partition in reopened.topics["orders"].partitions
    ] == [(partition.leader, 1) for partition in topic.partitions]
    closed(reopened)


@pytest.mark.parametrize("end", ENDS)
def test_all_batches_that_a_producer_may_have_in_flight_are_known_after_a_restart(
    tmp_path: Path, end: Callable[[ClusterState], None]
) -> None:
    """A client that got no answer sends up to five again. If only the last were known, the others would be
    out of order, and the client would send them once more in a new epoch: twice in the log."""
    cluster = opened(tmp_path)
    (partition,) = cluster.create_topic("orders", 1, settings={"segment.bytes": "150"}).partitions
    sent = [batch(b"v", producer_id=7, producer_epoch=0, base_sequence=number) for number in range(7)]
    for data in sent:
        append(partition.log, data)
    end(cluster)
    reopened = opened(tmp_path)
    (partition,) = reopened.topics["orders"].partitions
    assert [append(partition.log, data) for data in sent[2:]] == [2, 3, 4, 5, 6]
    with pytest.raises(RefusedRecords, match="sends sequence 1 after 6"):
        append(partition.log, sent[1])
    assert partition.log.end_offset == 7
    closed(reopened)


def test_leader_epochs_go_on_where_another_broker_left_them(tmp_path: Path) -> None:
    """A Kafka broker begins two epochs at each start, and says so even where it then writes nothing.

    A batch of an older epoch than the checkpoint's first would be taken for one that was lost: a consumer's
    committed offset is validated by its epoch, and was set back to the log's start.
    """
    cluster = opened(tmp_path)
    topic = cluster.create_topic("orders", 2)
    append(topic.partitions[1].log, batch(b"ours"))
    closed(cluster)
    metadata = load_log(tmp_path / "__cluster_metadata-0", SegmentRules())
    for partition in topic.partitions:
        for leader in (-1, 1):  # the broker is fenced, and comes back
            change = PartitionChangeRecord(partition_id=partition.index, topic_id=topic.id, leader=leader)
            change.isr = [1]
            record = LogRecord(log="metadata", type=5, key=None, value=change, version=1, frame_version=1)
            key, value = encode_log_record(record)
            metadata.append_own(encode_batch([Record(timestamp=NOW, key=key, value=value)], base_offset=0))
    metadata.close()
    (tmp_path / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\n2 0\n")
    reopened = opened(tmp_path)
    first, second = (partition.log for partition in reopened.topics["orders"].partitions)
    for log in (first, second):
        append(log, batch(b"next"))
    assert [one.partition_leader_epoch for one in first.batches()] == [2]
    assert [one.partition_leader_epoch for one in second.batches()] == [0, 2]
    assert (first.epoch_end(0), first.epoch_end(2)) == ((0, 0), (2, 1))
    assert (second.epoch_end(0), second.epoch_end(2)) == ((0, 1), (2, 2))
    closed(reopened)
    assert (tmp_path / "orders-0" / "leader-epoch-checkpoint").read_text() == "0\n1\n2 0\n"
    assert (tmp_path / "orders-1" / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n2 1\n"


def test_a_leader_that_wrote_nothing_has_its_epoch_after_a_restart(tmp_path: Path) -> None:
    """The checkpoint forgets it, as Kafka's does; the metadata count it."""
    cluster = opened(tmp_path, (1, 2))
    topic = cluster.create_topic("orders", 1, replication_factor=2)
    (partition,) = topic.partitions
    for node in (2, 1, 2):
        cluster.replication.move_leader(partition, node)
    assert (partition.leader, partition.leader_epoch) == (2, 3)
    closed(cluster)
    for _ in range(2):
        reopened = opened(tmp_path, (1, 2))
        (result,) = reopened.topics["orders"].partitions
        assert (result.leader, result.leader_epoch, list(result.replicas)) == (2, 3, list(partition.replicas))
        closed(reopened)


def test_the_metadata_take_up_epochs_that_only_a_log_has(tmp_path: Path) -> None:
    """As of a broker that was killed between the two writes: a Kafka broker counts on from the metadata."""
    cluster = opened(tmp_path)
    (partition,) = cluster.create_topic("orders", 1).partitions
    partition.log.lead(3)
    append(partition.log, batch(b"v"))
    closed(cluster)
    closed(opened(tmp_path))
    metadata = load_log(tmp_path / "__cluster_metadata-0", SegmentRules())
    changes = [
        result.value
        for one in metadata.batches()
        for record in one
        if (result := open_log_record("__cluster_metadata", record)) is not None
        and isinstance(result.value, PartitionChangeRecord)
    ]
    assert [change.leader for change in changes] == [1, 1, 1]
    metadata.close()


def test_an_append_that_the_system_refuses_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    from coordwire.broker.log.validation import RefusedRecords
    from coordwire.enums import ErrorCode

    folder = tmp_path / "orders-0"
    log = create_log(folder, UUID(int=5), SegmentRules())
    append(log, batch(b"first"))
    size = (folder / log_name(0)).stat().st_size
    real = os.pwrite

    def half(descriptor: int, data: bytes, at: int) -> int:
        real(descriptor, data[: len(data) // 2], at)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", half)
    with pytest.raises(RefusedRecords) as error_info:
        append(log, batch(b"second"))
    assert error_info.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    monkeypatch.undo()
    assert (folder / log_name(0)).stat().st_size == size
    assert append(log, batch(b"third")) == 1
    log.close()
    verified(folder)


def test_a_storage_never_takes_over_a_file(tmp_path: Path) -> None:
    (tmp_path / log_name(0)).write_bytes(b"somebody's")
    with pytest.raises(FileExistsError):
        DiskStorage(tmp_path, SMALL)
    assert (tmp_path / log_name(0)).read_bytes() == b"somebody's"


# --- folders that were damaged while no broker had them ---


def left_by_a_broker(path: Path, end: Callable[[ClusterState], None] = killed) -> None:
    cluster = opened(path)
    append(cluster.create_topic("orders", 1).partitions[0].log, batch(b"v"))
    end(cluster)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    path.symlink_to(path.parent / "elsewhere")


@pytest.mark.parametrize("make", [pipe, link, Path.mkdir])
@pytest.mark.parametrize(
    "name",
    [
        "meta.properties", ".lock", "meta.properties.tmp", "log-start-offset-checkpoint",
        "orders-0/00000000000000000000.log", "orders-0/00000000000000000000.index",
        "orders-0/00000000000000000001.snapshot", "orders-0/leader-epoch-checkpoint",
        "orders-0/leader-epoch-checkpoint.tmp", "__cluster_metadata-0/partition.metadata",
    ],
)  # fmt: skip
def test_a_file_of_a_broker_is_a_file(tmp_path: Path, name: str, make: Callable[[Path], None]) -> None:
    data = tmp_path / "data"
    left_by_a_broker(data)
    (data / name).unlink(missing_ok=True)
    make(data / name)
    with pytest.raises(DataFolderError, match=f"{name} is not a regular file"):
        opened(data)


def test_metadata_in_another_folder_are_not_written(tmp_path: Path) -> None:
    data = tmp_path / "data"
    left_by_a_broker(data)
    (data / "__cluster_metadata-0").rename(tmp_path / "moved")
    (data / "__cluster_metadata-0").symlink_to(tmp_path / "moved")
    with pytest.raises(DataFolderError, match="__cluster_metadata-0 is not a folder"):
        opened(data)


def test_an_index_without_its_log_is_refused(tmp_path: Path) -> None:
    left_by_a_broker(tmp_path, closed)
    path = tmp_path / "orders-0" / log_name(0)
    path.unlink()
    for _ in range(2):
        with pytest.raises(DataFolderError, match=r"0\.index is the index of a log that is not there"):
            opened(tmp_path)
    assert not path.exists()


def test_a_segment_that_cannot_be_begun_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / log_name(0, "timeindex")).touch()
    for _ in range(2):
        with pytest.raises(FileExistsError, match="timeindex"):
            DiskStorage(tmp_path, SMALL)
    assert [path.name for path in tmp_path.iterdir()] == [log_name(0, "timeindex")]


def test_an_empty_segment_says_where_a_log_goes_on(tmp_path: Path) -> None:
    left_by_a_broker(tmp_path)
    (tmp_path / "orders-0" / log_name(4000)).touch()
    for end in (4000, 4001):
        cluster = opened(tmp_path)
        log = cluster.topics["orders"].partitions[0].log
        assert append(log, batch(b"v")) == end
        killed(cluster)


def test_a_partition_far_from_the_others_makes_no_folders(tmp_path: Path) -> None:
    left_by_a_broker(tmp_path)
    (tmp_path / "orders-2000000000").mkdir()
    with pytest.raises(DataFolderError, match="orders-2000000000 is there, and 1999999999 partitions"):
        opened(tmp_path)
    assert len(list(tmp_path.glob("orders-*"))) == 2


def test_an_offset_beyond_the_segments_is_damage(tmp_path: Path) -> None:
    """A batch's checksum does not cover its base offset."""
    left_by_a_broker(tmp_path, closed)
    path = tmp_path / "orders-0" / log_name(0)
    damaged = b"\x20" + path.read_bytes()[1:]
    path.write_bytes(damaged)
    with pytest.raises(DataFolderError, match="offset 2305843009213693952 in the segment of offset 0"):
        opened(tmp_path)
    assert path.read_bytes() == damaged


def test_a_damaged_leader_epoch_has_one_record(tmp_path: Path) -> None:
    """A batch's checksum does not cover its leader epoch."""
    left_by_a_broker(tmp_path)
    path = tmp_path / "orders-0" / log_name(0)
    content = bytearray(path.read_bytes())
    content[12:16] = (1 << 20).to_bytes(4, "big")
    path.write_bytes(content)
    sizes = []
    for _ in range(2):
        cluster = opened(tmp_path)
        assert cluster.topics["orders"].partitions[0].leader_epoch == 1 << 20
        killed(cluster)
        sizes.append((tmp_path / "__cluster_metadata-0" / log_name(0)).stat().st_size)
    assert sizes[0] == sizes[1] < 2_000
