"""The group coordinators of a cluster: one a node, with the partitions of `__consumer_offsets` that it leads.

Strategy: `GroupCoordinator` divides requests and puts answers together; here are the nodes, the logs and the
promises. Records are appended to their partition's log at once, where any consumer can read them. Rules: a
partition is loaded when the first request for it comes. A node that does not lead it answers NOT_COORDINATOR,
as each does when the topic was deleted, until a client looks for a coordinator.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from coordwire.broker.cluster.facts import ClusterFacts
from coordwire.broker.cluster.promise import Promise
from coordwire.broker.cluster.replication import Replication
from coordwire.broker.cluster.topics import OFFSETS_TOPIC, ClusterTopic
from coordwire.codec import Message
from coordwire.coordinator import (
    Answer,
    Append,
    GroupCoordinator,
    InternalTopic,
    RequestContext,
    StateRequest,
)
from coordwire.coordinator.log_entries import log_entries
from coordwire.coordinator.timers import earlier
from coordwire.errors import CoordwireError
from coordwire.messages import ListGroupsRequest, ListGroupsResponse, ReadShareGroupStateSummaryRequest
from coordwire.messages.keys import FACTS

log = logging.getLogger("coordwire.broker")

_TURN = 10_000
"""Work of a turn of what a coordinator does between requests: some milliseconds."""

_KEPT = 10_000
"""The most clients' contexts that are cached."""

_READING = frozenset(
    key for key, facts in FACTS.items() if facts.coordinator == "group" and facts.modifies is False
)
"""The APIs for which no topic is made."""


class PendingAnswer(Promise[Message]):
    """The answer to a request. topics_to_create: the internal topics that a streams group lacks, with it."""

    __slots__ = ("topics_to_create",)

    def __init__(self, *response: Message) -> None:
        super().__init__(*response)
        self.topics_to_create: Sequence[InternalTopic] = ()


class _NodeCoordinator:
    """A node's coordinator, and the promises of its answers, by ticket."""

    __slots__ = ("coordinator", "ending", "waiting")

    def __init__(self, coordinator: GroupCoordinator) -> None:
        self.coordinator = coordinator
        self.waiting: dict[int, PendingAnswer] = {}
        self.ending: dict[int, Promise[int]] = {}


