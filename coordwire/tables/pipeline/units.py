"""Units of work: a part of a file, or a coordinator's partition, to rows in all tables that it belongs to.

Strategy: a unit's name is a hash of all that its rows depend on: the files' fingerprints (path, size, time),
the range, the options, the version of the rows, and the codecs whose libraries are missing, if any. It
writes Parquet files and then a note that it is complete, with its contents. The small captures of a task
share files, and are complete together; each note says which rows are the unit's. Rules: run twice,
killed or not, or twice at once, it leaves the same rows once; without its note it counts for nothing; nothing
is kept between units, but for files that they share.
"""

from __future__ import annotations

__all__ = [
    "Job",
    "Unit",
    "UnitFailed",
    "as_units",
    "cause",
    "is_rest",
    "printable",
    "run_units",
    "story_units",
]

import gc
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from coordwire.errors import CoordwireError, DecodeError
from coordwire.records import RecordBatch
from coordwire.records.compression import missing_codecs
from coordwire.tables.columns import ROWS_FORMAT, TABLES, default_columns
from coordwire.tables.options import Options
from coordwire.tables.pipeline.capture_rows import CaptureRows
from coordwire.tables.readers.captures import was_overwritten
from coordwire.tables.readers.disk_lag import read_lag
from coordwire.tables.readers.file_origins import FileOrigin, segment_identity
from coordwire.tables.readers.files import File
from coordwire.tables.readers.group_rows import STORIES, EventRows, log_events
from coordwire.tables.readers.rows import Bad, builders_of, quarantine_batch
from coordwire.tables.readers.segment_rows import BatchRows, read_records
from coordwire.tables.readers.sources import guarded_call, reason_of
from coordwire.tables.readers.splits import Part
from coordwire.tables.storage.folders import open_output
from coordwire.tables.storage.manifest_file import LAYOUT
from coordwire.tables.storage.parquet_files import UnitFiles, UnitRows
from coordwire.tables.storage.unit_attempt import Attempt

if TYPE_CHECKING:
    import pyarrow


SMALL = 4 << 20
"""Captures of fewer bytes share files, as they share a task."""

YOUNG = 50_000
"""So many objects are made, on balance, before the collector looks at them."""


@dataclass(frozen=True, slots=True)
class Unit:
    """name: of its files. story: the part means a whole partition of `__consumer_offsets`."""

    name: str
    part: Part
    story: bool = False

    @property
    def kind(self) -> str:
        """capture, segment, story or lag."""
        return "lag" if self.part.lag is not None else "story" if self.story else self.part.kind


@dataclass(frozen=True, slots=True)
class Job:
    """What the units of a run have in common. out: the folder or URI of the tables; run: the run, which must
    still have the folder's lock when a unit's files appear."""

    out: str
    options: Options
    tables: tuple[str, ...]
    run: str | None = None


def as_units(
    parts: Iterable[Part],
    files: Mapping[str, File],
    options: Options,
    tables: Sequence[str],
    *,
    story: bool = False,
) -> list[Unit]:
    """Parts with the names of their units."""
    values = _values(options)
    units: list[Unit] = []
    for part in parts:
        if part.stage == "open" and not part.after:  # it is the last file of the chain of the unit before
            part = replace(part, after=units[-1].name)
        units.append(Unit(_name(part, files, values, tables, story), part, story))
    return units


def _values(options: Options) -> dict[str, Any]:
    """What rows depend on besides files and tables."""
    values = options.row_facts()
    if missing := missing_codecs():  # once they are there, everything is read again
        values["missing_codecs"] = missing
    return values


def row_facts(options: Options, tables: Sequence[str]) -> str:
    """A digest of what the rows of all captures depend on besides their files."""
    facts = json.dumps([LAYOUT, ROWS_FORMAT, sorted(tables), _values(options)])
    return sha256(facts.encode()).hexdigest()[:24]


def _name(
    part: Part, files: Mapping[str, File], values: Mapping[str, Any], tables: Sequence[str], story: bool
) -> str:
    prints = [(path, files[path].size, files[path].modified) for path in (part.path, *part.further_paths)]
    origin = [part.topic, part.partition, part.broker, part.cluster_id, part.state]
    place = [part.start, part.end, part.share, part.shares, part.starts]
    kinds = [story, part.lag is not None]
    chained: list[Any] = [part.stage, part.after] if part.stage else []
    if part.following:  # units that were saved stay, whatever their names
        chained += [part.following, files[part.following].size, files[part.following].modified]
    facts = json.dumps([LAYOUT, ROWS_FORMAT, prints, place, origin, kinds, sorted(tables), values, *chained])
    return sha256(facts.encode("utf-8", "surrogateescape")).hexdigest()[:24]


def story_units(
    segments: Iterable[File], files: Mapping[str, File], options: Options, tables: Sequence[str]
) -> list[Unit]:
    """One for each partition of `__consumer_offsets`, with all of its segments."""
    folders: dict[str, list[File]] = {}
    for file in segments:
        if file.topic == "__consumer_offsets":
            folders.setdefault(file.path.rpartition("/")[0], []).append(file)
    parts = [
        Part("segment", first.path, sum(file.size for file in group), 0, first.size, first.topic,
             first.partition, further_paths=tuple(file.path for file in further))
        for group in folders.values()
        for first, *further in [group]
    ]  # fmt: skip
    return as_units(parts, files, options, tables, story=True)


