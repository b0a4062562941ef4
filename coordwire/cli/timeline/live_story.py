"""A timeline for people while it happens: event lines, above a line that says how far it has come.

Strategy: an event waits a moment, since what is inferred comes after its time, and lines that are equal
become one. Then all of its group that wait are written together, in the order of their times and in the words
of the story; a thread does that, so that lines come while no traffic does. The line below them is
`progress`'s. Rules: no event waits for longer than `HOLD`, a commit for longer than `COMMIT_HOLD`; those that
wait are bounded; into a pipe go lines alone. The story itself is written at the end, by `StoryFormat`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, RLock, Thread
from time import monotonic

from coordwire.capture.printable import shown
from coordwire.cli import progress
from coordwire.cli.selection.times import TimeSpan
from coordwire.cli.terminal import columns
from coordwire.cli.timeline.story import StoryFormat
from coordwire.timeline.events import ClusterFound, GroupEvent, RebalanceBegan, RebalanceEnded
from coordwire.timeline.story.collected import is_position
from coordwire.timeline.story.wording import count, duration
from coordwire.timeline.totals import StoryKey, story_key

HOLD, COMMIT_HOLD = 1.0, 10.0
"""Seconds that an event waits at most, and a commit, if no other event of its group comes."""

MOST_WAITING = 10_000
"""Events that wait, of all groups."""

_INTERVAL = 0.25


class LiveStory:
    """Writes what `story` writes, and before it the lines. traffic: gives how many connections and frames
    were read; lists_events, lists_commits: whether events have lines, and commits that were accepted."""

    is_quiet = False

    def __init__(
        self, story: StoryFormat, traffic: Callable[[], tuple[int, int]], *, lists_events: bool,
        lists_commits: bool,
    ) -> None:  # fmt: skip
        self._story = story
        self._traffic = traffic
        self._lists_events = lists_events
        self._lists_commits = lists_commits
        self._lock = RLock()
        self._waiting: dict[StoryKey, tuple[float, list[GroupEvent]]] = {}
        """By group: when they are due, by the monotonic clock, and the events."""
        self._count = 0
        self._last: tuple[float, str] | None = None
        self._failure: OSError | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Write in the block what becomes due, and at its end all that waits."""
        if sys.stdout.isatty():
            progress.quietly()
        else:
            progress.end()
        ended = Event()
        thread = Thread(target=self._run, args=(ended,), name="live story", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
        self._write_due(float("inf"))

    def write(self, event: GroupEvent, *, is_listed: bool = True) -> None:
        """Add one event. Raises the `OSError` that has ended the writing."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            now = monotonic()
            if isinstance(event, ClusterFound):
                self._write_due(float("inf"))
            self._story.write(event, is_listed=is_listed)
            if isinstance(event, RebalanceBegan | RebalanceEnded):
                self._last = now, event.group
            is_commit = is_position(event) and not getattr(event, "error_code", 0)
            if (
                isinstance(event, ClusterFound)
                or not (self._lists_events and is_listed)
                or (is_commit and not self._lists_commits)
            ):
                return
            key = story_key(event)
            due, events = self._waiting.get(key, (float("inf"), []))
            events.append(event)
            self._waiting[key] = min(due, now + (COMMIT_HOLD if is_commit else HOLD)), events
            self._count += 1
            if self._count >= MOST_WAITING:
                self._write_due(float("inf"))

    def learn(self, event: GroupEvent) -> None:
        with self._lock:
            self._story.learn(event)

    def heading(self, place: str, span: TimeSpan | None) -> None:
        self._story.heading(place, span)

    def finish(self) -> None:
        self._story.finish()

    def _run(self, ended: Event) -> None:
        while not ended.wait(_INTERVAL):
            with self._lock:
                try:
                    self._write_due(monotonic())
                    progress.tell(self._status)
                except OSError as error:  # the reader of the output has gone
                    self._failure = error
                    return

    def _write_due(self, now: float) -> None:
        for group in [group for group, (due, _) in self._waiting.items() if due <= now]:
            _, events = self._waiting.pop(group)
            self._count -= len(events)
            progress.clear()
            self._story.write_events(group, events)

    def _status(self) -> str:
        """How far it has come: the longest text that fits into a line."""
        texts = list(self._texts())
        width = columns()
        return next((text for text in texts if len(text) < width), texts[-1])

    def _texts(self) -> Iterator[str]:
        connections, frames = self._traffic()
        groups = count(len(self._story.groups), "group")
        traffic = f"{count(frames, 'frame')}, {groups}"
        all_counts = f"{count(connections, 'connection')}, {traffic}"
        quit_hint = "Ctrl-C for the story"
        if self._last is None:
            rebalances = ["no rebalance yet"]
        else:
            since, group = self._last
            age = _age(int(monotonic() - since))
            rebalances = [f"last rebalance {age} ago{place}" for place in (f" in {shown(group)}", "")]
            rebalances.append(f"rebalance {age} ago")
        for rebalance in rebalances:
            yield f"{all_counts}, {rebalance}; {quit_hint}"
        yield f"{traffic}, {rebalances[-1]}; {quit_hint}"
        yield f"{traffic}; {quit_hint}"
        yield quit_hint


def _age(seconds: int) -> str:
    return f"{seconds} s" if seconds < 100 else duration(seconds * 1_000_000_000)
