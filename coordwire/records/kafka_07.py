"""Kafka 0.7's messages, of which its Produce requests, fetch results and log files consist.

Layout: int32 length, magic; in magic 1 attributes, whose two low bits are the codec (none, gzip, snappy);
CRC-32 of the payload, payload. No keys, no timestamps, and no offsets either: a message's offset is the byte
where it begins in its partition's log. A compressed message's payload is a message set. Magic 0 and 1 are
other layouts than those of 0.8, and nothing in the bytes distinguishes them: hence a reader of their own.

Rules, as 0.7's own reader has them: bits without a meaning are ignored, inner checksums are checked too, a
compressed message may hold none. Unlike it: a message cut short inside a compressed one is refused, not
passed over. Source: public descriptions of Kafka 0.7 and its `Message` and `ByteBufferMessageSet`.
"""

from __future__ import annotations

from coordwire.errors import counted

__all__ = ["Kafka07Batch", "batches", "encode_messages", "fetch"]

import re
from collections.abc import Callable, Iterable, Iterator
from struct import Struct
from typing import Any, Literal, overload
from zlib import crc32

from coordwire.errors import CorruptBatch, LimitExceeded, NotInVersion, OutOfRange, UnreadableRange, WrongType
from coordwire.records.batch import CODEC_BITS, NO_TIMESTAMP_TYPE, RecordBatch, chunks, restored
from coordwire.records.batch_reader import Batches, Buffer, OnError
from coordwire.records.compression import CODECS, Codec, compress, decompress
from coordwire.records.record import Record
from coordwire.records.resync import Search
from coordwire.records.strict import Origin

_LENGTH = Struct(">i")
_HEADS = (Struct(">ibI"), Struct(">ibBI"))
"""A message's head by magic: length, magic, in 1 attributes, checksum."""

_LEAST = tuple(head.size - _LENGTH.size for head in _HEADS)
_MAGIC_AT, _ATTRIBUTES_AT = 4, 5
_CODEC_MASK = 0x03
_LARGEST = 0x7FFFFFFF
_NONE = -1

_ZEROS = re.compile(rb"\0{64,}")
_HEADER = re.compile(
    rb"(?=(?:[\x01-\x07].{3}|\x00[^\x00].{2}|\x00\x00[^\x00].)(?:\x00|\x01[\x00-\x02])"
    rb"|\x00\x00\x00(?:[\x06-\xff]\x00|[\x07-\xff]\x01[\x00-\x02]))",
    re.DOTALL,
)
"""What a message with a payload of up to 128 MB begins with."""


class Kafka07Batch(RecordBatch):
    """A message of Kafka 0.7 with all that is in it: itself, or those that it holds compressed.

    What its format lacks has the value of an unset field: timestamps, producer id, epochs and sequences are
    -1. All records of a batch have its own offset, as 0.7 can only be asked for all of them; `next_offset` is
    what to ask for after it. Iterating raises as described for `RecordBatch`.
    """

    __slots__ = ()
    _codecs = CODECS[:3]
    _attributes_at = _ATTRIBUTES_AT

    def __init__(self, view: memoryview, offset: int = 0, position: int = 0) -> None:
        super().__init__(view, offset)
        self._head = (position + offset, *self._head[1:])

    def _unpack(self, view: memoryview) -> tuple[int, ...]:
        magic = view[_MAGIC_AT] if len(view) > _MAGIC_AT else 0
        if magic > 1:
            reason = f"expected a Kafka 0.7 magic of 0 or 1, got {magic}"
            raise CorruptBatch(reason, self.position + _MAGIC_AT, "magic")
        head = _HEADS[magic]
        if len(view) < head.size:
            reason = f"a message of magic {magic} needs at least {head.size} bytes, got {len(view)}"
            raise CorruptBatch(reason, self.position, "length")
        length, _, *attributes, crc = head.unpack_from(view)
        bits = attributes[0] & _CODEC_MASK if magic else 0
        return (0, length, _NONE, magic, crc, bits, 0, _NONE, _NONE, _NONE, _NONE, _NONE, 1)

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (type(self), bytes(self._view), self.position, self._head[0] - self.position)

    @property
    def next_offset(self) -> int:
        """The offset of the message after it."""
        return self.base_offset + len(self._view)

    @property
    def timestamp_type(self) -> str:
        return NO_TIMESTAMP_TYPE

    @property
    def count(self) -> int | None:
        return None if self.attributes & CODEC_BITS else 1

    def check(self) -> None:
        _check(self._view, 0, len(self._view), self.magic, self.checksum, Origin(self.position, False), "")

    def payload(self) -> bytes:
        """The payload, checked and decompressed."""
        self.check()
        head = _HEADS[self.magic].size
        return decompress(self.codec, self._view[head:], offset=self.position + head)

    def _chunks(self, create_time: bool) -> Iterator[list[Record]]:
        data, offset = self.payload(), self.base_offset
        if self.codec == "none":
            yield [Record(offset, value=data)]
            return
        start = self.position + _HEADS[self.magic].size
        yield from chunks(Record(offset, value=value) for value in _values(data, Origin(start, True)))


