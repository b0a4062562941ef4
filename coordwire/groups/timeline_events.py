"""What happens to a group: the events that a timeline is made of.

Strategy: plain frozen rows with texts, numbers and tuples, so that they can be printed, pickled and put into
tables; `EVENTS` names them as the command line's JSON does. Rules: `time_ns` is int nanoseconds since 1970
UTC, None where the input knows no time; `source` and `number` say where it was seen: the capture's name and
the frame, or the segment's and the offset in the log. What wasn't seen but follows from what was is
`inferred`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from coordwire.rich_display import RichDisplay

__all__ = [
    "EVENTS",
    "Assignment",
    "Cause",
    "CoordinatorFound",
    "ErrorMet",
    "GroupEvent",
    "Kind",
    "LagMeasured",
    "MemberJoined",
    "MemberLeft",
    "Moved",
    "OffsetCommitted",
    "Outcome",
    "RebalanceBegan",
    "RebalanceEnded",
    "TopicPartition",
    "TransactionStep",
    "Unanswered",
]

Kind = Literal["classic", "consumer", "share", "streams", "draft"]
"""What a group speaks: JoinGroup and its kin, KIP-848, KIP-932, KIP-1071, or a draft's Register and Stop."""

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
"""Why a group rebalances.

first_member: the group was empty. static_member_returned: with a new member id. member_removed: the
coordinator no longer knows it; member_fenced: another took its place or its epoch. partitions_revoked: a
cooperative member has let go of some and joins again. leader_rejoined: of its own accord, mostly since the
topics' metadata changed. assignment_changed: the coordinator's own doing (KIP-848). unknown: members were
told to rejoin, and the capture doesn't show why.
"""

Outcome = Literal["steady", "superseded", "not_needed", "empty", "unfinished"]
"""How a rebalance ended: all who were seen had their assignment; another one began before that; the
generation stayed; nobody was left; the input ended."""

Leaving = Literal["left", "left_for_now", "session_timeout", "removed", "fenced", "not_rejoined"]


class TopicPartition(NamedTuple):
    """A partition; for a streams group a task: the subtopology's id and its partition."""

    topic: str
    partition: int


class Assignment(NamedTuple):
    """What one member has, sorted."""

    member_id: str
    partitions: tuple[TopicPartition, ...]


class Moved(NamedTuple):
    """A partition that changed hands; None for nobody."""

    topic: str
    partition: int
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEvent(RichDisplay):
    """What all events say. group: its id, "" for a transaction that no group is known of."""

    group: str
    time_ns: int | None
    source: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorFound(GroupEvent):
    """FindCoordinator named it. moved: it was another before."""

    node_id: int
    host: str
    port: int
    moved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberJoined(GroupEvent):
    """A member is in. host: the client's address, where the capture or the log knows it; instance_id: a
    static member's name; rejoined: it was in before, under this id or as this static member."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberLeft(GroupEvent):
    """A member is out. how: "left" by itself or an operator (`reason` where told), "left_for_now" as a static
    member does; "session_timeout", "removed", "not_rejoined" are inferred; "fenced" it was told."""

    member_id: str
    client_id: str | None
    instance_id: str | None = None
    how: Leaving = "left"
    reason: str | None = None
    inferred: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceBegan(GroupEvent):
    """The first sign of a rebalance. member_id: who caused it; detail: what speaks for the cause."""

    kind: Kind
    cause: Cause
    member_id: str | None
    inferred: bool
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceEnded(GroupEvent):
    """A whole rebalance; `cause` may be known better than when it began.

    began_ns: the first sign; joined_ns: the new generation was told to the first member; ended_ns: the last
    member seen had its assignment; length_ns: between first and last. generation: the group epoch, where the
    coordinator assigns. members: all of them where the leader's answer was seen, else those seen.
    last_to_join: whom the others waited for. moved: partitions that changed hands.
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
class LagMeasured(GroupEvent):
    """How far a group is behind. end_offset: the newest high watermark seen; committed: the offset last
    committed, or fetched from the coordinator; lag: the records between, 0 where the end is the older."""

    topic: str
    partition: int
    committed: int
    end_offset: int
    lag: int


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
    """What a transactional producer did. step: "init", "add_partitions", "add_offsets", "commit", "abort".
    partitions: those added. producer_id, producer_epoch: -1 where not told."""

    transactional_id: str
    step: str
    producer_id: int
    producer_epoch: int
    error_code: int
    partitions: tuple[TopicPartition, ...] = ()


EVENTS: dict[type[GroupEvent], str] = {
    cls: cls.__name__[0].lower() + cls.__name__[1:]
    for cls in (
        CoordinatorFound, MemberJoined, MemberLeft, RebalanceBegan, RebalanceEnded, OffsetCommitted,
        LagMeasured, ErrorMet, Unanswered, TransactionStep,
    )
}  # fmt: skip
"""The events, and what the JSON calls them."""
