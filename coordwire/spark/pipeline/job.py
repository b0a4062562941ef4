"""Inputs to tables: inventory, units of work, a Spark job over them, manifest, report.

    from coordwire.spark import pipeline
    summary = pipeline.run(spark, ["/backup", "captures/*.pcap"], "tables")
    pipeline.table(spark, "tables", "records").where("topic = 'orders'")

Strategy: the driver lists files and plans units; one job runs them, and the workers write. Units that the
manifest knows are left out. Rules: a job that was killed goes on where it was; what can't be read is in
`quarantine`, and no file fails the job; the manifest, the table `files` and the report are the driver's.
"""

from __future__ import annotations

__all__ = ["REPORT", "Summary", "check", "run", "table", "tables_named"]

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from coordwire.capture.jsonlines import text
from coordwire.errors import CoordwireError
from coordwire.spark.columns import TABLES, arrow_schema, ddl
from coordwire.spark.pipeline.attempts import clear, remove_ours
from coordwire.spark.pipeline.locks import Lock
from coordwire.spark.pipeline.manifest import (  # fmt: skip
    check_folder,
    check_report,
    check_tables,
    commit,
    complete_units,
    foreign_files,
    manifest_files,
    named_files,
    remove_orphans,
    write_report,
)
from coordwire.spark.pipeline.notes import Manifest, Notes, Proof, load
from coordwire.spark.pipeline.output import Output, UnitFiles, table_schema
from coordwire.spark.pipeline.places import REPORT
from coordwire.spark.pipeline.units import Unit, UnitFailed, as_units, printable, run_unit, story_units
from coordwire.spark.readers.files import File, find_files, is_uri
from coordwire.spark.readers.parts import OPENING, Part, capture_parts, segment_parts
from coordwire.spark.sources.options import Options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Progress = Callable[[int, int], None]

TASK = 32 << 20
"""Bytes that a task reads at least, where there are that many."""

POLL = 0.2
MOST_SAID = 2000
_FAILED = f"{UnitFailed.__module__}.{UnitFailed.__name__}: "
_LOST = re.compile(
    r"Python worker exited|ExecutorLostFailure|OutOfMemoryError|No space left|SparkContext was"
)
_CAUSE = re.compile(r"[A-Za-z_][\w.]*: ")
"""The line of a worker's traceback that says what was raised."""

FILES_UNIT = sha256(b"the table of files").hexdigest()[:24]
"""What the table of files has in the place of a unit's name."""


@dataclass(slots=True)
class Summary:
    """What is in the tables of this run's inputs.

    bytes: of the input files; read_bytes: in rows; quarantined_bytes, bad_ranges: in quarantine; refused:
    frames with an error; units, reused: of work, and those that were complete before. notices: sentences
    for the user: on a run before this one that was killed, on files that aren't the pipeline's. apis: by API
    name, frames and refused frames.
    """

    files: int = 0
    bytes: int = 0
    frames: int = 0
    records: int = 0
    batches: int = 0
    refused: int = 0
    bad_ranges: int = 0
    read_bytes: int = 0
    quarantined_bytes: int = 0
    units: int = 0
    reused: int = 0
    seconds: float = 0.0
    notices: list[str] = field(default_factory=list)
    apis: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def errors(self) -> int:
        """What was refused: frames and ranges of bytes."""
        return self.refused + self.bad_ranges


def tables_named(names: Iterable[str] | None) -> tuple[str, ...]:
    """The tables to write: those named, or all. Raises `CoordwireError` for an unknown one."""
    wanted = tuple(TABLES) if names is None else tuple(names)
    unknown = [name for name in wanted if name not in TABLES]
    if unknown:
        raise CoordwireError(f"no such table: {', '.join(unknown)}; there are {', '.join(TABLES)}")
    return wanted


