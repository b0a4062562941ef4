"""Logs that a real Apache Kafka broker wrote read as Kafka's own tool reads them: the kept sample of one run,
and, where Maven Central can be reached, a run of its own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from coordwire.records import batches
from coordwire.segments import Segment
from tests.broker_sample import broker_sample
from tests.interop.broker_segments import make
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable
from tests.segments.dump_text import dump

ALL = {"none", "gzip", "snappy", "lz4", "zstd"}


def logs(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("data/*-*/*") if path.suffix in (".log", ".checkpoint"))


def compare(folder: Path) -> Counter[str]:
    """Hold each log against the tool's text beside it; what there was to compare."""
    counts: Counter[str] = Counter()
    for path in logs(folder):
        data = path.read_bytes()
        text = path.with_name(f"{path.name}.txt").read_bytes().decode("utf-8", "surrogateescape")
        assert dump(path.name, data).splitlines() == text.splitlines(), path
        for batch in batches(data):
            counts[batch.codec] += 1
            counts["records"] += batch.count or 0
            counts["empty"] += batch.count == 0
            counts["control"] += batch.is_control
            counts["horizon"] += batch.delete_horizon_ms is not None
            counts["append time"] += batch.timestamp_type == "LogAppendTime"
        counts["segments"] += path.suffix == ".log"
        counts["checkpoints"] += path.suffix == ".checkpoint"
    return counts


def check_headers(folder: Path) -> None:
    """What the tool leaves out, the headers' values: those that Traffic.java gave them, in every codec."""
    topics = []
    for path in sorted(folder.glob("data/codec-*/*.log")):
        segment = Segment(path)
        assert (segment.topic, segment.partition) == (path.parent.name.removesuffix("-0"), 0)
        records = [record for batch in segment.batches() for record in batch]
        assert [record.offset for record in records] == list(range(len(records)))
        topics.append([(record.timestamp, record.key, record.headers) for record in records])
    assert len(topics) == len(ALL)
    assert all(records == topics[0] for records in topics)
    for _, _, headers in topics[0]:
        values = [value for _, value in headers]
        assert headers == tuple(zip(("trace", "schlüssel", "trace"), values, strict=False))
        assert values in ([], values[:1], values[:1] * 2, [*values[:1] * 2, None])
        assert all(value is None or value.startswith(b"header ") for value in values)


def check(folder: Path) -> None:
    check_headers(folder)
    seen = compare(folder)
    kinds = ALL | {"empty", "control", "horizon", "append time", "checkpoints"}
    assert {kind for kind in kinds if seen[kind]} == kinds
    assert seen["records"] > 2000
    assert seen["segments"] > 30


def test_the_kept_sample() -> None:
    check(broker_sample())


@pytest.mark.maven
def test_a_broker_of_its_own(tmp_path: Path) -> None:
    try:
        make(tmp_path)
    except Unavailable as error:
        give_up(error)
    check(tmp_path)
