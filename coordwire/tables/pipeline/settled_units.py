"""Which units of a chain's settled files stay as it grows, and which checkpoint the next ones go on from.

Strategy: the units of settled files name the one before them, so that they are a chain of their own. They
stay while their files, as far as these are there, are the first of their capture as it is listed now,
unchanged, and nothing else that rows depend on is another. The last file's unit goes, as it is read again
after them. Rules: what is in doubt is read again with the whole chain; a unit whose files are gone stays, as
any does; where the file is gone that a last file's unit has the rows of, nothing goes on from the checkpoint
before it, as that has the sums of the same minutes.
"""

from __future__ import annotations

__all__ = ["SettledUnits"]

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from coordwire.tables.readers.files import File
from coordwire.tables.readers.splits import CapturedFile
from coordwire.tables.storage.manifest_file import Notes


class _Place(NamedTuple):
    """A place in a chain: its first file, None where it isn't known yet, and how many files are before."""

    chain: str | None
    before: int


class SettledUnits:
    """notes: of all complete units; facts: `row_facts` of this run; chains: the captures as they are now.
    find: where a file of an earlier run is now; covered: how many bytes of it were read; is_going: whether
    its rows go, as it is pruned.

    current: the names of the units of settled files that stay.
    """

    def __init__(
        self,
        notes: Notes,
        facts: str,
        chains: Sequence[Sequence[File]],
        *,
        find: Callable[[CapturedFile], File | None],
        covered: Callable[[CapturedFile, File], float],
        is_going: Callable[[CapturedFile], bool],
    ) -> None:
        self.current: set[str] = set()
        self._facts, self._find, self._covered, self._is_going = facts, find, covered, is_going
        self._chains = {chain[0].path: chain for chain in chains}
        self._places = {
            file.path: _Place(chain[0].path, index) for chain in chains for index, file in enumerate(chain)
        }
        self._ends: dict[str, tuple[int, str]] = {}
        settled = {name: note for name, note in notes.items() if note.get("saved")}
        last = {note["after"]: note for note in notes.values() if note.get("stage") == "open"}
        ends: dict[str, _Place | None] = {}
        for name in _in_order(settled):
            note = settled[name]
            before = ends.get(note["after"]) if note["after"] else _Place(None, 0)
            end = ends[name] = None if before is None else self._end(note, before)
            if end is not None:
                self._keep(name, end, last.get(name))

    def after(self, chain: Sequence[File], count: int) -> str:
        """The unit that a chain's first files, so many of them, are settled by, and that can be gone on from;
        "" if there is none."""
        known, name = self._ends.get(chain[0].path, (0, ""))
        return name if known == count else ""

    def _end(self, note: Mapping[str, Any], before: _Place) -> _Place | None:
        """Where a unit's files end, which are after others; None if it doesn't stay."""
        own = [CapturedFile(*file) for file in note["captured"]]
        if note["facts"] != self._facts or len(own) != len(note["paths"]):
            return None
        chain, count = before
        for file in own:
            present = self._find(file)
            if present is None:
                if self._is_going(file):
                    return None
                continue
            place = self._places.get(present.path)
            if place is None or present.path != file.path or self._covered(file, present) < math.inf:
                return None  # its path may be in rows
            if place != (chain or place.chain, count):
                return None
            chain, count = place.chain, count + 1
        return _Place(chain, count)

    def _keep(self, name: str, end: _Place, last: Mapping[str, Any] | None) -> None:
        """Let a unit stay, and later ones go on from it if they can. last: the note of the file after it."""
        following = None
        if last is not None:
            captured = [CapturedFile(*file) for file in last["captured"]]
            present = self._find(captured[0]) if captured else None
            following = None if present is None else self._places.get(present.path)
            if following is None:
                self.current.add(name)
                return
        chain = end.chain or (following.chain if following else None)
        if chain is None or end.before >= len(self._chains[chain]):
            return
        self.current.add(name)
        if following is None or (following.chain == chain and following.before >= end.before):
            self._ends[chain] = end.before, name  # later ones come later, whose files may be gone


def _in_order(settled: Notes) -> Sequence[str]:
    """The units, each after the one that it names."""
    followers: dict[str, list[str]] = {}
    for name, note in settled.items():
        followers.setdefault(note["after"], []).append(name)
    names = followers.get("", [])
    for name in names:  # which grows meanwhile
        names += followers.pop(name, [])
    return names
