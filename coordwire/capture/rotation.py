"""The files of a rotated capture: bytes as one stream, answers to requests of the file before.

Strategy: a request waits, by its connection's ends and its correlation id, until its answer is seen; an
answer without a request in its own capture is read as that of the request that waits. Rules: which files are
one capture, and in which order, is in `rotated_names`. The header of a later pcap is left out if it equals
the first one's; pcapng sections may follow each other anyway. Files are opened one at a time, as there may be
thousands. Other entries stay as they are, and in their order; waiting requests are bounded in number, the
oldest is dropped first, and in memory (`coordwire.capture.pending_requests`).
"""

from __future__ import annotations

import io
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, BinaryIO, TypeVar, overload

from coordwire.capture.entries import ConnectionSign, Entry, FrameEntry
from coordwire.capture.formats.compressed import fault_of
from coordwire.capture.formats.pcap import MAGICS
from coordwire.capture.frame_decoding import UNDECODED, read_answer
from coordwire.capture.pending_requests import AwaitedRequest, PendingRequests
from coordwire.connection.dialect import KAFKA
from coordwire.errors import DecodeError, UnreadableRange
from coordwire.frames import PREFIX

A = TypeVar("A", bound=Entry | ConnectionSign)

PCAP_HEADER = 24


class RotatedFiles(io.RawIOBase):
    """Several files, one after the other.

    open_file: opens one, decompressed. failed: is given those that can't be opened, and those whose
    compressed content ends early. known: how many bytes of files were read before; is_known: whether the last
    bytes are among these; switched: called with it before the first bytes that differ in it.
    header: the first file's, if that was read before. pause_before: the file before which the stream pauses,
    as if it ended; `go_on` ends the pause.
    """

    def __init__(
        self,
        paths: Sequence[str],
        open_file: Callable[[str], BinaryIO],
        failed: Callable[[str, OSError | DecodeError], None],
        known: Mapping[str, float] = {},
        switched: Callable[[bool], None] | None = None,
        header: bytes = b"",
        pause_before: str | None = None,
    ) -> None:
        self._pause_before = pause_before
        self.is_known = bool(known)
        self._switched = switched
        self._known = known
        self._position = 0
        self._paths = list(paths)
        self._open_file = open_file
        self._failed = failed
        self._path = ""
        self._stream: BinaryIO | None = None
        self._unread = b""
        self._header = header

    def go_on(self) -> bool:
        """End the pause; whether there is more."""
        self._pause_before = None
        return bool(self._paths)

    @property
    def is_paused(self) -> bool:
        """Whether it pauses, or is going to."""
        return self._pause_before is not None

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        super().close()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with memoryview(buffer) as outer, outer.cast("B") as view:  # PyPy keeps views that aren't released
            data = self._take(len(view))
            view[: len(data)] = data
        return len(data)

    def _take(self, most: int) -> bytes:
        """The next bytes, of whichever file; none at the end."""
        while self._stream is not None or self._next():
            assert self._stream is not None
            data = self._unread or self._stream.read(most)
            if data:
                known = self._known.get(self._path, 0) - self._position
                part = data[: most if known <= 0 else int(min(most, known))]
                self._unread = data[len(part) :]
                self._position += len(part)
                if self.is_known != (known > 0):
                    self.is_known = known > 0
                    if self._switched is not None:
                        self._switched(self.is_known)
                return part
            if fault := fault_of(self._stream):
                self._failed(self._path, fault)
            self._stream.close()
            self._stream = None
        return b""

    def _next(self) -> bool:
        """Open the next file that can be opened; whether there is one."""
        while self._paths and self._paths[0] != self._pause_before:
            self._path = self._paths.pop(0)
            try:
                self._stream = self._open_file(self._path)
                self._unread = self._head(self._stream)
                self._position = PCAP_HEADER - len(self._unread)
            except OSError as error:
                self._failed(self._path, error)
                continue
            return True
        return False

    def _head(self, stream: BinaryIO) -> bytes:
        """The first bytes of a new file, without a header that repeats the first file's."""
        head = stream.read(PCAP_HEADER)
        if not self._header:
            self._header = head
            return head
        return continued(self._header, head)


def continued(first: bytes, head: bytes) -> bytes:
    """The first bytes of a further file; none if they are a pcap's header that repeats the first file's."""
    is_same_format = head[:4] == first[:4] and head[20:] == first[20:]  # byte order and link type
    return b"" if head[:4] in MAGICS and is_same_format else head


MOST_WAITING = 10_000

Key = tuple[str, int]

_SIZE_ID = struct.Struct(">ii")


class _Requests:
    """The requests that wait, by flow and correlation id; of two under one, the later."""

    def __init__(self) -> None:
        self._waiting = PendingRequests()
        self._known: OrderedDict[Key, AwaitedRequest] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._known)

    def get(self, key: Key) -> FrameEntry | None:
        request = self._known.get(key)
        return None if request is None else request.entry

    def pop(self, key: Key) -> FrameEntry | None:
        request = self._known.pop(key, None)
        if request is None:
            return None
        self._waiting.remove(request)
        return request.entry

    def add(self, key: Key, entry: FrameEntry) -> None:
        known = self._known
        if key in known:
            self.pop(key)
        request = known[key] = AwaitedRequest(entry, lambda _: known.pop(key, None))
        self._waiting.add(request)
        if len(known) > MOST_WAITING:
            self.pop(next(iter(known)))


