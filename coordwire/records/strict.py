"""The exact reading of a v2 batch's records: of what `read_records` refuses.

Strategy: field by field, each bounded by its record, each refusal with its reason, place and path. Rules:
over-long varints are read as long as they are bounded (5 bytes, 10 for timestamps): brokers store them. One
that overflows its type is refused, where Java would drop its high bits and go on with another number.
Offsets and timestamps wrap at 64 bits, as Java's do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from coordwire.errors import CorruptBatch, counted
from coordwire.records.compression import Buffer
from coordwire.records.record import Header, Record

LEAST = 7
"""Bytes of the smallest record: length, attributes, two deltas, two lengths, a count."""


def wrap64(number: int) -> int:
    """The number as a Java long."""
    return ((number + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


class Origin(NamedTuple):
    """The place of records' bytes in the caller's buffer.

    origin: of their first byte; packed: they were compressed there, so that `origin` is all that can be said
    of places, and the reason gives the place in the decompressed bytes.
    """

    origin: int
    packed: bool

    def refusal(self, reason: str, pos: int, path: str) -> CorruptBatch:
        """The error for the bytes at `pos` of the records."""
        if self.packed:
            return CorruptBatch(
                f"{reason} ({counted(pos, 'byte')} into the decompressed records)", self.origin, path
            )
        return CorruptBatch(reason, self.origin + pos, path)


class StrictReader:
    """The records in `data`, whose batch states `count` of them."""

    def __init__(self, data: Buffer, count: int, place: Origin) -> None:
        self.data = data
        self.count = count
        self.place = place
        self.pos = 0
        self.end = len(data)
        self.path = "records"

    def refusal(self, reason: str, pos: int, field: str = "") -> CorruptBatch:
        """The error for what is at `pos`, in a field of the record that is being read."""
        return self.place.refusal(reason, pos, self.path + field)

    def count_refusal(self) -> CorruptBatch | None:
        """The error for an impossible count, before anything is read; None for none."""
        if self.count < 0:
            return self.refusal(f"a batch can't have {counted(self.count, 'record')}", 0)
        if self.count * LEAST > len(self.data):
            return self.refusal(
                f"{counted(self.count, 'record')} claimed, {counted(len(self.data), 'byte')} left", 0
            )
        return None

    def read(self, pos: int, index: int, base_offset: int, base_timestamp: int) -> Iterator[Record]:
        """The records from number `index` at `pos` on. Raises `CorruptBatch` where one is malformed."""
        self.pos = pos
        for number in range(index, self.count):
            self.path = f"records[{number}]"
            yield self._record(base_offset, base_timestamp)
        self.finish(self.pos)

    def finish(self, pos: int) -> None:
        """Refuse bytes after the last record. Raises `CorruptBatch`."""
        remaining = len(self.data) - pos
        if remaining:
            raise self.place.refusal(
                f"{counted(remaining, 'byte')} after the last of {counted(self.count, 'record')}",
                pos,
                "records",
            )

    def _record(self, base_offset: int, base_timestamp: int) -> Record:
        self.end = len(self.data)
        start = self.pos
        if start == self.end:
            raise self.refusal(f"the bytes end before this one of {counted(self.count, 'record')}", start)
        size = self._varint("")
        if size < 0 or size > self.end - self.pos:
            raise self.refusal(f"a record of {counted(size, 'byte')}, {self.end - self.pos} left", start)
        self.end = self.pos + size
        if not size:
            raise self.refusal("a record without its attributes", start)
        self.pos += 1
        timestamp = wrap64(base_timestamp + self._varint(".timestamp_delta", 64))
        offset = wrap64(base_offset + self._varint(".offset_delta"))
        key = self._bytes(".key")
        value = self._bytes(".value")
        headers = self._headers()
        if self.pos != self.end:
            raise self.refusal(
                f"{counted(self.end - self.pos, 'byte')} after the record's last field", self.pos
            )
        return Record(offset, timestamp, key, value, headers)

    def _headers(self) -> tuple[Header, ...]:
        start = self.pos
        count = self._varint(".headers")
        if count < 0:
            raise self.refusal(f"a record can't have {counted(count, 'header')}", start, ".headers")
        if count * 2 > self.end - self.pos:
            remaining = self.end - self.pos
            raise self.refusal(
                f"{counted(count, 'header')}, {counted(remaining, 'byte')} left", start, ".headers"
            )
        headers = []
        for number in range(count):
            start, field = self.pos, f".headers[{number}]"
            key = self._bytes(f"{field}.key")
            if key is None:
                raise self.refusal("a header's key can't be null", start, f"{field}.key")
            headers.append((key.decode("utf-8", "surrogateescape"), self._bytes(f"{field}.value")))
        return tuple(headers)

    def _bytes(self, field: str) -> bytes | None:
        start = self.pos
        size = self._varint(field)
        if size == -1:
            return None
        remaining = self.end - self.pos
        if size < 0:
            raise self.refusal(f"a length can't be {size}", start, field)
        if size > remaining:
            raise self.refusal(
                f"a field of {counted(size, 'byte')}, {remaining} left in the record", start, field
            )
        self.pos += size
        return bytes(self.data[self.pos - size : self.pos])

    def _varint(self, field: str, bits: int = 32) -> int:
        start = self.pos
        value = 0
        for shift in range(0, 35 if bits == 32 else 70, 7):
            if self.pos == self.end:
                raise self.refusal("the bytes end inside a varint", start, field)
            byte = self.data[self.pos]
            self.pos += 1
            value |= (byte & 127) << shift
            if byte < 128:
                break
        else:
            raise self.refusal(f"a varint of {bits} bits is too long", start, field)
        if value >> bits:
            reason = f"a varint overflows {bits} bits (Java drops the high ones)"
            raise self.refusal(reason, start, field)
        return (value >> 1) ^ -(value & 1)
