"""Inputs to tables: inventory, units of work, a job over them, manifest, report.

    from coordwire.spark import engine
    from coordwire.tables import pipeline
    summary = pipeline.run(engine(spark), ["/backup", "captures/*.pcap"], "tables")
    pipeline.run(LocalEngine(workers=4), ["/backup"], "tables")  # without Spark

Strategy: the driver lists files and plans units; an `Engine` runs them, and the workers write. Units that the
manifest knows are left out. Rules: a job that was killed continues where it stopped; what can't be read is in
`quarantine`, and no file fails the job; the manifest, the table `files` and the report are the driver's.

Inputs: no file of the output folder is read, also where an input contains that folder; segments that none of
the chosen tables needs are left out. The table of files has what each input file is, and how much of it is in
rows, in quarantine, or neither. The driver writes it whole, as one more unit, after the others are complete;
it replaces the one before it.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from secrets import token_hex
from typing import Any

from coordwire.capture.jsonlines import text
from coordwire.errors import CoordwireError
from coordwire.tables.columns import ROWS_FORMAT, TABLES, arrow_schema, select_tables
from coordwire.tables.formats import PARQUET
from coordwire.tables.formats.table_commits import bring_up, next_log, table_files
from coordwire.tables.options import Options
from coordwire.tables.pipeline.earlier_captures import EarlierCaptures, check_read
from coordwire.tables.pipeline.engine import Engine, Progress
from coordwire.tables.pipeline.file_sharing import separated
from coordwire.tables.pipeline.ledger import Ledger, check_report, write_report
from coordwire.tables.pipeline.pruning import (
    gone_paths,
    gone_units,
    mount_points,
    paths_of,
    pruned_notice,
    renamed_units,
)
from coordwire.tables.pipeline.units import Job, Unit, as_units, printable, row_facts, story_units
from coordwire.tables.readers.disk_lag import OFFSETS_TOPIC, lag_parts
from coordwire.tables.readers.file_origins import FileOrigin, Origins
from coordwire.tables.readers.files import File, find_files
from coordwire.tables.readers.splits import CapturedFile, Part, capture_parts, segment_parts
from coordwire.tables.report.page import page
from coordwire.tables.report.summary import PipelineSummary, TableRows, summary_of
from coordwire.tables.storage.checkpoints import remove_checkpoints
from coordwire.tables.storage.folders import Output, open_output
from coordwire.tables.storage.manifest_file import LAYOUT, Notes, TableLog
from coordwire.tables.storage.parquet_files import UnitFiles
from coordwire.tables.storage.run_lock import Lock
from coordwire.tables.storage.unit_attempt import Attempt
from coordwire.tables.stores import canonical, is_uri, local_path

__all__ = ["FILES", "check", "check_inputs", "inputs_of", "plan", "run", "write_files"]


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
    captures = EarlierCaptures(
        complete, files, deleted, row_facts(options, tables), join_rotated=options.join_rotated
    )
    units = plan(files, options, tables, captures)
    names = {unit.name for unit in units} | captures.staying
    stale = gone_units(complete, deleted or ()) - captures.staying
    ledger.add_mounts(mount_points(files))
    renamed = renamed_units(complete, names, files) | captures.replaced
    valid = ledger.remove_orphans(complete, names, files, stale | renamed, lock.run)
    pruned = sorted(captures.pruned.union(paths_of(complete, stale)))
    notices = [
        *lock.notices,
        *_foreign(ledger.foreign_files(complete | ledger.manifest.units)),
        *pruned_notice(pruned),
    ]
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
        known = {name: proof for unit in replaced for name, proof in notes[unit]["proofs"].items()}
        notes = separated(output, notes, replaced, lock.run)
        named = {name for note in notes.values() for name in note["proofs"]}
        removing = {name: proof for name, proof in known.items() if name not in named}
        ledger.commit(notes, removing=removing, dropped=replaced)
        ledger.remove(removing)
    else:
        present = partial(table_files, output, ledger.manifest)
        staying = separated(output, notes, replaced, lock.run, present)
        notes, log = next_log(ledger.manifest, notes, replaced, staying)
        ledger.commit(notes, log=log)
        bring_up(output, ledger.manifest, tables, lock.run, create=True)
    ledger.clear_attempts(notes)
    gone_on = {note.get("after") for note in notes.values() if note.get("stage") == "settled"}
    remove_checkpoints(output, {name for name, note in notes.items() if note.get("saved")} - gone_on)
    notices += [notice for unit in todo for notice in notes[unit.name].get("notices", ())]
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


# --- inputs ---


OF_SEGMENTS = ("files", "batches", "records", "quarantine")
"""The tables that segments of all topics have rows in."""


def inputs_of(output: Output, inputs: Sequence[str], options: Options) -> list[File]:
    """The files to read, without those of the output folder, which may be inside of an input.

    Raises `FileNotFoundError` for an input that isn't there, `CoordwireError` for one inside of the output.
    """
    check_inputs(output, inputs)
    is_output = cache(lambda folder: _is_inside(output, folder))
    files = find_files(inputs, recursive=options.recursive)
    return [file for file in files if not is_output(file.path.rpartition("/")[0])]


def check_inputs(output: Output, inputs: Sequence[str]) -> None:
    """Raises `CoordwireError` for an input inside of the output folder."""
    for path in inputs:
        if _is_inside(output, path):
            raise CoordwireError(
                f"{printable(path)} is inside of {printable(output.place)}, the output folder"
            )


def _is_inside(output: Output, path: str) -> bool:
    """Whether a path is the output folder or below it."""
    if is_uri(path) != is_uri(output.place):
        return False
    if is_uri(path):
        return f"{canonical(path)}/".startswith(f"{canonical(output.place)}/")
    root = os.path.realpath(output.root).rstrip("/")
    return f"{os.path.realpath(local_path(path))}/".startswith(f"{root}/")


def plan(
    files: dict[str, File], options: Options, tables: Sequence[str], earlier: EarlierCaptures | None = None
) -> list[Unit]:
    """The units of these files, without those of segments that none of the tables needs.

    earlier: the captures of which units are complete; by default none.
    """
    from coordwire.tables.readers.group_rows import STORIES

    kinds: dict[str, list[File]] = {}
    for file in files.values():
        kinds.setdefault(file.kind(), []).append(file)
    earlier = earlier or EarlierCaptures({}, files)
    segments, captures = kinds.get("segment", []), kinds.get("capture", [])
    origins = Origins(files.values())
    stories = not set(STORIES).isdisjoint(tables)
    read = segments
    if set(OF_SEGMENTS).isdisjoint(tables):  # only what is wrong in those that stories come from
        read = [file for file in segments if stories and origins.of(file).topic == OFFSETS_TOPIC]
    parts: list[Part] = [
        *segment_parts(read, options, origins),
        *capture_parts(
            captures, options, stories=stories or "traffic" in tables, first=earlier.first, runs=earlier.runs
        ),
    ]
    units = [*earlier.units, *as_units(parts, files, options, tables)]
    if {"groups", "offset_commits"} & set(tables):
        units += story_units(segments, files, options, tables)
    if "lag" in tables:
        units += as_units(lag_parts(segments, origins), files, options, tables)
    return units


# --- the table of files ---


FILES = "files"
"""The table of files, and the kind of unit that it is."""


def write_files(
    output: Output, files: dict[str, File], notes: Notes, complete: Notes, run: str
) -> dict[str, Any]:
    """The note of the table of files, which is written unless there is a note of the same rows.

    notes: of the units of these files; complete: of all complete units.
    """
    import pyarrow as pa

    rows = _file_rows(files, notes)
    facts = json.dumps([LAYOUT, ROWS_FORMAT, rows])
    unit = sha256(facts.encode()).hexdigest()[:24]
    if unit in complete:
        return complete[unit]
    writing = UnitFiles(Attempt(output, unit, run), unit)
    try:
        for batch in pa.Table.from_pylist(rows, schema=arrow_schema(TABLES[FILES])).to_batches():
            writing.add(FILES, batch)
        writing.close()
        proofs = writing.attempt.place_files()
    except BaseException:
        writing.discard()
        raise
    counts = dict.fromkeys(("units_rows", "read_bytes", "quarantined_bytes", "bad_ranges", "refused"), 0)
    note = counts | {"unit": unit, "kind": FILES, "paths": [FILES], "rows": dict(writing.rows)}
    return note | {"apis": [], "error_codes": [], "files": sorted(proofs), "proofs": proofs}


def _file_rows(files: dict[str, File], notes: Notes) -> list[dict[str, Any]]:
    numbers_of: dict[str, Counter[str]] = {}
    joined: dict[str, str] = {}
    first_of = _first_files(files, notes)
    for note in notes.values():
        present = [path for path in note["paths"] if path in files]
        if note["kind"] in ("story", "lag") or not (present or note.get("chain") in first_of):
            continue
        if note.get("chain") in first_of:
            present = list(dict.fromkeys([first_of[note["chain"]], *present]))
        first, *further = present  # of a capture that has lost files, of those that are there
        numbers = numbers_of.setdefault(first, Counter())
        numbers.update({key: note[key] for key in ("units_rows", "read_bytes", "quarantined_bytes")})
        captured = [CapturedFile(*file) for file in note.get("captured", ())]
        numbers["others_bytes"] = sum(file.start for file in captured if file.path in present)
        joined.update((path, first) for path in further)
    origins = Origins(files.values())
    return [_file_row(file, origins.of(file), numbers_of, joined, files) for file in files.values()]


def _first_files(files: dict[str, File], notes: Notes) -> dict[str, str]:
    """Of each chain the first of its files that are there, by the chain's first file."""
    present = [
        (time_ns, path, note["chain"])
        for note in notes.values()
        for path, time_ns, *_ in (note["captured"] if note.get("chain") else ())
        if path in files
    ]
    return {chain: path for _, path, chain in sorted(present, reverse=True)}


def _file_row(
    file: File, origin: FileOrigin, numbers_of: dict[str, Counter[str]], joined: dict[str, str],
    files: dict[str, File],
) -> dict[str, Any]:  # fmt: skip
    kind = file.kind()
    if kind not in ("segment", "index"):
        origin = origin._replace(broker=None, cluster_id=None)
    row: dict[str, Any] = {
        "input_file": text(file.path), "kind": kind,
        "topic": origin.topic, "partition": origin.partition, "broker_id": origin.broker,
        "cluster_id": origin.cluster_id, "file_state": origin.state, "size": file.size,
        "modified": file.modified // 1000 if file.modified else None, "other_bytes": file.size,
    }  # fmt: skip
    numbers = numbers_of.get(file.path)
    if numbers is None:
        return row | {"joined_to": joined[file.path], "other_bytes": 0} if file.path in joined else row
    size = file.size + sum(files[path].size for path, first in joined.items() if first == file.path)
    read, quarantined = numbers["read_bytes"], numbers["quarantined_bytes"]
    return row | {
        "rows": numbers["units_rows"], "read_bytes": read, "quarantined_bytes": quarantined,
        "other_bytes": max(size - read - quarantined - numbers["others_bytes"], 0),
    }  # fmt: skip
