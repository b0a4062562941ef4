"""Inputs to tables: inventory, units of work, a job over them, manifest, report.

    from coordwire.spark import engine
    from coordwire.tables import pipeline
    summary = pipeline.run(engine(spark), ["/backup", "captures/*.pcap"], "tables")
    pipeline.run(LocalEngine(workers=4), ["/backup"], "tables")  # without Spark

Strategy: the driver lists files and plans units; an `Engine` runs them, and the workers write. Units that the
manifest knows are left out. Rules: a job that was killed continues where it stopped; what can't be read is in
`quarantine`, and no file fails the job; the manifest, the table `files` and the report are the driver's.
"""

from __future__ import annotations

__all__ = ["check", "run"]

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from secrets import token_hex

from coordwire.errors import CoordwireError
from coordwire.tables.columns import select_tables
from coordwire.tables.formats import PARQUET
from coordwire.tables.formats.table_commits import bring_up, next_log
from coordwire.tables.options import Options
from coordwire.tables.pipeline.earlier_captures import EarlierCaptures, check_read
from coordwire.tables.pipeline.engine import Engine, Progress
from coordwire.tables.pipeline.inputs import FILES, check_inputs, inputs_of, plan, write_files
from coordwire.tables.pipeline.ledger import Ledger, check_report, write_report
from coordwire.tables.pipeline.pruning import (
    gone_paths,
    gone_units,
    mount_points,
    paths_of,
    pruned_notice,
    renamed_units,
)
from coordwire.tables.pipeline.units import Job, printable
from coordwire.tables.readers.files import File, find_files
from coordwire.tables.report.page import page
from coordwire.tables.report.summary import PipelineSummary, TableRows, summary_of
from coordwire.tables.storage.folders import open_output
from coordwire.tables.storage.manifest_file import Notes, TableLog
from coordwire.tables.storage.run_lock import Lock
from coordwire.tables.stores import is_uri


def run(
    engine: Engine,
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

    engine: what runs the units: `LocalEngine`, or `coordwire.spark.engine` of a session. inputs: files,
    folders, globs, URIs. tables: their names, by default all; segments that none of them needs are not read.
    progress: gets how many tasks are done, of how many. format: parquet, delta or iceberg; by default what
    the tables in `out` are in, and parquet for new ones. prune: whether the rows go of files that were below
    these inputs and are gone (see `pruning`).
    Raises `FileNotFoundError` for an input that isn't there, `CoordwireError` for an unknown table or format
    or a job that failed, `OSError` where `out` can't be written.
    """
    began = time.monotonic()
    options = options or Options()
    names = select_tables(tables)
    output = open_output(out)
    files = {file.path: file for file in inputs_of(output, inputs, options)}
    Ledger(output).check_folder(format)
    lock = Lock(output)
    lock.acquire()
    try:
        ledger = Ledger(output)  # who had the lock until now may have begun it
        format_name = ledger.check_folder(format)
        ledger.check_links(names)
        if report:
            check_report(output)
        job = Job(output.place, options, names, lock.run)
        summary = _locked(engine, ledger, lock, files, job, progress, format_name, inputs if prune else None)
        summary.seconds = time.monotonic() - began
        if report:
            reading = TableRows(output, {name: ledger.named_files(name)[0] for name in names})
            write_report(output, page(reading, summary).encode("utf-8", "replace"))
    finally:
        lock.release()
    return summary


def _locked(
    engine: Engine, ledger: Ledger, lock: Lock, files: dict[str, File], job: Job, progress: Progress | None,
    format_name: str, pruning: Sequence[str] | None,
) -> PipelineSummary:  # fmt: skip
    """Bring the tables up to date, under the folder's lock. pruning: the inputs, if they are pruned."""
    output, options, tables = ledger.output, job.options, job.tables
    if not ledger.has_tables:
        ledger.commit({}, log=TableLog(format_name, token_hex(16)))
    if format_name != PARQUET:  # a run that was killed may have left tables without its commit
        bring_up(output, ledger.manifest, tables, lock.run)
    complete = ledger.complete_units()
    ledger.clear_attempts(complete)
    deleted = None if pruning is None else gone_paths(complete, files, pruning, ledger.manifest.mounts)
    captures = EarlierCaptures(complete, files, deleted)
    units = plan(files, options, tables, captures)
    names = {unit.name for unit in units} | captures.staying
    stale = gone_units(complete, deleted or ()) - captures.staying
    ledger.add_mounts(mount_points(files))
    renamed = renamed_units(complete, names, files) | captures.replaced
    valid = ledger.remove_orphans(complete, names, files, stale | renamed)
    pruned = sorted(captures.pruned.union(paths_of(complete, stale)))
    notices = [*lock.notices, *_foreign(ledger.foreign_files(valid)), *pruned_notice(pruned)]
    todo = [unit for unit in units if unit.name not in valid]
    try:
        engine.run_units(todo, job, progress)
    except BaseException:
        with suppress(OSError, CoordwireError):  # why the job failed matters more
            _end(ledger, lock)
        raise
    notes = _end(ledger, lock)
    missing = [unit for unit in units if unit.name not in notes]
    if missing:
        raise CoordwireError(
            f"{len(missing)} of {len(units)} units left no note that they are complete; the first is of "
            f"{printable(missing[0].part.path)}"
        )
    run_notes = {unit.name: notes[unit.name] for unit in units}
    replaced = notes.keys() & (complete.keys() - valid.keys())
    check_read(notes, replaced, captures.pruned)
    if FILES in tables:
        files_note = write_files(output, files, run_notes, notes, lock.run)
        replaced |= {unit for unit, note in notes.items() if note["kind"] == FILES} - {files_note["unit"]}
        notes[files_note["unit"]] = files_note
    if format_name == PARQUET:
        removing = {name: proof for unit in replaced for name, proof in notes[unit]["proofs"].items()}
        notes = {unit: note for unit, note in notes.items() if unit not in replaced}
        ledger.commit(notes, removing=removing, dropped=replaced)
        ledger.remove(removing)
    else:
        notes, log = next_log(ledger.manifest, notes, replaced)
        ledger.commit(notes, log=log)
        bring_up(output, ledger.manifest, tables, lock.run, create=True)
    ledger.clear_attempts(notes)
    summary = summary_of(files, run_notes)
    summary.reused = len(units) - len(todo)
    summary.notices = notices
    summary.pruned = pruned
    return summary


def _end(ledger: Ledger, lock: Lock) -> Notes:
    """Let no task publish any more, and remove what failed attempts left; returns the complete units."""
    lock.fence()
    notes = ledger.complete_units()
    ledger.clear_attempts(notes)
    return notes


def check(inputs: Sequence[str], out: str, format: str | None = None) -> None:
    """Raise what `run` would raise before it reads or writes anything: `CoordwireError`, and
    `FileNotFoundError` for a missing local input."""
    output = open_output(out)
    check_inputs(output, inputs)
    find_files([path for path in inputs if not is_uri(path)], recursive=False)
    Ledger(output).check_folder(format)


def _foreign(foreign: Sequence[str]) -> list[str]:
    """A notice on files of others; none if there are none."""
    if not foreign:
        return []
    first = ", ".join(printable(name) for name in foreign[:3])
    suffix = f" and {len(foreign) - 3} more" if len(foreign) > 3 else ""
    return [f"files in the tables' folders that this pipeline did not write were left alone: {first}{suffix}"]