@overload
def rejoined(entries: Iterable[Entry], *, strict: bool = False) -> Iterator[Entry]: ...


@overload
def rejoined(
    entries: Iterable[Entry | ConnectionSign], *, strict: bool = False
) -> Iterator[Entry | ConnectionSign]: ...


def rejoined(
    entries: Iterable[Entry | ConnectionSign], *, strict: bool = False
) -> Iterator[Entry | ConnectionSign]:
    """The entries of captures that follow one another, with answers matched across their ends.

    strict: as for `Capture`. An answer from an `UnreadableRange` has the number 0.
    """
    return chain.from_iterable(rejoined_batches(([entry] for entry in entries), strict=strict))


def rejoined_batches(batches: Iterable[list[A]], *, strict: bool = False) -> Iterator[Sequence[A | Entry]]:
    """The same for entries in lists. Of requests that are answered in their own list nothing is noted, and
    while no request waits nothing is looked up."""
    waiting = _Requests()
    for batch in batches:
        are_lazy = UNDECODED.issuperset(map(type, batch))
        frames: Sequence[Any] | None = batch if are_lazy else _matched_frames(batch)
        if frames is None:
            yield [*_rejoined(batch, waiting, strict)]
            continue
        unanswered: dict[Key, FrameEntry] = {}
        for entry in frames:
            if (request := entry.request) is None:
                key = entry.flow, entry.correlation_id
                unanswered.pop(key, None)  # the later one comes last
                unanswered[key] = entry
            else:
                key = request.flow, entry.correlation_id
                unanswered.pop(key, None)
                if waiting:  # perhaps for an earlier request under the same id
                    waiting.pop(key)
        for key, entry in unanswered.items():
            waiting.add(key, entry)
        yield batch


def _matched_frames(batch: Iterable[Entry | ConnectionSign]) -> list[FrameEntry] | None:
    """The frames in a list that `_rejoined` would match, if it gives out the list as it is: each answer has
    its request, and all bytes were read."""
    frames: list[FrameEntry] = []
    for entry in batch:
        if type(entry) in UNDECODED:
            frames.append(entry)  # type: ignore[arg-type]
        elif isinstance(entry, UnreadableRange):
            return None
        elif isinstance(entry, FrameEntry):
            if not entry.flow or entry.correlation_id is None or entry.dialect != KAFKA:
                continue
            if entry.request is None:
                if entry.direction == "response":
                    return None
                if entry.api_key is None or entry.api_version is None:
                    continue
            frames.append(entry)
    return frames


def _rejoined(batch: Iterable[A], waiting: _Requests, strict: bool) -> Iterator[A | Entry]:
    for entry in batch:
        if isinstance(entry, FrameEntry):
            correlation_id = entry.correlation_id
            if entry.flow and correlation_id is not None and entry.dialect == KAFKA:
                if (request := entry.request) is not None:
                    waiting.pop((request.flow, correlation_id))
                else:
                    _match(entry, correlation_id, waiting, strict)
            yield entry
        elif isinstance(entry, UnreadableRange):
            yield from _answers_in(entry, waiting, strict)
        else:
            yield entry


def _match(entry: FrameEntry, correlation_id: int, waiting: _Requests, strict: bool) -> None:
    """A request, or an answer without one in its own capture."""
    if entry.direction == "response":
        request = waiting.pop((_reverse(entry.flow), correlation_id))
        if request is not None:
            read_answer(entry, request, strict=strict)
    elif entry.api_key is not None and entry.api_version is not None:
        waiting.add((entry.flow, correlation_id), entry)


def _answers_in(unreadable: UnreadableRange, waiting: _Requests, strict: bool) -> Iterator[Entry]:
    """The answers with which an unreadable range begins, and the rest of it: only their requests show that
    there are frames."""
    data, at, flow = unreadable.data, 0, _reverse(unreadable.flow)
    while at + _SIZE_ID.size <= len(data):
        size, correlation_id = _SIZE_ID.unpack_from(data, at)
        end = at + PREFIX + size
        request = waiting.get((flow, correlation_id))
        if request is None or size < PREFIX or end > len(data):
            break
        entry = FrameEntry(
            capture=unreadable.file, number=0, flow=unreadable.flow, time_ns=unreadable.time_ns,
            direction="response", body=data[at + PREFIX : end], correlation_id=correlation_id,
        )  # fmt: skip
        if unreadable.packet == unreadable.first_packet:  # in which of several it lies isn't known
            entry.packet = entry.first_packet = unreadable.packet
        read_answer(entry, request, strict=strict)
        if entry.error is not None:
            break
        waiting.pop((flow, correlation_id))
        yield entry
        at = end
    if at < unreadable.length:
        yield unreadable._replace(
            position=unreadable.position + at, length=unreadable.length - at, data=data[at:]
        )


def _reverse(flow: str) -> str:
    source, _, target = flow.partition(" > ")
    return f"{target} > {source}"
