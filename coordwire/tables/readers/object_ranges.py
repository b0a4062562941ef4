"""An object of a store as memory, of which only what is asked for is fetched.

Strategy: the object's place in memory is a sparse temporary file, mapped; `need` and `touch` fetch what they
are given into it. Bodies are read ahead, in windows that double from 256 KB to 8 MB while reading continues
where it was, or of 8 MB at once where all that follows is wanted (`read_all`); headers that are there already
do not cut a window in two. Headers are fetched one by one where batches are few, several at once by scouts,
and with all that is between them where batches are small: a request costs what some hundred kilobytes do, and
a part makes no more than `IN_TURN` or `AT_ONCE` of them for headers. A scout (`headers_from`) begins at a
header that an index has, or looks for one in the bytes at its start, then goes from header to header by their
lengths until the end of its stretch. `FetchingSearch` asks for whatever the search for
batches looks at, so that verdicts are those about the whole file. Rules: nothing is given on before `confirm`
has seen that the object is still the one that was listed and opened; bytes that weren't asked for are zeros
and must not be looked at; what an index or a scout says is fetched and no more: a value that looks like a
batch leads a scout astray, which costs requests and changes no row; where batches are, the walk from one to
the next decides.
"""

from __future__ import annotations

__all__ = ["FetchingSearch", "Ranges", "headers_from", "read_small"]

import mmap
import os
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from struct import Struct
from typing import Any

from coordwire.records.batch import HEADER
from coordwire.records.batch_reader import Batches
from coordwire.records.resync import WASTE, Search
from coordwire.tables.stores import Replaced, StoreObject, store_of

_HEAD = Struct(">qiib")
"""Base offset, length, leader epoch, magic."""
_LENGTH_FIELDS = 12
"""Bytes before those that the length counts."""


def headers_from(
    read: Callable[[int, int], bytes], start: int, end: int, size: int, near: int
) -> list[tuple[int, bytes]]:
    """Positions and bytes of the headers between `start` and `end`, as far as they are found.

    read: the object's bytes between two positions; size: the object's; near: how many bytes the first header
    is looked for in, 0 where it is at `start`.
    """
    pieces: list[tuple[int, bytes]] = []
    begin = start
    if near:
        window = read(start, min(start + near, size))
        pieces.append((start, window))
        first = _first_header(window, size - start, 64 * near)
        if first is None:
            return pieces
        begin = start + first
    while begin < end and begin + HEADER.size <= size:
        head = read(begin, begin + HEADER.size)
        pieces.append((begin, head))
        length = _batch_length(head, 0, size - begin)
        if not length:
            break
        begin += length
    return pieces


def _first_header(window: bytes, remaining: int, most: int) -> int | None:
    """Where the header of a batch of at most `most` bytes seems to be. remaining: bytes in and after it."""
    magic = _HEAD.size - 1
    at = window.find(2, magic)
    while at >= 0:
        position = at - magic
        if 0 < _batch_length(window, position, remaining - position) <= most:
            return position
        at = window.find(2, at + 1)
    return None


def _batch_length(data: bytes, at: int, remaining: int) -> int:
    """Bytes of the batch whose header may be there; 0 if it is not one."""
    offset, length, epoch, magic = _HEAD.unpack_from(data, at)
    length += _LENGTH_FIELDS
    if magic != 2 or offset < 0 or epoch < -1 or not HEADER.size <= length <= remaining:
        return 0
    return int(length)


LEAST, MOST = 256 << 10, 8 << 20
"""Bytes that are read ahead where bodies are read, at first and at most."""

HEAD = 256
"""Bytes that are fetched for a header."""

ISLAND = 64 << 10
"""Bytes that are there already and are fetched again, at most, with what is before and after them."""

IN_TURN, AT_ONCE = 2048, 16_384
"""Requests for headers in one part at most: one after the other, and side by side."""

SMALLEST = 4096
"""Bytes between headers below which they are fetched with what is between them, however few they are."""

ALONE = 4
"""Headers that are fetched one by one, since a body was read, before several are fetched at once."""

THREADS = 8
"""Scouts at a time, each a thread."""

SCOUTED, STRETCH = 64, 256
"""Headers for which scouts are sent ahead, at least, and how many each of them looks for at most."""

SMALL = 16 << 20
"""Bytes of the largest index that is read; Kafka's have 10 MB at most."""


