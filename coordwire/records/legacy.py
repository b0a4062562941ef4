"""Message sets of magic 0 and 1: what Kafka wrote before record batches (0.8 to 0.10; KIP-31, KIP-32).

Layout: offset, size, CRC-32 of what follows, magic, attributes, in magic 1 a timestamp, then key and value
after int32 lengths. Strategy: an uncompressed message is a batch of its own; a compressed one is a wrapper
whose value is a message set. Inside a wrapper of magic 0 offsets are absolute; of magic 1 they are relative,
so that the wrapper's own, that of its last message, gives the others. Rules: as Kafka's reader, a wrapper at
offset 0 leaves the inner offsets as they are (librdkafka produced such), and inner checksums aren't compared,
as the wrapper's covers them. Unlike it: a message cut short at the wrapper's end is refused, not passed over,
as are lengths below -1 and bytes after the value.

The writing of message sets of magic 0 and 1, as brokers before 0.11 and clients of their time did.

Rules, as Kafka's builder has them: without a codec each message has its own entry at its offset; with one, a
wrapper without a key holds them at the last one's offset, inside which magic 1 counts from the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from zlib import crc32

from coordwire.errors import CoordwireError, CorruptBatch, NotInVersion, OutOfRange, counted
from coordwire.records.batch import (
    APPEND_TIME,
    CODEC_BITS,
    CREATE_TIME,
    LOG_APPEND_TIME,
    NO_TIMESTAMP_TYPE,
    RecordBatch,
    chunks,
)
from coordwire.records.batch_writer import exact
from coordwire.records.body_writer import INT32, INT64
from coordwire.records.compression import CODECS, Codec, compress, decompress
from coordwire.records.record import Record
from coordwire.records.strict import Origin, wrap64

ENTRY = Struct(">qi")
"""Offset and size of what follows."""

MESSAGE = Struct(">qiIbB")
"""The head of both magics, up to the attributes."""

OVERHEAD = (26, 34)
"""Bytes of the smallest message by magic, both lengths included."""

_SMALLEST = (Struct(">qi4xbBii"), Struct(">qi4xbB8xii"))
"""The smallest messages of each magic without checksum and timestamp. A key moves the last length."""

_INT64 = Struct(">q").unpack_from
_INT32 = Struct(">i").unpack_from
_CRC_AT, _CRC_FROM = 12, 16
_BITS = (CODEC_BITS, CODEC_BITS | APPEND_TIME)
_NONE = -1
_ZSTD = 4


class LegacyBatch(RecordBatch):
    """A message of magic 0 or 1 with all that is in it: itself, or those that it wraps.

    What message sets don't have is as in a batch without it: producer id, epochs and sequences are -1.
    `last_offset` is its own offset; `base_offset` of a wrapper has to decompress it and raises as iterating.

        >>> from coordwire.records import Record, batches, encode_batch
        >>> next(batches(encode_batch([Record(0, 5, b"k", b"v")], magic=1)))
        <LegacyBatch of magic 1 at byte 0: 36 bytes, last offset 0, none>
    """

    __slots__ = ()
    _attributes_at = 17

    def _unpack(self, view: memoryview) -> tuple[int, ...]:
        if len(view) < OVERHEAD[0]:
            reason = f"a message needs at least {OVERHEAD[0]} bytes, got {len(view)}"
            raise CorruptBatch(reason, self.position, "length")
        offset, size, crc, magic, attributes = MESSAGE.unpack_from(view)
        if not 0 <= magic <= 1:
            raise CorruptBatch(
                f"expected a message's magic of 0 or 1, got {magic}", self.position + 16, "magic"
            )
        stamp = _INT64(view, MESSAGE.size)[0] if magic else _NONE
        bits = attributes & _BITS[magic]
        return (offset, size, _NONE, magic, crc, bits, 0, stamp, stamp, _NONE, _NONE, _NONE, 1)

    @property
    def base_offset(self) -> int:
        if self.attributes & CODEC_BITS:
            for record in self._wrapped(self.payload(), False):
                return record.offset
        return self._head[0]

    @property
    def timestamp_type(self) -> str:
        if not self.magic:
            return NO_TIMESTAMP_TYPE
        return LOG_APPEND_TIME if self.attributes & APPEND_TIME else CREATE_TIME

    @property
    def count(self) -> int | None:
        return None if self.attributes & CODEC_BITS else 1

    def check(self) -> None:
        computed = crc32(self._view[_CRC_FROM:])
        if computed != self.checksum:
            reason = f"the CRC-32 is {computed:#010x}, the message says {self.checksum:#010x}"
            raise CorruptBatch(reason, self.position + _CRC_AT, "checksum")

    def payload(self) -> bytes:
        """The message set inside a wrapper."""
        self.check()
        place = Origin(self.position, False)
        start, size = MESSAGE.size + (8 if self.magic else 0), len(self._view)
        if self.attributes & CODEC_BITS == _ZSTD:
            reason = f"magic {self.magic} has no zstd"
            raise CorruptBatch(reason, self.position + self._attributes_at, "attributes")
        codec = self.codec
        _, pos = _field(self._view, start, size, place, "key")
        value, end = _field(self._view, pos, size, place, "value")
        _ended(end, size, place, "")
        if value is None:
            raise place.refusal("a compressed message can't have a null value", pos, "value")
        return decompress(codec, value, magic=self.magic, offset=self.position + pos + 4)

    def _chunks(self, create_time: bool) -> Iterator[list[Record]]:
        if self.attributes & CODEC_BITS:
            yield from chunks(self._wrapped(self.payload(), create_time))
            return
        self.check()
        place = Origin(self.position, False)
        yield [_message(self._view, 0, len(self._view), self.magic, self._head[0], place, "records[0]")]

    def _wrapped(self, data: bytes, create_time: bool) -> Iterator[Record]:
        """The records of the message set in a wrapper."""
        place = Origin(self.position + MESSAGE.size, True)
        base = 0
        if self.magic:
            base = self._base(data, place)
        stamp = self.max_timestamp if self.attributes & APPEND_TIME and not create_time else None
        number = 0
        for pos, offset, end in _entries(data, place):
            path = f"records[{number}]"
            inner = _magic(data, pos, place, path)
            if inner != self.magic:
                reason = f"a message of magic {inner} in a wrapper of magic {self.magic}"
                raise place.refusal(reason, pos + 16, f"{path}.magic")
            if data[pos + 17] & CODEC_BITS:
                raise place.refusal("a compressed message inside another", pos + 17, f"{path}.attributes")
            record = _message(data, pos, end, inner, wrap64(base + offset), place, path)
            if stamp is not None:
                record.timestamp = stamp
            yield record
            number += 1
        if not number:
            raise place.refusal("a compressed message without any inside", 0, "records")

    def _base(self, data: bytes, place: Origin) -> int:
        """The offset that the inner offsets of magic 1 count from."""
        last = 0
        for _, offset, _ in _entries(data, place, strict=False):
            last = offset
        outer = self._head[0]
        if outer and outer < last:
            raise place.refusal(
                f"the wrapper's offset {outer} is below its last message's {last}", 0, "offset"
            )
        return outer - last if outer else 0


def message_count(view: memoryview) -> int | None:
    """How many records a `LegacyBatch` of these bytes has, without making them; None where iterating it is
    refused, or needs a codec's library that is not installed."""
    if len(view) < OVERHEAD[0]:
        return None
    outer, _, checksum, magic, attributes = MESSAGE.unpack_from(view)
    codec = attributes & CODEC_BITS
    if not 0 <= magic <= 1 or codec >= _ZSTD or crc32(view[_CRC_FROM:]) != checksum:
        return None
    if not codec:
        return _inner_count(view, magic, 0)
    place, start = Origin(0, False), OVERHEAD[magic] - 8
    try:
        _, pos = _field(view, start, len(view), place, "")
        value, end = _field(view, pos, len(view), place, "")
        if value is None or end != len(view):
            return None
        return _inner_count(decompress(CODECS[codec], value, magic=magic), magic, magic and outer)
    except CoordwireError:
        return None


