"""`coordwire decode`: recorded traffic, frame by frame.

Strategy: `capture.Capture` gives entries, a filter selects, a format writes; each entry is forgotten once it
is written. Rules: several inputs are read one after the other; an unreadable one is left out, and the
status is 2.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

from coordwire.capture.body_text import is_refused
from coordwire.capture.entries import ConnectionSign, Entry, FrameEntry
from coordwire.capture.input_format import sniff
from coordwire.capture.printable import shown
from coordwire.capture.reader import FORMATS, Capture, read_head
from coordwire.cli import FURTHER, Failure, live_capture
from coordwire.cli.capture_hints import capture_hints, is_lone_response
from coordwire.cli.decode import formats, tables
from coordwire.cli.decode.formats import DecodeFormat
from coordwire.cli.inputs import capture_chains, captures_below, collect_seldom, failure, note, opened
from coordwire.cli.selection import filters, times
from coordwire.cli.selection.names import TELLING, TopicNames
from coordwire.cli.selection.survey import SurveyCounts
from coordwire.dialects import dialect_options
from coordwire.errors import CoordwireError, DecodeError, UnreadableRange, counted

if TYPE_CHECKING:
    from coordwire.capture.flows import CaptureCounts
    from coordwire.capture.plain_lines import PlainJsonLines
    from coordwire.tables.local import TablesFormat

T = TypeVar("T")

SEGMENT = "segment"
MOST_JOBS = 1_000

SearchCounts = tuple[SurveyCounts | None, int, int]
"""Of a search: what its survey counted, decimals of a second, unreadable ranges that were shown."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE|DIR",
        help="pcap, pcapng, hex text, frames or a log segment, also compressed (gzip, xz, zstd), or a folder "
        "with captures; none, or -: standard input",
    )
    live_capture.configure(parser)
    formats.configure(parser)
    parser.add_argument("--strict", action="store_true", help="refuse deviations that Apache Kafka accepts")
    parser.add_argument("--show-secrets", action="store_true", help="show passwords, tokens and keys")
    parser.add_argument(
        "--port", type=_port, action="append", default=[], metavar="N", help="a broker's port; repeatable"
    )
    parser.add_argument(
        "--deep", action="store_true", help="decode opaque bytes of known content: assignments, …"
    )
    filters.configure(parser)
    further = parser.add_argument_group(FURTHER)
    tables.configure(further)
    further.add_argument(
        "--input", choices=(*FORMATS, SEGMENT), help="input format (default: detected from the content)"
    )
    further.add_argument(
        "--jobs",
        type=_jobs,
        default=1,
        metavar="N",
        help="decode several inputs in N processes, with the output of one",
    )
    parser.set_defaults(make_epilog=filters.epilog)
    dialect_options.configure(parser)


def run(options: argparse.Namespace) -> int:
    live_capture.check_inputs(options)
    collect_seldom()
    inputs, status = _expanded(options)
    times.make_absolute(options, _span(options))
    search = _Search(options)
    if tables.writes_tables(options):
        with tables.writing(options) as output:
            # The only return here: of two, PyPy 8.0 takes a wrong way when the files can't get their places.
            return max(status, _read(capture_chains(options.files), options, cast(Any, output), search))
    return max(status, _read(inputs, options, formats.choose_format(options, search.topics), search))


def _expanded(options: argparse.Namespace) -> tuple[list[list[str]], int]:
    """The inputs, with the captures of folders in their place, and the status: 2 for a folder without any.
    `options.files` has all files after it."""
    inputs: list[list[str]] = []
    status = 0
    for name in options.files:
        if not os.path.isdir(name):
            inputs.append([name])
            continue
        try:
            inputs += captures_below(name)
        except Failure as trouble:
            note(str(trouble))
            status = 2
    options.files = [name for names in inputs for name in names]
    return inputs, status


def _read(
    inputs: Sequence[Sequence[str]], options: argparse.Namespace, output: DecodeFormat, search: _Search
) -> int:
    """A live capture, or all inputs."""
    if options.interface is not None:
        return _live(options, output, search)
    return _all(inputs, options, output, search)


