"""The state of a group whose coordinator assigns: its rebalances, silent members, and the causes of epochs.

Strategy: what heartbeats show changes this, and `modern_group` reads the heartbeats.

    rebalances  one begins when something raises the group's epoch, and is steady once all members have taken
                up theirs in it (`reconciliation`). What comes after a member has the new epoch begins
                another, but joins within a second are one. What may raise the epoch once more, though no
                answer shows it yet, is owed.
    silence     a member is out once it was silent for its session timeout (`member_death` has what is known
                of that), or when others have its partitions. The next epoch that nothing explains is its own.
    epochs      an answer shows a new epoch, and `epoch_causes` has what may have raised it; else a session
                may have ended, or the coordinator did it by itself.

Rules: topics go by their ids, which are named when they are reported.
"""

from __future__ import annotations

from collections.abc import Callable

from coordwire.timeline.consumer_data import has_pattern
from coordwire.timeline.events import Kind, Leaving, Outcome
from coordwire.timeline.evidence import MemberClaim, MemberName, Seen, Silence
from coordwire.timeline.from_wire.epoch_causes import (
    ASSIGNMENT_INTERVAL_NS,
    LATEST_EPOCH_NS,
    NEAR_NS,
    EpochCauses,
    UnseenMembers,
)
from coordwire.timeline.from_wire.member_death import KnownTimeouts, Sessions, SessionTimeout
from coordwire.timeline.from_wire.reconciliation import Reconciliation
from coordwire.timeline.group import MOST_LATE, Group
from coordwire.timeline.members import Member, Members, Owned
from coordwire.timeline.rebalance import Rebalance, Trigger
from coordwire.timeline.rebalance_cause import of_death, of_epoch, of_unseen_epoch

__all__ = ["FAR_NS", "LATE_NS", "ModernState", "give_up_by_ns"]

KEEPS_EPOCH = ("member_rejoined", "static_member_returned")
"""What need not raise the group's epoch."""

MOST_SUPERSEDED = 100
"""A superseded rebalance of more members doesn't list them: each joining of many would list them all."""

JOINS = ("first_member", "new_member", "member_rejoined")

LATE_NS = 10_000_000
"""So much later than a session began again may the answer be that says so."""

FAR_NS = 1 << 63

MOST_LOOKED_AT = 100
"""In a larger group, who didn't give up partitions in time is not looked for."""

FIRST_EPOCH = 1
"""A new group's, until a member's subscription raises it."""


