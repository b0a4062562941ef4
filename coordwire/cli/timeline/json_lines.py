"""A timeline as JSON: one event a line, or one line a group with what its events amount to.

Strategy: an event's line is its JSON (`timeline.event_json`); a group's has what its story says first. Rules:
lines are ASCII; times and lengths are those of events.
"""

from __future__ import annotations

import sys
from typing import Any

from coordwire.capture.jsonlines import encode
from coordwire.cli.selection.times import TimeSpan
from coordwire.enums import ErrorCode
from coordwire.timeline.event_json import event_texts, milliseconds, time_text
from coordwire.timeline.events import GroupEvent
from coordwire.timeline.story.collected import CollectedEvents
from coordwire.timeline.story.contents import StoryContents


class TimelineJsonFormat:
    """Writes the lines to standard output. Events that follow one another, as those of one commit do, often
    have the same first values, whose text is kept."""

    is_quiet = False

    def __init__(self) -> None:
        self._event_class: type[GroupEvent] | None = None
        self._shared: tuple[Any, ...] = ()
        self._beginning = ""

    def write(self, event: GroupEvent, *, is_listed: bool = True) -> None:
        """Write a line, unless the event is not listed."""
        if not is_listed:
            return
        cls: Any = type(event)
        first_values, beginning, remainder = event_texts(cls)
        shared = first_values(event)
        if cls is not self._event_class or shared != self._shared:
            self._event_class, self._shared = cls, shared
            self._beginning = beginning(event)
        sys.stdout.write(f"{self._beginning}{remainder(event)}\n")

    def learn(self, event: GroupEvent) -> None:
        """Do nothing: ids are written whole."""

    def heading(self, place: str, span: TimeSpan | None) -> None:
        """Do nothing: events have their own times."""

    def finish(self) -> None:
        """Do nothing: every event is written at once."""


class SummaryJsonFormat:
    """Writes a line for each group: what its events amount to."""

    is_quiet = True

    def __init__(self) -> None:
        self._collected = CollectedEvents()
        self._span: TimeSpan | None = None

    def write(self, event: GroupEvent, *, is_listed: bool = True) -> None:
        """Count one event, listed or not."""
        self._collected.add(event)

    def learn(self, event: GroupEvent) -> None:
        """Remember a member's name, for events that mention it."""
        self._collected.learn(event)

    def heading(self, place: str, span: TimeSpan | None) -> None:
        self._span = span

    def finish(self) -> None:
        for group in self._collected.groups.values():
            if group.has_lines:
                sys.stdout.write(encode(self._form(StoryContents(group))) + "\n")

    def _form(self, contents: StoryContents) -> dict[str, Any]:
        story = contents.totals
        longest = story.longest
        unmeasured = story.unmeasured > 0 and not story.rebalancing_ns
        first, last = self._span or (None, None)
        return {
            "event": "summary",
            "group": story.group,
            **({} if story.cluster is None else {"cluster": story.cluster}),
            "kind": story.kind,
            "verdict": contents.verdict,
            "incidents": [
                {"time": time_text(incident.time_ns), "text": "; ".join(incident.lines)}
                for incident in contents.incidents
            ],
            "inputFirst": time_text(first),
            "inputLast": time_text(last),
            "first": time_text(story.first_ns),
            "last": time_text(story.last_ns),
            "coordinator": story.coordinator,
            "joined": story.joined,
            "left": story.departed,
            "members": sorted(story.members),
            "generations": story.generations,
            "commits": story.commits,
            "unanswered": story.unanswered,
            "rebalances": story.rebalances,
            "rebalancingMs": None if unmeasured else milliseconds(story.rebalancing_ns),
            "longestMs": None if longest is None or unmeasured else milliseconds(longest.length_ns or 0),
            "longestCause": None if longest is None or unmeasured else longest.cause,
            "withoutConsumerMs": milliseconds(story.idle_ns),
            "recordsWaited": story.waited,
            "causes": [
                {"client": client, "cause": cause, "times": times}
                for client, causes in story.caused.items()
                for cause, times in causes.items()
            ],
            "lag": sum(lag for lag in story.lag.values() if lag > 0),
            "beyondEnd": -sum(lag for lag in story.lag.values() if lag < 0),
            "errors": {ErrorCode(code).name: times for code, times in story.errors.most_common()},
        }
