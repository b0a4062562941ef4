"""A broker of the new consumer's draft, with its coordinator.

Source: the draft of the new consumer's protocol ("Consumer Failure Handling", "Coordinator Discovery",
"Consumer (re)Join-Group"). Strategy: a group is steady or it rebalances; while it rebalances, joins wait for
their answers, and pings are answered with an error that sends the consumer back to join. Rules: the
coordinator gives the ids; a join has no field for one, so a connection is its member's that has joined or
pinged over it; a member that neither pings nor joins for its session timeout has failed. The document elides
when a rebalance is triggered and how it runs: see docs/history/drafts.md.

A group's node in ZooKeeper, from which a new coordinator of draft 3 learns its members.

Source: later revisions of the new consumer's page. One (38572008 to 38572009) keeps "the group config and
partition ownership metadata in ZK as a json object", updated when a rebalance is complete and read at a
failover; another (40510090 to 40510091) has the new coordinator load it before it takes pings. None gives
the node's path or keys: these are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coordwire.connection.events import RequestReceived
from coordwire.designs.drafts.actions import DraftPartition
from coordwire.designs.drafts.draft_broker import DraftBroker
from coordwire.designs.drafts.draft_settings import BrokerSettings, DraftError
from coordwire.designs.drafts.machine import Procedure
from coordwire.designs.drafts.topic_interest import partition_order, plan_ownership
from coordwire.designs.drafts.zookeeper_operations import GetChildren, GetData
from coordwire.designs.drafts.zookeeper_steps import write_nodes
from coordwire.dialects.zookeeper import Registration
from coordwire.dialects.zookeeper.checks import built, int32, json_object, list_of, string
from coordwire.errors import DecodeError, EncodeError, Malformed
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


@dataclass(frozen=True, slots=True)
class KnownMember:
    """A member as the node has it. session_ms: its session timeout."""

    session_ms: int
    topics: frozenset[str]
    owned: tuple[DraftPartition, ...]


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """A generation of a group: its members by their ids."""

    generation: int
    members: Mapping[str, KnownMember]

    @staticmethod
    def path(group_id: str) -> str:
        """Raises `EncodeError` for a group id that cannot be in a path."""
        return Registration.path(group_id, "0").rpartition("/ids/")[0] + "/metadata"

    def build(self) -> bytes:
        return built({"version": 1, "generation": self.generation, "members": {
            name: {
                "session_timeout": member.session_ms, "subscribing": sorted(member.topics),
                "owned": [list(partition) for partition in member.owned],
            }
            for name, member in self.members.items()
        }})  # fmt: skip

    @classmethod
    def parse(cls, data: bytes) -> GroupMetadata:
        """Raises `DecodeError`."""
        form = json_object(data, "a GroupMetadata node")
        members = form.get("members")
        if not isinstance(members, dict):
            raise Malformed("expected an object", 0, "members")
        return cls(
            int32(form.get("generation"), "generation"),
            {name: _member(value, f"members.{name}") for name, value in members.items()},
        )


def _member(value: Any, path: str) -> KnownMember:
    if not isinstance(value, dict):
        raise Malformed("expected an object", 0, path)
    session_ms = int32(value.get("session_timeout"), f"{path}.session_timeout")
    topics = list_of(string)(value.get("subscribing"), f"{path}.subscribing")
    owned = list_of(list_of(string))(value.get("owned"), f"{path}.owned")
    if session_ms <= 0 or any(len(pair) != 2 for pair in owned):
        raise Malformed("expected a session timeout above 0, and pairs of a topic and a partition", 0, path)
    return KnownMember(session_ms, frozenset(topics), tuple(DraftPartition(*pair) for pair in owned))


# --- the broker ---


_STARTUP = "startup"
_UNKNOWN_TOPIC = 3
_LONGEST_MS = 0x7FFF_FFFF
"""The longest session timeout; the field has 64 bits."""


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
    """A broker that speaks draft-3.

    loads_groups: as a later revision of the page has it, a group's members are in ZooKeeper before any of
    them gets what it owns, and a new coordinator loads them before it takes pings; else it knows none.
    """

    def __init__(self, settings: BrokerSettings, *, now: int = 0, loads_groups: bool = False) -> None:
        super().__init__(settings, now=now)
        self.loads_groups = loads_groups
        self.groups: dict[str, _Group] = {}
        self._members: dict[int, _Member] = {}
        self._metadata: dict[str, tuple[list[str], Draft3TopicMetadata]] = {}
        self._ids = 0

    def start_coordinator(self) -> None:
        self.groups = {}
        self._members = {}
        self._ids = 0
        super().start_coordinator()
        self.run(_STARTUP, self._start_up())

    def _start_up(self) -> Procedure:
        yield from self.read_topics()
        self.watch_topics()

    def on_elected(self, office: int) -> None:
        if self.loads_groups:
            self.run(_loading(office), self._load(office))

    def _load(self, office: int) -> Procedure:
        """Take up the groups of an office as ZooKeeper has them; each member has its session timeout from now
        on to ping. A group whose partitions are others by now rebalances."""
        yield from self.read_topics()
        names = (yield GetChildren("/consumers")).children
        names = [name for name in names if self.office_of(name) == office]
        outcomes = (yield tuple(GetData(GroupMetadata.path(name)) for name in names)) if names else ()
        for name, outcome in zip(names, outcomes, strict=True):
            try:
                known = GroupMetadata.parse(outcome.data) if outcome.ok else None
            except DecodeError as error:
                self.note("UnreadableNode", f"{name}: {error}")
                continue
            if known is None or not known.members:
                continue
            group = self.groups[name] = _Group(name, known.generation)
            for member_id, at in known.members.items():
                member = group.members[member_id] = _Member(name, member_id, at.session_ms, at.topics)
                self._expect(member)
            if self._plan(group) != {member_id: list(at.owned) for member_id, at in known.members.items()}:
                self._trigger(group)

    def on_resigned(self, office: int) -> None:
        """What it knows of groups is void: joins that wait are refused, and so is the next ping."""
        self.end(_loading(office))
        for group in [group for name, group in self.groups.items() if self.office_of(name) == office]:
            self.end(("store", group.group_id))
            self.cancel_timer(("rebalance", group.group_id))
            for member in group.members.values():
                self.cancel_timer(member.timer)
                self._answer_join(group, member, DraftError.NOT_COORDINATOR)
            del self.groups[group.group_id]

    # --- coordinator discovery ---

    def _on_Draft3MetadataRequest(
        self, connection: int, event: RequestReceived, request: Draft3MetadataRequest
    ) -> None:
        response = Draft3MetadataResponse(
            brokers=[
                Draft3Broker(node_id=number, host=address.host, port=address.port)
                for number, address in sorted(self.brokers.items())
            ],
            topics_metadata=[self._topic(name) for name in dict.fromkeys(request.topics)],
            coordinator_ids=[self._int16_coordinator(name) for name in request.group_ids],
        )
        self.send(connection, response, event)

    def _int16_coordinator(self, group_id: str) -> int:
        number = self.coordinator_of(group_id)
        return number if number <= 0x7FFF else -1

    def _topic(self, name: str) -> Draft3TopicMetadata:
        """The part of the answer for a topic; made again when its partitions are others."""
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
        self.send(connection, Draft3PingResponse(error_code=self._ping(connection, request)), event)

    def _takes(self, group_id: str | None) -> bool:
        """Whether it coordinates a group, and has loaded what is known of it."""
        return self.coordinates_group(group_id) and not self.runs(_loading(self.office_of(group_id)))

    def _ping(self, connection: int, request: Draft3PingRequest) -> DraftError:
        if not self._takes(request.group_id):
            return DraftError.NOT_COORDINATOR
        group = self.groups.get(request.group_id or "")
        member = None if group is None else group.members.get(request.consumer_id or "")
        if group is None or member is None:
            return DraftError.UNKNOWN_CONSUMER
        self._members[connection] = member
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
        member = self._members.pop(connection, None)
        if member is not None and member.joining is not None and member.joining[0] == connection:
            member.joining = None
            self._expect(member)

    # --- joins ---

    def _on_Draft3JoinGroupRequest(
        self, connection: int, event: RequestReceived, request: Draft3JoinGroupRequest
    ) -> None:
        group_id = request.group_id or ""
        error = self._check(request)
        if error:
            response = Draft3JoinGroupResponse(error_code=error, group_id=group_id)
            self.send(connection, response, event)
            return
        group = self.groups.setdefault(group_id, _Group(group_id))
        member = self._members.get(connection)
        if member is None or group.members.get(member.consumer_id) is not member:
            self._ids += 1
            name = f"{group_id}-{self.settings.broker_id}-{self.coordinator_session}-{self._ids}"
            member = group.members[name] = _Member(group_id, name, 0, frozenset())
        elif member.joining is not None:
            self._answer_join(group, member, DraftError.DUPLICATE_CONSUMER)  # the newer one counts
        member.session_ms, member.topics = request.session_timeout, frozenset(request.subscribing)
        member.joining = connection, event
        self._members[connection] = member
        self.cancel_timer(member.timer)
        self._trigger(group)

    def _check(self, request: Draft3JoinGroupRequest) -> DraftError:
        if not self._takes(request.group_id):
            return DraftError.NOT_COORDINATOR
        try:
            GroupMetadata.path(request.group_id or "")
        except EncodeError:
            return DraftError.INVALID_GROUP_ID
        least = max(self.settings.min_session_timeout_ms, 1)
        if not least <= request.session_timeout <= _LONGEST_MS:
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
            self.end(("store", group.group_id))
        elif self.loads_groups and group.members:
            self.run(("store", group.group_id), self._store(group))
        else:
            self._answer_all(group)

    def _store(self, group: _Group) -> Procedure:
        """Write the generation before it begins; a join or a failure meanwhile begins this again."""
        plan = self._plan(group)
        members = {
            name: KnownMember(member.session_ms, member.topics, tuple(plan[name]))
            for name, member in group.members.items()
        }
        metadata = GroupMetadata(_next_generation(group), members)
        yield from write_nodes({GroupMetadata.path(group.group_id): metadata.build()})
        if all(member.joining is not None for member in group.members.values()):
            self._answer_all(group)

    def _plan(self, group: _Group) -> dict[str, list[DraftPartition]]:
        """What each member owns in the next generation."""
        plan = plan_ownership(
            {name: dict.fromkeys(sorted(member.topics & self.partitions.keys()), 1)
             for name, member in group.members.items()},
            self.partitions,
        )  # fmt: skip
        owned: dict[str, list[DraftPartition]] = {name: [] for name in group.members}
        for partition, thread in plan.items():
            owned[thread.rpartition("-")[0]].append(partition)
        return owned

    def _answer_all(self, group: _Group) -> None:
        group.rebalancing = False
        self.cancel_timer(("rebalance", group.group_id))
        if not group.members:
            return
        group.generation = _next_generation(group)
        plan = self._plan(group)
        for member in group.members.values():
            self._answer_join(group, member, DraftError.NONE, plan[member.consumer_id])
            self._expect(member)

    def _answer_join(
        self, group: _Group, member: _Member, error: DraftError, owned: list[DraftPartition] | None = None
    ) -> None:
        if member.joining is None:
            return
        (connection, event), member.joining = member.joining, None
        self.send(connection, Draft3JoinGroupResponse(
            error_code=error, generation=group.generation, group_id=group.group_id,
            consumer_id=member.consumer_id,
            partitions_to_own=[
                Draft3TopicAndPartition(topic=topic, partition=int(partition.rpartition("-")[2]))
                for topic, partition in owned or ()
            ],
        ), event)  # fmt: skip


def _loading(office: int) -> tuple[str, str]:
    return "loading", str(office)


def _next_generation(group: _Group) -> int:
    return (group.generation + 1) & 0x7FFF
