"""Which units of the tables are complete, and which files are the pipeline's.

Strategy: a worker leaves a note for each unit of a task that it finished (`_manifest/TASK.json`); a run that
ends takes all notes into `manifest.json` and removes them. Both have each file's size, checksum and stamp.
Rules: a file of a table counts only if a complete unit names it, and a unit is complete only if its files are
there. A file is removed only if the manifest, a note or an attempt wrote it down, and it is still what was
written down: one of a unit that the inputs no longer have (a file grew, another version reads it), so that no
row is there twice. What is to be removed is in the manifest before it goes.
"""

from __future__ import annotations

__all__ = [
    "MANIFEST",
    "Notes",
    "check_folder",
    "chosen_format",
    "clear_attempts",
    "commit",
    "complete_units",
    "foreign_files",
    "named_files",
    "remove_orphans",
    "table_format",
    "write_mounts",
]  # fmt: skip

import json
from collections.abc import Collection, Iterable
from dataclasses import asdict
from typing import Any

from crc32c import crc32c

from coordwire.errors import CoordwireError
from coordwire.tables.columns import TABLES
from coordwire.tables.formats import PARQUET, check_format
from coordwire.tables.formats.table_commits import table_files
from coordwire.tables.storage.folders import Output
from coordwire.tables.storage.manifest_file import (
    FORMAT,
    MADE_BY,
    Manifest,
    Notes,
    Proof,
    TableLog,
    load,
    new_notes,
    note_files,
)
from coordwire.tables.storage.names import MANIFEST, NOTES, REPORT, REPORTS, is_own_name
from coordwire.tables.storage.unit_attempt import clear, is_ours, remove_ours


def check_folder(output: Output) -> None:
    """Raises `CoordwireError` unless the folder is empty or has the pipeline's manifest."""
    entries = output.entries("")
    if MANIFEST in entries:
        load(output)
    elif entries and not (entries == [NOTES] and all(map(is_own_name, output.names(NOTES)))):
        raise CoordwireError(
            f"{output.place} is not empty and has no {MANIFEST} of this pipeline, which says what in it may "
            "be replaced; nothing was read or written: choose another --out, or an empty folder"
        )


def chosen_format(output: Output, requested: str | None) -> str:
    """The format of the folder's tables: the one that they have, or the requested one where there are no
    tables.

    Raises `CoordwireError` for an unknown one, one whose package is missing, and another than they have.
    """
    manifest = load(output)
    present = None if manifest is None else manifest.log.format
    if present is not None and requested is not None and requested != present:
        raise CoordwireError(
            f"the tables in {output.place} are in the format {present}, and {requested} was asked for: leave "
            "out --format, or choose another --out"
        )
    name = present or requested or PARQUET
    check_format(name, output.place)
    return name


def table_format(output: Output) -> str:
    """The format of the folder's tables."""
    return (load(output) or Manifest()).log.format


def check_tables(output: Output, tables: Iterable[str]) -> None:
    """Raises `LinkError` where a table's folder is a link, or no folder."""
    entries = output.entries("")
    for table in tables:
        if table in entries:
            output.check(table)


# --- the report ---


def _report_proofs(output: Output) -> list[Proof]:
    data = output.read(REPORTS)
    try:
        proofs = json.loads(data or b"[]")
        return [proof for proof in proofs if len(proof) >= 2 and all(type(n) is int for n in proof)]
    except (ValueError, TypeError):
        return []


def check_report(output: Output) -> None:
    """Raises `CoordwireError` if there is a report that no run wrote."""
    if REPORT in output.entries("") and not any(
        is_ours(output, REPORT, proof) for proof in _report_proofs(output)
    ):
        raise CoordwireError(
            f"{output.path(REPORT)} is not as this pipeline wrote it: move it away, or run with --no-report"
        )


def write_report(output: Output, data: bytes) -> None:
    """Write the report, replacing only one of the pipeline's."""
    check_report(output)
    known = [proof for proof in _report_proofs(output) if is_ours(output, REPORT, proof)]
    output.write(REPORTS, json.dumps([*known[-1:], [len(data), crc32c(data)]]).encode())
    if known:
        output.write(REPORT, data)
    elif not output.create(REPORT, data):
        check_report(output)


# --- what is complete ---


def _file_sizes(output: Output) -> dict[str, int]:
    """The sizes of all files in the tables' folders."""
    return dict(output.files(*TABLES))


def _complete(note: dict[str, Any], sizes: dict[str, int]) -> bool:
    """Whether its files are there, or belong to a table whose own log says so."""
    return "commit" in note or all(sizes.get(name) == proof[0] for name, proof in note["proofs"].items())


def complete_units(output: Output) -> Notes:
    """The notes of all complete units, by the units' names."""
    notes = dict((load(output) or Manifest()).units)
    for note in new_notes(output):
        notes.setdefault(note["unit"], note)
    sizes = _file_sizes(output)
    return {unit: note for unit, note in notes.items() if _complete(note, sizes)}


