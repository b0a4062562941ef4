"""`batches`: bytes that hold record batches, one after the other, as an iterator over them.

Strategy: walk from length to length without reading the records; an error inside a batch is raised when the
batch is iterated. With `on_error` "skip" or "report" each batch is read whole before it is handed out, and
after a bad one `coordwire.records.resync` finds the place to go on. Rules: a last batch that is cut short is
not an error (brokers cut fetches so), unless whole batches are inside of its claimed length; every range that
is passed over is noted.

The format of a batch, by its magic: a record batch, or a message of the formats before it.

Rule: the caller has checked that the magic is 0, 1 or 2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property
from mmap import mmap
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast, overload

from coordwire._speedups import native as speedups
from coordwire.errors import CorruptBatch, DecodeError, LimitExceeded, UnreadableRange, counted
from coordwire.records import backend
from coordwire.records.batch import RecordBatch
from coordwire.records.legacy import LegacyBatch
from coordwire.records.resync import Search

if TYPE_CHECKING:
    from coordwire._speedups import _native


def open_batch(view: memoryview, position: int) -> RecordBatch:
    """The batch that these bytes are, by their magic."""
    return RecordBatch(view, position) if view[16] == 2 else LegacyBatch(view, position)


Buffer = bytes | bytearray | memoryview | mmap
REMEMBERED = 16
"""So many batches are looked back at for a sound one."""

OnError = Literal["raise", "skip", "report"]


T = TypeVar("T")


if TYPE_CHECKING or speedups is None:

    class _Walk:
        """The counterpart of the native half's `Walk`, which opens sound batches without a call into
        Python."""

        _quick: _native.Codec | None
        _view: memoryview
        position = 0

        def __next__(self) -> Any:
            return self._next()

        def _next(self) -> Any:
            raise NotImplementedError

else:
    _Walk = speedups.Walk


class Batches(_Walk, Iterator[T], Generic[T]):
    """The iterator that `batches` and `kafka_07.batches` return.

    position: the byte at which the next batch would begin. reads_natively: whether the native half knows the
    layout of its batches.

        >>> from coordwire.records import Record, batches, encode_batch
        >>> data = encode_batch([Record(value=b"tea")], base_offset=7)
        >>> reader = batches(data + b"not a batch", on_error="skip")
        >>> [record.value for batch in reader for record in batch]
        [b'tea']
        >>> reader
        <Batches at byte 71 of 82: 0 ranges skipped>
    """

    reads_natively = True

    def __init__(
        self,
        buffer: Buffer,
        on_error: OnError,
        check_records: bool = True,
        search: Callable[[memoryview], Search] = Search,
        opened: Callable[[memoryview, int], RecordBatch] | None = None,
    ) -> None:
        if on_error not in ("raise", "skip", "report"):
            raise ValueError(f'expected "raise", "skip" or "report" as on_error, got {on_error!r}')
        view = memoryview(buffer)
        if buffer.__class__ is not bytes and (view.format != "B" or view.ndim != 1 or not view.c_contiguous):
            view = view.cast("B")
        self._view = view
        self._on_error = on_error
        self._check_records = check_records
        self._search_type = search
        if opened is not None:
            self._opened, self.reads_natively = opened, False
        elif on_error == "raise":  # whatever isn't in order comes to `_next`
            self._quick = backend.codec

    _on_error: OnError = "raise"
    _check_records = True
    _search_type: Callable[[memoryview], Search] = Search
    _opened: Callable[[memoryview, int], RecordBatch] = staticmethod(open_batch)
    _ended = False
    _last = -1

    @cached_property
    def skipped(self) -> list[UnreadableRange]:
        """The ranges passed over so far."""
        return []

    def __repr__(self) -> str:
        skipped = counted(len(self.skipped), "range")
        return f"<Batches at byte {self.position} of {len(self._view)}: {skipped} skipped>"

    if TYPE_CHECKING:

        def __next__(self) -> T: ...

    @property
    def remainder(self) -> memoryview:
        """The bytes that haven't been read; at the end those of a batch that is cut short, if any."""
        return self._view[self.position :]

    def resume(self, position: int, last_offset: int | None) -> None:
        """Go on at `position`; last_offset: of the batch before it, if another reader read that."""
        self.position = position
        if last_offset is not None:
            self._last = last_offset

    @cached_property
    def _search(self) -> Search:
        return self._search_type(self._view)

    def _next(self) -> T:
        while not self._ended and self.position < len(self._view):
            start = self.position
            size = 0
            try:
                size = self._search.size(start)
                if not size:
                    self._search.incomplete(start, after=None if self._on_error == "raise" else self._last)
                    break
                batch = self._opened(self._view[start : start + size], start)
                if self._on_error != "raise":
                    self._search.check(start, size, batch.verify if self._check_records else batch.check)
            except (CorruptBatch, LimitExceeded) as error:
                if self._on_error == "raise":
                    self._end()
                    raise
                unreadable = self._pass_over(start, size, error)
                if self._on_error == "report":
                    return cast(T, unreadable)
            else:
                self.position = start + size
                self._last = batch.last_offset
                return cast(T, batch)
        self._end()
        raise StopIteration

    def _end(self) -> None:
        self._ended = True
        self._quick = None

    def advance(self, stop: int) -> int:
        """Move on to where the first batch at or after byte `stop` begins; the new `position`.

        These are the places that iterating comes to, at the cost of headers alone: a batch that ends where
        another header begins is not read. The batches in between are read only where no header follows; that
        raises, or notes in `.skipped`, what iterating does.
        """
        passed: deque[tuple[int, int]] = deque(maxlen=REMEMBERED)
        while not self._ended and self.position < min(stop, len(self._view)):
            try:
                size = self._search.size(self.position)
            except CorruptBatch:
                size = 0
            end = self.position + size
            if size and self._search.looks_right(end):
                passed.append((self.position, end))
                self.position = end
            else:
                self._passed(passed)
                next(self, None)
        self._passed(passed)
        return self.position

    def heads(self, stop: int) -> Iterator[T]:
        """The batches up to byte `stop` by their headers alone; their bytes are not looked at.

        A batch counts if another header begins where it ends. Where none does it is read, and is given or
        passed over as by iterating. To have one of them read after all, set `position` back to its own and
        iterate.
        """
        passed: deque[tuple[int, int]] = deque(maxlen=REMEMBERED)
        while not self._ended and self.position < min(stop, len(self._view)):
            batch = self.head()
            if batch is not None:
                start, self.position = self.position, self.position + batch.size
                passed.append((start, self.position))
                yield cast(T, batch)
            else:
                self._passed(passed)
                item = next(self, None)
                if item is None:
                    return
                yield item
        if self.position < len(self._view):
            self._passed(passed)

    def head(self) -> RecordBatch | None:
        """The batch at `position` by its header alone, if another header begins where it ends."""
        start = self.position
        try:
            size = self._search.size(start)
        except CorruptBatch:
            return None
        if not size or not self._search.looks_right(start + size):
            return None
        return self._opened(self._view[start : start + size], start)

    def _passed(self, places: deque[tuple[int, int]]) -> None:
        """Remember the last sound batch of those that were passed."""
        while places:
            start, end = places.pop()
            try:
                batch = self._opened(self._view[start:end], start)
                self._search.check(start, end - start, batch.check)
            except CorruptBatch:
                continue
            self._last = batch.last_offset
            places.clear()

    def _pass_over(self, start: int, size: int, error: DecodeError) -> UnreadableRange:
        # A matching checksum vouches for the length too.
        vouched = bool(size) and error.path != "checksum"
        self.position = start + size if vouched else self._search.after(start, size)
        unreadable = UnreadableRange(start, self.position - start, str(error))
        self.skipped.append(unreadable)
        return unreadable


