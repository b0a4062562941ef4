"""A log from the files of its folder: what a broker does at its start.

Strategy: all batches are walked and their checksums compared, as in Kafka's recovery after an end without
order; so the tables in memory come from the log alone. The indexes of the last segment are written again, as
Kafka's own recovery would; those of the others stay. What a process that was killed left unfinished at the
very end, and no producer has an answer for, is cut off.

A machine that lost its power may leave damage before sound batches, and files without their names, in what
was not synced (`Unsynced` says how much that may be). Then the log ends before the damage, as Kafka's does;
what follows is set aside under names in `.deleted`, and a warning says so. Rules: any other log with damage
before sound batches is not touched: `DataFolderError` says where, and `coordwire segment recover` makes a
clean copy. Nothing is removed.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from uuid import UUID

from coordwire.broker.log.data_folder import DataFolderError, check_partition, remove_partition, write_file
from coordwire.broker.log.disk import DiskStorage, OpenSegment
from coordwire.broker.log.leader_epochs import LeaderEpochs
from coordwire.broker.log.partition_log import LoadedLog, PartitionLog
from coordwire.broker.log.producer_states import ProducerStates
from coordwire.broker.log.retention import FURTHEST, SegmentRules
from coordwire.broker.log.storage import BatchPlace, BatchTable
from coordwire.codec.primitives import uuid_text
from coordwire.errors import DecodeError
from coordwire.records import RecordBatch, batches
from coordwire.segments import AbortedTransaction, Segment
from coordwire.segments.indexes import OffsetIndex, OffsetPosition, TimeIndex, TimestampOffset
from coordwire.segments.names import file_name, log_name
from coordwire.segments.segment import producers_before
from coordwire.segments.state_files import EPOCHS, METADATA, read_leader_epochs, read_metadata

_LOGGER = logging.getLogger("coordwire.broker")


@dataclass(frozen=True, slots=True)
class Unsynced:
    """What may not have been on the disk when the machine lost its power: of the records from an offset on
    fewer than `most`, and names of files if that is more than one."""

    start: int = 0
    most: int = 1

    def may_lack(self, first: int, end: int) -> bool:
        """Whether the records between two offsets may have been lost."""
        return first >= self.start and 0 < end - first < self.most


def create_log(folder: Path, topic_id: UUID, rules: SegmentRules, epoch: int = 0) -> PartitionLog:
    """A new log in a new folder. Raises `OSError`, also where the folder is there; one that was made then is
    removed, since a start takes any partition's folder for a topic."""
    folder.mkdir()
    try:
        write_topic_id(folder, topic_id)
        log = PartitionLog(storage=DiskStorage(folder, rules), epoch=epoch)
        write_file(folder, EPOCHS, log.epochs.encoded())
    except OSError:
        with suppress(OSError):
            remove_partition(folder)
        raise
    return log


def write_topic_id(folder: Path, topic_id: UUID) -> None:
    """Say which topic a folder is of. Raises `OSError`."""
    write_file(folder, METADATA, f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode())


def read_topic_id(folder: Path) -> UUID | None:
    """The topic's id, None where the folder does not say. Raises `DataFolderError`."""
    try:
        return read_metadata((folder / METADATA).read_bytes()).topic_id
    except FileNotFoundError:
        return None
    except DecodeError as error:
        raise DataFolderError(f"{folder / METADATA}: {error}") from None


