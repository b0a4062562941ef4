"""Batches decompressed a little ahead of their reader, on other threads.

Strategy: from the current position on, batches are put into groups of some size; a thread checks and
decompresses one group, as the codecs' libraries let others run meanwhile. Getting the interpreter's lock back
takes time, so that small batches are decompressed by the reader's thread. Rules: a batch that is bad, or
can't be decompressed, has no body here; the ordinary reader raises the error. At most `GROUPS` groups are
ahead, and a group ends early at `LARGEST` decompressed bytes, so that hostile batches don't fill the memory;
the others are decompressed when they are asked for.
"""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from time import perf_counter
from types import TracebackType
from typing import Self

from coordwire.errors import CoordwireError
from coordwire.records.batch import CODEC_BITS, HEADER, RecordBatch, batch_size, claimed_size

GROUP = 256 << 10
"""Bytes of the batches, as they are compressed, that one thread takes at a time."""

WORTH = 80e-6
"""Seconds that a batch has to take on average for threads to pay."""

LARGEST = 32 << 20
CPUS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
THREADS = min(4, CPUS)
GROUPS = THREADS + 1

Bodies = dict[int, "bytes | None"]


def batch_at(source: memoryview, position: int) -> RecordBatch:
    """The batch of magic 2 at this position."""
    return RecordBatch(source[position : position + batch_size(source, position)], position)


class Readahead:
    """The records' bytes of the compressed batches in `source`, each asked for in its turn. sizes: gets how
    many they are, by the batches' positions."""

    def __init__(self, source: memoryview, sizes: dict[int, int]) -> None:
        self._source = source
        self._sizes = sizes
        self._known: Bodies = {}
        self._groups: deque[tuple[int, Future[Bodies]]] = deque()
        self._next = 0  # where the next group begins
        self._threads: ThreadPoolExecutor | None = None
        self._takes = 0.0  # seconds, for one of the last batches

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)  # the buffer's owner may close it now

    def body(self, position: int) -> bytes | None:
        """The bytes of the records of the batch at `position`; None unless it is compressed and sound."""
        if not self._compressed(position):
            return None
        if position not in self._known:
            groups = self._groups
            while groups and groups[0][0] < position:
                groups.popleft()
            if not groups and self._takes >= WORTH:
                self._next = position
                self._fill()
            if groups and groups[0][0] == position:
                self._known = groups.popleft()[1].result()
                self._fill()
            else:
                start = perf_counter()
                self._known = _unpack(self._source, [position])
                self._takes += (perf_counter() - start - self._takes) / 8
        body = self._known[position]
        if body is not None:
            self._sizes[position] = len(body)
        return body

    def _compressed(self, position: int) -> int:
        """The size of the batch at `position` if it is a compressed one and all there, or 0."""
        source = self._source
        if len(source) - position < HEADER.size or source[position + 16] != 2:
            return 0
        if not source[position + 22] & CODEC_BITS:
            return 0
        return claimed_size(source, position)

    def _fill(self) -> None:
        """Start groups as far ahead as is allowed, unless there is too little for threads."""
        while len(self._groups) < GROUPS:
            places, at = [], self._next
            while at - self._next < GROUP and (size := self._compressed(at)):
                places.append(at)
                at += size
            if not places or (self._threads is None and at - self._next < GROUP):
                break
            if self._threads is None:
                self._threads = ThreadPoolExecutor(THREADS, "coordwire-decompress")
            task = self._threads.submit(copy_context().run, _unpack, self._source, places)
            self._groups.append((self._next, task))
            self._next = at


def _unpack(source: memoryview, places: list[int]) -> Bodies:
    """The bodies of the batches there, as far as `LARGEST` goes."""
    bodies: Bodies = {}
    size = 0
    for place in places:
        try:
            body = bytes(batch_at(source, place).payload())
        except CoordwireError:
            bodies[place] = None
            continue
        bodies[place] = body
        size += len(body)
        if size > LARGEST:
            break
    return bodies