def _all(
    inputs: Sequence[Sequence[str]], options: argparse.Namespace, output: DecodeFormat, search: _Search
) -> int:
    """All inputs, of which each is one file or the files of a rotated capture."""
    reading = _Reading(inputs, options, output, search)
    statuses = map(reading.status, range(len(inputs)))
    if options.jobs > 1 and len(inputs) > 1 and "-" not in options.files:
        from coordwire.cli.decode import jobs  # which most commands do without

        if jobs.is_possible():
            names = [names[0] for names in inputs]
            statuses = map(reading.add, jobs.read_all(reading, names, options.jobs))
    status = max(statuses, default=0)
    search.report()
    return status


class _Reading:
    """The inputs, read one after the other, or by several processes (`jobs.InputReading`)."""

    def __init__(
        self, inputs: Sequence[Sequence[str]], options: argparse.Namespace, output: DecodeFormat,
        search: _Search,
    ) -> None:  # fmt: skip
        self._inputs = inputs
        self._options = options
        self._output = output
        self._search = search

    def status(self, index: int) -> int:
        """Write the output of an input; its status."""
        names = self._inputs[index]
        try:
            with opened(names[0]) if len(names) == 1 else tables.opened_chain(names) as stream:
                return _decode(names[0], stream, self._options, self._output, self._search)
        except Failure as trouble:
            note(str(trouble))
            return 2

    @property
    def state(self) -> Any:
        if not self._search.uses_names:
            return None
        return self._search.topics.names.copy(), getattr(self._output, "state", None)

    @state.setter
    def state(self, state: Any) -> None:
        if state is None:
            return
        names, of_format = state
        self._search.topics.names.clear()
        self._search.topics.names.update(names)
        if of_format is not None:
            cast(Any, self._output).state = of_format

    def read(self, index: int) -> tuple[int, SearchCounts]:
        return self.status(index), self._search.take()

    def add(self, result: tuple[int, SearchCounts]) -> int:
        """Count what a process has counted; the input's status."""
        status, counts = result
        self._search.add(counts)
        return status


def _span(options: argparse.Namespace) -> Callable[[], times.TimeSpan | None] | None:
    """Gives the span of all inputs; None where they can't be read twice."""
    if options.interface is not None or not all(map(os.path.isfile, options.files)):
        return None

    def find() -> times.TimeSpan | None:
        return times.span_of(time for name in options.files for time in _times(name, options))

    return find


def _times(name: str, options: argparse.Namespace) -> Iterator[int | None]:
    """The times of an input's entries, or of a segment's batches; what can't be read is passed over."""
    with suppress(CoordwireError, OSError, Failure), opened(name) as stream:
        head = read_head(stream)
        if _is_segment(head, options):
            from coordwire.cli.segment.dump import batch_times

            yield from batch_times(Path(name))
            return
        for entry in _capture(name, stream, head, options).entries():
            yield entry.time_ns


class _Search:
    """The filters of a command line over all inputs, and the values that they met."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        is_lasting = options.interface is None and all(map(os.path.isfile, options.files))
        self.names = filters.EntryNames(options, self._entries if is_lasting else None)
        self.survey = filters.survey(options)
        self.is_open = self.survey is None
        """Whether no filter leaves anything out."""
        self.topics = TopicNames()
        self.uses_names = options.filter is not None or formats.name_of(options) in formats.NAMING
        """Whether the output depends on the names of topics that were learned."""
        self.selection = filters.Selection(options, self.topics)
        self.digits = 0
        self._ranges = 0

    @property
    def has_matched(self) -> bool:
        """Whether an entry matched, after which those that don't need not be counted."""
        return self.survey is not None and self.survey.counts.matched > 0

    def _entries(self) -> Iterator[Entry]:
        """The entries of all inputs once more; what can't be read is reported elsewhere."""
        for name in self._options.files:
            with suppress(CoordwireError, OSError, Failure), opened(name) as stream:
                yield from _capture(name, stream, read_head(stream), self._options).entries()

    def saw(self, entry: Entry, is_shown: bool) -> bool:
        """Count an entry that was read. Returns `is_shown`, whether the filters let it pass."""
        if isinstance(entry, UnreadableRange):
            self._ranges += is_shown
        elif self.survey is not None:
            self.survey.saw(entry, is_shown)
        return is_shown

    def take(self) -> SearchCounts:
        """What was counted so far; counting begins again."""
        counts = None if self.survey is None else self.survey.take(), self.digits, self._ranges
        self.digits = self._ranges = 0
        return counts

    def add(self, counts: SearchCounts) -> None:
        """Add what was counted of later inputs."""
        later, digits, ranges = counts
        if self.survey is not None and later is not None:
            self.survey.counts.add(later)
        self.digits = max(self.digits, digits)
        self._ranges += ranges

    def report(self) -> None:
        files = self._options.files
        if self.survey is not None and not self._ranges and self.survey.counts.total:
            place = f"{len(files)} inputs" if len(files) > 1 else shown(self._options.interface or files[0])
            self.survey.report(place, self.digits)


