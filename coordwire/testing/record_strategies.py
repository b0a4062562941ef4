"""Records, record batches, record sets, and the records of brokers' own logs.

Rules: offsets rise, timestamps are in this century or missing; batches are bytes, as they are on the wire and
on disk, and decode without a fault; a log's record encodes and decodes to an equal one. Most are small; one
of five is large, as messages are: lengths, counts and offsets that need two and three varint bytes.

Hostile record sets: valid ones, mutated, mostly with their checksums corrected. A mutation that leaves the
checksum wrong tests the checksum and nothing after it. So the last step gives each batch that can still be
found, by the length that it claims, the checksum of what it now covers. As for `hostile_bytes`: some of what
comes out is valid all the same, and all of it shrinks.
"""

from __future__ import annotations

import copy
import struct
import zlib
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import crc32c

from coordwire.logs import TOPICS, Log, LogRecord, find_record
from coordwire.messages.record_types import RECORD_TYPES
from coordwire.records import Record, encode_batch
from coordwire.records.compression import CODECS, Codec
from coordwire.testing.hypothesis_import import st
from coordwire.testing.message_strategies import SIZES, Size, messages

_Draw = Callable[[st.SearchStrategy[Any]], Any]

_LIBRARIES = {"snappy": "cramjam", "lz4": "lz4", "zstd": "zstandard"}
_LATEST = 1 << 42
"""Milliseconds: the year 2109."""

_HIGHEST = 1 << 48
"""Of base offsets."""

_SHORT = st.none() | st.binary(max_size=12)
_DATA = _SHORT | st.sampled_from([b"x" * 63, b"x" * 64, bytes(300)])
_LONGER_DATA = _DATA | st.sampled_from([b"x" * 8192, b"x" * 9000, b"x" * 8191])
"""From 64 bytes on a record's lengths take two bytes as a varint, from 8,192 on three."""

_KEYS = st.text(max_size=6) | st.sampled_from(["k" * 63, "k" * 64])
_LONGER_KEYS = _KEYS | st.sampled_from(["k" * 8192, "é" * 4500, "k" * 8191])
_HEADERS = st.lists(st.tuples(_KEYS, _DATA), max_size=2).map(tuple)
_TINY_HEADERS = st.lists(st.tuples(st.text(max_size=6), _SHORT), max_size=1).map(tuple)
_LONG_HEADERS = st.lists(st.tuples(_LONGER_KEYS, _LONGER_DATA), min_size=1, max_size=2).map(tuple)
_MANY_HEADERS = st.builds(
    lambda header, count: (header,) * count,
    st.tuples(st.text(max_size=6), _SHORT),
    st.sampled_from([64, 63, 130]),
)
_LARGE_HEADERS = _HEADERS | _LONG_HEADERS | _MANY_HEADERS

_MANY = (65, 64, 130)
"""Records of a large batch: of 65 the last has an offset delta that takes two bytes as a varint."""

_GAPS = st.integers(1, 3)
_LARGE_GAPS = _GAPS | st.sampled_from([64, 8192, 1 << 20])
_TIMES = st.integers(0, _LATEST)


def records(*, magic: int = 2) -> st.SearchStrategy[Record]:
    """Single records, without an offset (-1); of magic 0 and 1 without headers, of 0 without a time.

    A null value is a tombstone, a null key is that of a record without one. One record of five is large:
    key, value, header keys and values of up to 9,000 bytes, up to 130 headers.
    """
    _check_magics((magic,))
    return SIZES.flatmap(lambda size: _records(magic, size))


def _records(magic: int, size: Size) -> st.SearchStrategy[Record]:
    data = {"tiny": _SHORT, "small": _DATA, "large": _LONGER_DATA}[size]
    headers = {"tiny": _TINY_HEADERS, "small": _HEADERS, "large": _LARGE_HEADERS}[size]
    return st.builds(
        Record,
        key=data,
        value=data,
        timestamp=_TIMES if magic else st.just(-1),
        headers=headers if magic == 2 else st.just(()),
    )


def record_batches(
    *, codecs: Sequence[Codec] | None = None, magics: Sequence[int] = (2,), max_records: int | None = None
) -> st.SearchStrategy[bytes]:
    """The bytes of one record batch of at least one record, for `coordwire.records.batches` and any
    other reader; of magic 2 with gaps between offsets, idempotent and transactional producers. Control
    batches are left out.

    codecs: by default "none" and those whose libraries are installed. magics: 0 and 1 are old message sets,
    which have no zstd. max_records: by default 5 for most batches. One batch of five is large: up to 130
    records, gaps between offsets of up to 1,048,576, and records as large as those of `records`.
    """
    return st.sampled_from(_check_magics(magics)).flatmap(
        lambda magic: st.integers(0, _HIGHEST).flatmap(
            lambda base: _batch(magic, base, _codecs(codecs), max_records).map(lambda pair: pair[0])
        )
    )


