"""The events of a group: the rows of timelines, and of a coordinator's own reports.

Strategy: plain frozen rows with texts, numbers and tuples, so that they can be printed, pickled and put into
tables; `EVENTS` names them as the command line's JSON does. Rules: `time_ns` is int nanoseconds since 1970
UTC, None where the input has no time; `source` and `number` are the event's place: the capture's name and
the frame, or the segment's name and the offset in the log. An event that wasn't seen but follows from what
was seen is `inferred`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from coordwire._display import RichDisplay

__all__ = [
    "EVENTS",
    "Assignment",
    "BrokerAway",
    "CaptureHole",
    "Cause",
    "ClusterFound",
    "CoordinatorFound",
    "CoordinatorStalled",
    "ErrorMet",
    "GroupConfigured",
    "GroupConverted",
    "GroupDeleted",
    "GroupEvent",
    "GroupSetting",
    "HowEnded",
    "Idle",
    "Kind",
    "LagMeasured",
    "LagReason",
    "Leaving",
    "LostMember",
    "MemberEnding",
    "MemberJoined",
    "MemberLeft",
    "Moved",
    "OffsetCommitted",
    "OffsetReset",
    "Outcome",
    "ProducerFenced",
    "RebalanceBegan",
    "RebalanceCost",
    "RebalanceEnded",
    "TopicChanged",
    "TopicDeed",
    "TopicPartition",
    "TransactionStep",
    "Unanswered",
    "partitions_moved",
]

Kind = Literal["classic", "consumer", "share", "streams", "draft", "zookeeper"]
"""What a group speaks: JoinGroup and its kin, KIP-848, KIP-932, KIP-1071, a draft's Register and Stop, or its
consumers' nodes in ZooKeeper."""

Cause = Literal[
    "first_member",
    "new_member",
    "static_member_returned",
    "member_left",
    "session_timeout",
    "member_removed",
    "member_fenced",
    "subscription_changed",
    "partitions_revoked",
    "leader_rejoined",
    "member_rejoined",
    "assignment_changed",
    "coordinator_moved",
    "unknown",
]
"""Trigger a group rebalances.

first_member: the group was empty. static_member_returned: with a new member id. member_removed: the
coordinator no longer knows it; member_fenced: another took its place or its epoch. partitions_revoked: a
cooperative member has let go of some and joins again. leader_rejoined: of its own accord, mostly since the
topics' metadata changed. assignment_changed: the coordinator's own doing (KIP-848). unknown: members were
asked to rejoin, and the capture doesn't show why.
"""

Outcome = Literal["steady", "superseded", "not_needed", "empty", "unfinished"]
"""How a rebalance ended: all who were seen had their assignment; another one began before that; the
generation stayed; no member was left; the input ended."""

Leaving = Literal["left", "left_for_now", "session_timeout", "removed", "fenced", "not_rejoined"]


LagReason = Literal["committed_beyond_end", "end_seen_earlier"]
"""Trigger a lag is below 0: the end was seen after the commit; or before it, and may have moved since."""

TopicDeed = Literal["created", "grown", "deleted"]
"""What became of a topic."""

HowEnded = Literal["closed", "closed_by_broker", "reset", "open"]
"""How a member's connections ended: the client's FIN came first; the broker's; an RST of either; not."""


class MemberEnding(NamedTuple):
    """The ends of the connections of a member that left without a request, as far as a capture shows them,
    until the time at which the member must have been out. ended_ns: when the last of them was ended; packets:
    the FINs and RSTs that did; heard_ns, heard_packet: the member's last request about its group that the
    coordinator read; fetched: whether it sent a Fetch since it joined, None where it was assigned nothing, or
    where another member has the same client id and address; unanswered_ns, unanswered_packet: the first
    request after that, which the coordinator did not answer while the member was in."""

    how: HowEnded
    ended_ns: int | None
    packets: tuple[int, ...]
    heard_ns: int | None
    heard_packet: int | None
    fetched: bool | None
    unanswered_ns: int | None = None
    unanswered_packet: int | None = None


