"""One attempt at the units of one task: its files, until they are published together or removed.

Strategy: an attempt has a random token, a folder of its own below `_manifest/attempts` for what isn't
published, and the token in the names of its files, so that attempts never meet in one file: retries and
speculation may run side by side, here or on other machines. Each file is read back when it is closed; what is
for a store is in a spool until then, a local file without a name. `publish` writes down the files' names,
sizes and checksums (`commit.json`), moves or puts them into their places, and claims the task by one file
with the notes of its units, of which there can be one. An attempt that finds its task claimed takes its own
files back. What a store is asked so is the same for one unit and for many, but for the files of their rows.
Rules: a file is written down before it appears in a table's folder; a note names only files that were read
back; an attempt of a run that is over publishes nothing; what is left after a kill is removed by the next run
(`clear`), which uses `commit.json` and names that only an attempt's folder can have.
"""

from __future__ import annotations

__all__ = ["Attempt", "RunOver", "Sink", "clear", "digest", "is_ours", "remove_ours"]

import io
import json
import mmap
import shutil
from collections.abc import Collection, Iterator
from contextlib import suppress
from secrets import token_hex
from tempfile import SpooledTemporaryFile, TemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from coordwire.errors import CoordwireError
from coordwire.records.backend import crc32c
from coordwire.tables.storage.folders import LocalFolder
from coordwire.tables.storage.manifest_file import Proof, as_proofs, read_notes
from coordwire.tables.storage.names import (
    ATTEMPTS,
    NOTES,
    WRITING,
    attempt_of,
    data_name,
    is_data_name,
    is_own_name,
)
from coordwire.tables.storage.run_lock import published

if TYPE_CHECKING:
    from coordwire.tables.storage.folders import Output

NO_RUN = "0" * 32
"""The run of an attempt that belongs to none; only who made it removes its files."""

BLOCK = 1 << 20

HELD = 256 << 10
"""Bytes of each open file that are held in memory for a store; up to 64 files are open."""


class RunOver(CoordwireError):
    """The run that an attempt belongs to has ended, or another one has taken its place."""