def _values(data: bytes, place: Origin) -> Iterator[bytes]:
    """The payloads of the messages in a compressed one."""
    pos, number, end = 0, 0, len(data)
    while pos < end:
        path = f"records[{number}]"
        remaining = end - pos - _LENGTH.size
        if remaining < 0:
            raise place.refusal(f"a length needs 4 bytes, {end - pos} left", pos, path)
        (length,) = _LENGTH.unpack_from(data, pos)
        magic = data[pos + _MAGIC_AT] if remaining else 0
        if magic > 1:
            raise place.refusal(
                f"expected a message's magic of 0 or 1, got {magic}", pos + _MAGIC_AT, f"{path}.magic"
            )
        if length < _LEAST[magic]:
            raise place.refusal(f"a message of magic {magic} can't have {counted(length, 'byte')}", pos, path)
        if length > remaining:
            raise place.refusal(f"a message of {counted(length, 'byte')}, {remaining} left", pos, path)
        _, _, *attributes, crc = _HEADS[magic].unpack_from(data, pos)
        if magic and attributes[0] & _CODEC_MASK:
            raise place.refusal("a compressed message inside another", pos + _ATTRIBUTES_AT, path)
        start, pos = pos, pos + _LENGTH.size + length
        _check(data, start, pos, magic, crc, place, f"{path}.")
        yield data[start + _HEADS[magic].size : pos]
        number += 1


def _check(
    data: bytes | memoryview, start: int, end: int, magic: int, stated: int, place: Origin, prefix: str
) -> None:
    head = _HEADS[magic].size
    computed = crc32(data[start + head : end])
    if computed != stated:
        reason = f"the CRC-32 is {computed:#010x}, the message says {stated:#010x}"
        raise place.refusal(reason, start + head - 4, f"{prefix}checksum")


@overload
def batches(
    buffer: Buffer,
    *,
    position: int = 0,
    on_error: Literal["raise", "skip"] = "raise",
    check_records: bool = True,
) -> Batches[Kafka07Batch]: ...
@overload
def batches(
    buffer: Buffer, *, position: int = 0, on_error: Literal["report"], check_records: bool = True
) -> Batches[Kafka07Batch | UnreadableRange]: ...
def batches(
    buffer: Buffer, *, position: int = 0, on_error: OnError = "raise", check_records: bool = True
) -> Batches[Kafka07Batch] | Batches[Kafka07Batch | UnreadableRange]:
    """The messages in `buffer`, lazily and without copying: what Kafka 0.7 fetched, produced or stored.

    position: the offset of the first byte: the one that was fetched from, or a log file's name. on_error,
    check_records, the errors and what is left at the end: those of `coordwire.records.batches`.
    """

    def opened(view: memoryview, offset: int) -> RecordBatch:
        return Kafka07Batch(view, offset, position)

    return Batches(buffer, on_error, check_records, search=_Search, opened=opened)


def fetch(
    read: Callable[[int, int], bytes], offset: int, max_bytes: int, *, most_bytes: int
) -> Batches[Kafka07Batch]:
    """The messages from an offset on, as a client of Kafka 0.7 fetches them.

    read: gives the bytes of the log from an offset on, at most so many (max_bytes, from 1). Where these are
    not even one message, twice as many are asked for, up to most_bytes. Raises `LimitExceeded` for a message
    that is larger, `OutOfRange`; iterating raises what iterating `batches` does.
    """
    if max_bytes < 1:
        raise OutOfRange(f"expected at least 1 byte, got {max_bytes}", "max_bytes")
    while True:
        data = read(offset, max_bytes)
        is_end = len(data) < max_bytes
        if is_end or _LENGTH.size + int.from_bytes(data[: _LENGTH.size], signed=True) <= len(data):
            return batches(data, position=offset)
        if max_bytes >= most_bytes:
            reason = f"the message at offset {offset} has more than {counted(most_bytes, 'byte')}"
            raise LimitExceeded(reason, 0)
        max_bytes = min(2 * max_bytes, most_bytes)


