"""Segments of magic 0 and 1 that a real broker wrote read as Kafka's own tool reads them, and are sound with
the indexes that it wrote beside them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from coordwire.records import batches, encode_batch
from coordwire.segments import Segment
from tests.broker_sample import OLD_FORMATS, broker_sample
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable
from tests.interop.old_segments import make
from tests.segments.dump_text import dump

INNER = re.compile(r"(valueSize: -?\d+) isValid: true crc: \d+}")
"""What the tool says of an inner message's own checksum, which no other tool looks at."""


def check(folder: Path) -> None:
    counts: Counter[tuple[int, str, str]] = Counter()
    records = 0
    for path in sorted(folder.glob("data/*-*/*.log")):
        data = path.read_bytes()
        told = path.with_name(f"{path.name}.txt").read_text("utf-8", "surrogateescape")
        assert dump(path.name, data).splitlines() == INNER.sub(r"\1", told).splitlines(), path
        for batch in batches(data):
            counts[batch.magic, batch.codec, batch.timestamp_type] += 1
            records += len(list(batch))
            if batch.codec == "none":
                (record,) = batch
                kind = batch.timestamp_type if batch.magic else "CreateTime"
                again = encode_batch(
                    [record], magic=batch.magic, timestamp_type=kind, max_timestamp=batch.max_timestamp
                )
                assert again == data[batch.position : batch.position + batch.size]
        segment = Segment(path)
        assert not list(segment.verify()), path
    assert records > 1500
    codecs = ("none", "gzip", "snappy", "lz4")
    assert set(counts) == {
        *((0, codec, "NoTimestampType") for codec in codecs),
        *((1, codec, kind) for codec in codecs for kind in ("CreateTime", "LogAppendTime")),
    }


def test_the_kept_sample() -> None:
    check(broker_sample(OLD_FORMATS))


@pytest.mark.maven
def test_a_broker_of_its_own(tmp_path: Path) -> None:
    try:
        make(tmp_path)
    except Unavailable as error:
        give_up(error)
    check(tmp_path)
