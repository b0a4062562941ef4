"""The inputs of a timeline: the entries of captures and the records of coordinators' logs.

Strategy: captures are read side by side in the order of time, so that rotated and parallel ones tell one
story; logs add theirs. In a folder the files of a rotated capture are one stream of bytes. Rules: a capture
is opened when its first entry is due; other files of a folder are skipped; unreadable parts are counted, and
reported at the end.
"""

from __future__ import annotations

import argparse
import heapq
import io
import os
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain, groupby
from typing import TYPE_CHECKING, BinaryIO

from coordwire.capture.entries import ConnectionSign, Entry, FrameEntry
from coordwire.capture.frame_decoding import UNDECODED
from coordwire.capture.input_format import HEAD, sniff
from coordwire.capture.printable import shown
from coordwire.capture.reader import Capture
from coordwire.capture.rotated_names import is_capture_name
from coordwire.capture.rotation import RotatedFiles, rejoined_batches
from coordwire.cli import Failure
from coordwire.cli.capture_hints import capture_hints
from coordwire.cli.inputs import (
    capture_chains,
    content_kind,
    failure,
    files_below,
    first_captured,
    note,
    open_file,
    opened,
)
from coordwire.cli.live_capture import live
from coordwire.cli.selection.times import TimeSpan
from coordwire.connection.dialect import KAFKA
from coordwire.dialects import dialect_options, find_dialect
from coordwire.errors import CodecUnavailable, DecodeError, UnreadableRange, counted
from coordwire.timeline.events import GroupEvent
from coordwire.timeline.from_log.files import LogFile, find_files
from coordwire.timeline.from_wire.timeline import USED_APIS, Timeline
from coordwire.versions import api_name

if TYPE_CHECKING:
    from coordwire.timeline.from_log.coordinator_log import LogItem

_Found = Entry | ConnectionSign
AHEAD, MOST_AHEAD = 1_000, 16 << 20
"""So many entries, or bytes of them, are read before the first event, for the clusters that they show."""

MOST_APIS = 8
"""APIs that a sentence names."""


