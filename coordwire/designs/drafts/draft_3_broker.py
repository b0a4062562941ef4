"""A broker of the new consumer's draft, with its coordinator.

Source: the draft of the new consumer's protocol ("Consumer Failure Handling", "Coordinator Discovery",
"Consumer (re)Join-Group"). Strategy: a group is steady or it rebalances; while it rebalances, joins wait for
their answers, and pings are answered with an error that sends the consumer back to join. Rules: the
coordinator gives the ids; a member that neither pings nor joins for its session timeout has failed. The
document elides when a rebalance is triggered and how it runs: see docs/explanation/drafts.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from coordwire.connection.events import RequestReceived
from coordwire.designs.drafts.actions import DraftPartition
from coordwire.designs.drafts.draft_broker import DraftBroker
from coordwire.designs.drafts.draft_settings import BrokerSettings, DraftError
from coordwire.designs.drafts.join_group_body import JoinGroupBody
from coordwire.designs.drafts.machine import Procedure
from coordwire.designs.drafts.topic_interest import partition_order, plan_ownership
from coordwire.errors import DecodeError
from coordwire.messages.draft_3 import (
    Draft3Broker,
    Draft3JoinGroupRequest,
    Draft3JoinGroupResponse,
    Draft3MetadataRequest,
    Draft3MetadataResponse,
    Draft3Partition,
    Draft3PingRequest,
    Draft3PingResponse,
    Draft3TopicAndPartition,
    Draft3TopicMetadata,
)

__all__ = ["NewConsumerBroker"]

_STARTUP = "startup"
_UNKNOWN_TOPIC = 3


@dataclass(slots=True, eq=False)
class _Member:
    """A consumer of a group. joining: its join that waits for an answer, and the connection."""

    group_id: str
    consumer_id: str
    session_ms: int
    topics: frozenset[str]
    joining: tuple[int, RequestReceived] | None = None

    @property
    def timer(self) -> tuple[str, ...]:
        return "session", self.group_id, self.consumer_id


@dataclass(slots=True, eq=False)
class _Group:
    group_id: str
    generation: int = 0
    rebalancing: bool = False
    members: dict[str, _Member] = field(default_factory=dict)


class NewConsumerBroker(DraftBroker):
    """A broker that speaks draft-3."""

    def __init__(self, settings: BrokerSettings, *, now: int = 0) -> None:
        super().__init__(settings, now=now)
        self.groups: dict[str, _Group] = {}
        self._joining: dict[int, _Member] = {}
        self._metadata: dict[str, tuple[list[str], Draft3TopicMetadata]] = {}
        self._ids = 0

    def on_start(self) -> None:
        self.groups = {}
        self._joining = {}
        self._ids = 0
        super().on_start()
        self.run(_STARTUP, self._start_up())

    def _start_up(self) -> Procedure:
        yield from self.read_topics()
        self.watch_topics()

    def on_resigned(self) -> None:
        """What it knows of groups is void: joins that wait are refused, and so is the next ping."""
        for group in self.groups.values():
            self.cancel_timer(("rebalance", group.group_id))
            for member in group.members.values():
                self.cancel_timer(member.timer)
                self._answer_join(group, member, DraftError.NOT_COORDINATOR)
        self.groups = {}

    # --- coordinator discovery ---

    def _on_Draft3MetadataRequest(
        self, connection: int, event: RequestReceived, request: Draft3MetadataRequest
    ) -> None:
        known = self.coordinator_id in self.brokers and self.coordinator_id <= 0x7FFF
        response = Draft3MetadataResponse(
            brokers=[
                Draft3Broker(node_id=number, host=address.host, port=address.port)
                for number, address in sorted(self.brokers.items())
            ],
            topics_metadata=[self._topic(name) for name in dict.fromkeys(request.topics)],
            coordinator_ids=[self.coordinator_id if known else -1] * len(request.group_ids),
        )
        self.send(connection, response, event)

    def _topic(self, name: str) -> Draft3TopicMetadata:
        """What the answer has of a topic; made anew when its partitions are others."""
        partitions = self.partitions.get(name)
        cached = self._metadata.get(name)
        if cached is not None and cached[0] is partitions:
            return cached[1]
        topic = self._make_topic(name, partitions)
        if partitions is not None:
            self._metadata[name] = partitions, topic
        return topic

    def _make_topic(self, name: str, ids: list[str] | None) -> Draft3TopicMetadata:
        if ids is None:
            return Draft3TopicMetadata(error_code=_UNKNOWN_TOPIC, name=name)
        partitions = []
        for partition in sorted(ids, key=partition_order):
            leader, _, number = partition.rpartition("-")
            partitions.append(Draft3Partition(
                partition_index=int(number), leader_id=int(leader), replica_nodes=[int(leader)],
                isr_nodes=[int(leader)],
            ))  # fmt: skip
        return Draft3TopicMetadata(name=name, partitions=partitions)

    # --- pings ---

    def _on_Draft3PingRequest(
        self, connection: int, event: RequestReceived, request: Draft3PingRequest
    ) -> None:
        self.send(connection, Draft3PingResponse(error_code=self._ping(request)), event)

    def _ping(self, request: Draft3PingRequest) -> DraftError:
        if not self.coordinates:
            return DraftError.NOT_COORDINATOR
        group = self.groups.get(request.group_id or "")
        member = None if group is None else group.members.get(request.consumer_id or "")
        if group is None or member is None:
            return DraftError.UNKNOWN_CONSUMER
        if member.joining is None:
            self._expect(member)
        return DraftError.REBALANCE_IN_PROGRESS if group.rebalancing else DraftError.NONE

    def _expect(self, member: _Member) -> None:
        """The member is alive now."""
        self.after(member.timer, member.session_ms, lambda: self._fail(member))

    def _fail(self, member: _Member) -> None:
        """Consumer failure handling: remove the consumer, and trigger a rebalance."""
        group = self.groups.get(member.group_id)
        if group is None or group.members.get(member.consumer_id) is not member:
            return
        self.cancel_timer(member.timer)
        self.note("ConsumerFailed", f"{member.group_id}/{member.consumer_id}")
        del group.members[member.consumer_id]
        self._trigger(group)

    def closed(self, connection: int) -> None:
        """A join whose connection is gone cannot be answered; its session runs from now."""
        member = self._joining.pop(connection, None)
        if member is not None and member.joining is not None and member.joining[0] == connection:
            member.joining = None
            self._expect(member)

    # --- joins ---

    def _on_Draft3JoinGroupRequest(
        self, connection: int, event: RequestReceived, request: Draft3JoinGroupRequest
    ) -> None:
        error = DraftError.NONE
        try:
            body = JoinGroupBody.decode(bytes(request.rest))
        except DecodeError as refusal:
            self.note("MalformedJoin", str(refusal))
            body, error = JoinGroupBody("", "", 0, ()), DraftError.INVALID_REGISTRATION
        if not error:
            error = self._check(body)
        if error:
            response = Draft3JoinGroupResponse(
                error_code=error, group_id=body.group_id, consumer_id=body.consumer_id
            )
            self.send(connection, response, event)
            return
        group = self.groups.setdefault(body.group_id, _Group(body.group_id))
        member = group.members.get(body.consumer_id)
        if member is None:
            self._ids += 1
            name = f"{body.group_id}-{self.settings.broker_id}-{self.session}-{self._ids}"
            member = group.members[name] = _Member(body.group_id, name, 0, frozenset())
        elif member.joining is not None:
            self._answer_join(group, member, DraftError.DUPLICATE_CONSUMER)  # the newer one counts
        member.session_ms, member.topics = body.session_timeout_ms, frozenset(body.topics)
        member.joining = connection, event
        self._joining[connection] = member
        self.cancel_timer(member.timer)
        self._trigger(group)

    def _check(self, body: JoinGroupBody) -> DraftError:
        if not self.coordinates:
            return DraftError.NOT_COORDINATOR
        if not body.group_id:
            return DraftError.INVALID_GROUP_ID
        if body.session_timeout_ms < max(self.settings.min_session_timeout_ms, 1):
            return DraftError.INVALID_SESSION_TIMEOUT
        return DraftError.NONE

    # --- rebalances ---

    def on_topics_changed(self, topics: set[str]) -> None:
        for group in list(self.groups.values()):
            if any(topics & member.topics for member in group.members.values()):
                self._trigger(group)

    def _trigger(self, group: _Group) -> None:
        """Rebalance: every member has to join again, within the longest session timeout."""
        if not group.rebalancing:
            group.rebalancing = True
            longest = max((member.session_ms for member in group.members.values()), default=0)
            self.after(("rebalance", group.group_id), longest, lambda: self._close_round(group))
        self._complete(group)

    def _close_round(self, group: _Group) -> None:
        """Those that have not joined by now have stopped, as their last ping's answer is too old."""
        for member in [candidate for candidate in group.members.values() if candidate.joining is None]:
            self.cancel_timer(member.timer)
            self.note("ConsumerFailed", f"{member.group_id}/{member.consumer_id}")
            del group.members[member.consumer_id]
        self._complete(group)

    def _complete(self, group: _Group) -> None:
        """Answer all joins with the new generation, once every member has joined."""
        if any(member.joining is None for member in group.members.values()):
            return
        group.rebalancing = False
        self.cancel_timer(("rebalance", group.group_id))
        if not group.members:
            return
        group.generation = (group.generation + 1) & 0x7FFF
        plan = plan_ownership(
            {name: dict.fromkeys(sorted(member.topics & self.partitions.keys()), 1)
             for name, member in group.members.items()},
            self.partitions,
        )  # fmt: skip
        owned: dict[str, list[DraftPartition]] = {}
        for partition, thread in plan.items():
            owned.setdefault(thread.rpartition("-")[0], []).append(partition)
        for member in group.members.values():
            self._answer_join(group, member, DraftError.NONE, owned.get(member.consumer_id, []))
            self._expect(member)

    def _answer_join(
        self, group: _Group, member: _Member, error: DraftError, owned: list[DraftPartition] | None = None
    ) -> None:
        if member.joining is None:
            return
        (connection, event), member.joining = member.joining, None
        self._joining.pop(connection, None)
        self.send(connection, Draft3JoinGroupResponse(
            error_code=error, generation=group.generation, group_id=group.group_id,
            consumer_id=member.consumer_id,
            partitions_to_own=[
                Draft3TopicAndPartition(topic=topic, partition=int(partition.rpartition("-")[2]))
                for topic, partition in owned or ()
            ],
        ), event)  # fmt: skip