class ModernState(Group):
    """Of one such group. name_of: a topic's name by its id's text; known: all groups' session timeouts.

    place: where a frame was seen; request_place: where the request that it answers was.
    """

    # --- rebalances ---

    def __init__(self, group: str, kind: Kind, name_of: Callable[[str], str], known: KnownTimeouts) -> None:
        super().__init__(group, kind, name_of)
        self.members = Members(self.drop_member)
        self.timeout = SessionTimeout(group, kind, known)
        self.progress = Reconciliation(shared=kind == "share")
        self.sessions = Sessions(self.members, self._read_ns)
        self.causes = EpochCauses(self.timeout)
        self._doubted: set[str] = set()  # silent members that were still in when their sessions seemed over
        self._out_or_moved: set[str] = set()  # whose sessions were over, or began again with a move
        self._leaving: dict[str, tuple[Seen, bool]] = {}  # whose leaving is not answered, and whether for now
        self.is_delayed = False  # whether a target is due, by the last answer
        self._in_before_ns = 0  # when a member was first seen that was in before the input began

    def drop_member(self, member_id: str) -> None:
        self.progress.drop(member_id)
        self._doubted.discard(member_id)
        self._out_or_moved.discard(member_id)
        self._leaving.pop(member_id, None)

    def raise_alone(self, trigger: Trigger, place: Seen) -> None:
        """A static member that is back raises the epoch, as it subscribes to something else: what needed no
        new epoch is over."""
        rebalance = self.rebalance
        if rebalance is not None and rebalance.joined_ns is None and rebalance.trigger.cause in KEEPS_EPOCH:
            self.close("superseded", place)
        self.causes.raise_later(trigger, place)

    def _has_pattern(self, member_id: str | None) -> bool:
        """Whether a member's joining raises the epoch later, when its pattern is resolved."""
        member = self.members.get(member_id or "")
        return member is not None and has_pattern(member.topics)

    def disturbed(self, trigger: Trigger, place: Seen, *, is_repeated: bool = False) -> Rebalance:
        """Something raises the epoch: another rebalance, if a member has the epoch of this one already.

        is_repeated: whether the sign was seen before, and only now proves to raise the epoch by itself.
        """
        if trigger.cause not in KEEPS_EPOCH or self.progress.is_complete:
            self._close_even()
        rebalance = self.rebalance
        if trigger.cause not in KEEPS_EPOCH and trigger.cause != "assignment_changed" and not is_repeated:
            self.causes.raise_later(trigger, place)
        if rebalance is not None and trigger.cause in KEEPS_EPOCH:
            self.causes.merged = trigger, place
            return rebalance
        if trigger.cause not in KEEPS_EPOCH and not is_repeated and not self._has_pattern(trigger.member_id):
            self.causes.raises += 1
        self.causes.drop_late(place)
        if rebalance is not None and self.causes.owed:
            if trigger.cause != "member_removed":  # else it was out before, and raised the epoch then
                self.causes.owe(trigger, place)
            self.causes.merged = trigger, place
            return rebalance  # there may be one target for both
        if rebalance is not None and rebalance.joined_ns is None and rebalance.trigger.cause in KEEPS_EPOCH:
            self.close("superseded", place)  # it needs no new epoch, and this does
            rebalance = None
        if rebalance is not None and _explains(trigger, place, rebalance):
            rebalance.explain(trigger, place)
            return rebalance
        if rebalance is not None and self.progress.even_since is None and _batched(rebalance, trigger, place):
            self.causes.merged = trigger, place
            return rebalance
        if rebalance is not None and rebalance.trigger.cause != "unknown" and rebalance.joined_ns is not None:
            self.close("superseded", place)
        if self.rebalance is not None:
            self.causes.merged = trigger, place
        else:
            self.progress.begin()
            self.causes.begin()
        return self.begin(trigger, place)

    def in_order(self, trigger: Trigger, place: Seen) -> tuple[Trigger, Seen]:
        """A member joins: what raises the epoch after the rebalance under way. Members that ask soon after
        each other may be answered in another order, and the coordinator takes the first request first."""
        rebalance = self.rebalance
        if rebalance is None or rebalance.trigger.cause != "new_member" or trigger.cause != "new_member":
            return trigger, place
        began = rebalance.began
        near_ns = (began.time_ns or 0) - (place.time_ns or 0)
        if not 0 < near_ns < ASSIGNMENT_INTERVAL_NS:
            return trigger, place
        later, rebalance.trigger = rebalance.trigger, trigger
        rebalance.began = began.at(place.time_ns)
        return later, began

    def departed(self, trigger: Trigger, moment: Seen, place: Seen) -> None:
        """A member is out."""
        self.causes.departures += 1
        if not self.members:
            if self.generation is not None:  # no member is left whose answer would have the epoch
                self.generation += self.causes.departures
            self.close("empty", moment)
            return
        self.disturbed(trigger, moment)
        self.settle(None, place)

    def _close_even(self) -> None:
        """Something else begins: the rebalance under way is over if the group was even."""
        rebalance, even = self.rebalance, self.progress.even_since
        if rebalance is None or even is None or rebalance.trigger.cause == "unknown" or self.causes.owed:
            return
        if self.is_delayed:
            return
        if rebalance.joined_ns is not None or rebalance.trigger.cause in KEEPS_EPOCH:
            self.close("steady", even)

    def remove(
        self,
        member_id: str,
        place: Seen,
        departure: Leaving,
        *,
        reason: str | None = None,
        inferred: bool = False,
    ) -> None:
        if departure != "left_for_now" or self.progress.is_complete:
            self._close_even()  # while its members are those that it was even with
        super().remove(member_id, place, departure, reason=reason, inferred=inferred)

    def assign(self, member: Member, partitions: Owned | None) -> None:
        super().assign(member, partitions)
        self.progress.hold(member.member_id, partitions)

    def settle(self, member_id: str | None, place: Seen) -> None:
        """Close the rebalance if all have taken up what they were given."""
        progress, rebalance = self.progress, self.rebalance
        if rebalance is None:
            return
        if progress.is_empty:
            if not self.members:
                self.close("empty", place)
            return  # else those that left for now will be back, or their sessions end
        if member_id is None:
            return
        progress.note_report(member_id, self.generation, place)
        even, cause = progress.even_since, rebalance.trigger.cause
        if even is None or self.is_delayed or is_earlier(place, rebalance.began):
            return  # an answer that comes late, after a lost packet, says nothing of what began since
        renewed = rebalance.joined_ns is not None or cause == "static_member_returned"
        if self.causes.owed:
            renewed = False  # a member that joined raises the epoch once more
        assigned = progress.has_owners or cause not in JOINS or self.kind != "consumer"
        if renewed and progress.is_complete and assigned:
            self.close("steady", place)
        elif progress.is_confirmed and (renewed or cause in KEEPS_EPOCH or _later(even, place)):
            self.causes.owed = []
            self.close("steady", even)

    def close(self, outcome: Outcome, place: Seen) -> None:
        """End the rebalance under way."""
        rebalance = self.rebalance
        if rebalance is not None:
            if (
                rebalance.trigger.cause == "member_rejoined"
                and rebalance.joined_ns is None
                and outcome == "steady"
            ):
                outcome = "not_needed"
            rebalance.generation = self.generation
            few = outcome != "superseded" or len(self.members) <= MOST_SUPERSEDED
            rebalance.members = tuple(self.members) if few else ()
            if outcome == "steady" and len(self.members) > 1:
                rebalance.slowest = self.progress.even_by
            if rebalance.trigger.cause == "unknown" and self.causes.risen is not None:
                rebalance.trigger = of_epoch(*self.causes.risen)
            elif rebalance.trigger.cause == "unknown" and self.causes.unseen is not None:
                rebalance.trigger = self.causes.unseen.cause() or rebalance.trigger
        self.end(outcome, place)
        if outcome != "superseded":
            self.progress.end()
            self.causes.raises = 0  # what raised it was shown

    def late(self, rebalance: Rebalance) -> tuple[str, ...]:
        few = rebalance.joined_ns is not None and len(self.members) <= MOST_LATE
        return tuple(name for name in self.members if few and self.progress.is_late(name, self.generation))

    # --- silent members ---

    def restart(self, since: Seen | None, place: Seen) -> None:
        super().restart(since, place)
        self._doubted.clear()
        if len(self.members) <= MOST_LOOKED_AT:
            early_ns = ((since or place).time_ns or 0) - self.timeout.most_ns
            self._out_or_moved = {
                name
                for name, member in self.members.items()
                if max(member.last_seen_ns or early_ns, member.asked_ns) < early_ns
            }

    def alive_at(self, member: Member, request_place: Seen, place: Seen) -> None:
        """A member's request was accepted: it is in."""
        timeout, seen_ns, asked_ns = self.timeout, member.last_seen_ns, request_place.time_ns
        least_ns = min(timeout.interval_ns, timeout.survived_ns)  # a shorter silence shows nothing
        was_silent = seen_ns is not None and asked_ns is not None and asked_ns - seen_ns > least_ns
        if was_silent and (silence_ns := self.silence(member, request_place)) > least_ns:
            if timeout.refutes_absence(silence_ns):
                self.clocks.unavailable(request_place, inferred=True)  # else it would be out
            elif silence_ns > timeout.survived_ns and not member.away:
                timeout.survived(self.silence_of(member, request_place))
        member.last_seen_ns, member.unread = place.time_ns, None
        if self._doubted or self._out_or_moved:
            self._doubted.discard(member.member_id)
            self._out_or_moved.discard(member.member_id)
        if member.session_timeout_ms or member.member_id not in self.sessions.watched:
            self.watch(member)

    def session_ns(self, member: Member) -> int:
        return self.timeout.likely_ns

    def silence(self, member: Member, place: Seen) -> int:
        """For how long a member was silent to its coordinator, in nanoseconds; 0 where no time is known."""
        heard_ns = self.clocks.heard_ns(member)
        return 0 if heard_ns is None or place.time_ns is None else place.time_ns - heard_ns

    def silence_of(self, member: Member, place: Seen) -> Silence:
        """The same as evidence of that member."""
        return MemberClaim(MemberName(self.group, member.member_id), place).silence(
            self.clocks.heard_ns(member)
        )

    def quiet(self, member: Member, place: Seen) -> int:
        """For how long nothing was seen of a member, in nanoseconds; 0 where no time is known."""
        read_ns = self._read_ns(member)
        return 0 if read_ns is None or place.time_ns is None else place.time_ns - read_ns

    def _read_ns(self, member: Member) -> int | None:
        return self.clocks.read_ns(member, self.timeout.most_ns)

    def read_place(self, request_place: Seen, place: Seen) -> Seen:
        """Where a request was read: not while its coordinator stalled. place: of its answer."""
        read_ns = self.clocks.stalls.after(request_place.time_ns or 0)
        return request_place if read_ns == request_place.time_ns else place.at(read_ns)

    def is_replaced(self, member: Member, place: Seen) -> bool:
        """Whether a member whose place or partitions another has was silent for long enough to be out."""
        return self.timeout.is_replaced(self.quiet(member, place), has_holes=self.holes.count > 0)

    def watch(self, member: Member) -> None:
        """A member's session runs."""
        self.sessions.watch(member)

    def expire(self, place: Seen, *, at_end: bool = False) -> None:
        """Members whose sessions must be over by now are out."""
        while (first := self.over(place, at_end=at_end)) is not None:
            self.died(first, place, "")

    def over(self, place: Seen, *, at_end: bool = False, waits: bool = False) -> Member | None:
        """The member whose session was over first, of those that must be over by now. waits: whether those
        count whose requests wait since a stall, as something else shows whether they are in."""
        most_ns, time_ns = self.timeout.most_at_end_ns if at_end else self.timeout.most_ns, place.time_ns
        if time_ns is not None and not self.sessions.may_begin_before(time_ns - most_ns):
            return None
        first = self.sessions.first()
        if first is None or first.unseen or self.quiet(first, place) <= most_ns:
            return None
        return None if not waits and self.clocks.is_answered_soon(first, place) else first

    def over_since_ns(self, member: Member) -> int:
        """Since when that is so."""
        return self.clocks.stalls.after((self._read_ns(member) or 0) + self.timeout.most_ns)

    def _out_before(self, risen: int, request_place: Seen) -> None:
        """The epoch rose by so many more than a member that joins raises it: silent ones were out by then. So
        they were if it fell, as that of a new group."""
        risen = risen if risen >= 0 else len(self.members)
        while risen > 0 and (doubted := self._doubtful(moved=True)) is not None:
            self.died(doubted, request_place, "the group's epoch rose meanwhile", sign_place=request_place)
            risen -= 1

    def would_convert(self, member: Member) -> bool:
        """Whether the group converts once this member is out, so that its epoch stays."""
        return False

    def _is_settled(self, request_place: Seen) -> bool:
        """Whether the next answer would show that a member went."""
        since_ns, rebalance, even = self.causes.raised_ns, self.rebalance, self.progress.even_since
        if rebalance is not None:
            if even is None or rebalance.joined_ns is None:
                return False
            since_ns = max(since_ns, even.time_ns or 0)
        return since_ns + ASSIGNMENT_INTERVAL_NS < (request_place.time_ns or 0)

    def _expire_or_doubt(self, is_same_epoch: bool, request_place: Seen, asked_place: Seen) -> None:
        """is_same_epoch: whether an answer shows that all are in, or that isn't known. Then the coordinator
        may have moved since the silent members were last seen, and their sessions began again; or it has read
        what they sent during a stall before that. asked_place: where the request was seen."""
        if not is_same_epoch:
            self.expire(request_place)
            return
        last = None
        while (first := self.over(request_place, waits=True)) is not None and first is not last:
            last = first
            if self._was_read_late(first, asked_place):
                continue
            since_ns = self.over_since_ns(first)
            if (request_place.time_ns or 0) - since_ns <= NEAR_NS:
                return  # it may be out just now
            self._doubted.add(first.member_id)
            self.clocks.unavailable(request_place.at(since_ns), inferred=True)

    def _was_read_late(self, member: Member, asked_place: Seen) -> bool:
        """Whether a request of a member that is in was sent during a stall, before another one that shows
        that, and never answered: its session began again with the stall's end."""
        unread, read_ns = member.unread, self.clocks.stalls.read_ns
        unread_ns = 0 if unread is None or not is_earlier(unread, asked_place) else unread.time_ns or 0
        is_late = read_ns(unread_ns) > unread_ns > 0
        if is_late:
            member.unread, member.asked_ns = None, read_ns(member.asked_ns)
        return is_late

    def _doubtful(self, *, moved: bool) -> Member | None:
        """Of silent members that may be out, the one whose last request is the oldest. moved: whether those
        count that asked nothing since a move."""
        doubted = [self.members[name] for name in self._doubted]
        for name in self._out_or_moved if moved else ():
            if self.members[name].asked_ns <= self.clocks.available_ns:
                doubted.append(self.members[name])
        return min(doubted, key=lambda member: (member.last_seen_ns or 0, member.serial), default=None)

    def died(
        self, member: Member, place: Seen, sign: str, sign_place: Seen | None = None, *, refused: bool = False
    ) -> None:
        """A member left without a request. sign: what shows it; sign_place: where, if not its silence alone;
        refused: whether that is the answer to a request of its own."""
        if self._left_unanswered(member.member_id, place):
            return
        if sign_place is not None:
            sign_place = self.read_place(sign_place, place)
        rebalance = self.rebalance
        if rebalance is not None and rebalance.trigger.cause == "unknown" and sign_place is not None:
            if (self.clocks.quiet_ns(member) or 0) <= (rebalance.began.time_ns or 0):
                sign_place = sign_place.at(rebalance.began.time_ns)
            elif rebalance.joined_ns is not None:
                self.close("superseded", sign_place)  # its member was heard since, and is not why it began
        doubted = member.member_id in self._doubted or member.member_id in self._out_or_moved
        own_session = self.clocks.heard_ns(member) == member.last_seen_ns  # a move's began before it showed
        if sign_place is not None and not member.session_timeout_ms and not doubted and own_session:
            self.timeout.ended(self.silence_of(member, sign_place))
        moment = place
        session_ns = (member.session_timeout_ms or 0) * 1_000_000 or self.timeout.likely_ns
        heard_ns = self.clocks.heard_ns(member) if refused else self.clocks.read_ns(member, session_ns)
        if heard_ns is not None and not member.unseen:
            if doubted and heard_ns + session_ns > (place.time_ns or 0):  # it went before the move
                heard_ns = max(member.last_seen_ns or 0, member.asked_ns)
            moment = (sign_place or place).at(self.clocks.stalls.after(heard_ns + session_ns))
            if sign_place is not None and is_earlier(sign_place, moment):
                moment = sign_place
        before_ns = self.clocks.over_before_move_ns(member, session_ns) if refused else None
        if before_ns is not None:
            moment = place.at(before_ns)
        self.remove(member.member_id, moment, "session_timeout", inferred=True)
        if (
            rebalance is not None
            and self.rebalance is rebalance
            and self.members
            and self.causes.was_for(moment)
        ):
            self.causes.surplus -= 1
            self.settle(None, place)
            return
        self.departed(of_death(self.silence_of(member, sign_place or place), sign), moment, place)

    def _replaced(self, member: Member, partitions: Owned, place: Seen) -> None:
        """A member gets partitions of others: remove those that were silent meanwhile."""
        names = self.progress.former_owners(member.member_id, partitions)
        owners = [self.members[name] for name in names if name in self.members]
        for former in sorted(owners, key=lambda owner: self.clocks.quiet_ns(owner) or 0):
            if former.member_id not in self.members:
                continue
            if self._left_unanswered(former.member_id, place):
                continue
            unanswered = former.asked_ns > (former.last_seen_ns or 0)
            unanswered &= former.member_id not in self._out_or_moved
            if unanswered and not self.timeout.explains(self.quiet(former, place)):
                asked_ns = self.clocks.stalls.read_ns(former.asked_ns)
                former.revokes_ns = former.revokes_ns or asked_ns  # by an answer that nothing shows
            if give_up_by_ns(former) <= (place.time_ns or 0):
                self._removed_stubborn(former, place)
            elif self.is_replaced(former, place):
                self.died(former, place, "another member has its partitions", sign_place=place)

    def _stubborn(self, request_place: Seen) -> Member | None:
        """A member that had to give up partitions by then, and didn't."""
        if len(self.members) > MOST_LOOKED_AT:
            return None
        late = (
            member
            for member in self.members.values()
            if give_up_by_ns(member) <= (request_place.time_ns or 0)
        )
        return min(late, key=give_up_by_ns, default=None)

    def _removed_stubborn(self, member: Member, request_place: Seen) -> None:
        moment = request_place.at(give_up_by_ns(member))
        detail = "it didn't give up partitions in time"
        trigger = self.goes(member.member_id, moment, "not_rejoined", detail, inferred=True)
        self.departed(trigger, moment, request_place)

    # --- causes of epochs ---

    def in_epoch(self, member: Member, epoch: int, place: Seen, request_place: Seen) -> None:
        """A member's answer has an epoch, which may be a new one of the group."""
        causes, known = self.causes, member.generation is not None or self.rebalance is not None
        member.generation = epoch
        before = self.generation
        if before is not None and epoch <= before:
            return
        risen = epoch - (before or 0)
        if before is not None and known and risen > max(causes.raises, 1):
            stubborn = self._stubborn(request_place)
            if stubborn is not None and stubborn is not member:
                self._removed_stubborn(stubborn, request_place)
            elif self._out_or_moved:
                self._out_before(risen - max(causes.raises, 1), request_place)
        rebalance = self.rebalance
        causes.settle_merged(risen, rebalance)
        if before is None or not known or (rebalance is not None and rebalance.joined_ns is None):
            if before is not None or epoch > FIRST_EPOCH:
                causes.pay_first(
                    risen, rebalance, is_known=before is not None, resolves_later=self._has_pattern
                )
        elif causes.owed:
            first = 0 if has_pattern(member.topics) else causes.turn_of(member.member_id, request_place)
            if causes.merged in causes.owed[: first + risen]:
                causes.merged = None
            (trigger, moment), remaining = causes.owed[first], causes.owed[first + risen :]
            if rebalance is None or rebalance.trigger.member_id != trigger.member_id:
                self.close("superseded", moment)
                causes.owed = []
                self.disturbed(trigger, moment, is_repeated=True)
            causes.owed = remaining
        elif rebalance is None or rebalance.trigger.cause not in JOINS or self.progress.has_owners:
            self._unexplained(
                member, before, epoch, place, request_place
            )  # else nothing was assigned until now
        causes.show(before, epoch, place)
        self.generation = epoch
        rebalance = self.rebalance
        if rebalance is None or rebalance.joined_ns is not None or is_earlier(place, rebalance.began):
            return
        if not self.is_delayed:
            rebalance.joined_ns = place.time_ns or 0

    def _unexplained(self, member: Member, before: int, epoch: int, place: Seen, request_place: Seen) -> None:
        """The epoch rose, and nothing was seen that raises it: a session may have ended."""
        for leaving in list(self._leaving):
            if self._left_unanswered(leaving, request_place):
                return
        since_move_ns = (request_place.time_ns or 0) - self.clocks.available_ns
        doubted = self._doubtful(moved=since_move_ns > self.timeout.interval_ns)
        suspect = doubted or self.sessions.first()
        silent = (
            suspect is not None
            and not suspect.unseen
            and (doubted is not None or self.timeout.explains(self.quiet(suspect, request_place) + LATE_NS))
        )
        sign = f"the group's epoch rose to {epoch}"
        merged, self.causes.merged = self.causes.merged, None
        if merged is not None and merged[0].cause in KEEPS_EPOCH and merged[0].member_id != member.member_id:
            merged = None
        if suspect is not None and silent:
            merged = None
        stubborn = self._stubborn(request_place)
        if stubborn is not None and not silent:
            self._removed_stubborn(stubborn, request_place)
            return
        target_place = place  # or before, if it had to give up something first
        if member.revokes_ns is not None and place.time_ns is not None:
            target_place = place.at(min(place.time_ns, member.revokes_ns))
        if merged is not None and (merged[1].time_ns or 0) >= self.causes.early_ns(target_place):
            self._had_its_own(*merged)
        elif suspect is None or not silent:
            unshown = self.causes.not_shown_yet(target_place)
            if unshown is None:
                trigger = self._of_epoch(before, epoch, request_place)
                self.disturbed(trigger, request_place)
                if trigger.cause == "unknown" and self._shows_unseen:
                    self.causes.unseen = UnseenMembers(before, epoch)
            else:
                self._had_its_own(*unshown)
        elif self.timeout.is_known or not self.progress.is_exclusive(suspect.member_id):
            self.died(suspect, place, sign, sign_place=request_place)
            for _ in range(before + 1, epoch):  # a move lets several sessions end at once
                suspect = self._doubtful(moved=True)
                if suspect is not None:
                    self.died(suspect, place, sign, sign_place=request_place)
        else:  # the next owner of its partitions will show
            self.disturbed(Trigger("unknown", inferred=True, detail=sign), request_place)
            self.causes.risen = before, epoch

    def _of_epoch(self, before: int, epoch: int, place: Seen) -> Trigger:
        """Why the epoch rose, if no member that was seen did it: others may have been in when the input
        began, and a session that ran then may be over only now."""
        change = self._topic_change(place)
        seen_ns = (place.time_ns or 0) - self._in_before_ns
        if change or seen_ns > self.timeout.most_at_end_ns or self._has_some_pattern:
            return of_epoch(before, epoch, change)
        return of_unseen_epoch(before, epoch)

    @property
    def _has_some_pattern(self) -> bool:
        few = len(self.members) <= MOST_LOOKED_AT
        return few and any(has_pattern(member.topics) for member in self.members.values())

    @property
    def _shows_unseen(self) -> bool:
        """Whether what the members are given next shows whether others were in: nothing of it is known to
        have been another's."""
        few = len(self.members) <= MOST_LOOKED_AT and self.kind == "consumer" and not self.holes.count
        return few and all(member.assigned is None for member in self.members.values())

    def _topic_change(self, place: Seen) -> str:
        """In words, the change of a topic, shortly before, that some member may subscribe to."""
        known: set[str] = set()
        for member in self.members.values():
            if not member.topics or has_pattern(member.topics) or len(self.members) > MOST_LOOKED_AT:
                known.clear()
                break
            known.update(member.topics)
        return self.topic_changes.since(self.causes.early_ns(place), place, known)

    def _had_its_own(self, trigger: Trigger, place: Seen) -> None:
        """What seemed to have raised the epoch with another cause raised it once more."""
        self.close("superseded", place)
        self.disturbed(trigger, place, is_repeated=True)

    def _left_unanswered(self, member_id: str, place: Seen) -> bool:
        """Whether a member that seems to be out has left: the answer to that is missing."""
        moment, for_now = self._leaving.pop(member_id, (None, False))
        if moment is None or for_now or is_earlier(place, moment):
            return False
        self.departed(self.goes(member_id, moment, "left"), moment, place)
        return True

    # --- assignments, and the end ---

    def gives_standby(self, member: Member, tasks: Owned, place: Seen) -> None:
        """A member of a streams group has these standby tasks."""
        if tasks == member.standby:
            return
        if member.revokes_ns is None and not member.standby <= tasks:
            member.revokes_ns = place.time_ns
        self.progress.free(member.standby - tasks)
        member.standby, member.standby_changed = tasks, True

    def gives(self, member: Member, partitions: Owned, place: Seen) -> None:
        """A member has another assignment."""
        if self.rebalance is None and member.assigned is not None:
            revokes = not member.assigned <= partitions
            detail = "a member is given another assignment"
            if change := self._topic_change(place):
                detail = f"{change}; {detail}"
            trigger = Trigger("assignment_changed", inferred=True, detail=detail)
            unshown = self.causes.not_shown_yet(place) if revokes else None
            if unshown is not None:
                self._had_its_own(*unshown)
            else:
                rebalance = self.disturbed(trigger, place)
                if not revokes:  # else it gets the new epoch once it has given up what it must
                    rebalance.joined_ns = place.time_ns
        if self.causes.given_ns is None:
            self.causes.given_ns = place.time_ns
        if self.causes.unseen is not None and member.assigned is None:
            self.causes.unseen.gives(member.member_id, partitions)
        self.assign(member, partitions)
        self.consumption.has(member.member_id, partitions, place.time_ns)

    def takes_up(self, member: Member, is_changed: bool, place: Seen) -> None:
        """A member was heard. is_changed: what it has or shall have may have changed."""
        if (is_changed and member.owned == member.assigned) or self.kind == "share":
            member.owned = member.assigned  # so that they need not be compared again
            if not member.standby_changed:
                member.revokes_ns = None
        if self.members.get(member.member_id) is member:
            self.progress.note(member)
        if self.rebalance is not None:
            self.settle(member.member_id, place)

    def _awaits_owners(self) -> bool:
        """Whether partitions are without an owner whose topics members subscribe to."""
        topics = {topic for member in self.members.values() for topic in member.topics}
        patterns = any(topic.startswith("/") for topic in topics)
        return any(patterns or self.name_of(partition.topic) in topics for partition in self.progress.lost)

    def empty_by(self, place: Seen) -> None:
        self.expire(place)
        super().empty_by(place)

    def finish(self, place: Seen) -> None:
        """The input is at its end."""
        self.expire(place, at_end=True)
        even = self.progress.even_since
        renewed = self.rebalance is not None and self.rebalance.joined_ns is not None
        if even is not None and renewed and not self._awaits_owners():
            self.close("steady", even)
        if self.rebalance is not None and self.progress.is_empty:
            self.close("empty", place.at(self.rebalance.began.time_ns))  # those that left for now apart
        if self.kind == "share":
            self._give_up_ended(place)
        self.close("unfinished", place)

    def _give_up_ended(self, place: Seen) -> None:
        """In a share group others may have what its members had whose clients ended their connections, and
        whose sessions run still."""
        for name in self.members:
            end = self.connections.end_of(MemberName(self.group, name))
            silence_ns = 0 if end is None else (place.time_ns or 0) - end.time_ns
            is_dead = self.timeout.is_replaced(silence_ns, has_holes=self.holes.count > 0)
            if end is not None and end.sender == "client" and is_dead:
                self.consumption.ends(name, end.time_ns)


