"""The state of share partitions as a share coordinator keeps it, and its records; runs of records in one
state, and how newer ones take the place of older ones.

Strategy: Apache Kafka's PersisterStateBatchCombiner: the two first runs of a heap are taken out, and what
they make is put back, until none overlap. Rules: where runs overlap, the one with more deliveries counts, and
of equal ones that with the greater state; runs that follow each other in one state are one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple, TypeAlias
from uuid import UUID

from coordwire._dataclasses import dataclass
from coordwire.coordinator.hash_tables import id_hash, java_hash
from coordwire.logs import LogRecord
from coordwire.messages import ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue
from coordwire.messages.share_state_log import ShareSnapshotValueStateBatch, ShareUpdateValueStateBatch


class PartitionKey(NamedTuple):
    """A partition of a topic in a share group."""

    group_id: str
    topic_id: UUID
    partition: int

    @property
    def java_hash(self) -> int:
        """The hash by which Apache Kafka's tables order such keys, unsigned."""
        place = 31 * (31 + self.partition)
        topic = 31 * (31 + id_hash(self.topic_id)) + place
        return 31 * (31 + java_hash(self.group_id)) + topic & _INT32


_INT32 = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class PersistedState:
    """The state of a share partition.

    snapshot_epoch: raised with each snapshot. state_epoch: raised each time that the group's start is set
    again. leader_epoch: of the partition's leader. start_offset: -1 for none yet. delivery_complete_count:
    the records from there on that are done, -1 if unknown. created_at, written_at: of the snapshot, in
    milliseconds since 1970.
    """

    snapshot_epoch: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = -1
    delivery_complete_count: int = -1
    batches: tuple[StateBatch, ...] = ()
    created_at: int = 0
    written_at: int = 0

    def changed(self, change: PersistedState) -> PersistedState:
        """The state after a change, in which -1 means the start offset or leader epoch as before."""
        start_offset = self.start_offset if change.start_offset == -1 else change.start_offset
        return replace(
            self,
            start_offset=start_offset,
            delivery_complete_count=change.delivery_complete_count,
            leader_epoch=self.leader_epoch if change.leader_epoch == -1 else change.leader_epoch,
            batches=tuple(combined_batches([*self.batches, *change.batches], start_offset)),
        )


class Tracked(NamedTuple):
    """A share partition's state, and what is known besides.

    leader_epoch, state_epoch: the greatest that were recorded, None for none. updates: since the last
    snapshot that was due.
    """

    state: PersistedState
    leader_epoch: int
    state_epoch: int | None
    updates: int


_Batches: TypeAlias = list[ShareSnapshotValueStateBatch] | list[ShareUpdateValueStateBatch]


def _batches(batches: _Batches) -> list[StateBatch]:
    return [
        StateBatch(batch.first_offset, batch.last_offset, batch.delivery_count, batch.delivery_state)
        for batch in batches
    ]


def state_of_snapshot(value: ShareSnapshotValue) -> PersistedState:
    return PersistedState(
        value.snapshot_epoch, value.state_epoch, value.leader_epoch, value.start_offset,
        value.delivery_complete_count, tuple(_batches(value.state_batches)), value.create_timestamp,
        value.write_timestamp,
    )  # fmt: skip


def state_of_update(value: ShareUpdateValue) -> PersistedState:
    """The state that an update alone has, in a log that begins with it."""
    return PersistedState(
        value.snapshot_epoch, 0, value.leader_epoch, value.start_offset, value.delivery_complete_count,
        tuple(_batches(value.state_batches)),
    )  # fmt: skip


# --- records ---

_SNAPSHOT, _UPDATE = 0, 1


def snapshot_record(key: PartitionKey, state: PersistedState) -> LogRecord:
    value = ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch, state_epoch=state.state_epoch, leader_epoch=state.leader_epoch,
        start_offset=state.start_offset, delivery_complete_count=state.delivery_complete_count,
        create_timestamp=state.created_at, write_timestamp=state.written_at,
        state_batches=[
            ShareSnapshotValueStateBatch(
                first_offset=batch.first_offset, last_offset=batch.last_offset,
                delivery_count=batch.delivery_count, delivery_state=batch.delivery_state,
            )
            for batch in state.batches
        ],
    )  # fmt: skip
    return LogRecord(log="share_group_state", type=_SNAPSHOT, key=_snapshot_key(key), value=value, version=0)


def update_record(key: PartitionKey, state: PersistedState) -> LogRecord:
    """The record of a change: the batches that changed, and -1 for a start offset that did not."""
    batches = combined_batches(state.batches, state.start_offset)
    value = ShareUpdateValue(
        snapshot_epoch=state.snapshot_epoch, leader_epoch=state.leader_epoch, start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        state_batches=[
            ShareUpdateValueStateBatch(
                first_offset=batch.first_offset, last_offset=batch.last_offset,
                delivery_count=batch.delivery_count, delivery_state=batch.delivery_state,
            )
            for batch in batches
        ],
    )  # fmt: skip
    update_key = ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
    return LogRecord(log="share_group_state", type=_UPDATE, key=update_key, value=value, version=0)


def tombstone(key: PartitionKey) -> LogRecord:
    return LogRecord(log="share_group_state", type=_SNAPSHOT, key=_snapshot_key(key))


def _snapshot_key(key: PartitionKey) -> ShareSnapshotKey:
    return ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)


# --- state batches ---


_ANY_OFFSET = -1


class StateBatch(NamedTuple):
    """The state of a run of records, as `__share_group_state` keeps it; ordered as Apache Kafka orders them.

    delivery_state: 0 available, 1 acquired, 2 acknowledged, 3 being archived, 4 archived.
    """

    first_offset: int
    last_offset: int
    delivery_count: int
    delivery_state: int


def combined_batches(batches: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """Combine older batches and the newer ones after them, from the start offset on (-1 for all)."""
    retained = list(batches)
    if start_offset != _ANY_OFFSET:
        retained = [
            batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)
            for batch in retained
            if batch.last_offset >= start_offset
        ]
    if len(retained) < 2:
        return retained
    heap = retained
    heapq.heapify(heap)
    combined = []
    while heap:
        first = heapq.heappop(heap)
        while heap and heap[0] == first:
            heapq.heappop(heap)
        if heap and _meet(first, heap[0]):
            for batch in _merged(first, heapq.heappop(heap)):
                heapq.heappush(heap, batch)
        else:
            combined.append(first)
    return combined


def _meet(first: StateBatch, second: StateBatch) -> bool:
    """Whether two batches overlap, or follow each other in one state."""
    if second.first_offset <= first.last_offset:
        return True
    return first.last_offset + 1 == second.first_offset and first[2:] == second[2:]


def _merged(first: StateBatch, second: StateBatch) -> list[StateBatch]:
    """What two batches make that meet, of which the first is not after the second."""
    if first[2:] == second[2:]:
        return [first._replace(last_offset=max(first.last_offset, second.last_offset))]
    if second[2:] < first[2:]:
        if second.last_offset <= first.last_offset:
            return [first]
        return [first, second._replace(first_offset=first.last_offset + 1)]
    if second.first_offset == first.first_offset:
        return [second]
    parts = [first._replace(last_offset=second.first_offset - 1), second]
    if second.last_offset < first.last_offset:
        parts.append(first._replace(first_offset=second.last_offset + 1))
    return parts
