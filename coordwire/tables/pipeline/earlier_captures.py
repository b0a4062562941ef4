"""Captures that earlier runs have read: which of their units stay, and what of their files is to be read.

Strategy: a unit has the rows of files of a rotated capture, and no column says of which file a row is. The
units of settled files stay, and what is new is read after their checkpoint (`settled_units`). While all files
of any other unit are there, it is replaced by one that reads them again, with what is new. Once one is gone,
the unit stays as it is; what it has of the other files isn't read for rows a second time, and a
unit of its own reads what they don't have, after the files before it, from which connections go on. That unit
stays as soon as one of these is gone. Rules: a file is
known by its path and its first packet: one that was overwritten, as by `tcpdump -W`, is gone. A file that was
moved or compressed is the same, if it has the same first packet, and its old path is gone. No row goes
because a file does, except those of files that are pruned.
"""

from __future__ import annotations

__all__ = ["EarlierCaptures", "check_read"]

import itertools
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from coordwire.capture.formats.compressed import SUFFIXES
from coordwire.capture.jsonlines import text
from coordwire.capture.rotated_names import FirstPacket, rotated
from coordwire.errors import CoordwireError
from coordwire.tables.pipeline.pruning import is_gone
from coordwire.tables.pipeline.settled_units import SettledUnits
from coordwire.tables.pipeline.units import Unit
from coordwire.tables.readers.files import File, first_captured
from coordwire.tables.readers.splits import CapturedFile, CaptureRun, Part
from coordwire.tables.storage.manifest_file import Notes