def _inner_count(data: bytes | memoryview, magic: int, outer: int) -> int | None:
    """How many messages, all of this magic and none compressed, are in `data` from end to end. outer: the
    offset that the last one's isn't beyond; 0 for any."""
    unpack, smallest, size = _SMALLEST[magic].unpack_from, OVERHEAD[magic], len(data)
    pos = number = offset = 0
    while size - pos >= smallest:
        offset, length, inner, attributes, key, value = unpack(data, pos)
        start = pos + smallest
        if key > 0:
            start += key
            if start > size:
                return None
            value = _INT32(data, start - 4)[0]
        if inner != magic or attributes & CODEC_BITS or key < -1 or value < -1:
            return None
        end = start + value if value > 0 else start
        if end != pos + ENTRY.size + length or end > size:
            return None
        pos = end
        number += 1
    return None if pos < size or not number or 0 != outer < offset else number


def _entries(data: bytes, place: Origin, *, strict: bool = True) -> Iterator[tuple[int, int, int]]:
    """The messages of an inner set: position, offset, end. strict=False stops at a message that is cut
    short."""
    pos, number, size = 0, 0, len(data)
    while pos < size:
        path = f"records[{number}]"
        reason = ""
        if size - pos < ENTRY.size:
            reason = f"a message needs at least {ENTRY.size} bytes, {size - pos} left"
        else:
            offset, length = ENTRY.unpack_from(data, pos)
            end = pos + ENTRY.size + length
            if length < OVERHEAD[0] - ENTRY.size:
                reason = f"a message can't have {counted(length, 'byte')}"
            elif end > size:
                reason = f"a message of {length} bytes, {size - pos - ENTRY.size} left"
        if reason:
            if strict:
                raise place.refusal(reason, pos, path)
            return
        yield pos, offset, end
        pos = end
        number += 1


def _magic(data: bytes, pos: int, place: Origin, path: str) -> int:
    magic = data[pos + 16]
    if magic > 1:
        raise place.refusal(f"expected a message's magic of 0 or 1, got {magic}", pos + 16, f"{path}.magic")
    return magic


