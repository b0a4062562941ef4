"""The coordinator of drafts 1 and 2: it pings its consumers, and rebalances their groups.

Source: the first draft with its groupsBeingRebalanced, and the detailed design from section 5 on, with the
GroupRegistry and ConsumerRegistry of section 12.1. Strategy: here is what both have: the registry, the topics
that are watched, the failure detection, the queues of rebalances, and the commits. How a group is rebalanced,
what a registration needs, and which messages are sent is each draft's own, in a subclass. Rules: nothing that
a consumer sends raises; a group is rebalanced by one handler at a time, and a handler works on one group at a
time; a group stays when its last consumer has gone, as section 13 of the detailed design says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from coordwire.codec import Message
from coordwire.connection.events import ResponseReceived
from coordwire.designs.drafts.actions import DraftPartition
from coordwire.designs.drafts.draft_broker import DraftBroker
from coordwire.designs.drafts.draft_settings import BrokerSettings
from coordwire.designs.drafts.machine import Procedure, Steps, Wait
from coordwire.designs.drafts.rebalance_queue import RebalanceQueue
from coordwire.designs.drafts.topic_interest import TopicInterest, plan_ownership
from coordwire.designs.drafts.zookeeper_operations import GetChildren
from coordwire.designs.drafts.zookeeper_steps import read_owners, read_partitions, write_nodes
from coordwire.dialects.zookeeper import Offset


@dataclass(slots=True, eq=False)
class ConsumerRegistry:
    """A registered consumer. connection: None once it is closed. ping_ms: how often it is pinged; answer_ms:
    how soon it must answer; max_retries: unanswered pings that are allowed; starts_at: for a partition
    without an offset. pinged: whether a ping waits for its answer; is_rebalancing: whether a rebalance uses
    its channel; pending: the last Stop or Start that it has to answer."""

    group_id: str
    consumer_id: str
    connection: int | None
    interest: TopicInterest
    auto_commit: bool
    starts_at: int
    ping_ms: int
    answer_ms: int
    max_retries: int
    failures: int = 0
    pinged: bool = False
    is_rebalancing: bool = False
    pending: Message | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.group_id, self.consumer_id


@dataclass(slots=True, eq=False)
class GroupRegistry:
    """A group. offsets: of its partitions, as consumers have reported them; unsaved: those that ZooKeeper
    does not have yet. queued: the bit that its rebalance waits in a queue (in draft 1 until it has
    succeeded); handler: which one has it. failed: the running attempt has. waiting: the consumers whose
    answer the attempt waits for. registered: consumers that have registered since the last rebalance that
    succeeded; stopped: an attempt has sent Stop since then. awaited: those that a new coordinator waits
    for, or a rebalance that has broken their connections; awaited_since: since when; awaited_ms: for how long
    at least."""

    group_id: str
    members: dict[str, ConsumerRegistry] = field(default_factory=dict)
    topics: set[str] = field(default_factory=set)
    offsets: dict[DraftPartition, int] = field(default_factory=dict)
    unsaved: dict[DraftPartition, int] = field(default_factory=dict)
    queued: bool = False
    handler: int | None = None
    failed: bool = False
    stopped: bool = False
    waiting: set[str] = field(default_factory=set)
    registered: set[str] = field(default_factory=set)
    awaited: set[str] = field(default_factory=set)
    awaited_since: int = 0
    awaited_ms: int = 0

    def wants(self, topic: str) -> bool:
        """Whether the group is interested in a topic."""
        return topic in self.topics or any(member.interest.wants(topic) for member in self.members.values())


def reported_offsets(message: Any) -> dict[DraftPartition, int]:
    """The offsets in a response, by partition."""
    return {
        DraftPartition(part.topic or "", part.partition or ""): part.offset for part in message.offset_info
    }  # fmt: skip


_COMMITTER = "committer"


class PingingCoordinator(DraftBroker):
    """A broker with the coordinator of drafts 1 and 2.

    closed_fails: whether a Stop or Start that meets a closed connection fails its attempt at once; else its
    watcher has to expire. pings_at_once: whether the first ping is due when a consumer registers; else an
    interval later.
    """

    closed_fails = False
    pings_at_once = False

    def __init__(self, settings: BrokerSettings, *, now: int = 0) -> None:
        super().__init__(settings, now=now)
        self.groups: dict[str, GroupRegistry] = {}
        self._consumers: dict[int, ConsumerRegistry] = {}
        self._queues = [
            RebalanceQueue(settings.rebalance_queue_size) for _ in range(max(settings.rebalance_handlers, 1))
        ]
        self._handled: dict[int, str] = {}
        self._postponed: dict[str, bool] = {}

    # --- what each draft has of its own ---

    def ping_request(self, consumer: ConsumerRegistry) -> Message:
        raise NotImplementedError

    def find_handler(self, group: GroupRegistry) -> int:
        """Which handler's queue a group goes to."""
        raise NotImplementedError

    def rebalance(self, group: GroupRegistry) -> Steps:
        """One attempt; gives whether it succeeded."""
        raise NotImplementedError

    def on_dequeued(self, group: GroupRegistry) -> None:
        """A handler has taken a group from its queue."""

    def on_rebalanced(self, group: GroupRegistry, succeeded: bool) -> None:
        """A handler is done with a group."""

    def on_startup(self, office: int, group_ids: list[str]) -> Steps:
        """What an elected coordinator does with the groups of an office that ZooKeeper knows."""
        raise NotImplementedError

    # --- startup and the end of the office ---

    def on_elected(self, office: int) -> None:
        self.run(_startup(office), self._start_up(office))

    def starts_up(self, group_id: str) -> bool:
        """Whether it still reads what ZooKeeper knows of the groups of an office, of which this is one."""
        return self.runs(_startup(self.office_of(group_id)))

    def _start_up(self, office: int) -> Procedure:
        """coordinatorStartup: read the topics and watch them, then the groups."""
        yield from self.read_topics()
        names = yield GetChildren("/consumers")
        yield from self.on_startup(office, [
            name for name in names.children
            if self.office_of(name) == office and name not in ("coordinator", "coordinators")
        ])  # fmt: skip
        self.watch_topics()

    def groups_of(self, office: int) -> list[GroupRegistry]:
        """The groups of an office that it knows."""
        return [group for name, group in self.groups.items() if self.office_of(name) == office]

    def on_resigned(self, office: int) -> None:
        """The state is cleared: a consumer that is not known can be neither pinged nor started, so its
        connection goes."""
        self.end(_startup(office))
        groups = {group.group_id: group for group in self.groups_of(office)}
        for number, queue in enumerate(self._queues):
            if not self.offices or self._handled.get(number) in groups:
                self.end(("handler", str(number)))
                self._handled.pop(number, None)
            queue.remove(groups)
            if queue.groups and not self.runs(("handler", str(number))):
                self.run(("handler", str(number)), self._handle(number))
        for connection, consumer in list(self._consumers.items()):
            if consumer.group_id in groups:
                del self._consumers[connection]
                self.disconnect(connection)
        for name, group in groups.items():
            self.end(("commit", name))
            self.end(("delete", name))
            for consumer in group.members.values():
                self._cancel_timers(consumer)
            del self.groups[name]
        if not self.offices:
            self.drop_topics()
            self.cancel_timer(_COMMITTER)

    def _cancel_timers(self, consumer: ConsumerRegistry) -> None:
        for kind in ("ping", "pong", "answer"):
            self.cancel_timer((kind, *consumer.key))

    # --- topics ---

    def on_topics_changed(self, topics: set[str]) -> None:
        """TopicChangeListener and TopicPartitionChangeListener: rebalance the groups that are affected."""
        for group in self.groups.values():
            if any(group.wants(topic) for topic in topics):
                self.try_rebalance(group)

    # --- connections ---

    def closed(self, connection: int) -> None:
        consumer = self._consumers.pop(connection, None)
        if consumer is not None and consumer.connection == connection:
            consumer.connection = None
            self.on_consumer_closed(consumer)

    def on_consumer_closed(self, consumer: ConsumerRegistry) -> None:
        """A consumer's connection ended."""

    def send_to(self, consumer: ConsumerRegistry, message: Message) -> bool:
        """Send a consumer a request; False if its connection is closed."""
        if consumer.connection is None:
            return False
        self.send(consumer.connection, message)
        return True

    def on_response(self, connection: int, event: ResponseReceived[Any]) -> None:
        response: Any = event.response
        consumer = self._consumers.get(connection)
        handler = getattr(self, f"_on_{type(response).__name__}", None)
        if consumer is None:
            return  # it was removed while its answer was on the way
        if handler is None:
            self._out_of_state(connection, response)
        else:
            handler(consumer, response, event.request.message)

    # --- registration ---

    def register(self, connection: int, consumer: ConsumerRegistry) -> GroupRegistry:
        """Take up a consumer that was accepted, and begin to ping it."""
        group = self.groups.get(consumer.group_id)
        if group is None:
            group = self.groups[consumer.group_id] = GroupRegistry(consumer.group_id)
        group.members[consumer.consumer_id] = consumer
        group.topics |= set(consumer.interest.streams(self.partitions))
        group.registered.add(consumer.consumer_id)
        self._consumers[connection] = consumer
        self._schedule_ping(consumer, 0 if self.pings_at_once else consumer.ping_ms)
        return group

    def is_known(self, consumer: ConsumerRegistry) -> bool:
        """Whether a registration is still the one that counts."""
        group = self.groups.get(consumer.group_id)
        return group is not None and group.members.get(consumer.consumer_id) is consumer

    def remove(self, consumer: ConsumerRegistry) -> None:
        """Drop a consumer and close its connection. A rebalance that waits for it has failed."""
        self._cancel_timers(consumer)
        if consumer.connection is not None:
            self._consumers.pop(consumer.connection, None)
            self.disconnect(consumer.connection)
            consumer.connection = None
        if self.is_known(consumer):
            group = self.groups[consumer.group_id]
            del group.members[consumer.consumer_id]
            if consumer.consumer_id in group.waiting:
                self.fail_attempt(consumer)  # its answer will not come

    # --- failure detection ---

    def _schedule_ping(self, consumer: ConsumerRegistry, delay_ms: int) -> None:
        self.after(("ping", *consumer.key), delay_ms, lambda: self._ping(consumer))

    def _ping(self, consumer: ConsumerRegistry) -> None:
        """The scheduler's turn for one consumer: ping it unless its channel is held, or a ping waits."""
        if not consumer.is_rebalancing and not consumer.pinged:
            self.send_to(consumer, self.ping_request(consumer))
            consumer.pinged = True
            self.after(("pong", *consumer.key), consumer.answer_ms, lambda: self._unanswered(consumer))
        # After the watcher, which so comes first where both are due.
        self._schedule_ping(consumer, consumer.ping_ms)

    def _unanswered(self, consumer: ConsumerRegistry) -> None:
        """The watcher of a ping expired."""
        consumer.pinged = False
        self.count_failure(consumer)

    def count_failure(self, consumer: ConsumerRegistry) -> None:
        consumer.failures += 1
        if consumer.failures > consumer.max_retries and self.is_known(consumer):
            self.note("ConsumerFailed", f"{consumer.group_id}/{consumer.consumer_id}")
            self.on_consumer_failed(consumer)

    def on_consumer_failed(self, consumer: ConsumerRegistry) -> None:
        """Remove the consumer, and rebalance what is left of its group."""
        self.remove(consumer)
        group = self.groups[consumer.group_id]
        if group.members:
            self.try_rebalance(group)
        elif self.settings.delete_empty_groups:
            self.run(("delete", group.group_id), self._delete(group))

    def _delete(self, group: GroupRegistry) -> Procedure:
        """Section 13, "Deleting Group Registries": once its offsets are written and no handler has it."""
        while self.runs(("commit", group.group_id)) or group.unsaved:
            self.start_commit(group)
            yield Wait(self.now + self.settings.offset_commit_interval_ms)
        is_idle = not group.members and not group.queued and group.handler is None
        if is_idle and self.groups.get(group.group_id) is group:
            del self.groups[group.group_id]

    def answered_ping(self, consumer: ConsumerRegistry, response: Any) -> None:
        """Clear the watcher, and keep the offsets."""
        self.cancel_timer(("pong", *consumer.key))
        consumer.pinged = False
        consumer.failures = 0
        self.keep_offsets(consumer, response)

    # --- offsets ---

    def keep_offsets(self, consumer: ConsumerRegistry, response: Any) -> None:
        """Record the offsets of a response, of partitions that exist."""
        group = self.groups.get(consumer.group_id)
        if group is not None and consumer.auto_commit:
            self.record_offsets(group, response)

    def record_offsets(self, group: GroupRegistry, message: Any) -> None:
        """Keep the offsets of a message until they are written."""
        for partition, offset in reported_offsets(message).items():
            if self.exists(partition):
                group.offsets[partition] = group.unsaved[partition] = offset

    def commit(self, group: GroupRegistry) -> Steps:
        """Write the offsets that ZooKeeper does not have yet."""
        unsaved, group.unsaved = group.unsaved, {}
        yield from write_nodes({
            Offset.path(group.group_id, *partition): Offset(offset).build()
            for partition, offset in unsaved.items()
        })  # fmt: skip

    def start_committer(self) -> None:
        """The committer thread: it writes in an interval what is not written yet."""
        self.after(_COMMITTER, self.settings.offset_commit_interval_ms, self._commit_all_groups)

    def _commit_all_groups(self) -> None:
        for group in self.groups.values():
            self.start_commit(group)
        self.start_committer()

    def start_commit(self, group: GroupRegistry) -> None:
        """Commit beside whatever else is under way."""
        if group.unsaved and not self.runs(("commit", group.group_id)):
            self.run(("commit", group.group_id), self._commit_all(group))

    def _commit_all(self, group: GroupRegistry) -> Procedure:
        while group.unsaved:
            yield from self.commit(group)

    # --- rebalances ---

    def try_rebalance(self, group: GroupRegistry) -> None:
        """Put a group into a handler's queue, unless its bit is set (compare and set)."""
        if group.queued or self.postpones(group):
            return
        group.queued = True
        number = self.find_handler(group)
        if not self._queues[number].put(group.group_id):
            self.note("RebalanceQueueFull", f"{group.group_id} waits for handler {number}")
        key = ("handler", str(number))
        if not self.runs(key):
            self.run(key, self._handle(number))

    def postpones(self, group: GroupRegistry) -> bool:
        """Whether the rebalancing of a group is disabled; it is rebalanced once it is enabled."""
        if group.group_id in self._postponed:
            self._postponed[group.group_id] = True
            return True
        return False

    def disable_rebalancing(self, group_id: str) -> None:
        """Rebalance a group no more, as while all its consumers are restarted (KAFKA-364). This broker alone
        knows of it: another one that is elected rebalances the group."""
        self._postponed.setdefault(group_id, False)

    def enable_rebalancing(self, group_id: str) -> None:
        """Rebalance a group as before, at once if there was a reason meanwhile."""
        if self._postponed.pop(group_id, False) and group_id in self.groups:
            self.try_rebalance(self.groups[group_id])

    def _handle(self, number: int) -> Procedure:
        """One handler: its queue, group by group, each with its retries."""
        queue = self._queues[number]
        yield Wait(self.now)  # a handler is a thread of its own: it begins when the caller is done
        while (group_id := queue.take()) is not None:
            group = self.groups[group_id]
            group.handler = number
            self._handled[number] = group.group_id
            self.on_dequeued(group)
            yield from self._rebalance_until_done(group)
            del self._handled[number]

    def _rebalance_until_done(self, group: GroupRegistry) -> Steps:
        retries = self.settings.max_rebalance_retries
        for attempt in count() if self.settings.endless_retries else range(retries + 1):
            if attempt:
                yield from self.back_off(group)
            group.failed = False
            if (yield from self.rebalance(group)):
                self.on_rebalanced(group, True)
                return
            self.note("RebalanceAttemptFailed", f"{group.group_id}: attempt {attempt + 1}")
        self.note("ConsumerRebalanceFailedException", f"{group.group_id} after {retries} retries")
        self.on_rebalanced(group, False)

    def back_off(self, group: GroupRegistry) -> Steps:
        """Wait between two attempts."""
        return
        yield

    def plan(self, members: Mapping[str, ConsumerRegistry]) -> Steps:
        """Steps 1 and 3: the new ownership, that of ZooKeeper, and the partitions of the group's topics."""
        subscribed = {name: member.interest.streams(self.partitions) for name, member in members.items()}
        topics = sorted({topic for streams in subscribed.values() for topic in streams})
        partitions = yield from read_partitions(topics)
        group_id = next(iter(members.values())).group_id
        owners = yield from read_owners(group_id, topics)
        return plan_ownership(subscribed, partitions), owners, partitions

    def broadcast(
        self,
        group: GroupRegistry,
        members: Mapping[str, ConsumerRegistry],
        messages: Mapping[str, Message],
    ) -> Steps:
        """Send each consumer its request, and wait until all have answered; False if one watcher expired or
        the attempt failed otherwise. members: those that the attempt began with; one that has registered
        again since has not been stopped, so it gets nothing and the attempt fails."""
        until = self.now + len(messages) * self.settings.handler_us // 1000
        while self.now < until:
            yield Wait(until)
        group.waiting = set(messages)
        for name, message in messages.items():
            consumer = members[name]
            is_same = group.members.get(name) is consumer
            if not is_same or (not self.send_request(consumer, message) and self.closed_fails):
                group.failed = True
        while group.waiting and not group.failed:
            yield Wait()
        return not group.failed

    def send_request(self, consumer: ConsumerRegistry, message: Message) -> bool:
        """Send a Stop or Start, and watch for its answer."""
        consumer.pending = message
        key = ("answer", *consumer.key)
        self.after(key, consumer.answer_ms, lambda: self._expired(consumer))
        return self.send_to(consumer, message)

    def _expired(self, consumer: ConsumerRegistry) -> None:
        """The watcher of a Stop or Start expired: the attempt has failed, and the next one is without the
        consumer if that was once too often."""
        self.on_answer_expired(consumer)
        if self.is_known(consumer):  # else its removal has failed the attempt
            self.fail_attempt(consumer)

    def on_answer_expired(self, consumer: ConsumerRegistry) -> None:
        """What else an expired Stop or Start means."""

    def fail_attempt(self, consumer: ConsumerRegistry) -> None:
        group = self.groups.get(consumer.group_id)
        if group is not None:
            group.failed = True
            self._wake_handler(group)

    def answered(self, consumer: ConsumerRegistry, response: Any, request: Message) -> None:
        """A Stop or Start was answered. One that is not the last is of an earlier attempt: the answer is
        late, and the last one is still to come."""
        group = self.groups.get(consumer.group_id)
        if group is None or request is not consumer.pending:
            return
        self.cancel_timer(("answer", *consumer.key))
        if response.error_code:
            self.note("ConsumerRefused", f"{consumer.consumer_id}: error {response.error_code}")
            group.failed = True
        group.waiting.discard(consumer.consumer_id)
        if group.failed or not group.waiting:
            self._wake_handler(group)

    def _wake_handler(self, group: GroupRegistry) -> None:
        if group.handler is not None:
            self.wake(("handler", str(group.handler)))


def _startup(office: int) -> tuple[str, str]:
    return "startup", str(office)


def split_plan(plan: Mapping[DraftPartition, str]) -> dict[str, dict[str, list[DraftPartition]]]:
    """A plan by consumer and thread."""
    by_consumer: dict[str, dict[str, list[DraftPartition]]] = {}
    for partition, thread in plan.items():
        by_consumer.setdefault(thread.rpartition("-")[0], {}).setdefault(thread, []).append(partition)
    return by_consumer