class EarlierCaptures:
    """What the notes say of captures. notes: of all complete units; files: those of this run; pruned: the
    paths whose rows go, if files are pruned.

    units: those that stay and have rows of these files; staying: the names of all that stay; replaced: of
    those that go though their paths are not among the files; pruned: the files whose rows go.
    """

    def __init__(
        self,
        notes: Notes,
        files: Mapping[str, File],
        pruned: Collection[str] | None = None,
        facts: str = "",
        *,
        join_rotated: bool = True,
    ) -> None:
        self.units: list[Unit] = []
        self.staying: set[str] = set()
        self.replaced: set[str] = set()
        self.pruned: set[str] = set()
        self._files = files
        self._covered: dict[str, float] = {}
        groups: dict[str, _Group] = {}
        for name, note in notes.items():
            if captured := note.get("captured"):
                groups.setdefault(json.dumps(captured), _Group(captured)).notes[name] = note
        self._first = {
            (file.path, file.size, file.modified): FirstPacket(file.time_ns, file.digest)
            for group in groups.values()
            for file in group.captured
            if file.digest
        }
        self._known_paths = {
            file.path for group in groups.values() for file in group.captured if not file.start
        }
        self._moved: dict[str, list[File]] | None = None
        for group in groups.values():
            group.present = [self._find(file) for file in group.captured]
            missing = {
                file.path
                for file, present in zip(group.captured, group.present, strict=True)
                if present is None
            }
            going = missing.intersection({*pruned, *files}) if pruned is not None else set()
            group.stays = going < missing and (group.is_whole or not any(group.present))
            group.going = going
        complete = {
            name: note for group in groups.values() if group.is_whole for name, note in group.notes.items()
        }
        self._settled = self._find_settled(complete, facts, {*pruned, *files} if pruned is not None else ())
        for group in groups.values() if join_rotated else ():
            if self._settled.current.intersection(group.notes):
                group.stays = True
            elif all(group.present) and self._settled.current.intersection(group.afters):
                group.stays = False
        _drop_repeated([group for group in groups.values() if group.stays])
        _keep_beginnings(groups.values())
        self._present_chains = {
            chain for group in groups.values() if any(group.present) for chain in group.chains
        }
        for group in groups.values():
            if group.stays:
                self._stay(group)
                continue
            self.pruned |= group.going
            if not any(file.path in files for file in group.captured):
                self.replaced |= group.notes.keys()

    def _find_settled(self, notes: Notes, facts: str, going: Collection[str]) -> SettledUnits:
        """The units of settled files that stay. notes: of units that are there with all of their shares;
        going: the paths whose rows go where their files are gone."""
        has_settled = any(note.get("saved") for note in notes.values())
        readable = [file for file in self._files.values() if file.kind() == "capture" and not file.trouble]
        chains = rotated(readable, lambda file: file.path, self.first) if has_settled else []
        return SettledUnits(
            notes, facts, chains, find=self._find, covered=_covered,
            is_going=lambda file: file.path in going,
        )  # fmt: skip

    def _stay(self, group: _Group) -> None:
        self.staying |= group.notes.keys()
        if not (any(group.present) or group.chains & self._present_chains):
            return
        self.units += group.units()
        for file, present in zip(group.captured, group.present, strict=True):
            if present is not None:
                covered = _covered(file, present)
                self._covered[present.path] = max(self._covered.get(present.path, 0), covered)

    # --- the files of a run

    def first(self, file: File) -> FirstPacket | None:
        """A capture's first packet."""
        key = file.path, file.size, file.modified
        if key not in self._first:
            first = None if file.trouble else first_captured(file)
            if first is None:
                return None
            self._first[key] = first
        return self._first[key]

    def runs(self, chain: Sequence[File]) -> Iterator[CaptureRun]:
        """What is to be read of a capture's files: neighbours together, after the files before them."""
        before: list[CapturedFile] = []
        own: list[tuple[File, CapturedFile]] = []
        for file in chain:
            time_ns, digest = self.first(file) or (0, "")
            captured = CapturedFile(file.path, time_ns, digest, 0, file.size, file.modified)
            covered = self._covered.get(file.path, 0)
            if covered < math.inf:
                own.append((file, captured._replace(start=int(covered))))
                continue
            if own:
                yield _as_run(before, own)
            before += [_all_known(item) for item in (*(item for _, item in own), captured)]
            own = []
        if own:
            run = _as_run(before, own)
            after = self._settled.after(chain, len(before))
            grows = bool(after) or (not before and len(own) > 1)
            is_whole = not any(file.start for _, file in own)
            yield run._replace(after=after, grows=True) if grows and is_whole else run

    def _find(self, file: CapturedFile) -> File | None:
        """Where an earlier run's file is now."""
        present = self._files.get(file.path)
        if present is not None:
            first = self.first(present)
            is_same = not file.digest or (first is not None and first.digest == file.digest)
            return present if is_same else None
        if not file.digest:
            return None
        for candidate in self._moved_files().get(file.digest, ()):
            if candidate.size == file.size or _plain(candidate.path) == _plain(file.path):
                with suppress(CoordwireError):  # it isn't known whether it is gone
                    return candidate if is_gone(file.path) else None
        return None

    def _moved_files(self) -> dict[str, list[File]]:
        """The captures at paths that no earlier run has read from the start, by their first packets."""
        if self._moved is None:
            self._moved = {}
            for path, file in self._files.items():
                if path not in self._known_paths and file.kind() == "capture" and (first := self.first(file)):
                    self._moved.setdefault(first.digest, []).append(file)
        return self._moved


class _Group:
    """The units of the same files. present: where these are now; stays: whether the units do; going: the
    paths of files whose rows go if they don't."""

    def __init__(self, captured: Iterable[Any]) -> None:
        self.captured = [CapturedFile(*file) for file in captured]
        self.notes: Notes = {}
        self.present: list[File | None] = []
        self.stays = False
        self.going: set[str] = set()

    @property
    def chains(self) -> set[str]:
        """The chains that it is of, by their first files."""
        return {note["chain"] for note in self.notes.values() if note.get("stage")}

    @property
    def afters(self) -> set[str]:
        """The units of settled files that its last file comes after."""
        return {note["after"] for note in self.notes.values() if note.get("stage") == "open"}

    @property
    def own(self) -> dict[tuple[str, str], CapturedFile]:
        """The files that it has rows of."""
        return {(file.path, file.digest): file for note in self.notes.values() for file in _own(note)}

    @property
    def is_whole(self) -> bool:
        """Whether all shares are complete."""
        shares = {tuple(note["share"]) for note in self.notes.values()}
        return all(len(shares) == count for _, count in shares)

    def units(self) -> Iterator[Unit]:
        for name, note in self.notes.items():
            first, *further = note["paths"]
            share, count = note["share"]
            part = Part("capture", first, note["end"], note["start"], note["end"],
                        further_paths=tuple(further), share=share, shares=count,
                        stage=note.get("stage", ""), after=note.get("after", ""))  # fmt: skip
            yield Unit(name, part)


