"""Groups of draft 3, whose consumers join and ping, and whose coordinator answers.

Strategy: what the coordinator knows of a group is followed by its answers. All joins of a generation are
answered together: who is not among them is out. A member that has not pinged for its session timeout, as its
join says it, is out too, and the group rebalances from then on; of that the next ping's answer shows
something, or nothing does. The others have the longest of their sessions to join. A rebalance begins with the
first join, or with the end of a session, and ends with the answers of the generation.

Rules: a join that was refused is none. Another broker that accepts joins or pings is the coordinator from
then on; it either knows all members, whose sessions begin again, or none, which its answers show. One
that had ended all connections for long may be the same: the next generation, or a rebalance that only a
session which it kept explains, shows it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from coordwire.capture.entries import ConnectionEnd
from coordwire.dialects.draft_registrations import ending_of
from coordwire.timeline.consumer_data import owned
from coordwire.timeline.events import Leaving, MemberLeft
from coordwire.timeline.evidence import Seen, remember
from coordwire.timeline.from_wire.member_death import Sessions
from coordwire.timeline.group import Group
from coordwire.timeline.members import MOST_MEMBERS, Member
from coordwire.timeline.rebalance import Trigger

MS = 1_000_000
SOON_NS = 20 * MS
"""A session's end may be noticed so much later."""

WAITED_NS = 100 * MS
"""The only join of a group that is answered so late had to wait for another."""

AWAY_NS = 2_000 * MS
"""A coordinator that had ended all connections for so long knows its members from others, if at all."""

MOST_REASONS = 100
MOST_TIMEOUTS = 10_000
UNKNOWN_CONSUMER, REBALANCE_IN_PROGRESS = 25, 27


@dataclass(slots=True, eq=False)
class JoiningConnection:
    """A connection on which a consumer joins or pings. member_id: as far as it is known; joining: its join
    that waits for an answer; session_ms: as that says. overdue_ns: when the session had ended after which
    its member pings, if one coordinator has kept it.
    """

    client: str
    broker: str
    member_id: str | None = None
    joining: Seen | None = None
    session_ms: int = 0
    topics: tuple[str, ...] = ()
    overdue_ns: int | None = None