def load_log(
    folder: Path,
    rules: SegmentRules,
    start_offset: int = 0,
    epoch: int = 0,
    unsynced: Unsynced | None = None,
) -> PartitionLog:
    """The log in a folder. start_offset: where it begins, by the checkpoint; epoch: its leader's, as the
    metadata say; unsynced: what a loss of power may have taken, None after an end in order.

    Raises `OSError`, `DataFolderError`.
    """
    check_partition(folder)
    bases = sorted(
        name.offset
        for path in folder.iterdir()
        if (name := file_name(path.name)) is not None
        and name.kind == "log"
        and name.offset is not None
        and path.name == log_name(name.offset)
    )
    _check_indexes(folder, bases, unsynced)
    loading = _Loading(folder, rules, unsynced or Unsynced())
    try:
        for base in bases:
            if not loading.add(base, bases[-1]):
                _set_aside_segments(folder, [following for following in bases if following > base])
                bases = [segment.base_offset for segment in loading.segments]
                break
        epochs = _epochs(folder, loading)
    except BaseException:
        for segment in loading.segments:
            os.close(segment.descriptor)
        raise
    first = bases[0] if bases else 0
    storage = DiskStorage(folder, rules, loading.segments)
    loaded = LoadedLog(
        loading.table,
        epochs,
        loading.producers or ProducerStates(),
        loading.aborted,
        first,
        max(loading.end_offset, bases[-1] if bases else 0),  # the last segment may be empty
    )
    log = PartitionLog(storage=storage, loaded=loaded, epoch=epoch)
    if log.epochs.encoded() != _checkpoint(folder):  # it may have epochs that wrote nothing, or lack some
        try:
            storage.epochs_changed(log.epochs.encoded())
        except OSError:
            log.let_go()
            raise
    if first < start_offset <= log.end_offset:
        log.delete_before(start_offset)
    return log


def _check_indexes(folder: Path, bases: list[int], unsynced: Unsynced | None) -> None:
    """Refuse an index without its log: the segment is lost, and another could not have its name.

    After a loss of power it is set aside, where the log may have lost its name, or the index was to go.
    """
    known = set(bases)
    for path in sorted(folder.iterdir()):
        name = file_name(path.name)
        if name is None or name.offset is None or name.kind not in ("index", "timeindex", "txnindex"):
            continue
        if name.offset not in known and path.name == log_name(name.offset, name.kind):
            if unsynced is not None:
                _set_aside(path)
                continue
            raise DataFolderError(
                f"{path} is the index of a log that is not there; remove it to go on without"
            )


def _set_aside_segments(folder: Path, bases: list[int]) -> None:
    """Give the files of these segments other names. Raises `OSError`."""
    for path in sorted(folder.iterdir()):
        name = file_name(path.name)
        if name is not None and name.offset in bases and path.name == log_name(name.offset, name.kind):
            _set_aside(path)


def _set_aside(path: Path) -> None:
    """Give a file the name of one that Kafka no longer needs. Raises `OSError`."""
    target = _aside(path)
    os.rename(path, target)
    _LOGGER.warning("%s was left by a loss of power: it is now %s", path, target.name)


def _aside(path: Path) -> Path:
    """A name for what is set aside of a file; other losses may have taken some."""
    names = (path.with_name(f"{path.name}.{number}.deleted") for number in count(1))
    return next(target for target in names if not os.path.lexists(target))


def _checkpoint(folder: Path) -> bytes:
    """The file of the leader epochs; nothing if there is none. Raises `OSError`."""
    try:
        return (folder / EPOCHS).read_bytes()
    except FileNotFoundError:
        return b""


def _epochs(folder: Path, loading: _Loading) -> LeaderEpochs:
    """Those of the checkpoint, as far as the log has them, and those that only the log has."""
    try:
        entries = read_leader_epochs(_checkpoint(folder))
    except DecodeError:
        entries = []
    epochs = LeaderEpochs(entry for entry in entries if entry.start_offset < loading.end_offset)
    for number in range(len(loading.table)):
        place = loading.table[number]
        epochs.assign(place.epoch, place.base_offset)
    return epochs


