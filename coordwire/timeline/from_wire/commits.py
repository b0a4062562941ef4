"""Groups' commits on the wire, and the transactions that some of them are part of.

Strategy: one function an answer, each a generator of the events that it makes. Rules: an answer's positions
are matched with the request's by topic and partition, not by their order; what was refused is reported with
its code.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from coordwire._speedups.rows import row_maker
from coordwire.capture.entries import FrameEntry
from coordwire.enums import ErrorCode
from coordwire.timeline.consumer_data import id_text
from coordwire.timeline.events import (
    GroupEvent,
    OffsetCommitted,
    OffsetReset,
    ProducerFenced,
    TopicPartition,
    TransactionStep,
)
from coordwire.timeline.evidence import Seen, remember
from coordwire.timeline.from_wire.rebalance_cost import Costs
from coordwire.timeline.from_wire.repeated_answers import PartitionEnd
from coordwire.timeline.lag import Lag

__all__ = ["Commits"]

MOST_TRANSACTIONS = 10_000
MOST_OF_ONE = 100
"""So many groups of one transaction are remembered: each of its steps is an event of each of them."""

FENCED = frozenset(map(int, (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)))
"""What a producer is refused with whose transactional id another one has."""

NO_GENERATION = -1
"""That of a commit by a client that is not a member."""

_committed, _reset = row_maker(OffsetCommitted), row_maker(OffsetReset)
_new = tuple.__new__  # a named tuple's own goes through a function


class _Producer(NamedTuple):
    """The one that has a transactional id, and where its InitProducerId was answered."""

    producer_id: int
    epoch: int
    client_id: str | None
    place: Seen


class Topics(Protocol):
    """The topics that are known by their ids."""

    def name_of(self, topic: str) -> str:
        """A topic's name by its id."""

    def is_known(self, name: str) -> bool:
        """Whether the id of the topic of a name is known."""

    def is_past(self, topic_id: str) -> bool:
        """Whether the topic of an id was deleted, or another one has its name now."""