def _jobs(text: str) -> int:
    jobs = int(text) if text.isdecimal() and text.isascii() and len(text) <= 4 else 0
    if not 0 < jobs <= MOST_JOBS:
        raise argparse.ArgumentTypeError(
            f"expected a number of processes from 1 to {MOST_JOBS:,}, got {text!r}"
        )
    return jobs


def _port(text: str) -> int:
    port = int(text) if text.isdecimal() and text.isascii() and len(text) <= 5 else 0
    if not 0 < port < 65536:
        raise argparse.ArgumentTypeError(f"expected a port from 1 to 65535, got {text!r}")
    return port


def _live(options: argparse.Namespace, output: DecodeFormat, search: _Search) -> int:
    """A live capture: 1 if something in its output was refused."""
    name = options.interface
    with live_capture.live(name, options.port) as capture:
        reader = None
        status = 0
        head = _head(name, capture.stream)
        if head:  # else the program has said why
            reader = _guarded(name, lambda: _capture(name, capture.stream, head, options))
            status = _entries_to(name, reader, options, output, search)
        capture.conclude(0 if reader is None else reader.counts.packets)
    if reader is None:
        raise Failure(f"{shown(name)}: nothing was captured, not even a file's header")
    summary, counts = reader.summary, reader.counts
    note(
        f"{shown(name)}: {counts.packets:,} packets, {summary.frames:,} frames; "
        f"Kafka in {summary.kafka:,} of {summary.connections:,} connections"
    )
    search.report()
    return status


def _decode(
    name: str, stream: BinaryIO, options: argparse.Namespace, output: DecodeFormat, search: _Search
) -> int:
    """One input: 1 if something in its output was refused."""
    head = _head(name, stream)
    if _is_segment(head, options):
        if options.out is not None:
            raise Failure(f"{shown(name)}: a log segment: coordwire pipeline makes tables of those")
        from coordwire.cli.segment.dump import decode

        return decode(name, stream, head, options)
    capture = _guarded(name, lambda: _capture(name, stream, head, options))
    return _entries_to(name, capture, options, output, search)


def _entries_to(
    name: str, capture: Capture, options: argparse.Namespace, output: DecodeFormat, search: _Search
) -> int:
    """Write the selected entries: 1 if one of them was refused."""
    if options.out is not None:
        return _tables_to(name, capture, options, cast("TablesFormat", output), search)
    status = 0
    selection = search.selection
    selection.check(capture)
    filter_ = filters.Filter(options, search.names)
    lone_responses = 0
    counts, learn, write = capture.counts, search.topics.learn, output.write
    names_topics = search.uses_names
    misses = selection.misses(filter_)
    is_open = search.is_open
    plain: PlainJsonLines | None = getattr(output, "plain", None)
    plain_line = None if plain is None else plain.line
    put = sys.stdout.write
    plain_run = None if plain is None else plain.run
    batches = cast(Iterator[list[Entry]], _guarded_items(name, capture.batches(ends=False)))
    entries: Iterator[Entry] = chain.from_iterable(batches)
    if plain_run is not None and is_open and misses is None:
        entries = _without_runs(batches, plain_run, counts, TELLING if names_topics else frozenset())
    for entry in entries:
        if names_topics and isinstance(entry, FrameEntry) and entry.api_key in TELLING:
            learn(entry)
        if misses is not None and misses(entry):
            if not search.has_matched:
                search.saw(entry, is_shown=False)
            continue
        digits = counts.digits
        if is_open or search.saw(entry, filter_(entry) and selection(entry, digits)):
            if plain_line is not None and (line := plain_line(entry, digits)) is not None:
                put(line)
                continue
            write(entry, digits)
            if isinstance(entry, UnreadableRange) or is_refused(entry):
                status = 1
                lone_responses += capture.format in ("hex", "frames") and is_lone_response(entry)
    output.finish()
    _conclude(name, capture, options, filter_, search, lone_responses)
    return status


