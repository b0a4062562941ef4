"""`timeline --jobs N`: captures whose groups are shared out to N processes, with the output of one.

Strategy: every process reads all captures and has the states of its share of the groups
(`coordwire.timeline.from_wire.shares`). It sends their events, or their JSON lines, part by part; the command
puts the parts of the same entries together, and does all else. Rules: of each process `AHEAD` parts wait at
most; all shares have the same entries, else the command fails.
"""

from __future__ import annotations

__all__ = ["events", "json_lines", "writes_lines"]

import pickle
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import fields
from multiprocessing.connection import Connection, wait
from operator import attrgetter
from typing import Any, cast

from coordwire._speedups.rows import row_maker
from coordwire.capture.printable import shown
from coordwire.cli import Failure, progress, terminable
from coordwire.cli.processes import CHANGED, Child, Children
from coordwire.cli.timeline.inputs import SharePart, TimelineInputs
from coordwire.cli.timeline.json_lines import TimelineJsonFormat
from coordwire.timeline.events import EVENTS, GroupEvent
from coordwire.timeline.from_wire.shares import MergedShares

AHEAD = 4
"""So many parts of a process wait for those of the others."""

_Form = Callable[[GroupEvent], Any]

_CLASSES: list[Any] = list(EVENTS)
_NUMBERS = {cls: number for number, cls in enumerate(_CLASSES)}
_VALUES = [attrgetter(*[column.name for column in fields(cls)]) for cls in _CLASSES]
_MAKERS = [row_maker(cls) for cls in _CLASSES]


def events(reading: TimelineInputs, count: int) -> Iterator[GroupEvent]:
    """The events of all captures, by so many processes. Raises what a process raised, and `Failure` for one
    that was killed."""
    for part in _parts(reading, count, _plain):
        for number, values in part:
            yield _MAKERS[number](*values)


def json_lines(reading: TimelineInputs, count: int) -> Generator[list[str], None, None]:
    """The same as JSON lines, in lists."""
    for part in _parts(reading, count, TimelineJsonFormat().line):
        yield list(part)


def writes_lines(output: object) -> bool:
    """Whether a format writes what `json_lines` gives."""
    return isinstance(output, TimelineJsonFormat)


def _plain(event: GroupEvent) -> tuple[int, tuple[Any, ...]]:
    """An event for pickle, which takes a call for each field of a dataclass."""
    number = _NUMBERS[type(event)]
    return number, _VALUES[number](event)


def _parts(reading: TimelineInputs, count: int, form: _Form) -> Iterator[Iterator[Any]]:
    """The forms of all events, those of some entries at a time."""
    together = MergedShares()
    children = Children()
    with terminable():
        try:
            for index in range(count):
                children.fork(_ShareServer(reading, index, count, form), reports=index == 0)
            received = _Received(reading, children)
            while True:
                parts = received.next()
                if len({(part.entries, part.outcome is None) for part in parts}) > 1:
                    raise Failure(f"{shown(reading.place)}: {CHANGED}")
                reading.add_parts(parts)
                yield together.merged((part.events, part.questions) for part in parts)
                if parts[0].outcome is not None:
                    break
        finally:
            progress.expect()
            children.kill()


class _Received:
    """The parts that were received, and those that are to come."""

    def __init__(self, reading: TimelineInputs, children: Children) -> None:
        self._reading = reading
        self._children = children
        self._waiting: dict[Child, deque[bytes]] = {child: deque() for child in children}

    def next(self) -> list[SharePart]:
        """The next part of each share."""
        while not all(self._waiting.values()):
            self._receive()
        parts = [pickle.loads(messages.popleft()) for messages in self._waiting.values()]
        for part in parts:
            if isinstance(part, BaseException):
                raise part
        return parts

    def _receive(self) -> None:
        """Wait for parts, of processes of which more may wait."""
        by_pipe = {child.pipe: child for child, messages in self._waiting.items() if len(messages) < AHEAD}
        for pipe in wait(list(by_pipe)):
            child = by_pipe[cast("Connection", pipe)]
            try:
                self._waiting[child].append(child.pipe.recv_bytes())
            except (EOFError, OSError):
                raise self._children.remove_ended(child, self._reading.place) from None


class _ShareServer:
    """What the process of one share does."""

    def __init__(self, reading: TimelineInputs, index: int, count: int, form: _Form) -> None:
        self._reading = reading
        self._index = index
        self._count = count
        self._form = form

    def __call__(self, pipe: Connection) -> None:
        form = self._form
        try:
            for part in self._reading.share(self._index, self._count):
                shaped = part._replace(
                    events=[(key, form(event)) for key, event in part.events],
                    questions=[
                        question
                        if question.alternative is None
                        else question._replace(alternative=form(question.alternative))
                        for question in part.questions
                    ],
                )
                pipe.send_bytes(pickle.dumps(shaped))
            progress.end()
        except (Exception, SystemExit) as error:
            pipe.send_bytes(pickle.dumps(error))
        with suppress(EOFError, OSError):
            pipe.recv_bytes()  # until the command ends this process
