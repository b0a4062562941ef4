"""When the coordinator of a group answers nothing: requests that it answers at once have waited.

Strategy: a request is late if its answer took seconds; the coordinator stalls from then until that answer,
unless one that was sent meanwhile was answered in time. Late requests of one time are one stall, which is
reported once a later request is answered. Rules: JoinGroup and SyncGroup may wait, so that they are never
late; a session that would end during a stall ends with it, as the coordinator looks at its clock afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

from coordwire.timeline.evidence import Seen

__all__ = ["STALL_NS", "Stall", "Stalls"]

STALL_NS = 2_000_000_000
"""A request that waits for so long is late."""

RESUMES_NS = 500_000_000
"""A request may be sent so shortly before the end of a stall, and be answered before older ones."""


@dataclass(slots=True)
class Stall:
    """One. since: where the first late request was seen; until: where the last answer to one was, None if the
    input ends before; broker, answered_by: the addresses of who did not answer, and of who did; requests: how
    many were late."""

    since: Seen
    until: Seen | None
    broker: str
    answered_by: str | None
    requests: int = 1


class Stalls:
    """Of one group. latest: from when until when the last one was, in ns since 1970."""

    def __init__(self) -> None:
        self.latest = (0, 0)
        self._open: Stall | None = None
        self._prompt_ns = 0  # when the last request was sent that was answered in time
        self._before_ns = 0  # the same of those before the last while
        self._while_ns = 0  # when that began

    def prompt(self, asked_ns: int) -> Stall | None:
        """A request was answered in time: the stall that is over by then, if one is."""
        if asked_ns <= self._prompt_ns:
            return None
        if asked_ns - self._while_ns > RESUMES_NS:
            self._before_ns, self._while_ns = self._prompt_ns, asked_ns
        self._prompt_ns = asked_ns
        return None if self._open is None or asked_ns <= self.latest[1] else self.take()

    def late(self, stall: Stall) -> Stall | None:
        """Requests waited, the last of which is answered now, or never was: the stall that was before."""
        since_ns, place = stall.since.time_ns or 0, stall.until
        until_ns = since_ns if place is None else place.time_ns or 0
        is_resuming = until_ns - self._prompt_ns <= RESUMES_NS
        if (self._before_ns if is_resuming else self._prompt_ns) > since_ns:
            return None  # others were answered meanwhile
        open_stall = self._open
        if open_stall is None or since_ns > self.latest[1]:
            self._open, self.latest = stall, (since_ns, until_ns)
            return open_stall
        open_stall.requests += stall.requests
        if since_ns < self.latest[0]:
            open_stall.since = stall.since
        if until_ns >= self.latest[1]:
            open_stall.until, open_stall.answered_by = place, stall.answered_by
        self.latest = min(since_ns, self.latest[0]), max(until_ns, self.latest[1])
        return None

    def take(self) -> Stall | None:
        """The stall that was not reported yet, if there is one."""
        stall, self._open = self._open, None
        return stall

    def after(self, time_ns: int) -> int:
        """When a session is over that would end then."""
        since_ns, until_ns = self.latest
        return until_ns if since_ns < time_ns < until_ns else time_ns
