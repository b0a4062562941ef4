"""The native walk over frames beside the same in Python: the same entries, and the same state after them."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire._speedups import native
from coordwire.capture import connections, conversation, frame_walks, pending_requests
from coordwire.capture.connections import Connections, Summary
from coordwire.capture.conversation import Conversation
from coordwire.capture.entries import FrameEntry
from coordwire.capture.flows import Chunk, Flow, NetworkAddress
from coordwire.capture.formats.pcap import as_pcap
from coordwire.capture.reader import Capture
from coordwire.frames import encode_request, encode_response
from coordwire.limits import limits
from coordwire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    ProduceRequest,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from tests.capture.samples import CAPTURES, said, traffic
from tests.capture.test_walks import damaged

pytestmark = pytest.mark.skipif(native is None, reason="there is no native half to compare with")

Read = tuple[list[object], object]


class Watched:
    """The native half, which counts the chunks that it took."""

    def __init__(self) -> None:
        self.taken = 0

    def FrameWalk(self, *arguments: Any) -> Watched:
        assert native is not None
        self._walk = native.FrameWalk(*arguments)
        return self

    def take(self, chunk: Any, limit: int) -> Any:
        found = self._walk.take(chunk, limit)
        self.taken += found is not None
        return found

    def take_run(self, chunks: list[Any], at: int, limit: int, entries: list[Any]) -> Any:
        after = self._walk.take_run(chunks, at, limit, entries)
        self.taken += after - at
        return after


def read(data: bytes, *, strict: bool = False) -> Read:
    capture = Capture(io.BytesIO(data), "x", lazy=True, strict=strict)
    entries = list(capture.entries())
    waiting = capture.waiting
    state = waiting.cost, waiting._serial, len(waiting), waiting.reduced, waiting.forgotten, capture.summary
    return [said(one) if isinstance(one, FrameEntry) else one for one in entries], state


def check(data: bytes, *, strict: bool = False) -> int:
    """Read with and without the walk; how many chunks it took."""
    watched, found = Watched(), []
    for half in (watched, None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(frame_walks, "native", half)
            found.append(read(data, strict=strict))
    assert found[0] == found[1]
    return watched.taken


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_captures(path: Path) -> None:
    data = path.read_bytes()
    check(data)
    check(damaged(data, random.Random(path.name)))


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_a_first_chunk_opens_a_connection_as_chunks_that_are_held_back_do(path: Path) -> None:
    data = path.read_bytes()
    for content in (data, damaged(data, random.Random(path.name)), data[:24] + data[24:][len(data) // 3 :]):
        results = []
        for is_held in (False, True):
            with pytest.MonkeyPatch.context() as patch:
                if is_held:
                    patch.setattr(Connections, "_is_opened_by", lambda *arguments: False)
                results.append(read(content))
        assert results[0] == results[1]


def rows(seed: int) -> Iterator[tuple[int, int, bool, bytes]]:
    """What a walk takes, and between it what it must not: frames in pieces or together, correlation ids that
    wait already or are unknown, tokens, requests that nothing answers, versions asked for."""
    chance = random.Random(seed)
    for number in range(40):
        connection, odd = chance.randrange(3), chance.randrange(14)
        wrong = {0: chance.randrange(3), 1: 1 << 31 - 1}.get(odd, number)
        beat = encode_request(
            HeartbeatRequest(group_id="g" * chance.randrange(60)), version=4, correlation_id=wrong
        )
        back = encode_response(HeartbeatResponse(), version=4, correlation_id=wrong)
        match odd:
            case 2:
                asked: Any = ProduceRequest(acks=chance.randrange(2))
                beat = encode_request(asked, version=9, correlation_id=number)
            case 3:
                version = chance.randrange(2)
                beat = encode_request(SaslHandshakeRequest(), version=version, correlation_id=number)
                back = encode_response(SaslHandshakeResponse(), version=version, correlation_id=number)
            case 4:
                beat = encode_request(ApiVersionsRequest(), version=3, correlation_id=number)
                back = encode_response(ApiVersionsResponse(), version=3, correlation_id=number)
            case 5:
                yield number, connection, False, beat[: len(beat) // 2]
                beat = beat[len(beat) // 2 :]
            case 6:
                beat += encode_request(HeartbeatRequest(), version=4, correlation_id=1000 + number)
            case 7:
                beat = (chance.randrange(9)).to_bytes(4, "big") + chance.randbytes(8)
            case 8:
                back = (3).to_bytes(4, "big") + b"abc"
        yield number, connection, False, beat
        if chance.random() < 0.8:
            yield number, connection, True, back


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 1 << 32), strict=st.booleans())
def test_what_is_out_of_the_ordinary(seed: int, strict: bool) -> None:
    check(as_pcap(rows(seed)), strict=strict)


def test_most_frames_are_taken() -> None:
    data = traffic(300)
    assert check(data) > 0.95 * len(read(data)[0])


def test_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    data = traffic(120)
    expected = len(read(data)[0])
    with limits(frame=100):
        assert 0 < check(data) < 0.8 * expected
    with monkeypatch.context() as patch:
        patch.setattr(conversation, "LATEST", 1)
        assert check(data) < expected
    monkeypatch.setattr(pending_requests.PendingRequests.__init__, "__defaults__", (9_000,))
    assert check(data) < expected // 2


def test_frames_that_another_counter_numbers_are_left_alone() -> None:
    numbers = iter(range(5, 1000))
    summary = Summary()
    reader = Connections("x", summary, lambda: (Conversation("x", lambda: next(numbers)),), lazy=True)
    flow = Flow(NetworkAddress("a", 1), NetworkAddress("b", 9092), 0)
    chunks = [
        Chunk(flow, 1, 0, encode_request(HeartbeatRequest(), version=4, correlation_id=number), number + 1)
        for number in range(4)
    ]
    entries = [one for one in chain.from_iterable(reader.batches(chunks, [])) if isinstance(one, FrameEntry)]
    assert [one.number for one in entries] == [5, 6, 7, 8]
    assert summary.frames == 0


# --- what is handed in ---


def made() -> tuple[Any, list[Any], Connections, list[Chunk]]:
    """A walk, its arguments, its reader, which has seen a frame of each side, and chunks of others."""
    assert native is not None
    arguments: list[Any] = []

    class Kept:
        def FrameWalk(self, *given: Any) -> Any:
            arguments.extend(given)
            return native.FrameWalk(*given)  # type: ignore[union-attr]

    summary = Summary()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frame_walks, "native", Kept())
        reader = Connections("x", summary, lambda: (Conversation("x", summary.next_frame),), lazy=True)
    flow = Flow(NetworkAddress("a", 1), NetworkAddress("b", 9092), 0)
    back = flow.reverse
    chunks = []
    for number in range(3):
        asked = encode_request(HeartbeatRequest(), version=4, correlation_id=number)
        answer = encode_response(HeartbeatResponse(), version=4, correlation_id=number)
        chunks += [
            Chunk(flow, 1, number * len(asked), asked, 1 + number),
            Chunk(back, 2, number * len(answer), answer, 7),
        ]
    assert len(list(reader.batches(chunks[:2], []))) == 2
    return reader._walk, arguments, reader, chunks[2:]


def test_arguments_are_checked() -> None:
    assert native is not None
    _, good, _, _ = made()
    native.FrameWalk(*good)
    kinds = good[0]
    wrong: list[tuple[int, Any]] = [
        (0, kinds[:-1]), (0, []), (3, []), (4, object()), (7, (1, 2)), (7, (1, -1, 1)),
        *((0, (*kinds[:index], other, *kinds[index + 1 :]))
          for index in range(len(kinds)) for other in (int, str, object, None)),
    ]  # fmt: skip
    for index, value in wrong:
        if index == 0 and len(value) == len(kinds) and value[7] is object:
            continue
        with pytest.raises((TypeError, AttributeError)):
            native.FrameWalk(*good[:index], value, *good[index + 1 :])
    walk = native.FrameWalk(*good)
    for arguments in ((), (1, 2), ((1, 2, 3, 4, 5), 1), (Chunk(None, 0, 0, b""), "x")):  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            walk.take(*arguments)


SLOTS: dict[str, tuple[str, ...]] = {
    "conversation": Conversation.__slots__, "waiting": pending_requests.PendingRequests.__slots__,
    "cutter": ("buffer", "in_step", "position"), "summary": ("frames",),
    "request": ("entry", "api_key", "correlation_id", "cost", "serial"),
    "route": connections._Route._fields, "chunk": Chunk._fields,
}  # fmt: skip
VALUES: tuple[Any, ...] = (None, "x", -1, 1 << 70, (), [], {}, {0: 1, 1: 2})


@pytest.mark.parametrize(
    "owner", ["conversation", "cutter", "waiting", "summary", "request", "route", "chunk"]
)
def test_slots_are_checked_when_they_are_read(owner: str) -> None:
    """Nothing that Python may put there makes the walk crash; what it declines it has not changed."""
    for name in SLOTS[owner]:
        for value in VALUES:
            walk, arguments, reader, (request, answer, *_) = made()
            routes = arguments[3]
            route = routes[id(request.flow)]
            conversation = route.conversation
            things: dict[str, Any] = {
                "conversation": conversation, "waiting": conversation.waiting, "cutter": route.cutter,
                "summary": reader.summary,
            }  # fmt: skip
            if owner == "request":
                assert walk.take(request, 1 << 20) is not None
                request = answer
                things = {"request": next(iter(conversation._waiting.values()))}
            if owner == "route":
                routes[id(request.flow)] = route._replace(**{name: value})
            elif owner == "chunk":
                request = request._replace(**{name: value})
            else:
                setattr(things[owner], name, value)
            before = len(conversation._waiting) if isinstance(conversation._waiting, dict) else None
            try:
                found = walk.take(request, 1 << 20)
            except (TypeError, AttributeError):
                continue
            if found is None and before is not None:
                assert len(conversation._waiting) == before