def _explains(trigger: Trigger, place: Seen, rebalance: Rebalance) -> bool:
    """Whether what happened before is why one began that seemed to be the coordinator's own."""
    earlier = (place.time_ns or 0) <= (rebalance.began.time_ns or 0)
    own = trigger.cause in KEEPS_EPOCH or trigger.cause == "assignment_changed"
    return earlier and not own and rebalance.trigger.cause == "assignment_changed"


def _batched(rebalance: Rebalance, trigger: Trigger, place: Seen) -> bool:
    """Whether a join is part of a rebalance that another began: the coordinator assigns once for both."""
    are_joins = trigger.cause in JOINS and rebalance.trigger.cause in JOINS
    return are_joins and (place.time_ns or 0) - (rebalance.began.time_ns or 0) < ASSIGNMENT_INTERVAL_NS


def is_earlier(place: Seen, began: Seen) -> bool:
    return place.time_ns is not None and began.time_ns is not None and place.time_ns < began.time_ns


def _later(even: Seen, place: Seen) -> bool:
    if even.time_ns is None or place.time_ns is None:
        return False
    return place.time_ns - even.time_ns > LATEST_EPOCH_NS


def give_up_by_ns(member: Member) -> int:
    """By when a member must have given up partitions; far off if it needn't, or that isn't known."""
    timeout_ms = member.rebalance_timeout_ms or 0
    if member.revokes_ns is None or timeout_ms <= 0:
        return FAR_NS
    return member.revokes_ns + timeout_ms * 1_000_000
