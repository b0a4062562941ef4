"""Captures of which C and Python once told differently: both read the same from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from coordwire._speedups import native
from fuzz._engine import Engine, difference
from fuzz.engines import packets_of
from tests.recorded import DATA

pytestmark = pytest.mark.skipif(native is None, reason="the native engine isn't built, or Python is forced")


@pytest.fixture(scope="module")
def engines() -> Iterator[list[Engine]]:
    pair = [Engine("c"), Engine("python")]
    yield pair
    for engine in pair:
        engine.close()


@pytest.mark.parametrize("path", sorted((DATA / "engines").glob("*.pcap.xz")), ids=lambda path: path.stem)
def test_both_engines_read_the_same(path: Path, engines: list[Engine]) -> None:
    header, packets = packets_of(path)
    for engine in engines:
        engine.give(header + b"".join(packet.as_bytes() for packet in packets))
    first, second = (engine.texts() for engine in engines)
    assert all(first[name] for name in ("timeline", "decode", "frames.csv"))
    assert difference(first, second) == ""


def test_a_difference_is_shown() -> None:
    assert difference({"a": "1\n2"}, {"a": "1\n3"}) == "line 2 of a:\n2\n3"
    assert difference({"a": "1"}, {"a": "1\n3"}) == "line 2 of a:\nnothing\n3"
    assert difference({"a": "1"}, {"a": "1"}) == ""
