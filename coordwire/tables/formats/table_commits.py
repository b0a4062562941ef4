"""The tables of a folder in Delta or Iceberg, brought up to what its manifest says.

Strategy: a run ends with a number. The manifest has it first, and with it which units and files are new and
which files go; then each table gets one transaction with that number. A table says which number it has last,
so that the next run after a kill in between commits what is missing and nothing twice. After a compaction a
table no longer has the files that the manifest names: then the files that the manifest doesn't name are read,
and each that has rows of the inputs that a commit replaces is replaced by one without them. Rules: what a
table's log says counts, not which files are there, since Delta and Iceberg may compact and clean them; a
table without anything new or dropped gets no commit; where a unit that stays has rows of a path that is
replaced, the commit is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import Any

from coordwire.capture.jsonlines import text
from coordwire.errors import CoordwireError
from coordwire.tables.columns import TABLES, arrow_schema
from coordwire.tables.formats import Conflict, VersionedTable, footers, open_table
from coordwire.tables.readers.files import is_uri
from coordwire.tables.storage.folders import Output
from coordwire.tables.storage.manifest_file import Manifest, Notes, TableLog
from coordwire.tables.storage.parquet_files import UnitFiles, read_rows
from coordwire.tables.storage.unit_attempt import Attempt

__all__ = ["bring_up", "next_log", "table_files"]

TRIES = 5
"""How often a commit is tried that conflicts with others', as of a compaction."""


def next_log(
    manifest: Manifest, notes: Notes, dropped: Collection[str], staying: Notes
) -> tuple[Notes, TableLog]:
    """The notes and the log with which a run ends: one number more, if anything is new or goes.

    notes: of all units that are complete; dropped: those of them that others replace; staying: the others,
    without the files that they shared with these.
    """
    number = manifest.log.commit + 1
    retired = list(dict.fromkeys(name for unit in dropped for name in notes[unit]["proofs"]))
    remaining = {unit: {"commit": number} | note for unit, note in staying.items()}
    added = {name for unit, note in staying.items() for name in note["proofs"].keys() - notes[unit]["proofs"]}
    if not retired and all(note["commit"] < number for note in remaining.values()):
        return remaining, manifest.log
    before = manifest.log
    replaced: dict[str, list[str]] = {}
    for unit in dropped:
        for name in {name.partition("/")[0] for name in notes[unit]["proofs"]}:
            replaced.setdefault(name, []).extend(_row_paths(notes[unit]))
    return remaining, TableLog(before.format, before.table_id, number, retired, replaced, sorted(added))


def bring_up(
    output: Output, manifest: Manifest, names: Collection[str], run: str, *, create: bool = False
) -> None:
    """Commit what the manifest has to the tables that don't have it.

    names: tables that are to be there, even without rows, if `create`; the others are if they have files.
    Raises `CoordwireError` where a table has commits that the manifest doesn't know, and after `TRIES`.
    """
    for name in TABLES:
        if name not in names and not any(manifest.changes(name, 0)):
            continue
        table = open_table(manifest.log.format, output, name, manifest.log.table_id)
        for attempt in range(TRIES):
            try:
                _commit(output, name, table, manifest, run, create)
                break
            except Conflict as error:
                if attempt == TRIES - 1:
                    raise CoordwireError(f"{error.reason}; a rerun goes on where it was") from None


def _commit(
    output: Output, name: str, table: VersionedTable, manifest: Manifest, run: str, create: bool
) -> None:
    last = table.committed()
    newest = manifest.log.commit
    if last is not None and last > newest:
        raise CoordwireError(
            f"{output.path(name)} has commit {last} of this pipeline, and the manifest knows {newest}: "
            "the manifest is an older copy; choose another --out"
        )
    adds, removes = manifest.changes(name, last or 0)
    if last is None:
        removes.clear()
    elif removes:
        present = table.files()
        if removes.difference(present):
            rewritten, changed = without_replaced(output, manifest, name, present, run)
            adds, removes = adds | rewritten, removes.intersection(present) | changed
    if adds or removes or (last is None and create):
        table.commit(newest, adds, removes)


def table_files(output: Output, manifest: Manifest, table: str) -> list[str]:
    """The files that a table consists of at present, by its own log."""
    opened = open_table(manifest.log.format, output, table, manifest.log.table_id)
    return [] if opened.committed() is None else opened.files()


# --- files of a compaction ---


UNIT = sha256(b"rows that stay of compacted files").hexdigest()[:24]
"""What these files have in the place of a unit's name."""

_INPUT = "input_file"
"""The column that names a row's input."""


def without_replaced(
    output: Output, manifest: Manifest, table: str, files: Sequence[str], run: str
) -> tuple[dict[str, int], set[str]]:
    """The files to add, with their sizes, and those to remove.

    files: those of the table; run: the current one. Raises `CoordwireError` where rows can't be
    separated.
    """
    named = {name for note in manifest.units.values() for name in note["proofs"]}
    named.update(manifest.log.retired)
    unnamed = [name for name in files if name not in named]
    for name in filter(is_uri, unnamed):
        raise CoordwireError(f"{output.path(table)} has files outside of its folder, as {name}")
    schema, stay = arrow_schema(TABLES[table]), _condition(_replaced(output, manifest, table))
    writing = UnitFiles(Attempt(output, UNIT, run), UNIT)
    removes = set()
    try:
        for name, footer in footers(output, unnamed):
            staying = list(read_rows(output, name, schema, stay))
            if sum(batch.num_rows for batch in staying) < footer.num_rows:
                removes.add(name)
                for batch in staying:
                    writing.add(table, batch)
        writing.close()
        proofs = writing.attempt.place_files() if writing.names else {}
    finally:
        writing.discard()  # what is placed stays: the table's log is about to name it, or it is cleaned by it
    return {name: proof[0] for name, proof in proofs.items()}, removes


def _replaced(output: Output, manifest: Manifest, table: str) -> set[str] | None:
    """The inputs whose rows are removed; None for all."""
    if table == "files":
        return None
    paths = set(manifest.log.replaced.get(table, ()))
    for note in manifest.units.values():
        if note.get("commit", 0) < manifest.log.commit and any(
            name.startswith(f"{table}/") for name in note["proofs"]
        ):
            shared = sorted(paths.intersection(_row_paths(note)))
            if shared:
                raise CoordwireError(
                    f"{output.path(table)} was compacted, and only some of its rows of {text(shared[0])} are "
                    "to be replaced: choose another --out"
                )
    return {text(path) for path in paths}


def _row_paths(note: dict[str, Any]) -> list[str]:
    """The inputs that a unit's rows are of: of a rotated capture the first file."""
    paths: list[str] = note["paths"]
    return paths[:1] if note["kind"] == "capture" else paths


def _condition(paths: set[str] | None) -> Any:
    """What is true of rows that stay."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    if paths is None:
        return ds.scalar(False)
    return ~ds.field(_INPUT).isin(pa.array(sorted(paths), pa.string()))