class TopicPartition(NamedTuple):
    """A partition; for a streams group a task: the subtopology's id and its partition."""

    topic: str
    partition: int


class Assignment(NamedTuple):
    """What one member has, sorted."""

    member_id: str
    partitions: tuple[TopicPartition, ...]


class Moved(NamedTuple):
    """A partition that changed hands; None for no member."""

    topic: str
    partition: int
    before: str | None
    after: str | None


class LostMember(NamedTuple):
    """A member whose connection ended. ended_ns, packet: of the FIN or RST."""

    member_id: str
    ended_ns: int
    packet: int | None


class Idle(NamedTuple):
    """A partition that no member consumed for a while: from the moment that its last consumer gave it up,
    left or was last seen alive, until the next one had it."""

    topic: str
    partition: int
    since_ns: int
    until_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEvent(RichDisplay):
    """The fields of all events. group: its id, "" for a transaction that no group is known of; number: of the
    frame that shows it in `source`; packet: of that frame's last byte, as Wireshark counts packets, None
    where there are none; cluster: of which cluster the group is, where the input shows several: the
    cluster's id, or the address of a broker if it has none."""

    group: str
    time_ns: int | None
    source: str
    number: int
    packet: int | None = None
    cluster: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFound(GroupEvent):
    """The input shows a second cluster: all events before are of the first, which is this one, and did not
    name it. Of no group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorFound(GroupEvent):
    """FindCoordinator named the group's coordinator. moved: another node was the coordinator before."""

    node_id: int
    host: str
    port: int
    moved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAway(GroupEvent):
    """The group's coordinator was away: it ended its clients' connections, and no broker answered about the
    group until until_ns. Sessions do not run meanwhile, and begin again afterwards.

    broker: its address; until_ns: None if the input ends before; answered_by: the address of the
    broker that answered first afterwards, which may be another; connections: how many it ended; packets: the
    FINs and RSTs that did, a few of them.
    """

    broker: str
    until_ns: int | None
    answered_by: str | None
    connections: int
    packets: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorStalled(GroupEvent):
    """The group's coordinator answered nothing, though its connections stayed open. The time is when the
    first request was sent that waited; sessions that would end meanwhile end afterwards.

    broker: its address; until_ns: when it answered, or another broker did; None if the input ends before;
    answered_by: the address of the broker that answered; requests: how many had waited for 2 s or longer, of
    all groups that it coordinates;
    packets: the first request's, and the answer's.
    """

    broker: str
    until_ns: int | None
    answered_by: str | None
    requests: int
    packets: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureHole(GroupEvent):
    """The capture lacks bytes of a connection on which a member speaks: what that member asked, or was
    answered, is not known, and its silence shows nothing. The time is that of the first packet after them.

    member_id: whose connection it is, of the group's; flow: the direction that lacks them; size: how many
    bytes.
    """

    member_id: str
    flow: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberJoined(GroupEvent):
    """A member is in. host: the client's address, where the capture or the log knows it; instance_id: a
    static member's name; rejoined: it was in before, under this id or as this static member; was_in: it was,
    and how it came is not seen, as it was in before the input began, or the input lacks its JoinGroup
    (tables call the event memberFound); former_id: of another member that the same process was before, as its
    connection shows: it asked there under that id; software: its client's, with its version, as ApiVersions
    said on its connection (from version 3 on)."""

    kind: Kind
    member_id: str
    client_id: str | None
    host: str | None
    instance_id: str | None = None
    topics: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    session_timeout_ms: int | None = None
    reason: str | None = None
    rejoined: bool = False
    was_in: bool = False
    former_id: str | None = None
    software: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberLeft(GroupEvent):
    """A member is out. how: "left" by itself (`reason` where given), "left_for_now" as a static member does;
    "removed" by another client, an operator's mostly, or, where it is inferred, as its coordinator does not
    know it any more; "session_timeout", "not_rejoined" are inferred where a capture is read; "fenced" it was
    answered. ending: of those that are inferred, where the capture shows connections."""

    member_id: str
    client_id: str | None
    instance_id: str | None = None
    how: Leaving = "left"
    reason: str | None = None
    inferred: bool = False
    ending: MemberEnding | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConverted(GroupEvent):
    """A group goes on under another protocol, with the members that it had. member_id: whose request
    converted it; inferred: no request of the new protocol has been answered yet."""

    kind_before: Kind
    kind: Kind
    member_id: str | None
    inferred: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDeleted(GroupEvent):
    """The group is gone, with what it committed: one of this id that comes later is another group. client_id:
    who asked for it, None where that is not known; inferred: from the next group of this id, which only a
    group that was deleted makes room for."""

    client_id: str | None = None
    inferred: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceBegan(GroupEvent):
    """The first sign of a rebalance. member_id: who caused it; client_id: the client that did, if it had no
    member id yet; detail: what speaks for the cause."""

    kind: Kind
    cause: Cause
    member_id: str | None
    inferred: bool
    detail: str = ""
    client_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceEnded(GroupEvent):
    """A whole rebalance; `cause` may be known better than when it began.

    began_ns: the first sign, or when a session was over; joined_ns: the first member had the new generation;
    ended_ns: the last member seen had its assignment; length_ns: between first and last. generation: the
    group epoch, where the coordinator assigns. members: all of them where the leader's answer was seen, else
    those seen. last_to_join: whom the others waited for. moved: partitions that changed hands. idle:
    partitions that had no consumer, as far as that ended with this rebalance. waiting_for: where it was given
    up or is not finished, the members that had not taken up what they were given, as far as that is known.
    standby: of a streams group whose traffic is read, the members' standby tasks, of those that have any.
    lost: where it is not finished, the members without which it can't end, and whose connections had ended,
    as far as a capture shows that: their sessions were not over.
    """

    kind: Kind
    outcome: Outcome
    cause: Cause
    member_id: str | None
    inferred: bool
    detail: str
    began_ns: int | None
    joined_ns: int | None
    ended_ns: int | None
    length_ns: int | None
    generation_before: int | None
    generation: int | None
    protocol: str | None
    leader: str | None
    members: tuple[str, ...]
    last_to_join: str | None
    assignments: tuple[Assignment, ...]
    moved: tuple[Moved, ...]
    idle: tuple[Idle, ...] = ()
    client_id: str | None = None
    waiting_for: tuple[str, ...] = ()
    standby: tuple[Assignment, ...] = ()
    lost: tuple[LostMember, ...] = ()

    @property
    def idle_ns(self) -> int:
        """How long at least one partition had no consumer, in nanoseconds."""
        total, end = 0, None
        for since, until in sorted((interval.since_ns, interval.until_ns) for interval in self.idle):
            total += max(until - (since if end is None else max(since, end)), 0)
            end = until if end is None else max(until, end)
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceCost(GroupEvent):
    """What waited while partitions had no consumer in a rebalance; the time is that of its end.

    partitions: how many of them had none, and were measured. lag_before: of these, as last measured before
    the end; lag_after: as first measured after it.
    """

    generation: int | None
    partitions: int
    lag_before: int
    lag_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitted(GroupEvent):
    """A commit of one partition. offset: the next to read; generation: or the member's epoch; -1 outside of a
    membership. error_code: 0 for stored; transactional_id: it holds once that one's transaction is committed;
    removed: the offset was forgotten (a tombstone in the log)."""

    member_id: str | None
    client_id: str | None
    generation: int
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None
    error_code: int = 0
    transactional_id: str | None = None
    removed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetReset(GroupEvent):
    """A client that is not a member set a group's committed offset back, or deleted it. client_id: whose
    request it was; before: what was committed, None where that was not seen; offset: what is since, None if
    it was deleted (OffsetDelete)."""

    client_id: str | None
    topic: str
    partition: int
    before: int | None
    offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChanged(GroupEvent):
    """A topic that members ask for, or have partitions of, was created, enlarged or deleted. client_id: whose
    request it was; partitions: how many it has since, None where the request does not say."""

    client_id: str | None
    topic: str
    deed: TopicDeed
    partitions: int | None


