"""coordwire = Apache Kafka's own builder, for batches of every kind: the same bytes; it reads ours.

Strategy: one JVM, java/Records.java, is given random records of every magic, codec and kind with the batch
that we made of them. Rules: the same to the byte without a codec, with gzip and with lz4; our snappy is
another implementation, our zstd another version without the empty last block of Java's streams, so that
there it is what either reads of the other's bytes that counts.
"""

from __future__ import annotations

import random
import struct
from io import BytesIO
from pathlib import Path

import pytest

from coordwire.messages.control_records import EndTxnMarker
from coordwire.records import ControlType, Record, batches, control_record
from coordwire.records.compression import CODECS
from tests.interop.batch_cases import Case
from tests.interop.broker import Java
from tests.interop.conftest import give_up
from tests.interop.maven import CURRENT, Unavailable

pytestmark = pytest.mark.maven

PROGRAM = Path(__file__).parent / "java" / "Records.java"
CASES = 1500
EXACT = ("none", "gzip", "lz4")
NOW = 1_760_000_000_000
SIZES = (0, 1, 5, 30, 62, 63, 64, 200, 8190, 8192)


def maybe_bytes(source: random.Random) -> bytes | None:
    size = source.choice(SIZES)
    return source.choice([None, b"x" * size, source.randbytes(size)])


def some_records(source: random.Random, base: int, *, headers: bool) -> list[Record]:
    offset, stamp = base, source.choice([NOW, NOW, 0, -1, (1 << 62) + 7])
    results = []
    for _ in range(source.choice([1, 1, 2, 5, 70])):
        pairs = [
            (source.choice(["", "trace", "schlüssel", "😀" * 40]), maybe_bytes(source))
            for _ in range(source.choice([0, 0, 1, 3]) if headers else 0)
        ]
        results.append(Record(offset, stamp, maybe_bytes(source), maybe_bytes(source), pairs))
        offset += source.choice([1, 1, 1, 2, 70, 9000])
        stamp = max(-1, stamp + source.choice([0, 1, -1, 63, 64, -65, 8192, -(1 << 33)]))
    return results


def control_batch(source: random.Random, base: int) -> Case:
    kind = source.choice([ControlType.ABORT, ControlType.COMMIT])
    marker = EndTxnMarker(coordinator_epoch=source.randrange(1 << 31))
    record = control_record(kind, marker, offset=base, timestamp=NOW)
    facts = {"control": True, "transactional": source.random() < 0.8, "producer_id": 7, "producer_epoch": 1}
    return Case([record], facts)


def case(source: random.Random) -> Case:
    base = source.choice([0, 1, 77, 1 << 31, 1 << 40])
    magic = source.choice([0, 1, 2, 2, 2])
    batch = Case(some_records(source, base, headers=magic == 2))
    if magic < 2:
        codec = source.choice(CODECS[:4])
    elif source.random() < 0.1:
        batch, codec = control_batch(source, base), "none"
    else:
        codec = source.choice(CODECS)
        if source.random() < 0.5:
            batch.facts |= {
                "producer_id": source.choice([0, 4_000_000_000]), "producer_epoch": source.choice([0, 32767]),
                "base_sequence": source.choice([0, 5, (1 << 31) - 1]), "transactional": source.random() < 0.5,
            }  # fmt: skip
        batch.facts["partition_leader_epoch"] = source.choice([-1, 0, 9])
        if source.random() < 0.2:
            batch.facts["delete_horizon_ms"] = NOW + source.choice([-5, 86_400_000])
        if source.random() < 0.2:
            batch.facts["last_offset"] = batch.records[-1].offset + source.choice([0, 1, 100])
        if source.random() < 0.1:
            batch.records, codec = [], "none"
            batch.facts |= {"last_offset": base + 3, "max_timestamp": NOW}
            batch.facts.pop("delete_horizon_ms", None)
    batch.facts |= {"magic": magic, "base_offset": base, "codec": codec}
    if magic and source.random() < 0.3:
        batch.facts |= {"timestamp_type": "LogAppendTime", "max_timestamp": NOW + 1}
    return batch


def read(stream: BytesIO) -> list[Record]:
    def number(form: str) -> int:
        (result,) = struct.unpack(form, stream.read(struct.calcsize(form)))
        return int(result)

    def data() -> bytes | None:
        size = number(">i")
        return None if size < 0 else stream.read(size)

    return [
        Record(
            number(">q"), number(">q"), data(), data(),
            tuple(((data() or b"").decode(), data()) for _ in range(number(">i"))),
        )
        for _ in range(number(">i"))
    ]  # fmt: skip


def test_kafka_builds_the_same_batches() -> None:
    source = random.Random(11)
    cases = [case(source) for _ in range(CASES)]
    asked = struct.pack(">i", len(cases)) + b"".join(case.encoded() for case in cases)
    try:
        answers = BytesIO(Java(CURRENT).pipe(asked, str(PROGRAM)))
    except Unavailable as error:
        give_up(error)
    seen = dict.fromkeys(CODECS, 0)
    for each in cases:
        data, theirs = each.data, answers.read(*struct.unpack(">i", answers.read(4)))
        results = [record for batch in batches(theirs) for record in batch]
        assert results == [record for batch in batches(data) for record in batch], each
        assert results == read(answers), each
        codec = each.facts["codec"]
        seen[codec] += 1
        if codec in EXACT:
            assert data.hex() == theirs.hex(), each
    assert min(seen.values()) > CASES // 20, seen