def run(
    spark: SparkSession,
    inputs: Sequence[str],
    out: str,
    *,
    tables: Iterable[str] | None = None,
    options: Options | None = None,
    report: bool = True,
    progress: Progress | None = None,
) -> Summary:
    """Read captures and segments into tables in the folder `out`, which may be a URI.

    inputs: files, folders, globs, URIs. tables: their names, by default all. progress: is told how many tasks
    are done, of how many. Raises `FileNotFoundError` for an input that isn't there, `CoordwireError` for an
    unknown table, `OSError` where `out` can't be written.
    """
    began = time.monotonic()
    options = options or Options()
    wanted = tables_named(tables)
    output = Output(out)
    files = {file.path: file for file in inputs_of(output, inputs, options)}
    check_folder(output)
    lock = Lock(output)
    lock.acquire()
    try:
        summary = _locked(spark, output, lock, files, wanted, options, report, progress)
    finally:
        lock.release()
    summary.seconds = time.monotonic() - began
    return summary


def _locked(
    spark: SparkSession,
    output: Output,
    lock: Lock,
    files: dict[str, File],
    wanted: tuple[str, ...],
    options: Options,
    report: bool,
    progress: Progress | None,
) -> Summary:
    """The run, by whom has the folder."""
    began = time.monotonic()
    check_folder(output)  # who had it until now may have begun it
    check_tables(output, wanted)
    if report:
        check_report(output)
    if load(output) is None:
        commit(output, {})
    found = complete_units(output)
    _clear(output, found)
    units = plan(files, options, wanted)
    held = remove_orphans(output, found, {unit.name for unit in units}, files)
    notices = [*lock.notices, *_foreign(output, held)]
    todo = [unit for unit in units if unit.name not in held]
    try:
        _work(spark, todo, output.shown, options, wanted, progress, lock.run)
    except BaseException:
        with suppress(OSError, CoordwireError):  # why the job failed matters more
            _end(output, lock)
        raise
    notes = _end(output, lock)
    missing = [unit for unit in units if unit.name not in notes]
    if missing:
        raise CoordwireError(
            f"{len(missing)} of {len(units)} units left no note that they are complete; the first is of "
            f"{printable(missing[0].part.path)}"
        )
    ours = {unit.name: notes[unit.name] for unit in units}
    table_files: dict[str, Proof] | None = None
    removing: dict[str, Proof] = {}
    if "files" in wanted:
        table_files, removing = _write_files(output, files, ours, lock.run)
    commit(output, notes, files=table_files, removing=removing)
    for name, proof in removing.items():
        remove_ours(output, name, proof)
    _clear(output, notes)
    summary = _summary(files, ours)
    summary.reused = len(units) - len(todo)
    summary.notices = notices
    summary.seconds = time.monotonic() - began
    if report:
        from coordwire.spark.pipeline.report import build

        write_report(output, build(spark, output.shown, summary, wanted).encode("utf-8", "replace"))
    return summary


def _end(output: Output, lock: Lock) -> Notes:
    """Let no task publish any more, and remove what those left that ended without; the complete units."""
    lock.fence()
    notes = complete_units(output)
    _clear(output, notes)
    return notes


def _clear(output: Output, notes: Notes) -> None:
    clear(output, {name for note in notes.values() for name in note["proofs"]} | manifest_files(output))


def inputs_of(output: Output, inputs: Sequence[str], options: Options) -> list[File]:
    """The files to read: none of the output folder, where that is inside of an input.

    Raises `FileNotFoundError` for an input that isn't there, `CoordwireError` for one inside of the output.
    """
    for path in inputs:
        if _is_inside(output, path):
            raise CoordwireError(
                f"{printable(path)} is inside of {printable(output.shown)}, the output folder"
            )
    inside = cache(lambda folder: _is_inside(output, folder))
    found = find_files(inputs, recursive=options.recursive)
    return [file for file in found if not inside(file.path.rpartition("/")[0])]


def _check_inputs(output: Output, inputs: Sequence[str]) -> None:
    for path in inputs:
        if _is_inside(output, path):
            raise CoordwireError(
                f"{printable(path)} is inside of {printable(output.shown)}, the output folder"
            )


