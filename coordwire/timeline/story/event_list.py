"""A group's events as a list of lines, in the order of time.

Strategy: a rebalance's assignment is below its line; a member's commits between two lines that matter more
become one line, unless they are to be listed, as do lines that are equal but for their times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from coordwire.capture.printable import Pieces
from coordwire.timeline.events import (
    ErrorMet,
    GroupEvent,
    LagMeasured,
    RebalanceEnded,
    TransactionStep,
    Unanswered,
)
from coordwire.timeline.story.collected import is_position
from coordwire.timeline.story.commit_lines import CommitLine, CommitLines
from coordwire.timeline.story.event_lines import EventLines

__all__ = ["event_list"]

ALIKE = 3
"""So many equal lines in a stretch become one."""

REPEATED = (ErrorMet, Unanswered, TransactionStep, LagMeasured)
"""What a client that retries does over and over; whatever else happens ends the stretch."""


def event_list(events: Iterable[GroupEvent], words: EventLines, commits: bool) -> Iterator[Pieces]:
    """The lines. commits: whether each commit has one."""
    stretch: list[tuple[GroupEvent, Pieces | CommitLine]] = []
    positions = CommitLines(words, folded=not commits)
    for event in sorted(events, key=lambda event: event.time_ns or 0):
        if is_position(event):
            new_line = positions.add(event)
            if new_line is not None:
                stretch.append((event, new_line))
            continue
        positions.interrupt()
        if not isinstance(event, REPEATED):
            yield from _collapsed(stretch, words)
            stretch = []
            positions.end()
        stretch.append((event, words.pieces(event)))
        if isinstance(event, RebalanceEnded):
            yield from _collapsed(stretch, words)
            stretch = []
            yield from words.below(event)
    yield from _collapsed(stretch, words)


def _collapsed(lines: list[tuple[GroupEvent, Pieces | CommitLine]], words: EventLines) -> Iterator[Pieces]:
    """The lines between two that matter more; many that are equal become one with their number."""
    stretch = [
        (event, line_or_commits.pieces() if isinstance(line_or_commits, CommitLine) else line_or_commits)
        for event, line_or_commits in lines
    ]
    texts = ["".join(text for text, _ in pieces) for _, pieces in stretch]
    counts = Counter(texts)
    last = dict(zip(texts, (event for event, _ in stretch), strict=True))
    for (event, pieces), text in zip(stretch, texts, strict=True):
        if not pieces or not counts[text]:
            continue
        line = [*words.time(event), *pieces]
        if counts[text] >= ALIKE:
            until = words.clock(last[text])
            line.append((f"  × {counts[text]:,} until {until}", "busy"))
            counts[text] = 0
        yield line
