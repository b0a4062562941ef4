"""The transaction coordinators of a cluster: one a node, with the partitions of `__transaction_state` it has.

Strategy: as with groups, `TransactionCoordinator` finds an id's partition; here are the nodes, the logs and
the promises. Records are appended at once; markers go to the partitions' logs directly, as all nodes are in
one process. Rule: the partitions that have records are loaded at the start, since transactions time out and
end without a request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from coordwire.broker.cluster.facts import ClusterFacts
from coordwire.broker.cluster.group_coordinators import GroupCoordinators
from coordwire.broker.cluster.promise import Promise
from coordwire.broker.cluster.replication import Replication
from coordwire.broker.cluster.topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, ClusterTopic
from coordwire.broker.log.validation import RefusedRecords
from coordwire.coordinator.timers import earlier
from coordwire.coordinator.transactions import (
    MarkersToWrite,
    Place,
    TransactionAppend,
    TransactionCoordinator,
    TransactionListing,
    TransactionOutcome,
)
from coordwire.coordinator.transactions.log import transaction_records
from coordwire.enums import ErrorCode
from coordwire.errors import CoordwireError
from coordwire.messages import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
)
from coordwire.messages.describe_transactions import TransactionState

log = logging.getLogger("coordwire.broker")

_LOADING = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
}


class _NodeCoordinator:
    """A node's coordinator, and the promises of its outcomes, by ticket."""

    __slots__ = ("coordinator", "waiting")

    def __init__(self, coordinator: TransactionCoordinator) -> None:
        self.coordinator = coordinator
        self.waiting: dict[int, Promise[TransactionOutcome]] = {}


