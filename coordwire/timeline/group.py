"""One group as a timeline knows it: its members, what they have, and the rebalance that is under way.

Strategy: the state that all kinds of groups have; `classic_group` and `modern_group` change it. Events gather
in `pending` until they are drained. Rules: what is remembered is bounded, the oldest is forgotten first. A
superseded rebalance of a group whose coordinator assigns lists nothing: its assignments are those of the
next.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from coordwire._speedups.rows import row_maker
from coordwire.capture.entries import ConnectionEnd
from coordwire.enums import ErrorCode
from coordwire.timeline.consumption import Consumption
from coordwire.timeline.events import (
    Assignment,
    Cause,
    CoordinatorStalled,
    GroupEvent,
    Idle,
    Kind,
    Leaving,
    LostMember,
    MemberJoined,
    MemberLeft,
    Moved,
    Outcome,
    RebalanceBegan,
    RebalanceEnded,
    TopicPartition,
    partitions_moved,
)
from coordwire.timeline.evidence import MemberName, Seen, remember
from coordwire.timeline.members import MOST_MEMBERS, Member, Members, Owned
from coordwire.timeline.rebalance import Rebalance, Trigger
from coordwire.timeline.session_clocks import SessionClocks
from coordwire.timeline.stalls import STALL_NS
from coordwire.timeline.topic_changes import TopicChanges

M = TypeVar("M", Moved, Idle)

_serial = attrgetter("serial")

_member_joined, _member_left = row_maker(MemberJoined), row_maker(MemberLeft)
_rebalance_began, _rebalance_ended = row_maker(RebalanceBegan), row_maker(RebalanceEnded)
_new = tuple.__new__  # a named tuple's own goes through a function

MOST_KEPT = 100
"""Of so many partitions the order is kept for the next time."""

MOST_UNANSWERED = 10_000

MOST_LATE = 100
"""In a larger group, the members that a rebalance waits for are not looked for."""

SILENCE_NS = 1_000_000_000
"""A member that sends nothing for so long is silent, as far as it is remembered."""

DEFAULT_SESSION_NS = 45_000_000_000
"""How long a session lasts of which nothing is known."""

FOLLOWS = ("unknown", "leader_rejoined", "member_rejoined", "partitions_revoked", "assignment_changed")
"""What follows from a rebalance that is under way: it says nothing of why that began."""

UNAVAILABLE = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR,
}  # fmt: skip
"""A coordinator that isn't there, or not yet."""

MOVED = UNAVAILABLE - {ErrorCode.COORDINATOR_NOT_AVAILABLE}
"""A coordinator that gives up its groups, or loads them; else a write may have failed, which it survives."""


_CAUSES: dict[Leaving, Cause] = {
    "left": "member_left", "session_timeout": "session_timeout", "removed": "member_removed",
    "not_rejoined": "member_removed", "fenced": "member_fenced",
}  # fmt: skip
"""What members' departures are as causes of rebalances; one that left for now causes none."""


@dataclass(slots=True)
class Holes:
    """The ranges of a capture's connections that it lacks. count: how many so far."""

    count: int = 0


@dataclass(slots=True)
class Outage:
    """A broker is away. place: of the first connection that it ended; connections: how many it ended;
    packets: of some of these FINs and RSTs."""

    broker: str
    place: Seen
    connections: int
    packets: tuple[int, ...]


class GroupConnections(Protocol):
    """Those of groups' members."""

    def end_of(self, name: MemberName) -> ConnectionEnd | None:
        """The end of the connection of a member's last request, None if it didn't end."""

    def asked_ns(self, name: MemberName, until_ns: int) -> int:
        """When a member sent its last request until then, as far as that is known, else 0."""

    def flow_of(self, name: MemberName) -> str | None:
        """That connection."""

    def speaker_on(self, flow: str, group: str) -> str | None:
        """The member of a classic group that asked last on a connection."""


