"""The notes of complete units and the manifest, as they are read: untrusted.

Strategy: a note says what became of a unit, and by what its files are known: size, checksum and stamp. The
manifest holds notes, the table of files, and what is to be removed. Rules: anyone who can write into the
folder can write a manifest, so that each value is checked, and names that no pipeline writes are refused.
"""

from __future__ import annotations

__all__ = ["FORMAT", "MADE_BY", "Manifest", "Notes", "Proof", "all_notes", "as_proofs", "load", "read_note"]

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coordwire.errors import CoordwireError
from coordwire.spark.pipeline.places import MANIFEST, NOTES, is_data_name, note_unit

if TYPE_CHECKING:
    from coordwire.spark.pipeline.output import Output

FORMAT = 3
"""The version of the manifest and of the tables' layout."""

MADE_BY = "coordwire pipeline"

Proof = list[int]
"""What a file is known by: its size, its CRC-32C, and the stamp that it had when it was put into its place
(see `folder.Stat`; left out where there was none yet)."""

Notes = dict[str, dict[str, Any]]

_COUNTS = ("units_rows", "read_bytes", "quarantined_bytes", "bad_ranges", "refused")


@dataclass(slots=True)
class Manifest:
    """units: the notes of complete units; files: the table of files; removing: files that are to go."""

    units: Notes = field(default_factory=dict)
    files: dict[str, Proof] = field(default_factory=dict)
    removing: dict[str, Proof] = field(default_factory=dict)


def as_proofs(found: object) -> dict[str, Proof]:
    """Files and what they are known by. Raises `CoordwireError` for what no pipeline writes."""
    if not isinstance(found, dict):
        raise CoordwireError("expected an object of files")
    for name, proof in found.items():
        if not is_data_name(name):
            raise CoordwireError(f"it names {name!r}, which is not a file of the pipeline's")
        if not isinstance(proof, list) or len(proof) < 2 or not all(type(number) is int for number in proof):
            raise CoordwireError(f"expected the size and checksum of {name}, got {str(proof)[:80]}")
    return found


def _as_note(unit: str, note: object) -> dict[str, Any]:
    if not isinstance(note, dict) or note.get("unit") != unit:
        raise CoordwireError(f"expected the note of unit {unit!r}")
    proofs = as_proofs(note.get("proofs"))
    rows, paths, apis = note.get("rows"), note.get("paths"), note.get("apis")
    good = (
        note.get("files") == sorted(proofs)
        and note.get("kind") in ("capture", "segment", "story")
        and isinstance(rows, dict) and all(type(count) is int for count in rows.values())
        and isinstance(paths, list) and bool(paths) and all(isinstance(path, str) for path in paths)
        and all(type(note.get(name)) is int for name in _COUNTS)
        and _all_of(apis, [str, bool, int])
        and _all_of(note.get("error_codes", []), [str, int, int])
    )  # fmt: skip
    if not good:
        raise CoordwireError(f"the note of unit {unit} is not as the pipeline writes it")
    return note


def _all_of(found: object, types: list[type]) -> bool:
    """Whether it is a list of lists of just these types."""
    return isinstance(found, list) and all(
        isinstance(one, list) and [type(value) for value in one] == types for one in found
    )


def load(output: Output) -> Manifest | None:
    """The manifest; None if there is none. Raises `CoordwireError` for what is not one of ours."""
    data = output.read(MANIFEST)
    if data is None:
        return None
    shown = output.path(MANIFEST)
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("units"), dict) or "format" not in found:
        raise CoordwireError(f"{shown} is not a manifest of this pipeline: choose another --out")
    if found["format"] != FORMAT:
        raise CoordwireError(
            f"{shown} is of format {str(found['format'])[:20]}, expected {FORMAT}: its tables are of "
            "another version of coordwire; choose another --out"
        )
    try:
        if found.get("made_by") != MADE_BY:
            raise CoordwireError(f"expected made_by to be {MADE_BY!r}")
        units = {unit: _as_note(unit, note) for unit, note in found["units"].items()}
        return Manifest(units, as_proofs(found.get("files")), as_proofs(found.get("removing")))
    except CoordwireError as error:
        raise CoordwireError(
            f"{shown} is not as this pipeline writes it: {error.reason}; nothing was changed; "
            "choose another --out"
        ) from None


def read_note(output: Output, name: str) -> dict[str, Any] | None:
    """A note; None if it is not there. Raises `CoordwireError` for what is not one of ours."""
    data = output.read(name)
    if data is None:
        return None
    try:
        return _as_note(note_unit(name) or "", json.loads(data))
    except (ValueError, RecursionError, CoordwireError) as error:
        raise CoordwireError(
            f"{output.path(name)} is not a note of this pipeline ({error}): remove it, and its unit is "
            "read again"
        ) from None


def all_notes(output: Output) -> Iterator[tuple[str, dict[str, Any]]]:
    """The notes that no manifest has taken in, by their files' names."""
    for entry in sorted(output.folder.entries(NOTES)):
        name = f"{NOTES}/{entry}"
        if note_unit(name) is not None and (note := read_note(output, name)) is not None:
            yield name, note
