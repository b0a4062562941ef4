"""What a share partition asks for and answers: state to write, outcomes of acknowledgements; its settings;
the batches of aborted transactions, which a group that reads committed records is not given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from coordwire._dataclasses import dataclass
from coordwire.coordinator.share_state.model import StateBatch
from coordwire.enums import ErrorCode


class AcquiredRecords(NamedTuple):
    """A run of records that a member has acquired. delivery_count: this delivery included."""

    first_offset: int
    last_offset: int
    delivery_count: int


class AcknowledgementBatch(NamedTuple):
    """What a member did with a run of records.

    types: one for all offsets, or one for each: 0 gap, 1 accept, 2 release, 3 reject, 4 renew.
    """

    first_offset: int
    last_offset: int
    types: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePartitionConfig:
    """The settings of a share group's partitions, with Apache Kafka's defaults.

    lock_duration_ms: how long a member has a record (share.record.lock.duration.ms). delivery_count_limit:
    deliveries of a record before it is archived. max_record_locks: records in flight in one partition.
    renews: whether members may renew their locks (KIP-1222). has_dead_letters: whether records that are
    rejected, or delivered too often, are written to another topic before they are archived (KIP-1191).
    resumes_archiving: whether those that the loaded state has as being archived are, as since Kafka 4.4.
    """

    lock_duration_ms: int = 30_000
    delivery_count_limit: int = 5
    max_record_locks: int = 2_000
    renews: bool = True
    has_dead_letters: bool = False
    resumes_archiving: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StateWrite:
    """State to write: confirm it with `SharePartition.written`.

    delivery_complete_count: the records from the start offset on that are acknowledged or archived.
    """

    number: int
    state_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgementOutcome:
    """The outcome of an acknowledgement or a release, by the ticket that it has. error_code: 0 for
    success."""

    ticket: int
    error_code: int
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """Records to write to the group's dead letter queue (KIP-1191): confirm with `SharePartition.archived`,
    whether that could be done or not.

    is_rejected: by a member; else they were delivered too often.
    """

    number: int
    first_offset: int
    last_offset: int
    delivery_count: int
    is_rejected: bool


ShareEffect: TypeAlias = StateWrite | AcknowledgementOutcome | DeadLetters


_NOT_AVAILABLE, _NOT_LEADER = ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER
_TRANSLATED = {
    0: 0,
    ErrorCode.NOT_COORDINATOR: _NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: _NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: _NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: _NOT_LEADER,
    ErrorCode.FENCED_STATE_EPOCH: _NOT_LEADER,
}


def translated_error(code: int) -> int:
    """The error for a client after the share coordinator answered with this one."""
    return int(_TRANSLATED.get(code, ErrorCode.UNKNOWN_SERVER_ERROR))


# --- aborted ---


FetchedBatch = tuple[int, int, int, bool, bool]
"""The first and the last offset of a batch, its producer (-1 for none), whether it is transactional, and
whether it is an abort marker."""


def aborted_ranges(
    batches: Iterable[FetchedBatch], aborted: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The first and the last offsets of the batches that belong to aborted transactions.

    aborted: first offset and producer of each aborted transaction that the batches may be part of.
    """
    waiting = sorted(aborted, reverse=True)
    producers: set[int] = set()
    ranges = []
    for first, last, producer, is_transactional, ends in batches:
        if producer < 0:
            continue
        while waiting and waiting[-1][0] <= last:
            producers.add(waiting.pop()[1])
        if ends:
            producers.discard(producer)
        elif is_transactional and producer in producers:
            ranges.append((first, last))
    return ranges
