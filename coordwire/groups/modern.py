"""A group whose coordinator assigns (KIP-848, share groups, streams groups), by its heartbeats.

Strategy: a heartbeat with epoch 0 joins, one below 0 leaves; an answer may bring a new epoch and a new
assignment, which the member has taken up once it reports to own just that. A rebalance begins when something
raises the group's epoch (a member that joins, leaves, subscribes to other topics or is gone without a word;
else the coordinator itself) and is steady once all members have taken up theirs in it (`reconciliation`).
What comes after a member has the new epoch begins another, but joins within a second are one. Rules: a null
field means "as before"; members of a share group don't say what they own, so that theirs counts as taken up
at once; of a streams group's tasks, which take the place of partitions, only the active ones count. Topics go
by their ids, which are named when they are reported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coordwire.capture.entries import FrameEntry
from coordwire.enums import ErrorCode
from coordwire.groups.consumer_data import changed, id_text, owned, wanted_topics
from coordwire.groups.group import UNAVAILABLE, Group
from coordwire.groups.member_death import KnownTimeouts, Sessions, SessionTimeout
from coordwire.groups.members import Member, Members, Owned
from coordwire.groups.rebalance import Rebalance, Why
from coordwire.groups.rebalance_cause import of_death, of_epoch, of_first_heartbeat
from coordwire.groups.reconciliation import Reconciliation
from coordwire.groups.seen import Seen
from coordwire.groups.timeline_events import Kind, Leaving, Outcome

__all__ = ["ModernGroup"]

GONE = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}
STAYS = {*UNAVAILABLE, ErrorCode.FENCED_MEMBER_EPOCH}
"""What a member is refused with that stays a member."""

JOIN, LEAVE_FOR_NOW = 0, -2

KEEPS_EPOCH = ("member_rejoined", "static_member_returned")
"""What need not raise the group's epoch."""

MOST_SUPERSEDED = 100
"""A superseded rebalance of more members doesn't list them: each joining of many would list them all."""

JOINS = ("first_member", "new_member", "member_rejoined")

ASSIGNMENT_INTERVAL_NS = 1_000_000_000
"""The coordinator assigns at most so often (KIP-1263)."""

LATEST_EPOCH_NS = 2_000_000_000
"""A rebalance that hasn't raised the epoch by then won't: the coordinator assigns at least once a second."""


