"""One record batch of magic 2 in a buffer: its header by name, its records on iteration.

Layout (Kafka's "Record Batch", KIP-98): base offset, length, leader epoch, magic, CRC-32C of all that
follows, attributes, last offset delta, base and max timestamp, producer id, epoch and sequence, count; 61
bytes, then the records, compressed as one block. Strategy: the header is unpacked once, attributes are
computed when asked for; iterating checks the checksum, decompresses and reads the records in chunks, so that
a large batch is never in memory as objects. Rules: the caller has checked magic and length, and the bytes
may have changed since; nothing is copied before it is iterated; the records before a bad one are yielded
before the error is raised.

`batch_size` checks length and magic as Kafka's own reader does: a header that no batch can have raises
`CorruptBatch`; one whose batch is cut short is not an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from struct import Struct
from typing import TYPE_CHECKING, Any

from coordwire._speedups import native as speedups
from coordwire.errors import CorruptBatch, counted
from coordwire.records import backend
from coordwire.records.compression import CODECS, Buffer, Codec, decompress
from coordwire.records.record import SANE, Record, read_records
from coordwire.records.strict import Origin, StrictReader, wrap64

if TYPE_CHECKING:
    from coordwire._speedups import _native
    from coordwire.records.control import ControlRecord

HEADER = Struct(">qiibIhiqqqhii")
CREATE_TIME, LOG_APPEND_TIME, NO_TIMESTAMP_TYPE = "CreateTime", "LogAppendTime", "NoTimestampType"
"""A batch's timestamp type, in Kafka's words."""

CHUNK = 512
"""Records that are read at a time."""

CRC_AT, CRC_FROM = 17, 21
"""Where the checksum is in a batch, and where the bytes begin that it covers."""

CODEC_BITS, APPEND_TIME, TRANSACTIONAL, CONTROL, HORIZON = 0x07, 0x08, 0x10, 0x20, 0x40
"""Bits of the attributes."""


if TYPE_CHECKING or speedups is None:

    class _Opened:
        """The counterpart of the native half's `Opened`, whose view and header are made on first use."""

        __slots__ = ("_first_chunk", "_head", "_view", "position", "size")
        _head: tuple[int, ...]

else:
    _Opened = speedups.Opened


def restored(kind: type[RecordBatch], data: bytes, *places: int) -> RecordBatch:
    """The batch of a pickle or copy, which has the bytes themselves."""
    return kind(memoryview(data), *places)


def chunks(records: Iterator[Record]) -> Iterator[list[Record]]:
    """Records in chunks; those before a refusal come before it."""
    chunk: list[Record] = []
    try:
        for record in records:
            chunk.append(record)
            if len(chunk) == CHUNK:
                yield chunk
                chunk = []
    except CorruptBatch:
        if chunk:
            yield chunk
        raise
    if chunk:
        yield chunk


