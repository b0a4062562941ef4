"""The receive buffer: frames from chunks of any size, in linear time."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire import DecodeError, LimitExceeded, limits
from coordwire.connection.receive_buffer import ReceiveBuffer
from tests.growth import assert_linear


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


def drained(buffer: ReceiveBuffer) -> list[bytes]:
    results = []
    while (body := buffer.next_frame()) is not None:
        results.append(body)
    return results


@given(
    st.lists(st.binary(max_size=30), max_size=8),
    st.binary(max_size=3),
    st.lists(st.tuples(st.integers(1, 20), st.integers(0, 3))),
)
def test_frames_come_whole_whatever_the_chunks(
    bodies: list[bytes], rest: bytes, steps: list[tuple[int, int]]
) -> None:
    """Any chunks, with any number of reads after each."""
    data = framed(*bodies) + rest
    buffer, results, at = ReceiveBuffer(), [], 0
    for size, reads in steps:
        if data[at : at + size]:
            buffer.append(data[at : at + size])
        at += size
        for _ in range(reads):
            body = buffer.next_frame()
            if body is not None:
                results.append(body)
        assert len(buffer) == len(data[:at]) - len(framed(*results))
    if data[at:]:
        buffer.append(data[at:])
    results += drained(buffer)
    assert results == bodies
    assert buffer.close() == rest
    assert len(buffer) == 0


def read_in_place(buffer: ReceiveBuffer) -> bytes | None:
    """As the native engine reads."""
    if len(buffer.chunk) - buffer.position < 4:
        return None
    (size,) = struct.unpack_from(">i", buffer.chunk, buffer.position)
    start = buffer.position + 4
    if start + size > len(buffer.chunk):
        return None
    body = buffer.chunk[start : start + size]
    buffer.skip(4 + size)
    return body


@given(
    st.lists(st.binary(max_size=60), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(1, 60), st.lists(st.booleans(), max_size=3))),
)
def test_frames_can_be_read_in_place(bodies: list[bytes], steps: list[tuple[int, list[bool]]]) -> None:
    data = framed(*bodies)
    buffer, results, at = ReceiveBuffer(), [], 0
    for size, reads in [*steps, (len(data), [])]:
        if data[at : at + size]:
            buffer.append(data[at : at + size])
        at += size
        for in_place in reads:
            body = read_in_place(buffer) if in_place else buffer.next_frame()
            if body is not None:
                results.append(body)
    assert results + drained(buffer) == bodies


@given(
    st.lists(st.binary(max_size=60), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(1, 60), st.lists(st.integers(0, 90), max_size=3))),
)
def test_pieces_and_whole_frames_are_the_bytes_that_came(
    bodies: list[bytes], steps: list[tuple[int, list[int]]]
) -> None:
    """Frames with their size prefixes, and frames in pieces of at most so many bytes."""
    data = framed(*bodies)
    buffer, result, at = ReceiveBuffer(), b"", 0
    for size, pieces in [*steps, (len(data), [])]:
        if data[at : at + size]:
            buffer.append(memoryview(data)[at : at + size])
        at += size
        for most in pieces:
            assert buffer.head(most) == data[len(result) : min(at, len(result) + most)]
            if most and most < buffer.announced:  # what remains of this frame comes in pieces too
                remaining = buffer.announced
                while remaining and (piece := buffer.next_piece(min(most, remaining))):
                    result += piece
                    remaining -= len(piece)
                if remaining:
                    buffer.append(data[at : at + remaining])
                    at += remaining
                    while remaining:
                        piece = buffer.next_piece(remaining)
                        result += piece
                        remaining -= len(piece)
            else:
                result += buffer.next_wire() or b""
    while (wire := buffer.next_wire()) is not None:
        result += wire
    assert result == data
    assert buffer.next_piece(9) == b""


def test_what_a_frame_needed_is_forgotten_once_it_was_read_in_place() -> None:
    first, second = b"x" * 30, b"y" * 20
    data = framed(first, second)
    buffer = ReceiveBuffer()
    buffer.append(data[:15])
    assert buffer.next_frame() is None
    buffer.append(data[15 : 34 + 12])
    assert read_in_place(buffer) == first
    buffer.append(data[34 + 12 : 34 + 20])  # fewer bytes than wait: they gather
    buffer.append(data[34 + 20 :])
    assert buffer.next_frame() == second


def test_a_chunk_that_was_read_is_released() -> None:
    buffer = ReceiveBuffer()
    buffer.append(framed(b"body"))
    assert buffer.next_frame() == b"body"
    assert (buffer.chunk, buffer.position) == (b"", 0)
    buffer.append(framed(b"body"))
    buffer.skip(8)
    assert (buffer.chunk, buffer.position) == (b"", 0)


def test_nothing_follows_the_end() -> None:
    buffer = ReceiveBuffer()
    buffer.append(framed(b"body"))
    buffer.append(b"")
    buffer.append(framed(b"late"))
    assert drained(buffer) == [b"body"]
    assert buffer.ended
    assert buffer.close() == b""


@pytest.mark.parametrize("size", [-1, -(2**31), 2**31 - 1])
@pytest.mark.parametrize("step", [1, 4])
def test_a_size_is_refused_before_its_bytes_come(size: int, step: int) -> None:
    buffer = ReceiveBuffer()
    data = struct.pack(">i", size)
    for at in range(0, 4, step):
        assert buffer.next_frame() is None
        buffer.append(data[at : at + step])
    with pytest.raises(DecodeError):
        buffer.next_frame()


def test_the_budget_applies_to_each_frame() -> None:
    buffer = ReceiveBuffer()
    buffer.append(framed(b"12345", b"123456"))
    with limits(frame=5):
        assert buffer.next_frame() == b"12345"
        with pytest.raises(LimitExceeded):
            buffer.next_frame()
    assert buffer.next_frame() == b"123456"


@pytest.mark.parametrize("step", [1, 7, 1000])
@pytest.mark.parametrize("read", [True, False], ids=["read at once", "read at the end"])
def test_the_work_is_linear(step: int, read: bool) -> None:
    def make(count: int) -> bytes:
        return framed(*[b"x" * 20] * count) + struct.pack(">i", 24 * count) + bytes(12 * count)

    def feed(data: bytes) -> list[bytes]:
        buffer, results = ReceiveBuffer(), []
        for at in range(0, len(data), step):
            buffer.append(data[at : at + step])
            results += drained(buffer) if read else []
        return results + drained(buffer)

    assert_linear(make, feed, n=200)
