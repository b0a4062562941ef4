"""What of the tables is complete.

Strategy: a worker leaves a note for each unit that it finished (`_manifest/UNIT.json`); a run that ends takes
all notes into `manifest.json` and removes them. Rules: a file of a table counts only if a complete unit names
it. Before a run, files that no complete unit names are removed, and those of units that the inputs no longer
have (a file grew, another version reads it), so that no row stands there twice.
"""

from __future__ import annotations

__all__ = ["MANIFEST", "complete_units", "settle", "sweep"]

import json
from collections.abc import Collection, Iterable
from typing import Any

from coordwire.spark.output import Output
from coordwire.spark.tables import TABLES
from coordwire.spark.units import FORMAT, NOTES

MANIFEST = "manifest.json"

Notes = dict[str, dict[str, Any]]


def complete_units(output: Output) -> Notes:
    """The notes of all complete units, by the units' names."""
    data = output.read(MANIFEST)
    notes: Notes = json.loads(data)["units"] if data else {}
    for name in output.names(NOTES):
        if name.endswith(".json") and (data := output.read(name)):
            note = json.loads(data)
            notes[note["unit"]] = note
    return notes


def sweep(output: Output, notes: Notes, planned: Collection[str], paths: Collection[str]) -> Notes:
    """The notes that still hold; what belongs to none of them is removed.

    planned: the units of this run; paths: its files. A unit of other files is none of its business.
    """
    held = {
        name: note
        for name, note in notes.items()
        if name in planned or not any(path in paths for path in note["paths"])
    }
    if len(held) < len(notes):  # what is removed isn't complete any more
        settle(output, held)
    named = {file for note in held.values() for file in note["files"]}
    for table in TABLES:
        for file in output.names(table):
            if file not in named and table != "files":
                output.delete(file)
    return held


def settle(output: Output, notes: Notes) -> None:
    """Write the manifest, and remove the notes that it holds."""
    told = {"format": FORMAT, "units": notes}
    output.write(MANIFEST, json.dumps(told, indent=0, sort_keys=True).encode())
    _remove(output, output.names(NOTES))


def _remove(output: Output, names: Iterable[str]) -> None:
    for name in names:
        output.delete(name)
