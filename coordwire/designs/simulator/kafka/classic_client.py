"""A member of a classic group as a model: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, as the Java client.

begin -> join -> sync -> stable: heartbeats
REBALANCE_IN_PROGRESS                        commit, revoke (all, or none if cooperative), join
UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION        the partitions are lost, join as a new member
NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE   find the coordinator, join as the same member
FENCED_INSTANCE_ID and what can't be mended  the client is done

The assignment that a classic group's leader computes: range, or cooperative, which keeps what it can.

Rules: members and topics are sorted, so that an assignment follows from its input. The
cooperative assignor never gives a member what another still owns: that comes in the rebalance after the owner
gave it up (KIP-429). Of two members that claim a partition, the one of the later generation owns it; of the
same, neither.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from coordwire.codec import Message
from coordwire.designs.simulator.kafka.group_client import (
    REDISCOVER,
    VERSIONS,
    GroupClient,
    GroupClientConfig,
    OwnedPartition,
)
from coordwire.designs.simulator.network import SimulatedNode
from coordwire.enums import ErrorCode
from coordwire.errors import DecodeError
from coordwire.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    FindCoordinatorRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordwire.messages.consumer_protocol import (
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscriptionTopicPartition,
)
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.leave_group import MemberIdentity
from coordwire.messages.sync_group import SyncGroupRequestAssignment

Partitions = dict[str, list[tuple[str, int]]]
"""By member: topics and partitions."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A member's subscription. instance_id: sorts static members."""

    topics: tuple[str, ...]
    owned: tuple[tuple[str, int], ...] = ()
    generation: int = -1


def range_assignment(members: Mapping[str, Claim], partitions: Mapping[str, int]) -> Partitions:
    """Of each topic, a range for each member; the first members get one more where it does not divide."""
    plan: Partitions = {member: [] for member in members}
    for topic in sorted(partitions):
        takers = sorted(member for member, claim in members.items() if topic in claim.topics)
        if not takers:
            continue
        size, extra = divmod(partitions[topic], len(takers))
        begin = 0
        for number, member in enumerate(takers):
            end = begin + size + (number < extra)
            plan[member] += [(topic, index) for index in range(begin, end)]
            begin = end
    return plan