class GroupSetting(NamedTuple):
    """A setting's name and its value; None for the default, and for what isn't a number."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfigured(GroupEvent):
    """The group's own settings were changed (AlterConfigs, IncrementalAlterConfigs). client_id: whose request
    it was; settings: those that it names."""

    client_id: str | None
    settings: tuple[GroupSetting, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LagMeasured(GroupEvent):
    """How many records a group has left to read. end_offset: the newest high watermark seen; committed: the
    offset last committed, or fetched from the coordinator; lag: the records between, below 0 where that
    offset is beyond the end; reason: why it is, else None: `committed_beyond_end` if the end was seen since,
    and `end_seen_earlier` if it was seen before, so that the partition may have grown."""

    topic: str
    partition: int
    committed: int
    end_offset: int
    lag: int
    reason: LagReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorMet(GroupEvent):
    """A group's request was answered with an error code. topic, partition: where it is about one."""

    api: str
    error_code: int
    member_id: str | None
    client_id: str | None
    topic: str | None = None
    partition: int | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered(GroupEvent):
    """A request of the group's whose answer the capture doesn't show; the time is the request's. unreadable:
    it does, but the answer couldn't be read."""

    api: str
    member_id: str | None
    client_id: str | None
    unreadable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionStep(GroupEvent):
    """A step of a transactional producer. step: "init", "add_partitions", "add_offsets", "commit", "abort".
    partitions: those added. producer_id, producer_epoch: -1 where not given."""

    transactional_id: str
    step: str
    producer_id: int
    producer_epoch: int
    error_code: int
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerFenced(GroupEvent):
    """A producer's offsets of the group are refused, since another one has its transactional id. client_id:
    the refused one's; member_id: of the group's member whose offsets these are; by_client_id: whose
    InitProducerId was answered since, and since_ns: when; packets: of that answer, and of the refusal."""

    transactional_id: str
    client_id: str | None
    member_id: str | None
    by_client_id: str | None
    since_ns: int | None
    packets: tuple[int, ...]


