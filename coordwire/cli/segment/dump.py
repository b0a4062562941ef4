"""`coordwire segment dump`: the contents of segments and of the files beside them.

Strategy: a file's name determines its kind; a file without such a name is read as a log. A log is read batch
by batch and written record by record, so that nothing accumulates; with a first offset, reading begins there.
Rules: a batch that can't be read has a line with its reason, after those of its records that could be, and
the status says so: 1 where the batch is bad, 2 where its codec's library isn't installed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

from coordwire.capture.flows import format_time
from coordwire.capture.printable import shown
from coordwire.cli import Failure
from coordwire.cli.coordinator_logs import refuse_capture
from coordwire.cli.inputs import PlainFile, copied, failure, note, plain_file
from coordwire.cli.segment.files import WatchedSegment, expanded
from coordwire.cli.segment.json_lines import Lines
from coordwire.cli.selection.times import Moment, make_absolute, moment, span_of
from coordwire.codec.primitives import uuid_text
from coordwire.errors import (
    CodecUnavailable,
    CoordwireError,
    CorruptBatch,
    DecodeError,
    LimitExceeded,
    counted,
)
from coordwire.records import Record, RecordBatch, UnreadableRange
from coordwire.segments import (
    OffsetIndex,
    Segment,
    TimeIndex,
    TransactionIndex,
    read_leader_epochs,
    read_metadata,
    read_snapshot,
    topic_partition,
)
from coordwire.segments.names import file_name
from coordwire.segments.segment import mapped, read_small
from coordwire.segments.state_files import EPOCHS, METADATA

MILLI = 1_000_000


class SegmentFormat(Protocol):
    """Writes batches, records, unreadable ranges and entries of other files."""

    def begin(self, lines: Lines) -> None: ...
    def batch(self, batch: RecordBatch) -> None: ...
    def records(self, batch: RecordBatch, records: Iterator[Record]) -> None: ...
    def unreadable(self, unreadable: UnreadableRange, error: DecodeError | None) -> None: ...
    def entry(self, form: dict[str, Any]) -> None: ...


class RecordRange(NamedTuple):
    """The records to show; times in ms since 1970, all bounds included."""

    first: int | None = None
    last: int | None = None
    since: int | None = None
    until: int | None = None
    limit: int | None = None
    batches: bool = False

    def __call__(self, record: Record) -> bool:
        return (
            (self.first is None or record.offset >= self.first)
            and (self.last is None or record.offset <= self.last)
            and (self.since is None or record.timestamp >= self.since)
            and (self.until is None or record.timestamp <= self.until)
        )

    @property
    def includes_all(self) -> bool:
        return self.first is self.last is self.since is self.until is None


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="FILE|DIR", help="a segment's file, or a folder of logs")
    parser.add_argument(
        "--format", choices=("table", "json"), default="table", help="json: a line a record (default: table)"
    )
    parser.add_argument("--batches", action="store_true", help="batches without their records")
    parser.add_argument("--from-offset", type=int, metavar="N", help="the first offset to show")
    parser.add_argument("--to-offset", type=int, metavar="N", help="the last offset to show")
    parser.add_argument(
        "--since",
        type=moment,
        metavar="TIME",
        help="first time (UTC): ISO 8601, epoch seconds; +30s: that long after the first record's time, "
        "-10min: before the last one's (ms, s, min, h, d)",
    )
    parser.add_argument(
        "--until", type=moment, metavar="TIME", help="last time, as --since; both ends are included"
    )
    parser.add_argument("--limit", type=int, metavar="N", help="stop after N records (or batches)")
    parser.add_argument("--text", action="store_true", help="keys and values as text where they are UTF-8")
    parser.add_argument("--deep", action="store_true", help="open the records of brokers' own logs")
    parser.add_argument("--show-secrets", action="store_true", help="show credentials in the metadata log")


def run(options: argparse.Namespace) -> int:
    make_absolute(options, lambda: span_of(_batch_times(expanded(options.paths))))
    range_ = RecordRange(
        options.from_offset, options.to_offset, _ms(options.since), _ms(options.until), options.limit,
        options.batches,
    )  # fmt: skip
    dump = Dump(output(options.format), range_, options)
    status = dump.all(expanded(options.paths))
    paths = options.paths
    dump.report(shown(paths[0]) if len(paths) == 1 else f"{len(paths)} inputs")
    return status


_OF_FRAMES = ("api", "group", "member", "client_id", "errors", "packets", "filter", "fields")


def decode(name: str, stream: BinaryIO, head: bytes, options: argparse.Namespace) -> int:
    """Print the records of a segment for `coordwire decode`; return the status. Raises `Failure`, `OSError`.

    A pipe, and what is compressed, is copied to a temporary file first, so that it can be mapped.
    """
    if any(getattr(options, name) for name in _OF_FRAMES):
        raise Failure(f"{shown(name)}: filters for frames do not apply to the records of a segment")
    if options.format not in (None, "tree", "json"):
        raise Failure(f"{shown(name)}: no {options.format} format for segments; --format tree or json")
    range_ = RecordRange(since=_ms(options.since), until=_ms(options.until))
    dump = Dump(output("json" if options.format == "json" else "table"), range_, options)
    if name != "-" and os.path.isfile(name):
        dump.file(Path(name), name, segment=True)
        dump.report(shown(name))
        return dump.status
    with copied(stream, head) as copy, WatchedSegment(copy.path) as segment:
        dump.segment(segment, name)
        dump.fault(name, copy)
    dump.report(shown(name))
    return dump.status


def _batch_times(paths: Iterator[Path]) -> Iterator[int]:
    for path in paths:
        kind = file_name(path.name)
        if _KINDS.get(path.name if kind is None else kind.kind) is None:
            with suppress(CoordwireError, OSError, Failure):
                yield from batch_times(path)


def batch_times(path: Path) -> Iterator[int]:
    """The times of a segment's batches in ns, the first and the latest of each. Raises `OSError`."""
    with plain_file(path) as plain, Segment(plain.path) as segment:
        for batch in segment.batches(on_error="skip", check_records=False):
            for time_ms in (batch.base_timestamp, batch.max_timestamp):
                if time_ms >= 0:
                    yield time_ms * MILLI


