"""The records of a v2 batch as Python writes them.

Strategy: `writing` appends the pieces of each record to one list, joined once, short varints from a table. It
is a generator, so that its local variables stay for the next record, whether records come one by one or all
at once. Rules: it accepts plain values only, and raises for all others; `coordwire.records.batch_writer` goes
over the same records again and words the error.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from coordwire.codec.primitives import Refused, uvarint
from coordwire.records import backend
from coordwire.records.batch import HEADER
from coordwire.records.record import Header, Record

INT32, INT64 = 1 << 31, 1 << 63
PIECES = 8
"""Of a record."""

KNOWN = 4096
# Zigzag varints of the numbers from 0 on; a key and a value of fewer bytes find their length here.
_VARINTS = tuple(uvarint(number << 1) for number in range(KNOWN))
# What a record of so many bytes begins with: its length, and attributes that say nothing yet.
_HEADS = tuple(varint + b"\0" for varint in _VARINTS)


def _varint(number: int) -> bytes:
    if 0 <= number < KNOWN:
        return _VARINTS[number]
    return uvarint(number << 1 if number >= 0 else ~number << 1 | 1)


def _headers(headers: Sequence[Header], names: dict[str, bytes]) -> bytes:
    if headers.__class__ is not tuple and headers.__class__ is not list:
        raise Refused
    known, varints = KNOWN, _VARINTS
    size = len(headers)
    parts = [varints[size] if size < known else _varint(size)]
    for name, value in headers:
        key = names.get(name)
        if key is None:
            key = _name(name, names)
        if value is None:
            parts += (key, b"\x01")
        elif value.__class__ is bytes:
            size = len(value)
            parts += (key, varints[size] if size < known else _varint(size), value)
        else:
            raise Refused
    return b"".join(parts)


def _name(name: str, names: dict[str, bytes]) -> bytes:
    """A header's key after its length, cached."""
    if name.__class__ is not str:
        raise Refused
    if len(names) > KNOWN:
        names.clear()
    raw = name.encode("utf-8", "surrogateescape")
    names[name] = key = _varint(len(raw)) + raw
    return key


Written = tuple[int, int, int, int]
"""So far: how many records, their bytes, the delta of the next offset, the largest timestamp."""


def writing(
    parts: list[bytes], base_offset: int, base_timestamp: int, written: Written
) -> Generator[Written, Sequence[Record], None]:
    """Append the pieces of the records that it is sent to `parts`, `PIECES` each; start it with `next`.

    It goes on after what is `written`. Raises whenever in doubt, in the middle of what it was sent.
    """
    count, total, delta, latest = written
    offset = base_offset + delta
    names: dict[str, bytes] = {}
    extend = parts.extend
    known, varints, heads = KNOWN, _VARINTS, _HEADS
    low, high, most = -INT64, INT64, base_offset + INT32
    while True:
        records = yield count, total, offset - base_offset, latest
        for record in records:
            number, stamp = record.offset, record.timestamp
            if number.__class__ is not int or stamp.__class__ is not int:
                raise Refused
            if number != -1:
                if not offset <= number < high:
                    raise Refused
                offset = number
            if offset >= most or not low <= stamp < high:
                raise Refused
            if stamp > latest:
                latest = stamp
            number = stamp - base_timestamp
            if 0 <= number < known:
                time = varints[number]
            elif low <= number < high:
                time = _varint(number)
            else:
                raise Refused
            number = offset - base_offset
            place = varints[number] if number < known else _varint(number)
            key, value, headers = record.key, record.value, record.headers
            tail = _headers(headers, names) if headers else b"\0"
            size = 1 + len(time) + len(place) + len(tail)
            if key is None:
                key_size, key = b"\x01", b""
                size += 1
            elif key.__class__ is bytes:
                number = len(key)
                key_size = varints[number] if number < known else _varint(number)
                size += len(key_size) + number
            else:
                raise Refused
            if value is None:
                value_size, value = b"\x01", b""
                size += 1
            elif value.__class__ is bytes:
                number = len(value)
                value_size = varints[number] if number < known else _varint(number)
                size += len(value_size) + number
            else:
                raise Refused
            if size < known:
                head = heads[size]
            elif size < INT32:
                head = _varint(size) + b"\0"
            else:
                raise Refused
            extend((head, time, place, key_size, key, value_size, value, tail))
            total += len(head) + size - 1
            offset += 1
        count += len(records)


class BodyWriter:
    """The records of one batch of magic 2 as Python writes them; the native half has the same class.

    base_offset, base_timestamp: what the deltas count from, None until the first record sets it. count: of
    records; size: their bytes; next_delta: of the next offset; latest: the largest timestamp, -1 for none.
    """

    def __init__(self, base_offset: int | None, base_timestamp: int | None) -> None:
        self._bases = self._initial_bases = base_offset, base_timestamp
        self._written: Written = (0, 0, 0, -1)
        self._parts: list[bytes] = []
        self._send: Callable[[Sequence[Record]], Written] | None = None

    @property
    def base_offset(self) -> int | None:
        return self._bases[0]

    @property
    def base_timestamp(self) -> int | None:
        return self._bases[1]

    @property
    def count(self) -> int:
        return self._written[0]

    @property
    def size(self) -> int:
        return self._written[1]

    @property
    def next_delta(self) -> int:
        return self._written[2]

    @property
    def latest(self) -> int:
        return self._written[3]

    def add(self, records: Sequence[Record], room: int) -> bool | None:
        """Write all of `records` or none: True; False if they need more than `room` bytes; None if a value is
        not plain.

        room: -1 for any; the first records always fit.
        """
        return self._put(records, None if room < 0 else HEADER.size + self.size + room)

    def append(self, record: Record, limit: int | None) -> bool | None:
        """The same for one record; limit: the bytes of the whole batch, header included, or None for any."""
        return self._put((record,), limit)

    def _put(self, records: Sequence[Record], limit: int | None) -> bool | None:
        try:
            written = (self._send or self._start(records[0]))(records)
        except Exception:  # whatever it was: `exact` words it
            self._undo()
            return None
        if limit is not None and written[1] > limit - HEADER.size and self._written[0]:
            self._undo()
            return False
        self._written = written
        return True

    def _start(self, first: Record) -> Callable[[Sequence[Record]], Written]:
        base, stamp = self._bases
        base = max(first.offset, 0) if base is None else base
        stamp = first.timestamp if stamp is None else stamp
        self._bases = base, stamp
        started = writing(self._parts, base, stamp, self._written)
        next(started)
        self._send = started.send
        return self._send

    def _undo(self) -> None:
        """Drop the pieces of the last records, and restart the generator."""
        count = self.count
        del self._parts[PIECES * count :]
        self._send = None
        if not count:
            self._bases = self._initial_bases

    def records(self) -> bytes:
        """The records."""
        return b"".join(self._parts)

    def batch(self, head: bytes, tail: bytes, packed: bytes | None) -> bytes:
        """The batch: `head`, the checksum of what follows, `tail`, the records, or `packed` for them."""
        covered = b"".join((tail, *(self._parts if packed is None else (packed,))))
        return b"".join((head, backend.crc32c(covered).to_bytes(4), covered))
