"""Bytes that only continue a frame are held at once: the same frames come out as where each is looked at."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable, Iterator
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire.capture import connections
from coordwire.capture.connections import Connections
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.flows import Chunk
from coordwire.capture.formats.pcap import as_pcap
from coordwire.capture.frame_decoding import LazyEntry
from coordwire.capture.framing import Effort, FrameBody, FrameSplitter
from coordwire.capture.reader import Capture
from coordwire.errors import UnreadableRange
from coordwire.frames import encode_request, encode_response
from coordwire.limits import limits
from coordwire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    ProduceRequest,
)
from coordwire.messages.api_versions import ApiVersion
from tests.capture.samples import said
from tests.capture.test_frame_walks import Read, read

START = b"\0\0"


def begins(buffer: bytearray, at: int, effort: Effort) -> bool:
    return buffer[at : at + 2] == START


def cut(seed: int) -> list[object]:
    """What a splitter makes of frames in pieces, of which some are lost or given up, and its state."""
    chance = random.Random(seed)
    splitter = FrameSplitter(begins, in_step=chance.random() < 0.7, head=4)
    is_numbered = chance.random() < 0.8
    results: list[object] = []
    number = 0
    for _ in range(6):
        size = chance.choice((0, 3, 40, 300))
        prefix = chance.choice((size, size, size, -1))
        data = struct.pack(">i", prefix) + chance.randbytes(size) + chance.choice((b"", b"\0\0\0\1-"))
        at = 0
        while at < len(data):
            number += 1
            piece = data[at : at + chance.choice((1, 2, 7, 50, 400))]
            at += len(piece)
            match chance.randrange(5):
                case 0:
                    parts = splitter.lose(len(piece), number, "lost")
                case 1:
                    parts = splitter.give_up(number, "given up")
                case 2:
                    parts = splitter.finish(number)
                case _:
                    parts = splitter.feed(piece, number, number if is_numbered else None)
            results += parts
            results.append((splitter.position, splitter.at, bytes(splitter.buffer), splitter.in_step))
    return [*results, *splitter.finish(None)]


@settings(deadline=None, max_examples=100)
@given(seed=st.integers(0, 1 << 32))
def test_a_splitter_holds_what_it_would_read(seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FrameSplitter, "only_continues", lambda *arguments: False)
        expected = cut(seed)
    assert cut(seed) == expected


def test_a_splitter_holds_nothing_that_completes_a_frame() -> None:
    splitter = FrameSplitter(begins, in_step=True)
    assert not splitter.only_continues(b"\0\0\0", None)
    assert splitter.feed(b"\0\0\0\7a", None) == []
    assert splitter.only_continues(b"bcdef", None)
    assert not splitter.only_continues(b"g", None)
    (body,) = splitter.feed(b"g", None)
    assert isinstance(body, FrameBody)
    assert body.data == b"abcdefg"
    assert not splitter.only_continues(b"\0", None)


def rows(seed: int) -> Iterator[tuple[int, int, bool, bytes]]:
    """Frames of three connections in pieces that come in turns, with whole ones between them."""
    chance = random.Random(seed)
    waiting: dict[tuple[int, bool], bytes] = {}
    for number in range(150):
        connection, back = chance.randrange(3), chance.random() < 0.4
        data = waiting.pop((connection, back), b"")
        if not data and back:
            data = encode_response(
                HeartbeatResponse(), version=4, correlation_id=chance.randrange(number + 1)
            )
        elif not data:
            group = "g" * chance.choice((1, 50, 2000))
            data = encode_request(HeartbeatRequest(group_id=group), version=4, correlation_id=number)
        for _ in range(chance.choice((1, 1, 5))):
            size = chance.choice((1, 5, 100, 900, 9000))
            yield number, connection, back, data[:size]
            data = data[size:]
            if not data:
                break
        waiting[connection, back] = data


def both(data: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[Read, Read]:
    """What a capture is read as; and without a frame that is held."""
    held = read(data)
    with monkeypatch.context() as patch:
        patch.setattr(FrameSplitter, "only_continues", lambda *arguments: False)
        return held, read(data)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("most", [connections.OPEN_FRAMES, 3000])
def test_a_reader_holds_what_it_would_read(seed: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "OPEN_FRAMES", most)
    with limits(frame=2500):
        actual, expected = both(as_pcap(rows(seed)), monkeypatch)
        assert actual == expected


def test_most_of_a_large_frame_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without asking the reader of chunks; a frame in many packets isn't decoded before it is asked for."""
    request = encode_request(HeartbeatRequest(group_id="g" * 9000), version=4, correlation_id=1)
    first = encode_request(HeartbeatRequest(), version=4, correlation_id=0)
    pieces = [first, *(request[at : at + 100] for at in range(0, len(request), 100))]
    pieces.append(encode_request(HeartbeatRequest(), version=4, correlation_id=2) * 2)
    read_chunks: list[Chunk] = []
    of_chunk = Connections._of_chunk

    def note_chunk(self: Connections, chunk: Chunk) -> Iterable[Entry]:
        read_chunks.append(chunk)
        return of_chunk(self, chunk)

    monkeypatch.setattr(Connections, "_of_chunk", note_chunk)
    data = as_pcap((number, 0, False, piece) for number, piece in enumerate(pieces))
    entries = list(Capture(BytesIO(data), "x", lazy=True).entries())
    assert len(read_chunks) < 6
    assert all(isinstance(entry, LazyEntry) for entry in entries)
    (large,) = (entry for entry in entries if entry.size > 5000)  # type: ignore[union-attr]
    assert isinstance(large, FrameEntry)
    assert large.packet is not None
    assert large.first_packet is not None
    assert large.packet - large.first_packet == len(pieces) - 3


