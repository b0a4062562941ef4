"""A broker's folder after a loss of power; `python -m tests.broker.power_loss 10000` has more of them."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from coordwire.broker.log.data_folder import DataFolder, DataFolderError
from coordwire.broker.log.disk_loading import Unsynced, create_log, load_log
from coordwire.broker.log.partition_log import PartitionLog
from coordwire.broker.log.retention import SegmentRules
from coordwire.broker.log.validation import AppendRules, one_batch
from coordwire.segments.names import log_name
from tests.broker import power_loss
from tests.broker.core import batch
from tests.losing_disk import LosingDisk, torn

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the losing disk is Linux's only")
NOW = 1_700_000_000_000
SMALL = SegmentRules(segment_bytes=100)


def test_what_was_flushed_outlives_a_loss_of_power() -> None:
    done, wrong = power_loss.run(120, 1)
    assert wrong == []
    assert done >= 120


@pytest.mark.parametrize("seed", [4, 9])
def test_a_truncated_log_is_written_to_again(seed: int) -> None:
    """What is written after a truncation is not on the disk, whatever was there at the last end in order."""
    assert power_loss.run(60, seed)[1] == []


@pytest.mark.slow
def test_what_was_flushed_outlives_many_losses_of_power() -> None:
    assert power_loss.run(1_500, 1_000)[1] == []


def test_a_lost_sync_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge sees a log that is not forced to the disk."""
    monkeypatch.setattr(PartitionLog, "sync", lambda log: setattr(log, "synced_offset", log.end_offset))
    assert power_loss.run(120, 1)[1]


# --- the disk ---


def test_a_loss_has_what_was_synced_and_any_part_of_the_rest(tmp_path: Path) -> None:
    disk = LosingDisk(tmp_path, lambda: None, Random(1), rate=0)
    with disk.recording():
        descriptor = os.open(tmp_path / "a", os.O_CREAT | os.O_WRONLY)
        os.write(descriptor, b"first")
        os.fsync(descriptor)
        folder = os.open(tmp_path, os.O_RDONLY)
        os.fsync(folder)
        os.write(descriptor, b"second")
        os.rename(tmp_path / "a", tmp_path / "b")
        for _ in range(200):
            disk.fail("here", always=True)
    os.close(descriptor)
    os.close(folder)
    assert {tuple(loss.tree) for loss in disk.losses} == {("a",), ("b",)}
    contents = {content for loss in disk.losses for content in loss.tree.values() if content is not None}
    assert all(content.startswith(b"first") for content in contents)
    assert {b"first", b"firstsecond"} < contents
    assert any(content.endswith(b"\0") for content in contents)


def test_a_file_that_was_cut_has_one_of_two_sizes() -> None:
    assert {torn(Random(seed), b"abcd", b"ab") for seed in range(50)} == {b"abcd", b"ab"}


# --- one by one ---


def log_of(folder: Path, count: int, rules: SegmentRules = SMALL) -> PartitionLog:
    log = create_log(folder, UUID(int=5), rules)
    for number in range(count):
        log.append(one_batch(batch(b"value %d" % number), 13), AppendRules(), NOW)
    return log


def values(log: PartitionLog) -> list[bytes | None]:
    return [record.value for one in log.batches() for record in one]


def test_a_sync_reaches_what_is_before_a_segment_that_was_just_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(tmp_path / "orders-0", 1)
    log._storage.roll(log.end_offset, [])
    forced: list[int] = []
    inode = (tmp_path / "orders-0" / log_name(0)).stat().st_ino
    monkeypatch.setattr(os, "fsync", lambda descriptor: forced.append(os.fstat(descriptor).st_ino))
    log.sync()
    assert inode in forced
    log.let_go()


def test_what_follows_damage_is_set_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "orders-0"
    log_of(folder, 6).let_go()
    path = folder / log_name(1)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    for unsynced in (None, Unsynced(), Unsynced(2, 1 << 62), Unsynced(0, 4)):
        with pytest.raises(DataFolderError, match="is damaged at byte 0"):
            load_log(folder, SMALL, unsynced=unsynced)
    caplog.set_level(logging.WARNING)
    log = load_log(folder, SMALL, unsynced=Unsynced(0, 5))
    assert values(log) == [b"value 0"]
    assert (folder / f"{path.name}.1.deleted").read_bytes() == data
    assert {f"{log_name(base)}.1.deleted" for base in range(1, 6)} <= set(os.listdir(folder))
    assert "by a loss of power: the log ends there" in caplog.text
    log.append(one_batch(batch(b"after"), 13), AppendRules(), NOW)
    log.let_go()
    assert values(load_log(folder, SMALL))[-1] == b"after"


def test_an_index_whose_log_lost_its_name_is_set_aside(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    log_of(folder, 2, SegmentRules()).let_go()
    (folder / log_name(0)).unlink()
    for number in (1, 2):
        log = load_log(folder, SMALL, unsynced=Unsynced())
        assert log.end_offset == 0
        log.let_go()
        assert (folder / f"{log_name(0, 'index')}.{number}.deleted").exists()
        (folder / log_name(0)).unlink()


def test_a_folder_whose_identity_was_not_yet_named_is_a_new_one(tmp_path: Path) -> None:
    """A broker was killed between two calls."""
    (tmp_path / "meta.properties.tmp").write_text("version=1")
    folder = DataFolder(tmp_path, cluster_id="c", node_id=1)
    assert folder.cluster_id == "c"
    folder.close({})


def test_what_follows_a_whole_segment_is_no_loss_of_power(tmp_path: Path) -> None:
    """It was whole when the next was begun: nothing is missing that would explain what follows."""
    folder = tmp_path / "orders-0"
    log_of(folder, 3).let_go()
    with (folder / log_name(1)).open("ab") as file:
        file.write(bytes(70))
    with pytest.raises(DataFolderError, match="zero bytes to the end"):
        load_log(folder, SMALL, unsynced=Unsynced(0, 1 << 62))
