"""What may have become of a log before another coordinator loads it.

    compacted    Kafka's cleaner: the last record of a key, tombstones kept or gone, aborted transactions gone
    cut          the end is lost, in the middle of a transaction or of an operation
    newer        record types that no release has yet
    older        values in the versions of older releases
    ahead        targets with partitions that the image of the topics does not have yet
    unreadable   a value of a version that no release has yet

Rules: a change depends on the random numbers given and the log only. The cleaner leaves what follows the
first open transaction as it is.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from coordwire.codec import Message
from coordwire.coordinator.log_entries import TransactionMarker
from coordwire.errors import EncodeError
from coordwire.logs import decode_log_record
from coordwire.messages import (
    ConsumerGroupTargetAssignmentMemberValue,
    GroupMetadataValue,
    LegacyOffsetCommitValue,
    OffsetCommitValue,
)
from tests.coordinator.histories import Record, entry_text

Log = tuple[int, list[tuple[int, Record]]]
"""The end offset, and the records with their offsets."""

_COMMIT = TransactionMarker(True).encoded()[0]
_LEGACY, _OFFSET = b"\x00\x00", b"\x00\x01"


def _unchanged(chance: random.Random, log: Log) -> Log:
    return log


def _transactions(log: Log) -> tuple[dict[int, bool], int]:
    """Which transactional records were committed, by offset, and where the first open transaction begins."""
    end, records = log
    opened: dict[int, list[int]] = {}
    committed: dict[int, bool] = {}
    for offset, record in records:
        if record.marker:
            is_commit = record.key == _COMMIT
            committed.update(dict.fromkeys(opened.pop(record.producer_id, []), is_commit))
        elif record.producer_id != -1:
            opened.setdefault(record.producer_id, []).append(offset)
    return committed, min((offsets[0] for offsets in opened.values()), default=end)


def _compacted(chance: random.Random, log: Log) -> Log:
    end, records = log
    committed, stable = _transactions(log)
    clean = chance.choice([stable, chance.randint(0, stable)])
    last = {
        record.key: offset
        for offset, record in records
        if offset < clean and not record.marker and committed.get(offset, True)
    }
    tombstones = chance.random() < 0.5
    remaining = []
    for offset, record in records:
        if (
            offset >= clean
            or record.marker
            or (
                committed.get(offset, True)
                and last[record.key] == offset
                and (tombstones or record.value is not None)
            )
        ):
            remaining.append((offset, record))
    if not tombstones:  # so long after, markers are gone whose transactions have nothing left
        producers = {record.producer_id for _, record in remaining if not record.marker}
        remaining = [
            (offset, record)
            for offset, record in remaining
            if offset >= clean or not record.marker or record.producer_id in producers
        ]
    return end, remaining


def _cut(chance: random.Random, log: Log) -> Log:
    end, records = log
    end = chance.randint(0, end)
    return end, [(offset, record) for offset, record in records if offset < end]


def _newer(chance: random.Random, log: Log) -> Log:
    end, records = log
    unknown = Record(
        struct.pack(">h", chance.choice([99, 1_000])) + b"\x07new", chance.choice([b"\x00\x09?", None])
    )
    return _inserted(chance, (end, records), unknown)


def _unreadable(chance: random.Random, log: Log) -> Log:
    readable = [(offset, record) for offset, record in log[1] if record.value and not record.marker]
    if not readable:
        return log
    _, record = chance.choice(readable)
    assert record.value is not None
    return _inserted(chance, log, record._replace(value=struct.pack(">h", 77) + record.value[2:]))


def _inserted(chance: random.Random, log: Log, record: Record) -> Log:
    """One more record somewhere, after which the others have moved on."""
    end, records = log
    at = chance.randint(0, end)
    before = [(offset, entry) for offset, entry in records if offset < at]
    after = [(offset + 1, entry) for offset, entry in records if offset >= at]
    return end + 1, [*before, (at, record), *after]


def _older(chance: random.Random, log: Log) -> Log:
    end, records = log
    return end, [(offset, _aged(chance, record)) for offset, record in records]


def _aged(chance: random.Random, record: Record) -> Record:
    """A record as an older release would have written it, if one would have."""
    if record.marker or record.value is None or chance.random() < 0.3:
        return record
    value = decode_log_record("consumer_offsets", record.key, record.value).value
    if isinstance(value, OffsetCommitValue):
        if chance.random() < 0.3:
            old = LegacyOffsetCommitValue(
                offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
            )
            return record._replace(key=_LEGACY + record.key[2:], value=_encoded(old, 0) or record.value)
        version = chance.choice([0, 1, 2, 3])
    elif isinstance(value, GroupMetadataValue):
        version = chance.choice([0, 1, 2])
    else:
        return record
    return record._replace(value=_encoded(value, version) or record.value)


def _encoded(value: Message, version: int) -> bytes | None:
    try:
        return struct.pack(">h", version) + value.encode(version=version)
    except EncodeError:
        return None  # it says what that version can't


def _ahead(chance: random.Random, log: Log) -> Log:
    end, records = log
    return end, [(offset, _grown(chance, record)) for offset, record in records]


def _grown(chance: random.Random, record: Record) -> Record:
    """A target as of a moment at which its last topic had more partitions."""
    if record.marker or not record.value or chance.random() < 0.5:
        return record
    value = decode_log_record("consumer_offsets", record.key, record.value).value
    if not isinstance(value, ConsumerGroupTargetAssignmentMemberValue) or not value.topic_partitions:
        return record
    partitions = value.topic_partitions[-1].partitions
    partitions.append(max(partitions, default=0) + chance.randint(1, 20))
    return record._replace(value=_encoded(value, 0) or record.value)


CHANGES: dict[str, tuple[Callable[[random.Random, Log], Log], float]] = {
    "same": (_unchanged, 3),
    "compacted": (_compacted, 4),
    "cut": (_cut, 2),
    "newer": (_newer, 1),
    "older": (_older, 2),
    "ahead": (_ahead, 1),
    "unreadable": (_unreadable, 0.5),
}


def changed(chance: random.Random, log: Log) -> tuple[str, Log]:
    """A random one of the changes."""
    (name,) = chance.choices(list(CHANGES), [weight for _, weight in CHANGES.values()])
    return name, CHANGES[name][0](chance, log)


def load_step(log: Log) -> str:
    end, records = log
    return " ".join(["load", str(end), *(entry_text(offset, record) for offset, record in records)])
