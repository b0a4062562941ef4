"""`coordwire timeline`: what happened to groups, from captures and from coordinators' logs.

Strategy: captures are read side by side in the order of time, so that rotated and parallel ones tell one
story; logs add theirs; a filter selects events, a format writes them. Rules: a capture is opened when its
time comes; what couldn't be read in one is counted on standard error, and the status is 1 (`coordwire decode`
shows it).
"""

from __future__ import annotations

import argparse
import heapq
import os
import sys
from collections.abc import Iterator
from itertools import groupby
from typing import Protocol

from coordwire.capture.detect import HEAD, sniff
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.reader import FORMATS, Capture
from coordwire.capture.rotated import rejoined
from coordwire.capture.tcp.streams import read_streams
from coordwire.cli import Failure, filters
from coordwire.cli.inputs import failure, opened, shown
from coordwire.dialects.grammar import Dialect
from coordwire.errors import CodecUnavailable, DecodeError, UnreadableRange
from coordwire.groups.capture_timeline import USED_APIS, timeline
from coordwire.groups.coordinator_log import LogItem, read_file
from coordwire.groups.log_files import LogFile, find_files
from coordwire.groups.log_timeline import log_timeline, topic_names
from coordwire.groups.timeline_events import (
    ErrorMet,
    GroupEvent,
    MemberLeft,
    OffsetCommitted,
    RebalanceEnded,
    TransactionStep,
    Unanswered,
)


