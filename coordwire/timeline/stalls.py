"""When a coordinator answers nothing: requests that it answers at once have waited.

Strategy: one `Stalls` for each broker, of all groups that it coordinates. A request is late if its answer
took seconds; the broker stalls from then until that answer, unless a request that was sent meanwhile was
answered in time. Late requests of one time are one stall, which is over once one that was sent afterwards is
answered; what comes late after that belongs to it. Rules: JoinGroup and SyncGroup may wait, and a refusal
says nothing of a wait; a session that would end during a stall ends with it, as the coordinator looks at its
clock afterwards. The latest stalls are remembered.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from operator import attrgetter

from coordwire.timeline.evidence import Seen

STALL_NS = 2_000_000_000
"""A request that waits for so long is late."""

RESUMES_NS = 500_000_000
"""A request may be sent so shortly before the end of a stall, and be answered before older ones; one that is
answered so shortly after it does not show that all older ones are."""

MOST_STALLS = 100
"""So many of one broker are remembered."""

_since_ns, _until_ns = attrgetter("since_ns"), attrgetter("until_ns")


@dataclass(slots=True)
class Stall:
    """One. since: where the first late request was seen; until: where the last answer to one was, None if the
    input ends before; until_ns: the same, or when the input ends; broker, answered_by: the addresses of who
    did not answer, and of who did; requests: how many were late; is_over: whether its broker was heard since,
    so that it does not change any more; prompt_ns: when the last request before was sent that was answered in
    time."""

    since: Seen
    until: Seen | None
    until_ns: int
    broker: str
    answered_by: str | None
    requests: int = 1
    is_over: bool = False
    prompt_ns: int = 0

    @property
    def since_ns(self) -> int:
        """When the first late request was sent, in nanoseconds since 1970."""
        return self.since.time_ns or 0


class Stalls:
    """Of one broker. prompt_ns: when the last request was sent that was answered in time."""

    def __init__(self) -> None:
        self._stalls: list[Stall] = []  # in the order of time; none overlap
        self._open: Stall | None = None  # the last one, if it is not over
        self.prompt_ns = 0
        self._before_ns = 0  # the same of those before the last while
        self._while_ns = 0  # when that began

    def prompt(self, asked_ns: int) -> None:
        """A request was answered in time."""
        if asked_ns <= self.prompt_ns:
            return
        if asked_ns - self._while_ns > RESUMES_NS:
            self._before_ns, self._while_ns = self.prompt_ns, asked_ns
        self.prompt_ns = asked_ns
        if self._open is not None and asked_ns > self._open.until_ns + RESUMES_NS:
            self.close()

    def late(self, stall: Stall) -> Stall | None:
        """Requests waited, the last of which is answered now, or never was: the stall that they are of, None
        if others were answered meanwhile."""
        is_resuming = stall.until is not None and stall.until_ns - self.prompt_ns <= RESUMES_NS
        stall.prompt_ns = self._before_ns if is_resuming else self.prompt_ns
        if stall.prompt_ns > stall.since_ns:
            return self.at(stall.since_ns)
        open_stall = self._open
        if open_stall is None or stall.since_ns > open_stall.until_ns:
            return self._begins(stall)
        open_stall.requests += stall.requests
        if stall.since_ns < open_stall.since_ns:
            open_stall.since = stall.since
        if stall.until_ns >= open_stall.until_ns:
            open_stall.until, open_stall.until_ns = stall.until, stall.until_ns
            open_stall.answered_by = stall.answered_by
        return open_stall

    def _begins(self, stall: Stall) -> Stall:
        """A stall after the ones before; the last of those, if it overlaps that."""
        self.close()
        if self._stalls and stall.since_ns <= self._stalls[-1].until_ns:
            return self._stalls[-1]
        self._stalls.append(stall)
        if len(self._stalls) > MOST_STALLS:
            del self._stalls[0]
        self._open = stall
        return stall

    def close(self) -> None:
        """The last stall does not change any more."""
        if self._open is not None:
            self._open.is_over, self._open = True, None

    @property
    def latest_ns(self) -> int:
        """Until when the last one was, in nanoseconds since 1970; 0 for none."""
        return self._stalls[-1].until_ns if self._stalls else 0

    def may_wait(self, asked_ns: int, now_ns: int) -> bool:
        """Whether a request that was sent then may be answered any moment, as its broker has just gone on."""
        until_ns = self.latest_ns
        prompt_ns = self._before_ns if until_ns - self.prompt_ns <= RESUMES_NS else self.prompt_ns
        return prompt_ns <= asked_ns < until_ns <= now_ns < until_ns + RESUMES_NS

    def at(self, time_ns: int) -> Stall | None:
        """The stall at a time, if there was one; it has ended at its end."""
        stalls = self._stalls
        if not stalls or time_ns >= stalls[-1].until_ns:
            return None
        index = bisect_right(stalls, time_ns, key=_since_ns)
        return stalls[index - 1] if index and time_ns < stalls[index - 1].until_ns else None

    def after(self, time_ns: int) -> int:
        """When a session is over that would end then."""
        stall = self.at(time_ns)
        return time_ns if stall is None else stall.until_ns

    def read_ns(self, asked_ns: int) -> int:
        """When a request was read that was sent then, and never answered: not while its broker stalled, which
        may have begun before a late answer shows it."""
        stalls = self._stalls
        if not stalls or asked_ns >= stalls[-1].until_ns:
            return asked_ns
        stall = stalls[bisect_right(stalls, asked_ns, key=_until_ns)]
        return stall.until_ns if asked_ns > stall.prompt_ns else asked_ns
