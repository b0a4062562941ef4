"""However a connection with secrets through a tap is damaged, cut, reordered or broken by a fault: what the
tap records without secrets has no four bytes of one in a row, and lacks no byte of what passed. The numbers
of a request that a message accounts for whole are left out of that: with a count that was damaged, a request
can have the bytes of the next one as numbers, and be right."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from coordwire.broker.harness.traffic import Traffic
from coordwire.capture.redaction.secret_fields import WIDE
from coordwire.frames import PREFIX
from coordwire.spans import Span, show_body
from fuzz._run import main
from tests.damaged_conversations import SECRET, SHORT, damaged_frames
from tests.tap.still import StillTap

CASES = 50
"""Connections in each example."""

_PIECES = [SECRET[at : at + SHORT] for at in range(len(SECRET) - SHORT + 1)]
_RULES = (
    "* times=all half",
    "* times=all after error=NOT_COORDINATOR",
    "* times=all lose",
    "* nth=2 disconnect",
)


def recorded(seed: int) -> tuple[list[bytes], list[bytes], bool]:
    """What a broker and its client got, what the tap recorded of it, and whether a fault has changed it."""
    draw = random.Random(seed)
    way = draw.choice(("whole", "whole", "cut", "pieces", "order", "fault"))
    frames = [(back, bytes(frame)) for back, frame in damaged_frames(draw)]
    if way == "cut" and frames:
        at = draw.randrange(len(frames))
        back, frame = frames[at]
        frames = [*frames[:at], (back, frame[: draw.randrange(len(frame) + 1)])]
    elif way == "order":
        draw.shuffle(frames)
    traffic = Traffic()
    tap = StillTap(traffic=traffic)
    if way == "fault":
        tap.faults.add(draw.choice(_RULES))
    link, client, broker = tap.linked()
    for back, frame in frames:
        lane, step = (link.broker if back else link.client), len(frame) or 1
        if way == "pieces":
            step = draw.choice((1, 7, step))
        for start in range(0, len(frame), step):
            if not client.closed:
                tap.in_context(lane.data_received, frame[start : start + step])
                tap.run()
    for lane in draw.sample((link.client, link.broker), 2):
        if not client.closed:
            lane.connection_lost(None)
            tap.run()
    link.abort()
    tap.run()
    assert tap.recorded_requests is not None
    assert len(tap.recorded_requests) == 0
    records = [b"".join(piece for _, _, to, piece in traffic._pieces if to is back) for back in (False, True)]
    return [bytes(broker.written), bytes(client.written)], records, way == "fault"


def without_numbers(data: bytes) -> bytes:
    """Recorded requests, in which zeros are in place of the numbers of those that can be read."""
    result, at = bytearray(data), 0
    while len(body := data[at + PREFIX : at + PREFIX + int.from_bytes(data[at : at + PREFIX])]) > 0:
        spans: list[Span] = []
        show_body(spans.append, body)
        if not any(span.sort in ("refused", "rest") for span in spans):
            for span in spans:
                if span.kind in WIDE:
                    start = at + PREFIX + span.position
                    result[start : start + span.length] = bytes(span.length)
        at += PREFIX + len(body)
    return bytes(result)


def check(seed: int) -> None:
    passed, records, is_changed = recorded(seed)
    for to_client, (sent, data) in enumerate(zip(passed, records, strict=True)):
        shown = data if to_client or not any(piece in data for piece in _PIECES) else without_numbers(data)
        for piece in _PIECES:
            assert piece not in shown, seed
        assert is_changed or len(data) >= len(sent), seed


@given(st.integers(0, (1 << 40) - 1))
def fuzz(seed: int) -> None:
    for number in range(CASES):
        check(seed * CASES + number)


if __name__ == "__main__":
    main(fuzz, cases=CASES)
