"""Strategies of records: batches that are read without a fault, and records of logs that come back."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire.logs import LogRecord, decode_log_record, encode_log_record, find_record
from coordwire.messages.record_types import RECORD_TYPES
from coordwire.records import Record, batches, encode_batch
from coordwire.records.compression import CODECS
from coordwire.testing import strategies

from .test_strategies import drawn, least

LIBRARIES = {"snappy": "cramjam", "lz4": "lz4", "zstd": "zstandard"}
FEW = settings(max_examples=25, database=None)


@FEW
@given(st.lists(strategies.records(), max_size=4))
def test_records_come_back(records: list[Record]) -> None:
    results = [record for batch in batches(encode_batch(records)) for record in batch]
    assert [(r.key, r.value, r.timestamp, tuple(r.headers)) for r in results] == [
        (r.key, r.value, r.timestamp, tuple(r.headers)) for r in records
    ]


@FEW
@given(strategies.record_sets(magics=(0, 1, 2), codecs=("none", "gzip")))
def test_record_sets_are_read_without_a_fault(data: bytes) -> None:
    reader = batches(data)
    offsets = [record.offset for batch in reader for record in batch]
    assert offsets == sorted(set(offsets))
    assert not reader.remainder


def test_what_batches_may_have_is_there() -> None:
    results = [next(iter(batches(data))) for data in drawn(strategies.record_batches(), 120)]
    installed = {codec for codec in CODECS if codec not in LIBRARIES or find_spec(LIBRARIES[codec])}
    assert {batch.codec for batch in results} == installed
    assert {batch.magic for batch in results} == {2}
    assert {batch.producer_id == -1 for batch in results} == {True, False}
    assert {batch.transactional for batch in results} == {True, False}
    assert {batch.timestamp_type for batch in results} == {"CreateTime", "LogAppendTime"}
    assert any(batch.last_offset - batch.base_offset + 1 > (batch.count or 0) for batch in results)
    records = [record for batch in results for record in batch]
    assert any(record.value is None for record in records)
    assert any(record.headers for record in records)
    old = [next(iter(batches(data))) for data in drawn(strategies.record_batches(magics=(0, 1)), 40)]
    assert {batch.magic for batch in old} == {0, 1}


@FEW
@given(strategies.log_records())
def test_log_records_come_back(record: LogRecord) -> None:
    key, value = encode_log_record(record)
    assert decode_log_record(record.log, key, value) == record


@pytest.mark.parametrize("log", RECORD_TYPES)
def test_log_records_of_one_log(log: str) -> None:
    result = drawn(strategies.log_records(log), 80)  # type: ignore[arg-type]
    assert {record.log for record in result} == {log}
    assert len({record.type for record in result}) > len(RECORD_TYPES[log]) // 3  # type: ignore[index]
    assert any(record.value is None for record in result) == (log != "metadata")


def test_log_records_without_tombstones() -> None:
    result = drawn(strategies.log_records("consumer_offsets", tombstones=False), 30)
    assert all(record.value is not None for record in result)


def test_records_shrink() -> None:
    data = least(strategies.record_batches(), lambda data: len(list(next(iter(batches(data))))) > 1)
    assert data == encode_batch([Record(timestamp=0), Record(timestamp=0)], base_offset=0)
    record = least(strategies.log_records("consumer_offsets"), lambda record: record.version is not None)
    assert record.type is not None
    kinds: Any = find_record(record.log, record.type)
    assert (record.key, record.value) == (kinds.key(), kinds.value())


def test_what_can_not_be_asked_for() -> None:
    for ask in (strategies.record_batches, strategies.record_sets):
        with pytest.raises(ValueError, match="no batch has magic 3"):
            ask(magics=(3,))
    with pytest.raises(ValueError, match="no batch has magic 3"):
        strategies.records(magic=3)
    with pytest.raises(ValueError, match="there is no log 'offsets': expected consumer_offsets"):
        strategies.log_records("offsets")  # type: ignore[arg-type]
