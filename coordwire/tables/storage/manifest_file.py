"""The notes of complete units and the manifest, as they are read: untrusted.

Strategy: a note has the result of a unit, and what identifies its files: size, checksum and stamp. The
manifest holds notes, and what is to be removed. Rules: anyone who can write into the
folder can write a manifest, so that each value is checked, and names that a pipeline never writes are
refused.
"""

from __future__ import annotations

__all__ = [
    "FORMAT", "LAYOUT", "Manifest", "Notes", "Proof", "TableLog", "as_proofs", "load", "new_notes",
    "note_files", "read_notes",
]  # fmt: skip

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from coordwire.errors import CoordwireError
from coordwire.tables.storage.names import MANIFEST, NOTES, is_data_name, is_note_name

if TYPE_CHECKING:
    from coordwire.tables.storage.folders import Output

FORMAT = 9
"""The version of the manifest; since 9 units share files. One of version 8 is read, and goes on as 9."""

LAYOUT = 8
"""The version of the tables' layout, which units' names depend on."""

MADE_BY = "coordwire pipeline"

Proof = list[int]
"""What identifies a file: its size, its CRC-32C, and the stamp that it had when it was put into its place
(see `folders.Stat`; left out where there was none yet)."""

Notes = dict[str, dict[str, Any]]

_Form = type | list["_Form"] | tuple["_Form", ...] | dict[str, "_Form"]

_NOTE: dict[str, _Form] = {
    "unit": str, "kind": str, "paths": [str], "rows": {"": int}, "apis": [(str, bool, int)],
    "error_codes": [(str, int, int)], "commit": int, "units_rows": int, "read_bytes": int,
    "quarantined_bytes": int, "bad_ranges": int, "refused": int,
    "captured": [(str, int, str, int, int, int)], "share": (int, int),
    "stage": str, "after": str, "facts": str, "chain": str, "saved": bool, "notices": [str],
    "ranges": {"": [(int, int)]},
}  # fmt: skip
_LATER: dict[str, Any] = {
    "error_codes": [], "commit": 0, "captured": [], "share": [0, 1],
    "stage": "", "after": "", "facts": "", "chain": "", "saved": False, "notices": [],
    "ranges": {},
}  # fmt: skip
"""What a note may lack."""

_LOG: dict[str, _Form] = {
    "format": str, "table_id": str, "commit": int, "retired": [str], "replaced": {"": [str]},
    "added": [str],
}  # fmt: skip
"""What is in the JSON of a note and of the tables' logs (see `_fits`)."""


@dataclass(slots=True)
class TableLog:
    """What the tables' own logs are to have, in Delta and Iceberg; in Parquet it has the format only.

    table_id: what identifies the folder's commits; commit: the number of the last one, which the tables
    have or are about to get; retired: the files that go with that commit; replaced: the inputs whose rows
    they have, by table; added: the files that come with that commit in the place of others, of units of
    earlier ones. A unit's note has the number of its commit, once it belongs to one.
    """

    format: str = "parquet"
    table_id: str = ""
    commit: int = 0
    retired: list[str] = field(default_factory=list)
    replaced: dict[str, list[str]] = field(default_factory=dict)
    added: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Manifest:
    """units: the notes of complete units; removing: files that are to go; mounts: the mount points that
    inputs were below when they were read."""

    units: Notes = field(default_factory=dict)
    removing: dict[str, Proof] = field(default_factory=dict)
    mounts: list[str] = field(default_factory=list)
    log: TableLog = field(default_factory=TableLog)

    def encode(self) -> bytes:
        """As `load` reads it."""
        units = {
            unit: {key: value for key, value in note.items() if key != "files"}  # `proofs` has them
            for unit, note in self.units.items()
        }
        form = {
            "format": FORMAT, "made_by": MADE_BY, "units": units, "removing": self.removing,
            "mounts": self.mounts,
            **({} if self.log.format == TableLog().format else {"log": asdict(self.log)}),
        }  # fmt: skip
        return json.dumps(form, indent=0, sort_keys=True).encode()

    def changes(self, table: str, since: int) -> tuple[dict[str, int], set[str]]:
        """The files that commits after that one add to a table, with their sizes, and those they remove."""
        start = f"{table}/"
        is_behind = self.log.commit > since
        added = {name for name in self.log.added if is_behind and name.startswith(start)}
        adds = {
            name: proof[0]
            for note in self.units.values()
            for name, proof in note["proofs"].items()
            if name in added or (note.get("commit", 0) > since and name.startswith(start))
        }
        retired = self.log.retired if is_behind else []
        return adds, {name for name in retired if name.startswith(start)}


def as_proofs(form: object) -> dict[str, Proof]:
    """Files and their proofs. Raises `CoordwireError` for what a pipeline never writes."""
    if not isinstance(form, dict):
        raise CoordwireError("expected an object of files")
    for name, proof in form.items():
        if not is_data_name(name):
            raise CoordwireError(f"it names {name!r}, which is not a file of the pipeline's")
        if not isinstance(proof, list) or len(proof) < 2 or not all(type(number) is int for number in proof):
            raise CoordwireError(f"expected the size and checksum of {name}, got {str(proof)[:80]}")
    return form