class Sink(io.RawIOBase):
    """A file being written, for pyarrow; counts its bytes and their checksum. stream: what gets them."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self.stream = stream
        self.size = self.crc = 0
        self._dropped = False

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        size = len(view)
        if not self._dropped:
            self.crc = crc32c(view, self.crc)
            self.size += size
            while view:
                view = view[self.stream.write(view) or 0 :]
        return size

    def tell(self) -> int:
        return self.size

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            super().close()
            self.stream.close()

    def drop(self) -> None:
        """Write nothing more: the file is going to be removed."""
        self._dropped = True
        with suppress(OSError):
            self.close()


class Attempt:
    """The files that one attempt at a task writes. run: the run that it belongs to, if any."""

    def __init__(self, output: Output, task: str, run: str | None = None) -> None:
        self.output = output
        self.run = run
        self.token = token_hex(16)
        self.place = f"{ATTEMPTS}/{run or NO_RUN}-{task}-{self.token}"
        self._notes_name = f"{NOTES}/{task}.json"
        self._parts: dict[str, tuple[str, Sink]] = {}
        self._folder = output if isinstance(output, LocalFolder) else None
        self._spool: BinaryIO | None = None  # the complete files for a store, one after the other
        self._starts: dict[str, int] = {}

    def open(self, unit: str, table: str, folder: str) -> tuple[str, Sink]:
        """A new file of a unit's rows of a table, and the name that it is going to have."""
        number = len(self._parts)
        name = data_name(table, folder, unit, self.token, number)
        part = f"{self.place}/{number:04}.part"
        if self._folder is None:
            stream = cast(BinaryIO, SpooledTemporaryFile(HELD))  # noqa: SIM115 - the sink closes it
        else:
            stream = self._folder.open_new(part)
        self._parts[name] = part, Sink(stream)
        return name, self._parts[name][1]

    def finish(self, name: str, rows: int) -> None:
        """Close a file and read it back. Raises `CoordwireError` if it is not what was written."""
        part, sink = self._parts[name]
        if self._folder is None:
            _check_rows(sink.stream, part, rows)
            sink.stream.seek(0)
            if self._spool is None:
                self._spool = cast(BinaryIO, TemporaryFile())  # noqa: SIM115 - `_close_spool` does
            self._starts[name] = self._spool.tell()
            shutil.copyfileobj(sink.stream, self._spool, BLOCK)
            sink.close()
            return
        sink.close()
        with self._folder.open(part) as stream:
            content = io.BytesIO(stream.read(sink.size + 1)) if sink.size <= BLOCK else stream
            read_back = digest(content)
            if read_back != [sink.size, sink.crc]:
                raise CoordwireError(
                    f"{part}: {read_back[0]} bytes were read back, {sink.size} different ones were written"
                )
            content.seek(0)
            _check_rows(content, part, rows)

    def publish(self, notes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Put the files into their places and write the notes of the units, each with its `files`; returns
        the notes that count, which are another attempt's if that one was first. Raises `RunOver`."""
        files = self._written_down()
        with published(self.output, self.run) as current:
            if not current:
                raise RunOver(f"run {self.run} is over; what it would still have written is dropped")
            winner = self._claimed() or self._claim(files, notes)
        self._leave()
        return winner

    def place_files(self) -> dict[str, Proof]:
        """Put the files into their places without a note: the caller records them elsewhere."""
        proofs = self._move(self._written_down())
        self._close_spool()
        return proofs

    def _written_down(self) -> dict[str, Proof]:
        """The files that are about to be put into their places; `commit.json` has them first."""
        files = {name: [sink.size, sink.crc] for name, (_, sink) in sorted(self._parts.items())}
        if files:
            self.output.write(f"{self.place}/commit.json", json.dumps({"files": files}).encode())
        return files

    def _move(self, files: dict[str, Proof]) -> dict[str, Proof]:
        proofs = {}
        for name, proof in files.items():
            if self._folder is None:
                self._put(name)
            else:
                self._folder.move(self._parts[name][0], name)
            # No other attempt has the token in its name; in a store a small one is identified by its content.
            has_stamp = self._folder is not None or proof[0] > BLOCK
            proofs[name] = [*proof, *self._stamp(name, proof[0])] if has_stamp else proof
        return proofs

    def _put(self, name: str) -> None:
        """Write a file of the spool under its name."""
        assert self._spool is not None
        self._spool.flush()
        start, size = self._starts[name], self._parts[name][1].size
        with (
            mmap.mmap(self._spool.fileno(), 0, access=mmap.ACCESS_READ) as data,
            memoryview(data) as view,
            view[start : start + size] as content,
        ):
            self.output.write(name, content)

    def _claim(self, files: dict[str, Proof], notes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        try:
            proofs = self._move(files)
            notes = [
                note | {"token": self.token, "proofs": {name: proofs[name] for name in note["files"]}}
                for note in notes
            ]
            while not self.output.create(self._notes_name, json.dumps(notes).encode()):
                if (winner := self._claimed()) is not None:
                    self._take_back(files)
                    return winner
            # A store's put overwrites: where two came at the same time, the last note counts.
            if not self.output.local and (winner := self._claimed(self.token)) is not None:
                self._take_back(files)
                return winner
        except BaseException:
            with suppress(OSError, CoordwireError):
                self._take_back(files)
            raise
        return notes

    def _claimed(self, own: str | None = None) -> list[dict[str, Any]] | None:
        """The notes of an earlier attempt, if there is one. own: the token of notes to ignore."""
        winner = read_notes(self.output, self._notes_name)
        if winner is None or (own is not None and all(note.get("token") == own for note in winner)):
            return None
        self.discard()
        return winner

    def _take_back(self, files: dict[str, Proof]) -> None:
        """Remove the files that this attempt has just moved."""
        for name, proof in files.items():
            remove_ours(self.output, name, proof)

    def _stamp(self, name: str, size: int) -> tuple[int, ...]:
        """The stamp of a file that was put into its place. Raises `CoordwireError` if it has another size."""
        status = self.output.stat(name)
        if status is not None and status.size != size:
            raise CoordwireError(f"{name}: {status.size} bytes are there, {size} were put there")
        return status.stamp if status else ()

    def discard(self) -> None:
        """Remove what isn't published."""
        for part, sink in self._parts.values():
            sink.drop()
            if self._folder is not None:
                with suppress(OSError, CoordwireError):
                    self._folder.delete(part)
        self._leave()

    def _close_spool(self) -> None:
        if self._spool is not None:
            self._spool.close()

    def _leave(self) -> None:
        self._close_spool()
        with suppress(OSError, CoordwireError):
            self.output.delete(f"{self.place}/commit.json")
            self.output.remove_folder(self.place)


def _check_rows(stream: BinaryIO, part: str, rows: int) -> None:
    """Raises `CoordwireError` if it is not a Parquet file of so many rows."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        count = pyarrow.parquet.ParquetFile(stream).metadata.num_rows
    except pa.ArrowException as error:
        raise CoordwireError(f"{part} can't be read back: {error}") from None
    if count != rows:
        raise CoordwireError(f"{part}: {count} rows were read back, {rows} were written")


def digest(stream: BinaryIO) -> Proof:
    """The size and the CRC-32C of what follows."""
    size = crc = 0
    while block := stream.read(BLOCK):
        size += len(block)
        crc = crc32c(block, crc)
    return [size, crc]


def is_ours(output: Output, name: str, proof: Proof) -> bool:
    """Whether the file of this name is the one that the proof is about.

    It is the same by its stamp, or where that changed (a copy, a restored backup) by its content.
    """
    status = output.stat(name)
    if status is None or status.size != proof[0]:
        return False
    if status.stamp and list(status.stamp) == proof[2:]:
        return True
    try:
        with output.open(name) as stream:
            is_same = digest(stream) == proof[:2]
    except (OSError, CoordwireError):
        return False
    return is_same and output.stat(name) == status


def remove_ours(output: Output, name: str, proof: Proof) -> bool:
    """Remove a table's file if the proof is about it; whether no file of that name is left."""
    if not is_data_name(name):
        return False
    if is_ours(output, name, proof):
        output.delete(name)
        return True
    return output.stat(name) is None


def clear(output: Output, keep: Collection[str]) -> None:
    """Remove what ended attempts left. The caller has the lock, and no task of it is running.

    keep: the files that complete units name.
    """
    for name in output.names(WRITING):
        if is_own_name(name):
            output.delete(name)
    attempts: dict[str, list[str]] = {}
    for name in output.names(ATTEMPTS):
        if (attempt := attempt_of(name)) is not None and attempt[0] != NO_RUN:
            attempts.setdefault(attempt[1], []).append(name)
    for place, names in attempts.items():
        commit = f"{place}/commit.json"
        for name, proof in _planned_files(output, commit):
            if name not in keep:
                remove_ours(output, name, proof)
        for name in sorted(names, key=lambda name: name == commit):  # what it says is needed until the end
            output.delete(name)
        output.remove_folder(place)
    for place in output.entries(ATTEMPTS):
        if not place.startswith(NO_RUN) and attempt_of(f"{ATTEMPTS}/{place}/commit.json"):
            output.remove_folder(f"{ATTEMPTS}/{place}")


def _planned_files(output: Output, commit: str) -> Iterator[tuple[str, Proof]]:
    """The files that an attempt was about to put into their places."""
    data = output.read(commit)
    try:
        files = json.loads(data or b"{}").get("files", {})
        yield from as_proofs(files).items()
    except (ValueError, AttributeError, CoordwireError):  # not one that we wrote: nothing is removed by it
        return