def _ms(limit: Moment | None) -> int | None:
    if limit is not None and limit.clock:
        raise Failure("--since and --until need a date for segments")
    return None if limit is None else limit // MILLI


def output(name: str) -> SegmentFormat:
    """The format of this name."""
    if name == "table":
        from coordwire.cli.segment.table import SegmentTableFormat

        return SegmentTableFormat()
    return SegmentJsonFormat()


class SegmentJsonFormat:
    """One JSON object a line."""

    def begin(self, lines: Lines) -> None:
        self._lines = lines

    def batch(self, batch: RecordBatch) -> None:
        sys.stdout.write(self._lines.batch(batch))

    def records(self, batch: RecordBatch, records: Iterator[Record]) -> None:
        sys.stdout.writelines(self._lines.records(batch, records))

    def unreadable(self, unreadable: UnreadableRange, error: DecodeError | None) -> None:
        sys.stdout.write(self._lines.unreadable(unreadable, error))

    def entry(self, form: dict[str, Any]) -> None:
        sys.stdout.write(self._lines.entry(form))


class _Extent(NamedTuple):
    """What the headers of a segment's batches say: how many, their offsets, and the latest time in ms."""

    batches: int
    first: int
    last: int
    latest: int


def _extent(segment: Segment) -> _Extent:
    count, first, last, latest = 0, 0, 0, -1
    for batch in segment.batches(on_error="skip", check_records=False):
        first = first if count else batch.base_offset if batch.magic == 2 else batch.last_offset
        last, latest = batch.last_offset, max(latest, batch.max_timestamp)
        count += 1
    return _Extent(count, first, last, latest)


