"""Inputs to tables: inventory, units of work, a job over them, manifest, report.

    from coordwire.spark import pipeline
    summary = pipeline.run(spark, ["/backup", "captures/*.pcap"], "tables")
    pipeline.table(spark, "tables", "records").where("topic = 'orders'")
    pipeline.run(pipeline.LocalEngine(workers=4), ["/backup"], "tables")  # without Spark

Strategy: the driver lists files and plans units; an `Engine` runs them, and the workers write. Units that the
manifest knows are left out. Rules: a job that was killed goes on where it was; what can't be read is in
`quarantine`, and no file fails the job; the manifest, the table `files` and the report are the driver's.
"""

from __future__ import annotations

__all__ = ["REPORT", "PipelineSummary", "check", "clear_attempts", "inputs_of", "run"]

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from secrets import token_hex
from typing import TYPE_CHECKING

from coordwire.errors import CoordwireError
from coordwire.spark.options import Options
from coordwire.spark.pipeline.attempts import clear, remove_ours
from coordwire.spark.pipeline.connect_tasks import ConnectEngine, is_connect
from coordwire.spark.pipeline.engine import Engine, Progress
from coordwire.spark.pipeline.gone import gone_units, mount_points, paths_of, pruned_notice, renamed_units
from coordwire.spark.pipeline.locks import Lock
from coordwire.spark.pipeline.manifest import (  # fmt: skip
    check_folder,
    check_report,
    check_tables,
    chosen_format,
    commit,
    complete_units,
    foreign_files,
    manifest_files,
    remove_orphans,
    write_mounts,
    write_report,
)
from coordwire.spark.pipeline.notes import Manifest, Notes, Proof, TableLog, load
from coordwire.spark.pipeline.output import Output
from coordwire.spark.pipeline.places import REPORT
from coordwire.spark.pipeline.report import page
from coordwire.spark.pipeline.spark_tasks import SparkEngine
from coordwire.spark.pipeline.summary import PipelineSummary, summary_of, write_files
from coordwire.spark.pipeline.table_formats import PARQUET
from coordwire.spark.pipeline.table_formats.table_commits import bring_up, next_log, unless_same
from coordwire.spark.pipeline.tables import tables_named
from coordwire.spark.pipeline.units import Unit, as_units, printable, story_units
from coordwire.spark.readers.files import File, find_files
from coordwire.spark.readers.log_copies import OFFSETS_TOPIC
from coordwire.spark.readers.origins import Origins
from coordwire.spark.readers.parts import Part, capture_parts, lag_parts, segment_parts
from coordwire.spark.readers.stores import canonical, is_uri, local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OF_SEGMENTS = ("files", "batches", "records", "quarantine")
"""The tables that segments of all topics have rows in."""


def run(
    engine: SparkSession | Engine,
    inputs: Sequence[str],
    out: str,
    *,
    tables: Iterable[str] | None = None,
    options: Options | None = None,
    report: bool = True,
    progress: Progress | None = None,
    prune: bool = False,
    format: str | None = None,
) -> PipelineSummary:
    """Read captures and segments into tables in the folder `out`, which may be a URI.

    engine: a Spark session, or another `Engine`. inputs: files, folders, globs, URIs. tables: their names,
    by default all; segments that none of them needs are not read. progress: gets how many tasks are done, of
    how many. format: parquet, delta or iceberg; by default what the tables in `out` are in, and parquet for
    new ones. prune: whether the rows go of files that were below these inputs and are gone (see `pruning`).
    Raises `FileNotFoundError` for an input that isn't there, `CoordwireError` for an unknown table or format
    or a job that failed, `OSError` where `out` can't be written.
    """
    began = time.monotonic()
    options = options or Options()
    wanted = tables_named(tables)
    output = Output(out)
    files = {file.path: file for file in inputs_of(output, inputs, options)}
    check_folder(output)
    chosen_format(output, format)
    lock = Lock(output)
    lock.acquire()
    try:
        pruning = inputs if prune else None
        summary = _locked(
            as_engine(engine), output, lock, files, wanted, options, report, progress, format, pruning
        )
    finally:
        lock.release()
    summary.seconds = time.monotonic() - began
    return summary


def as_engine(engine: SparkSession | Engine) -> Engine:
    """The engine, or the one of a Spark session."""
    if isinstance(engine, Engine):
        return engine
    return ConnectEngine(engine) if is_connect(engine) else SparkEngine(engine)