class Ranges:
    """The object. listing: its size and time of change in nanoseconds (0 if unknown), as listed;
    end: where its reader means to stop. reads_bodies: whether bodies are read with the headers."""

    def __init__(self, uri: str, listing: tuple[int, int], start: int, end: int) -> None:
        self._object = StoreObject(uri)
        self._puts = self._object.store.puts
        size, modified = listing
        changed = self._object.identity.changed
        if self._object.identity.size != size or (
            modified and changed and modified // 1_000_000_000 != changed
        ):
            raise Replaced(uri)
        self.limit = end
        self.reads_bodies = False
        self._reads_all = False
        self._span = end - start
        self._copy = tempfile.TemporaryFile()  # noqa: SIM115 - `close` does
        os.truncate(self._copy.fileno(), size)
        mapped = mmap.mmap(self._copy.fileno(), size, access=mmap.ACCESS_READ) if size else b""
        self.view = memoryview(mapped)
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._fetched = False
        self._window, self._reached = LEAST, -1
        self._places: Sequence[int] = ()
        self._known_to = self._missed = self._hit = 0
        self._last, self._mean, self._alone = -1, 0.0, 0

    def batches(self, *, check_records: bool = False) -> Batches[Any]:
        """As `coordwire.records.batches` with reports, over what is fetched for it."""
        return Batches(self.view, "report", check_records, partial(FetchingSearch, self))

    def expect(self, places: Sequence[int]) -> None:
        """Announce the positions of headers, in rising order, as far as an index has them."""
        self._places = places

    def read_all(self) -> None:
        """Announce that all bytes from the first one needed up to `limit` are wanted."""
        self.reads_bodies = self._reads_all = True

    def confirm(self) -> None:
        """Raises `Replaced` if what was fetched since the last time may be of another object."""
        if self._fetched:
            self._object.confirm()
            self._fetched = False

    def close(self) -> None:
        """Close the object; its memory is freed with the last view."""
        self._object.close()
        self._copy.close()

    # --- what is asked for ---

    def need(self, start: int, end: int, most: int = MOST) -> None:
        """Fetch these bytes unless they are there, and read ahead. most: bytes that are read ahead."""
        end = min(end, len(self.view))
        first = self._first_missing(start, end)
        if first is None:
            return
        if self._reads_all and most:
            self._window = most
        else:
            self._window = min(2 * self._window if first == self._reached else LEAST, most)
        stop = max(end, min(first + self._window, self.limit))
        for low, high in self._ranges(first, stop):
            for at in range(low, high, MOST):
                self._fetch(at, min(at + MOST, high))
        self._reached = stop

    def have(self, start: int, end: int) -> None:
        """Fetch these bytes unless they are there; read ahead only where bodies are read."""
        self.need(start, end, MOST if self.reads_bodies else 0)

    def touch(self, start: int) -> None:
        """Fetch the header at `start` unless it is there."""
        end = min(start + HEADER.size, len(self.view))
        if start > self._last >= 0:
            self._mean += (start - self._last - self._mean) / 8 if self._mean else start - self._last
        self._last = start
        if self._first_missing(start, end) is None:
            self._hit += start < self._known_to
            return
        self._missed += start < self._known_to
        self._alone += 1
        if self.reads_bodies:
            self._alone = 0
            self.need(start, end)
        elif self._mean and self._mean < self._sparse():
            self.need(start, end, 4 * LEAST)
        elif self._alone <= ALONE or not self._scout(start):
            self._fetch(start, min(start + HEAD, len(self.view)))

    def _sparse(self) -> float:
        """The distance from which on headers are fetched by themselves."""
        helped = self._puts and self._missed <= 16 + self._hit // 4
        return max(SMALLEST, self._span / (AT_ONCE if helped else IN_TURN))

    def _scout(self, start: int) -> bool:
        """Fetch the headers that come next, by scouts that begin at several places; whether any were sent."""
        end, mean = self.limit, self._mean
        if start < self._known_to or not self._puts or not mean or end - start < SCOUTED * mean:
            return False
        step = int(min(STRETCH * mean, (end - start) // THREADS + 1))
        middle = int(1.25 * mean) + HEADER.size
        tasks = [(start, 0)]  # where each begins, and in how many bytes its first header is looked for
        for at in range(start + step, min(start + THREADS * step, end), step):
            known = bisect_left(self._places, at)
            place = self._places[known] if known < len(self._places) else end
            tasks.append((place, 0) if place < min(at + step, end) else (at, middle))
        stop = min(start + THREADS * step, end)
        ends = [*(at for at, _ in tasks[1:]), stop]

        def scout(task: tuple[int, int], until: int) -> list[tuple[int, bytes]]:
            return headers_from(self._read, task[0], until, len(self.view), task[1])

        with ThreadPoolExecutor(THREADS, "coordwire-headers") as threads:
            for pieces in list(threads.map(scout, tasks, ends)):
                for at, data in pieces:
                    self._keep(at, data)
        self._known_to = stop
        return True

    # --- what is there ---

    def _first_missing(self, start: int, end: int) -> int | None:
        if start >= end:
            return None
        at = bisect_right(self._starts, start) - 1
        if at >= 0 and self._ends[at] > start:
            start = self._ends[at]  # ranges that touch are one
        return start if start < end else None

    def _ranges(self, start: int, end: int) -> list[tuple[int, int]]:
        """What is missing in a range, with what is there where that is small."""
        ranges: list[tuple[int, int]] = []
        while (low := self._first_missing(start, end)) is not None:
            after = bisect_right(self._starts, low)
            start = min(end, self._starts[after]) if after < len(self._starts) else end
            if ranges and low - ranges[-1][1] <= ISLAND:
                low = ranges.pop()[0]
            ranges.append((low, start))
        return ranges

    def _fetch(self, start: int, end: int) -> None:
        self._keep(start, self._read(start, end))

    def _read(self, start: int, end: int) -> bytes:
        self._fetched = True
        return self._object.read(start, end)

    def _keep(self, start: int, data: bytes) -> None:
        remaining, at = memoryview(data), start
        while remaining:  # by the file and not by the mapping, so that a full disk is an error
            written = os.pwrite(self._copy.fileno(), remaining, at)
            remaining, at = remaining[written:], at + written
        low, high = bisect_left(self._ends, start), bisect_right(self._starts, at)
        if low < high:
            start, at = min(start, self._starts[low]), max(at, self._ends[high - 1])
        self._starts[low:high], self._ends[low:high] = [start], [at]


class FetchingSearch(Search):
    """The search for batches in `Ranges`, which has fetched whatever is looked at."""

    def __init__(self, ranges: Ranges, view: memoryview) -> None:
        super().__init__(view)
        self._ranges = ranges
        self._summed: dict[bool, int] = {}
        self._content: int | None = None

    @property
    def _content_end(self) -> int:
        """The position of the zeros at the object's end, found by fetching backwards from the end."""
        if self._content is None:
            end, size = len(self.view), LEAST
            while end:
                start = max(0, end - size)
                self._ranges.need(start, end)
                used = len(self.view[start:end].tobytes().rstrip(b"\0"))
                if used:
                    end = start + used
                    break
                end, size = start, min(2 * size, MOST)
            self._content = end
        return self._content

    def size(self, pos: int) -> int:
        self._ranges.touch(pos)
        size = super().size(pos)
        if size and self.view[pos + 16] < 2:  # what its header is follows from its content
            self._ranges.need(pos, pos + size)
        return size

    def looks_right(self, pos: int) -> bool:
        self._ranges.touch(pos)
        return super().looks_right(pos)

    def check(self, start: int, size: int, check: Callable[[], None]) -> None:
        self._ranges.have(start, start + size)
        super().check(start, size, check)

    def sound_end(self, start: int) -> int:
        self._ranges.need(start, start + HEADER.size)
        return super().sound_end(start)

    def _is_plausible(self, start: int, size: int) -> bool:
        self._ranges.need(start, start + size)
        return super()._is_plausible(start, size)

    def _within(self, pos: int, stop: int) -> Iterator[int]:
        self._ranges.need(pos, stop + HEADER.size)
        return super()._within(pos, stop)

    def _sum(self, start: int, end: int, modern: bool) -> int:
        first = start
        if self._spent + end - start > WASTE * start:  # made from what comes before it, too
            first = self._summed[modern] = min(start, self._summed.get(modern, start))
        self._ranges.need(first, end)
        return super()._sum(start, end, modern)


def read_small(uri: str) -> bytes | None:
    """A small file beside an object; None for one that is too large. Raises `OSError`."""
    store, path = store_of(uri)
    with store.open(path) as file:
        size = file.size()
        return None if size > SMALL else file.read_at(size, 0)