class ModernGroup(Group):
    """One such group. name_of: a topic's name by its id's text; known: all groups' session timeouts. place:
    where a frame was seen; asked: where the request that it answers was."""

    def __init__(self, group: str, kind: Kind, name_of: Callable[[str], str], known: KnownTimeouts) -> None:
        super().__init__(group, kind, name_of)
        self.members = Members(self._out)
        self.timeout = SessionTimeout(group, kind, known)
        self.progress = Reconciliation(shared=kind == "share")
        self._sessions = Sessions(self.members, self.quiet_ns)
        self._risen: tuple[int, int] | None = None  # the epochs of a rise that nothing has explained yet

    def _out(self, member_id: str) -> None:
        self.progress.drop(member_id)

    def heartbeat(
        self, entry: FrameEntry, request: Any, message: Any, place: Seen, asked: Seen, host: str | None
    ) -> None:
        """A heartbeat's answer with its request."""
        member_id = request.member_id or message.member_id or ""
        if message.error_code:
            self._refused(message.error_code, member_id, place)
            self.expire(place)
            return
        if request.member_epoch < JOIN:
            self.expire(asked)
            self._leaves(request, member_id, place, asked)
            return
        self.timeout.heartbeat_interval(message.heartbeat_interval_ms)
        member = self.members.get(member_id)
        if member is not None:
            self.alive_at(member, asked, place)
        self.expire(asked)
        if member is None or (request.member_epoch == JOIN and member.generation != JOIN):
            member = self._joins(member, member_id, entry, request, message, asked, host, place)
        topics = wanted_topics(request)
        if topics is not None and topics != member.topics:
            why = Why("subscription_changed", member_id, detail=changed(member.topics, topics))
            member.topics = topics
            self.disturbed(why, asked)
        member.away = False
        self._reconcile(member, request, message, place, asked)

    def alive_at(self, member: Member, asked: Seen, place: Seen) -> None:
        """A member was heard, and is in."""
        silence_ns = self.silence(member, asked)
        if self.timeout.refutes_absence(silence_ns):
            self.unavailable(asked)  # else it would be out
        elif not member.away:
            self.timeout.survived(silence_ns)
        member.last_seen_ns = place.time_ns
        self.watch(member)

    def silence(self, member: Member, place: Seen) -> int:
        """For how long a member was silent to its coordinator, in nanoseconds; 0 where no time is known."""
        heard_ns = self.heard_ns(member)
        return 0 if heard_ns is None or place.time_ns is None else place.time_ns - heard_ns

    def quiet(self, member: Member, place: Seen) -> int:
        """For how long nothing was seen of a member, in nanoseconds; 0 where no time is known."""
        quiet_ns = self.quiet_ns(member)
        return 0 if quiet_ns is None or place.time_ns is None else place.time_ns - quiet_ns

    def watch(self, member: Member) -> None:
        """A member's session runs."""
        self._sessions.watch(member)

    def _joins(
        self, old: Member | None, member_id: str, entry: FrameEntry, request: Any, message: Any,
        asked: Seen, host: str | None, place: Seen,
    ) -> Member:  # fmt: skip
        instance_id = getattr(request, "instance_id", None)
        static = self.members.of_instance(instance_id)
        member = Member(member_id, entry.client_id, host, instance_id, wanted_topics(request) or ())
        member.last_seen_ns = place.time_ns
        if old is None and request.member_epoch != JOIN:
            member.generation = request.member_epoch  # it was in before the input began
        else:
            if not self.members and message.member_epoch < (self.generation or 0):
                self.generation = None  # the group was deleted, and is a new one
            why = of_first_heartbeat(self, member, old, static)
            if old is not None:
                self.consumption.ends(member_id, asked.time_ns)
            if static is not None:
                self.members.drop(static.member_id)
                self.consumption.passes(static.member_id, member_id)
                member.assigned = static.assigned
            self.disturbed(why, asked).join(member_id, asked.time_ns)
        known = old is not None or static is not None or request.member_epoch != JOIN
        self.add(member, place, rejoined=known)
        self.watch(member)
        return member

    # --- leaving ---

    def _leaves(self, request: Any, member_id: str, place: Seen, asked: Seen) -> None:
        if request.member_epoch == LEAVE_FOR_NOW:
            self.remove(member_id, asked, "left_for_now")  # its partitions wait for it: no rebalance
            self.progress.leaves(member_id)
            return
        self.remove(member_id, asked, "left")
        self.departed(Why("member_left", member_id), asked, place)

    def departed(self, why: Why, when: Seen, place: Seen) -> None:
        """A member is out."""
        if not self.members:
            self.close("empty", when)
            return
        self.disturbed(why, when)
        self.settle(None, place)

    def _refused(self, error_code: int, member_id: str, place: Seen) -> None:
        member = self.members.get(member_id)
        if error_code in UNAVAILABLE:
            self.unavailable(place)
        if member is not None and error_code in STAYS:
            member.last_seen_ns = place.time_ns
            if error_code == ErrorCode.FENCED_MEMBER_EPOCH:
                self.consumption.ends(member_id, place.time_ns)  # it gives up all and joins again
        if error_code not in GONE or member is None:
            return
        silence_ns = self.silence(member, place)
        if error_code != ErrorCode.UNKNOWN_MEMBER_ID:
            self.remove(member_id, place, "fenced")
            self.departed(Why("member_fenced", member_id), place, place)
        elif self.timeout.explains(silence_ns):
            self.died(member, place, "UNKNOWN_MEMBER_ID", shown=place)
        else:
            self.remove(member_id, place, "removed", inferred=True)
            why = Why("member_removed", member_id, inferred=True, detail="UNKNOWN_MEMBER_ID")
            self.departed(why, place, place)

    def expire(self, place: Seen, *, at_end: bool = False) -> None:
        """Members whose sessions must be over by now are out."""
        while (first := self._sessions.first()) is not None:
            most_ns = self.timeout.most_at_end_ns if at_end else self.timeout.most_ns
            if self.quiet(first, place) <= most_ns:
                return
            self.died(first, place, "")

    def died(self, member: Member, place: Seen, sign: str, shown: Seen | None = None) -> None:
        """A member is gone without a word. sign: what shows it; shown: where, if not its silence alone."""
        rebalance = self.rebalance
        if rebalance is not None and rebalance.why.cause == "unknown" and shown is not None:
            shown = shown.at(rebalance.began.time_ns)
        if shown is not None and not member.session_timeout_ms:
            self.timeout.ended(self.silence(member, shown))
        when = place
        heard_ns = self.heard_ns(member)
        if heard_ns is not None:
            own_ns = (member.session_timeout_ms or 0) * 1_000_000
            when = (shown or place).at(heard_ns + (own_ns or self.timeout.likely_ns))
        self.remove(member.member_id, when, "session_timeout", inferred=True)
        self.departed(of_death(member, self.silence(member, shown or place), sign), when, place)

    # --- rebalances ---

    def disturbed(self, why: Why, place: Seen) -> Rebalance:
        """Something raises the epoch: another rebalance, if a member has the epoch of this one already."""
        self._close_even()
        rebalance = self.rebalance
        if rebalance is not None and self.progress.even_since is None and _batched(rebalance, why, place):
            return rebalance
        if rebalance is not None and rebalance.why.cause != "unknown" and rebalance.joined_ns is not None:
            self.close("superseded", place)
        if self.rebalance is None:
            self.progress.begin()
            self._risen = None
        return self.begin(why, place)

    def _close_even(self) -> None:
        """Something else begins: the rebalance under way is over if the group was even."""
        rebalance, even = self.rebalance, self.progress.even_since
        if rebalance is None or even is None or rebalance.why.cause == "unknown":
            return
        if rebalance.joined_ns is not None or rebalance.why.cause in KEEPS_EPOCH:
            self.close("steady", even)

    def remove(
        self, member_id: str, place: Seen, how: Leaving, *, reason: str | None = None, inferred: bool = False
    ) -> None:
        self._close_even()  # while its members are those that it was even with
        super().remove(member_id, place, how, reason=reason, inferred=inferred)

    def _reconcile(self, member: Member, request: Any, message: Any, place: Seen, asked: Seen) -> None:
        reported, given = self._partitions(request), self._partitions(message)
        if given is not None and given != member.assigned:
            self._replaced(member, given, place)
        self.in_epoch(member, message.member_epoch, place, asked)
        if reported is not None:
            member.owned = reported
        if given is not None and given != member.assigned:
            self.gives(member, given, place)
        self.takes_up(member, given is not None or reported is not None, place)

    def assign(self, member: Member, partitions: Owned | None) -> None:
        super().assign(member, partitions)
        self.progress.hold(member.member_id, partitions)

    def gives(self, member: Member, partitions: Owned, place: Seen) -> None:
        """A member has another assignment."""
        if self.rebalance is None and member.assigned is not None:
            detail = "its coordinator gave it another assignment"
            why = Why("assignment_changed", member.member_id, inferred=True, detail=detail)
            self.disturbed(why, place).joined_ns = place.time_ns
        self.assign(member, partitions)
        self.consumption.has(member.member_id, partitions, place.time_ns)

    def takes_up(self, member: Member, anew: bool, place: Seen) -> None:
        """A member was heard. anew: what it has or shall have may have changed."""
        if (anew and member.owned == member.assigned) or self.kind == "share":
            member.owned = member.assigned  # so that they need not be compared again
        if self.members.get(member.member_id) is member:
            self.progress.note(member)
        self.settle(member.member_id, place)

    def _replaced(self, member: Member, given: Owned, place: Seen) -> None:
        """A member is given what others had: those that were silent meanwhile are gone."""
        for name in self.progress.former_owners(member.member_id, given):
            former = self.members.get(name)
            if former is not None and self.timeout.is_replaced(self.quiet(former, place)):
                self.died(former, place, "another member has its partitions", shown=place)

    def in_epoch(self, member: Member, epoch: int, place: Seen, asked: Seen) -> None:
        """A member's answer has an epoch, which may be a new one of the group."""
        known = member.generation is not None or self.rebalance is not None
        member.generation = epoch
        before = self.generation
        if before is not None and epoch <= before:
            return
        rebalance = self.rebalance
        if before is None or not known or (rebalance is not None and rebalance.joined_ns is None):
            pass
        elif rebalance is None or rebalance.why.cause not in JOINS or self.progress.has_owners:
            self._unexplained(before, epoch, place, asked)  # else nothing was assigned until now
        self.generation = epoch
        rebalance = self.rebalance
        if rebalance is not None and rebalance.joined_ns is None and not _earlier(place, rebalance.began):
            rebalance.joined_ns = place.time_ns or 0

    def _unexplained(self, before: int, epoch: int, place: Seen, asked: Seen) -> None:
        """The epoch rose, and nothing was seen that raises it: a session may have ended."""
        suspect = self._sessions.first()
        silent = suspect is not None and self.timeout.explains(self.quiet(suspect, asked))
        sign = f"the group's epoch rose to {epoch}"
        if suspect is None or not silent:
            self.disturbed(of_epoch(before, epoch), asked)
        elif self.timeout.is_known or not self.progress.is_exclusive(suspect.member_id):
            self.died(suspect, place, sign, shown=asked)
        else:  # whoever gets its partitions will show
            self.disturbed(Why("unknown", inferred=True, detail=sign), asked)
            self._risen = before, epoch

    def settle(self, member_id: str | None, place: Seen) -> None:
        """Close the rebalance if all have taken up what they were given."""
        progress, rebalance = self.progress, self.rebalance
        if rebalance is None:
            return
        if progress.is_empty:
            self.close("empty", place)
            return
        if member_id is None:
            return
        progress.heard(member_id, self.generation, place)
        even, cause = progress.even_since, rebalance.why.cause
        if even is None or _earlier(place, rebalance.began):
            return  # an answer that comes late, after a lost packet, says nothing of what began since
        renewed = rebalance.joined_ns is not None or cause == "static_member_returned"
        assigned = progress.has_owners or cause not in JOINS
        if renewed and progress.is_complete and assigned:
            self.close("steady", place)
        elif self.kind == "streams" and not assigned:
            return  # tasks come after the group's initial delay, and after the internal topics
        elif progress.is_confirmed and (renewed or cause in KEEPS_EPOCH or _later(even, place)):
            self.close("steady", even)

    def _partitions(self, message: Any) -> Owned | None:
        """What its member owns, by a heartbeat, or its answer that it shall own; None for no change."""
        if self.kind == "streams":
            tasks = message.active_tasks
            return None if tasks is None else owned((one.subtopology_id, one.partitions) for one in tasks)
        inside = getattr(message, "assignment", message)
        topics = None if inside is None else getattr(inside, "topic_partitions", None)
        if topics is None:
            return None
        return owned((id_text(one.topic_id), one.partitions) for one in topics)

    def close(self, outcome: Outcome, place: Seen) -> None:
        """End the rebalance under way."""
        rebalance = self.rebalance
        if rebalance is not None:
            if (
                rebalance.why.cause == "member_rejoined"
                and rebalance.joined_ns is None
                and outcome == "steady"
            ):
                outcome = "not_needed"
            rebalance.generation = self.generation
            few = outcome != "superseded" or len(self.members) <= MOST_SUPERSEDED
            rebalance.members = tuple(self.members) if few else ()
            if outcome == "steady" and len(self.members) > 1:
                rebalance.slowest = self.progress.even_by
            if rebalance.why.cause == "unknown" and self._risen is not None:
                rebalance.why = of_epoch(*self._risen)
        self.end(outcome, place)
        if outcome != "superseded":
            self.progress.end()

    def finish(self, place: Seen) -> None:
        """The input is at its end."""
        self.expire(place, at_end=True)
        even = self.progress.even_since
        if even is not None and self.rebalance is not None and self.rebalance.joined_ns is not None:
            self.close("steady", even)
        self.close("unfinished", place)


def _batched(rebalance: Rebalance, why: Why, place: Seen) -> bool:
    """Whether a join is part of a rebalance that another began: the coordinator assigns once for both."""
    both = why.cause in JOINS and rebalance.why.cause in JOINS
    return both and (place.time_ns or 0) - (rebalance.began.time_ns or 0) < ASSIGNMENT_INTERVAL_NS


def _earlier(place: Seen, began: Seen) -> bool:
    return place.time_ns is not None and began.time_ns is not None and place.time_ns < began.time_ns


def _later(even: Seen, place: Seen) -> bool:
    if even.time_ns is None or place.time_ns is None:
        return False
    return place.time_ns - even.time_ns > LATEST_EPOCH_NS