def _locked(
    engine: Engine,
    output: Output,
    lock: Lock,
    files: dict[str, File],
    wanted: tuple[str, ...],
    options: Options,
    report: bool,
    progress: Progress | None,
    format: str | None,
    pruning: Sequence[str] | None,
) -> PipelineSummary:
    """The run, by whom has the folder."""
    began = time.monotonic()
    check_folder(output)  # who had it until now may have begun it
    check_tables(output, wanted)
    if report:
        check_report(output)
    chosen = chosen_format(output, format)
    if load(output) is None:
        commit(output, {}, log=TableLog(chosen, token_hex(16)))
    if chosen != PARQUET:  # a run that was killed may have left tables without its commit
        bring_up(output, wanted, lock.run)
    found = complete_units(output)
    clear_attempts(output, found)
    units = plan(files, options, wanted)
    names = {unit.name for unit in units}
    gone = set() if pruning is None else gone_units(output, found, names, files, pruning)
    write_mounts(output, mount_points(files))
    held = remove_orphans(output, found, names, files, gone | renamed_units(found, names, files))
    pruned = paths_of(found, gone)
    notices = [*lock.notices, *_foreign(output, held), *pruned_notice(pruned)]
    todo = [unit for unit in units if unit.name not in held]
    try:
        engine.run_units(todo, output.shown, options, wanted, progress, lock.run)
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
        table_files, removing = write_files(output, files, ours, lock.run)
    if chosen == PARQUET:
        commit(output, notes, files=table_files, removing=removing)
        for name, proof in removing.items():
            remove_ours(output, name, proof)
    else:
        manifest = load(output) or Manifest()
        table_files = unless_same(output, table_files, manifest.files)
        notes, log = next_log(manifest, notes, notes.keys() & (found.keys() - held.keys()), table_files)
        commit(output, notes, files=table_files, log=log)
        bring_up(output, wanted, lock.run, create=True)
    clear_attempts(output, notes)
    summary = summary_of(files, ours)
    summary.reused = len(units) - len(todo)
    summary.notices = notices
    summary.pruned = pruned
    summary.seconds = time.monotonic() - began
    if report:
        text = page(engine.table_rows(output.shown, wanted), summary)
        write_report(output, text.encode("utf-8", "replace"))
    return summary


def _end(output: Output, lock: Lock) -> Notes:
    """Let no task publish any more, and remove what those left that ended without; the complete units."""
    lock.fence()
    notes = complete_units(output)
    clear_attempts(output, notes)
    return notes


def clear_attempts(output: Output, notes: Notes) -> None:
    """Remove what attempts left that are over, but for what these units and the table of files name."""
    clear(output, {name for note in notes.values() for name in note["proofs"]} | manifest_files(output))


def inputs_of(output: Output, inputs: Sequence[str], options: Options) -> list[File]:
    """The files to read: none of the output folder, where that is inside of an input.

    Raises `FileNotFoundError` for an input that isn't there, `CoordwireError` for one inside of the output.
    """
    _check_inputs(output, inputs)
    inside = cache(lambda folder: _is_inside(output, folder))
    found = find_files(inputs, recursive=options.recursive)
    return [file for file in found if not inside(file.path.rpartition("/")[0])]


def _check_inputs(output: Output, inputs: Sequence[str]) -> None:
    for path in inputs:
        if _is_inside(output, path):
            raise CoordwireError(
                f"{printable(path)} is inside of {printable(output.shown)}, the output folder"
            )


def check(inputs: Sequence[str], out: str, format: str | None = None) -> None:
    """What `run` would refuse before it reads or writes anything. Raises `CoordwireError`, and
    `FileNotFoundError` for a local input that isn't there."""
    output = Output(out)
    _check_inputs(output, inputs)
    find_files([path for path in inputs if not is_uri(path)], recursive=False)
    check_folder(output)
    chosen_format(output, format)


def _is_inside(output: Output, path: str) -> bool:
    """Whether a path is the output folder or below it."""
    if is_uri(path) != is_uri(output.shown):
        return False
    if is_uri(path):
        return f"{canonical(path)}/".startswith(f"{canonical(output.shown)}/")
    root = os.path.realpath(output.root).rstrip("/")
    return f"{os.path.realpath(local_path(path))}/".startswith(f"{root}/")


def _foreign(output: Output, notes: Notes) -> list[str]:
    found = foreign_files(output, notes.values())
    if not found:
        return []
    first = ", ".join(printable(name) for name in found[:3])
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return [f"files in the tables' folders that this pipeline did not write were left alone: {first}{more}"]


def plan(files: dict[str, File], options: Options, tables: Sequence[str]) -> list[Unit]:
    """The units of these files, without those of segments that no wanted table needs."""
    from coordwire.spark.readers.group_stories import STORIES

    kinds: dict[str, list[File]] = {}
    for file in files.values():
        kinds.setdefault(file.kind(), []).append(file)
    segments, captures = kinds.get("segment", []), kinds.get("capture", [])
    origins = Origins(files.values())
    stories = not set(STORIES).isdisjoint(tables)
    read = segments
    if set(OF_SEGMENTS).isdisjoint(tables):  # only what is wrong in those that stories come from
        read = [file for file in segments if stories and origins.of(file).topic == OFFSETS_TOPIC]
    parts: list[Part] = [
        *segment_parts(read, options, origins),
        *capture_parts(captures, options, stories=stories),
    ]
    units = as_units(parts, files, options, tables)
    if {"groups", "offset_commits"} & set(tables):
        units += story_units(segments, files, options, tables)
    if "lag" in tables:
        units += as_units(lag_parts(segments, origins), files, options, tables)
    return units