class TimelineFormat(Protocol):
    """Writes events."""

    def write(self, event: GroupEvent, *, listed: bool = True) -> None:
        """One event. listed: whether it is to be shown; it counts all the same."""

    def finish(self) -> None:
        """That was the last."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILE|DIR", help="captures, __consumer_offsets segments or directories"
    )
    parser.add_argument(
        "--format", choices=("story", "json"), help="default: story on a terminal, else json lines"
    )  # fmt: skip
    parser.add_argument(
        "--input", choices=FORMATS, help="format of the captures (default: detected from the content)"
    )
    parser.add_argument(
        "--port",
        type=int,
        action="append",
        default=[],
        metavar="N",
        help="a broker's port; repeat for several",
    )
    parser.add_argument(
        "--dialect",
        choices=[str(name) for name in Dialect],
        default="kafka",
        help="protocol dialect (default: kafka)",
    )
    parser.add_argument("--strict", action="store_true", help="refuse deviations that Apache Kafka accepts")
    group = parser.add_argument_group("filters", "all of them must match")
    group.add_argument("--group", action="append", metavar="ID", help="only this group")
    group.add_argument("--errors", action="store_true", help="only what went wrong")
    filters.configure_times(group)


def run(options: argparse.Namespace) -> int:
    reading = _Reading(options)
    output = _format(options)
    groups = frozenset(options.group or ())
    times = filters.TimeRange(options.since, options.until)
    for event in reading.events():
        if (not groups or event.group in groups) and event.time_ns in times:
            output.write(event, listed=not options.errors or _went_wrong(event))
    output.finish()
    return reading.conclude()


def _format(options: argparse.Namespace) -> TimelineFormat:
    if (options.format or ("story" if sys.stdout.isatty() else "json")) == "json":
        from coordwire.cli.timeline.timeline_json import TimelineJsonFormat

        return TimelineJsonFormat()
    from coordwire.cli.timeline.timeline_story import StoryFormat

    return StoryFormat()


def _went_wrong(event: GroupEvent) -> bool:
    match event:
        case ErrorMet() | Unanswered():
            return True
        case OffsetCommitted() | TransactionStep():
            return event.error_code != 0
        case MemberLeft():
            return event.how not in ("left", "left_for_now")
        case RebalanceEnded():
            return event.outcome in ("superseded", "unfinished")
    return False


class _Reading:
    """The events of all inputs."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._captures: list[tuple[int, str]] = []
        self._logs: list[LogFile] = []
        self._status = 0
        self._unread = 0
        self._deviating = 0
        for name in options.files:
            try:
                self._add(name)
            except Failure as trouble:
                self._tell(2, str(trouble))
            except OSError as error:
                self._tell(2, str(failure(name, error)))

    def _add(self, name: str) -> None:
        if name == "-":
            self._captures.append((0, name))
            return
        if os.path.isdir(name):
            self._logs += find_files([name])
            return
        with opened(name) as stream:
            head = stream.read(HEAD)
        if self._options.input is None and sniff(head) == "segment":
            self._logs += find_files([name])
        else:
            self._captures.append((_start(name, head), name))

    def _tell(self, status: int, text: str) -> None:
        self._status = max(self._status, status)
        sys.stdout.flush()
        print(f"coordwire: {text}", file=sys.stderr)

    def conclude(self) -> int:
        """The status; report what wasn't read and what deviates."""
        if self._deviating:
            frames = "1 frame deviates" if self._deviating == 1 else f"{self._deviating} frames deviate"
            self._tell(0, f"{frames} from the protocol as Apache Kafka tolerates; coordwire decode shows how")
        if self._unread:
            parts = "1 part" if self._unread == 1 else f"{self._unread} parts"
            self._tell(1, f"{parts} of the input couldn't be read; coordwire decode shows what and why")
        return self._status

    def events(self) -> Iterator[GroupEvent]:
        """Those of the captures and those of the logs, by time."""
        sources = [timeline(self._counted())] if self._captures else []
        names = topic_names(self._items([file for file in self._logs if file.log == "metadata"]))
        told = [file for file in self._logs if file.log in (None, "consumer_offsets")]
        by_partition = groupby(told, key=lambda file: (os.path.dirname(file.path), file.partition))
        sources += [log_timeline(self._items(list(files)), names) for _, files in by_partition]
        yield from heapq.merge(*sources, key=lambda event: event.time_ns or 0)

    # --- logs ---

    def _items(self, files: list[LogFile]) -> Iterator[LogItem]:
        for file in files:
            try:
                for item in read_file(file):
                    self._unread += isinstance(item, UnreadableRange)
                    yield item
            except OSError as error:
                self._tell(2, str(failure(file.path, error)))
            except CodecUnavailable as error:
                self._tell(2, f"{shown(file.path)}: {error}")

    # --- captures ---

    def _counted(self) -> Iterator[Entry]:
        """All captures' entries; those that a story may lack are counted."""
        for entry in rejoined(self._entries(), strict=self._options.strict):
            self._unread += _missed(entry)
            self._deviating += _deviates(entry)
            yield entry

    def _entries(self) -> Iterator[Entry]:
        """All captures' entries in the order of time, each opened when its first is due."""
        due = sorted(self._captures, reverse=True)
        heap: list[tuple[int, int, Entry, Iterator[Entry]]] = []
        number = 0
        while due or heap:
            while due and (not heap or due[-1][0] <= heap[0][0]):
                start, name = due.pop()
                number += 1
                self._push(heap, self._of(name), start, number)
            if heap:
                time, order, entry, entries = heapq.heappop(heap)
                yield entry
                self._push(heap, entries, time, order)

    @staticmethod
    def _push(
        heap: list[tuple[int, int, Entry, Iterator[Entry]]], entries: Iterator[Entry], time: int, order: int
    ) -> None:
        entry = next(entries, None)
        if entry is not None:
            # An entry without a time, or one out of order, stays after the one before it.
            heapq.heappush(heap, (max(entry.time_ns or 0, time), order, entry, entries))

    def _of(self, name: str) -> Iterator[Entry]:
        options = self._options
        try:
            with opened(name) as stream:
                capture = Capture(
                    stream, name, input=options.input, strict=options.strict, ports=frozenset(options.port),
                    dialect=options.dialect,
                )  # fmt: skip
                yield from capture.entries()
        except Failure as trouble:
            self._tell(2, str(trouble))
        except OSError as error:
            self._tell(2, str(failure(name, error)))
        except DecodeError as error:
            self._tell(2, f"{shown(name)}: {error.reason}")


def _missed(entry: Entry) -> bool:
    """Whether a group's story may lack what couldn't be read here."""
    if isinstance(entry, UnreadableRange):
        return True
    drafts = entry.dialect is not Dialect.KAFKA
    return entry.error is not None and (drafts or entry.api_key is None or entry.api_key in USED_APIS)


def _deviates(entry: Entry) -> bool:
    """Whether a group's story uses a frame that a strict reading refuses."""
    return isinstance(entry, FrameEntry) and bool(entry.deviations) and entry.api_key in USED_APIS


def _start(name: str, head: bytes) -> int:
    """When a capture begins, in nanoseconds; 0 where it knows no time."""
    if sniff(head) not in ("pcap", "pcapng"):
        return 0
    with opened(name) as stream:
        try:
            for event in read_streams(stream):
                time_ns: int | None = getattr(event, "time_ns", None)
                if time_ns is not None:
                    return time_ns
        except DecodeError:  # told when it is read
            return 0
    return 0