class TimelineInputs:
    """The events of all inputs. quiet: report nothing, since another reading does."""

    def __init__(self, options: argparse.Namespace, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._options = options
        self._dialect = find_dialect(options.dialect)
        self._alternative = dialect_options.alternative_of(options)
        self._captures: list[tuple[int, tuple[str, ...]]] = []
        self._logs: list[LogFile] = []
        self._apis: Counter[int | str | None] = Counter()
        """Frames by their API: its key in Kafka's own protocol, else its name."""
        self._status = 0
        self._unread = 0
        self._span: tuple[int | None, int | None] = None, None
        self._deviating = 0
        self._capture: Capture | None = None
        if options.interface is not None:
            self._captures.append((0, (options.interface,)))
        for name in options.files:
            try:
                self._add(name)
            except Failure as trouble:
                self._tell(2, str(trouble))
            except OSError as error:
                self._tell(2, str(failure(name, error)))

    @property
    def place(self) -> str:
        """The inputs, in words."""
        names = [self._options.interface] if self._options.interface is not None else self._options.files
        return shown(names[0]) if len(names) == 1 else f"{len(names)} inputs"

    @property
    def is_lasting(self) -> bool:
        """Whether the inputs can be read again."""
        return self._options.interface is None and "-" not in self._options.files

    @property
    def span(self) -> TimeSpan | None:
        """The times of the captures' first and last frames so far, or ends of connections."""
        first, last = self._span
        return None if first is None or last is None else (first, last)

    @property
    def traffic(self) -> tuple[int, int]:
        """How many connections of Kafka's and frames were read of the capture that was opened last."""
        summary = None if self._capture is None else self._capture.summary
        return (0, 0) if summary is None else (summary.kafka, summary.frames)

    def whole_span(self) -> TimeSpan | None:
        """The span of all inputs, logs included; reads them."""
        for event in self.events():
            if event.time_ns is not None:
                self._reach(event.time_ns)
        return self.span

    def _reach(self, time_ns: int) -> None:
        first, last = self._span
        if last is None or time_ns > last:
            self._span = time_ns if first is None else first, time_ns
        elif first is None or time_ns < first:
            self._span = time_ns, last

    def _add(self, name: str) -> None:
        if name == "-":
            self._captures.append((0, (name,)))
        elif os.path.isdir(name):
            self._add_folder(name)
        else:
            with opened(name) as stream:
                head = stream.read(HEAD)
            if self._options.input is None and sniff(head) == "segment":
                self._logs += find_files([name])
            else:
                self._captures.append((_start(name), (name,)))

    def _add_folder(self, name: str) -> None:
        """The captures in a folder and below, those of a rotated one together, and the coordinators' logs."""
        files = find_files([name])
        logs = [file for file in files if file.log is not None or content_kind(file.path) == "segment"]
        known = {file.path for file in logs}
        captures = []
        count = 0
        for path in files_below(name):
            count += 1
            if path not in known and (is_capture_name(path) or content_kind(path) in ("pcap", "pcapng")):
                captures.append(path)
        self._captures += [(_start(names[0]), tuple(names)) for names in capture_chains(captures)]
        self._logs += logs
        if not logs and not captures:
            counted = "1 file" if count == 1 else f"{count:,} files"
            self._tell(2, f"{shown(name)}: no capture and no segment of __consumer_offsets in {counted}")

    def _tell(self, status: int, text: str) -> None:
        self._status = max(self._status, status)
        if not self._quiet:
            note(text)

    def conclude(self) -> int:
        """The status; report what wasn't read and what deviates."""
        if self._deviating:
            frames = "1 frame deviates" if self._deviating == 1 else f"{self._deviating} frames deviate"
            self._tell(0, f"{frames} from the protocol as Apache Kafka tolerates; coordwire decode shows how")
        if self._unread:
            parts = "1 part" if self._unread == 1 else f"{self._unread} parts"
            self._tell(1, f"{parts} of the input couldn't be read; coordwire decode shows what and why")
        return self._status

    def report_no_groups(self) -> None:
        """Report what the inputs hold instead of groups."""
        if self._apis:
            names: Counter[str] = Counter()
            for key, count in self._apis.items():
                names[(api_name(key) if isinstance(key, int) else key) or "unknown"] += count
            texts = ", ".join(f"{shown(name)} ({count:,})" for name, count in names.most_common(MOST_APIS))
            frames = names.total()
            self._tell(0, f"{self.place}: no group in {frames:,} frames: {texts}")

    def events(self) -> Iterator[GroupEvent]:
        """The events of the captures and of the logs, by time."""
        sources: list[Iterable[GroupEvent]] = [self._captured()] if self._captures else []
        if self._logs:
            sources += self._logged()
        if len(sources) == 1:
            yield from sources[0]
        else:
            yield from heapq.merge(*sources, key=lambda event: event.time_ns or 0)

    # --- logs: what reads them is imported where there is one ---

    def _logged(self) -> list[Iterable[GroupEvent]]:
        """The events of each partition of the coordinators' logs."""
        from coordwire.timeline.from_log.events import log_timeline, topic_names

        names = topic_names(self._items([file for file in self._logs if file.log == "metadata"]))
        group_logs = [file for file in self._logs if file.log in (None, "consumer_offsets")]
        by_partition = groupby(group_logs, key=lambda file: (os.path.dirname(file.path), file.partition))
        return [log_timeline(self._items(list(files)), names) for _, files in by_partition]

    def _items(self, files: list[LogFile]) -> Iterator[LogItem]:
        from coordwire.cli.coordinator_logs import read_log
        from coordwire.timeline.from_log.coordinator_log import CoordinatorRecord

        for file in files:
            known = total = understood = 0
            reason = ""
            try:
                for item in read_log(file):
                    self._unread += isinstance(item, UnreadableRange)
                    if isinstance(item, CoordinatorRecord):
                        total += 1
                        known += item.kind is not None
                        trouble = item.unknown or (item.refusal.reason if item.refusal is not None else "")
                        understood += not trouble
                        reason = reason or trouble
                    yield item
            except OSError as error:
                self._tell(2, str(failure(file.path, error)))
            except CodecUnavailable as error:
                self._tell(2, f"{shown(file.path)}: {error}")
            if total and not known:
                self._tell(
                    2,
                    f"{shown(file.path)}: none of its {total:,} records is of __consumer_offsets; "
                    "coordwire segment dump shows them",
                )
            elif total and not understood:
                records = counted(total, "record", ",")
                self._tell(
                    1,
                    f"{shown(file.path)}: no value of its {records} of __consumer_offsets is one of Kafka's "
                    f"({shown(reason)}); coordwire offsets shows them",
                )

    # --- captures ---

    def _captured(self) -> Iterator[GroupEvent]:
        """The events of all captures; the frames that these may lack are counted."""
        story = Timeline(ends=True, dialect=self._dialect or self._alternative)
        any_events = False
        batches = rejoined_batches(self._batches(), strict=self._options.strict)
        if self.is_lasting and not self._options.live:
            batches = self._looked_ahead(story, batches)
        for batch in batches:
            times = [time_ns for entry in batch if (time_ns := entry.time_ns) is not None]
            if times:
                self._reach(min(times))
                self._reach(max(times))
            if not any_events:
                self._apis.update(_api(entry) for entry in batch if isinstance(entry, FrameEntry))
            events = story.feed_all(batch)
            any_events |= bool(events)
            yield from events
            self._count_refused(batch)
        yield from story.finish()

    def _looked_ahead(
        self, story: Timeline, batches: Iterator[Sequence[_Found]]
    ) -> Iterator[Sequence[_Found]]:
        """The entries, once the story knows the clusters that their beginning shows; of several captures,
        those of each one's beginning."""
        if len(self._captures) > 1:
            second_reading = TimelineInputs(self._options, quiet=True)
            for _, names in self._captures:
                with closing(second_reading._of(names)) as capture:
                    read = 0
                    for entries in capture:
                        read += len(entries)
                        if story.look_ahead(entries) or read >= AHEAD:
                            break
        beginning: list[Sequence[_Found]] = []
        number = size = 0
        for batch in batches:
            beginning.append(batch)
            number += len(batch)
            size += sum(len(entry.body) for entry in batch if isinstance(entry, FrameEntry))
            story.look_ahead(batch)
            if number >= AHEAD or size >= MOST_AHEAD:
                break
        yield from beginning
        yield from batches

    def _count_refused(self, batch: Sequence[_Found]) -> None:
        """Count what couldn't be read of entries that the story has seen. It decodes those that it doesn't
        know to be whole."""
        for entry in batch:
            if type(entry) in UNDECODED:
                continue
            if isinstance(entry, UnreadableRange):
                self._unread += 1
            elif isinstance(entry, FrameEntry) and (entry.error is not None or entry.deviations):
                self._unread += _missed(entry)
                self._deviating += _deviates(entry)

    def _batches(self) -> Iterator[list[_Found]]:
        """All captures' entries in the order of time, in lists. Each capture is opened when its first entry
        is due."""
        if len(self._captures) == 1:
            yield from self._of(self._captures[0][1])
            return
        due = sorted(self._captures, reverse=True)
        heap: list[tuple[int, int, _Found, Iterator[_Found]]] = []
        number = 0
        while due or heap:
            while due and (not heap or due[-1][0] <= heap[0][0]):
                start, names = due.pop()
                number += 1
                self._push(heap, chain.from_iterable(self._of(names)), start, number)
            if heap:
                time, order, entry, entries = heapq.heappop(heap)
                yield [entry]
                self._push(heap, entries, time, order)

    @staticmethod
    def _push(
        heap: list[tuple[int, int, _Found, Iterator[_Found]]],
        entries: Iterator[_Found],
        time: int,
        order: int,
    ) -> None:
        entry = next(entries, None)
        if entry is not None:
            # An entry without a time, or one out of order, stays after the one before it.
            heapq.heappush(heap, (max(entry.time_ns or 0, time), order, entry, entries))

    def _of(self, names: tuple[str, ...]) -> Generator[list[_Found]]:
        """The entries of one capture, or of the files of a rotated one."""
        options, name = self._options, names[0]
        try:
            with self._stream(names) as stream:
                capture = Capture(
                    stream, name, input=options.input, strict=options.strict, ports=frozenset(options.port),
                    dialect=self._dialect, alternative=self._alternative, lazy=True,
                )  # fmt: skip
                self._capture = capture
                yield from capture.batches()
            for text in capture_hints(capture):
                self._tell(0, f"{shown(name)}: {text}")
        except Failure as trouble:
            self._tell(2, str(trouble))
        except OSError as error:
            self._tell(2, str(failure(name, error)))
        except DecodeError as error:
            self._tell(2, f"{shown(name)}: {error.reason}")

    @contextmanager
    def _stream(self, names: tuple[str, ...]) -> Iterator[BinaryIO]:
        if self._options.interface is not None:
            with live(names[0], self._options.port) as capture:
                try:
                    yield capture.stream
                except DecodeError:
                    capture.conclude(0)  # says why there is nothing, if the program failed
                    raise
                capture.conclude(1)
        elif len(names) == 1:
            with opened(names[0]) as stream:
                yield stream
        else:
            with io.BufferedReader(RotatedFiles(names, open_file, self._failed), 1 << 18) as stream:
                yield stream

    def _failed(self, name: str, error: OSError | DecodeError) -> None:
        if isinstance(error, OSError):
            self._tell(2, str(failure(name, error)))
        else:
            self._tell(1, f"{shown(name)}: {error.reason}")


def _api(entry: FrameEntry) -> int | str | None:
    return entry.api_key if entry.dialect == KAFKA else entry.api_name


def _missed(entry: FrameEntry) -> bool:
    """Whether a group's story may lack what couldn't be read here."""
    any_api = entry.dialect != KAFKA or entry.api_key is None
    return entry.error is not None and (any_api or entry.api_key in USED_APIS)


def _deviates(entry: FrameEntry) -> bool:
    """Whether a group's story uses a frame that a strict reading refuses."""
    return bool(entry.deviations) and entry.api_key in USED_APIS


def _start(name: str) -> int:
    """When a capture begins, in nanoseconds; 0 where it has no time."""
    first = first_captured(name)
    return 0 if first is None else first.time_ns
