"""A timeline as one page of HTML: each group's story with its picture, to be kept or sent.

Rules: the same contents as in a terminal, whole; the page fetches nothing; of very many groups those with the
most costly incidents are shown, in the order of the input.
"""

from __future__ import annotations

import sys

from coordwire import __version__
from coordwire._quantities import counted
from coordwire.cli.selection.times import TimeSpan
from coordwire.timeline.events import GroupEvent
from coordwire.timeline.story.collected import CollectedEvents
from coordwire.timeline.story.contents import StoryContents, common_verdict
from coordwire.timeline.story.markup import document, escaped
from coordwire.timeline.story.story_page import story_html
from coordwire.timeline.story.wording import stamp

MOST_GROUPS = 200


class HtmlFormat:
    """Writes the page to standard output, at the end. command: what reads the same inputs again, whole."""

    is_quiet = True

    def __init__(self, command: str | None) -> None:
        self._command = command
        self._collected = CollectedEvents()
        self._subtitle = ""

    def write(self, event: GroupEvent, *, is_listed: bool = True) -> None:
        self._collected.add(event, is_listed=is_listed)

    def learn(self, event: GroupEvent) -> None:
        self._collected.learn(event)

    def heading(self, place: str, span: TimeSpan | None) -> None:
        times = "" if span is None else f", {stamp(span[0])} to {stamp(span[1])}"
        self._subtitle = f"{place}{times}, read by coordwire {__version__}; all times are UTC"

    def finish(self) -> None:
        stories = [StoryContents(group) for group in self._collected.groups.values() if group.has_lines]
        costly = sorted(stories, key=lambda story: -story.worst_cost_ns)[:MOST_GROUPS]
        parts = [f"<p><b>{escaped(common_verdict(stories))}</b></p>"] if len(stories) > 1 else []
        for story in (story for story in stories if story in costly):
            parts.append(story_html(story))
            if self._command is not None:
                command = self._command + story.next_options(names_group=len(stories) > 1)
                parts.append(f'<p class="note">Next: {escaped(command)}</p>')
        notes = (
            (len(stories) - len(costly) + self._collected.groups_left_out, "more group"),
            (self._collected.left_out, "earlier event"),
        )
        missing = " and ".join(counted(number, noun) for number, noun in notes if number)
        parts += [f'<p class="note">{missing}: --group and --format json show them.</p>'] if missing else []
        parts += [] if stories else ["<p>No group.</p>"]
        sys.stdout.write(document("What happened to groups", self._subtitle, "".join(parts)))
