"""One record, and the fast reading of those of a v2 batch.

Strategy: `read_records` runs straight down the bytes with the short varints inlined and one check a record,
at its end: lengths only ever move the position forward, so a record that ends where it says read nothing
outside itself. Rules: whatever looks wrong or merely unusual (an over-long varint, a number near the end of
its type) raises, and `coordwire.records.strict` reads the same bytes again, exactly, and words the error.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordwire._dataclasses import dataclass
from coordwire.codec.primitives import Refused, new

Header = tuple[str, bytes | None]


@dataclass(slots=True)
class Record:
    """One record, as it is read and as it is written.

    offset: its place in the partition; -1 when writing for the one after the record before it.
    timestamp: ms since 1970 UTC, -1 for none; under log-append time the batch's `max_timestamp`.
    key, value: bytes, or None for null (a null value deletes the key from a compacted topic).
    headers: (key, value) pairs in their order; a key whose bytes aren't UTF-8 carries them as surrogates
    (PEP 383) and is written back to the same bytes. Magic 2 only (KIP-82).
    """

    offset: int = -1
    timestamp: int = -1
    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[Header] = ()


SANE = 1 << 62
"""Bases below it can't overflow 64 bits by what the fast path adds to them."""

# Zigzag: the number that a varint's only byte encodes.
_SHORT = tuple((byte >> 1) ^ -(byte & 1) for byte in range(128))


def _long(data: bytes, pos: int, value: int) -> tuple[int, int]:
    """Go on after two bytes (14 bits) of a varint of 32 bits: raw value and position after it."""
    for shift in (14, 21, 28):
        byte = data[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value >> 32:
                raise Refused
            return value, pos
    raise Refused


def _longer(data: bytes, pos: int, value: int) -> tuple[int, int]:
    """The same for one of 64 bits, of at most 8 bytes."""
    for shift in (14, 21, 28, 35, 42, 49):
        byte = data[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, pos
    raise Refused


def _read_headers(
    data: bytes, pos: int, end: int, count: int, names: dict[bytes, str]
) -> tuple[tuple[Header, ...], int]:
    """The headers after their raw count, and the position after them."""
    if count > 127:
        byte = data[pos]
        pos += 1
        count = count & 127 | (byte & 127) << 7
        if byte > 127:
            count, pos = _long(data, pos, count)
    if count & 1 or count > end - pos:  # each takes two bytes, and `count` is twice their number
        raise Refused
    headers: list[Header] = []
    for _ in range(count >> 1):
        size = data[pos]
        pos += 1
        if size & 129:  # long or odd
            if size > 127:
                byte = data[pos]
                pos += 1
                if byte < 128:
                    size += byte - 1 << 7
                else:
                    size, pos = _long(data, pos, size & 127 | (byte & 127) << 7)
            if size & 1:
                raise Refused
        start = pos
        pos += size >> 1
        raw = data[start:pos]
        name = names.get(raw)
        if name is None:
            name = names[raw] = raw.decode("utf-8", "surrogateescape")
        size = data[pos]
        pos += 1
        if size == 1:
            headers.append((name, None))
            continue
        if size & 129:  # long or odd
            if size > 127:
                byte = data[pos]
                pos += 1
                if byte < 128:
                    size += byte - 1 << 7
                else:
                    size, pos = _long(data, pos, size & 127 | (byte & 127) << 7)
            if size & 1:
                raise Refused
        start = pos
        pos += size >> 1
        headers.append((name, data[start:pos]))
    return tuple(headers), pos


def read_records(
    data: bytes, pos: int, count: int, base_offset: int, base_timestamp: int
) -> tuple[list[Record], int]:
    """Read `count` records of magic 2: them, and the position after the last.

    Raises (`Refused`, `IndexError`) whenever in doubt; nothing of the result is then to be used. Both bases
    lie within ±`SANE`.
    """
    records: list[Record] = []
    append = records.append
    short = _SHORT
    names: dict[bytes, str] = {}
    for _ in range(count):
        size = data[pos]
        pos += 1
        if size & 129:  # long or odd
            if size > 127:
                byte = data[pos]
                pos += 1
                if byte < 128:
                    size += byte - 1 << 7
                else:
                    size, pos = _long(data, pos, size & 127 | (byte & 127) << 7)
            if size & 1:
                raise Refused
        end = pos + (size >> 1)
        record = new(Record)
        number = data[pos + 1]  # the attributes' byte before it says nothing yet, and Java ignores it too
        pos += 2
        if number < 128:
            record.timestamp = base_timestamp + short[number]
        else:
            byte = data[pos]
            pos += 1
            if byte < 128:
                number += byte - 1 << 7
            else:
                number, pos = _longer(data, pos, number & 127 | (byte & 127) << 7)
            record.timestamp = base_timestamp + ((number >> 1) ^ -(number & 1))
        number = data[pos]
        pos += 1
        if number < 128:
            record.offset = base_offset + short[number]
        else:
            byte = data[pos]
            pos += 1
            if byte < 128:
                number += byte - 1 << 7
            else:
                number, pos = _long(data, pos, number & 127 | (byte & 127) << 7)
            record.offset = base_offset + ((number >> 1) ^ -(number & 1))
        size = data[pos]
        pos += 1
        if size == 1:
            record.key = None
        else:
            if size & 129:  # long or odd
                if size > 127:
                    byte = data[pos]
                    pos += 1
                    if byte < 128:
                        size += byte - 1 << 7
                    else:
                        size, pos = _long(data, pos, size & 127 | (byte & 127) << 7)
                if size & 1:
                    raise Refused
            start = pos
            pos += size >> 1
            record.key = data[start:pos]
        size = data[pos]
        pos += 1
        if size == 1:
            record.value = None
        else:
            if size & 129:  # long or odd
                if size > 127:
                    byte = data[pos]
                    pos += 1
                    if byte < 128:
                        size += byte - 1 << 7
                    else:
                        size, pos = _long(data, pos, size & 127 | (byte & 127) << 7)
                if size & 1:
                    raise Refused
            start = pos
            pos += size >> 1
            record.value = data[start:pos]
        size = data[pos]
        pos += 1
        if size:
            record.headers, pos = _read_headers(data, pos, end, size, names)
        else:
            record.headers = ()
        if pos != end:
            raise Refused
        append(record)
    if pos > len(data):
        raise Refused
    return records, pos
