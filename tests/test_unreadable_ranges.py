"""Bytes that could not be read are one type everywhere, and say where they belong."""

from __future__ import annotations

import io
import pickle

import pytest

import coordwire
import coordwire.capture
import coordwire.records
from coordwire import UnreadableRange
from coordwire.capture.reader import Capture
from coordwire.capture.rotation import rejoined
from coordwire.timeline.from_log.coordinator_log import read_records

RANGE = UnreadableRange(5, 3, "no frame", b"abc", file="a.pcap", flow="c:1 > s:2", time_ns=7)


def test_it_is_one_class_under_all_its_names() -> None:
    assert coordwire.records.UnreadableRange is UnreadableRange
    assert coordwire.capture.UnreadableRange is UnreadableRange
    assert coordwire.errors.UnreadableRange is UnreadableRange


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_it_can_be_pickled(protocol: int) -> None:
    copied = pickle.loads(pickle.dumps(RANGE, protocol))
    assert type(copied) is UnreadableRange
    assert copied == RANGE


def test_only_position_length_and_reason_are_needed() -> None:
    bare = UnreadableRange(position=1, length=2, reason="x")
    assert bare == UnreadableRange(1, 2, "x", b"")
    assert (bare.file, bare.flow, bare.time_ns, bare.log, bare.log_partition) == ("", "", None, None, None)


@pytest.mark.parametrize("format", ["hex", "frames"])
def test_a_captures_ranges_name_the_capture(format: str) -> None:
    data = b"00 00 zz\n" if format == "hex" else b"\xff" * 40
    capture = Capture(io.BytesIO(data), "some.name", input=format)  # type: ignore[arg-type]
    (result,) = rejoined(capture.entries())
    assert type(result) is UnreadableRange
    assert (result.file, result.flow, result.position) == ("some.name", "", 0)
    assert result.length >= len(data) - 1
    assert result.reason


def test_a_coordinator_logs_ranges_name_the_log() -> None:
    records = list(read_records(b"\xff" * 100, log="consumer_offsets", file="x.log", log_partition=7))
    assert records
    for partition in records:
        assert type(partition) is UnreadableRange
        assert (partition.file, partition.log, partition.log_partition) == ("x.log", "consumer_offsets", 7)
    assert sum(unreadable.length for unreadable in records if isinstance(unreadable, UnreadableRange)) == 100
