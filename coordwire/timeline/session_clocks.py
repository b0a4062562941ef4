"""The sessions of a group's members: since when each runs, and when it is over by what was seen.

Rules: a session runs from the last answer to its member, or from when the coordinator was last seen to be
unavailable; one that would end while the coordinator answers nothing ends afterwards. "Silent" counts answers
alone, which is direct evidence; "quiet" counts requests too, whose answers may be missing; "read" those
that the coordinator may have read. No session ends whose timeout is not known, or while a request of its
member waits.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from coordwire.timeline.evidence import Seen
from coordwire.timeline.members import Member
from coordwire.timeline.stalls import Stall, Stalls


@dataclass(slots=True)
class SessionClocks:
    """Of one group. available_ns: when its coordinator was last seen to be unavailable, or must have been;
    moved_ns: when it was last seen to be; stalls: when it answered nothing; stall: the last in which requests
    about the group waited; reported: the last that was reported."""

    available_ns: int = 0
    moved_ns: int = 0
    stalls: Stalls = field(default_factory=Stalls)
    stall: Stall | None = None
    reported: Stall | None = None

    def unavailable(self, place: Seen, *, inferred: bool = False) -> None:
        """The coordinator isn't there, moves or loads the group: all sessions begin again afterwards.
        inferred: nothing shows that but a silent member that is in, whose packets may be missing."""
        if place.time_ns is not None:
            self.available_ns = max(self.available_ns, place.time_ns)
            if not inferred:
                self.moved_ns = max(self.moved_ns, place.time_ns)

    def heard_ns(self, member: Member) -> int | None:
        """Since when a member's session runs."""
        return None if member.last_seen_ns is None else max(member.last_seen_ns, self.available_ns)

    def quiet_ns(self, member: Member) -> int | None:
        """Since when nothing was seen of a member, its requests included."""
        seen_ns, asked_ns = member.last_seen_ns, member.asked_ns
        if seen_ns is None:
            return None
        if asked_ns <= seen_ns:
            return max(seen_ns, self.available_ns)
        return max(self.stalls.read_ns(asked_ns), self.available_ns)

    def read_ns(self, member: Member, session_ns: int) -> int | None:
        """Since when the coordinator can't have read anything of a member. What it did not answer during a
        stall it read afterwards, unless the member's session was over by then."""
        if member.unread is not None:
            unread_ns, heard_ns = member.unread.time_ns or 0, self.heard_ns(member)
            read_ns = self.stalls.read_ns(unread_ns)
            if heard_ns is not None and read_ns > unread_ns and read_ns > heard_ns + session_ns:
                return heard_ns
        return self.quiet_ns(member)

    def is_answered_soon(self, member: Member, place: Seen) -> bool:
        """Whether a request of a member waits for its coordinator, which has just gone on after a stall: the
        answer will show whether the member is in."""
        unread = member.unread
        return unread is not None and self.stalls.may_wait(unread.time_ns or 0, place.time_ns or 0)

    def over_ns(self, member: Member) -> int | None:
        """When a member's session is over, if it said for how long it may be silent, and is until then."""
        seen_ns, timeout_ms = member.last_seen_ns, member.session_timeout_ms
        if seen_ns is None or not timeout_ms:
            return None
        return self.stalls.after(max(seen_ns, self.available_ns) + timeout_ms * 1_000_000)

    def over_before_move_ns(self, member: Member, session_ns: int) -> int | None:
        """When the session was over of a member that its coordinator does not know since a move; None if that
        was not before."""
        if member.last_seen_ns is None or not session_ns:
            return None
        over_ns = self.stalls.after(member.last_seen_ns + session_ns)
        return over_ns if over_ns < self.available_ns else None

    def silent_at(self, member: Member, time_ns: int | None) -> bool:
        """Whether a member's session must have been over by then."""
        seen_ns, timeout_ms = member.last_seen_ns, member.session_timeout_ms
        if time_ns is None or seen_ns is None or not timeout_ms or member.parked:
            return False
        session_ns = timeout_ms * 1_000_000
        return time_ns - seen_ns > session_ns and time_ns - self.available_ns > session_ns

    def quiet_until_ns(self, member: Member) -> int | None:
        """When its session is over by what was seen of it, and its coordinator may have read."""
        session_ns = (member.session_timeout_ms or 0) * 1_000_000
        read_ns = self.read_ns(member, session_ns)
        if read_ns is None or not session_ns or member.unseen:
            return None
        return self.stalls.after(read_ns + session_ns)

    def quiet_at(self, member: Member, time_ns: int | None) -> bool:
        """As `silent_at`, without direct evidence: a request counts, even if no answer to it was seen."""
        if time_ns is None or member.parked:
            return False
        until_ns = self.quiet_until_ns(member)
        return until_ns is not None and time_ns > until_ns