class TransactionCoordinators:
    """The coordinators that have been needed so far. transactions_topic: makes or finds their topic."""

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
        self._nodes: dict[int, _NodeCoordinator] = {}
        self._holders: dict[int, int] = {}
        """The node that has a partition, or failed to load it."""

    # --- which coordinator ---

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
                self._take(partition.leader, index)

    def _of(self, node: int) -> _NodeCoordinator:
        """A node's coordinator. Ids are in other partitions once there are more of them."""
        count = len(self._topic().partitions)
        if any(known.coordinator.partitions != count for known in self._nodes.values()):
            for index in list(self._holders):
                self.unload(index)
            self._nodes.clear()
        known = self._nodes.get(node)
        if known is None:
            facts = self._facts
            coordinator = TransactionCoordinator(
                partitions=count,
                now=facts.clock(),
                config=facts.config.transactions,
                new_producer_id=facts.new_producer_id,
            )
            known = self._nodes[node] = _NodeCoordinator(coordinator)
        return known

    def _at_now(self, node: int) -> _NodeCoordinator:
        known = self._of(node)
        known.coordinator.advance(self._facts.clock())
        self._pump(known)
        return known

    def _take(self, node: int, index: int) -> None:
        """Let a node have a partition that it leads."""
        known = self._of(node)
        partition = self._topic().partitions[index]
        if partition.leader != node or index in self._holders:
            return
        self._holders[index] = node
        try:
            records = transaction_records(partition.log.batches())
            known.coordinator.load(index, records, coordinator_epoch=partition.leader_epoch)
        except CoordwireError as error:
            log.error("%s-%d cannot be loaded: %s", partition.topic, index, error)
            known.coordinator.unload(index)
        self._pump(known)

    def unload(self, index: int) -> None:
        """Have no node coordinate a partition: what waits gets NOT_COORDINATOR."""
        node = self._holders.pop(index, None)
        if node is not None:
            known = self._nodes[node]
            known.coordinator.unload(index)
            self._pump(known)

    def reload(self, index: int) -> None:
        """Another node leads this partition: what waits gets NOT_COORDINATOR, and the log is read again."""
        self.unload(index)
        partition = self._topic().partitions[index]
        if partition.log.end_offset:
            self._take(partition.leader, index)

    # --- requests ---

    def submit(
        self,
        transactional_id: str,
        operation: Callable[[TransactionCoordinator], int],
        *,
        node: int | None = None,
    ) -> Promise[TransactionOutcome]:
        """Run an operation that gives a ticket, and promise its outcome.

        node: where the request came to; None for a request of the cluster's own, which goes to the right one.
        """
        try:
            index = self.partition_of(transactional_id)
        except OSError:
            return Promise(TransactionOutcome(ticket=0, error_code=int(ErrorCode.COORDINATOR_NOT_AVAILABLE)))
        if node is None:
            node = self._topic().partitions[index].leader
        self._take(node, index)
        known = self._at_now(node)
        promise: Promise[TransactionOutcome] = Promise()
        known.waiting[operation(known.coordinator)] = promise
        self._pump(known)
        return promise

    def describe(self, node: int, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
        """A node's answer to DescribeTransactions."""
        try:
            known = self._of(node)
        except OSError:
            error = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            states = [
                TransactionState(error_code=error, transactional_id=name)
                for name in request.transactional_ids
            ]
            return DescribeTransactionsResponse(transaction_states=states)
        for index in known.coordinator.partitions_of(request):
            self._take(node, index)
        return self._at_now(node).coordinator.describe_transactions(request)

    def listing(self, node: int, request: ListTransactionsRequest) -> TransactionListing:
        """A node's answer to ListTransactions, which takes turns."""
        if node in self._nodes:
            return self._at_now(node).coordinator.list_transactions(request)
        return TransactionListing(request, (), self._facts.clock())

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

        def operation(coordinator: TransactionCoordinator) -> int:
            if add:
                return coordinator.add_partitions(*arguments, version=2)
            return coordinator.verify_partitions(*arguments)

        outcome = self.submit(transactional_id, operation).value  # appends are confirmed at once
        return {
            place: _for_producers(outcome.error_code or outcome.places.get(place, 0), abortable)
            for place in places
        }

    # --- effects ---

    def _pump(self, known: _NodeCoordinator) -> None:
        """Carry out the effects of a coordinator: append, report outcomes, write markers."""
        facts, coordinator = self._facts, known.coordinator
        for effect in coordinator.effects():
            if isinstance(effect, TransactionAppend):
                partition = self._topic().partitions[effect.partition]
                if code := self._replication.append(partition, effect):
                    coordinator.failed(effect.partition, effect.number, code)
                else:
                    coordinator.appended(effect.partition, effect.number)
            elif isinstance(effect, TransactionOutcome):
                promise = known.waiting.pop(effect.ticket, None)
                if promise is not None:
                    promise.fulfil(effect)
            elif facts.config.marker_delay_ms:
                self._write_later(known, effect)
            else:
                self._write(known, effect)

    def _write_later(self, known: _NodeCoordinator, markers: MarkersToWrite) -> None:
        def write() -> None:
            self._write(known, markers)
            self._pump(known)

        due = self._facts.clock() + self._facts.config.marker_delay_ms
        self._facts.timers.set(f"markers-{markers.partition}-{markers.number}", due, write)

    def _write(self, known: _NodeCoordinator, markers: MarkersToWrite) -> None:
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
        known.coordinator.marked(markers.partition, markers.number, errors)

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
        """When a coordinator has something to do next."""
        deadline = None
        for known in self._nodes.values():
            deadline = earlier(deadline, known.coordinator.next_deadline())
        return deadline

    def advance(self, now: int) -> None:
        """Run what is due in all coordinators."""
        for known in list(self._nodes.values()):
            known.coordinator.advance(now)
            self._pump(known)

    def close(self) -> None:
        """Drop all coordinators; what waits gets no answer."""
        self._nodes.clear()
        self._holders.clear()


def _for_producers(error: int, abortable: bool) -> ErrorCode:
    """The error that a partition's leader gives a producer for this error of the coordinator."""
    if error == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error == ErrorCode.TRANSACTION_ABORTABLE and not abortable:
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode(error)
