"""The writing of message sets of magic 0 and 1, as brokers before 0.11 and clients of their time did.

Rules, as Kafka's builder has them: without a codec each message has its own entry at its offset; with one, a
wrapper without a key holds them at the last one's offset, inside which magic 1 counts from the first.
"""

from __future__ import annotations

__all__ = ["MessageSetWriter"]

from collections.abc import Sequence
from struct import Struct
from zlib import crc32

from coordwire.errors import NotInVersion, OutOfRange
from coordwire.records.batch import APPEND_TIME
from coordwire.records.batch_writer import exact
from coordwire.records.body_writer import INT32, INT64
from coordwire.records.compression.codecs import Codec, compress
from coordwire.records.record import Record

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
