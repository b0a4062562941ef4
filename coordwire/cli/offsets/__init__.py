"""`coordwire offsets`: the records that coordinators wrote to their logs.

Strategy: `coordwire.timeline` gives the records of each segment and brings transactions and their markers
together; a filter selects, a format writes. Rules: unreadable parts are in the output and on standard error,
and the status is 1; a record of an unknown type or version is shown with its bytes and without an error; a
file that the system refuses is left out, and the status is 2.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from coordwire.capture.printable import shown
from coordwire.cli import Failure, progress
from coordwire.cli.coordinator_logs import read_log, refuse_capture
from coordwire.cli.inputs import failure, note
from coordwire.cli.selection import names, times
from coordwire.cli.selection.names import Find, Names
from coordwire.cli.selection.survey import Survey
from coordwire.errors import CodecUnavailable, UnreadableRange, counted
from coordwire.logs import TOPICS
from coordwire.timeline.from_log.compaction import decide, latest
from coordwire.timeline.from_log.coordinator_log import CoordinatorRecord, LogItem, Marker
from coordwire.timeline.from_log.files import LogFile, find_files

MS = 1_000_000


class OffsetsFormat(Protocol):
    """Writes the items of coordinators' logs."""

    def write(self, item: LogItem, *, pending: bool = False) -> None:
        """One item. pending: it holds only once a marker further on commits its transaction."""

    def finish(self) -> None:
        """Write what is left, after the last item."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="+", metavar="DIR|FILE", help="a broker's log directory, a partition's, or segments"
    )
    parser.add_argument(
        "--format", choices=("table", "json"), default="table", help="json: a line a record (default: table)"
    )
    parser.add_argument(
        "--latest", action="store_true", help="only the last value of each key; no NoOps of the metadata log"
    )  # fmt: skip
    parser.add_argument(
        "--lag",
        action="store_true",
        help="instead of records, each group's lag: its last commits against the ends of the logs on the "
        "same disks",
    )
    parser.add_argument(
        "--log",
        choices=list(TOPICS),
        help="read only this log in directories, and files as segments of it (default: all logs, detected "
        "from name or content)",
    )
    parser.add_argument("--show-secrets", action="store_true", help="show SCRAM keys and secret configs")
    group = parser.add_argument_group("filters", "all of them must match")
    group.add_argument(
        "--group", action="append", metavar="ID", help=f"only records of this group: {names.HELP}"
    )
    group.add_argument(
        "--topic", action="append", metavar="NAME", help="only offsets of this topic, as --group"
    )
    times.configure(group)


def run(options: argparse.Namespace) -> int:
    if options.lag:
        from coordwire.cli.offsets import lag

        return lag.run(options)
    output = _format(options)
    reading = _Reading(options)
    times.make_absolute(
        options,
        lambda: times.span_of(_time(item) for item in _Reading(options, quiet=True).items()),
    )
    selection = _Selection(options)
    if options.latest:
        progress.quietly()
        latest_items = latest(_passed_on(selection.timely(reading.items()), output))
        progress.end()
        for record in latest_items.records:
            if selection(record):
                output.write(record)
        for record in latest_items.pending:
            if selection(record):
                output.write(record, pending=True)
    else:
        for item in decide(reading.items()):
            if selection(item):
                output.write(item, pending=isinstance(item, CoordinatorRecord) and item.transactional)
    output.finish()
    selection.survey.report(
        shown(options.paths[0]) if len(options.paths) == 1 else f"{len(options.paths)} inputs"
    )
    return reading.status


def _format(options: argparse.Namespace) -> OffsetsFormat:
    if options.format == "json":
        from coordwire.cli.offsets.json_lines import OffsetsJsonFormat

        return OffsetsJsonFormat(show_secrets=options.show_secrets)
    from coordwire.cli.offsets.table import OffsetsTableFormat

    return OffsetsTableFormat(show_secrets=options.show_secrets)


def _passed_on(items: Iterator[LogItem], output: OffsetsFormat) -> Iterator[LogItem]:
    """The items; what couldn't be read is written at once, since nothing supersedes it."""
    for item in items:
        if isinstance(item, UnreadableRange):
            progress.clear()
            output.write(item)
        yield item


