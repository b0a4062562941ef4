"""The board of a watch on a screen: the cluster, the time and how old the board is, then each group.

Strategy: what the board and the problems have is taken in after each look (`read`); lines are made of it
whenever the screen is drawn, with the time of that moment. Rules: a line is as wide as the terminal at most,
and breaks between words; what is too high for it is left out, with a line that says so. What is shown is as
old as the last look, or as the oldest problem that keeps a look from all of the log.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from coordwire.capture.flows import format_time
from coordwire.capture.printable import Pieces, shown
from coordwire.cli.terminal import STYLES, rich_console
from coordwire.cli.watch.group_board import GroupBoard, GroupView
from coordwire.cli.watch.problems import Problem, Problems
from coordwire.timeline.story.wording import count, duration

MOST_PROBLEMS = 10
MOST_MEMBERS = 8
"""So many members of a group are named."""

NARROWEST = 40
_REFRESHES = 2.0
"""A second."""

_HEAD = ("group", "members", "rebalances", "no consumer", "commits", "lag", "late by")
_GAP = 2
_READING = frozenset(("cluster", "broker", "log"))
_NOTE = (
    "Members, commits and lag are exact. A cause is from the log, which has no requests, or from a tap; "
    '"presumably": it is inferred.'
)


class BoardScreen:
    """place: gives the cluster's name; now_ns: the time, since 1970 UTC."""

    def __init__(
        self, board: GroupBoard, problems: Problems, place: Callable[[], str],
        now_ns: Callable[[], int],
    ) -> None:  # fmt: skip
        self._board = board
        self._problems = problems
        self._place = place
        self._now_ns = now_ns
        self._looked_ns = now_ns()
        self._views: Sequence[GroupView] = ()
        self._failures: Sequence[Problem] = ()

    def read(self) -> None:
        """Take in what is known after a look."""
        self._views, self._failures = list(self._board.views()), list(self._problems)
        self._looked_ns = self._now_ns()

    def lines(self, width: int, height: int | None = None) -> Iterator[Pieces]:
        """The whole screen. height: the most lines; None for all."""
        width = max(width, NARROWEST)
        yield from _wrapped(f"{shown(self._place())}, {count(len(self._views), 'group')}", width, "api")
        now_ns = self._now_ns()
        since = (problem.since_ns for problem in self._failures if problem.subject.kind in _READING)
        age_ns = max(now_ns - min([self._looked_ns, *since]), 0)
        clock = format_time(now_ns, 0).partition("T")[2].removesuffix("Z")
        age = f"{age_ns / 1e9:.1f} s" if age_ns < 100_000_000_000 else duration(age_ns)
        text = f"{clock} UTC, as read {age} ago; Ctrl-C quits"
        yield from _wrapped(text, width, "note")
        below = [line for text in self._problem_texts() for line in _wrapped(text, width, "error")]
        below += _wrapped(_NOTE, width, "note")
        room = None if height is None else height - 4 - len(below)
        yield from self._groups(width, room)
        yield from below

    def _problem_texts(self) -> Iterator[str]:
        """The oldest problems, and how many more there are."""
        for problem in islice(self._failures, MOST_PROBLEMS):
            since = format_time(problem.since_ns, 0)
            yield shown(f"not seen since {since}: {problem.subject}: {problem.reason}")
        if len(self._failures) > MOST_PROBLEMS:
            yield f"… {len(self._failures) - MOST_PROBLEMS:,} more"

    def _groups(self, width: int, room: int | None) -> Iterator[Pieces]:
        """The table: a row of numbers a group, and below it words, indented."""
        cells = [_cells(view) for view in self._views]
        widths = [max(map(len, column)) for column in zip(_HEAD, *cells, strict=True)]
        widths[0] = min(widths[0], max(width - sum(widths[1:]) - _GAP * len(widths[1:]), len(_HEAD[0])))
        yield [(_row(_HEAD, widths), "api")]
        for number, (view, row) in enumerate(zip(self._views, cells, strict=True)):
            lines: list[Pieces] = []
            if len(row[0]) > widths[0]:
                lines += _wrapped(row[0], width, "name")
                row = ("", *row[1:])
            lines.append([(row[0].ljust(widths[0]), "name"), (_row(row, widths)[widths[0] :], "plain")])
            for text in _details(view):
                lines += _wrapped(text, width, "plain", indent=4)
            if room is not None:
                room -= len(lines)
                if room < 0:
                    hidden = count(len(self._views) - number, "more group")
                    yield from _wrapped(f"… {hidden}: --group ID shows one alone", width, "note")
                    return
            yield from lines


def _cells(view: GroupView) -> tuple[str, ...]:
    return (
        view.group, f"{len(view.members):,}", f"{view.rebalances:,}",
        duration(view.idle_ns) if view.idle_ns else "-", f"{view.commits:,}",
        "-" if view.lag is None else f"{view.lag:,}",
        "-" if view.age_ms is None else duration(view.age_ms * 1_000_000) if view.age_ms else "0 s",
    )  # fmt: skip


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    gap = " " * _GAP
    return gap.join([cells[0].ljust(widths[0]), *map(str.rjust, cells[1:], widths[1:])])


def _details(view: GroupView) -> Iterator[str]:
    """What a group is, why it was rebalanced last, and who is in."""
    kind = f"{view.kind} group" if view.kind else "no members seen"
    yield f"{kind}; {view.cause}" if view.cause else kind
    if view.members:
        names = ", ".join(islice(view.members, MOST_MEMBERS))
        hidden = len(view.members) - MOST_MEMBERS
        yield f"in: {names}" + (f" and {hidden:,} more" if hidden > 0 else "")


def _wrapped(text: str, width: int, style: str, *, indent: int = 0) -> list[Pieces]:
    pad = " " * indent
    lines = textwrap.wrap(text, width, initial_indent=pad, subsequent_indent=pad, break_on_hyphens=False)
    return [[(line, style)] for line in lines]


@contextmanager
def open_screen(screen: BoardScreen) -> Iterator[Callable[[], None]]:
    """A function that shows the screen again: in place on a terminal, else once at the end. Raises `Failure`
    where rich is not installed."""
    console = rich_console("watch")
    from rich.live import Live
    from rich.text import Text

    class Drawing:
        """The screen as rich draws it."""

        def __rich__(self) -> Text:
            height = console.height if console.is_terminal else None
            lines = screen.lines(console.width, height)
            return Text("\n").join(
                Text.assemble(*((part, STYLES[style]) for part, style in line)) for line in lines
            )

    with Live(Drawing(), console=console, refresh_per_second=_REFRESHES, transient=False) as live:

        def refresh() -> None:
            screen.read()
            live.refresh()

        yield refresh