def _message(
    data: bytes | memoryview, pos: int, end: int, magic: int, offset: int, place: Origin, path: str
) -> Record:
    """The message from `pos` to `end`, the latter known to lie after its attributes."""
    timestamp = -1
    start = pos + MESSAGE.size
    if magic:
        if end - pos < OVERHEAD[1]:
            reason = f"a message of magic 1 can't have {end - pos - ENTRY.size} bytes"
            raise place.refusal(reason, pos, path)
        timestamp = _INT64(data, start)[0]
        start += 8
    key, start = _field(data, start, end, place, f"{path}.key")
    value, start = _field(data, start, end, place, f"{path}.value")
    _ended(start, end, place, path)
    return Record(offset, timestamp, key, value)


def _field(
    data: bytes | memoryview, pos: int, end: int, place: Origin, path: str
) -> tuple[bytes | None, int]:
    """Bytes after their int32 length, null for -1, and the position after them."""
    if end - pos < 4:
        raise place.refusal(f"a length needs 4 bytes, {end - pos} left", pos, path)
    size = _INT32(data, pos)[0]
    start = pos + 4
    if size == -1:
        return None, start
    if size < 0:
        raise place.refusal(f"a length can't be {size}", pos, path)
    if size > end - start:
        raise place.refusal(
            f"a field of {counted(size, 'byte')}, {end - start} left in the message", pos, path
        )
    return bytes(data[start : start + size]), start + size


def _ended(pos: int, end: int, place: Origin, path: str) -> None:
    if pos != end:
        raise place.refusal(f"{counted(end - pos, 'byte')} after the message's value", pos, path)


# --- writing ---


_HEAD = Struct(">bBq")
_ENTRY = Struct(">qiI")
_LENGTH = Struct(">i")


def _sized(value: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if value is None else _LENGTH.pack(len(value)) + value


def _entry(
    offset: int, magic: int, attributes: int, timestamp: int, key: bytes | None, value: bytes | None
) -> bytes:
    head = _HEAD.pack(magic, attributes, timestamp)
    body = (head if magic else head[:2]) + _sized(key) + _sized(value)
    return _ENTRY.pack(offset, 4 + len(body), crc32(body)) + body


class MessageSetWriter:
    """The messages of one set of magic 0 or 1, as they come."""

    overhead = 0

    def __init__(self, magic: int, base_offset: int | None) -> None:
        self.magic = magic
        self.base_offset = base_offset
        self.next_offset = 0 if base_offset is None else base_offset
        self.count = 0
        self.size = 0
        self.latest = -1
        self.records: list[Record] = []

    def add(self, records: Sequence[Record], room: int = -1) -> bool:
        """Add `records` after the others, all of them or none. Raises `EncodeError`.

        room: the bytes that they may take, unless they are the first, -1 for any; False if they take more.
        """
        plain = exact(records, self.count, self.next_offset if self.count else self.base_offset)
        offset, size = self.next_offset, 0
        for number, record in enumerate(plain, self.count):
            if record.headers:
                raise NotInVersion(f"magic {self.magic} has no headers", f"records[{number}].headers")
            offset = record.offset = offset if record.offset == -1 else record.offset
            if offset >= INT64:
                raise OutOfRange(f"{offset} is beyond 64 bits", f"records[{number}].offset")
            size += (34 if self.magic else 26) + len(record.key or b"") + len(record.value or b"")
            if size + self.size >= INT32 - 64:
                raise OutOfRange("too large for a message set", f"records[{number}]")
            offset += 1
        if self.count and -1 < room < size:
            return False
        if plain and self.base_offset is None:
            self.base_offset = plain[0].offset
        self.records += plain
        self.count += len(plain)
        self.size += size
        self.next_offset = offset
        self.latest = max([self.latest] + [record.timestamp for record in plain])
        return True

    def append(self, record: Record, limit: int | None) -> bool:
        """The same for one record; limit: the bytes of the whole set, or None for any."""
        return self.add((record,), -1 if limit is None else max(0, limit - self.size))

    def finish(self, codec: Codec, level: int | None, attributes: int, max_timestamp: int | None) -> bytes:
        """The whole set; nothing for no records. Raises `NotInVersion` for a codec that came later."""
        if codec == "zstd":
            raise NotInVersion(f"magic {self.magic} has no zstd", "codec")
        if not self.records:
            return b""
        append = attributes & APPEND_TIME if self.magic else 0
        latest = self.latest if max_timestamp is None else max_timestamp
        relative = (self.base_offset or 0) if self.magic and codec != "none" else 0
        entries = b"".join(
            _entry(
                record.offset - relative,
                self.magic,
                append,
                latest if append else record.timestamp,
                record.key,
                record.value,
            )
            for record in self.records
        )
        if codec == "none":
            return entries
        packed = compress(codec, entries, level, magic=self.magic)
        bits = append | attributes & 7
        return _entry(self.records[-1].offset, self.magic, bits, latest, None, packed)
