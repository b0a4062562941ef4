"""Captures that are still written, as a stream: which bytes are new, and the frames that they complete.

Strategy: an offset has the files of each capture in order, with the bytes that were read of each. What
connections left open (half frames, requests without answers, holes) is kept by a reader of the capture that
waits for more bytes between two batches; where there is none, or it is at another place, as after a restart,
a new one reads the capture from its beginning to there and drops the frames, which earlier batches had. So a
batch is a function of the files' bytes and of its two offsets alone, and each frame is in one of them.

Rules: a file is known by its path and its first packet, so that a name that `tcpdump -W` uses again is
another file. Names that differ in a rotation's number, or in four digits of a date or time or more, are one
capture, in the order of their first packets; a file is read to its end before the next. Files are local
pcap or pcapng, not compressed. What was removed or overwritten before it was read is reported. A restart
begins with the oldest file that is still there.
"""

from __future__ import annotations

__all__ = ["Chains", "GrowingCaptures", "Listing", "growing_offset", "next_growing_offset"]

import os
import queue
import re
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from coordwire.capture.entries import Entry
from coordwire.capture.reader import Capture
from coordwire.capture.rotated_names import FirstPacket, first_packet
from coordwire.capture.rotation import PCAP_HEADER, continued
from coordwire.dialects import find_alternative, find_dialect
from coordwire.errors import CoordwireError
from coordwire.tables.options import MEBI, Options
from coordwire.tables.readers.files import File, is_uri
from coordwire.tables.readers.rows import Bad, quarantine_batch
from coordwire.tables.readers.sources import SourceDefinition
from coordwire.tables.readers.splits import Part

if TYPE_CHECKING:
    import pyarrow

MOST = 64 * MEBI
"""Bytes of captures in one micro-batch."""
LEAST = 4096
"""Bytes that are read of a file at least, if it has them."""

_TIME = re.compile(r"\d{4,}(?:[-_.:T]\d\d(?!\d))*")
_NUMBER = re.compile(r"(?<=cap)\d+$|(?<=capng)\d+$")

GrowingOffset = dict[str, Any]


class GrowingFile(NamedTuple):
    """A file of a capture. first: the hash of its first packet; size: the bytes that were read of it."""

    path: str
    first: str
    size: int

    @property
    def key(self) -> tuple[str, str]:
        return self.path, self.first


Chains = dict[str, list[GrowingFile]]
"""The files of each capture in order, by what their paths have in common."""


class Listing:
    """The captures of a folder, as they are now. What is unchanged since the last listing isn't opened."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, int], FirstPacket | None]] = {}

    def chains(self, files: Iterable[File]) -> Chains:
        """The captures among these files. Raises `CoordwireError` for those in a store."""
        chains: dict[str, list[tuple[int, str, str]]] = {}
        known, self._known = self._known, {}
        for file in files:
            if is_uri(file.path):
                raise CoordwireError(f"{file.path}: expected a local file; objects in a store don't grow")
            if file.trouble or file.kind() != "capture":
                continue
            state = file.size, file.modified
            before = known.get(file.path)
            head = before[1] if before and before[0] == state and before[1] else _first_packet(file.path)
            self._known[file.path] = state, head
            if head is not None:
                chains.setdefault(_common_path(file.path), []).append((head.time_ns, file.path, head.digest))
        return {name: _sized(sorted(chain)) for name, chain in chains.items()}


def growing_offset(chains: Chains | None = None) -> GrowingOffset:
    """An offset; without chains that of a stream's start."""
    captures = {name: list(map(list, files)) for name, files in (chains or {}).items()}
    return {"growing": 1, "captures": captures}


def next_growing_offset(start: GrowingOffset, captures: Chains, most: int | None = MOST) -> GrowingOffset:
    """The offset after what is new; equal to `start` if nothing is. most: new bytes, about; None for all."""
    chains, room = _decoded(start), most
    for name, files in captures.items():
        read = {file.key: file.size for file in chains.get(name, ())}
        sizes = {file.key: file.size for file in files}
        chain = list(chains.get(name, ()))
        candidates = [chain.pop()] if chain and chain[-1].key in sizes else []
        candidates += [file for file in files if file.key not in read]
        for file in candidates:
            before, size = read.get(file.key, 0), sizes[file.key]
            stop = max(before, size if room is None else min(size, before + room))
            if stop - before < min(LEAST, size - before):
                if before:
                    chain.append(file)
                break
            chain.append(file._replace(size=stop))
            room = None if room is None else room - (stop - before)
            if stop < size:
                break
        if chain:
            chains[name] = [file for file in chain if file.key in sizes or file is chain[-1]]
    end = growing_offset(chains)
    return start if end["captures"] == start["captures"] else end