class _Loading:
    """What the segments say, one after the other."""

    def __init__(self, folder: Path, rules: SegmentRules, unsynced: Unsynced) -> None:
        self.folder = folder
        self.rules = rules
        self.unsynced = unsynced
        self.table = BatchTable()
        self.segments: list[OpenSegment] = []
        self.producers: ProducerStates | None = None
        self.aborted: list[AbortedTransaction] = []
        self.end_offset = -1

    def add(self, base: int, last: int) -> bool:
        """Load a segment. last: the base offset of the last one; gives whether the log goes on after it."""
        path = self.folder / log_name(base)
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        opened = OpenSegment(base, descriptor, latest_offset=base)
        self.segments.append(opened)
        offsets: list[OffsetPosition] = []
        times: list[TimestampOffset] = []
        first_aborted = len(self.aborted)
        with Segment(path) as segment:
            if self.producers is None:
                self.producers = ProducerStates(producers_before(segment))
            reader = segment.batches()
            try:
                for batch in reader:
                    self._take(opened, batch, offsets, times)
                reason = "the file ends within a batch" if len(reader.remainder) else ""
            except DecodeError as error:
                reason = error.reason
            is_whole = opened.size == segment.size
            if not is_whole:
                self._judge_rest(path, segment.data, opened, reason, last)
                os.ftruncate(descriptor, opened.size)
                os.fsync(descriptor)  # or it could come back before the next segment
        if base == last or not is_whole:
            self._write_indexes(opened, offsets, times, self.aborted[first_aborted:])
        return is_whole

    def _take(
        self,
        opened: OpenSegment,
        batch: RecordBatch,
        offsets: list[OffsetPosition],
        times: list[TimestampOffset],
    ) -> None:
        batch.check()
        offset = batch.last_offset
        if offset < max(self.end_offset, opened.base_offset):
            raise DecodeError(f"offset {offset} after offset {self.end_offset - 1}", batch.position)
        if offset - opened.base_offset > FURTHEST:
            raise DecodeError(
                f"offset {offset} in the segment of offset {opened.base_offset}", batch.position
            )
        if batch.magic != 2:
            raise DataFolderError(
                f"{self.folder / log_name(opened.base_offset)} has batches of magic {batch.magic},"
                " which a broker no longer reads"
            )
        place = BatchPlace(
            batch.base_offset, offset, batch.size, batch.max_timestamp, batch.partition_leader_epoch
        )
        if not opened.positions:
            opened.first = place.max_timestamp
        if place.max_timestamp > opened.latest:
            opened.latest, opened.latest_offset = place.max_timestamp, offset
        if opened.unindexed > self.rules.index_interval:
            offsets.append(OffsetPosition(offset, batch.position))
            if opened.latest > opened.stamped:
                times.append(TimestampOffset(opened.latest, opened.latest_offset))
                opened.stamped = opened.latest
            opened.unindexed = 0
        opened.unindexed += batch.size
        opened.positions.append(batch.position)
        opened.size += batch.size
        self.table.add(place)
        assert self.producers is not None
        aborted = self.producers.add(batch)
        if aborted is not None:
            self.aborted.append(aborted)
        self.end_offset = offset + 1

    def _judge_rest(self, path: Path, data: memoryview, opened: OpenSegment, reason: str, last: int) -> None:
        """Whether what follows the sound batches may be cut off; it is saved if it is of use. Raises
        `DataFolderError`, `OSError`."""
        at, first = opened.size, max(self.end_offset, opened.base_offset)
        whole_at, end = None, last
        for batch in batches(data[at:], on_error="skip", check_records=False):
            whole_at = batch.position if whole_at is None else whole_at
            # It may have been on its way; its base offset, which no checksum covers, may be lost.
            end = max(end, batch.base_offset, first + 1)
        if last == opened.base_offset and whole_at is None:
            return
        if not self.unsynced.may_lack(first, end):
            hint = "" if whole_at is None else f", with a sound batch at byte {at + whole_at}"
            raise DataFolderError(
                f"{path} is damaged at byte {at} ({reason}){hint}; `coordwire segment recover` saves what is"
                " whole into another folder"
            )
        target = _aside(self.folder / log_name(first))
        write_file(self.folder, target.name, bytes(data[at:]), synced=True)
        _LOGGER.warning(
            "%s is damaged at byte %d (%s), by a loss of power: the log ends there, at offset %d; the"
            " %d bytes that followed are in %s", path, at, reason, first, len(data) - at, target.name,
        )  # fmt: skip

    def _write_indexes(
        self,
        opened: OpenSegment,
        offsets: list[OffsetPosition],
        times: list[TimestampOffset],
        aborted: list[AbortedTransaction],
    ) -> None:
        """Write those of the last segment again."""
        from coordwire.segments import TransactionIndex

        base = opened.base_offset
        write_file(self.folder, log_name(base, "index"), OffsetIndex.pack(offsets, base))
        write_file(self.folder, log_name(base, "timeindex"), TimeIndex.pack(times, base))
        if aborted:
            write_file(self.folder, log_name(base, "txnindex"), TransactionIndex.pack(aborted))
