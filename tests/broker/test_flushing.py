"""What a machine that crashes loses of logs on disk: fewer than M records, and none older than S seconds.

A crash is a copy of the data folder as the disk may have it then: of each file the bytes that were there at
its last `fsync`, of each folder the names of that time; a block that was written late has other bytes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire.broker.cluster.cluster_state import ClusterState
from coordwire.broker.cluster.disk_logs import DiskLogs, open_cluster
from coordwire.broker.log.partition_log import PartitionLog
from coordwire.broker.log.validation import AppendRules, RefusedRecords, one_batch
from coordwire.broker.settings.broker_config import BrokerConfig
from tests.broker.core import batch

NOW = 1_700_000_000_000
CONFIG = BrokerConfig(offsets_partitions=2)


class Machine:
    """A cluster on one, with a clock and the disk's state."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, **topic: str) -> None:
        self.folder = folder
        self.now = NOW
        self.synced: dict[int, int] = {}
        """The bytes of each file, by its inode, at its last fsync."""
        self.names: set[Path] = set()

        def fsync(descriptor: int) -> None:
            self.synced[os.fstat(descriptor).st_ino] = os.fstat(descriptor).st_size
            for parent in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
                if parent.stat().st_ino == os.fstat(descriptor).st_ino:
                    self.names |= set(parent.iterdir())

        monkeypatch.setattr(os, "fsync", fsync)
        self.cluster = self.opened(folder)
        self.topic = self.cluster.create_topic("orders", 1, settings=topic)

    def opened(self, folder: Path) -> ClusterState:
        return open_cluster(folder, clock=lambda: self.now, config=CONFIG, nodes=(1,))

    @property
    def log(self) -> PartitionLog:
        return self.topic.partitions[0].log

    def append(self, *values: bytes) -> None:
        self.log.append(one_batch(batch(*values), 13), AppendRules(), self.now)

    def wait(self, ms: int) -> None:
        self.now += ms
        self.cluster.advance()

    def crash(self, into: Path, late: Callable[[bytes], bytes] = lambda lost: b"") -> PartitionLog:
        """The log as it is after a crash. late: what a file has in place of the bytes that it lost."""
        assert isinstance(self.cluster.logs, DiskLogs)
        self.cluster.logs.abandon()
        into.mkdir()
        for path in sorted(self.folder.rglob("*")):
            copy = into / path.relative_to(self.folder)
            if path.is_dir():
                copy.mkdir(parents=True)
            elif path.suffix == ".log" and "orders" in str(path):
                if path in self.names:
                    size = self.synced.get(path.stat().st_ino, 0)
                    data = path.read_bytes()
                    copy.write_bytes(data[:size] + late(data[size:]))
            elif path.suffix not in (".index", ".timeindex") or path.with_suffix(".log") in self.names:
                shutil.copy(path, copy)
        return self.opened(into).topics["orders"].partitions[0].log


def some_late(lost: bytes, random: Random) -> bytes:
    """Nothing, other bytes, or a part and zeros."""
    end = random.randint(0, len(lost))
    return random.choice([b"", random.randbytes(end), lost[:end] + bytes(len(lost) - end)])


def test_a_block_that_was_not_written_is_found_by_its_checksum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has the size of a batch whose end is zeros."""
    machine = Machine(tmp_path / "data", monkeypatch, **{"flush.messages": "1"})
    machine.append(b"kept")
    machine.topic.flush_messages = 9
    machine.append(b"lost" * 9)
    log = machine.crash(tmp_path / "copy", lambda lost: lost[:-8] + bytes(8))
    assert [record.value for one in log.batches() for record in one] == [b"kept"]


@settings(max_examples=20, deadline=None)
@given(
    most=st.integers(1, 6), sizes=st.lists(st.integers(1, 4), min_size=1, max_size=25), seed=st.integers(0, 9)
)
def test_a_crash_loses_fewer_records_than_flush_messages(
    tmp_path_factory: pytest.TempPathFactory, most: int, sizes: list[int], seed: int
) -> None:
    folder = tmp_path_factory.mktemp("crash")
    with pytest.MonkeyPatch.context() as patch:
        machine = Machine(folder / "data", patch, **{"flush.messages": str(most), "segment.bytes": "1048576"})
        for size in sizes:
            machine.append(*(b"v%d" % number for number in range(size)))
        end = machine.log.end_offset
        log = machine.crash(folder / "copy", partial(some_late, random=Random(seed)))
    assert end - most < log.end_offset <= end
    offsets = [record.offset for one in log.batches() for record in one]
    assert offsets == list(range(log.end_offset))


def test_a_crash_loses_nothing_that_is_older_than_flush_ms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path / "data", monkeypatch, **{"flush.ms": "1000"})
    for number in range(10):
        machine.append(b"%d" % number)
        machine.wait(300)
    assert machine.crash(tmp_path / "copy").end_offset in range(10 - 4, 10)


def test_a_flush_in_time_is_of_all_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several were filled since the one before."""
    machine = Machine(tmp_path / "data", monkeypatch, **{"flush.ms": "1000", "segment.bytes": str(1 << 20)})
    for number in range(7):
        machine.append(bytes([number]) * 400_000)
    assert len(list((tmp_path / "data" / "orders-0").glob("*.log"))) > 2
    machine.wait(1000)
    log = machine.crash(tmp_path / "copy")
    assert [record.offset for one in log.batches() for record in one] == list(range(7))


def test_appends_do_not_put_a_flush_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path / "data", monkeypatch, **{"flush.ms": "1000"})
    for number in range(3):
        machine.append(b"%d" % number)
        machine.wait(400)
    assert machine.log.synced_offset == 3


def test_a_tail_without_appends_is_flushed_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path / "data", monkeypatch, **{"flush.ms": "1000"})
    machine.append(b"1")
    machine.wait(999)
    assert machine.log.synced_offset == 0
    machine.wait(1)
    assert machine.log.synced_offset == 1
    assert machine.crash(tmp_path / "copy").end_offset == 1


def test_segments_that_are_full_are_flushed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each segment before the last must be whole, or the log is refused."""
    machine = Machine(
        tmp_path / "data", monkeypatch, **{"flush.messages": "7", "segment.bytes": str(1 << 20)}
    )
    for number in range(12):
        machine.append(bytes([number]) * 400_000)
    assert len(list((tmp_path / "data" / "orders-0").glob("*.log"))) > 4
    log = machine.crash(tmp_path / "copy")
    assert [record.offset for one in log.batches() for record in one] == list(range(7))


def test_without_a_bound_nothing_is_forced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path / "data", monkeypatch)
    machine.append(b"1")
    machine.wait(10_000_000)
    (log,) = (tmp_path / "data" / "orders-0").glob("*.log")
    assert (log.stat().st_ino in machine.synced, machine.log.synced_offset) == (False, 0)


def test_settings_that_change_apply_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path / "data", monkeypatch)
    for number in range(3):
        machine.append(b"%d" % number)
    for own, synced in (({"flush.messages": "4"}, 0), ({"flush.messages": "3"}, 3)):
        machine.topic.settings.own = own
        machine.topic.apply_settings()
        machine.cluster.logs.topic_changed(machine.topic)
        assert machine.log.synced_offset == synced


def test_a_disk_that_refuses_to_flush_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path / "data", monkeypatch, **{"flush.messages": "1"})

    def refuse(descriptor: int) -> None:
        raise OSError(5, "I/O error")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(RefusedRecords, match="I/O error"):
        machine.append(b"1")
    assert not machine.cluster.is_online(1)