EVENTS: dict[type[GroupEvent], str] = {
    cls: cls.__name__[0].lower() + cls.__name__[1:]
    for cls in (
        ClusterFound, CoordinatorFound, BrokerAway, CoordinatorStalled, CaptureHole, MemberJoined, MemberLeft,
        GroupConverted, GroupDeleted, RebalanceBegan, RebalanceEnded, RebalanceCost,
        OffsetCommitted, OffsetReset, TopicChanged, GroupConfigured, LagMeasured, ErrorMet, Unanswered,
        TransactionStep, ProducerFenced,
    )
}  # fmt: skip
"""The events, and what the JSON calls them."""


def partitions_moved(
    before: Mapping[str, frozenset[TopicPartition]], after: Mapping[str, frozenset[TopicPartition]]
) -> list[Moved]:
    """The partitions that changed hands between two assignments, by members' ids; sorted."""
    owners, heirs = _owners(before), _owners(after)
    partitions = [partition for partition, heir in heirs.items() if owners.get(partition) != heir]
    partitions += owners.keys() - heirs.keys()
    partitions.sort()
    had, has = owners.get, heirs.get
    return [tuple.__new__(Moved, (*partition, had(partition), has(partition))) for partition in partitions]


def _owners(assigned: Mapping[str, frozenset[TopicPartition]]) -> dict[TopicPartition, str]:
    return {partition: member for member, partitions in assigned.items() for partition in partitions}