def run_units(units: Sequence[Unit], job: Job) -> list[dict[str, Any]]:
    """Read the units of a task, write their rows and their notes together; returns the notes that count.
    Raises `UnitFailed`."""
    unit, open_files, notes = units[0], list[UnitFiles](), []
    try:
        task = _task_name(units)
        attempt = Attempt(open_output(job.out), task, job.run)
        shared = UnitFiles(attempt, task)
        share_files = sum(map(_is_small, units)) > 1
        for together in _read_together(units, job.tables):
            unit, began = together[0], time.monotonic()
            works = [
                Work(unit, job, shared if share_files and _is_small(unit) else UnitFiles(attempt, unit.name))
                for unit in together
            ]
            open_files = [shared, *(work.files for work in works)]
            works[0].run(works)
            for work in works:
                if work.files is not shared:
                    work.files.close()
            seconds = round(time.monotonic() - began, 3)
            notes += [
                work.note() | {"seconds": seconds}
                | ({"ranges": work.written.ranges} if work.files is shared else {})
                for work in works
            ]  # fmt: skip
        shared.close()
        return attempt.publish(notes)
    except BaseException as error:
        for files in open_files:
            files.discard()
        if isinstance(error, Exception):
            path, reason = printable(unit.part.path), cause(error)
            raise UnitFailed(reason if path in reason else f"{path}: {reason}") from error
        raise


def _read_together(units: Sequence[Unit], tables: Sequence[str]) -> Iterator[list[Unit]]:
    """The units, with the two of a capture together that stories and frames have, or that a chain's settled
    files and its last one have: one reading serves both."""
    together: list[Unit] = []
    for unit in units:
        if together and not (
            is_last_of(together[0], unit) or (_has_stories(tables) and is_rest(together[0], unit))
        ):
            yield together
            together = []
        together.append(unit)
    yield together


def _is_small(unit: Unit) -> bool:
    """Whether a unit shares files with others: a small capture that no other goes on from."""
    part = unit.part
    return part.kind == "capture" and not part.stage and part.end - part.start < SMALL


def is_rest(before: Unit | None, unit: Unit) -> bool:
    """Whether a unit is the second one of a capture that has two, and the one before it the first."""
    if before is None or unit.part.kind != "capture" or before.part.shares != 2:
        return False
    return before.part.path == unit.part.path and before.part.captured == unit.part.captured


def is_last_of(before: Unit | None, unit: Unit) -> bool:
    """Whether a unit has the last file of a chain, and the one before it the settled files."""
    return before is not None and unit.part.stage == "open" and unit.part.after == before.name


def _has_stories(tables: Sequence[str]) -> bool:
    """Whether some of the tables are made by one reader of a whole capture, whose other shares the frames
    are in."""
    return not {*STORIES, "traffic"}.isdisjoint(tables)


def _task_name(units: Sequence[Unit]) -> str:
    """The same for each attempt at the same units."""
    return sha256("".join(unit.name for unit in units).encode()).hexdigest()[:24]


def _identity(part: Part) -> list[Any] | None:
    """What identifies a segment wherever its broker moves it; None for anything but a broker's segment."""
    if part.kind != "segment" or part.cluster_id is None or part.topic is None or part.state == "remote":
        return None
    origin = FileOrigin(part.topic, part.partition, part.broker, part.cluster_id, part.state)
    return segment_identity(part.path, part.size, origin)