class JoinedGroup:
    """One group."""

    def __init__(self, group_id: str) -> None:
        self.group = Group(group_id, "draft")
        self.group.members.on_drop = self._drop
        self._broker: str | None = None
        self._open: dict[str, set[JoiningConnection]] = {}  # by broker
        self._moved: Trigger | None = None  # another coordinator, which is not known to have the group
        self._outage: Seen | None = None  # since when the coordinator has ended all connections
        self._waiting: dict[JoiningConnection, None] = {}
        self._last_places: dict[str, Seen] = {}
        self._ends: dict[str, ConnectionEnd] = {}
        self._read_ns: dict[str, int] = {}  # when the coordinator is known to have read of a member last
        self._sessions = Sessions(self.group.members, self._session_end)
        self._since_ns = 0  # when the sessions of all members began again with a new coordinator
        self._is_since_inferred = False  # it may be the one before, which has kept the sessions
        self._kept_sessions = Sessions(self.group.members, _kept_end)
        self._knew_none = False  # the coordinator of this generation began anew
        self._timeouts: OrderedDict[str, int] = OrderedDict()  # of members that were removed
        self._reasons: list[tuple[Trigger, Seen, JoiningConnection | None]] = []
        self._lost: list[tuple[Trigger, Seen, JoiningConnection | None]] = []  # joins of an empty group
        self._removals: list[tuple[Trigger, Seen]] = []  # by a coordinator that may know none
        self._cause: JoiningConnection | None = None
        self._batch: dict[str, None] = {}
        self._batch_end: Seen | None = None
        self._more_may_come = False  # answers of this generation to joins whose connections have ended
        self._round_ends_ns: int | None = None  # until when those that remain of a removal have to join

    # --- frames ---

    def feed(self, connection: JoiningConnection, message: Any, place: Seen) -> None:
        """A message on a connection of one of its consumers."""
        self._open.setdefault(connection.broker, set()).add(connection)
        match type(message).__name__:
            case "Draft3JoinGroupResponse" if message.error_code == 0:
                self._joined(connection, message, place)
                return
        self.settle(place)
        match type(message).__name__:
            case "Draft3JoinGroupRequest":
                self._join(connection, message, place)
            case "Draft3JoinGroupResponse":
                self._refused(connection, place)
            case "Draft3PingRequest":
                self._ping(connection, message, place)
            case "Draft3PingResponse":
                self._pinged(connection, message, place)

    def join_again(self, connection: JoiningConnection, message: Any, place: Seen) -> None:
        """A join that is answered although its connection has ended, perhaps in the generation that is."""
        self._open.setdefault(connection.broker, set()).add(connection)
        self._join(connection, message, place)

    def settle(self, place: Seen, *, within_ns: int = -SOON_NS) -> None:
        """End the generation that was answered, and the sessions that are over by now, or soon."""
        self._end_batch()
        if self._outage is not None:
            return
        time_ns = (place.time_ns or 0) + within_ns
        if self._round_ends_ns is not None and self._round_ends_ns < time_ns:
            self._end_sessions(self._sessions, self._session_end, self._round_ends_ns, place)
            self._close_round(place)
        self._end_sessions(self._sessions, self._session_end, time_ns, place)

    def _close_round(self, place: Seen) -> None:
        """Those that have not joined are out."""
        ended_ns, self._round_ends_ns = self._round_ends_ns, None
        if ended_ns is not None:
            for member in [missing for missing in self.group.members.values() if not missing.parked]:
                self._remove(member, place.at(ended_ns), "not_rejoined")

    def _end_sessions(
        self, sessions: Sessions, end_of: Callable[[Member], int | None], time_ns: int, place: Seen
    ) -> None:
        """End those that are over before a time. end_of: the key of `sessions`."""
        while sessions.may_begin_before(time_ns):
            member = sessions.first()
            end_ns = None if member is None else end_of(member)
            if member is None or end_ns is None or end_ns >= time_ns:
                return
            self._remove(member, place.at(end_ns), "session_timeout")

    # --- joins ---

    def _join(self, connection: JoiningConnection, message: Any, place: Seen) -> None:
        connection.joining = place
        connection.session_ms = message.session_timeout
        connection.topics = tuple(message.subscribing)
        self._waiting[connection] = None
        member = self.group.members.get(connection.member_id or "")
        if member is not None:
            member.parked = True
            self._last_places[member.member_id] = place
        trigger = self._join_trigger(connection, member)
        if len(self._reasons) < MOST_REASONS:
            self._reasons.append((trigger, place, connection))

    def _join_trigger(self, connection: JoiningConnection, member: Member | None) -> Trigger:
        if member is not None:
            return Trigger("member_rejoined", member.member_id)
        return Trigger("new_member" if self.group.members else "first_member")

    def _leaves_queue(self, connection: JoiningConnection, place: Seen) -> None:
        """A join does not wait any longer."""
        connection.joining = None
        self._waiting.pop(connection, None)
        member = self.group.members.get(connection.member_id or "")
        if member is not None and member.parked:
            member.parked = False
            self._is_alive(member, place)

    def _refused(self, connection: JoiningConnection, place: Seen) -> None:
        self._reasons = [reason for reason in self._reasons if reason[2] is not connection]
        self._leaves_queue(connection, place)

    def end(self, connection: JoiningConnection, end: ConnectionEnd, place: Seen) -> None:
        """A connection has ended: its join can't be answered, and its member's session runs from now."""
        self.settle(place)
        self._more_may_come |= connection.joining is not None and end.sender == "client"
        self._leaves_queue(connection, place)
        self._is_empty()
        if (name := connection.member_id or "") in self.group.members:
            self._ends[name] = end
        self.forget(connection)
        is_last = connection.broker not in self._open
        if end.sender == "broker" and connection.broker == self._broker and is_last:
            self._outage = self._outage or place

    def forget(self, connection: JoiningConnection) -> None:
        """A connection is not remembered any longer."""
        self._waiting.pop(connection, None)
        still_open = self._open.get(connection.broker, set())
        still_open.discard(connection)
        if not still_open:
            self._open.pop(connection.broker, None)

    def _drop(self, name: str) -> None:
        """A member is not remembered any longer."""
        for known in (self._last_places, self._ends, self._read_ns):
            known.pop(name, None)

    def _joined(self, connection: JoiningConnection, message: Any, place: Seen) -> None:
        """One answer of a generation."""
        group = self.group
        if self._batch and message.generation != group.generation:
            self._end_batch()
        self._accepts(connection, place)
        name = message.consumer_id or ""
        member = group.members.get(name)
        if not self._batch:
            connection.member_id = name
            self._compare_generations(message.generation, place)
            self._begin(place)
            group.generation = message.generation
            assert group.rebalance is not None
            group.rebalance.generation = message.generation
        joining = connection.joining or place
        if member is None:
            member = Member(
                name, host=connection.client or None, topics=connection.topics,
                session_timeout_ms=connection.session_ms or None,
            )  # fmt: skip
            group.add(member, joining)
        member.session_timeout_ms = connection.session_ms or member.session_timeout_ms
        connection.member_id = name
        self._leaves_queue(connection, place)
        self._is_alive(member, place)
        self._read_ns[name] = place.time_ns or 0
        parts = owned((part.topic or "", [part.partition]) for part in message.partitions_to_own)
        group.assign(member, parts)
        group.consumption.has(name, parts, place.time_ns)
        if group.rebalance is not None:
            group.rebalance.join(name, joining.time_ns)
            group.rebalance.sync(name)
        if len(self._batch) < MOST_MEMBERS:
            self._batch[name] = None
        self._batch_end = place
        if not self._waiting and not self._more_may_come:
            self._end_batch()

    def _compare_generations(self, generation: int, place: Seen) -> None:
        """Whether a coordinator that may be a new one continues the group."""
        before = self.group.generation
        self._knew_none = self._moved is not None and before is not None and generation <= before
        if self._knew_none or (before is not None and generation > before + 1):
            # The joins whose connections have ended went with the coordinator, or into one without answers.
            self._reasons = [reason for reason in self._reasons if reason[2] in self._waiting]
        if self._moved is not None and self._moved.inferred and not self._knew_none:
            self._moved = None
            self._end_kept(place)

    def _end_kept(self, place: Seen) -> None:
        """The coordinator is the one before after all: end the sessions that are over then."""
        if self._is_since_inferred:
            self._end_sessions(self._kept_sessions, _kept_end, place.time_ns or 0, place)

    def _is_empty(self) -> bool:
        """Whether no consumer is in, or asks to be. Joins whose connections have ended are remembered: their
        sessions run, which shows if one that comes is not answered at once."""
        if self.group.members or self._waiting:
            return False
        self._lost += [reason for reason in self._reasons if reason[2] is not None]
        del self._lost[MOST_REASONS:]
        self._reasons.clear()
        return True

    def _end_unread(self, place: Seen) -> None:
        """End the sessions that are over if the last ping was lost with its connection, unanswered."""
        for name in [name for name in self._ends if name in self.group.members]:
            member = self.group.members[name]
            timeout_ms, read_ns = member.session_timeout_ms, self._read_ns.get(name)
            if timeout_ms is None or read_ns is None or member.parked:
                continue
            if (ended_ns := read_ns + timeout_ms * MS) < (place.time_ns or 0):
                self._remove(member, place.at(ended_ns), "session_timeout")

    def _begin(self, place: Seen) -> None:
        """The rebalance, from what was first seen of it on."""
        if self.group.rebalance is not None:
            return
        if not self._reasons:
            self.settle(place, within_ns=SOON_NS)
        if not self._reasons:
            self._end_kept(place)
        if not self._reasons:
            self._end_unread(place)
        unknown = Trigger("unknown", inferred=True, detail="consumers are asked to join again")
        if self._lost and self._reasons and place.time_ns is not None:
            waited_ns = place.time_ns - min(reason[1].time_ns or 0 for reason in self._reasons)
            self._reasons += self._lost if waited_ns > WAITED_NS else ()
        reasons = sorted(self._reasons, key=lambda reason: reason[1].time_ns or 0)
        trigger, first, self._cause = reasons[0] if reasons else (unknown, place, None)
        if self._moved is not None:
            trigger, self._cause = self._moved, None
        if self._cause is not None and trigger.member_id is None:
            name = self._cause.member_id
            trigger = trigger._replace(member_id=name, client_id=None if name else self._cause.client)
        self.group.begin(trigger, first)

    def _end_batch(self) -> None:
        """All joins of a generation are answered: the others are out."""
        place, group = self._batch_end, self.group
        if place is None:
            return
        self._batch_end = self._round_ends_ns = None
        self._more_may_come = False
        batch, self._batch = self._batch, {}
        if len(batch) < len(group.members):
            for member in [missing for name, missing in group.members.items() if name not in batch]:
                ended_ns = _kept_end(member) if self._knew_none else self._session_end(member)
                if ended_ns is None or member.parked or ended_ns > (place.time_ns or 0) + SOON_NS:
                    self._remove(member, place, "not_rejoined")
                else:
                    self._remove(member, place.at(ended_ns), "session_timeout")
        rebalance = group.rebalance
        if rebalance is not None and self._cause is not None and self._cause.member_id:
            rebalance.trigger = rebalance.trigger._replace(member_id=self._cause.member_id, client_id=None)
        self._cause = self._moved = None
        self._removals.clear()
        self._lost.clear()
        group.end("steady", place)
        self._reasons = [reason for reason in self._reasons if reason[2] in self._waiting]

    # --- pings ---

    def _ping(self, connection: JoiningConnection, message: Any, place: Seen) -> None:
        """A ping: the member lives, if the coordinator knows it."""
        connection.member_id = message.consumer_id or ""
        member = self.group.members.get(connection.member_id)
        kept_ns = None if member is None else _kept_end(member)
        is_over = kept_ns is not None and kept_ns + SOON_NS < (place.time_ns or 0)
        connection.overdue_ns = kept_ns if is_over else None
        if member is not None and not member.parked:
            self._is_alive(member, place)

    def _pinged(self, connection: JoiningConnection, message: Any, place: Seen) -> None:
        name = connection.member_id or ""
        member = self.group.members.get(name)
        if message.error_code == UNKNOWN_CONSUMER:
            self._accepts(connection, place)
            overdue_ns = connection.overdue_ns
            if member is not None and overdue_ns is not None:
                self._remove(member, place.at(overdue_ns), "session_timeout")
            elif member is not None:
                self._remove(member, place, "removed")
        elif message.error_code in (0, REBALANCE_IN_PROGRESS):
            self._accepts(connection, place)
            if connection.overdue_ns is not None:  # so the coordinator has not kept the sessions
                self._is_since_inferred = False
            if member is None:  # as it was before the input
                member = Member(
                    name, host=connection.client or None, session_timeout_ms=self._timeouts.pop(name, None)
                )
                self.group.add(member, place, was_in=True)
            if not member.parked:
                self._is_alive(member, place)
            self._read_ns[name] = place.time_ns or 0
            self._moved = None
            for reason in self._removals:  # it knows the group: those were sessions that ended
                self._add_reason(*reason)
            self._removals.clear()
            if message.error_code:
                self._begin(place)

    def answer_ended(self, connection: JoiningConnection, message: Any, place: Seen) -> None:
        """An answer on a connection that the consumer has closed: the coordinator has read the ping now."""
        self.settle(place)
        member = self.group.members.get(connection.member_id or "")
        is_known = message.error_code in (0, REBALANCE_IN_PROGRESS)
        if member is not None and not member.parked and is_known:
            self._begin_session(member, place)
            self._read_ns[member.member_id] = place.time_ns or 0

    # --- who is in ---

    def _accepts(self, connection: JoiningConnection, place: Seen) -> None:
        """A broker answers as the group's coordinator."""
        outage, self._outage = self._outage, None
        is_another = self._broker not in (None, connection.broker)
        self._broker = connection.broker
        away_ns = 0 if outage is None else (place.time_ns or 0) - (outage.time_ns or 0)
        if not is_another and away_ns < AWAY_NS:
            return
        self._round_ends_ns = None
        detail = "another broker answers" if is_another else "it knows the group no more"
        self._moved = Trigger("coordinator_moved", inferred=not is_another, detail=detail)
        self._since_ns = max(self._since_ns, place.time_ns or 0)
        self._is_since_inferred = not is_another

    def _add_reason(self, trigger: Trigger, place: Seen) -> None:
        rebalance = self.group.rebalance
        if rebalance is not None and rebalance.is_unexplained:
            self.group.begin(trigger, place)
        elif len(self._reasons) < MOST_REASONS:
            self._reasons.append((trigger, place, None))

    def _is_alive(self, member: Member, place: Seen) -> None:
        """A member's session begins again."""
        self._begin_session(member, place)
        member.last_seen_ns = member.asked_ns
        self._last_places[member.member_id] = place
        self._ends.pop(member.member_id, None)

    def _begin_session(self, member: Member, place: Seen) -> None:
        member.asked_ns = max(member.asked_ns, place.time_ns or 0)
        if member.session_timeout_ms is not None:
            self._sessions.watch(member)
            self._kept_sessions.watch(member)

    def _remove(self, member: Member, place: Seen, departure: Leaving) -> None:
        group, name = self.group, member.member_id
        if member.session_timeout_ms is not None:
            remember(self._timeouts, name, member.session_timeout_ms, MOST_TIMEOUTS)
        last_place, end = self._last_places.pop(name, place), self._ends.pop(name, None)
        last_ns, time_ns = last_place.time_ns or 0, place.time_ns or 0
        detail = f"silent for {max(time_ns - last_ns, 0) / 1e9:.3g} s"
        trigger = group.goes(name, place, departure, detail, inferred=True)
        event = group.pending[-1]
        if isinstance(event, MemberLeft):
            ending = ending_of(end, last_place, place)
            group.pending[-1] = replace(event, ending=ending)
        if departure == "session_timeout" and not self._reasons and group.rebalance is None:
            sessions = [remaining.session_timeout_ms or 0 for remaining in group.members.values()]
            self._round_ends_ns = time_ns + max(sessions) * MS if all(sessions) and sessions else None
        if self._is_empty():
            self._round_ends_ns = None
            group.end("empty", place)
        elif departure != "removed" or self._moved is None:
            self._add_reason(trigger, place)
        elif len(self._removals) < MOST_REASONS:
            self._removals.append((trigger, place))

    def finish(self, place: Seen) -> None:
        """The input is at its end."""
        self._outage = None
        self.settle(place)
        if self._waiting and self.group.rebalance is None and self._reasons:
            self._begin(place)
        self.group.end("unfinished", place)

    def _session_end(self, member: Member) -> int | None:
        """When a member's session ends; its timeout may be unknown."""
        if member.session_timeout_ms is None:
            return None
        return max(member.asked_ns, self._since_ns) + member.session_timeout_ms * MS


def _kept_end(member: Member) -> int | None:
    """The same as if there had been one coordinator all the time."""
    timeout_ms = member.session_timeout_ms
    return None if timeout_ms is None else member.asked_ns + timeout_ms * MS
