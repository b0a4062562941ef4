"""Captures cut anywhere between two packets: nothing is answered less than in the whole."""

from __future__ import annotations

import io
import struct
from itertools import chain
from pathlib import Path

import pytest

from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.reader import Capture
from coordwire.capture.rotation import rejoined

CAPTURES = Path(__file__).parent.parent / "data" / "captures"
HEAD = 24


def packets(data: bytes) -> list[bytes]:
    results, at = [], HEAD
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at + 8)
        results.append(data[at : at + 16 + size])
        at += 16 + size
    return results


def entries(data: bytes) -> list[Entry]:
    return list(Capture(io.BytesIO(data), "part").entries())


def answered(found: list[Entry]) -> list[tuple[int | None, bytes, object]]:
    return [
        (entry.api_key, entry.body, entry.message)
        for entry in found
        if isinstance(entry, FrameEntry) and entry.direction == "response" and entry.request is not None
    ]


@pytest.mark.parametrize("name", ["kpy__tansu__group-range", "aio__tansu__txn"])
@pytest.mark.parametrize("count", [2, 5])
def test_answers_are_found_behind_a_cut(name: str, count: int) -> None:
    data = (CAPTURES / f"{name}.pcap").read_bytes()
    every = packets(data)
    size = -(-len(every) // count)
    parts = [every[at : at + size] for at in range(0, len(every), size)]
    cut = [entries(data[:HEAD] + b"".join(part)) for part in parts]
    whole = answered(entries(data))
    apart = answered(list(chain.from_iterable(cut)))
    together = answered(list(rejoined(chain.from_iterable(cut))))
    assert len(apart) <= len(together) <= len(whole)
    assert {body for _, body, _ in together} <= {body for _, body, _ in whole}
    for one in together:
        assert one in whole


def test_an_answer_to_a_request_of_the_capture_before() -> None:
    data = (CAPTURES / "kpy__tansu__group-range.pcap").read_bytes()
    whole = [entry for entry in entries(data) if isinstance(entry, FrameEntry)]
    request = next(entry for entry in whole if entry.direction == "request" and entry.api_key == 11)
    reply = next(entry for entry in whole if entry.request is request)
    alone = FrameEntry(
        capture="next", number=1, flow=reply.flow, time_ns=reply.time_ns, direction="response",
        body=reply.body, correlation_id=reply.correlation_id,
    )  # fmt: skip
    _, result = rejoined([request, alone])
    assert result is alone
    assert (alone.api_key, alone.message, alone.request) == (11, reply.message, request)