class Commits:
    """The commits of groups, and their transactions. topics: by their ids."""

    def __init__(self, topics: Topics) -> None:
        self.lag = Lag()
        self.costs = Costs(self.lag)
        self._topics = topics
        self._groups: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()
        self._producers: OrderedDict[str, _Producer] = OrderedDict()
        self._fenced: OrderedDict[tuple[str, str, _Producer], None] = OrderedDict()

    # --- commits ---

    def commit(
        self, entry: FrameEntry, request: Any, answered: Iterable[Any], place: Seen
    ) -> list[GroupEvent]:
        """OffsetCommit or TxnOffsetCommit, answered. answered: the answer's topics; none if nothing was
        refused."""
        events: list[GroupEvent] = []
        transactional_id = getattr(request, "transactional_id", None)
        codes = {
            (self._topic(topic), part.partition_index): part.error_code
            for topic in answered
            for part in topic.partitions
            if part.error_code
        }
        group, member_id = request.group_id, request.member_id or None
        client_id, generation = entry.client_id, request.generation_id_or_member_epoch
        time_ns, source, number, packet = place
        for topic in request.topics:
            name, is_past = self._topic(topic), self._is_past(topic)
            for part in topic.partitions:
                partition, offset = part.partition_index, part.committed_offset
                topic_partition = _new(TopicPartition, (name, partition))
                code = codes.get(topic_partition, 0) if codes else 0
                events.append(_committed(
                    group, time_ns, source, number, packet, None, member_id, client_id, generation,
                    name, partition, offset, part.committed_leader_epoch, part.committed_metadata, code,
                    transactional_id, False,
                ))  # fmt: skip
                if code or is_past:
                    continue
                if generation == NO_GENERATION and member_id is None and transactional_id is None:
                    before = self.lag.committed_of(group, topic_partition)
                    if before is not None and offset < before:
                        events.append(_reset(
                            group, time_ns, source, number, packet, None, client_id, name, partition,
                            before, offset,
                        ))  # fmt: skip
                if transactional_id is None:
                    events += self.lag.committed(group, topic_partition, offset, place)
                else:
                    self.lag.pending(transactional_id, group, topic_partition, offset)
        if transactional_id is not None and not FENCED.isdisjoint(codes.values()):
            events += self._is_fenced(request, member_id, client_id, place)
        return events

    def _is_fenced(
        self, request: Any, member_id: str | None, client_id: str | None, place: Seen
    ) -> Iterator[ProducerFenced]:
        """A producer's offsets are refused: that another one has its transactional id, if that was seen,
        once for each group."""
        name, group = request.transactional_id, request.group_id
        owner = self._producers.get(name)
        if owner is None or (request.producer_id, request.producer_epoch) == owner[:2]:
            return
        key = name, group, owner
        if key in self._fenced:
            return
        remember(self._fenced, key, None, MOST_TRANSACTIONS)
        packets = (
            (owner.place.packet, place.packet) if owner.place.source == place.source else (place.packet,)
        )
        yield ProducerFenced(
            group=group, **place._asdict(), transactional_id=name, client_id=client_id, member_id=member_id,
            by_client_id=owner.client_id, since_ns=owner.place.time_ns,
            packets=tuple(packet for packet in packets if packet is not None),
        )  # fmt: skip

    def deleted(self, client_id: str | None, group: str, message: Any, place: Seen) -> Iterator[OffsetReset]:
        """OffsetDelete, answered."""
        for topic in message.topics:
            for part in topic.partitions:
                if not part.error_code:
                    partition = TopicPartition(topic.name, part.partition_index)
                    before = self.lag.committed_of(group, partition)
                    self.lag.forgotten(group, partition)
                    yield OffsetReset(
                        group=group, **place._asdict(), client_id=client_id, topic=topic.name,
                        partition=part.partition_index, before=before, offset=None,
                    )  # fmt: skip

    def fetched(self, request: Any, message: Any, place: Seen) -> Iterator[GroupEvent]:
        """OffsetFetch, answered: the offsets that the coordinator has of the groups."""
        groups = [(group_answer.group_id, group_answer.topics) for group_answer in message.groups] or [
            (request.group_id, message.topics)
        ]
        for group, topics in groups:
            for topic in topics:
                name, is_past = self._topic(topic), self._is_past(topic)
                for part in topic.partitions:
                    if part.error_code == 0 and not is_past:
                        topic_partition = TopicPartition(name, part.partition_index)
                        yield from self.lag.committed(group, topic_partition, part.committed_offset, place)

    # --- where partitions end ---

    def ends_in(self, message: Any) -> list[PartitionEnd]:
        """The ends of partitions in a Fetch's answer, those with an error apart."""
        ends: list[PartitionEnd] = []
        for topic in message.responses:
            name = topic.topic or self._topic(topic)
            if self._is_past(topic):
                continue
            for part in topic.partitions:
                if part.error_code == 0:
                    ends.append((_new(TopicPartition, (name, part.partition_index)), part.high_watermark))
        return ends

    def ends(self, ends: Iterable[PartitionEnd], place: Seen, *, by_name: bool) -> list[GroupEvent]:
        """Fetch, answered. by_name: whether topics have names in it."""
        events: list[GroupEvent] = []
        see, see_cost = self.lag.ends, self.costs.ends
        if self.lag.doubts:
            events += self.lag.settled(place)
        for partition, offset in ends:
            measured = see(partition, offset, place)
            if measured:
                is_certain = not (by_name and self._topics.is_known(partition.topic))
                events += measured if is_certain else self.lag.certain(measured)
            events += see_cost(partition)
        return events

    def offsets_listed(self, request: Any, message: Any, place: Seen) -> Iterator[GroupEvent]:
        """ListOffsets, answered; -1 asked for the partition's end."""
        requested = {
            TopicPartition(topic.name, part.partition_index)
            for topic in request.topics
            for part in topic.partitions
            if part.timestamp == -1
        }
        for topic in message.topics:
            for part in topic.partitions:
                topic_partition = TopicPartition(topic.name, part.partition_index)
                if topic_partition in requested and part.error_code == 0:
                    offset = max(part.old_style_offsets, default=part.offset)
                    measured = self.lag.ends(topic_partition, offset, place)
                    is_certain = not self._topics.is_known(topic.name)
                    yield from measured if is_certain else self.lag.certain(measured)
                    yield from self.costs.ends(topic_partition)

    # --- transactions ---

    def init(self, client_id: str | None, request: Any, message: Any, place: Seen) -> Iterator[GroupEvent]:
        """InitProducerId, answered."""
        if request.transactional_id:
            ids = message.producer_id, message.producer_epoch
            if not message.error_code:
                producer = _Producer(*ids, client_id, place)
                remember(self._producers, request.transactional_id, producer, MOST_TRANSACTIONS)
            yield from self._step(request.transactional_id, "init", *ids, message.error_code, place)

    def add_offsets(
        self, client_id: str | None, request: Any, message: Any, place: Seen
    ) -> Iterator[GroupEvent]:
        """AddOffsetsToTxn, answered."""
        if message.error_code in FENCED:
            yield from self._is_fenced(request, None, client_id, place)
        name = request.transactional_id
        if message.error_code == 0:
            groups = self._groups.get(name)
            if groups is None:
                groups = OrderedDict()
                remember(self._groups, name, groups, MOST_TRANSACTIONS)
            remember(groups, request.group_id, None, MOST_OF_ONE)
        ids = request.producer_id, request.producer_epoch
        yield TransactionStep(
            group=request.group_id, **place._asdict(), transactional_id=name, step="add_offsets",
            producer_id=ids[0], producer_epoch=ids[1], error_code=message.error_code,
        )  # fmt: skip

    def add_partitions(self, request: Any, message: Any, place: Seen) -> Iterator[GroupEvent]:
        """AddPartitionsToTxn, answered."""
        codes = [
            part.partition_error_code
            for topics in (
                message.results_by_topic_v3_and_below,
                *(result.topic_results for result in message.results_by_transaction),
            )
            for topic in topics
            for part in topic.results_by_partition
        ]
        error = message.error_code or next((code for code in codes if code), 0)
        old = request.v3_and_below_transactional_id
        steps = [(part.transactional_id, part.producer_id, part.producer_epoch, part.topics)
                 for part in request.transactions]  # fmt: skip
        if old:
            ids = request.v3_and_below_producer_id, request.v3_and_below_producer_epoch
            steps.append((old, *ids, request.v3_and_below_topics))
        for name, producer_id, epoch, topics in steps:
            added = tuple(
                TopicPartition(topic.name, number) for topic in topics for number in topic.partitions
            )
            yield from self._step(name, "add_partitions", producer_id, epoch, error, place, added)

    def end(self, request: Any, message: Any, place: Seen) -> Iterator[GroupEvent]:
        """EndTxn, answered."""
        step = "commit" if request.committed else "abort"
        name = request.transactional_id
        ids = request.producer_id, request.producer_epoch
        yield from self._step(name, step, *ids, message.error_code, place)
        if message.error_code == 0:
            self._groups.pop(name, None)
            yield from self.lag.decided(name, request.committed, place)

    def _step(
        self, name: str, step: str, producer_id: int, epoch: int, error: int, place: Seen,
        added: tuple[TopicPartition, ...] = (),
    ) -> Iterator[GroupEvent]:  # fmt: skip
        """One step, reported for every group that the transaction commits offsets of."""
        for group in self._groups.get(name) or {"": None}:
            yield TransactionStep(
                group=group, **place._asdict(), transactional_id=name, step=step, producer_id=producer_id,
                producer_epoch=epoch, error_code=error, partitions=added,
            )  # fmt: skip

    def _topic(self, topic: Any) -> str:
        name: str = getattr(topic, "name", "")
        topic_id: UUID | None = getattr(topic, "topic_id", None)
        return name or (self._topics.name_of(id_text(topic_id)) if topic_id is not None else "")

    def _is_past(self, topic: Any) -> bool:
        """Whether it is given by its id, and is not the topic that has its name now."""
        topic_id: UUID | None = getattr(topic, "topic_id", None)
        return topic_id is not None and topic_id.int != 0 and self._topics.is_past(id_text(topic_id))
