"""Captures cut anywhere between two packets: nothing is answered less than in the whole."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from coordwire.capture.entries import ConnectionEnd, ConnectionSign, Entry, FrameEntry
from coordwire.capture.frame_decoding import UNDECODED
from coordwire.capture.reader import Capture
from coordwire.capture.rotation import rejoined, rejoined_batches

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


def matched(found: Iterable[Entry | ConnectionSign]) -> list[object]:
    """Each entry by its number and the request that it answers."""
    return [
        (entry.number, entry.api_key, entry.request and (entry.request.number, entry.request.packet))
        if isinstance(entry, FrameEntry)
        else entry
        for entry in found
    ]


@pytest.mark.parametrize("name", ["kpy__tansu__group-range", "aio__tansu__txn"])
@pytest.mark.parametrize("fraction", [0.3, 0.5, 0.8])
def test_entries_in_lists_are_matched_as_one_by_one(name: str, fraction: float) -> None:
    """Of a capture that was cut, and lacks packets, in the lists in which it is read and in others."""
    data = (CAPTURES / f"{name}.pcap").read_bytes()
    every = packets(data)
    place = int(len(every) * fraction)
    parts = [every[:place], [packet for at, packet in enumerate(every[place:]) if at % 50 != 7]]

    def batches(*, lazy: bool) -> Iterator[list[Entry | ConnectionSign]]:
        for part in parts:
            yield from Capture(io.BytesIO(data[:HEAD] + b"".join(part)), "part", lazy=lazy).batches()

    single = matched(rejoined(chain.from_iterable(batches(lazy=False))))
    assert len(single) > 10
    for lazy in (False, True):
        assert matched(chain.from_iterable(rejoined_batches(batches(lazy=lazy)))) == single
        flat = list(chain.from_iterable(batches(lazy=lazy)))
        for size in (2, 30, len(flat)):
            flat = list(chain.from_iterable(batches(lazy=lazy)))
            lists = [flat[at : at + size] for at in range(0, len(flat), size)]
            assert matched(chain.from_iterable(rejoined_batches(lists))) == single


@pytest.mark.parametrize("lazy", [False, True])
def test_lists_have_the_entries_and_the_signs_between_them(lazy: bool) -> None:
    data = (CAPTURES / "kpy__tansu__group-range.pcap").read_bytes()
    damaged = data[:HEAD] + b"".join(packet for at, packet in enumerate(packets(data)) if at % 90 != 7)
    alone = list(Capture(io.BytesIO(damaged), "x", lazy=lazy).entries())
    both = list(chain.from_iterable(Capture(io.BytesIO(damaged), "x", lazy=lazy).batches()))
    assert matched(entry for entry in both if isinstance(entry, Entry)) == matched(alone)
    ends = [entry for entry in both if isinstance(entry, ConnectionEnd)]
    assert [end.time_ns for end in ends] == sorted(end.time_ns for end in ends)
    assert len(ends) > 2


def test_a_request_that_came_again_leaves_no_earlier_one_to_wait() -> None:
    """Of two requests under one correlation id the answer to the later one ends the waiting of both."""
    data = (CAPTURES / "kpy__tansu__group-range.pcap").read_bytes()

    def frames(*, lazy: bool) -> list[Any]:
        found = Capture(io.BytesIO(data), "x", lazy=lazy).entries()
        return [entry for entry in found if isinstance(entry, FrameEntry)]

    def answer(*, lazy: bool) -> Any:
        return next(frame for frame in frames(lazy=lazy) if frame.api_key == 12 and frame.request is not None)

    def later(*, lists: bool, together: bool) -> object:
        first, second, orphan = answer(lazy=True).request, answer(lazy=True), answer(lazy=False)
        orphan.request = None
        answered = [second.request, second]
        batches = [[first, *answered], [orphan]] if together else [[first], answered, [orphan]]
        assert {type(entry) for batch in batches[:-1] for entry in batch} <= UNDECODED
        matched = rejoined_batches(batches) if lists else [[*rejoined(chain.from_iterable(batches))]]
        return [*chain.from_iterable(matched)][-1].request

    for together in (False, True):
        assert later(lists=False, together=together) is None
        assert later(lists=True, together=together) is None