@contextmanager
def _few_collections() -> Iterator[None]:
    """Let the collector run seldom: rows and entries come and go, few of them in cycles."""
    if not hasattr(gc, "get_threshold"):  # PyPy's collector has none
        yield
        return
    before = gc.get_threshold()
    if 0 < before[0] < YOUNG:
        gc.set_threshold(YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


class UnitFailed(CoordwireError):
    """A unit that could not be read or written; the reason names its file."""


def cause(error: BaseException) -> str:
    """The message of an exception, in one line."""
    if isinstance(error, CoordwireError):
        sentence = (
            f"{type(error).__name__}: {error.reason}" if isinstance(error, DecodeError) else error.reason
        )
    elif isinstance(error, OSError):
        sentence = error.strerror or str(error)
        sentence += f": {error.filename}" if error.strerror and isinstance(error.filename, str) else ""
    else:
        sentence = f"{type(error).__name__}: {error}"
    return printable(sentence)


def printable(sentence: str) -> str:
    """A text in one line, without control characters."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in sentence)


class Work:
    """Reads one unit and writes its rows."""

    def __init__(self, unit: Unit, job: Job, files: UnitFiles) -> None:
        self.unit = unit
        self.job = job
        self.options = job.options
        self.tables = job.tables
        self.files = files
        self.written = UnitRows(files)
        self.notices: list[str] = []
        self.chain = ""
        self.is_saved = False
        self.read_bytes = self.quarantined = self.bad_ranges = self.refused = self.rows = 0
        self.lost: set[str] = set()
        self.apis: Counter[tuple[str, bool]] = Counter()
        self.error_codes: Counter[tuple[str, int]] = Counter()
        self._bad_ranges: list[Bad] = []

    def note(self) -> dict[str, Any]:
        """The unit's note."""
        part = self.unit.part
        own = [file for file in part.captured if not part.stage or file.path in part.paths]
        chained: dict[str, Any] = {}
        if part.stage:
            chained = {
                "stage": part.stage, "after": part.after, "chain": self.chain, "notices": self.notices,
                "saved": self.is_saved and not self.lost, "facts": row_facts(self.options, self.tables),
            }  # fmt: skip
        return chained | {
            "unit": self.unit.name, "kind": self.unit.kind, "segment": _identity(part),
            "paths": [part.path, *part.further_paths], "start": part.start, "end": part.end,
            "captured": [[*file] for file in own if file.path not in self.lost],
            "share": [part.share, part.shares],
            "files": sorted(self.written.ranges), "rows": dict(self.written.rows), "units_rows": self.rows,
            "read_bytes": self.read_bytes, "quarantined_bytes": self.quarantined,
            "bad_ranges": self.bad_ranges, "refused": self.refused,
            "apis": [[api, refused, count] for (api, refused), count in sorted(self.apis.items())],
            "error_codes": [[api, code, count] for (api, code), count in sorted(self.error_codes.items())],
        }  # fmt: skip

    def run(self, together: Sequence[Work]) -> None:
        """Read the unit and write its rows, and those of the others that the same reading serves, which come
        after it."""
        items: dict[str, Callable[[], Iterator[tuple[str, pyarrow.RecordBatch]]]] = {
            "story": self._story, "lag": self._lag, "segment": self._segment,
        }  # fmt: skip
        with _few_collections():
            if self.unit.kind == "capture":
                output = self.files.attempt.output
                for work, table, batch in CaptureRows(together, self.options, self.tables, output).rows():
                    if table in self.tables:
                        work.written.add(table, batch)
            else:
                for table, batch in items[self.unit.kind]():
                    if table in self.tables:
                        self.written.add(table, batch)
        captured = [file for work in together for file in work.unit.part.captured]
        lost = set[str]().union(*(work.lost for work in together))
        lost.update(file.path for file in captured if was_overwritten(file))
        for work in together:
            work.lost = lost
            work.flush()

    def flush(self) -> None:
        """Write what is left."""
        if self._bad_ranges and "quarantine" in self.tables:
            self.written.add("quarantine", quarantine_batch(self._bad_ranges))

    def quarantine(self, bad_range: Bad) -> None:
        if bad_range.is_lost:
            self.lost.add(bad_range.path)
        self.quarantined += bad_range.end - bad_range.start
        self.bad_ranges += 1
        self._bad_ranges.append(bad_range)
        if len(self._bad_ranges) >= 256 and "quarantine" in self.tables:
            self.written.add("quarantine", quarantine_batch(self._bad_ranges))
            self._bad_ranges.clear()

    def _segment(self) -> Iterator[tuple[str, pyarrow.RecordBatch]]:
        part = self.unit.part
        heads = BatchRows(part, [column.name for column in TABLES["batches"]])
        full: list[pyarrow.RecordBatch] = []

        def see(batch: RecordBatch, records_size: int | None) -> None:
            self.read_bytes += batch.size
            self.rows += 1
            if "batches" in self.tables and (rows := heads.add(batch, records_size)) is not None:
                full.append(rows)

        columns = [column.name for column in default_columns(TABLES["records"])]
        if "records" not in self.tables:
            columns = ["topic"]
        for item in guarded_call(read_records, part, self.options, columns, see):
            if isinstance(item, Bad):
                self.quarantine(item)
            else:
                yield "records", item
            while full:
                yield "batches", full.pop()
        if (rows := heads.builder.take()) is not None:
            yield "batches", rows

    def _story(self) -> Iterator[tuple[str, pyarrow.RecordBatch]]:
        part = self.unit.part
        tables = [name for name in STORIES if name in self.tables]
        stories = EventRows(builders_of(tables, self.options.batch_size), "log")
        try:
            yield from stories.add_all(log_events((part.path, *part.further_paths), part.partition))
        except Exception as error:
            if self.options.failfast:
                raise
            self.quarantine(Bad(part.path, 0, 0, f"its timeline can't be reconstructed: {reason_of(error)}"))
        yield from stories.finish()

    def _lag(self) -> Iterator[tuple[str, pyarrow.RecordBatch]]:
        part = self.unit.part
        try:
            for batch in read_lag(part, self.options, [column.name for column in TABLES["lag"]]):
                assert not isinstance(batch, Bad)
                yield "lag", batch
        except Exception as error:
            if self.options.failfast:
                raise
            self.quarantine(Bad(part.path, 0, 0, f"lag can't be found from it: {reason_of(error)}"))