def cooperative_assignment(members: Mapping[str, Claim], partitions: Mapping[str, int]) -> Partitions:
    """A balanced assignment that leaves partitions with their owners, without those that would move now."""
    owners = _owners(members, partitions)
    every = [(topic, index) for topic in sorted(partitions) for index in range(partitions[topic])]
    target: Partitions = {member: [] for member in sorted(members)}
    quota = -(-len(every) // len(members)) if members else 0
    free = []
    for partition in every:
        owner = owners.get(partition)
        if owner is not None and len(target[owner]) < quota:
            target[owner].append(partition)
        else:
            free.append(partition)
    for partition in free:
        takers = [member for member, claim in members.items() if partition[0] in claim.topics]
        if takers:
            target[min(takers, key=lambda member: (len(target[member]), member))].append(partition)
    return {
        member: [partition for partition in partitions if owners.get(partition, member) == member]
        for member, partitions in target.items()
    }  # fmt: skip


def _owners(members: Mapping[str, Claim], partitions: Mapping[str, int]) -> dict[tuple[str, int], str]:
    owners: dict[tuple[str, int], tuple[int, str | None]] = {}
    for member in sorted(members):
        claim = members[member]
        for partition in claim.owned:
            if partition[0] not in claim.topics or partition[1] >= partitions.get(partition[0], 0):
                continue
            known = owners.get(partition)
            if known is None or known[0] < claim.generation:
                owners[partition] = claim.generation, member
            elif known[0] == claim.generation:
                owners[partition] = claim.generation, None
    return {partition: member for partition, (_, member) in owners.items() if member is not None}


# --- the client ---


_NEWEST: Mapping[type[Message], int] = {
    **VERSIONS, JoinGroupRequest: 9, SyncGroupRequest: 5, HeartbeatRequest: 4, LeaveGroupRequest: 5,
    FindCoordinatorRequest: 4, MetadataRequest: 12, OffsetCommitRequest: 9, OffsetFetchRequest: 8,
}  # fmt: skip
_BEAT, _RETRY = "heartbeat", "retry"
_BACKOFF_MS = 100
_PATIENCE_MS = 5_000
"""How much longer than a rebalance a JoinGroup may take."""

_INT16 = struct.Struct(">h")
_SUBSCRIPTION_VERSION = 3
_STATIC, _NAMED, _BATCHES = 5, 5, 3
_NO_GENERATION = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierMembership:
    """What a member has that was in the group before the simulation."""

    member_id: str
    generation: int
    owned: tuple[OwnedPartition, ...]
    leads: bool = False


class ClassicClient(GroupClient):
    """A member. leads: it leads this generation. assigned_in: the last generation whose assignment it
    computed. phase: "unjoined", "joining", "syncing", "stable"."""

    def __init__(self, config: GroupClientConfig, membership: EarlierMembership | None = None) -> None:
        super().__init__(config)
        self.phase = "unjoined"
        self.leads = False
        self.assigned_in = _NO_GENERATION
        self._assigned_from: dict[str, int] = {}
        self._joined_for = self.topics
        self.protocol: str | None = None
        self._claims: dict[str, Claim] = {}
        self._owned_since = _NO_GENERATION
        self._revoking: list[OwnedPartition] | None = None
        self._membership = membership

    def start(self, node: SimulatedNode) -> None:
        super().start(node)
        known = self._membership
        if known is not None:
            self.phase, self.member_id, self.leads = "stable", known.member_id, known.leads
            self.epoch = self._owned_since = known.generation
            self.take(list(known.owned))

    def version(self, kind: type[Message]) -> int:
        version = self.config.versions.get(kind)
        return _NEWEST[kind] if version is None else version

    @property
    def is_stable(self) -> bool:
        return self.phase == "stable"

    # --- joining ---

    def begin(self) -> None:
        if self.phase == "stable":
            self._beat_soon()
        else:
            self._join()

    def end_session(self) -> None:
        self.node.cancel_timer(_BEAT)
        self.node.cancel_timer(_RETRY)
        if self._revoking is not None:
            self.drop(self._revoking)  # the commit before it has no answer any more
            self._revoking = None
            self.phase = "unjoined"
        if self.phase in ("joining", "syncing"):
            self.phase = "unjoined"

    def on_client_timer(self, key: str) -> None:
        if key == _BEAT:
            self._beat()
        elif self.phase == "unjoined":
            self._join()

    def _rejoin(self) -> None:
        """Begin a rebalance on this side: give up what must be given up, then join."""
        self.phase = "unjoined"
        self.node.cancel_timer(_BEAT)
        if self.config.cooperative or self.config.stubborn:
            self._join()
            return

        def committed() -> None:
            self.drop(list(self.owned))
            if self.phase == "unjoined":
                self._join()

        self.commit(committed)

    def _lose(self) -> None:
        """The member is not one any more: what it owned is another's, perhaps."""
        self.epoch = _NO_GENERATION
        self.drop(list(self.owned))
        self.phase = "unjoined"
        self.node.cancel_timer(_BEAT)
        self._retry()

    def _retry(self) -> None:
        self.node.set_timer(_RETRY, self.node.now + _BACKOFF_MS)

    def _join(self) -> None:
        if not self.has_coordinator or self.is_done:
            return
        self.phase = "joining"
        self._joined_for = self.topics
        config = self.config
        if not config.stubborn:
            topics = self.topics if config.cooperative else ()
            self.drop([partition for partition in self.owned if partition[0] not in topics])
        request = JoinGroupRequest(
            group_id=config.group_id, session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.rebalance_timeout_ms, member_id=self.member_id,
            protocol_type="consumer", protocols=self._protocols(),
        )  # fmt: skip
        if self.version(JoinGroupRequest) >= _STATIC:
            request.group_instance_id = config.instance_id
        timeout = max(config.rebalance_timeout_ms + _PATIENCE_MS, config.request_timeout_ms)
        self.ask(request, self._joined, timeout_ms=timeout)

    def _protocols(self) -> list[JoinGroupRequestProtocol]:
        owned: dict[str, list[int]] = {}
        for topic, partition in self.owned:
            owned.setdefault(topic, []).append(partition)
        subscription = ConsumerProtocolSubscription(
            topics=sorted(self.topics),
            owned_partitions=[
                ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=partitions)
                for topic, partitions in sorted(owned.items())
            ],
            generation_id=self._owned_since,
        )
        metadata = _INT16.pack(_SUBSCRIPTION_VERSION) + subscription.encode(version=_SUBSCRIPTION_VERSION)
        if self.config.subscription is not None:
            metadata = self.config.subscription
        names = self.config.assignors or (
            ("cooperative-sticky", "range") if self.config.cooperative else ("range",)
        )
        return [JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names]

    def _joined(self, response: JoinGroupResponse) -> None:
        error = ErrorCode(response.error_code)
        if error:
            self.phase = "unjoined"
            self._join_refused(error, response.member_id)
            return
        self.member_id, self.epoch = response.member_id, response.generation_id
        self.protocol = response.protocol_name
        self.leads = response.leader == response.member_id
        self.phase = "syncing"
        self._claims = {member.member_id: _claim(member.metadata) for member in response.members}
        if any(topic not in self.partitions for topic in self.topics_to_know()):
            # A leader assigns the topics of all members, of which it may not subscribe to some.
            self.ask_metadata(lambda: self._sync(response))
        else:
            self._sync(response)

    def topics_to_know(self) -> list[str]:
        topics = dict.fromkeys(self.topics)
        if self.leads:
            for claim in self._claims.values():
                topics.update(dict.fromkeys(claim.topics))
        return list(topics)

    def _sync(self, response: JoinGroupResponse) -> None:
        if self.phase != "syncing":
            return
        request = SyncGroupRequest(
            group_id=self.config.group_id, generation_id=self.epoch, member_id=self.member_id
        )
        version = self.version(SyncGroupRequest)
        if version >= 3:
            request.group_instance_id = self.config.instance_id
        if version >= _NAMED:
            request.protocol_type, request.protocol_name = "consumer", response.protocol_name
        if self.leads and not response.skip_assignment:
            request.assignments = self._assignments(response)
            self.assigned_in = self.epoch
            self._assigned_from = dict(self.partitions)
        timeout = max(self.config.rebalance_timeout_ms + _PATIENCE_MS, self.config.request_timeout_ms)
        self.ask(request, self._synced, timeout_ms=timeout)

    def _join_refused(self, error: ErrorCode, member_id: str) -> None:
        match error:
            case ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = member_id
                self._join()
            case ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
                self._lose()
            case ErrorCode.COORDINATOR_LOAD_IN_PROGRESS | ErrorCode.REBALANCE_IN_PROGRESS:
                self._retry()
            case error if error in REDISCOVER:
                self.lose_coordinator()
            case _:
                self.fail(error)

    def _assignments(self, response: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        assign = (
            cooperative_assignment if response.protocol_name == "cooperative-sticky" else range_assignment
        )
        rows = []
        for member_id, partitions in assign(self._claims, self.partitions).items():
            by_topic: dict[str, list[int]] = {}
            for topic, partition in partitions:
                by_topic.setdefault(topic, []).append(partition)
            assignment = ConsumerProtocolAssignment(
                assigned_partitions=[
                    ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=indexes)
                    for topic, indexes in by_topic.items()
                ],
                user_data=self.config.assignment_data,
            )
            data = _INT16.pack(_SUBSCRIPTION_VERSION) + assignment.encode(version=_SUBSCRIPTION_VERSION)
            rows.append(SyncGroupRequestAssignment(member_id=member_id, assignment=data))
        return rows

    def _synced(self, response: SyncGroupResponse) -> None:
        error = ErrorCode(response.error_code)
        if error:
            self.phase = "unjoined"
            self._refused(error)
            return
        self.phase = "stable"
        self._beat_soon()
        # What changed while the group synced is noticed now.
        outdated = self.leads and self.assigned_in == self.epoch and self.partitions != self._assigned_from
        outdated = outdated or self.topics != self._joined_for
        try:
            assignment = assigned(response.assignment)
        except (struct.error, DecodeError):
            self.fail(ErrorCode.CORRUPT_MESSAGE, "the assignment can't be read")
            return
        revoked = [partition for partition in self.owned if partition not in assignment]
        self._owned_since = self.epoch
        if self.config.stubborn:
            revoked = []
        if not self.config.cooperative or not revoked:
            self.drop(revoked)
            self.take(assignment)
            if outdated:
                self._rejoin()
            return

        def committed() -> None:
            self._revoking = None
            self.drop(revoked)
            if self.phase == "stable":
                self.take(assignment)
                self._rejoin()

        self._revoking = revoked
        self.commit(committed)

    # --- a member's life ---

    def _beat_soon(self) -> None:
        self.node.set_timer(_BEAT, self.node.now + self.config.heartbeat_interval_ms)

    def _beat(self) -> None:
        if self.phase != "stable" or not self.has_coordinator:
            return
        request = HeartbeatRequest(
            group_id=self.config.group_id, generation_id=self.epoch, member_id=self.member_id
        )
        if self.config.instance_id is not None and self.version(HeartbeatRequest) >= 3:
            request.group_instance_id = self.config.instance_id
        self.ask(request, self._beaten, timeout_ms=self.config.session_timeout_ms)
        self._beat_soon()

    def _beaten(self, response: HeartbeatResponse) -> None:
        if response.error_code and self.phase == "stable":
            self._refused(ErrorCode(response.error_code))

    def _refused(self, error: ErrorCode) -> None:
        """An error of SyncGroup, Heartbeat or OffsetCommit."""
        match error:
            case ErrorCode.REBALANCE_IN_PROGRESS:
                self._rejoin()
            case ErrorCode.ILLEGAL_GENERATION | ErrorCode.UNKNOWN_MEMBER_ID:
                if error is ErrorCode.UNKNOWN_MEMBER_ID:
                    self.member_id = ""
                self._lose()
            case ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                if self.phase == "unjoined":
                    self._retry()
            case error if error in REDISCOVER:
                self.lose_coordinator()
            case ErrorCode.FENCED_INSTANCE_ID | ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
                self.fail(error)
            case _:
                if self.phase == "unjoined":
                    self._retry()

    def committed(self, error: ErrorCode | None) -> None:
        if error is not None and self.phase == "stable":
            self._refused(error)

    def topics_changed(self) -> None:
        if self.leads and self.phase == "stable":
            self._rejoin()

    def resubscribe(self) -> None:
        self.ask_metadata()
        if self.phase == "stable":
            self._rejoin()

    def leave(self) -> None:
        member_id = self.member_id

        def finish(_: object = None) -> None:
            self.stop()

        def committed() -> None:
            self.drop(list(self.owned))
            if self.config.instance_id is not None or not member_id or not self.has_coordinator:
                finish()
                return
            request = LeaveGroupRequest(group_id=self.config.group_id)
            if self.version(LeaveGroupRequest) >= _BATCHES:
                request.members = [MemberIdentity(member_id=member_id)]
            else:
                request.member_id = member_id
            self.ask(request, finish)

        self.commit(committed)


def _claim(metadata: bytes) -> Claim:
    """A member's subscription; one that can't be read subscribes to nothing."""
    try:
        (version,) = _INT16.unpack_from(metadata)
        version = min(max(version, 0), _SUBSCRIPTION_VERSION)
        subscription = ConsumerProtocolSubscription.decode(metadata[2:], version=version)
    except (struct.error, DecodeError):
        return Claim(())
    owned = tuple(
        (topic.topic, index) for topic in subscription.owned_partitions for index in topic.partitions
    )
    return Claim(tuple(subscription.topics), owned, subscription.generation_id)


def assigned(data: bytes) -> list[OwnedPartition]:
    """The partitions of a member's assignment."""
    if not data:
        return []
    (version,) = _INT16.unpack_from(data)
    assignment = ConsumerProtocolAssignment.decode(data[2:], version=min(version, _SUBSCRIPTION_VERSION))
    return [(topic.topic, index) for topic in assignment.assigned_partitions for index in topic.partitions]
