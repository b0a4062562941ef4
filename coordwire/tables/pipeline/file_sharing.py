"""Files that several units share, where one of these goes and another one stays.

Strategy: each note says which rows of a shared file are the unit's, so that a new file is written with the
rows of those that stay; their notes name it in the place of the shared one, which goes with the units that
go. The manifest that is written next has both. Rules: a shared file is written again only if it is still what
was written down; new files are an attempt's until the manifest names them, so that a kill leaves nothing.
"""

from __future__ import annotations

__all__ = ["separated"]

from collections.abc import Callable, Collection
from functools import cache
from hashlib import sha256
from typing import Any

from coordwire.errors import CoordwireError
from coordwire.tables.storage.folders import Output
from coordwire.tables.storage.manifest_file import Notes, Proof
from coordwire.tables.storage.parquet_files import Runs, without_rows
from coordwire.tables.storage.unit_attempt import Attempt, is_ours

TASK = sha256(b"rows that stay of shared files").hexdigest()[:24]
"""What an attempt at these files has in the place of a task's name."""


def separated(
    output: Output,
    notes: Notes,
    going: Collection[str],
    run: str | None,
    present: Callable[[str], Collection[str]] | None = None,
) -> Notes:
    """The notes of the units that stay, none of which shares a file with one that goes.

    notes: of all complete units; going: the units that go; present: the files that a table consists of by its
    own log, where it has one; a file that a compaction took stays shared. Raises `CoordwireError` for a file
    that has changed.
    """
    staying = {unit: note for unit, note in notes.items() if unit not in going}
    leaving = {name for unit in going for name in notes[unit]["proofs"]}
    sharers: dict[str, list[dict[str, Any]]] = {}
    for note in staying.values():
        for name in leaving.intersection(note["proofs"]):
            sharers.setdefault(name, []).append(note)
    if present is not None and sharers:
        files = cache(lambda table: frozenset(present(table)))
        sharers = {name: units for name, units in sharers.items() if name in files(name.partition("/")[0])}
    if not sharers:
        return staying
    attempt = Attempt(output, TASK, run)
    moves: dict[str, tuple[str, dict[str, Runs]]] = {}
    try:
        for name, units in sorted(sharers.items()):
            moves[name] = _written_again(attempt, name, units)
        proofs = attempt.place_files()
    except BaseException:
        attempt.discard()
        raise
    for note in {note["unit"]: note for units in sharers.values() for note in units}.values():
        staying[note["unit"]] = _moved(note, moves, proofs)
    return staying


def _written_again(attempt: Attempt, name: str, notes: list[dict[str, Any]]) -> tuple[str, dict[str, Runs]]:
    """The name of a new file with the rows of these units, and which of its rows are each one's."""
    place = attempt.output.path(name)
    if not is_ours(attempt.output, name, notes[0]["proofs"][name]):
        raise CoordwireError(
            f"{place} is not as it was written, and has rows of an input that changed: remove it, and its "
            "inputs are read again"
        )
    runs = sorted((*run, note["unit"]) for note in notes for run in note.get("ranges", {}).get(name, ()))
    ranges: dict[str, Runs] = {note["unit"]: [] for note in notes}
    position = last = 0
    for start, end, unit in runs:
        if not last <= start < end:
            raise CoordwireError(
                f"{place}: the manifest gives its rows {start} to {end} to two units, or to none"
            )
        ranges[unit].append([position, position + end - start])
        position, last = position + end - start, end
    if not all(ranges.values()):
        raise CoordwireError(f"{place}: the manifest does not say which of its rows are of which unit")
    return without_rows(attempt, name, [run[:2] for run in runs]), ranges


def _moved(
    note: dict[str, Any], moves: dict[str, tuple[str, dict[str, Runs]]], proofs: dict[str, Proof]
) -> dict[str, Any]:
    """A unit's note with new files in the place of those that were written again."""
    own, ranges = dict(note["proofs"]), dict(note["ranges"])
    for name in moves.keys() & own.keys():
        new_name, runs = moves[name]
        del own[name], ranges[name]
        own[new_name], ranges[new_name] = proofs[new_name], runs[note["unit"]]
    return note | {"proofs": own, "files": sorted(own), "ranges": ranges}
