"""The transaction coordinators of a cluster: a shard for each partition of `__transaction_state`.

Strategy: as with groups, a request goes to the shard of its transactional id, and a shard's records are
appended at once; markers go to the partitions' logs directly, as all nodes are in one process. Rule: the
partitions that have records are loaded at the start, since transactions time out and end without a request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from coordwire.broker.cluster.facts import ClusterFacts
from coordwire.broker.cluster.group_coordinators import GroupCoordinators
from coordwire.broker.cluster.promise import Promise
from coordwire.broker.cluster.replication import Replication
from coordwire.broker.cluster.topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, ClusterPartition, ClusterTopic
from coordwire.broker.log.validation import RefusedRecords
from coordwire.coordinator.transactions import (
    MarkersToWrite,
    Place,
    TransactionAppend,
    TransactionOutcome,
    TransactionShard,
)
from coordwire.coordinator.transactions.records import transaction_records
from coordwire.enums import ErrorCode
from coordwire.errors import CoordwireError

__all__ = ["TransactionCoordinators"]

log = logging.getLogger("coordwire.broker")

_LOADING = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
}


class _Slot:
    """A shard, and the promises of its outcomes, by ticket."""

    __slots__ = ("deadline", "index", "partition", "shard", "waiting")

    def __init__(self, shard: TransactionShard, partition: ClusterPartition, index: int) -> None:
        self.shard = shard
        self.partition = partition
        self.index = index
        self.waiting: dict[int, Promise[TransactionOutcome]] = {}
        self.deadline: int | None = None


class TransactionCoordinators:
    """The shards that have been needed so far. transactions_topic: makes or finds their topic."""

    def __init__(
        self,
        facts: ClusterFacts,
        replication: Replication,
        groups: GroupCoordinators,
        transactions_topic: Callable[[], ClusterTopic],
    ) -> None:
        self._facts = facts
        self._replication = replication
        self._groups = groups
        self._topic = transactions_topic
        self._slots: dict[int, _Slot] = {}

    # --- which shard ---

    def partition_of(self, transactional_id: str) -> int:
        """The number of the partition that a transactional id is in."""
        return self._topic().partition_for(transactional_id)

    def coordinator_of(self, transactional_id: str) -> int:
        """The id of the node that coordinates a transactional id."""
        return self._topic().partitions[self.partition_of(transactional_id)].leader

    def recover(self) -> None:
        """Load all partitions that have records, and complete what was prepared."""
        topic = self._facts.topics.get(TRANSACTIONS_TOPIC)
        for index, partition in enumerate(topic.partitions if topic is not None else ()):
            if partition.log.end_offset:
                self._slot(index)

    def shards(self, node: int) -> list[TransactionShard]:
        """The shards that a node has, as of now."""
        slots = sorted(self._slots.items())
        return [self._at_now(slot) for _, slot in slots if slot.partition.leader == node]

    def shard_of(self, transactional_id: str, node: int) -> TransactionShard | None:
        """The shard of an id; None on a node that does not lead its partition. Raises `OSError`."""
        slot = self._slot(self.partition_of(transactional_id))
        return self._at_now(slot) if slot.partition.leader == node else None

    def _at_now(self, slot: _Slot) -> TransactionShard:
        slot.shard.advance(self._facts.clock())
        self._pump(slot)
        return slot.shard

    def _slot(self, index: int) -> _Slot:
        slot = self._slots.get(index)
        if slot is None:
            facts = self._facts
            partition = self._topic().partitions[index]
            shard = TransactionShard(
                now=facts.clock(),
                config=facts.config.transactions,
                new_producer_id=facts.new_producer_id,
            )
            slot = self._slots[index] = _Slot(shard, partition, index)
            try:
                shard.load(
                    transaction_records(partition.log.batches()), coordinator_epoch=partition.leader_epoch
                )
            except CoordwireError as error:
                log.error("%s-%d cannot be loaded: %s", partition.topic, index, error)
                shard.unload()
            self._pump(slot)
        return slot

    def reload(self, index: int) -> None:
        """Another node leads this partition: what waits gets NOT_COORDINATOR, and the log is read again."""
        slot = self._slots.pop(index, None)
        if slot is not None:
            slot.shard.unload()
            self._pump(slot)
            for promise in list(slot.waiting.values()):
                promise.fulfil(TransactionOutcome(ticket=0, error_code=int(ErrorCode.NOT_COORDINATOR)))
        if self._topic().partitions[index].log.end_offset:
            self._slot(index)

    # --- requests ---

    def submit(
        self,
        transactional_id: str,
        operation: Callable[[TransactionShard], int],
        *,
        node: int | None = None,
    ) -> Promise[TransactionOutcome]:
        """Run an operation that gives a ticket, and promise its outcome.

        node: where the request came to; None for a request of the cluster's own, which goes to the right one.
        """
        try:
            slot = self._slot(self.partition_of(transactional_id))
        except OSError:
            return Promise(TransactionOutcome(ticket=0, error_code=int(ErrorCode.COORDINATOR_NOT_AVAILABLE)))
        if node is not None and slot.partition.leader != node:
            return Promise(TransactionOutcome(ticket=0, error_code=int(ErrorCode.NOT_COORDINATOR)))
        self._at_now(slot)
        promise: Promise[TransactionOutcome] = Promise()
        slot.waiting[operation(slot.shard)] = promise
        self._pump(slot)
        return promise

    def join(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        places: frozenset[Place],
        *,
        add: bool,
        abortable: bool,
    ) -> dict[Place, ErrorCode]:
        """The answers of the leaders of partitions to a producer that writes to them, by partition.

        add: let the partitions be in the transaction; else they must be. abortable: the client knows
        TRANSACTION_ABORTABLE.
        """
        arguments = (transactional_id, producer_id, producer_epoch, places)

        def operation(shard: TransactionShard) -> int:
            return shard.add_partitions(*arguments, version=2) if add else shard.verify_partitions(*arguments)

        outcome = self.submit(transactional_id, operation).value  # appends are confirmed at once
        return {
            place: _for_producers(outcome.error_code or outcome.places.get(place, 0), abortable)
            for place in places
        }

    # --- effects of shards ---

    def _pump(self, slot: _Slot) -> None:
        """Carry out the effects of a shard: append, report outcomes, write markers."""
        facts, shard = self._facts, slot.shard
        for effect in shard.effects():
            if isinstance(effect, TransactionAppend):
                if code := self._replication.append(slot.partition, effect):
                    shard.failed(effect.number, code)
                else:
                    shard.appended(effect.number)
            elif isinstance(effect, TransactionOutcome):
                promise = slot.waiting.pop(effect.ticket, None)
                if promise is not None:
                    promise.fulfil(effect)
            elif facts.config.marker_delay_ms:
                self._write_later(slot, effect)
            else:
                self._write(slot, effect)
        slot.deadline = shard.next_deadline()

    def _write_later(self, slot: _Slot, markers: MarkersToWrite) -> None:
        def write() -> None:
            self._write(slot, markers)
            self._pump(slot)

        due = self._facts.clock() + self._facts.config.marker_delay_ms
        self._facts.timers.set(f"markers-{slot.index}-{markers.number}", due, write)

    def _write(self, slot: _Slot, markers: MarkersToWrite) -> None:
        errors: dict[Place, int] = {}
        for topic, index in sorted(markers.places):
            error = self.write_marker(
                (topic, index),
                markers.producer_id,
                markers.producer_epoch,
                committed=markers.committed,
                coordinator_epoch=markers.coordinator_epoch,
                version=markers.transaction_version,
            )
            # The transaction ends without a partition that was deleted.
            errors[topic, index] = 0 if error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else error
        slot.shard.marked(markers.number, errors)

    def write_marker(
        self,
        place: Place,
        producer_id: int,
        producer_epoch: int,
        *,
        committed: bool,
        coordinator_epoch: int,
        version: int,
    ) -> int:
        """End a transaction in one partition; 0 or an error code."""
        facts = self._facts
        partition = facts.partition(*place)
        if partition is None:
            return int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        try:
            if place[0] != OFFSETS_TOPIC:
                self._replication.check_in_sync(partition)
                partition.log.end_transaction(
                    producer_id,
                    producer_epoch,
                    committed=committed,
                    coordinator_epoch=coordinator_epoch,
                    version=version,
                    now=facts.clock(),
                )
                return 0
            partition.log.producers.check_marker(producer_id, producer_epoch, coordinator_epoch, version)
        except RefusedRecords as refusal:
            return refusal.code
        promise = self._groups.complete_transaction(
            place[1], producer_id, producer_epoch, committed=committed, coordinator_epoch=coordinator_epoch
        )
        error = promise.value if promise.is_fulfilled else int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return int(ErrorCode.NOT_LEADER_OR_FOLLOWER) if error in _LOADING else error

    # --- time ---

    def next_deadline(self) -> int | None:
        """When a shard has something to do next."""
        return min(
            (slot.deadline for slot in self._slots.values() if slot.deadline is not None), default=None
        )

    def advance(self, now: int) -> None:
        """Run what is due in all shards."""
        for slot in list(self._slots.values()):
            if slot.deadline is not None and slot.deadline <= now:
                slot.shard.advance(now)
                self._pump(slot)

    def close(self) -> None:
        """Drop all shards; what waits gets no answer."""
        self._slots.clear()


def _for_producers(error: int, abortable: bool) -> ErrorCode:
    """The error that a partition's leader gives a producer for this error of the coordinator."""
    if error == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error == ErrorCode.TRANSACTION_ABORTABLE and not abortable:
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode(error)