def record_sets(
    *, codecs: Sequence[Codec] | None = None, magics: Sequence[int] = (2,), max_batches: int = 3
) -> st.SearchStrategy[bytes]:
    """The bytes of a record set, as Produce and Fetch carry it and segments hold it: batches whose offsets
    rise, perhaps none. As `record_batches` otherwise."""
    return sized_sets(codecs, magics, max_batches, SIZES)


def sized_sets(
    codecs: Sequence[Codec] | None, magics: Sequence[int], max_batches: int, sizes: st.SearchStrategy[Size]
) -> st.SearchStrategy[bytes]:
    """As `record_sets`, with batches of these sizes."""
    known_magics, known = _check_magics(magics), _codecs(codecs)

    @st.composite
    def record_set(draw: _Draw) -> bytes:
        base: int = draw(st.integers(0, _HIGHEST))
        data = []
        for _ in range(draw(st.integers(0, max_batches))):
            batch, end = draw(_batch(draw(st.sampled_from(known_magics)), base, known, None, 3, sizes))
            data.append(batch)
            base = max(base + 16, end)
        return b"".join(data)

    return record_set()


def _check_magics(magics: Sequence[int]) -> Sequence[int]:
    for magic in magics:
        if magic not in (0, 1, 2):
            raise ValueError(f"no batch has magic {magic!r}: expected 0, 1 or 2")
    return magics


def _codecs(codecs: Sequence[Codec] | None) -> Sequence[Codec]:
    if codecs is not None:
        return codecs
    return [codec for codec in CODECS if codec not in _LIBRARIES or find_spec(_LIBRARIES[codec])]


@st.composite
def _batch(
    draw: _Draw,
    magic: int,
    base: int,
    codecs: Sequence[Codec],
    most: int | None,
    few: int = 5,
    sizes: st.SearchStrategy[Size] = SIZES,
) -> tuple[bytes, int]:
    """A batch from this offset on, and the offset after its last one."""
    fitting = codecs if magic == 2 else [codec for codec in codecs if codec != "zstd"] or ["none"]
    codec: Codec = draw(st.sampled_from(fitting))
    size: Size = draw(sizes)
    counts = [count for count in _MANY if most is None or count <= most]
    records: list[Record]
    if size == "large" and counts and draw(st.booleans()):
        samples = draw(st.lists(_records(magic, "tiny"), min_size=1, max_size=2))
        records = [copy.copy(samples[index % len(samples)]) for index in range(draw(st.sampled_from(counts)))]
        gaps = st.just(1)
    else:
        most = few if most is None else most
        records = draw(st.lists(_records(magic, size), min_size=1, max_size=most))
        gaps = _LARGE_GAPS if size == "large" else _GAPS
    offset = base
    for record in records:
        record.offset = offset
        offset += 1 if magic < 2 else draw(gaps)
    options: dict[str, Any] = {}
    if magic == 2 and draw(st.booleans()):
        options = {
            "producer_id": draw(st.integers(0, 1 << 40)), "producer_epoch": draw(st.integers(0, 9)),
            "base_sequence": draw(st.integers(0, 1 << 20)), "transactional": draw(st.booleans()),
            "partition_leader_epoch": draw(st.integers(-1, 9)),
        }  # fmt: skip
    if magic and draw(st.booleans()):
        options |= {"timestamp_type": "LogAppendTime", "max_timestamp": draw(_TIMES)}
    return encode_batch(records, base_offset=base, magic=magic, codec=codec, **options), offset


def log_records(
    log: Log | None = None, *, tombstones: bool = True, nan: bool = False, unknown_tags: bool = True
) -> st.SearchStrategy[LogRecord]:
    """Records of the brokers' own logs, of all types and versions: `coordwire.logs.encode_log_record` makes
    the key and the value of a `Record` of them.

    log: which of "consumer_offsets", "transaction_state", "share_group_state" and "metadata", by default any.
    tombstones: whether the value may be None, which it never is in the metadata log. nan, unknown_tags: as
    for `messages`. Raises `ValueError` for a log that there isn't.
    """
    if log is not None and log not in RECORD_TYPES:
        raise ValueError(f"there is no log {log!r}: expected {', '.join(TOPICS)}")
    kinds = [(name, type) for name in RECORD_TYPES if log in (None, name) for type in RECORD_TYPES[name]]

    @st.composite
    def log_record(draw: _Draw) -> LogRecord:
        name, type = draw(st.sampled_from(kinds))
        classes = find_record(name, type)
        record = LogRecord(log=name, type=type)
        if classes.key is not None:
            record.key = draw(messages(classes.key, version=0, nan=nan, unknown_tags=unknown_tags))
            if tombstones and draw(st.booleans()):
                return record
        record.version = draw(st.sampled_from(classes.value.versions))
        assert record.version is not None
        record.value = draw(
            messages(classes.value, version=record.version, nan=nan, unknown_tags=unknown_tags)
        )
        return record

    return log_record()


