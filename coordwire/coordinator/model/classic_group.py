"""A classic group: its states, its members and its generation, and the vote for a protocol.

Nothing here decides when something happens. Rules: a group is mutated in place, as Kafka's is: when an append
fails, the operation itself takes back its changes (see `classic.requests`), and the shard only removes groups
that the append would have created.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import ClassVar

from coordwire._dataclasses import dataclass
from coordwire.coordinator.effects import Reply
from coordwire.coordinator.hash_tables import HashMap
from coordwire.coordinator.model.embedded_protocol import subscribed_topics
from coordwire.coordinator.model.group import group_repr
from coordwire.coordinator.refusal import OperationRefused
from coordwire.enums import ErrorCode
from coordwire.messages import JoinGroupResponse, SyncGroupResponse
from coordwire.messages.join_group import JoinGroupResponseMember

# --- states ---


class GroupState(Enum):
    """A state, by the name that DescribeGroups gives it."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


CLASSIC_TRANSITIONS: Mapping[tuple[GroupState, GroupState], str] = {
    (GroupState.EMPTY, GroupState.PREPARING_REBALANCE): "a member joins",
    (GroupState.PREPARING_REBALANCE, GroupState.EMPTY): "all members are gone",
    (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE): "all have joined, or time is up",
    (GroupState.COMPLETING_REBALANCE, GroupState.STABLE): "the leader's SyncGroup is durable",
    (GroupState.COMPLETING_REBALANCE, GroupState.PREPARING_REBALANCE): "a member joins, leaves or fails",
    (GroupState.STABLE, GroupState.PREPARING_REBALANCE): "a member joins, changes, leaves or fails",
} | {(state, GroupState.DEAD): "the partition moves away" for state in GroupState}
"""The causes of transitions; there are no others.

Empty waits for members; PreparingRebalance for their JoinGroup; CompletingRebalance for the leader's
SyncGroup; Stable has assignments; Dead is a group whose coordinator gave it up.
"""

ENTERED_FROM: Mapping[GroupState, frozenset[GroupState]] = {
    state: frozenset(before for before, after in CLASSIC_TRANSITIONS if after is state)
    for state in GroupState
}


# --- members ---

Protocols = tuple[tuple[str, bytes], ...]
"""Assignment protocols with the member's metadata for each, most preferred first."""