def _tables_to(
    name: str, capture: Capture, options: argparse.Namespace, output: TablesFormat, search: _Search
) -> int:
    """As `_entries_to` for tables, whose rows are made of many entries at once."""
    from coordwire.tables.readers.captures import together

    selection = search.selection
    selection.check(capture)
    filter_ = filters.Filter(options, search.names)
    misses = selection.misses(filter_)

    def is_selected(entry: Entry | ConnectionSign) -> bool:
        if isinstance(entry, ConnectionSign):
            return False
        if search.uses_names and isinstance(entry, FrameEntry) and entry.api_key in TELLING:
            search.topics.learn(entry)
        if misses is not None and misses(entry):
            return not search.has_matched and search.saw(entry, is_shown=False)
        return search.saw(entry, filter_(entry) and selection(entry, capture.counts.digits))

    status = lone_responses = 0
    for entries, frames in _guarded_items(name, together(capture.batches())):
        if refused := output.add(entries, frames, None if search.is_open else is_selected):
            status = 1
            if capture.format in ("hex", "frames"):
                lone_responses += sum(map(is_lone_response, refused))
    output.finish()
    _conclude(name, capture, options, filter_, search, lone_responses)
    return status


def _without_runs(
    batches: Iterator[list[Entry]],
    run: Callable[[list[Entry], int, int, frozenset[int]], tuple[str, int]],
    counts: CaptureCounts,
    stops: frozenset[int],
) -> Iterator[Entry]:
    """The entries that are not in runs of plain lines, which are written between them."""
    put = sys.stdout.write
    for batch in batches:
        at = 0
        while at < len(batch):
            text, at = run(batch, at, counts.digits, stops)
            if text:
                put(text)
            if at < len(batch):
                yield batch[at]
                at += 1


def _conclude(
    name: str, capture: Capture, options: argparse.Namespace, filter_: filters.Filter, search: _Search,
    lone_responses: int,
) -> None:  # fmt: skip
    """Report on standard error what the output does not show of a capture that was read to its end."""
    search.digits = max(search.digits, capture.counts.digits)
    passed_over = filter_.passed_over + search.selection.passed_over
    search.selection.passed_over = 0
    for text in capture_hints(capture):
        note(f"{shown(name)}: {text}")
    if passed_over:
        note(
            f"{shown(name)}: not shown: {counted(passed_over, 'unreadable or undated part')}, "
            "which filters cannot be applied to"
        )
    if lone_responses and options.dialect == "kafka":
        frames = "1 frame" if lone_responses == 1 else f"{lone_responses:,} frames"
        note(
            f"{shown(name)}: {frames} may be a response whose request is not in the input; "
            "coordwire explain --response-to API --version N HEX reads one"
        )


def _capture(name: str, stream: BinaryIO, head: bytes, options: argparse.Namespace) -> Capture:
    return Capture(
        stream,
        name,
        input=options.input,
        strict=options.strict,
        ports=frozenset(options.port),
        head=head,
        lazy=True,
        dialect=dialect_options.dialect_of(options),
        alternative=dialect_options.alternative_of(options),
    )


def _head(name: str, stream: BinaryIO) -> bytes:
    try:
        return read_head(stream)
    except OSError as error:
        raise failure(name, error) from None


def _is_segment(head: bytes, options: argparse.Namespace) -> bool:
    if options.input is not None or options.dialect != "kafka":
        return bool(options.input == SEGMENT)
    return sniff(head) == SEGMENT


def _guarded(name: str, make: Callable[[], Capture]) -> Capture:
    try:
        return make()
    except DecodeError as error:
        raise Failure(f"{shown(name)}: {error.reason}") from None
    except OSError as error:
        raise failure(name, error) from None
    except ValueError as error:  # type ids
        raise Failure(str(error)) from None


def _guarded_items(name: str, items: Iterable[T]) -> Iterator[T]:
    """What is read of a capture. Errors of reading become `Failure`, so that they differ from errors of
    writing."""
    try:
        yield from items
    except DecodeError as error:
        raise Failure(f"{shown(name)}: {error.reason}") from None
    except OSError as error:
        raise failure(name, error) from None