def manifest_files(output: Output) -> set[str]:
    """The files that the table of files consists of."""
    return set((load(output) or Manifest()).files)


def named_files(output: Output, table: str) -> tuple[list[str], bool]:
    """The files that a table consists of, and whether there are no others in its folder."""
    manifest = load(output) or Manifest()
    if manifest.log.format != PARQUET:
        return table_files(output, manifest, table), False
    units = {note["unit"]: note for note in new_notes(output)} | manifest.units
    names = {name for note in units.values() for name in note["proofs"]} | set(manifest.files)
    names = {name for name in names if name.startswith(f"{table}/")}
    return sorted(names), set(output.names(table)) == names


def remove_orphans(
    output: Output,
    notes: Notes,
    planned: Collection[str],
    paths: Collection[str],
    stale: Collection[str] = (),
) -> Notes:
    """Remove the files of notes that are no longer valid; returns the valid notes.

    planned: the units of this run; paths: its files; stale: units of files that no longer exist. Units of
    other files stay valid.
    """
    valid = {
        name: note
        for name, note in notes.items()
        if name in planned or not (name in stale or any(path in paths for path in note["paths"]))
    }
    remaining = valid | {
        name: note for name, note in notes.items() if "commit" in note
    }  # until the next commit
    doomed, dropped = _doomed(output, notes, remaining)
    if doomed or dropped:  # what is removed isn't complete any more
        commit(output, remaining, removing=doomed, dropped=dropped)
    for name, proof in doomed.items():
        remove_ours(output, name, proof)
    return valid


def _doomed(output: Output, notes: Notes, valid: Notes) -> tuple[dict[str, Proof], set[str]]:
    """The files to remove, and the units that are no longer complete."""
    manifest, sizes = load(output) or Manifest(), _file_sizes(output)
    named = {name for note in valid.values() for name in note["proofs"]} | set(manifest.files)
    known = dict(manifest.removing)
    dropped = set()
    for note in [*manifest.units.values(), *new_notes(output)]:
        unit = note["unit"]
        if unit not in notes and unit not in manifest.units and _complete(note, sizes):
            named.update(note["proofs"])  # it came after `notes` were read
            continue
        known.update(note["proofs"])
        if unit not in valid:
            dropped.add(unit)
    return {name: proof for name, proof in known.items() if name not in named and name in sizes}, dropped


def commit(
    output: Output,
    notes: Notes,
    *,
    files: dict[str, Proof] | None = None,
    removing: dict[str, Proof] | None = None,
    dropped: Collection[str] = (),
    log: TableLog | None = None,
    mounts: Iterable[str] | None = None,
) -> None:
    """Write the manifest, and remove the notes that it holds, and those of the units dropped.

    files: the table of files, if it is new; removing: what is to go; log: of the tables, if it is new;
    mounts: see `Manifest`, if they are new.
    """
    before = load(output) or Manifest()
    files = before.files if files is None else files
    log = before.log if log is None else log
    form = {
        "format": FORMAT, "made_by": MADE_BY, "units": notes, "files": files, "removing": removing or {},
        "mounts": before.mounts if mounts is None else sorted(mounts),
        **({} if log.format == PARQUET else {"log": asdict(log)}),
    }  # fmt: skip
    output.write(MANIFEST, json.dumps(form, indent=0, sort_keys=True).encode())
    going = set(removing or {})

    def is_settled(note: dict[str, Any]) -> bool:
        unit = note["unit"]
        is_same = unit in notes and notes[unit]["proofs"] == note["proofs"]
        return is_same or unit in dropped or (unit in notes and going.issuperset(note["proofs"]))

    for name, settled in list(note_files(output)):
        if all(map(is_settled, settled)):
            output.delete(name)


def write_mounts(output: Output, mounts: Collection[str]) -> None:
    """Add the mount points of the inputs to those of earlier runs."""
    before = load(output) or Manifest()
    if not set(before.mounts).issuperset(mounts):
        commit(output, before.units, removing=before.removing, mounts={*before.mounts, *mounts})


def foreign_files(output: Output, notes: Iterable[dict[str, Any]]) -> list[str]:
    """The files in the tables' folders that are not the pipeline's; none where a table has a log, and others
    may write to it."""
    manifest = load(output) or Manifest()
    if manifest.log.format != PARQUET:
        return []
    named = {name for note in notes for name in note["proofs"]} | set(manifest.files) | set(manifest.removing)
    return sorted(name for name in _file_sizes(output) if name not in named)


def clear_attempts(output: Output, notes: Notes) -> None:
    """Remove what ended attempts left, except for the files of these units and of the table of files."""
    clear(output, {name for note in notes.values() for name in note["proofs"]} | manifest_files(output))