class Dump:
    """Writes files until so many records were shown as were asked for. options: text, deep, show_secrets."""

    def __init__(self, output: SegmentFormat, record_range: RecordRange, options: argparse.Namespace) -> None:
        self.output = output
        self.record_range = record_range
        self.remaining = record_range.limit
        self.status = 0
        self._matched = False
        self._extents: list[_Extent] = []
        flags = ("text", "deep", "show_secrets")
        self._flags: dict[str, bool] = {name: getattr(options, name, False) for name in flags}

    def all(self, paths: Iterator[Path]) -> int:
        """Dump files, one after the other; one that can't be read costs only itself. The status."""
        for path in paths:
            if self.remaining is not None and self.remaining <= 0:
                break
            try:
                refuse_capture(path)
                self.file(path, str(path))
            except OSError as error:
                if error.filename is None:  # it was the output's
                    raise
                self._trouble(failure(str(path), error))
            except Failure as trouble:
                self._trouble(trouble)
        return self.status

    def report(self, place: str) -> None:
        """Report the offsets and times of the input, if no record was in the range."""
        if self._matched or not self._extents:
            return
        extents = [extent for extent in self._extents if extent.batches]
        batches = sum(extent.batches for extent in extents)
        if not batches:
            note(f"{place}: no batches in it")
            return
        first, last = min(extent.first for extent in extents), max(extent.last for extent in extents)
        stamps = [extent.latest for extent in extents if extent.latest >= 0]
        times = f"; the latest time is {format_time(max(stamps) * MILLI, 3)}" if stamps else ""
        counted = "1 batch" if batches == 1 else f"{batches:,} batches"
        note(f"{place}: no record matched in {counted}; offsets seen: {first} to {last}{times}")

    def _trouble(self, trouble: Failure) -> None:
        note(str(trouble))
        self.status = 2

    def fault(self, name: str, copy: PlainFile) -> None:
        """Report that the content of a compressed file ended early."""
        if copy.fault:
            note(f"{shown(name)}: {copy.fault}")
            self.status = max(self.status, 1)

    def file(self, path: Path, name: str, *, segment: bool = False) -> None:
        """One file, decompressed, shown under a name. segment: it is one, whatever its name. Raises
        `OSError`."""
        with plain_file(path) as plain:
            self._file(plain.path, name, segment=segment)
            self.fault(name, plain)

    def _file(self, path: Path, name: str, *, segment: bool) -> None:
        kind = file_name(path.name)
        read_forms = None if segment else _KINDS.get(path.name if kind is None else kind.kind)
        if read_forms is None:
            with WatchedSegment(path) as opened:
                self.segment(opened, name)
            return
        topic, partition = topic_partition(path.absolute().parent.name) or (None, None)
        self.output.begin(Lines(name, topic, partition, **self._flags))
        try:
            for form in read_forms(path, 0 if kind is None else kind.offset or 0):
                if self.remaining is not None:
                    if self.remaining <= 0:
                        break
                    self.remaining -= 1
                self.output.entry(form)
        except DecodeError as error:
            self.status = max(self.status, 1)
            self.output.unreadable(UnreadableRange(0, path.stat().st_size, error.reason), error)

    def segment(self, segment: Segment, name: str) -> None:
        """A log's batches or records."""
        kind = file_name(segment.path.name)
        snapshot = kind is not None and kind.kind == "checkpoint"
        self.output.begin(Lines(name, segment.topic, segment.partition, snapshot=snapshot, **self._flags))
        self._walk(segment)
        if not (self._matched or self.record_range.includes_all):
            self._extents.append(_extent(segment))

    def _walk(self, segment: Segment) -> None:
        reader = segment.batches(on_error="report", check_records=False, start=self._start(segment))
        for part in reader:
            if self.remaining is not None and self.remaining <= 0:
                return
            if isinstance(part, UnreadableRange):
                self._unreadable_range(part, None)
            elif self._past(part):
                return
            else:
                self._batch(part)
        if (unfinished := len(reader.remainder)) and (self.remaining is None or self.remaining > 0):
            self._unreadable_range(
                UnreadableRange(
                    reader.position, unfinished, f"the file ends {counted(unfinished, 'byte')} into a batch"
                ),
                None,
            )

    def _start(self, segment: Segment) -> int:
        """The position of the first batch that may have a record in the range."""
        if self.record_range.first is None:
            return 0
        batch = segment.find(offset=self.record_range.first)
        return segment.size if batch is None else batch.position

    def _past(self, batch: RecordBatch) -> bool:
        last = self.record_range.last
        return last is not None and batch.magic == 2 and batch.base_offset > last

    def _unreadable_range(self, unreadable: UnreadableRange, error: DecodeError | None) -> None:
        self.status = max(self.status, 1)
        self.output.unreadable(unreadable, error)

    def _batch(self, batch: RecordBatch) -> None:
        record_range = self.record_range
        if record_range.since is not None and batch.max_timestamp < record_range.since:
            return
        try:
            if record_range.batches:
                self._take(1)
                self.output.batch(batch)
            elif record_range.includes_all and self.remaining is None:
                self.output.records(batch, iter(batch))
            else:
                self.output.records(batch, self._selected(batch))
        except (CorruptBatch, LimitExceeded) as error:
            self._unreadable_range(UnreadableRange(batch.position, batch.size, error.reason), error)
        except CodecUnavailable as error:  # nothing is wrong with the batch
            self._unreadable_range(UnreadableRange(batch.position, batch.size, error.reason), None)
            self.status = 2

    def _selected(self, batch: RecordBatch) -> Iterator[Record]:
        for record in batch:
            if self.remaining is not None and self.remaining <= 0:
                return
            if self.record_range(record):
                self._take(1)
                yield record

    def _take(self, count: int) -> None:
        self._matched = True
        if self.remaining is not None:
            self.remaining -= count


