"""A segment's indexes: where an offset is, when a time came, which transactions were aborted.

    .index       int32 relative offset, int32 position                    one entry every few KB
    .timeindex   int64 timestamp, int32 relative offset                   beside it, where time went on
    .txnindex    int16 version, int64 producer id, first offset, last offset, last stable offset

Strategy: an index is a sequence over the file's bytes, unpacked entry by entry when asked for. Rules:
relative offsets count from the segment's base offset. A broker that didn't stop in order leaves an index as
large as it was preallocated, 10 MB of zeros after the last entry: they are not entries. (Nor can an entry be
all zero: the first in an offset index is after the first batch, a transaction doesn't end before offset
1. In a time index it can: one that is alone in its file counts.) Bytes after the last whole entry are
`trailing`. Nothing here is checked against the log: that is `Segment.verify`'s.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from struct import Struct
from struct import error as StructError
from typing import ClassVar, NamedTuple, TypeVar, overload

from coordwire.errors import OutOfRange

T = TypeVar("T")
_BLOCK = 1 << 16


class OffsetPosition(NamedTuple):
    """Offsets up to `offset` end in what was appended to the `.log` at byte `position`."""

    offset: int
    position: int


class TimestampOffset(NamedTuple):
    """`timestamp` (ms since 1970) is the largest up to `offset`, the last of the batch that has it."""

    timestamp: int
    offset: int


class AbortedTransaction(NamedTuple):
    """A transaction that was aborted in this segment.

    first_offset: of its first record in the partition; last_offset: of its end marker, which is in this
    segment; last_stable_offset: what it was when the marker came. version: 0 so far.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    version: int = 0


class _Index(Sequence[T]):
    """Entries of one size. data: the file's bytes; base_offset: the segment's."""

    entry: ClassVar[Struct]

    def __init__(self, data: bytes | memoryview, base_offset: int) -> None:
        self._data = memoryview(data)
        self.base_offset = base_offset
        self.size = len(self._data)
        self._count = self._entries()

    def _entries(self) -> int:
        """The number of entries before the zeros that only reserve room."""
        end = self.size - self.size % self.entry.size
        while end:
            start = max(0, end - _BLOCK)
            used = len(bytes(self._data[start:end]).rstrip(b"\0"))
            if used:
                return -(-(start + used) // self.entry.size)
            end = start
        return 0

    @property
    def trailing(self) -> int:
        """Bytes after the last whole entry; 0 in a sound file."""
        return self.size % self.entry.size

    @property
    def reserved(self) -> int:
        """Bytes of zeros after the last entry."""
        return self.size - self.trailing - self._count * self.entry.size

    @abstractmethod
    def _value(self, row: tuple[int, ...]) -> T: ...

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(self._count))]
        at = index + self._count if index < 0 else index
        if not 0 <= at < self._count:
            raise IndexError(f"{index}: there are {self._count} entries")
        return self._value(self.entry.unpack_from(self._data, at * self.entry.size))

    @classmethod
    def _pack(cls, rows: Iterable[tuple[int, ...]]) -> bytes:
        pack = cls.entry.pack
        try:
            return b"".join([pack(*row) for row in rows])
        except StructError as error:
            raise OutOfRange(f"an index entry can't hold it: {error}", "entries") from None

    def __repr__(self) -> str:
        entries = "1 entry" if self._count == 1 else f"{self._count:,} entries"
        return f"<{type(self).__name__} of base offset {self.base_offset}: {entries}>"


class OffsetIndex(_Index[OffsetPosition]):
    """The `.index` file: entries in rising order of both offset and position.

    >>> from coordwire.segments import OffsetIndex, OffsetPosition
    >>> index = OffsetIndex(OffsetIndex.pack([OffsetPosition(107, 4096)], base_offset=100), base_offset=100)
    >>> index.lookup(110)
    OffsetPosition(offset=107, position=4096)
    >>> index
    <OffsetIndex of base offset 100: 1 entry>
    """

    entry = Struct(">ii")

    def _value(self, row: tuple[int, ...]) -> OffsetPosition:
        return OffsetPosition(self.base_offset + row[0], row[1])

    def lookup(self, offset: int) -> OffsetPosition | None:
        """The last entry at or before `offset`; None if there is none (begin at the file's start)."""
        at = bisect_right(self, offset, key=lambda entry: entry.offset)
        return self[at - 1] if at else None

    @staticmethod
    def pack(entries: Iterable[OffsetPosition], base_offset: int) -> bytes:
        """The file's bytes. Raises `OutOfRange` for an offset or position beyond 31 bits from the base."""
        return OffsetIndex._pack((offset - base_offset, position) for offset, position in entries)


class TimeIndex(_Index[TimestampOffset]):
    """The `.timeindex` file: entries in rising order of timestamp, and of offset.

    >>> from coordwire.segments import TimeIndex, TimestampOffset
    >>> index = TimeIndex(TimeIndex.pack([TimestampOffset(1_000, 107)], base_offset=100), base_offset=100)
    >>> index.lookup(1_500)
    TimestampOffset(timestamp=1000, offset=107)
    """

    entry = Struct(">qi")

    def _entries(self) -> int:
        return 1 if self.size == self.entry.size else super()._entries()

    def _value(self, row: tuple[int, ...]) -> TimestampOffset:
        return TimestampOffset(row[0], self.base_offset + row[1])

    def lookup(self, timestamp: int) -> TimestampOffset | None:
        """The last entry at or before `timestamp` (ms); None if there is none."""
        at = bisect_right(self, timestamp, key=lambda entry: entry.timestamp)
        return self[at - 1] if at else None

    @staticmethod
    def pack(entries: Iterable[TimestampOffset], base_offset: int) -> bytes:
        """The file's bytes. Raises `OutOfRange` for an offset beyond 31 bits from the base."""
        return TimeIndex._pack((timestamp, offset - base_offset) for timestamp, offset in entries)


class TransactionIndex(_Index[AbortedTransaction]):
    """The `.txnindex` file: entries in rising order of `last_offset`. Its offsets are absolute.

    >>> from coordwire.segments import AbortedTransaction, TransactionIndex
    >>> entry = AbortedTransaction(producer_id=6, first_offset=3, last_offset=9, last_stable_offset=9)
    >>> list(TransactionIndex(TransactionIndex.pack([entry]), base_offset=0)) == [entry]
    True
    """

    entry = Struct(">hqqqq")

    def _value(self, row: tuple[int, ...]) -> AbortedTransaction:
        version, producer_id, first, last, stable = row
        return AbortedTransaction(producer_id, first, last, stable, version)

    @staticmethod
    def pack(entries: Iterable[AbortedTransaction]) -> bytes:
        """The file's bytes. Raises `OutOfRange` for a number beyond its type."""
        return TransactionIndex._pack(
            (
                entry.version,
                entry.producer_id,
                entry.first_offset,
                entry.last_offset,
                entry.last_stable_offset,
            )
            for entry in entries
        )
