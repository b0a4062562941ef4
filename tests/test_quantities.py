"""Lengths of time, sizes and counts: units that fit, two or three digits, no gap between ranges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire._quantities import clock, counted, day, duration, duration_range, size


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 µs"), (0.0000123, "12 µs"), (0.0015, "1.5 ms"), (0.0099, "9.9 ms"), (0.00999, "10 ms"),
        (0.2304, "230 ms"), (0.99949, "999 ms"), (0.9996, "1.0 s"), (4.6, "4.6 s"), (23.74, "23.7 s"),
        (59.94, "59.9 s"), (59.96, "1 min"), (200, "3 min 20 s"), (3600, "1 h"), (18_180, "5 h 3 min"),
        (187_200, "2 d 4 h"), (-4.6, "-4.6 s"),
    ],
)  # fmt: skip
def test_a_length_of_time(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@given(st.floats(0, 1e9), st.floats(1, 3))
def test_lengths_of_time_are_short_and_have_a_unit(seconds: float, factor: float) -> None:
    for value in (seconds, seconds * factor):
        text = duration(value)
        assert len(text) <= 14
        assert text.split()[1] in ("µs", "ms", "s", "min", "h", "d")


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0, 0.001, "under 1 ms"), (0.2, 0.5, "200 to 500 ms"), (0.5, 1, "500 ms to 1 s"), (2, 5, "2 to 5 s"),
        (30, 60, "30 s to 1 min"), (60, 120, "1 to 2 min"), (43_200, 86_400, "12 h to 1 d"),
    ],
)  # fmt: skip
def test_a_range_of_lengths(low: float, high: float, text: str) -> None:
    assert duration_range(low, high) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1000, "1 kB"), (1_267_906, "1.27 MB"),
        (999_600, "1 MB"), (10**15, "1 PB"), (12_345 * 10**15, "12,345 PB"),
    ],
)  # fmt: skip
def test_a_size(count: int, text: str) -> None:
    assert size(count) == text


def test_counts_and_times() -> None:
    assert (counted(1, "member"), counted(1200, "member")) == ("1 member", "1,200 members")
    assert clock(1_795_249_012.0625) == "08:16:52.062"
    assert clock(1_795_249_012.0625, 0) == "08:16:52"
    assert clock(-0.5) == "23:59:59.500"
    assert day(1_795_249_012) == "2026-11-21"
    assert day(1e17) == "day 1,157,407,407,407"