@overload
def batches(
    buffer: Buffer, *, on_error: Literal["raise", "skip"] = "raise", check_records: bool = True
) -> Batches[RecordBatch]: ...
@overload
def batches(
    buffer: Buffer, *, on_error: Literal["report"], check_records: bool = True
) -> Batches[RecordBatch | UnreadableRange]: ...
def batches(
    buffer: Buffer, *, on_error: OnError = "raise", check_records: bool = True
) -> Batches[RecordBatch] | Batches[RecordBatch | UnreadableRange]:
    """The record batches in `buffer`, lazily and without copying: a fetched record set, a segment file.

    buffer: bytes, bytearray, memoryview or mmap; it may not shrink while batches of it are in use. Each
    `RecordBatch` reads its records when it is iterated. An uncompressed message of magic 0 or 1 is a batch of
    its own. A last batch that isn't all there ends the iteration; its bytes are then in `.remainder`. Even
    there a length or magic that no batch can have is refused.

    on_error: "raise" a `CorruptBatch` where a batch can't begin (what is wrong inside a batch is raised when
    it is iterated); "skip" to the next batch that can be read, noting the bytes passed over in `.skipped`; or
    "report" them as a `UnreadableRange` among the batches. In both, the batches handed out have been read
    whole; a missing codec library then raises `CodecUnavailable`. check_records: False for their checksums
    alone, at their speed and without a codec.
    """
    quick = backend.codec
    if quick is not None and on_error == "raise" and buffer.__class__ is bytes:
        return quick.walk(Batches, buffer)
    return Batches(buffer, on_error, check_records)