def check(inputs: Sequence[str], out: str) -> None:
    """What `run` would refuse before it reads or writes anything. Raises `CoordwireError`."""
    output = Output(out)
    _check_inputs(output, inputs)
    check_folder(output)


def _is_inside(output: Output, path: str) -> bool:
    """Whether a path is the output folder or below it."""
    if is_uri(path) != is_uri(output.shown):
        return False
    if is_uri(path):
        return f"{path.rstrip('/')}/".startswith(f"{output.shown.rstrip('/')}/")
    root = os.path.realpath(output.root).rstrip("/")
    return f"{os.path.realpath(path.removeprefix('file://'))}/".startswith(f"{root}/")


def _foreign(output: Output, notes: Notes) -> list[str]:
    found = foreign_files(output, notes.values())
    if not found:
        return []
    first = ", ".join(printable(name) for name in found[:3])
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return [f"files in the tables' folders that this pipeline did not write were left alone: {first}{more}"]


def plan(files: dict[str, File], options: Options, tables: Sequence[str]) -> list[Unit]:
    """The units of these files."""
    kinds: dict[str, list[File]] = {}
    for file in files.values():
        kinds.setdefault(file.kind(), []).append(file)
    segments, captures = kinds.get("segment", []), kinds.get("capture", [])
    parts: list[Part] = [*segment_parts(segments, options), *capture_parts(captures, options)]
    units = as_units(parts, files, options, tables)
    if {"groups", "offset_commits"} & set(tables):
        units += story_units(segments, files, options, tables)
    return units


def _work(
    spark: SparkSession,
    units: Sequence[Unit],
    out: str,
    options: Options,
    tables: tuple[str, ...],
    progress: Progress | None,
    run: str | None = None,
) -> None:
    """Run the units in tasks of a fair size each. Raises `CoordwireError` where the job fails."""
    tasks = _tasks(units, spark.sparkContext.defaultParallelism)
    if not tasks:
        return

    def work(group: list[Unit]) -> int:
        for unit in group:
            run_unit(unit, out, options, tables, run)
        return len(group)

    context, done = spark.sparkContext, 0
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(lambda: context.parallelize(tasks, len(tasks)).map(work).collect())
        try:
            while not job.done():
                done = max(done, _done(spark))
                if progress is not None:
                    progress(done, len(tasks))
                time.sleep(POLL)
        except BaseException:  # interrupted, or asked to end
            with suppress(Exception):  # Spark itself may be gone
                context.cancelAllJobs()
            raise
        if (error := job.exception()) is not None:
            raise _told(error) from error
    if progress is not None:
        progress(len(tasks), len(tasks))