class RecordBatch(_Opened):
    """A record batch; iterate it for its records.

    position: where it is, in bytes from the start of what was read; size: its bytes, header included. Both
    may be set, as what is read doesn't depend on them; the positions in errors count from `position`.

    Iterating raises `CorruptBatch` (a wrong checksum, garbage in the codec, a malformed record: reason, byte
    offset in what was read, path such as "records[17].key"), `LimitExceeded` if more comes out of the codec
    than `coordwire.limits` allows, `CodecUnavailable` if its library isn't installed.

        >>> from coordwire.records import Record, batches, encode_batch
        >>> batch = next(batches(encode_batch([Record(value=b"tea"), Record(value=b"milk")], base_offset=7)))
        >>> batch
        <RecordBatch of magic 2 at byte 0: 82 bytes, last offset 8, none>
        >>> [(record.offset, record.value) for record in batch]
        [(7, b'tea'), (8, b'milk')]
    """

    __slots__ = ()

    def __init__(self, view: memoryview, position: int = 0) -> None:
        self._view = view
        self._first_chunk: list[Record] | None = None
        self.position = position
        self.size = len(view)
        self._head = self._unpack(view)

    def _unpack(self, view: memoryview) -> tuple[int, ...]:
        """The header as it is now: the bytes may have changed since their length and magic were checked."""
        if len(view) < HEADER.size:
            reason = f"a batch of magic 2 needs at least {HEADER.size} bytes, got {len(view)}"
            raise CorruptBatch(reason, self.position, "length")
        return HEADER.unpack_from(view)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles have the bytes themselves."""
        return restored, (type(self), bytes(self._view), self.position)

    # --- the header ----------------------------------------------------------------------------------------

    @property
    def raw(self) -> memoryview:
        """Its own bytes, not copied."""
        return self._view

    @property
    def base_offset(self) -> int:
        """The first record's offset; after compaction perhaps below it."""
        return self._head[0]

    @property
    def partition_leader_epoch(self) -> int:
        """The epoch of the leader that appended it; -1 before that. The checksum doesn't cover it."""
        return self._head[2]

    @property
    def magic(self) -> int:
        """The version of its format: 0, 1 or 2."""
        return self._head[3]

    @property
    def checksum(self) -> int:
        """The checksum that it states: CRC-32C in magic 2, CRC-32 before."""
        return self._head[4]

    @property
    def attributes(self) -> int:
        """All bits: codec, timestamp type, transactional, control, delete horizon."""
        return self._head[5]

    @property
    def codec(self) -> Codec:
        """How its records are compressed. Raises `CorruptBatch` for a number that no codec has."""
        number = self.attributes & CODEC_BITS
        if number >= len(self._codecs):
            reason = f"codec number {number} is unknown"
            raise CorruptBatch(reason, self.position + self._attributes_at, "attributes")
        return self._codecs[number]

    _codecs = CODECS
    _attributes_at = 22

    @property
    def timestamp_type(self) -> str:
        """`CREATE_TIME`: the producers' own; `LOG_APPEND_TIME`: the broker's, one for all records."""
        return LOG_APPEND_TIME if self.attributes & APPEND_TIME else CREATE_TIME

    @property
    def transactional(self) -> bool:
        """Whether it is part of a transaction, whose end is in a later control batch."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether it holds control records, which consumers don't see."""
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop its tombstones, in ms since 1970; None if that isn't set (KIP-534)."""
        return self.base_timestamp if self.attributes & HORIZON else None

    @property
    def last_offset(self) -> int:
        """The last record's offset; compaction leaves it as it was."""
        return wrap64(self._head[0] + self._head[6])

    @property
    def base_timestamp(self) -> int:
        """What the records' deltas count from, in ms since 1970 (the delete horizon, where there is one)."""
        return self._head[7]

    @property
    def max_timestamp(self) -> int:
        """The largest of the records' timestamps, in ms since 1970; -1 for none."""
        return self._head[8]

    @property
    def producer_id(self) -> int:
        """The idempotent producer's id; -1 for none."""
        return self._head[9]

    @property
    def producer_epoch(self) -> int:
        """Its epoch; -1 for none."""
        return self._head[10]

    @property
    def base_sequence(self) -> int:
        """The first record's sequence number; -1 for none."""
        return self._head[11]

    @property
    def last_sequence(self) -> int:
        """The last record's sequence number, which goes on at 0 after 2^31 - 1; -1 for none."""
        base = self.base_sequence
        return -1 if base == -1 else base + self._head[6] & 0x7FFFFFFF

    @property
    def count(self) -> int | None:
        """The number of records that it states; None for a compressed message set, which doesn't state
        one."""
        return self._head[12]

    def __repr__(self) -> str:
        number = self.attributes & CODEC_BITS
        codec = self._codecs[number] if number < len(self._codecs) else f"codec {number}"
        return (
            f"<{type(self).__name__} of magic {self.magic} at byte {self.position}: {self.size} bytes,"
            f" last offset {self.last_offset}, {codec}>"
        )

    # --- the records ---------------------------------------------------------------------------------------

    if TYPE_CHECKING or speedups is None:

        def __iter__(self) -> Iterator[Record]:
            return self.records()

    def records(self, *, create_time: bool = False) -> Iterator[Record]:
        """The records, as iterating gives them. Raises as described above, at the first record that is asked
        for.

        create_time: give the timestamps that the producer set, not the broker's, under log-append time; the
        batch keeps both (in message sets only inside a compressed one).
        """
        first_chunk = self._first_chunk
        if first_chunk is not None:
            self._first_chunk = None
            if not (create_time and self.attributes & APPEND_TIME):
                return iter(first_chunk)
        if backend.codec is not None and self.__class__ is RecordBatch:
            return backend.codec.records(self, create_time)
        return chain.from_iterable(self._chunks(create_time))

    def control_records(self) -> Iterator[ControlRecord]:
        """A control batch's records with their keys and values decoded; nothing for other batches.

        Raises as iterating does, and `CorruptBatch` where a control record's key or value is malformed.
        """
        from coordwire.records.control import read_control

        if self.is_control:
            for number, record in enumerate(self):
                yield read_control(record, self.position, f"records[{number}]")

    def check(self) -> None:
        """Compare the checksum with the bytes. Raises `CorruptBatch`."""
        computed = backend.crc32c(self._view[CRC_FROM:])
        if computed != self.checksum:
            reason = f"the CRC-32C is {computed:#010x}, the batch says {self.checksum:#010x}"
            raise CorruptBatch(reason, self.position + CRC_AT, "checksum")

    def verify(self) -> None:
        """Read all records, and keep only the first chunk for the next iteration. Raises as iterating
        does."""
        self._first_chunk = None
        first: list[Record] = []
        chunk_count = 0
        for chunk in self._chunks(False):
            chunk_count += 1
            if isinstance(chunk, list):
                first = chunk
            else:
                chunk.walk()
                chunk_count += 1
        if chunk_count <= 1:
            self._first_chunk = first

    def payload(self) -> Buffer:
        """The records' bytes, checked and decompressed. Raises as iterating does."""
        self.check()
        if len(self._view) == HEADER.size and not self.count:
            return b""  # nothing, compressed as nothing
        data, codec = self._view[HEADER.size :], self.codec
        return data if codec == "none" else decompress(codec, data, offset=self.position + HEADER.size)

    def _chunks(self, create_time: bool) -> Iterator[list[Record] | _native.Run]:
        """The records in chunks: a run of the native half, and lists of those that it doesn't read."""
        data = self.payload()
        count = self._head[12]
        base_offset, base_timestamp = self._head[0], self._head[7]
        refusal = self._judge(data).count_refusal()
        if refusal is not None:
            raise refusal
        stamp = self.max_timestamp if self.attributes & APPEND_TIME and not create_time else None
        pos = record_count = 0
        if backend.codec is not None:
            run = backend.codec.read(data, count, base_offset, base_timestamp, stamp)
            yield run
            record_count, pos = run.done, run.position
        elif -SANE < base_offset < SANE and -SANE < base_timestamp < SANE:
            data = bytes(data)
            while record_count < count:
                todo = min(CHUNK, count - record_count)
                try:
                    records, pos = read_records(data, pos, todo, base_offset, base_timestamp)
                except Exception:  # whatever it was: the judge words it
                    break
                record_count += todo
                yield _stamped(records, stamp)
        for record in self._judge(data).read(pos, record_count, base_offset, base_timestamp):
            yield _stamped([record], stamp)

    def _exactly(self, create_time: bool) -> Iterator[Record]:
        """The records, for the native half, where it refuses the first."""
        return chain.from_iterable(self._chunks(create_time))

    def _judged(self, data: Buffer | None, pos: int, number: int, stamp: int | None) -> Iterator[Record]:
        """The records from `number` at `pos` on, for the native half, where it refuses that one.

        data: what was decompressed, None where nothing was.
        """
        judge = self._judge(self._view[HEADER.size :] if data is None else data)
        for record in judge.read(pos, number, self._head[0], self._head[7]):
            yield from _stamped([record], stamp)

    def _judge(self, data: Buffer) -> StrictReader:
        place = Origin(self.position + HEADER.size, bool(self.attributes & CODEC_BITS))
        return StrictReader(data, self._head[12], place)