def answers() -> Iterator[tuple[int, bytes]]:
    """Answers to an ApiVersions request of a version: read as it, refused as version 0 or as their own, and
    neither."""
    offered = [ApiVersion(api_key=18, min_version=0, max_version=3)]
    for version in (0, 2, 3, 4, 99):
        for error in (0, 35, 42):
            for written in {0, min(version, 4)}:
                message = ApiVersionsResponse(error_code=error, api_keys=offered)
                answer = encode_response(message, version=written, correlation_id=version)
                yield version, answer
                yield version, struct.pack(">i", len(answer) - 5) + answer[4:-1]
                yield version, struct.pack(">i", len(answer) - 3) + answer[4:] + b"-"
        yield version, struct.pack(">i", 9) + struct.pack(">ih", version, 35) + b"\1\0\x12"


@pytest.mark.parametrize("strict", [False, True])
def test_the_answers_to_api_versions_requests_are_lazy(strict: bool) -> None:
    frames: list[tuple[int, int, bool, bytes]] = []
    for number, (version, answer) in enumerate(answers()):
        request = bytearray(encode_request(ApiVersionsRequest(), version=3, correlation_id=version))
        request[6:8] = struct.pack(">h", version)
        frames += (number, number, False, bytes(request)), (number, number, True, answer)
    produce = encode_request(ProduceRequest(acks=1), version=9, correlation_id=1)
    data = as_pcap([*frames, (9999, 9999, False, produce)])
    eager, lazy = (
        list(Capture(BytesIO(data), "x", lazy=way, strict=strict).entries()) for way in (False, True)
    )
    assert len(eager) > 100
    for one, other in zip(eager, lazy, strict=True):
        assert isinstance(one, FrameEntry)
        assert isinstance(other, FrameEntry)
        assert isinstance(other, LazyEntry) is (other.api_key == 18)
        assert one.body_version == other.body_version
        assert said(one) == said(other)
        assert not isinstance(one, UnreadableRange)
    assert {entry.body_version for entry in eager if isinstance(entry, FrameEntry)} >= {0, 2, 3, 4}