def _keep_beginnings(groups: Collection[_Group]) -> None:
    """Let the groups stay that have the beginnings of files that others which stay go on with."""
    by_file: dict[tuple[str, str], list[tuple[int, _Group]]] = {}
    for group in groups:
        for file in group.captured:
            by_file.setdefault((file.path, file.digest), []).append((file.start, group))
    waiting = [group for group in groups if group.stays]
    while waiting:
        for file in waiting.pop().captured:
            for start, group in by_file[file.path, file.digest] if file.start else ():
                if start < file.start and not group.stays:
                    group.stays = True
                    waiting.append(group)


def _drop_repeated(staying: Sequence[_Group]) -> None:
    """Let those go whose rows others have too: a run that replaced them was killed before it removed them."""
    by_file: dict[tuple[str, str], list[_Group]] = {}
    for group in staying:
        for key in group.own:
            by_file.setdefault(key, []).append(group)
    for group in staying:
        own = group.own
        for rival in by_file[next(iter(own))] if own else ():
            if rival is group or not rival.stays or not rival.is_whole:
                continue
            rival_files = rival.own
            group.stays = not all(
                key in rival_files
                and rival_files[key].start <= file.start
                and rival_files[key].size >= file.size
                for key, file in own.items()
            )
            if not group.stays:
                break


def check_read(notes: Notes, going: Collection[str], pruned: Collection[str]) -> None:
    """Raises `CoordwireError` for a file that only units have which are about to go: it went, or another
    took its place, while it was read again.

    notes: of all complete units; going: the names of these units; pruned: the files whose rows go.
    """
    read = {file.digest for name, note in notes.items() if name not in going for file in _own(note)}
    for name in going:
        for file in _own(notes[name]):
            if file.digest and file.digest not in read and file.path not in pruned:
                raise CoordwireError(
                    f"{text(file.path)} was removed or overwritten while it was read again; its rows stay, "
                    "and a rerun reads what it lacks"
                )


def _own(note: Mapping[str, Any]) -> Iterator[CapturedFile]:
    """The files of captures that a unit has rows of."""
    for file in itertools.starmap(CapturedFile, note.get("captured", ())):
        if file.path in note["paths"]:
            yield file


def _as_run(before: Sequence[CapturedFile], own: Sequence[tuple[File, CapturedFile]]) -> CaptureRun:
    return CaptureRun([file for file, _ in own], [*before, *(captured for _, captured in own)])


def _all_known(file: CapturedFile) -> CapturedFile:
    """A file of which other units have all rows."""
    return file._replace(start=file.size)


def _plain(path: str) -> str:
    """A path without the suffix of a compression."""
    return next((path.removesuffix(suffix) for suffix in SUFFIXES if path.endswith(suffix)), path)


def _covered(file: CapturedFile, present: File) -> float:
    """How many bytes of a file, decompressed, an earlier run has read; infinity for all."""
    was_plain, is_plain = _plain(file.path) == file.path, _plain(present.path) == present.path
    if present.size == file.size and was_plain == is_plain:
        return math.inf
    if was_plain:  # it grew since, or may have before it was compressed
        return file.size if present.size > file.size or not is_plain else math.inf
    return 0 if present.path == file.path else math.inf
