"""Cutting a stream into frames always gets on, whatever its owner takes for a frame."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire import limits
from coordwire.capture.conversation import Conversation
from coordwire.capture.framing import (
    HEAD,
    KEEP,
    SPARE,
    TRIES,
    Effort,
    Fits,
    FrameBody,
    FrameSplitter,
    may_be_request,
)
from coordwire.errors import UnreadableRange


@given(st.lists(st.binary(max_size=30), max_size=8), st.booleans())
def test_an_owner_that_takes_anything_cannot_hang_it(pieces: list[bytes], in_step: bool) -> None:
    cutter = FrameSplitter(lambda buffer, at, effort: True, in_step=in_step)
    result = [part for piece in pieces for part in cutter.feed(piece, None)] + cutter.finish(None)
    total = sum(len(part.data) + 4 if isinstance(part, FrameBody) else part.length for part in result)
    assert total == sum(map(len, pieces))


def test_a_size_that_cannot_be_costs_one_byte() -> None:
    frame = struct.pack(">i", 10) + bytes(range(10))
    cutter = FrameSplitter(lambda buffer, at, effort: True, in_step=True)
    skipped, body = cutter.feed(b"\xff" + frame, None)
    assert isinstance(skipped, UnreadableRange)
    assert (skipped.position, skipped.length) == (0, 1)
    assert "a size prefix of less than -" in skipped.reason
    assert isinstance(body, FrameBody)
    assert (body.position, body.data) == (1, bytes(range(10)))


# --- what is cut, what is passed over, and what is said of it

Seen = tuple[object, ...]
NOW, LATER = 5, 9
MID_STREAM = "the capture begins in mid-stream"


def seen(*parts: FrameBody | UnreadableRange) -> list[Seen]:
    """Frames as (position, bytes, time), what was passed over as (position, length, bytes, reason, time)."""
    return [
        (part.position, part.data, part.time_ns)
        if isinstance(part, FrameBody)
        else (part.position, part.length, part.data, part.reason, part.time_ns)
        for part in parts
    ]


def frame(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def splitter(*, in_step: bool = True, fits: Fits = lambda buffer, at, effort: False) -> FrameSplitter:
    return FrameSplitter(fits, in_step=in_step)


def begins_with(first: bytes) -> Fits:
    return lambda buffer, at, effort: buffer[at : at + len(first)] == first


def test_frames_have_their_positions_and_the_time_of_their_last_byte() -> None:
    cutter = splitter()
    assert seen(*cutter.feed(frame(b"abc") + frame(b"") + frame(b"de")[:-1], NOW)) == [
        (0, b"abc", NOW),
        (7, b"", NOW),
    ]
    assert seen(*cutter.feed(b"e" + frame(b"f"), LATER)) == [(11, b"de", LATER), (17, b"f", LATER)]
    assert cutter.finish(LATER) == []
    assert seen(*cutter.feed(frame(b""), LATER)) == [(22, b"", LATER)]
    assert (cutter.position, cutter.at, cutter.counted, bytes(cutter.buffer)) == (26, 0, 0, b"")


@pytest.mark.parametrize(
    ("left", "missing"),
    [
        (b"\0\0\0", "3 bytes of its size prefix"),
        (b"\0\0\0\7", "0 of 7 bytes"),
        (b"\0\0\0\7abcdef", "6 of 7 bytes"),
    ],
)
def test_a_stream_that_ends_inside_a_frame(left: bytes, missing: str) -> None:
    for before in (b"", frame(b"whole")):
        cutter = splitter()
        cutter.feed(before + left, NOW)
        assert seen(*cutter.finish(LATER)) == [
            (len(before), len(left), left, f"the stream ends inside a frame: {missing}", LATER)
        ]


def test_a_stream_that_never_came_into_step() -> None:
    cutter = splitter(in_step=False)
    assert cutter.feed(bytes(20), NOW) == []
    assert seen(*cutter.finish(LATER)) == [(0, 20, bytes(20), MID_STREAM, LATER)]


def test_a_search_asks_about_each_place_once() -> None:
    asked: list[tuple[bytes, int]] = []

    def fits(buffer: bytearray, at: int, effort: Effort) -> bool:
        asked.append((bytes(buffer[at:]), cutter.position - cutter.at + at))
        return False

    cutter = splitter(in_step=False, fits=fits)
    data = bytes(range(HEAD + 5))
    cutter.feed(data[: HEAD + 2], NOW)
    cutter.feed(data[HEAD + 2 :], NOW)
    assert asked == [(data[at : HEAD + 2], at) for at in range(3)] + [(data[at:], at) for at in range(3, 6)]


@pytest.mark.parametrize("most", [0, 1, 5, 127])
def test_a_search_asks_only_where_a_size_can_be(most: int) -> None:
    asked: list[int] = []

    def fits(buffer: bytearray, at: int, effort: Effort) -> bool:
        asked.append(buffer[at])
        return False

    places = bytes((0, 1, 2, 5, 6, 127, 128, 255))
    with limits(frame=most << 24 | 0xFFFFFF):
        cutter = splitter(in_step=False, fits=fits)
        cutter.feed(places + bytes(HEAD - 1), NOW)
    assert asked == [byte for byte in places if byte <= most]
    assert cutter._effort.remaining == SPARE + TRIES * len(places)


def test_a_search_ends_where_a_frame_begins() -> None:
    data = frame(b"a frame's bytes")
    cutter = splitter(in_step=False, fits=begins_with(data[:4]))
    assert cutter.feed(b"xy" * 8, NOW) == []
    assert seen(*cutter.feed(b"z" + data + data, LATER)) == [
        (0, 17, b"xy" * 8 + b"z", MID_STREAM, LATER),
        (17, b"a frame's bytes", LATER),
        (36, b"a frame's bytes", LATER),
    ]


@pytest.mark.parametrize("size", [-1, 101])
def test_a_size_that_cannot_be_is_named_and_the_search_begins_after_its_first_byte(size: int) -> None:
    wrong = struct.pack(">i", size)
    data = frame(b"a frame's bytes")
    with limits(frame=100):
        cutter = splitter(fits=begins_with(data[:4]))
        result = seen(*cutter.feed(frame(b"first") + wrong + data, NOW))
    assert result == [
        (0, b"first", NOW),
        (9, 4, wrong, f"a size prefix of {size}", NOW),
        (13, b"a frame's bytes", NOW),
    ]


def test_lost_bytes_take_with_them_the_frame_that_was_begun() -> None:
    data = frame(b"a frame's bytes")
    cutter = splitter(fits=begins_with(data[:4]))
    cutter.feed(data + data[:10], NOW)
    assert seen(*cutter.lose(90, LATER, "90 bytes lost")) == [(19, 100, data[:10], "90 bytes lost", LATER)]
    assert seen(*cutter.feed(b"-" + data, LATER)) == [
        (119, 1, b"-", "no frame boundary known after lost bytes", LATER),
        (120, b"a frame's bytes", LATER),
    ]
    cutter.lose(1, LATER, "1 byte lost")
    assert cutter.finish(LATER) == []
    assert cutter.position == 140


def test_lost_bytes_out_of_step_keep_the_reason_of_what_was_searched() -> None:
    cutter = splitter(in_step=False)
    cutter.feed(bytes(HEAD), NOW)
    (first,) = seen(*cutter.lose(6, LATER, "6 bytes lost"))
    assert first == (0, HEAD + 6, bytes(HEAD), MID_STREAM, LATER)
    (second,) = seen(*cutter.lose(6, LATER, "6 bytes lost"))
    assert second == (HEAD + 6, 6, b"", "6 bytes lost", LATER)
    assert cutter.finish(LATER) == []


def test_what_is_given_up_is_reported_and_a_search_follows() -> None:
    data = frame(b"a frame's bytes")
    cutter = splitter(fits=begins_with(data[:4]))
    cutter.feed(data[:7], NOW)
    assert seen(*cutter.give_up(LATER, "too much waits")) == [(0, 7, data[:7], "too much waits", LATER)]
    assert seen(*cutter.feed(b"--" + data, LATER)) == [
        (7, 2, b"--", "no frame boundary known after abandoned bytes", LATER),
        (9, b"a frame's bytes", LATER),
    ]
    assert cutter.give_up(LATER, "too much waits") == []


def test_the_first_of_the_bytes_passed_over_are_kept() -> None:
    cutter = splitter(in_step=False)
    data = bytes(range(256)) * (KEEP // 256) + b"more"
    for at in range(0, len(data), 1000):
        cutter.feed(data[at : at + 1000], NOW)
    ((position, length, kept, reason, _),) = seen(*cutter.finish(NOW))
    assert (position, length, reason) == (0, KEEP + 4, MID_STREAM)
    assert kept == data[:KEEP]


def test_what_may_be_decoded_on_trial_is_spent_to_the_last_byte() -> None:
    effort = Effort()
    assert effort.spend(SPARE)
    assert not effort.spend(1)
    assert effort.refused == 1
    effort.succeeded(3)
    effort.succeeded(2)
    assert effort.spend(5)
    assert (effort.remaining, effort.refused) == (0, 1)


def test_places_not_tried_are_counted_for_each_search() -> None:
    def fits(buffer: bytearray, at: int, effort: Effort) -> bool:
        return buffer[at] == 1 or (not effort.spend(effort.remaining + 1) and False)

    cutter = splitter(in_step=False, fits=fits)
    tail = "as too many look like a frame's start"
    for place, reason in ((0, MID_STREAM), (100, "no frame boundary known after abandoned bytes")):
        cutter.feed(bytes(HEAD + 1), NOW)
        assert seen(*cutter.give_up(LATER, reason)) == [
            (place, HEAD + 1, bytes(HEAD + 1), f"{reason}; not tried: 2 positions, {tail}", LATER)
        ]
        cutter.lose(100 - HEAD - 1, NOW, "lost")


def test_fewer_bytes_than_a_head_are_no_request() -> None:
    whole = struct.pack(">ihhih", 10, 18, 0, 0, -1)
    assert may_be_request(whole)
    assert may_be_request(bytearray(b"-" + whole), 1)
    assert not may_be_request(whole[:-1])
    assert not may_be_request(whole, 1)
    assert may_be_request(whole + whole[:-1])


def test_a_request_is_numbered_from_0_and_its_client_id_is_text() -> None:
    def request(correlation_id: int, client_id: bytes) -> bytes:
        head = struct.pack(">ihhih", 10 + len(client_id), 18, 0, correlation_id, len(client_id))
        return head + client_id

    for number, client_id, may in (
        (0, b"", True),
        (-1, b"", False),
        (1, b"a", True),
        (1, b"\0", False),
        (1, b"\xff", False),
        (1, "é".encode(), True),
    ):
        assert may_be_request(request(number, client_id)) is may, (number, client_id)


def test_a_client_id_whose_last_bytes_have_not_come_may_be_text() -> None:
    head = struct.pack(">ihhih", 13, 18, 0, 1, 3)
    text = "a\u20ac".encode()
    for cut in range(len(text)):
        assert may_be_request(head + text[:cut])
    assert not may_be_request(head + b"\xe2\x28")


def test_a_request_is_within_the_budget_of_a_frame() -> None:
    head = struct.pack(">ihhih", 100, 18, 0, 0, -1)
    for most, may in ((100, True), (99, False)):
        with limits(frame=most):
            assert may_be_request(head) is may
    assert not may_be_request(struct.pack(">ihhih", 9, 18, 0, 0, -1))


@given(
    st.lists(
        st.sampled_from([b"\0\0\0\x0a\0\0\0\x07", b"\0\0\0\x07", b"\0", b"\x07", b"x" * 40, bytes(1500)])
    ),
    st.sets(st.sampled_from([7, 7 << 8, 0, 3]), max_size=3),
)
def test_a_search_by_ids_finds_what_a_search_of_each_place_finds(pieces: list[bytes], ids: set[int]) -> None:
    """Each with the same effort left."""
    outcomes = []
    for is_asked in (False, True):
        conversation = Conversation("", iter(range(10_000)).__next__)
        for number in ids:
            conversation.request(FrameBody(struct.pack(">hhih", 12, 0, number, -1), 0, None), "")
        cutter = FrameSplitter(
            conversation.fits_response, in_step=False, may_fit=conversation.may_answer if is_asked else None
        )
        parts = [part for piece in pieces for part in cutter.feed(piece, NOW)] + cutter.finish(NOW)
        outcomes.append((seen(*parts), cutter._effort.remaining, cutter._effort.refused))
    assert outcomes[0] == outcomes[1]
