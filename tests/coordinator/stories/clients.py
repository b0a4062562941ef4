"""Consumers as clients of a coordinator: they join, heartbeat, follow, leave; and they die, freeze, restart.

Strategy: one object a process. It sends its next request when the last one is answered. Rules: what a client
does later it does only if it is alive; a frozen one does it when it goes on.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from coordwire.enums import ErrorCode
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from coordwire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequestTopicPartitions
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.leave_group import MemberIdentity
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.sync_group import SyncGroupRequestAssignment
from tests.coordinator.stories.world import Connection, World, names
from tests.timeline.script import assignment, subscription

Partition = tuple[str, int]

AWAY = (
    ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE,
)  # fmt: skip
FATAL = (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNKNOWN_SERVER_ERROR)
LOST = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_MEMBER_EPOCH)


class Client:
    """One process. instance_id: a static member's name; slow: how long its callbacks take at most."""

    def __init__(
        self,
        world: World,
        name: str,
        group_id: str,
        topics: Sequence[str],
        instance_id: str | None,
        slow: int,
    ) -> None:
        self.world, self.name, self.group_id = world, name, group_id
        self.topics, self.instance_id, self.slow = tuple(topics), instance_id, slow
        number = sum(name.encode()) % 250 + 1
        self.connection = Connection(name, f"198.51.100.{number}")
        self.alive, self.leaving = True, False
        self.member_id = ""
        self._owned: frozenset[Partition] = frozenset()
        self.is_frozen = False
        self._postponed: list[Callable[[], None]] = []

    @property
    def owned(self) -> frozenset[Partition]:
        """The partitions that it consumes."""
        return self._owned

    @owned.setter
    def owned(self, partitions: frozenset[Partition]) -> None:
        self._owned = partitions
        self.world.owns(self, partitions)

    # --- processes ---

    def later(self, delay: int, action: Callable[[], None]) -> None:
        def due() -> None:
            if self.is_frozen:
                self._postponed.append(action)
            elif self.alive:
                action()

        self.world.after(delay, due)

    def ask(self, request: Any, version: int, then: Callable[[Any], None]) -> None:
        def answered(response: Any) -> None:
            self.later(0, lambda: then(response))

        self.world.ask_of(self, request, version, answered)

    def die(self) -> None:
        """Without a word."""
        self.alive = False
        self.world.ends(self)

    def freeze(self, duration: int) -> None:
        self.is_frozen = True

        def thaw() -> None:
            self.is_frozen = False
            postponed, self._postponed = self._postponed, []
            for action in postponed:
                self.later(0, action)

        self.world.after(duration, thaw)

    def pause(self) -> int:
        return self.world.random.randint(0, self.slow)

    def backoff(self) -> int:
        return self.world.random.randint(100, 300)

    # --- what members do ---

    def start(self) -> None:
        raise NotImplementedError

    def subscribe(self, topics: Sequence[str]) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        """Stop properly, once the last request is answered."""
        self.leaving = True

    def metadata_changed(self) -> None:
        """The cluster's topics changed."""

    def commit(self, generation: int, version: int) -> None:
        topics = [
            OffsetCommitRequestTopic(
                name=topic, topic_id=self.world.topics[topic].id,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=number, committed_offset=self.world.position(topic, number)
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in names(self.owned).items()
            if topic in self.world.topics
        ]  # fmt: skip
        if topics and self.alive and not self.connection.busy:
            request = OffsetCommitRequest(
                group_id=self.group_id, member_id=self.member_id, group_instance_id=self.instance_id,
                generation_id_or_member_epoch=generation, topics=topics,
            )  # fmt: skip
            self.ask(request, version, lambda _: None)


class ClassicClient(Client):
    """A member of the classic protocol. cooperative: it keeps its partitions while it joins (KIP-429)."""

    def __init__(
        self, *args: Any, cooperative: bool, session_ms: int, interval_ms: int, rebalance_ms: int,
        old: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(*args)
        self.cooperative = cooperative
        self.session_ms, self.interval_ms, self.rebalance_ms = session_ms, interval_ms, rebalance_ms
        self.generation = -1
        self.versions = (5, 3, 3, 3) if old else (9, 5, 4, 5)  # JoinGroup, SyncGroup, Heartbeat, LeaveGroup
        self._rejoins = False
        self._joining = True
        self._term = 0

    def start(self) -> None:
        self._join()

    def subscribe(self, topics: Sequence[str]) -> None:
        self.topics = tuple(topics)
        self._rejoins = True

    def metadata_changed(self) -> None:
        if self.leads:
            self._rejoins = True

    leads = False

    # --- joining ---

    def _join(self) -> None:
        self._term += 1
        self._rejoins, self._joining = False, True
        if not self.cooperative:
            self.owned = frozenset()
        metadata = subscription(*self.topics, owned=names(self.owned))
        name = "cooperative-sticky" if self.cooperative else "range"
        request = JoinGroupRequest(
            group_id=self.group_id, session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.rebalance_ms, member_id=self.member_id,
            group_instance_id=self.instance_id, protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata)],
        )  # fmt: skip
        self.ask(request, self.versions[0], self._joined)

    def _joined(self, response: Any) -> None:
        code = response.error_code
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self._join()
        elif code in AWAY:
            self.later(self.backoff(), self._join)
        elif code in FATAL:
            self.die()
        elif code:
            self._lost(code)
        elif self.leaving:
            self.member_id, self.generation = response.member_id, response.generation_id
            self._leave()
        else:
            self.member_id, self.generation = response.member_id, response.generation_id
            self.leads = response.leader == self.member_id
            shares = self._shares(response) if response.members and not response.skip_assignment else []
            self._sync(shares, response.protocol_name)

    def _lost(self, code: int) -> None:
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        if code in LOST:
            self.generation, self.owned = -1, frozenset()
        self.later(self.backoff() if code not in LOST else 1, self._join)

    def _shares(self, response: Any) -> list[SyncGroupRequestAssignment]:
        """What the leader gives to each: ranges; of what another still has only what that gives up."""
        wants, owners = {}, {}
        for name in response.members:
            subscription = ConsumerProtocolSubscription.decode(name.metadata[2:], version=1)
            wants[name.member_id] = subscription.topics
            for part in subscription.owned_partitions:
                owners.update({(part.topic, number): name.member_id for number in part.partitions})
        target: dict[str, set[Partition]] = {name: set() for name in wants}
        for topic in sorted({topic for topics in wants.values() for topic in topics}):
            takers = sorted(name for name, topics in wants.items() if topic in topics)
            known = self.world.topics.get(topic)
            for number in range(known.partitions if known else 0):
                target[takers[number * len(takers) // (known.partitions if known else 1)]].add(
                    (topic, number)
                )
        if self.cooperative:
            for name, partitions in target.items():
                target[name] = {part for part in partitions if owners.get(part, name) == name}
        return [
            SyncGroupRequestAssignment(member_id=name, assignment=assignment(names(partitions)))
            for name, partitions in target.items()
        ]

    def _sync(self, shares: list[SyncGroupRequestAssignment], protocol: str | None) -> None:
        request = SyncGroupRequest(
            group_id=self.group_id, generation_id=self.generation, member_id=self.member_id,
            group_instance_id=self.instance_id, protocol_type="consumer", protocol_name=protocol,
            assignments=shares,
        )  # fmt: skip
        self.ask(request, self.versions[1], self._synced)

    def _synced(self, response: Any) -> None:
        code = response.error_code
        if code == ErrorCode.REBALANCE_IN_PROGRESS or code in AWAY:
            self.later(1 if code not in AWAY else self.backoff(), self._join)
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            self.die()
        elif code:
            self._lost(code)
        else:
            self._has(response.assignment)

    def _has(self, data: bytes) -> None:
        assigned: set[Partition] = set()
        if data:
            read = ConsumerProtocolAssignment.decode(data[2:], version=1)
            assigned = {(part.topic, n) for part in read.assigned_partitions for n in part.partitions}
        revokes = self.cooperative and bool(self.owned - assigned)
        self.owned = frozenset(assigned)
        self._joining = False
        if revokes:
            self.later(self.pause(), self._join)
        else:
            self._term += 1
            self._wait(self._term)

    # --- heartbeats ---

    def _wait(self, term: int) -> None:
        self.later(self.interval_ms, lambda: self._beat(term))

    def _beat(self, term: int) -> None:
        if term != self._term or self._joining:
            return
        if self.leaving:
            self._leave()
            return
        if self._rejoins and not self.connection.busy:
            self._join()
            return
        if self.connection.busy:
            self._wait(term)
            return
        if self.world.random.random() < 0.1:
            self.commit(self.generation, 8)
            self.later(20, lambda: self._beat(term))
            return
        request = HeartbeatRequest(
            group_id=self.group_id, generation_id=self.generation, member_id=self.member_id,
            group_instance_id=self.instance_id,
        )  # fmt: skip
        self.ask(request, self.versions[2], lambda response: self._alive(response.error_code, term))

    def _alive(self, code: int, term: int) -> None:
        if term != self._term:
            return
        if code in AWAY or not code:
            self._wait(term)
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._joining = True
            self.later(self.pause(), self._leave if self.leaving else self._join)
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            self.die()
        else:
            self._joining = True
            self._lost(code)

    def _leave(self) -> None:
        if self.instance_id is not None:
            self.die()  # a static member doesn't say that it goes
            return
        self.owned = frozenset()
        identity = MemberIdentity(
            member_id=self.member_id, group_instance_id=None, reason="the consumer closed"
        )
        request = LeaveGroupRequest(group_id=self.group_id, members=[identity])
        self.ask(request, self.versions[3], lambda _: self.die())


class ConsumerClient(Client):
    """A member of KIP-848. interval_ms: until the coordinator says another."""

    version = 1
    reports_at_once = False
    """Whether it reports at once what it has when it is given just that."""

    def __init__(self, *args: Any, rebalance_ms: int, interval_ms: int, regex: str | None = None) -> None:
        super().__init__(*args)
        self.rebalance_ms, self.interval_ms = rebalance_ms, interval_ms
        self.regex = regex
        self.member_id = _java_id(self.world.new_id())
        self.epoch = 0
        self.for_now = False
        self.says = True
        self.reports = False
        self._target: frozenset[Partition] | None = None
        self._due = 0

    def start(self) -> None:
        self._beat(self._due)

    def subscribe(self, topics: Sequence[str]) -> None:
        self.topics, self.regex = tuple(topics), None
        self.says = True

    def leave(self) -> None:
        super().leave()
        self.for_now = self.instance_id is not None and self.world.random.random() < 0.7

    def _beat(self, due: int) -> None:
        if due != self._due:
            return
        self._due += 1
        if self.connection.busy:
            self._wait(5)
            return
        if self.leaving:
            self._leave()
            return
        if self.epoch > 0 and self.world.random.random() < 0.08 and self._target is None:
            self.commit(self.epoch, 9)
            self._wait(20)
            return
        request = self.heartbeat(joins=self.epoch == 0)
        self.says = self.reports = False
        self.ask(request, self.version, self._answered)

    def heartbeat(self, *, joins: bool) -> Any:
        """The request: what changed since the last one, or all when it joins."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=self.epoch,
            instance_id=self.instance_id, rebalance_timeout_ms=self.rebalance_ms if joins else -1,
        )  # fmt: skip
        if joins or self.says:
            request.subscribed_topic_names = list(self.topics)
            request.subscribed_topic_regex = (
                self.regex if self.regex is not None else ("" if not joins else None)
            )
        if joins:
            request.topic_partitions = []
        elif self.reports:
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequestTopicPartitions(
                    topic_id=self.world.topics[topic].id, partitions=numbers
                )
                for topic, numbers in names(self.owned).items()
                if topic in self.world.topics
            ]
        return request

    def _wait(self, delay: int) -> None:
        due = self._due
        self.later(delay, lambda: self._beat(due))

    def _answered(self, response: Any) -> None:
        code = response.error_code
        if not code:
            self.epoch, self.interval_ms = response.member_epoch, response.heartbeat_interval_ms
            assigned = self.assigned(response)
            if assigned is None:
                self._wait(self.interval_ms)
            else:
                self._take_assignment(assigned)
        elif code in LOST:
            self.epoch, self.owned, self._target = 0, frozenset(), None
            self._wait(1)
        elif code in FATAL:
            self.die()
        elif code == ErrorCode.UNRELEASED_INSTANCE_ID:
            self._wait(self.interval_ms)
        else:
            self.says = self.reports = self.epoch > 0
            self._wait(self.backoff())

    def assigned(self, response: Any) -> frozenset[Partition] | None:
        """What an answer assigns; None for no change."""
        if response.assignment is None:
            return None
        ids = {topic.id: topic.name for topic in self.world.topics.values()}
        return frozenset(
            (ids[part.topic_id], n)
            for part in response.assignment.topic_partitions
            for n in part.partitions
            if part.topic_id in ids
        )

    def _take_assignment(self, target: frozenset[Partition]) -> None:
        if target == self.owned and self._target is None and not self.reports_at_once:
            self.reports = True
            self._wait(self.interval_ms)
            return
        running = self._target is not None
        self._target = target
        if not running:
            self.later(self.pause(), self._take_up)
        self._wait(self.interval_ms)

    def _take_up(self) -> None:
        if self._target is None:
            return  # it was fenced meanwhile
        self.owned, self._target = self._target, None
        self.reports = True
        self._due += 1
        self._wait(1)

    def leaving_heartbeat(self) -> Any:
        """The request with which it leaves."""
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, instance_id=self.instance_id,
            member_epoch=-2 if self.for_now else -1,
        )  # fmt: skip

    def _leave(self) -> None:
        self.owned = frozenset()
        self.ask(self.leaving_heartbeat(), self.version, lambda _: self.die())


def _java_id(text: str) -> str:
    member_id = base64.urlsafe_b64encode(UUID(text).bytes).decode().rstrip("=")
    return "a" + member_id[1:] if member_id.startswith("-") else member_id
