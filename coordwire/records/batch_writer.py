"""The writing of a v2 batch: its records in `coordwire.records.body_writer` or in the native half, its header
here.

Rules: a body accepts plain values only and otherwise returns None; `exact` then goes over the same records,
converts unusual values (a bytearray to bytes) and raises the error for all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from coordwire.errors import OutOfRange, WrongType, counted
from coordwire.records import backend
from coordwire.records.batch import CODEC_BITS, CRC_FROM, HEADER
from coordwire.records.body_writer import INT32, INT64, BodyWriter
from coordwire.records.compression import Codec, compress
from coordwire.records.record import Header, Record

LOG_OVERHEAD = 12
_HEAD, _REST = Struct(">qiib"), Struct(">hiqqqhii")  # what is before the checksum, and after it


class BatchWriter:
    """The records of one batch of magic 2, as they come, and its header after them."""

    overhead = HEADER.size

    def __init__(self, base_offset: int | None, base_timestamp: int | None) -> None:
        make = BodyWriter if backend.codec is None else backend.codec.body
        self.body = make(base_offset, base_timestamp)

    @property
    def count(self) -> int:
        """The number of records."""
        return self.body.count

    @property
    def size(self) -> int:
        """The bytes of the records, uncompressed."""
        return self.body.size

    def add(self, records: tuple[Record, ...], room: int = -1) -> bool:
        """Write `records` after the others, all of them or none. Raises `EncodeError`.

        room: the bytes that they may take, unless they are the first, -1 for any; False if they take more.
        """
        if not records:
            return True
        fit = self.body.add(records, room)
        return self._exactly(records, room) if fit is None else fit

    def append(self, record: Record, limit: int | None) -> bool:
        """The same for one record; limit: the bytes of the whole batch, header included, or None for any.

        A caller with many records calls `body.append` first, and this only if that returns None.
        """
        room = -1 if limit is None else min(max(0, limit - HEADER.size - self.size), INT64 - 1)
        return self._exactly((record,), room)

    def _exactly(self, records: tuple[Record, ...], room: int) -> bool:
        base = self.body.base_offset
        records = exact(records, self.count, base if base is None else base + self.body.next_delta)
        self._deltas(records)
        fit = self.body.add(records, room)
        if fit is None:
            raise OutOfRange("too large for a batch", "records")
        return fit

    def _bases(self, first: Record) -> tuple[int, int]:
        base, stamp = self.body.base_offset, self.body.base_timestamp
        return max(first.offset, 0) if base is None else base, first.timestamp if stamp is None else stamp

    def _deltas(self, records: Sequence[Record]) -> None:
        """Raise `OutOfRange` for a record too far from the first, in offset, time or size."""
        base_offset, base_timestamp = self._bases(records[0])
        offset = base_offset + self.body.next_delta
        for number, record in enumerate(records, self.count):
            path = f"records[{number}]"
            if record.offset != -1:
                offset = record.offset
            if offset - base_offset >= INT32:
                reason = f"{offset} is beyond 31 bits from the batch's base offset {base_offset}"
                raise OutOfRange(reason, f"{path}.offset")
            if not -INT64 <= record.timestamp - base_timestamp < INT64:
                reason = (
                    f"{record.timestamp} is beyond 64 bits from the batch's base timestamp {base_timestamp}"
                )
                raise OutOfRange(reason, f"{path}.timestamp")
            if (len(record.key or b"") + len(record.value or b"")) >= INT32 - LOG_OVERHEAD - HEADER.size:
                raise OutOfRange("too large for a batch", path)
            offset += 1

    def finish(
        self,
        codec: Codec,
        level: int | None,
        attributes: int,
        epoch: int,
        last_offset: int | None,
        max_timestamp: int | None,
        producer: tuple[int, int, int],
    ) -> bytes:
        """The whole batch. Raises `OutOfRange` if it is larger than a batch can be."""
        count = self.body.count
        base = self.body.base_offset or 0
        least = base + self.body.next_delta - 1
        last = last_offset
        if last is None:
            last = least if count else base
        if not least <= last < base + INT32:
            raise OutOfRange(
                f"{last} can't be the last offset of {counted(count, 'record')} from {base} on", "last_offset"
            )
        if last >= INT64:
            raise OutOfRange(f"{last} is beyond 64 bits", "last_offset")
        stamp = -1 if self.body.base_timestamp is None else self.body.base_timestamp
        latest = self.body.latest if max_timestamp is None else max_timestamp
        packed = None
        if not count:  # as compaction leaves it: nothing to decompress
            attributes &= ~CODEC_BITS
        elif codec != "none":
            packed = compress(codec, self.body.records(), level)
        length = HEADER.size - LOG_OVERHEAD + (self.size if packed is None else len(packed))
        if length >= INT32 - LOG_OVERHEAD:
            raise OutOfRange(f"a batch can't have {length} bytes")
        head = _HEAD.pack(base, length, epoch, 2)
        tail = _REST.pack(attributes, last - base, stamp, latest, *producer, count)
        return self.body.batch(head, tail, packed)


assert _HEAD.size + 4 == CRC_FROM


def exact(records: Sequence[Record], first: int, offset: int | None) -> tuple[Record, ...]:
    """The records with plain values, the first being number `first` of its batch.

    offset: the least that it may have, None for any. Raises `WrongType`, or `OutOfRange` for a number beyond
    its type and for offsets that don't rise.
    """
    plain = []
    for number, record in enumerate(records, first):
        path = f"records[{number}]"
        if not isinstance(record, Record):
            raise WrongType(f"expected Record, got {type(record).__name__}", path)
        place = integer(record.offset, 64, f"{path}.offset")
        if place < -1 or (place >= 0 and offset is not None and place < offset):
            raise OutOfRange(f"expected offset {offset or 0} or above, got {place}", f"{path}.offset")
        offset = (offset or 0) + 1 if place == -1 else place + 1
        stamp = integer(record.timestamp, 64, f"{path}.timestamp")
        key, value = _bytes(record.key, f"{path}.key"), _bytes(record.value, f"{path}.value")
        plain.append(Record(place, stamp, key, value, _exact_headers(record.headers, path)))
    return tuple(plain)


def _exact_headers(headers: object, path: str) -> tuple[Header, ...]:
    if not isinstance(headers, (list, tuple)):
        raise WrongType(f"expected list or tuple, got {type(headers).__name__}", f"{path}.headers")
    plain: list[Header] = []
    for number, pair in enumerate(headers):
        header_path = f"{path}.headers[{number}]"
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise WrongType("expected a pair of key and value", header_path)
        key, value = pair
        if not isinstance(key, str):
            raise WrongType(f"expected str, got {type(key).__name__}", f"{header_path}.key")
        try:
            key.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            raise OutOfRange(f"not encodable as UTF-8: {key[error.start]!a}", f"{header_path}.key") from None
        plain.append((str(key), _bytes(value, f"{header_path}.value")))
    return tuple(plain)


def _bytes(value: object, path: str) -> bytes | None:
    if value is None or value.__class__ is bytes:
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise WrongType(f"expected bytes, got {type(value).__name__}", path)


def integer(value: object, bits: int, path: str) -> int:
    """The value as an int of so many bits, signed. Raises `WrongType` or `OutOfRange`."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise WrongType(f"expected int, got {type(value).__name__}", path)
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise OutOfRange(f"{value} is beyond {bits} bits", path)
    return int(value)