class _Reading:
    """The items of all files. status: 1 if something couldn't be read, 2 if the system refused a file."""

    def __init__(self, options: argparse.Namespace, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._paths: list[str] = options.paths
        self._log = options.log
        self.status = 0

    def items(self) -> Iterator[LogItem]:
        has_items = False
        for file in self._files():
            has_items = True
            try:
                for item in read_log(file, log=self._log):
                    self._judge(item)
                    yield item
            except OSError as error:
                self._tell(2, str(failure(file.path, error)))
            except CodecUnavailable as error:
                self._tell(2, f"{shown(file.path)}: {error}")
        if not has_items and not self.status:
            topics = ", ".join(topic for log, topic in TOPICS.items() if self._log in (None, log))
            raise Failure(f"no segments of {topics} there; coordwire timeline reads captures")

    def _files(self) -> Iterator[LogFile]:
        for path in self._paths:
            try:
                refuse_capture(Path(path))
                logs = find_files([path])
                if self._log is not None and Path(path).is_dir():
                    yield from (file for file in logs if file.log in (None, self._log))
                else:
                    yield from logs
            except (OSError, ValueError) as error:
                self._tell(2, str(failure(path, error)))
            except Failure as trouble:
                self._tell(2, str(trouble))

    def _judge(self, item: LogItem) -> None:
        if isinstance(item, UnreadableRange):
            place = f"{counted(item.length, 'byte', ',')} at byte {item.position:,}"
            self._tell(1, f"{shown(item.file)}: {place} couldn't be read: {item.reason}")
        elif isinstance(item, CoordinatorRecord) and item.refusal is not None:
            reason = f"record at offset {item.log_offset}: {item.refusal.path}: {item.refusal.reason}"
            self._tell(1, f"{shown(item.file)}: {reason}")

    def _tell(self, status: int, text: str) -> None:
        self.status = max(self.status, status)
        if not self._quiet:
            note(text)


class _Selection:
    """The filters of one command line. What couldn't be read always passes, as its content is unknown."""

    def __init__(self, options: argparse.Namespace) -> None:
        def find(of: Callable[[CoordinatorRecord], str | None]) -> Find:
            return lambda texts: {of(item) for item in _second_reading(options)} & set(texts)  # type: ignore[return-value]

        self._groups = Names(options.group, find(lambda record: record.group))
        self._topics = Names(options.topic, find(lambda record: record.topic))
        self._times = times.TimeRange(options.since, options.until)
        timed = options.since is not None or options.until is not None
        kinds: dict[str, Callable[[LogItem], Iterable[object]]] = {
            "groups": lambda item: (getattr(item, "group", None),),
            "topics": lambda item: (getattr(item, "topic", None),),
        }
        names_given = {
            name: texts for name, texts in (("groups", options.group), ("topics", options.topic)) if texts
        }
        self.survey = Survey(
            "records", {name: kinds[name] for name in names_given}, names_given, _time if timed else None
        )

    def __call__(self, item: LogItem) -> bool:
        """Whether to show an item."""
        if isinstance(item, UnreadableRange):
            return True
        return self.survey.saw(item, self._is_selected(item))

    def _is_selected(self, item: CoordinatorRecord | Marker) -> bool:
        if not self._timely(item):
            return False
        if isinstance(item, Marker):
            return not (self._groups or self._topics) or any(map(self._matches_names, item.decided))
        return item.refusal is not None or self._matches_names(item)

    def timely(self, items: Iterator[LogItem]) -> Iterator[LogItem]:
        """The items inside the time range."""
        for item in items:
            if isinstance(item, UnreadableRange) or self._timely(item):
                yield item
            else:
                self.survey.saw(item, False)

    def _timely(self, item: CoordinatorRecord | Marker) -> bool:
        return _time(item) in self._times

    def _matches_names(self, record: CoordinatorRecord) -> bool:
        return (not self._groups or self._groups(record.group)) and (
            not self._topics or self._topics(record.topic)
        )


def _time(item: LogItem) -> int | None:
    """When an item was written, in nanoseconds."""
    timestamp_ms: int = getattr(item, "timestamp_ms", -1)
    return None if timestamp_ms < 0 else timestamp_ms * MS


def _second_reading(options: argparse.Namespace) -> Iterator[CoordinatorRecord]:
    """The records of all files once more; what can't be read is reported elsewhere."""
    reading = _Reading(options, quiet=True)
    return (item for item in reading.items() if isinstance(item, CoordinatorRecord))
