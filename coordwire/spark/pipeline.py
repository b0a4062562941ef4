"""Inputs to tables: inventory, units of work, a Spark job over them, manifest, report.

    from coordwire.spark import pipeline
    summary = pipeline.run(spark, ["/backup", "captures/*.pcap"], "tables")
    pipeline.table(spark, "tables", "records").where("topic = 'orders'")

Strategy: the driver lists files and plans units; one job runs them, and the workers write. Units that the
manifest knows are left out. Rules: a job that was killed goes on where it was; what can't be read is in
`quarantine`, and no file fails the job; the manifest, the table `files` and the report are the driver's.
"""

from __future__ import annotations

__all__ = ["Summary", "run", "table", "tables_named"]

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coordwire.capture.jsonlines import text
from coordwire.errors import CoordwireError
from coordwire.spark.files import File, find_files
from coordwire.spark.manifest import Notes, complete_units, settle, sweep
from coordwire.spark.options import Options
from coordwire.spark.output import Output, table_schema
from coordwire.spark.parts import OPENING, Part, capture_parts, segment_parts
from coordwire.spark.tables import TABLES, arrow_schema, ddl
from coordwire.spark.units import Unit, as_units, run_unit, story_units

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Progress = Callable[[int, int], None]

TASK = 32 << 20
"""Bytes that a task reads at least, where there are that many."""

POLL = 0.2
_CAUSE = re.compile(r"[A-Za-z_][\w.]*: ")
"""The line of a worker's traceback that says what was raised."""

REPORT = "report.html"
FILES = "files/files.parquet"


@dataclass(slots=True)
class Summary:
    """What is in the tables of this run's inputs.

    bytes: of the input files; read_bytes: in rows; quarantined_bytes, bad_ranges: in quarantine; refused:
    frames with an error; units, reused: of work, and those that were complete before. apis: by API name,
    frames and refused frames.
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
    files = {file.path: file for file in find_files(inputs, recursive=options.recursive)}
    units = plan(files, options, wanted)
    held = sweep(output, complete_units(output), {unit.name for unit in units}, files)
    todo = [unit for unit in units if unit.name not in held]
    _work(spark, todo, out, options, wanted, progress)
    notes = complete_units(output)
    missing = [unit for unit in units if unit.name not in notes]
    if missing:
        raise CoordwireError(f"{len(missing)} of {len(units)} units left no note that they are complete")
    ours = {unit.name: notes[unit.name] for unit in units}
    if "files" in wanted:
        _write_files(output, files, ours)
    settle(output, notes)
    summary = _summary(files, ours)
    summary.reused = len(units) - len(todo)
    summary.seconds = time.monotonic() - began
    if report:
        from coordwire.spark.report import build

        output.write(REPORT, build(spark, out, summary, wanted).encode())
    return summary


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
) -> None:
    """Run the units in tasks of a fair size each."""
    tasks = _tasks(units, spark.sparkContext.defaultParallelism)
    if not tasks:
        return

    def work(group: list[Unit]) -> int:
        for unit in group:
            run_unit(unit, out, options, tables)
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
        except KeyboardInterrupt:
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
    lines = str(error).splitlines()
    causes = [line.strip() for line in lines if _CAUSE.match(line)]
    return CoordwireError(f"the Spark job failed: {(causes or lines or ['?'])[-1]}")


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


def _write_files(output: Output, files: dict[str, File], notes: Notes) -> None:
    """The table of files: what each is, and what became of its bytes."""
    import io

    import pyarrow as pa
    import pyarrow.parquet

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
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows, schema=arrow_schema(TABLES["files"])), sink)
    output.write(FILES, sink.getvalue())


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
    """One of the tables in `out`, with the column types that are documented, whatever is in it."""
    tables_named([name])
    return spark.read.schema(ddl(table_schema(name))).parquet(f"{Output(out).uri}/{name}")