# --- other files -------------------------------------------------------------------------------------------


def _offsets(path: Path, base: int) -> Iterator[dict[str, Any]]:
    for number, entry in enumerate(OffsetIndex(mapped(path), base)):
        yield {"entry": number, "offset": entry.offset, "position": entry.position}


def _times(path: Path, base: int) -> Iterator[dict[str, Any]]:
    for number, entry in enumerate(TimeIndex(mapped(path), base)):
        yield {"entry": number, "timestamp": entry.timestamp, "offset": entry.offset}


def _transactions(path: Path, base: int) -> Iterator[dict[str, Any]]:
    for number, entry in enumerate(TransactionIndex(mapped(path), base)):
        yield {
            "entry": number, "version": entry.version, "producerId": entry.producer_id,
            "firstOffset": entry.first_offset, "lastOffset": entry.last_offset,
            "lastStableOffset": entry.last_stable_offset,
        }  # fmt: skip


def _producers(path: Path, base: int) -> Iterator[dict[str, Any]]:
    for entry in read_snapshot(read_small(path)).producer_entries:
        form = asdict(entry)
        del form["tags"]
        yield {_camel(name): value for name, value in form.items()}


def _epochs(path: Path, base: int) -> Iterator[dict[str, Any]]:
    for epoch, start in read_leader_epochs(read_small(path)):
        yield {"epoch": epoch, "startOffset": start}


def _metadata(path: Path, base: int) -> Iterator[dict[str, Any]]:
    version, topic_id = read_metadata(read_small(path))
    yield {"version": version, "topicId": uuid_text(topic_id)}


def _camel(name: str) -> str:
    first, *words = name.split("_")
    return first + "".join(word.capitalize() for word in words)


_KINDS: dict[str, Callable[[Path, int], Iterator[dict[str, Any]]]] = {
    "index": _offsets,
    "timeindex": _times,
    "txnindex": _transactions,
    "snapshot": _producers,
    EPOCHS: _epochs,
    METADATA: _metadata,
}
