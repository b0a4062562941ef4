"""Records, record batches, record sets, and the records of brokers' own logs.

Rules: offsets rise, timestamps are in this century or missing; batches are bytes, as they are on the wire and
on disk, and decode without a fault; a log's record encodes and decodes to an equal one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from coordwire.logs import TOPICS, Log, LogRecord, find_record
from coordwire.messages.record_types import RECORD_TYPES
from coordwire.records import Record, encode_batch
from coordwire.records.compression.codecs import CODECS, Codec
from coordwire.testing.hypothesis_import import st
from coordwire.testing.message_strategies import messages

__all__ = ["log_records", "record_batches", "record_sets", "records"]

_Draw = Callable[[st.SearchStrategy[Any]], Any]

_LIBRARIES = {"snappy": "cramjam", "lz4": "lz4", "zstd": "zstandard"}
_LATEST = 1 << 42
"""Milliseconds: the year 2109."""

_HIGHEST = 1 << 48
"""Of base offsets."""

_DATA = st.none() | st.binary(max_size=12) | st.sampled_from([b"x" * 63, b"x" * 64, bytes(300)])
_HEADERS = st.lists(st.tuples(st.text(max_size=6), st.none() | st.binary(max_size=6)), max_size=2).map(tuple)
_TIMES = st.integers(0, _LATEST)


def records(*, magic: int = 2) -> st.SearchStrategy[Record]:
    """Single records, without an offset (-1); of magic 0 and 1 without headers, of 0 without a time.

    A null value is a tombstone, a null key is that of a record without one.
    """
    _check_magics((magic,))
    return st.builds(
        Record,
        key=_DATA,
        value=_DATA,
        timestamp=_TIMES if magic else st.just(-1),
        headers=_HEADERS if magic == 2 else st.just(()),
    )


def record_batches(
    *, codecs: Sequence[Codec] | None = None, magics: Sequence[int] = (2,), max_records: int = 5
) -> st.SearchStrategy[bytes]:
    """The bytes of one record batch of at least one record, for `coordwire.records.batches` and any
    other reader; of magic 2 with gaps between offsets, idempotent and transactional producers. Control
    batches are left out.

    codecs: by default "none" and those whose libraries are installed. magics: 0 and 1 are old message sets,
    which have no zstd.
    """
    return st.sampled_from(_check_magics(magics)).flatmap(
        lambda magic: st.integers(0, _HIGHEST).flatmap(
            lambda base: _batch(magic, base, _codecs(codecs), max_records)
        )
    )


def record_sets(
    *, codecs: Sequence[Codec] | None = None, magics: Sequence[int] = (2,), max_batches: int = 3
) -> st.SearchStrategy[bytes]:
    """The bytes of a record set, as Produce and Fetch carry it and segments hold it: batches whose offsets
    rise, perhaps none. As `record_batches` otherwise."""
    chosen, known = _check_magics(magics), _codecs(codecs)

    @st.composite
    def drawn(draw: _Draw) -> bytes:
        base: int = draw(st.integers(0, _HIGHEST))
        data = []
        for _ in range(draw(st.integers(0, max_batches))):
            data.append(draw(_batch(draw(st.sampled_from(chosen)), base, known, 3)))
            base += 16
        return b"".join(data)

    return drawn()


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
def _batch(draw: _Draw, magic: int, base: int, codecs: Sequence[Codec], most: int) -> bytes:
    found: list[Record] = draw(st.lists(records(magic=magic), min_size=1, max_size=most))
    offset = base
    for record in found:
        record.offset = offset
        offset += 1 if magic < 2 else draw(st.integers(1, 3))
    options: dict[str, Any] = {}
    if magic == 2 and draw(st.booleans()):
        options = {
            "producer_id": draw(st.integers(0, 1 << 40)), "producer_epoch": draw(st.integers(0, 9)),
            "base_sequence": draw(st.integers(0, 1 << 20)), "transactional": draw(st.booleans()),
            "partition_leader_epoch": draw(st.integers(-1, 9)),
        }  # fmt: skip
    if magic and draw(st.booleans()):
        options |= {"timestamp_type": "LogAppendTime", "max_timestamp": draw(_TIMES)}
    fitting = codecs if magic == 2 else [codec for codec in codecs if codec != "zstd"] or ["none"]
    return encode_batch(found, base_offset=base, magic=magic, codec=draw(st.sampled_from(fitting)), **options)


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
    def drawn(draw: _Draw) -> LogRecord:
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

    return drawn()