# --- hostile record strategies ---


_LENGTH, _MAGIC, _START = 8, 16, 12
"""Where a batch has its length and its magic, in any format, and from where the length counts."""

_CRC = {0: 12, 1: 12, 2: 17}
_COUNT = 57
"""Where a batch of magic 2 has the number of its records; the records follow."""

_NUMBERS = [0, 1, -1, -2, 4, 7, 1 << 16, (1 << 31) - 1, -(1 << 31)]
_VARINTS = [
    b"\x00",
    b"\x01",
    b"\x02",
    b"\x7f",
    b"\x80\x00",
    b"\xff\xff\xff\xff\x0f",
    b"\x80" * 9 + b"\x01",
    b"\xff" * 12,
]


def hostile_record_sets(
    *, codecs: Sequence[Codec] | None = None, magics: Sequence[int] = (2,)
) -> st.SearchStrategy[bytes]:
    """Bytes in the place of a record set that a reader shouldn't trust; some are valid all the same.

    Valid sets cut off or extended, with bytes flipped or replaced, lengths, counts and attributes of any
    value, over-long varints in the records; three of four have right checksums again, so that what is after
    them is reached. And bytes at random. codecs, magics: as for `record_sets`, of the sets before they are
    mutated: what comes out may claim any codec and magic.
    """
    valid = record_sets(codecs=codecs, magics=magics, max_batches=2).filter(bool)
    large = sized_sets(codecs, magics, 1, st.just("large")).filter(bool)

    @st.composite
    def mutated(draw: _Draw, valid: st.SearchStrategy[bytes], times: st.SearchStrategy[int]) -> bytes:
        data = bytearray(draw(valid))
        for _ in range(draw(times)):
            draw(st.sampled_from(_MUTATIONS))(draw, data)
        if draw(st.integers(0, 3)):
            _seal(data)
        return bytes(data)

    mutations = [mutated(valid, st.integers(1, 2)) for _ in range(3)]
    return st.one_of(*mutations, mutated(large, st.integers(0, 1)), st.binary(max_size=80))


def _seal(data: bytearray) -> None:
    """Give each batch that can be found the checksum of what its length covers."""
    at = 0
    while at + _MAGIC < len(data):
        (length,) = struct.unpack_from(">i", data, at + _LENGTH)
        end, crc = at + _START + length, at + _CRC.get(data[at + _MAGIC], 17)
        if not crc + 4 <= end <= len(data):
            return
        covered = bytes(data[crc + 4 : end])
        sum_of = crc32c.crc32c if data[at + _MAGIC] == 2 else zlib.crc32
        struct.pack_into(">I", data, crc, sum_of(covered))
        at = end


def _cut(draw: _Draw, data: bytearray) -> None:
    del data[draw(st.integers(0, len(data))) :]


def _cut_and_tell(draw: _Draw, data: bytearray) -> None:
    """Cut off, with a length that fits what is left."""
    del data[draw(st.integers(min(_MAGIC, len(data)), len(data))) :]
    if len(data) >= _START:
        struct.pack_into(">i", data, _LENGTH, len(data) - _START)


def _extend(draw: _Draw, data: bytearray) -> None:
    data += draw(st.binary(min_size=1, max_size=8))


def _flip(draw: _Draw, data: bytearray) -> None:
    if data:
        data[draw(st.integers(0, len(data) - 1))] ^= draw(st.integers(1, 255))


def _number(draw: _Draw, data: bytearray) -> None:
    """Another length, count of records, or number anywhere."""
    if len(data) > _START:
        at = draw(st.sampled_from([_LENGTH, _COUNT]) | st.integers(0, len(data) - 4))
        if at + 4 <= len(data):
            struct.pack_into(">i", data, at, draw(st.sampled_from(_NUMBERS)))


def _varint(draw: _Draw, data: bytearray) -> None:
    """A varint of a record replaced, with the batch's length corrected."""
    if len(data) > _COUNT + 4 and data[_MAGIC] == 2:
        at = draw(st.integers(_COUNT + 4, len(data) - 1))
        new = draw(st.sampled_from(_VARINTS))
        (length,) = struct.unpack_from(">i", data, _LENGTH)
        data[at : at + 1] = new
        grown = length + len(new) - 1
        if abs(grown) < 1 << 31:
            struct.pack_into(">i", data, _LENGTH, grown)


_MUTATIONS = [_number, _cut, _cut_and_tell, _varint, _flip, _extend]