class UnseenConnections:
    """Nothing is known of connections."""

    def end_of(self, name: MemberName) -> ConnectionEnd | None:
        return None

    def asked_ns(self, name: MemberName, until_ns: int) -> int:
        return 0

    def flow_of(self, name: MemberName) -> str | None:
        return None

    def speaker_on(self, flow: str, group: str) -> str | None:
        return None


class Group:
    """The state of one group. name_of: a topic's name by what the group's messages call it; settled: what
    each member had when the group was last steady; pending: events that were not drained yet; consumption:
    for how long partitions had no consumer; clocks: those of its members' sessions; connections: those of its
    members; coordinator: the address of the broker that last accepted a request about it; brokers: all that
    did; asked_broker: who is asked, until one accepts; outage: that of the coordinator, until a request is
    accepted again; back: where another broker was seen to have it; unanswered: the requests that it answers
    at once, and did not answer yet, with their connections, the oldest first; holes: those of the capture;
    topic_changes: those of the cluster."""

    def __init__(self, group: str, kind: Kind, name_of: Callable[[str], str] = str) -> None:
        self.group = group
        self.kind = kind
        self.name_of = name_of
        self.members = Members()
        self.generation: int | None = None
        self.leader: str | None = None
        self.protocol: str | None = None
        self.rebalance: Rebalance | None = None
        self.pending: list[GroupEvent] = []
        self.settled: dict[str, Owned] = {}
        self.consumption = Consumption()
        self.clocks = SessionClocks()
        self.connections: GroupConnections = UnseenConnections()
        self.coordinator: str | None = None
        self.brokers: set[str] = set()
        self.asked_broker: str | None = None
        self.outage: Outage | None = None
        self.back: Seen | None = None
        self.unanswered: OrderedDict[Seen, str] = OrderedDict()
        self.holes = Holes()
        self.topic_changes = TopicChanges()
        self._assigned: dict[str, Member] = {}  # all that have something, and perhaps more
        self._asked_ns: OrderedDict[str, int] = (
            OrderedDict()
        )  # when each asked last that is not in, or not yet
        self._departed_ns: OrderedDict[str, int] = OrderedDict()  # when each member went that is not in

    def report(self, event: type[GroupEvent], place: Seen, **fields: Any) -> None:
        time_ns, source, number, packet = place
        self.pending.append(
            event(group=self.group, time_ns=time_ns, source=source, number=number, packet=packet, **fields)
        )

    def drain(self) -> list[GroupEvent]:
        """Remove and return the pending events."""
        events, self.pending = self.pending, []
        return events

    # --- sessions ---

    @property
    def is_unused(self) -> bool:
        """Whether nothing has been seen of its members yet, or since one of its id was deleted."""
        return self.generation is None and not self.members

    @property
    def is_away(self) -> bool:
        """Whether no coordinator is known to have the group, so that no session runs."""
        return self.outage is not None and self.back is None

    def unmoved_if_silent(self, place: Seen) -> bool:
        """Whether all members have been silent for longer than their sessions last, but for what moves say of
        them, which then doesn't count any more."""
        for member in self.members.values():
            silence_ns = (place.time_ns or 0) - max(member.last_seen_ns or 0, member.asked_ns)
            if silence_ns <= (self.session_ns(member) or DEFAULT_SESSION_NS):
                return False
        self.clocks.available_ns = 0
        return True

    def restart(self, since: Seen | None, place: Seen) -> None:
        """The coordinator is another one, or was away, and has the group again: all sessions begin again.
        since: when it went away, where that is known; place: of the first answer."""
        self.clocks.unavailable(place)

    def report_stall(self) -> None:
        """Report the last stall in which requests about the group waited, unless that is done."""
        clocks = self.clocks
        stall, clocks.stall = clocks.stall, None
        if stall is None:
            return
        clocks.reported = stall
        places = stall.since, stall.until
        self.report(
            CoordinatorStalled, stall.since, broker=stall.broker, requests=stall.requests,
            until_ns=None if stall.until is None else stall.until.time_ns, answered_by=stall.answered_by,
            packets=tuple(place.packet for place in places if place is not None and place.packet is not None),
        )  # fmt: skip

    def asks(self, member_id: str, place: Seen, *, renews: bool = True) -> None:
        """A member sent a request, whose answer may be missing or come late: captures lose packets.

        renews: whether it is one that a member's session begins again with, where only heartbeats do that
        (KIP-848).
        """
        member, time_ns = self.members.get(member_id), place.time_ns
        if member is None:
            asked_ns = max(self._asked_ns.get(member_id, 0), time_ns or 0)
            remember(self._asked_ns, member_id, asked_ns, MOST_MEMBERS)
            self.consumption.asks(member_id, time_ns)
        elif time_ns is not None:
            self.sends(member, time_ns)
            if renews or member.classic:
                member.unread = member.unread or place
                member.unseen = False
                if time_ns > member.asked_ns:
                    member.asked_ns = time_ns

    def sends(self, member: Member, time_ns: int) -> None:
        """A member sent a request of any kind; it is not silent while one waits in a stall."""
        sent_ns = member.sent_ns
        if time_ns > sent_ns:
            is_away = self.outage is not None or self.clocks.moved_ns > sent_ns  # who would be asked
            if time_ns - sent_ns > SILENCE_NS and not is_away:
                member.silence = self.clocks.stalls.read_ns(sent_ns), time_ns
            member.sent_ns = time_ns

    def waits(self, place: Seen, flow: str) -> None:
        """A request that its coordinator answers at once was sent on a connection."""
        self.unanswered[place] = flow
        if len(self.unanswered) > MOST_UNANSWERED:
            self.unanswered.popitem(last=False)

    def may_stall(self, place: Seen) -> bool:
        """Whether requests have waited for seconds, and none that came after them was answered in time: what
        comes now may not be read yet."""
        first = self.first_waiting
        return first is not None and (place.time_ns or 0) - (first.time_ns or 0) >= STALL_NS

    @property
    def first_waiting(self) -> Seen | None:
        """Where the first request was seen that waits since the last one that was answered in time."""
        prompt_ns = self.clocks.stalls.prompt_ns
        waiting = islice(self.unanswered, MOST_LATE)
        return next((place for place in waiting if (place.time_ns or 0) > prompt_ns), None)

    def record_unseen_request(self, member_id: str, place: Seen) -> None:
        """A member was answered, and the capture lacks its request: its silence shows nothing until its next
        request."""
        self.asks(member_id, place)
        member = self.members.get(member_id)
        if member is not None and place.time_ns is not None:
            member.unseen, member.unread = True, None

    # --- members ---

    def empty_by(self, place: Seen) -> None:
        """The group has no members by then, whatever was seen of them."""
        for name in list(self.members):
            self.remove(name, place, "removed", inferred=True)
        self.end("empty", place)

    def add(self, member: Member, place: Seen, *, rejoined: bool = False, was_in: bool = False) -> None:
        """A member that is in. was_in: it was so already, and its coming was not seen."""
        remember(self.members, member.member_id, member, MOST_MEMBERS)
        self._departed_ns.pop(member.member_id, None)
        if self._asked_ns:  # the answer that lets it in may come late
            member.asked_ns = max(member.asked_ns, self._asked_ns.pop(member.member_id, 0))
        self.assign(member, member.assigned)
        self.pending.append(_member_joined(
            self.group, *place, None, self.kind, member.member_id, member.client_id, member.host,
            member.instance_id, member.topics, member.protocols, member.session_timeout_ms, member.reason,
            rejoined or was_in, was_in, None, None,
        ))  # fmt: skip

    def remove(
        self,
        member_id: str,
        place: Seen,
        departure: Leaving,
        *,
        reason: str | None = None,
        inferred: bool = False,
    ) -> None:
        """A member that is out; one that left for now is still remembered."""
        member = self.members.get(member_id)
        if inferred and member is not None:
            until_ns = self._alive_until_ns(member, place)
            session_ns = 0 if self.fell_silent(member) else self.session_ns(member)
            self.consumption.ends(member_id, until_ns, session_ns=session_ns)
        else:
            self.consumption.ends(member_id, place.time_ns)
        if departure != "left_for_now":
            self.members.drop(member_id)
            remember(self._departed_ns, member_id, place.time_ns or 0, MOST_MEMBERS)
        elif member is not None:
            member.away = True
        client_id = member.client_id if member else None
        instance_id = member.instance_id if member else None
        self.pending.append(_member_left(
            self.group, *place, None, member_id, client_id, instance_id, departure, reason, inferred, None
        ))  # fmt: skip

    def _alive_until_ns(self, member: Member, place: Seen) -> int | None:
        """Until when a member that is out consumed: it ended its connection, or sent its last request then,
        whatever its coordinator did."""
        name, now_ns = MemberName(self.group, member.member_id), place.time_ns or 0
        end = self.connections.end_of(name)
        waits = member.unread is not None  # for an answer, until it ended its connection
        if end is not None and end.sender == "client" and (end.time_ns <= now_ns or waits):
            return end.time_ns
        if self.fell_silent(member):
            return member.silence[0]
        asked_ns = max(member.asked_ns, member.sent_ns if member.sent_ns <= now_ns else 0)
        asked_ns = max(asked_ns, self.connections.asked_ns(name, now_ns))
        seen_ns = member.last_seen_ns
        if seen_ns is not None and seen_ns >= asked_ns > 0:  # it waited for an answer
            asked_ns = self.clocks.stalls.read_ns(asked_ns)
        alive_ns = asked_ns or seen_ns
        return place.time_ns if alive_ns is None else alive_ns

    def session_ns(self, member: Member) -> int:
        """How long a member's session lasts, as far as that is known."""
        return (member.session_timeout_ms or 0) * 1_000_000

    def fell_silent(self, member: Member) -> bool:
        """Whether nothing was accepted of a member since a silence that is longer than its session: what it
        asks then shows that it is out, and not that it lived."""
        since_ns, until_ns = member.silence
        is_heard = (member.last_seen_ns or 0) >= until_ns
        return since_ns > 0 and not is_heard and until_ns - since_ns > self.session_ns(member)

    def is_told_unknown(self, member_id: str, place: Seen) -> None:
        """A member is answered that its coordinator does not know it any more: until then it consumed, unless
        it had fallen silent."""
        if self.holes.count:
            return
        member = self.members.get(member_id)
        if member is None:
            self.consumption.lived_until(member_id, place.time_ns)
        elif self.fell_silent(member):
            self.consumption.ends(member_id, member.silence[0])
        else:
            self.consumption.ends(member_id, place.time_ns)

    def is_accepted_late(self, member_id: str, place: Seen) -> None:
        """A request of a member that is out was accepted: its coordinator read it before, and it consumed
        until then."""
        if not self.holes.count:
            self.consumption.lived_until(member_id, place.time_ns)

    def goes(
        self,
        member_id: str,
        place: Seen,
        departure: Leaving,
        detail: str = "",
        *,
        reason: str | None = None,
        inferred: bool = False,
    ) -> Trigger:
        """A member is out: what that is the cause of."""
        self.remove(member_id, place, departure, reason=reason, inferred=inferred)
        return Trigger(_CAUSES[departure], member_id, inferred=inferred, detail=detail)

    def has_gone(self, member_id: str) -> bool:
        """Whether a member that is not in was in before."""
        return member_id not in self.members and member_id in self._departed_ns

    def is_past(self, member_id: str, place: Seen) -> bool:
        """Whether something was seen of a member before it went: after a lost packet, answers come late."""
        return place.time_ns is not None and place.time_ns <= self._departed_ns.get(member_id, -1)

    def inherits(self, heir: Member, static: Member, place: Seen) -> None:
        """A static member's partitions are its heir's from now on; they had no consumer since that one's
        connection ended."""
        end = self.connections.end_of(MemberName(self.group, static.member_id))
        end_ns = None if end is None else end.time_ns
        self.consumption.passes(static.member_id, heir.member_id, end_ns, place.time_ns)
        heir.assigned = static.assigned
        if static.member_id in self.settled:
            self.settled[heir.member_id] = self.settled.pop(static.member_id)

    def assign(self, member: Member, partitions: Owned | None) -> None:
        """A member has these now."""
        member.assigned = partitions
        if partitions is None:
            self._assigned.pop(member.member_id, None)
        else:
            self._assigned[member.member_id] = member

    def unassign(self) -> None:
        """No member is known to have anything."""
        for member in self._assigned.values():
            member.assigned = None
        self._assigned = {}

    # --- rebalances ---

    def begin(self, trigger: Trigger, place: Seen) -> Rebalance:
        """The rebalance under way; a new one if there is none. It is reported once its cause is known."""
        rebalance = self.rebalance
        if rebalance is None:
            rebalance = self.rebalance = Rebalance(place, trigger, self.generation)
        elif rebalance.is_unexplained and trigger.cause not in FOLLOWS:
            rebalance.explain(trigger, place)
        if rebalance.trigger.cause != "unknown":
            self._report_began(rebalance)
        return rebalance

    def _report_began(self, rebalance: Rebalance) -> None:
        if not rebalance.reported:
            rebalance.reported = True
            trigger = rebalance.trigger
            self.pending.append(_rebalance_began(
                self.group, *rebalance.began, None, self.kind, trigger.cause, trigger.member_id,
                trigger.inferred, trigger.detail, trigger.client_id,
            ))  # fmt: skip

    def end(self, outcome: Outcome, place: Seen) -> None:
        """Close the rebalance under way, if there is one."""
        rebalance, self.rebalance = self.rebalance, None
        if rebalance is None:
            return
        self._report_began(rebalance)
        after = self.assigned() if outcome != "superseded" or self.kind == "classic" else {}
        moved: Iterable[Moved] = ()
        idle: tuple[Idle, ...] = ()
        if outcome in ("steady", "empty"):
            moved = self._as_named(partitions_moved(self.settled, after))
            self.settled = after
        if outcome != "superseded":  # else it goes on in the next
            gaps = self.consumption.take_gaps()
            if outcome == "unfinished":
                gaps += self._open_gaps(place)
            idle = tuple(self._as_named(gaps))
        began_ns, joined_ns = rebalance.began.time_ns, rebalance.joined_ns
        place = _not_before(began_ns, place)
        if joined_ns is not None and began_ns is not None:
            joined_ns = max(joined_ns, began_ns)
        if outcome == "superseded" and (joined_ns or 0) > (place.time_ns or 0):
            joined_ns = None  # the next one began before any had its generation
        place = _not_before(joined_ns, place)
        members = rebalance.members_now or self._joined(rebalance) or tuple(after)
        length = None if began_ns is None or place.time_ns is None else max(place.time_ns - began_ns, 0)
        trigger = rebalance.trigger
        assignments = [
            _new(Assignment, (name, self._named(partitions))) for name, partitions in after.items()
        ]
        self.pending.append(_rebalance_ended(
            self.group, *place, None, self.kind, outcome, trigger.cause, trigger.member_id, trigger.inferred,
            trigger.detail, began_ns, joined_ns, place.time_ns, length, rebalance.generation_before,
            rebalance.generation, rebalance.protocol, rebalance.leader, members, rebalance.last_to_join,
            tuple(assignments), tuple(moved), idle, trigger.client_id,
            self.late(rebalance) if outcome in ("superseded", "unfinished") else (),
            () if outcome == "superseded" else self._standby(),
            self._lost(rebalance) if outcome == "unfinished" else (),
        ))  # fmt: skip

    def _open_gaps(self, place: Seen) -> tuple[Idle, ...]:
        """The gaps so far of what had an owner when the group was last steady, of topics that are there and
        members want."""
        topics = {topic for member in self.members.values() for topic in member.topics}
        are_all = self.kind == "streams" or any(topic.startswith("/") for topic in topics)
        had = {partition for partitions in self.settled.values() for partition in partitions}
        return tuple(
            gap
            for gap in self.consumption.open_gaps(had, place.time_ns)
            if (are_all or self.name_of(gap.topic) in topics)
            and not self.topic_changes.is_deleted(self.name_of(gap.topic), gap.since_ns)
        )

    def _joined(self, rebalance: Rebalance) -> tuple[str, ...]:
        """The members that were seen joining, and have not gone."""
        return tuple(name for name in rebalance.joined if not self.has_gone(name))

    def _standby(self) -> tuple[Assignment, ...]:
        """The standby tasks of a streams group's members."""
        if self.kind != "streams":
            return ()
        return tuple(
            Assignment(name, self._named(member.standby))
            for name, member in self.members.items()
            if member.standby
        )

    def late(self, rebalance: Rebalance) -> tuple[str, ...]:
        """The members that a rebalance waits for, in a group that is not too large to look at each."""
        if len(self.members) > MOST_LATE:
            return ()
        if rebalance.generation is not None:
            waiting = rebalance.unsynced_named | rebalance.unjoined
            return tuple(name for name in self.members if name in waiting)
        began_ns = rebalance.began.time_ns or 0
        if not rebalance.joined or not began_ns or self.holes.count:
            return ()  # no member waits, or a JoinGroup may be missing
        return tuple(  # those who ask for other things since it began, and do not join
            name
            for name, member in self.members.items()
            if name not in rebalance.joined and member.asked_ns > began_ns
        )

    def _lost(self, rebalance: Rebalance) -> tuple[LostMember, ...]:
        """The members that a rebalance can't end without, and whose connections ended."""
        if len(self.members) > MOST_LATE:
            return ()
        if rebalance.generation is None:
            waiting = self.members.keys() - rebalance.joined
        else:
            waiting = rebalance.unsynced_named | rebalance.unjoined
        every = []
        for name, member in self.members.items():
            end = self.connections.end_of(MemberName(self.group, name)) if name in waiting else None
            if end is not None and not member.away:
                every.append(LostMember(name, end.time_ns, end.packet))
        return tuple(every)

    def assigned(self) -> dict[str, Owned]:
        """What each member has, as far as that is known."""
        known = [member for name, member in self._assigned.items() if self.members.get(name) is member]
        self._assigned = {member.member_id: member for member in sorted(known, key=_serial)}
        return {
            name: member.assigned for name, member in self._assigned.items() if member.assigned is not None
        }

    def _as_named(self, rows: Iterable[M]) -> Iterable[M]:
        """The same with the topics' names."""
        name_of = self.name_of
        return rows if name_of is str else [_with_topic(row, name_of(row.topic)) for row in rows]

    def _named(self, owned: Owned) -> tuple[TopicPartition, ...]:
        name_of = self.name_of
        if name_of is str:
            return _sorted(owned) if len(owned) <= MOST_KEPT else tuple(sorted(owned))
        return tuple(sorted([_new(TopicPartition, (name_of(topic), number)) for topic, number in owned]))


_sorted: Callable[[Owned], tuple[TopicPartition, ...]] = lru_cache(1024)(lambda owned: tuple(sorted(owned)))


def _with_topic(row: Any, topic: str) -> Any:
    """A row with another topic, its first value; `_replace` takes several times as long."""
    return _new(type(row), (topic, *row[1:]))


def _not_before(time_ns: int | None, place: Seen) -> Seen:
    """A place, not earlier than this: what ends is over after all that is of it."""
    if time_ns is None or place.time_ns is None or place.time_ns >= time_ns:
        return place
    return place._replace(time_ns=time_ns)
