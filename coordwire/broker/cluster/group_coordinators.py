"""The group coordinators of a cluster: a shard for each partition of `__consumer_offsets`.

Strategy: a request goes to the shard of its group; a request about several groups is split, and the answers
are put together in its order. Records of a shard are appended to its partition's log at once, where any
consumer can read them. Rules: a shard is made from its log when the first request for it comes.
A node that does not lead the partition answers NOT_COORDINATOR.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from coordwire.broker.cluster.facts import ClusterFacts
from coordwire.broker.cluster.promise import Promise
from coordwire.broker.cluster.replication import Replication
from coordwire.broker.cluster.topics import OFFSETS_TOPIC, ClusterPartition, ClusterTopic
from coordwire.broker.log.validation import RefusedRecords
from coordwire.codec import Message
from coordwire.codec.walk import fields_of
from coordwire.coordinator import Answer, Append, InternalTopic, RequestContext, Shard
from coordwire.coordinator.log_entries import log_entries
from coordwire.errors import CoordwireError
from coordwire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)

__all__ = ["GroupCoordinators", "PendingAnswer"]

log = logging.getLogger("coordwire.broker")

_SPLIT: dict[type[Message], tuple[str, str, type[Any], str]] = {
    DescribeGroupsRequest: ("groups", "", DescribeGroupsResponse, "groups"),
    ConsumerGroupDescribeRequest: ("group_ids", "", ConsumerGroupDescribeResponse, "groups"),
    StreamsGroupDescribeRequest: ("group_ids", "", StreamsGroupDescribeResponse, "groups"),
    DeleteGroupsRequest: ("groups_names", "", DeleteGroupsResponse, "results"),
    OffsetFetchRequest: ("groups", "group_id", OffsetFetchResponse, "groups"),
}
"""Requests about several groups: the field that lists them, the field of an element that names its group,
the response, and the field that lists the answers."""


_TURN = 10_000
"""Work of a turn of what a shard does between requests: some milliseconds."""

_KEPT = 10_000
"""The most groups' partitions, and clients' contexts, that are cached."""


class PendingAnswer(Promise[Message]):
    """The answer to a request. topics_to_create: the internal topics that a streams group lacks, with it."""

    __slots__ = ("topics_to_create",)

    def __init__(self, *response: Message) -> None:
        super().__init__(*response)
        self.topics_to_create: Sequence[InternalTopic] = ()


class _Slot:
    """A shard, and the promises of its answers, by ticket."""

    __slots__ = ("deadline", "ending", "partition", "shard", "waiting")

    def __init__(self, shard: Shard, partition: ClusterPartition) -> None:
        self.shard = shard
        self.partition = partition
        self.waiting: dict[int, PendingAnswer] = {}
        self.ending: dict[int, Promise[int]] = {}
        self.deadline: int | None = None


class GroupCoordinators:
    """The shards that have been needed so far. offsets_topic: makes or finds their topic."""

    def __init__(
        self,
        facts: ClusterFacts,
        replication: Replication,
        offsets_topic: Callable[[], ClusterTopic],
    ) -> None:
        self._facts = facts
        self._replication = replication
        self._topic = offsets_topic
        self._slots: dict[int, _Slot] = {}
        self._elsewhere: Shard | None = None
        self._working: dict[_Slot, None] = {}
        self._places: dict[str, int] = {}
        self._contexts: dict[tuple[str | None, str], RequestContext] = {}

    # --- which shard ---

    def partition_of(self, group_id: str) -> int:
        """The number of the partition that a group is in."""
        index = self._places.get(group_id)
        if index is None:
            if len(self._places) >= _KEPT:
                self._places.clear()
            index = self._places[group_id] = self._topic().partition_for(group_id)
        return index

    def context_of(self, client_id: str | None, client_host: str) -> RequestContext:
        """The context of a client's requests."""
        context = self._contexts.get((client_id, client_host))
        if context is None:
            if len(self._contexts) >= _KEPT:
                self._contexts.clear()
            facts = self._facts
            context = self._contexts[client_id, client_host] = RequestContext(
                client_id=client_id, client_host=client_host, new_id=lambda: str(facts.new_uuid())
            )
        return context

    def coordinator_of(self, group_id: str) -> int:
        """The id of the node that coordinates a group."""
        return self._topic().partitions[self.partition_of(group_id)].leader

    def _slot(self, index: int) -> _Slot:
        slot = self._slots.get(index)
        if slot is None:
            facts = self._facts
            partition = self._topic().partitions[index]
            shard = Shard(now=facts.clock(), config=facts.config.coordinator, resolves_in_turns=True)
            slot = self._slots[index] = _Slot(shard, partition)
            shard.set_topics(facts.image())
            shard.begin_loading()
            try:
                shard.load(log_entries(partition.log.batches()), end_offset=partition.log.end_offset)
            except CoordwireError as error:
                log.error("%s-%d cannot be loaded: %s", partition.topic, index, error)
                shard.unload()
            for group_id in facts.group_settings:
                if self.partition_of(group_id) == index:
                    self._configure(shard, group_id)
            self._pump(slot)
        return slot

    # --- requests ---

    def handle(
        self, node: int, request: Any, version: int, context: RequestContext
    ) -> Message | Coroutine[Any, None, Message]:
        """The answer to a request about groups, or the coroutine that waits for it."""
        request_type = type(request)
        if request_type is ListGroupsRequest:
            return self._list(node, request, version, context)
        if request_type in _SPLIT:
            return self._split(node, request, version, context)
        promise = self.submit(node, request, version, context)
        return promise.value if promise.is_fulfilled else promise.result()

    async def _split(self, node: int, request: Any, version: int, context: RequestContext) -> Message:
        """The answers of several partitions' shards, as one."""
        field, name, response_type, answers = _SPLIT[type(request)]
        elements = list(getattr(request, field))
        if not elements and isinstance(request, OffsetFetchRequest):  # of a version that names one group
            return await self._submit(node, self.partition_of(request.group_id), request, version, context)
        places: dict[int, list[Any]] = {}
        for element in elements:
            group_id = getattr(element, name) if name else element
            places.setdefault(self.partition_of(group_id), []).append(element)
        if len(places) == 1:
            return await self._submit(node, next(iter(places)), request, version, context)
        promises: list[Promise[Message]] = []
        for index, part in places.items():
            subrequest = type(request)(**_fields(request) | {field: part})
            promises.append(self._submit(node, index, subrequest, version, context))
        responses = [await promise for promise in promises]
        merged: Message = response_type()
        if responses:
            setattr(merged, answers, [element for part in responses for element in getattr(part, answers)])
        return merged

    def submit(self, node: int, request: Any, version: int, context: RequestContext) -> PendingAnswer:
        """Give a request about one group to the group's shard."""
        return self._submit(node, self.partition_of(request.group_id), request, version, context)

    def _submit(
        self, node: int, index: int, request: Any, version: int, context: RequestContext
    ) -> PendingAnswer:
        """Give a request to a partition's shard."""
        slot = self._slot(index)
        if slot.partition.leader != node:
            shard = self._of_another_node()
            now = self._facts.clock()
            ticket = shard.handle(request, version=version, now=now, context=context)
            return PendingAnswer(
                *(
                    effect.response
                    for effect in shard.effects()
                    if isinstance(effect, Answer) and effect.ticket == ticket
                )
            )
        now = self._facts.clock()
        ticket = slot.shard.handle(request, version=version, now=now, context=context)
        promise = slot.waiting[ticket] = PendingAnswer()
        self._pump(slot)
        return promise

    def _of_another_node(self) -> Shard:
        """A shard that coordinates nothing. It knows the topics: a commit is refused for a topic that is not
        there before it is refused by NOT_COORDINATOR."""
        if self._elsewhere is None:
            self._elsewhere = Shard()
            self._elsewhere.set_topics(self._facts.image())
        return self._elsewhere

    async def _list(
        self, node: int, request: ListGroupsRequest, version: int, context: RequestContext
    ) -> ListGroupsResponse:
        """The groups of all shards that a node leads."""
        groups: list[Any] = []
        topic = self._facts.topics.get(OFFSETS_TOPIC)
        for index, partition in enumerate(topic.partitions if topic is not None else ()):
            if partition.leader == node and (index in self._slots or partition.log.end_offset):
                response = await self._submit(node, index, request, version, context)
                if isinstance(response, ListGroupsResponse):
                    groups.extend(response.groups)
        return ListGroupsResponse(groups=groups)

    # --- effects of shards ---

    def _pump(self, slot: _Slot) -> None:
        """Carry out the effects of a shard: append, answer."""
        shard = slot.shard
        for effect in shard.effects():
            if isinstance(effect, Append):
                try:
                    self._replication.check_in_sync(slot.partition)
                    batch = effect.batch(timestamp=self._facts.clock(), base_offset=0)
                    slot.partition.log.append_own(batch)
                except RefusedRecords as refusal:
                    shard.failed(effect.number, refusal.code)
                else:
                    shard.appended(effect.number)
            elif isinstance(effect, Answer):
                answer = slot.waiting.pop(effect.ticket, None)
                if answer is not None:
                    answer.topics_to_create = effect.topics_to_create
                    answer.fulfil(effect.response)
            else:
                error = slot.ending.pop(effect.ticket, None)
                if error is not None:
                    error.fulfil(effect.error_code)
        slot.deadline = shard.next_deadline()
        if shard.has_work:
            self._working.setdefault(slot)
        else:
            self._working.pop(slot, None)

    def complete_transaction(
        self,
        index: int,
        producer_id: int,
        producer_epoch: int,
        *,
        committed: bool,
        coordinator_epoch: int,
    ) -> Promise[int]:
        """End a transaction in a partition of `__consumer_offsets`; 0 or an error code."""
        slot = self._slot(index)
        ticket = slot.shard.complete_transaction(
            producer_id, producer_epoch, committed=committed, coordinator_epoch=coordinator_epoch
        )
        promise: Promise[int] = Promise()
        slot.ending[ticket] = promise
        self._pump(slot)
        return promise

    def unload(self, index: int) -> None:
        """Another node leads this partition: what waits gets NOT_COORDINATOR, and the log is read again."""
        slot = self._slots.pop(index, None)
        if slot is not None:
            slot.shard.unload()
            self._pump(slot)

    # --- time, topics, settings ---

    def next_deadline(self) -> int | None:
        """When a shard has something to do next: at once while there is work."""
        if self._working:
            return self._facts.clock()
        return min(
            (slot.deadline for slot in self._slots.values() if slot.deadline is not None), default=None
        )

    def advance(self, now: int) -> None:
        """Run what is due in all shards, and a turn of the work of the shard that has waited longest."""
        for slot in list(self._slots.values()):
            if slot.deadline is not None and slot.deadline <= now:
                slot.shard.advance(now)
                self._pump(slot)
        if self._working:
            slot = next(iter(self._working))
            del self._working[slot]
            slot.shard.work(_TURN)
            self._pump(slot)

    def set_topics(self) -> None:
        """Give the shards the cluster's topics, which have changed."""
        self._places.clear()
        if self._elsewhere is None and not self._slots:
            return  # the image is made when the first shard is
        image = self._facts.image()
        if self._elsewhere is not None:
            self._elsewhere.set_topics(image)
        for slot in list(self._slots.values()):
            slot.shard.set_topics(image)
            self._pump(slot)

    def configure(self, group_id: str) -> None:
        """Give a group's shard its settings, which have changed."""
        if self._slots:
            slot = self._slots.get(self.partition_of(group_id))
            if slot is not None:
                self._configure(slot.shard, group_id)

    def _configure(self, shard: Shard, group_id: str) -> None:
        settings = self._facts.group_settings.get(group_id)
        if settings is None:
            shard.set_group_config(group_id, None)
            return
        config = self._facts.config.coordinator
        consumer = replace(
            config.consumer,
            session_timeout_ms=settings.number("consumer.session.timeout.ms"),
            heartbeat_interval_ms=settings.number("consumer.heartbeat.interval.ms"),
            assignment_interval_ms=settings.number("consumer.assignment.interval.ms"),
        )
        streams = replace(
            config.streams,
            session_timeout_ms=settings.number("streams.session.timeout.ms"),
            heartbeat_interval_ms=settings.number("streams.heartbeat.interval.ms"),
            assignment_interval_ms=settings.number("streams.assignment.interval.ms"),
            initial_rebalance_delay_ms=settings.number("streams.initial.rebalance.delay.ms"),
            num_standby_replicas=settings.number("streams.num.standby.replicas"),
        )
        shard.set_group_config(group_id, consumer)
        shard.set_group_config(group_id, streams)

    def close(self) -> None:
        """Drop all shards; what waits gets no answer."""
        for slot in self._slots.values():
            slot.waiting.clear()
        self._slots.clear()
        self._working.clear()


def _fields(message: Message) -> dict[str, Any]:
    return {field.name: getattr(message, field.name) for field in fields_of(message)}
