"""Which units of the tables are complete, and which files are the pipeline's.

Strategy: a worker leaves a note for each unit of a task that it finished (`_manifest/TASK.json`); a run that
ends takes all notes into `manifest.json` and removes them. Both have each file's size, checksum and stamp. A
`Ledger` reads the manifest once, and writes what changes in it; a run makes its own when it has the lock.
Rules: a file of a table counts only if a complete unit names it, and a unit is complete only if its files are
there. A file is removed only if the manifest, a note or an attempt wrote it down, and it is still what was
written down: one of a unit that the inputs no longer have (a file grew, the version of the rows is another),
so that no row is there twice. What is to be removed is in the manifest before it goes.
"""

from __future__ import annotations

__all__ = ["Ledger", "check_report", "write_report"]

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from coordwire.errors import CoordwireError
from coordwire.records.backend import crc32c
from coordwire.tables.columns import TABLES
from coordwire.tables.formats import PARQUET, check_format
from coordwire.tables.formats.table_commits import table_files
from coordwire.tables.pipeline.file_sharing import separated
from coordwire.tables.storage.folders import Output
from coordwire.tables.storage.manifest_file import Manifest, Notes, Proof, load, new_notes, note_files
from coordwire.tables.storage.names import MANIFEST, NOTES, REPORT, is_own_name
from coordwire.tables.storage.unit_attempt import clear, digest, remove_ours