class GrowingCaptures:
    """The rows of micro-batches. columns: of the source."""

    def __init__(self, source: SourceDefinition, options: Options, columns: Sequence[str]) -> None:
        self._source = source
        self._options = options
        self._columns = columns
        self._readers: dict[str, _WaitingCapture] = {}

    def rows(self, start: GrowingOffset, end: GrowingOffset) -> Iterator[pyarrow.RecordBatch]:
        """The rows between two offsets. Raises in failfast mode only: `DecodeError` for the first range that
        can't be read and the first refused frame."""
        before = _decoded(start)
        for name, files in _decoded(end).items():
            read = before.get(name, [])
            if read != files:
                yield from self._chain_rows(name, read, files)

    def close(self) -> None:
        """End the readers that wait."""
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()

    def _chain_rows(
        self, name: str, read: Sequence[GrowingFile], files: Sequence[GrowingFile]
    ) -> Iterator[pyarrow.RecordBatch]:
        missing: list[Bad] = []
        reader = self._readers.pop(name, None)
        if reader is None or reader.place != (read[-1] if read else None):
            if reader is not None:
                reader.close()
            reader = _WaitingCapture((*read, *files)[0].path, self._options)
            for file in read:
                deque(reader.feed(file, 0, missing), 0)
        self._readers[name] = reader
        sizes = {file.key: file.size for file in read}
        entries = (
            entry
            for file in files
            if file.size > sizes.get(file.key, 0)
            for entry in reader.feed(file, sizes.get(file.key, 0), missing)
        )
        part = Part("capture", reader.path, 0, 0, 0)
        names = self._columns if self._source.least is None else [self._source.least["capture"]]
        read_rows = cast(Any, self._source.readers["capture"])
        for item in read_rows(part, self._options, names, read_entries=entries):
            if isinstance(item, Bad):
                missing.append(item)
            elif self._source.least is None:
                yield item
        if missing and self._options.failfast:
            raise CoordwireError(str(missing[0]))
        if missing and self._source.least is not None:
            yield quarantine_batch(missing, self._columns)


class _WaitingCapture:
    """A reader of a capture that waits for more bytes: it is a thread, of which one runs at a time.

    path: of the first file; place: the file that was read last, with its size.
    """

    def __init__(self, path: str, options: Options) -> None:
        self.path = path
        self.place: GrowingFile | None = None
        self._options = options
        self._header = b""
        self._input: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._output: queue.SimpleQueue[list[Entry] | BaseException] = queue.SimpleQueue()
        self._entries: list[Entry] = []
        self._unread = b""
        threading.Thread(target=self._run, daemon=True).start()
        self._output.get()  # it waits

    def feed(self, file: GrowingFile, begin: int, missing: list[Bad]) -> Iterator[Entry]:
        """What the file's bytes from `begin` to its size complete. missing: takes what can't be read."""
        reason, at = "", begin
        try:
            with open(file.path, "rb") as stream:
                stream.seek(begin)
                while at < file.size and (data := stream.read(min(MEBI, file.size - at))):
                    head = _first_packet(file.path)
                    if head is None or head.digest != file.first:
                        reason = "it was overwritten before it was read"
                        break
                    at += len(data)
                    yield from self._receive(data, is_head=at == len(data))
        except OSError as error:
            reason = error.strerror or str(error)
        if at < file.size:
            missing.append(Bad(file.path, at, file.size, reason or "it was cut before it was read"))
        self.place = file

    def close(self) -> None:
        self._input.put(b"")

    def _receive(self, data: bytes, *, is_head: bool) -> list[Entry]:
        if is_head and self._header:
            data = continued(self._header, data[:PCAP_HEADER]) + data[PCAP_HEADER:]
        self._header = self._header or data[:PCAP_HEADER]
        if not data:  # a header alone
            return []
        self._input.put(data)
        entries = self._output.get()
        if isinstance(entries, BaseException):
            self._output.put(entries)  # for the next call
            raise entries
        return entries

    # --- in the thread

    def read1(self, size: int) -> bytes:
        """The next bytes, as the capture's stream; waits for them."""
        if not self._unread:
            entries, self._entries = self._entries, []
            self._output.put(entries)
            self._unread = self._input.get()
        data = self._unread[:size]
        self._unread = self._unread[size:]
        return data

    read = read1

    def _run(self) -> None:
        options = self._options
        try:
            capture = Capture(
                cast(BinaryIO, self), self.path, strict=options.strict, lazy=True,
                dialect=find_dialect(options.dialect), alternative=find_alternative(options.dialect),
            )  # fmt: skip
            for entry in capture.entries():
                self._entries.append(entry)
        except BaseException as error:
            self._output.put(error)


# --- files ---


def _first_packet(path: str) -> FirstPacket | None:
    """A capture's first packet; None if it isn't written yet, or is compressed: what `tcpdump -z` makes of a
    file has frames that were read."""
    try:
        return first_packet(lambda name: open(name, "rb"), path)
    except OSError:
        return None


def _common_path(path: str) -> str:
    """What the paths of one rotated capture have in common."""
    folder, slash, name = path.rpartition("/")
    return folder + slash + _TIME.sub("#", _NUMBER.sub("", name))


def _sized(chain: Sequence[tuple[int, str, str]]) -> list[GrowingFile]:
    """The files with their sizes, the last one's first: when a file has bytes, that before it is complete."""
    sized = []
    for _, path, first in reversed(chain):
        with suppress(OSError):
            sized.append(GrowingFile(path, first, os.stat(path).st_size))
    return [file for file in reversed(sized) if file.size]


def _decoded(offset: GrowingOffset) -> Chains:
    if offset.get("growing") != 1:
        raise CoordwireError(
            "the checkpoint's offset is not one of growing captures: start with a new checkpoint"
        )
    return {
        name: [GrowingFile(path, first, size) for path, first, size in files]
        for name, files in offset["captures"].items()
    }