def _told(error: BaseException) -> BaseException:
    """What ended the job, without Spark's traces; anything but Spark's own errors as it is."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if not isinstance(error, Py4JError | PySparkException):
        return error
    lines = [line.strip() for line in str(error).splitlines()]
    failed = [line.partition(_FAILED)[2] for line in lines if _FAILED in line]
    lost = [line for line in lines if _LOST.search(line)]
    causes = [line for line in lines if _CAUSE.match(line)]
    said = (failed or lost[:1] or causes or lines or ["?"])[-1]
    return CoordwireError(
        f"the Spark job failed: {printable(said)[:MOST_SAID]}; a rerun goes on where it was"
    )


def _tasks(units: Sequence[Unit], workers: int) -> list[list[Unit]]:
    """Neighbours together: enough tasks for all workers to end at about the same time, none too small."""
    cost = [unit.part.end - unit.part.start + OPENING for unit in units]
    most = (
        max(TASK, sum(cost) // (1000 * workers))
        if sum(cost) > 4 * workers * TASK
        else (sum(cost) // (4 * workers) + 1)
    )
    tasks: list[list[Unit]] = []
    used = most
    for unit, size in zip(units, cost, strict=True):
        if used + size > most:
            tasks.append([])
            used = 0
        tasks[-1].append(unit)
        used += size
    return tasks


def _done(spark: SparkSession) -> int:
    tracker = spark.sparkContext.statusTracker()
    found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return sum(info.numCompletedTasks for info in found if info is not None)


# --- what became of it ---


def _summary(files: dict[str, File], notes: Notes) -> Summary:
    rows: Counter[str] = Counter()
    apis: dict[str, tuple[int, int]] = {}
    summary = Summary(files=len(files), bytes=sum(file.size for file in files.values()), units=len(notes))
    for note in notes.values():
        rows.update(note["rows"])
        if note["kind"] == "capture":
            summary.frames += note["units_rows"]
        elif note["kind"] == "segment":
            summary.batches += note["units_rows"]
        summary.read_bytes += note["read_bytes"]
        summary.quarantined_bytes += note["quarantined_bytes"]
        summary.bad_ranges += note["bad_ranges"]
        summary.refused += note["refused"]
        for api, bad, count in note["apis"]:
            good, refused = apis.get(api, (0, 0))
            apis[api] = (good + count, refused + count * bad)
    summary.records = rows["records"]
    summary.apis = dict(sorted(apis.items()))
    return summary


def _write_files(
    output: Output, files: dict[str, File], notes: Notes, run: str
) -> tuple[dict[str, Proof], dict[str, Proof]]:
    """The table of files: what each is, and what became of its bytes. Its new files, and those to remove."""
    import pyarrow as pa

    found: dict[str, Counter[str]] = {}
    joined: dict[str, str] = {}
    for note in notes.values():
        first, *rest = note["paths"]
        if note["kind"] == "story":
            continue
        numbers = found.setdefault(first, Counter())
        numbers.update({key: note[key] for key in ("units_rows", "read_bytes", "quarantined_bytes")})
        joined.update((path, first) for path in rest)
    rows = [_file_row(file, found, joined, files) for file in files.values()]
    writing = UnitFiles(output, FILES_UNIT, run)
    try:
        for batch in pa.Table.from_pylist(rows, schema=arrow_schema(TABLES["files"])).to_batches():
            writing.add("files", batch)
        writing.close()
        return writing.attempt.place_files(), (load(output) or Manifest()).files
    except BaseException:
        writing.discard()
        raise


def _file_row(
    file: File, found: dict[str, Counter[str]], joined: dict[str, str], files: dict[str, File]
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "path": text(file.path), "kind": file.kind(),
        "topic": file.topic, "partition": file.partition, "size": file.size,
        "modified": file.modified // 1000 if file.modified else None, "other_bytes": file.size,
    }  # fmt: skip
    if file.path in joined:
        return row | {"joined_to": joined[file.path], "other_bytes": 0}
    numbers = found.get(file.path)
    if numbers is None:
        return row
    size = file.size + sum(files[path].size for path, first in joined.items() if first == file.path)
    read, bad = numbers["read_bytes"], numbers["quarantined_bytes"]
    return row | {
        "rows": numbers["units_rows"], "read_bytes": read, "quarantined_bytes": bad,
        "other_bytes": max(size - read - bad, 0),
    }  # fmt: skip


def table(spark: SparkSession, out: str, name: str) -> DataFrame:
    """One of the tables in `out`, with the column types that are documented, whatever is in it.

    Reads what the manifest and the notes name, and nothing else that is in the folder.
    """
    tables_named([name])
    output = Output(out)
    schema = ddl(table_schema(name))
    names, alone = named_files(output, name)
    place = f"{output.uri}/{name}"
    if not names:
        return spark.createDataFrame([], schema)
    reader = spark.read.schema(schema)
    if alone:
        return reader.parquet(place)
    base = f"{'file://' if output.local else ''}{output.root}/{name}" if output.local else place
    return reader.option("basePath", base).parquet(*(f"{output.uri}/{file}" for file in names))