def _stamped(records: list[Record], stamp: int | None) -> list[Record]:
    if stamp is not None:
        for record in records:
            record.timestamp = stamp
    return records


if backend.codec is not None:
    backend.codec.know(RecordBatch)


LOG_OVERHEAD = 12
"""Bytes of offset and length, which the length doesn't count."""

TO_MAGIC = 17
LEAST = (14, 22, 49)
"""The smallest length by magic."""

LARGEST = 0x7FFFFFFF - LOG_OVERHEAD
"""The largest length: Kafka keeps the whole batch's size in an int."""

_LENGTH = Struct(">8xi").unpack_from
_MAGIC = Struct(">16xb").unpack_from

BLANK = 1 << 16
"""Bytes that are compared with zeros at a time."""


def content_end(view: memoryview) -> int:
    """The position at which the zeros at the end begin; these may be gigabytes."""
    end = len(view)
    while end:
        start = max(0, end - BLANK)
        used = len(view[start:end].tobytes().rstrip(b"\0"))
        if used:
            return start + used
        end = start
    return 0


def batch_size(view: memoryview, pos: int, is_blank: Callable[[int], bool] | None = None) -> int:
    """The size in bytes of the batch whose header is at `pos`; 0 if it isn't all there.

    is_blank: whether nothing but zeros follows; None to look. Raises `CorruptBatch` for a header that no
    batch can have.
    """
    remaining = len(view) - pos
    if remaining < LOG_OVERHEAD:
        return 0
    (length,) = _LENGTH(view, pos)
    if length < LEAST[0]:
        if not length and (content_end(view[pos:]) == 0 if is_blank is None else is_blank(pos)):
            raise CorruptBatch(f"only {counted(remaining, 'zero byte')} to the end", pos, "length")
        raise CorruptBatch(f"a batch can't have a length of {counted(length, 'byte')}", pos + 8, "length")
    if length > LARGEST:
        raise CorruptBatch(f"a batch can't have a length of {counted(length, 'byte')}", pos + 8, "length")
    if remaining < TO_MAGIC:
        return 0
    (magic,) = _MAGIC(view, pos)
    if not 0 <= magic <= 2:
        raise CorruptBatch(f"expected a batch's magic of 0, 1 or 2, got {magic}", pos + 16, "magic")
    if length < LEAST[magic]:
        raise CorruptBatch(
            f"a batch of magic {magic} can't have a length of {counted(length, 'byte')}", pos + 8, "length"
        )
    size = LOG_OVERHEAD + int(length)
    return size if size <= remaining else 0


def claimed_size(view: memoryview, pos: int) -> int:
    """The result of `batch_size`; 0 also for a header that no batch can have."""
    try:
        return batch_size(view, pos, _not_blank)
    except CorruptBatch:
        return 0


def _not_blank(_: int) -> bool:
    return False