class _Search(Search):
    """The search for messages of Kafka 0.7."""

    length_at = 0
    head = _MAGIC_AT + 1

    def size(self, pos: int) -> int:
        """The size in bytes of the message at `pos`; 0 if it is cut short. Raises `CorruptBatch`."""
        remaining = len(self.view) - pos
        if remaining < _LENGTH.size:
            return 0
        (length,) = _LENGTH.unpack_from(self.view, pos)
        if length < _LEAST[0]:
            if not length and self.is_blank(pos):
                raise CorruptBatch(f"only {counted(remaining, 'zero byte')} to the end", pos, "length")
            raise CorruptBatch(f"a message can't have a length of {counted(length, 'byte')}", pos, "length")
        if remaining < self.head:
            return 0
        magic = self.view[pos + _MAGIC_AT]
        if magic > 1:
            raise CorruptBatch(f"expected a Kafka 0.7 magic of 0 or 1, got {magic}", pos + _MAGIC_AT, "magic")
        if length < _LEAST[magic]:
            reason = f"a message of magic {magic} can't have a length of {counted(length, 'byte')}"
            raise CorruptBatch(reason, pos, "length")
        size = _LENGTH.size + int(length)
        return size if size <= remaining else 0

    def _offset(self, pos: int) -> int:
        """The same number for all, above any that is stated: messages have no offsets to compare."""
        return 0

    def _claimed_offset(self, pos: int) -> int:
        return -1

    def _is_plausible(self, start: int, size: int) -> bool:
        return True

    def _within(self, pos: int, stop: int) -> Iterator[int]:
        for run in _ZEROS.finditer(self.view, pos, stop):
            for match in _HEADER.finditer(self.view, pos, run.start() + 5):
                yield match.start()
            pos = max(pos, run.end() - 3)
        for match in _HEADER.finditer(self.view, pos, stop + 5):
            if match.start() < stop:
                yield match.start()

    def _is_modern(self, start: int) -> bool:
        return False

    def _sums(self, start: int, size: int) -> tuple[int, int, int]:
        magic = min(self.view[start + _MAGIC_AT], 1)  # the bytes may have changed since they were looked at
        begin = start + _HEADS[magic].size
        stated = int.from_bytes(self.view[begin - 4 : begin])
        return self._sum(begin, start + size, False), stated, begin - 4

    def looks_right(self, pos: int) -> bool:
        return False


def encode_messages(
    payloads: Iterable[bytes], *, magic: int = 1, codec: Codec = "none", level: int | None = None
) -> bytes:
    """These payloads as messages of Kafka 0.7, one after the other; with a codec, all inside one message.

    magic: 0 or 1; only 1 has codecs, "gzip" and "snappy". level: gzip's, 1 to 9. Raises `WrongType` for what
    isn't bytes, `OutOfRange`, `NotInVersion` for what 0.7 lacks, `CodecUnavailable`.
    """
    if magic not in (0, 1):
        raise OutOfRange(f"expected a Kafka 0.7 magic of 0 or 1, got {magic!r}", "magic")
    if codec not in CODECS:
        raise OutOfRange(f"expected a codec of {', '.join(CODECS)}, got {codec!r}", "codec")
    number = CODECS.index(codec)
    if number > _CODEC_MASK - 1 or (number and not magic):
        raise NotInVersion(f"Kafka 0.7's magic {magic} has no {codec}", "codec")
    parts: list[bytes] = []
    for index, payload in enumerate(payloads):
        if not isinstance(payload, (bytes, bytearray, memoryview)):
            raise WrongType(f"expected bytes, got {type(payload).__name__}", f"messages[{index}]")
        parts.append(_message(bytes(payload), magic, 0))
    data = b"".join(parts)
    return _message(compress(codec, data, level), magic, number) if number and parts else data


def _message(payload: bytes, magic: int, attributes: int) -> bytes:
    head = _HEADS[magic]
    length = head.size - _LENGTH.size + len(payload)
    if length > _LARGEST - _LENGTH.size:
        raise OutOfRange(f"a message can't have {counted(length, 'byte')}")
    facts = (attributes,) if magic else ()
    return head.pack(length, magic, *facts, crc32(payload)) + payload
