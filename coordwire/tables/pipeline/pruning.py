"""Units whose files are no longer there, renamed or gone for good, and the removal of their rows.

    pipeline.run(engine, ["/backup", "caps"], "tables", prune=True).pruned  # the files whose rows went

Strategy: a segment that has another name now (`.log.deleted`, another folder of the same broker) is read
under that name, and the rows of its old name go; the rows of files that are gone stay until the user asks to
prune with a run. Rules: a unit is removed
only if all of its files are proven gone, each by a look-up of its own. What may be an unmounted disk is
refused: a folder that can't be listed or has nothing in it any more, and a mount point that was one when its
files were read. The manifest has what is to go before it goes, so that a run after a kill finishes it.
"""

from __future__ import annotations

__all__ = [
    "gone_paths",
    "gone_units",
    "is_gone",
    "mount_points",
    "paths_of",
    "pruned_notice",
    "renamed_units",
]

import glob
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache

from coordwire._quantities import counted
from coordwire.capture.jsonlines import text
from coordwire.errors import CoordwireError
from coordwire.segments.names import live_path
from coordwire.tables.readers.file_origins import Origins, segment_identity
from coordwire.tables.readers.files import File, glob_pattern
from coordwire.tables.storage.manifest_file import Notes
from coordwire.tables.stores import canonical, is_uri, local_path, store_of

MOST_NAMED = 3
ADVICE = "nothing was removed"


def paths_of(notes: Notes, units: Iterable[str]) -> list[str]:
    """The files of these units."""
    return sorted({path for unit in units for path in notes[unit]["paths"]})


def pruned_notice(paths: Sequence[str]) -> list[str]:
    """A notice on the files whose rows were removed; none if there are none."""
    if not paths:
        return []
    first = ", ".join(text(path) for path in paths[:MOST_NAMED])
    suffix = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    return [f"the rows of {counted(len(paths), 'file')} that are gone were removed: {first}{suffix}"]


# --- the same segment under another name ---


def renamed_units(notes: Notes, planned: Collection[str], files: Mapping[str, File]) -> set[str]:
    """The units of segments that are among these files under other names, and not under their old ones."""
    candidates = {
        name: note for name, note in notes.items() if name not in planned and note["kind"] != "capture"
    }
    if not candidates:
        return set()
    segments = [file for file in files.values() if file.kind() == "segment"]
    paths = {live_path(file.path) for file in segments}
    # A story's and lag's segments are known by the units that read these themselves; of lag's those that only
    # end a log may have none.
    was = {note["paths"][0]: tuple(note["segment"]) for note in candidates.values() if note.get("segment")}
    origins = Origins(files.values())
    known = {tuple(segment_identity(file.path, file.size, origins.of(file))) for file in segments if was}

    def is_renamed(before: Sequence[str]) -> bool:
        moved = {was[path] for path in before if path in was}
        is_known = all(live_path(path) in paths for path in before) or (bool(moved) and moved <= known)
        return is_known and not any(path in files for path in before) and all(map(is_gone, before))

    return {name for name, note in candidates.items() if is_renamed(note["paths"])}


# --- what is gone for good ---


def gone_paths(
    notes: Notes, files: Mapping[str, File], inputs: Sequence[str], mounts: Sequence[str]
) -> set[str]:
    """The files of units that were below these inputs and are gone.

    files: what the inputs hold now; mounts: the mount points of earlier runs. Raises `CoordwireError` where
    it isn't known whether files are gone or only out of reach.
    """
    places = [_Place(path) for path in inputs]
    missing = {
        path
        for path in {path for note in notes.values() for path in note["paths"]}.difference(files)
        if any(place.contains(path) for place in places)
    }
    for file in files.values():
        if file.trouble and any(path.startswith(f"{file.path}/") for path in missing):
            raise CoordwireError(
                f"{text(file.path)} can't be listed ({file.trouble}), so that it isn't known which of its "
                f"files are gone: {ADVICE}"
            )
    deleted = {path for path in missing if is_gone(path)}
    _check_places(deleted, files, places, mounts)
    return deleted


def gone_units(notes: Notes, deleted: Collection[str]) -> set[str]:
    """The units of which all files are gone."""
    return {name for name, note in notes.items() if deleted and set(note["paths"]).issubset(deleted)}


class _Place:
    """An input: a file, a folder or a glob, local or in a store."""

    def __init__(self, path: str) -> None:
        local = local_path(path)
        self.path = path
        self.remote = is_uri(path)
        full = canonical(path) if self.remote else os.path.abspath(local)
        wild = glob.has_magic(full) and (self.remote or not os.path.lexists(local))
        self._pattern = re.compile(glob_pattern(full) if wild else re.escape(full), re.DOTALL)

    def contains(self, path: str) -> bool:
        """Whether the input names a file or a folder above it."""
        match = self._pattern.match(path)
        return match is not None and path[match.end() : match.end() + 1] in ("", "/")


def is_gone(path: str) -> bool:
    """Whether there is no file of this path. Raises `CoordwireError` where that isn't known."""
    try:
        if is_uri(path):
            store, inner = store_of(path)
            return store.info(inner) is None
        os.lstat(local_path(path))
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError as error:
        raise CoordwireError(
            f"{text(path)} can't be looked for ({error.strerror or error}): {ADVICE}"
        ) from None
    return False


def _check_places(
    deleted: Collection[str], files: Mapping[str, File], places: Sequence[_Place], mounts: Sequence[str]
) -> None:
    """Raises `CoordwireError` where the folder of a deleted file may be out of reach."""
    is_empty = cache(_is_empty)
    empty = [place for place in places if place.remote and not any(map(place.contains, files))]
    for path in sorted(deleted):
        if is_uri(path):
            for place in empty:
                if place.contains(path):
                    raise CoordwireError(f"nothing is below {text(place.path)} any more: {ADVICE}")
            continue
        folder = os.path.dirname(local_path(path))
        while not os.path.lexists(folder):
            folder = os.path.dirname(folder)
        if is_empty(folder):
            raise CoordwireError(
                f"{text(folder)} is empty, from which {text(path)} was read: a disk that isn't mounted looks "
                f"the same, and {ADVICE}; remove the folder too if it is meant to be empty"
            )
        real = os.path.realpath(path)
        for mount in mounts:
            if real.startswith(f"{mount}/") and not os.path.ismount(mount):
                raise CoordwireError(
                    f"{text(mount)} was a mount point when {text(path)} was read and isn't one now: {ADVICE}"
                )


def _is_empty(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    except OSError as error:
        raise CoordwireError(
            f"{text(folder)} can't be listed ({error.strerror or error}), so that it isn't known which of "
            f"its files are gone: {ADVICE}"
        ) from None


def mount_points(paths: Iterable[str]) -> set[str]:
    """The mount points that local files are below, but for the root."""

    @cache
    def mount(folder: str) -> str:
        return folder if os.path.ismount(folder) else mount(os.path.dirname(folder))

    real = cache(os.path.realpath)
    folders = {os.path.dirname(local_path(path)) for path in paths if not is_uri(path)}
    return {mount(str(real(folder))) for folder in folders} - {"/"}
