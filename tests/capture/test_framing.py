"""Cutting a stream into frames always gets on, whatever its owner takes for a frame."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from coordwire.capture.framing import FrameBody, FrameSplitter
from coordwire.errors import UnreadableRange


@given(st.lists(st.binary(max_size=30), max_size=8), st.booleans())
def test_an_owner_that_takes_anything_cannot_hang_it(pieces: list[bytes], in_step: bool) -> None:
    cutter = FrameSplitter(lambda buffer, at, effort: True, in_step=in_step)
    found = [part for piece in pieces for part in cutter.feed(piece, None)] + cutter.finish(None)
    total = sum(len(part.data) + 4 if isinstance(part, FrameBody) else part.length for part in found)
    assert total == sum(map(len, pieces))


def test_a_size_that_cannot_be_costs_one_byte() -> None:
    frame = struct.pack(">i", 10) + bytes(range(10))
    cutter = FrameSplitter(lambda buffer, at, effort: True, in_step=True)
    skipped, body = cutter.feed(b"\xff" + frame, None)
    assert isinstance(skipped, UnreadableRange)
    assert (skipped.position, skipped.length) == (0, 1)
    assert "a size prefix of -" in skipped.reason
    assert isinstance(body, FrameBody)
    assert (body.position, body.data) == (1, bytes(range(10)))