@dataclass(slots=True, eq=False)
class ClassicMember:
    """A member and its parked requests.

    instance_id: a static member's name, None for a dynamic one. new: it has not completed a join
    phase yet, so that its client has no member id for heartbeats.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes = b""
    parked_join: Reply | None = None
    parked_sync: Reply | None = None
    new: bool = False

    @property
    def satisfies_heartbeat(self) -> bool:
        """Whether the member waits for an answer, so that its silence is not a failure; a new one has a
        limit."""
        return not self.new and (self.parked_join is not None or self.parked_sync is not None)

    def metadata(self, protocol: str | None) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)


# --- the group ---

CONSUMER_PROTOCOL_TYPE = "consumer"


class ClassicGroupModel:
    """The state of one group.

    state_since: when it entered its state, in milliseconds; None where an old record does not say.
    pending_joins: ids given out with MEMBER_ID_REQUIRED that have not joined yet (KIP-394).
    pending_syncs: members of the generation whose SyncGroup has not come yet.
    member_added: whether a member joined since the initial delay was last extended.
    overdue: whether the join phase's time is over, and no member has joined.
    topics: the topics that the members subscribe to; None where they can't be known.
    """

    kind: ClassVar[str] = "classic"
    becomes_classic: ClassVar[bool] = True

    __slots__ = (
        "_supported", "generation", "group_id", "leader", "member_added",
        "members", "overdue", "parked_joins", "pending_joins", "pending_syncs", "previous_state", "protocol",
        "protocol_type", "state", "state_since", "static_members", "topics",
    )  # fmt: skip

    __repr__ = group_repr

    def __init__(
        self,
        group_id: str,
        now: int | None,
        *,
        state: GroupState = GroupState.EMPTY,
        generation: int = 0,
        protocol_type: str | None = None,
        protocol: str | None = None,
        leader: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.state = state
        self.previous_state = GroupState.DEAD
        self.state_since = now
        self.generation = generation
        self.protocol_type = protocol_type
        self.protocol = protocol
        self.leader = leader
        self.members: HashMap[str, ClassicMember] = HashMap()
        self.static_members: dict[str, str] = {}
        self.pending_joins: set[str] = set()
        self.pending_syncs: set[str] = set()
        self.parked_joins = 0
        self.member_added = False
        self.overdue = False
        self.topics: frozenset[str] | None = None
        self._supported: dict[str, int] = {}

    # --- properties ---

    def is_leader(self, member_id: str) -> bool:
        return self.leader is not None and self.leader == member_id

    @property
    def is_empty(self) -> bool:
        return self.state is GroupState.EMPTY

    @property
    def is_dead(self) -> bool:
        return self.state is GroupState.DEAD

    @property
    def is_consumer(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def is_simple(self) -> bool:
        """Whether only a commit created the group, without a record of its own."""
        return self.protocol_type is None and self.state is GroupState.EMPTY and not self.pending_joins

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long a rebalance waits: the longest time-out of a member, and at least 0."""
        return max([0, *(member.rebalance_timeout_ms for member in self.members.values_view())])

    @property
    def all_joined(self) -> bool:
        return len(self.members) == self.parked_joins and not self.pending_joins

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        size = len(self.members)
        return self.protocol_type == protocol_type and any(
            self._supported.get(name, 0) == size for name, _ in protocols
        )

    def is_subscribed(self, topic: str) -> bool:
        return self.is_consumer if self.topics is None else topic in self.topics

    def validate_member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """Find the member; refuse an unknown one, and one whose instance id another member took over."""
        if instance_id is not None:
            existing = self.static_members.get(instance_id)
            if existing is None:
                raise OperationRefused(ErrorCode.UNKNOWN_MEMBER_ID)
            if existing != member_id:
                raise OperationRefused(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise OperationRefused(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    # --- changes of members ---

    def add(self, member: ClassicMember, parked: Reply | None = None) -> None:
        if member.instance_id is not None:
            if member.instance_id in self.static_members:
                raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
            self.static_members[member.instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.protocol_type != member.protocol_type or not self.supports(
            member.protocol_type, member.protocols
        ):
            raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count(member.protocols, 1)
        member.parked_join = parked
        self.parked_joins += parked is not None
        self.pending_joins.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id)
        if member is not None:
            self._count(member.protocols, -1)
            self.parked_joins -= member.parked_join is not None
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.is_leader(member_id):
            self.leader = self.members.first()
        self.pending_joins.discard(member_id)
        self.pending_syncs.discard(member_id)

    def update(
        self,
        member: ClassicMember,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        parked: Reply | None,
    ) -> None:
        """Update a member that joins again."""
        self._count(member.protocols, -1)
        member.protocols = protocols
        self._count(member.protocols, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self.parked_joins += (parked is not None) - (member.parked_join is not None)
        member.parked_join = parked

    def replace_static(self, instance_id: str, old_id: str, new_id: str) -> ClassicMember:
        """Give a static member a new id; requests parked under the old one are fenced (KIP-345)."""
        old = self.members[old_id]
        self.members.discard(old_id)
        fenced = int(ErrorCode.FENCED_INSTANCE_ID)
        self.answer_join(old, JoinGroupResponse(member_id=old_id, protocol_name=None, error_code=fenced))
        self.answer_sync(old, SyncGroupResponse(error_code=fenced))
        new = ClassicMember(
            new_id, old.instance_id, old.client_id, old.client_host, old.rebalance_timeout_ms,
            old.session_timeout_ms, old.protocol_type, old.protocols, old.assignment,
        )  # fmt: skip
        self.members[new_id] = new
        if self.is_leader(old_id):
            self.leader = new_id
        self.static_members[instance_id] = new_id
        return new

    def _count(self, protocols: Protocols, by: int) -> None:
        supported = self._supported
        for name, _ in protocols:
            count = supported.get(name, 0) + by
            if count:
                supported[name] = count
            else:
                del supported[name]

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it has rejoined, else elect a member that has; False without one."""
        if self.leader is None:
            return False
        if self.members[self.leader].parked_join is None:
            for member in self.members.values():
                if member.parked_join is not None:
                    self.leader = member.member_id
                    return True
            return False
        return True

    # --- states and generations ---

    def enter(self, state: GroupState, now: int) -> None:
        if self.state not in ENTERED_FROM[state]:
            raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
        self.previous_state = self.state
        self.state = state
        self.state_since = now

    @property
    def can_rebalance(self) -> bool:
        return self.state in ENTERED_FROM[GroupState.PREPARING_REBALANCE]

    def selected_protocol(self) -> str:
        return elected_protocol(self.members.values(), self._supported, len(self.members))

    def begin_generation(self, now: int, *, impossible_is_malformed: bool) -> None:
        self.generation += 1
        self.protocol = self.selected_protocol() if self.members else None
        self.topics = self.computed_topics(impossible_is_malformed=impossible_is_malformed)
        self.enter(GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY, now)
        self.pending_syncs.clear()

    def computed_topics(self, *, impossible_is_malformed: bool) -> frozenset[str] | None:
        """The topics that the members name, as `subscribed_topics` reads them."""
        if not self.is_consumer:
            return None
        if not self.members:
            return frozenset()
        if self.protocol is None:
            return None
        metadata = (member.metadata(self.protocol) for member in self.members.values())
        return subscribed_topics(metadata, impossible_is_malformed=impossible_is_malformed)

    # --- parked requests ---

    def answer_join(self, member: ClassicMember, response: JoinGroupResponse) -> bool:
        if member.parked_join is None:
            return False
        member.parked_join.send(response)
        member.parked_join = None
        self.parked_joins -= 1
        return True

    def answer_sync(self, member: ClassicMember, response: SyncGroupResponse) -> bool:
        if member.parked_sync is None:
            return False
        member.parked_sync.send(response)
        member.parked_sync = None
        return True

    def joined_members(self) -> list[JoinGroupResponseMember]:
        """All members with their metadata, for the leader's answer."""
        return [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata(self.protocol),
            )
            for member in self.members.values()
        ]


# --- the vote ---


def elected_protocol(members: Iterable[ClassicMember], supported: Mapping[str, int], size: int) -> str:
    """The protocol with the most votes; a tie goes to the first in the order of Java's HashMap.

    supported: by how many of the `size` members each protocol is supported.
    """
    votes: HashMap[str, int] = HashMap()
    for member in members:
        for name, _ in member.protocols:
            if supported.get(name) == size:
                votes[name] = (votes.get(name) or 0) + 1
                break
        else:
            raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    return max(votes, key=votes.__getitem__)