class GroupCoordinators:
    """The coordinators that have been needed so far. offsets_topic: makes or finds their topic; ask_states:
    gives the share coordinators' answer to a request."""

    def __init__(
        self,
        facts: ClusterFacts,
        replication: Replication,
        offsets_topic: Callable[[], ClusterTopic],
        ask_states: Callable[[Message], Message],
    ) -> None:
        self._facts = facts
        self._replication = replication
        self._topic = offsets_topic
        self._ask_states = ask_states
        self._nodes: dict[int, _NodeCoordinator] = {}
        self._holders: dict[int, int] = {}
        """The node that has a partition, or failed to load it."""
        self._was_deleted = False
        self._contexts: dict[tuple[str | None, str], RequestContext] = {}

    # --- which coordinator ---

    def partition_of(self, group_id: str) -> int:
        """The number of the partition that a group is in."""
        return self._topic().partition_for(group_id)

    def coordinator_of(self, group_id: str) -> int:
        """The id of the node that coordinates a group."""
        return self._topic().partitions[self.partition_of(group_id)].leader

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

    def _of(self, node: int) -> _NodeCoordinator:
        known = self._nodes.get(node)
        if known is None:
            facts = self._facts
            topic = self._topic_for_requests()
            coordinator = GroupCoordinator(
                partitions=facts.config.offsets_partitions if topic is None else len(topic.partitions),
                now=facts.clock(),
                config=facts.config.coordinator,
                resolves_in_turns=True,
            )
            coordinator.set_topics(facts.image(), now=facts.clock())
            for group_id in facts.group_settings:
                self._configure(coordinator, group_id)
            known = self._nodes[node] = _NodeCoordinator(coordinator)
        return known

    def _topic_for_requests(self) -> ClusterTopic | None:
        """The topic, which is made for a request unless it was deleted."""
        return self._facts.topics.get(OFFSETS_TOPIC) if self._was_deleted else self._topic()

    def _take(self, node: int, index: int) -> None:
        """Let a node have a partition that it leads."""
        topic = self._topic_for_requests()
        if topic is None or topic.partitions[index].leader != node or index in self._holders:
            return
        partition = topic.partitions[index]
        self._holders[index] = node
        known = self._of(node)
        try:
            entries = log_entries(partition.log.batches())
            known.coordinator.load(
                index, entries, end_offset=partition.log.end_offset, now=self._facts.clock()
            )
        except CoordwireError as error:
            log.error("%s-%d cannot be loaded: %s", partition.topic, index, error)
        self._pump(known)

    # --- requests ---

    def handle(
        self, node: int, request: Any, version: int, context: RequestContext
    ) -> Message | Coroutine[Any, None, Message]:
        """The answer to a request about groups, or the coroutine that waits for it."""
        topic = self._facts.topics.get(OFFSETS_TOPIC)
        if topic is None and request.api_key in _READING:
            return self._without_topic(request, version, context)
        if isinstance(request, ListGroupsRequest):
            if topic is None:
                return ListGroupsResponse()
            for index, partition in enumerate(topic.partitions):
                if partition.log.end_offset:
                    self._take(node, index)
        promise = self.submit(node, request, version, context)
        return promise.value if promise.is_fulfilled else promise.result()

    def _without_topic(self, request: Any, version: int, context: RequestContext) -> Message:
        """The answer of a coordinator without partitions to a request that only reads: NOT_COORDINATOR, as
        Kafka has it until a client has looked for a coordinator."""
        now, config = self._facts.clock(), self._facts.config
        coordinator = GroupCoordinator(
            partitions=config.offsets_partitions, now=now, config=config.coordinator
        )
        coordinator.handle(request, version=version, now=now, context=context)
        (answer,) = coordinator.effects()
        assert isinstance(answer, Answer)
        return answer.response

    def submit(self, node: int, request: Any, version: int, context: RequestContext) -> PendingAnswer:
        """Give a request to a node's coordinator."""
        known = self._of(node)
        coordinator = known.coordinator
        if not isinstance(request, ListGroupsRequest):
            for index in coordinator.partitions_of(request):
                self._take(node, index)
        ticket = coordinator.handle(request, version=version, now=self._facts.clock(), context=context)
        promise = known.waiting[ticket] = PendingAnswer()
        self._pump(known)
        return promise

    def complete_transaction(
        self,
        index: int,
        producer_id: int,
        producer_epoch: int,
        *,
        committed: bool,
        coordinator_epoch: int,
    ) -> Promise[int]:
        """End a transaction in a partition of `__consumer_offsets`; 0 or an error code. Its offsets are gone
        where the topic is.
        """
        topic = self._topic_for_requests()
        if topic is None or index >= len(topic.partitions):
            return Promise(0)
        node = topic.partitions[index].leader
        self._take(node, index)
        known = self._of(node)
        ticket = known.coordinator.complete_transaction(
            index, producer_id, producer_epoch, committed=committed, coordinator_epoch=coordinator_epoch,
            now=self._facts.clock(),
        )  # fmt: skip
        promise: Promise[int] = Promise()
        known.ending[ticket] = promise
        self._pump(known)
        return promise

    def _pump(self, known: _NodeCoordinator) -> None:
        """Carry out the effects of a coordinator: append, answer, ask the share coordinators."""
        coordinator = known.coordinator
        for effect in coordinator.effects():
            if isinstance(effect, Append):
                partition = self._topic().partitions[effect.partition]
                if code := self._replication.append(partition, effect):
                    coordinator.failed(effect.partition, effect.number, code, now=self._facts.clock())
                else:
                    coordinator.appended(effect.partition, effect.number, now=self._facts.clock())
            elif isinstance(effect, Answer):
                answer = known.waiting.pop(effect.ticket, None)
                if answer is not None:
                    answer.topics_to_create = effect.topics_to_create
                    answer.fulfil(effect.response)
            elif isinstance(effect, StateRequest):
                self._ask(coordinator, effect)
            else:
                error = known.ending.pop(effect.ticket, None)
                if error is not None:
                    error.fulfil(effect.error_code)

    def _ask(self, coordinator: GroupCoordinator, effect: StateRequest) -> None:
        """Let the share coordinators answer, with the ends of the logs whose lag is wanted."""
        request: Any = effect.request
        ends: dict[tuple[str, int], tuple[int, int]] = {}
        if isinstance(request, ReadShareGroupStateSummaryRequest):
            for topic in request.topics:
                known = self._facts.topics_by_id.get(topic.topic_id)
                if known is None:
                    continue
                for state in topic.partitions:
                    partition = known.partition(state.partition)
                    if partition is not None:
                        ends[known.name, state.partition] = 0, partition.log.high_watermark
        answer = self._ask_states(request)
        coordinator.persisted(
            effect.partition, effect.number, answer, latest_offsets=ends, now=self._facts.clock()
        )

    def unload(self, index: int) -> None:
        """Another node leads this partition: what waits gets NOT_COORDINATOR, and the log is read again."""
        node = self._holders.pop(index, None)
        if node is not None:
            known = self._nodes[node]
            known.coordinator.unload(index, now=self._facts.clock())
            self._pump(known)

    def delete(self) -> None:
        """The topic is about to be deleted: what waits gets NOT_COORDINATOR."""
        for index in list(self._holders):
            self.unload(index)
        self._was_deleted = True

    # --- time, topics, settings ---

    def next_deadline(self) -> int | None:
        """When a coordinator has something to do next: at once while there is work."""
        deadline = None
        for known in self._nodes.values():
            if known.coordinator.has_work:
                return self._facts.clock()
            deadline = earlier(deadline, known.coordinator.next_deadline())
        return deadline

    def advance(self, now: int) -> None:
        """Run what is due in all coordinators, and a turn of the work of each."""
        for known in list(self._nodes.values()):
            deadline = known.coordinator.next_deadline()
            if deadline is not None and deadline <= now:
                known.coordinator.advance(now)
                self._pump(known)
            if known.coordinator.has_work:
                known.coordinator.work(_TURN, now=now)
                self._pump(known)

    def set_topics(self) -> None:
        """Give the coordinators the cluster's topics, which have changed."""
        topic = self._facts.topics.get(OFFSETS_TOPIC)
        if topic is not None and any(
            known.coordinator.partitions != len(topic.partitions) for known in self._nodes.values()
        ):
            for index in list(self._holders):  # groups are in other partitions now
                self.unload(index)
            self._nodes.clear()
        if not self._nodes:
            return  # the image is made when the first coordinator is
        image = self._facts.image()
        for known in list(self._nodes.values()):
            known.coordinator.set_topics(image, now=self._facts.clock())
            self._pump(known)

    def configure(self, group_id: str) -> None:
        """Give the coordinators a group's settings, which have changed."""
        for known in self._nodes.values():
            self._configure(known.coordinator, group_id)

    def _configure(self, coordinator: GroupCoordinator, group_id: str) -> None:
        settings, now = self._facts.group_settings.get(group_id), self._facts.clock()
        coordinator.set_group_config(group_id, None, now=now)
        if settings is None:
            return
        for group_config in self._facts.config.coordinator.group_configs(settings.own):
            coordinator.set_group_config(group_id, group_config, now=now)

    def close(self) -> None:
        """Drop all coordinators; what waits gets no answer."""
        for known in self._nodes.values():
            known.waiting.clear()
        self._nodes.clear()
        self._holders.clear()
