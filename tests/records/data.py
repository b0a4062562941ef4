"""What the tests of records share: the kept vectors, values for Hypothesis, and batches to break."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crc32c import crc32c
from hypothesis import strategies as st

from coordwire.records import Record, RecordBatch, encode_batch

FOLDER = Path(__file__).parent.parent / "data" / "vectors_batches"
ARCHIVE = Path(__file__).parents[2] / "conformance" / "data"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def lines(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt") as stream:
        yield from map(json.loads, stream)


def archived(family: str) -> Iterator[dict[str, Any]]:
    """Vectors of the conformance archive."""
    with lzma.open(ARCHIVE / f"{family}.jsonl.xz", "rt") as stream:
        yield from map(json.loads, stream)


def sealed(batch: bytes) -> bytes:
    """A batch of magic 2 with its checksum put right."""
    return batch[:17] + crc32c(batch[21:]).to_bytes(4) + batch[21:]


def resized(batch: bytes) -> bytes:
    """With its length and checksum put right."""
    return sealed(batch[:8] + (len(batch) - 12).to_bytes(4) + batch[12:])


def with_body(body: bytes, count: int, codec: str = "none") -> bytes:
    """A batch of magic 2 at offset 100 with these bytes for records, as the codec left them."""
    head = encode_batch([], base_offset=100)
    attributes = CODECS.index(codec).to_bytes(2)
    return resized(head[:21] + attributes + head[23:57] + count.to_bytes(4, signed=True) + body)


def again(batch: RecordBatch) -> bytes:
    """The batch written again from what was read of it."""
    records = list(batch.records(create_time=True))
    if batch.magic < 2:
        kind = batch.timestamp_type if batch.magic else "CreateTime"
        return encode_batch(
            records,
            magic=batch.magic,
            codec=batch.codec,
            timestamp_type=kind,
            max_timestamp=batch.max_timestamp,
        )
    return encode_batch(
        records,
        base_offset=batch.base_offset,
        codec=batch.codec,
        timestamp_type=batch.timestamp_type,
        max_timestamp=batch.max_timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        transactional=batch.transactional,
        control=batch.is_control,
        partition_leader_epoch=batch.partition_leader_epoch,
        delete_horizon_ms=batch.delete_horizon_ms,
        last_offset=batch.last_offset,
    )


TIMES = st.one_of(
    st.just(-1), st.integers(1_700_000_000_000, 1_700_000_100_000), st.integers(0, (1 << 62) - 1)
)
DATA = st.one_of(st.none(), st.binary(max_size=40), st.integers(0, 300).map(bytes))
HEADERS = st.lists(st.tuples(st.text(max_size=8), DATA), max_size=3).map(tuple)


@st.composite
def record_lists(draw: st.DrawFn, *, headers: bool = True, base: int = 0) -> list[Record]:
    """Records with rising offsets, some with gaps."""
    records = []
    offset = base
    for _ in range(draw(st.integers(1, 6))):
        offset += draw(st.sampled_from([0, 0, 0, 1, 63, 64, 8191, 8192, 100_000]))
        pairs = draw(HEADERS) if headers else ()
        records.append(Record(offset, draw(TIMES), draw(DATA), draw(DATA), pairs))
        offset += 1
    return records