class Ledger:
    """The manifest and the notes of a folder. has_tables: whether it has a manifest; an empty one is in the
    place of a missing one."""

    def __init__(self, output: Output) -> None:
        self.output = output
        manifest = load(output)
        self.has_tables = manifest is not None
        self.manifest = manifest or Manifest()

    def check_tables(self) -> Manifest:
        """The manifest. Raises `CoordwireError` for a folder without tables."""
        if not self.has_tables:
            raise CoordwireError(f"{self.output.place} has no tables of this pipeline")
        return self.manifest

    def check_folder(self, requested: str | None) -> str:
        """The format of the folder's tables: the one that they have, or the requested one where there are no
        tables.

        Raises `CoordwireError` unless the folder is empty or has the pipeline's manifest, and for a format
        that is unknown, whose package is missing, or that is another than the tables have.
        """
        entries = [] if self.has_tables else self.output.entries("")
        if entries and not (entries == [NOTES] and all(map(is_own_name, self.output.names(NOTES)))):
            raise CoordwireError(
                f"{self.output.place} is not empty and has no {MANIFEST} of this pipeline, which says what "
                "in it may be replaced; nothing was read or written: choose another --out, or an empty folder"
            )
        present = self.manifest.log.format if self.has_tables else None
        if present is not None and requested is not None and requested != present:
            raise CoordwireError(
                f"the tables in {self.output.place} are in the format {present}, and {requested} was asked "
                "for: leave out --format, or choose another --out"
            )
        name = present or requested or PARQUET
        check_format(name, self.output.root if self.output.local else self.output.place)
        return name

    def check_links(self, tables: Iterable[str]) -> None:
        """Raises `LinkError` where a table's folder is a link, or no folder."""
        entries = self.output.entries("")
        for table in tables:
            if table in entries:
                self.output.check(table)

    # --- what is complete ---

    def _file_sizes(self) -> dict[str, int]:
        """The sizes of all files in the tables' folders."""
        return dict(self.output.files(*TABLES))

    def complete_units(self) -> Notes:
        """The notes of all complete units, by the units' names."""
        notes = dict(self.manifest.units)
        for note in new_notes(self.output):
            notes.setdefault(note["unit"], note)
        sizes = self._file_sizes()
        return {unit: note for unit, note in notes.items() if _is_complete(note, sizes)}

    def named_files(self, table: str) -> tuple[list[str], bool]:
        """The files that a table consists of, and whether there are no others in its folder."""
        if self.manifest.log.format != PARQUET:
            return table_files(self.output, self.manifest, table), False
        units = {note["unit"]: note for note in new_notes(self.output)} | self.manifest.units
        names = {name for name in self._names_of(units) if name.startswith(f"{table}/")}
        return sorted(names), set(self.output.names(table)) == names

    def foreign_files(self, notes: Notes) -> list[str]:
        """The files in the tables' folders that are not the pipeline's; none where a table has a log, and
        others may write to it."""
        if self.manifest.log.format != PARQUET:
            return []
        named = self._names_of(notes).union(self.manifest.removing)
        return sorted(name for name in self._file_sizes() if name not in named)

    def _names_of(self, notes: Notes) -> set[str]:
        """The files of these units."""
        return {name for note in notes.values() for name in note["proofs"]}

    # --- what goes ---

    def clear_attempts(self, notes: Notes) -> None:
        """Remove what ended attempts left, except for the files of these units."""
        clear(self.output, self._names_of(notes))

    def remove_orphans(
        self,
        notes: Notes,
        planned: Collection[str],
        paths: Collection[str],
        stale: Collection[str] = (),
        run: str | None = None,
    ) -> Notes:
        """Remove the files of notes that are no longer valid; returns the valid notes.

        planned: the units of this run; paths: its files; stale: units of files that no longer exist; run: the
        run itself. Units of other files stay valid.
        """
        valid = {
            name: note
            for name, note in notes.items()
            if name in planned or not (name in stale or any(path in paths for path in note["paths"]))
        }
        # Until the end of the run: where tables have logs, and of captures, whose files may go before they
        # are read again.
        keeps_captures = self.manifest.log.format == PARQUET
        remaining = valid | {
            name: note
            for name, note in notes.items()
            if "commit" in note or (keeps_captures and note["kind"] == "capture" and name not in stale)
        }
        remaining = separated(self.output, notes, notes.keys() - remaining.keys(), run)
        valid = {name: remaining[name] for name in valid}
        doomed, dropped = self._doomed(notes, remaining)
        if doomed or dropped:  # what is removed isn't complete any more
            self.commit(remaining, removing=doomed, dropped=dropped)
        self.remove(doomed)
        return valid

    def _doomed(self, notes: Notes, valid: Notes) -> tuple[dict[str, Proof], set[str]]:
        """The files to remove, and the units that are no longer complete."""
        units, sizes = self.manifest.units, self._file_sizes()
        named, known, dropped = self._names_of(valid), dict(self.manifest.removing), set()
        for note in [*units.values(), *new_notes(self.output)]:
            unit = note["unit"]
            if unit not in notes and unit not in units and _is_complete(note, sizes):
                named.update(note["proofs"])  # it came after `notes` were read
                continue
            known.update(note["proofs"])
            if unit not in valid:
                dropped.add(unit)
        return {name: proof for name, proof in known.items() if name not in named and name in sizes}, dropped

    def remove(self, files: dict[str, Proof]) -> None:
        """Remove files that are still what was written down."""
        for name, proof in files.items():
            remove_ours(self.output, name, proof)

    # --- changes ---

    def commit(
        self,
        notes: Notes,
        *,
        removing: dict[str, Proof] | None = None,
        dropped: Collection[str] = (),
        **changes: Any,
    ) -> None:
        """Write the manifest, and remove the notes that it holds, and those of the units dropped.

        removing: what is to go; changes: what else is new in it, by the names of `Manifest`.
        """
        self.manifest = replace(self.manifest, units=notes, removing=removing or {}, **changes)
        self.output.write(MANIFEST, self.manifest.encode())
        self.has_tables = True
        going = set(removing or {})

        def is_settled(note: dict[str, Any]) -> bool:
            unit = note["unit"]
            replaced = note["proofs"].keys() - notes[unit]["proofs"] if unit in notes else {unit}
            return unit in dropped or going.issuperset(replaced)

        for name, settled in list(note_files(self.output)):
            if all(map(is_settled, settled)):
                self.output.delete(name)

    def add_mounts(self, mounts: Collection[str]) -> None:
        """Add the mount points of the inputs to those of earlier runs."""
        before = self.manifest
        if new := set(mounts).difference(before.mounts):
            self.commit(before.units, removing=before.removing, mounts=sorted(new.union(before.mounts)))


def _is_complete(note: dict[str, Any], sizes: dict[str, int]) -> bool:
    """Whether its files are there, or belong to a table whose own log says so."""
    return "commit" in note or all(sizes.get(name) == proof[0] for name, proof in note["proofs"].items())


# --- the report ---


def _seal(proof: Proof) -> bytes:
    """The first line of a report: the size and the checksum of what follows."""
    return b"<!-- coordwire pipeline: %012d %08x -->\n" % (proof[0], proof[1])


def check_report(output: Output) -> bool:
    """Whether there is a report. Raises `CoordwireError` for one that is not as a run wrote it."""
    if REPORT not in output.entries(""):
        return False
    with output.open(REPORT) as stream:
        seal = stream.read(len(_seal([0, 0])))
        if seal != _seal(digest(stream)):
            raise CoordwireError(
                f"{output.path(REPORT)} is not as this pipeline wrote it: move it away, or run with "
                "--no-report"
            )
    return True


def write_report(output: Output, data: bytes) -> None:
    """Write the report, replacing only one of the pipeline's."""
    has_report = check_report(output)
    sealed = _seal([len(data), crc32c(data)]) + data
    if has_report:
        output.write(REPORT, sealed)
    elif not output.create(REPORT, sealed):
        check_report(output)