def _fits(form: object, shape: _Form) -> bool:
    """Whether a JSON value has just this type; as a list this shape in each item, as a tuple these shapes one
    after the other; as an object this one shape in each value."""
    if isinstance(shape, type):
        return type(form) is shape
    if isinstance(shape, dict):
        return isinstance(form, dict) and all(_fits(value, shape[""]) for value in form.values())
    if not isinstance(form, list) or (isinstance(shape, tuple) and len(form) != len(shape)):
        return False
    return all(map(_fits, form, shape if isinstance(shape, tuple) else shape * len(form)))


def _with_files(note: Any) -> Any:
    """A note of the manifest with its files, which it is written without."""
    if isinstance(note, dict) and isinstance(note.get("proofs"), dict):
        return {"files": sorted(note["proofs"])} | note
    return note


def _as_note(unit: object, note: object) -> dict[str, Any]:
    if not isinstance(note, dict) or note.get("unit") != unit or not isinstance(unit, str):
        raise CoordwireError(f"expected the note of unit {unit!r}")
    proofs, form = (
        as_proofs(note.get("proofs")),
        _LATER | note,
    )
    is_valid = (
        all(_fits(form.get(name), shape) for name, shape in _NOTE.items())
        and note.get("files") == sorted(proofs) and bool(note["paths"])
        and note["kind"] in ("capture", "segment", "story", "lag", "files")
        and isinstance(note.get("segment"), list | None)
        and proofs.keys() >= form["ranges"].keys()
    )  # fmt: skip
    if not is_valid:
        raise CoordwireError(f"the note of unit {unit} is not as the pipeline writes it")
    return note


def _as_log(form: object) -> TableLog:
    """The log of tables. Raises `CoordwireError` for what a pipeline never writes."""
    if form is None:
        return TableLog()
    if isinstance(form, dict):
        form = {"added": []} | form
    if not isinstance(form, dict) or set(form) != set(_LOG):
        raise CoordwireError(f"expected the log of tables, got {str(form)[:80]}")
    if not (
        all(_fits(form[name], shape) for name, shape in _LOG.items())
        and re.fullmatch("[0-9a-f]{32}", form["table_id"]) and all(map(is_data_name, form["retired"]))
    ):  # fmt: skip
        raise CoordwireError("the log of tables is not as the pipeline writes it")
    return TableLog(**form)


def load(output: Output) -> Manifest | None:
    """The manifest; None if there is none. Raises `CoordwireError` for what the pipeline did not write."""
    data = output.read(MANIFEST)
    if data is None:
        return None
    path = output.path(MANIFEST)
    try:
        form = json.loads(data)
    except (ValueError, RecursionError):
        form = None
    if not isinstance(form, dict) or not isinstance(form.get("units"), dict) or "format" not in form:
        raise CoordwireError(f"{path} is not a manifest of this pipeline: choose another --out")
    if form["format"] not in (LAYOUT, FORMAT):
        raise CoordwireError(
            f"{path} is of format {str(form['format'])[:20]}, expected {FORMAT}: its tables are of "
            "another version of coordwire; choose another --out"
        )
    try:
        if form.get("made_by") != MADE_BY:
            raise CoordwireError(f"expected made_by to be {MADE_BY!r}")
        units = {unit: _as_note(unit, _with_files(note)) for unit, note in form["units"].items()}
        mounts: Any = form.get("mounts")
        if not _fits(mounts, [str]):
            raise CoordwireError("expected mounts to be a list of paths")
        removing, log = as_proofs(form.get("removing")), _as_log(form.get("log"))
        if log.format == TableLog().format:
            _without_commits(units.values())
        return Manifest(units, removing, mounts, log)
    except CoordwireError as error:
        raise CoordwireError(
            f"{path} is not as this pipeline writes it: {error.reason}; nothing was changed; "
            "choose another --out"
        ) from None


def read_notes(output: Output, name: str) -> list[dict[str, Any]] | None:
    """The notes of a task's units; None if they are not there. Raises `CoordwireError` for what the pipeline
    did not write."""
    data = output.read(name)
    if data is None:
        return None
    try:
        notes = json.loads(data)
        if not isinstance(notes, list) or not notes:
            raise CoordwireError("expected a list of notes")
        for note in notes:
            _as_note(note.get("unit") if isinstance(note, dict) else "", note)
    except (ValueError, RecursionError, CoordwireError) as error:
        raise CoordwireError(
            f"{output.path(name)} has no notes of this pipeline ({error}): remove it, and its units are "
            "read again"
        ) from None
    _without_commits(notes)
    return notes


def _without_commits(notes: Iterable[dict[str, Any]]) -> None:
    """Only the manifest of tables with logs says which commit a unit belongs to."""
    for note in notes:
        note.pop("commit", None)


def note_files(output: Output) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The notes that are not in the manifest yet, by their files' names."""
    for entry in sorted(output.entries(NOTES)):
        name = f"{NOTES}/{entry}"
        if is_note_name(name) and (notes := read_notes(output, name)) is not None:
            yield name, notes


def new_notes(output: Output) -> Iterator[dict[str, Any]]:
    """The same notes, one after the other."""
    for _, notes in note_files(output):
        yield from notes
