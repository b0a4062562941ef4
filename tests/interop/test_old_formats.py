"""Formats of 0.8: we read what Kafka 0.8.2.2's classes wrote, they read what we write."""

from __future__ import annotations

import pytest

from coordwire.logs import decode_log_record
from coordwire.messages import LegacyOffsetCommitKey, LegacyOffsetCommitValue
from coordwire.records import batches
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable
from tests.interop.old_formats import KEPT, RECORDS, ours, printed

LINES = KEPT.read_text().splitlines()
PAIRS = [(record.key, record.value) for record in RECORDS]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy"])
def test_we_read_message_sets(codec: str) -> None:
    (line,) = [line for line in LINES if line.startswith(f"set {codec} ")]
    records = [record for batch in batches(bytes.fromhex(line.split()[2])) for record in batch]
    assert [(record.key, record.value) for record in records] == PAIRS
    assert [record.offset for record in records] == [0, 1, 2, 3]


def test_we_read_the_offset_managers_records() -> None:
    keys = [line.split(" ") for line in LINES if line.startswith("key ")]
    values = [line.split(" ") for line in LINES if line.startswith("value ")]
    assert len(keys) == len(values) == 4
    for (_, key, group, topic, partition), (_, value, offset, metadata) in zip(keys, values, strict=True):
        record = decode_log_record("consumer_offsets", bytes.fromhex(key), bytes.fromhex(value))
        written, stored = record.key, record.value
        assert isinstance(written, LegacyOffsetCommitKey)
        assert isinstance(stored, LegacyOffsetCommitValue)
        assert (written.group, written.topic, written.partition) == (group, topic, int(partition))
        assert (stored.offset, stored.metadata) == (int(offset), metadata)


def test_kafkas_classes_read_what_we_write() -> None:
    read = [line for line in LINES if line.startswith("read ")]
    parts = [
        f"{number}:{'null' if key is None else key.hex()}:{'null' if value is None else value.hex()}:true"
        for number, (key, value) in enumerate(PAIRS)
    ]
    assert read[:3] == [" ".join(["read set", *parts])] * 3
    for number in range(4):
        assert f"group-{number}" in read[3 + 2 * number]
        assert str(number * 1_000_000_007) in read[4 + 2 * number]


@pytest.mark.maven
def test_the_kept_lines_are_those_of_kafkas_classes() -> None:
    try:
        assert printed() == LINES
    except Unavailable as error:
        give_up(error)


def test_ours_are_eleven_lines() -> None:
    assert len(list(ours())) == 11
