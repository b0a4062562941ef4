"""`coordwire.records` against the declaration in schemas/record_batch, run by `construct`, both ways."""

from __future__ import annotations

from typing import Any

from construct import ConstructError, Container
from crc32c import crc32c
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordwire.errors import CorruptBatch
from coordwire.records import Record, batches, encode_batch
from coordwire.records.record import read_records
from coordwire.records.strict import Origin, StrictReader
from schemas.record_batch import MessageSet, RecordBatch

from .data import DATA, TIMES, archived, record_lists, with_body

INT16, INT32 = st.integers(-(2**15), 2**15 - 1), st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
SLOWLY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
FLAGS = ("delete_horizon", "control", "transactional", "log_append")


@st.composite
def declared(draw: st.DrawFn) -> dict[str, Any]:
    """A batch as `construct` builds it: any header, any records."""
    records = []
    for _ in range(draw(st.integers(0, 4))):
        headers = draw(st.lists(st.tuples(st.binary(max_size=5), DATA), max_size=2))
        record = {
            "attributes": draw(st.integers(-128, 127)),
            "timestamp_delta": draw(st.one_of(st.integers(-100, 100), INT64)),
            "offset_delta": draw(st.one_of(st.integers(-2, 10_000), INT32)),
            "key": draw(DATA),
            "value": draw(DATA),
            "header_count": len(headers),
            "headers": [{"key": key, "value": value} for key, value in headers],
        }
        records.append(record)
    covered = {
        "attributes": {"codec": 0, **{name: draw(st.booleans()) for name in FLAGS}},
        "last_offset_delta": draw(INT32),
        "base_timestamp": draw(st.one_of(TIMES, INT64)),
        "max_timestamp": draw(INT64),
        "producer_id": draw(INT64),
        "producer_epoch": draw(INT16),
        "base_sequence": draw(st.integers(-1, 2**31 - 1)),
        "count": len(records),
        "records": records,
    }
    return {
        "base_offset": draw(st.one_of(st.integers(0, 1000), INT64)),
        "batch": {"partition_leader_epoch": draw(INT32), "magic": 2, "covered": covered},
    }


def wrapped(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


@SLOWLY
@given(declared())
def test_what_construct_builds(told: dict[str, Any]) -> None:
    data = RecordBatch.build(told)
    (batch,) = batches(data)
    covered = told["batch"]["covered"]
    flags = covered["attributes"]
    names = ("max_timestamp", "producer_id", "producer_epoch", "base_sequence", "base_timestamp", "count")
    for name in names:
        assert getattr(batch, name) == covered[name]
    assert batch.base_offset == told["base_offset"]
    assert batch.last_offset == wrapped(told["base_offset"] + covered["last_offset_delta"])
    assert batch.partition_leader_epoch == told["batch"]["partition_leader_epoch"]
    assert (batch.is_control, batch.transactional) == (flags["control"], flags["transactional"])
    assert (batch.timestamp_type == "LogAppendTime") == flags["log_append"]
    assert batch.delete_horizon_ms == (covered["base_timestamp"] if flags["delete_horizon"] else None)
    expected = [
        Record(
            wrapped(told["base_offset"] + record["offset_delta"]),
            wrapped(covered["base_timestamp"] + record["timestamp_delta"]),
            record["key"],
            record["value"],
            tuple((h["key"].decode("utf-8", "surrogateescape"), h["value"]) for h in record["headers"]),
        )
        for record in covered["records"]
    ]
    assert list(batch.records(create_time=True)) == expected
    if flags["log_append"]:
        assert all(record.timestamp == batch.max_timestamp for record in batch)


@SLOWLY
@given(record_lists(base=7), st.booleans(), st.integers(-1, 2**31 - 1))
def test_what_construct_parses(records: list[Record], flag: bool, sequence: int) -> None:
    data = encode_batch(records, transactional=flag, base_sequence=sequence, producer_id=5)
    parsed = RecordBatch.parse(data)
    assert RecordBatch.build(parsed) == data
    covered = parsed.batch.covered
    assert parsed.base_offset == records[0].offset
    assert (covered.base_sequence, covered.attributes.transactional) == (sequence, flag)
    for record, result in zip(records, covered.records, strict=True):
        assert result.offset_delta == record.offset - parsed.base_offset
        assert result.timestamp_delta == record.timestamp - covered.base_timestamp
        assert (result.key, result.value) == (record.key, record.value)
        assert [(h.key.decode(), h.value) for h in result.headers] == list(record.headers)


@SLOWLY
@given(record_lists(headers=False), st.sampled_from([0, 1]))
def test_message_sets(records: list[Record], magic: int) -> None:
    data = encode_batch(records, magic=magic)
    parsed = MessageSet.parse(data)
    assert MessageSet.build(parsed) == data
    for record, result in zip(records, parsed, strict=True):
        assert (result.offset, result.message.key, result.message.value) == (
            record.offset,
            record.key,
            record.value,
        )
        assert result.message.timestamp == (record.timestamp if magic else None)


def test_vectors() -> None:
    seen = 0
    for vector in archived("batches"):
        for batch in batches(bytes.fromhex(vector["hex"])) if vector["codec"] == "none" else ():
            data = bytes(batch.raw)
            told: Container = RecordBatch.parse(data) if batch.magic == 2 else MessageSet.parse(data)
            assert (RecordBatch if batch.magic == 2 else MessageSet).build(told) == data
            seen += 1
    assert seen > 100


BODIES = [
    bytes(batch.raw[61:])
    for vector in archived("batches")
    if vector["magic"] == 2 and vector["codec"] == "none"
    for batch in batches(bytes.fromhex(vector["hex"]))
    if batch.size < 400
]


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Records with some bytes changed."""
    body = bytearray(draw(st.one_of(st.sampled_from(BODIES), st.binary(max_size=60))))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(body)))
        body[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(body)


@settings(SLOWLY, max_examples=400)
@given(bodies(), st.integers(0, 5))
def test_hostile_records(body: bytes, count: int) -> None:
    """The fast path reads nothing that the judge refuses, and construct nothing that we refuse."""
    judge = StrictReader(body, count, Origin(0, False))
    judged: list[Record] | None
    try:
        judged = list(judge.read(0, 0, 10, 1000)) if judge.count_refusal() is None else None
    except CorruptBatch:
        judged = None
    fast: list[Record] | None
    try:
        fast, end = read_records(body, 0, count, 10, 1000)
        fast = fast if end == len(body) else None
    except Exception:
        fast = None
    assert fast is None or fast == judged
    data = with_body(body, count)
    assert int.from_bytes(data[17:21]) == crc32c(data[21:])
    try:
        strict = RecordBatch.parse(data)
    except ConstructError:
        strict = None
    if strict is not None:
        assert judged is not None
        assert [(r.key, r.value) for r in judged] == [(r.key, r.value) for r in strict.batch.covered.records]
