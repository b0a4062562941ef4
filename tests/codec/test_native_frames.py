"""Frames read and written by the native engine in one call: as the Python code does it, piece by piece."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pytest

from coordwire import ApiKey, CoordwireError, frames, limits
from coordwire._speedups import native
from coordwire.codec import Message
from coordwire.codec.program import message_program
from coordwire.codec.walk import walk
from coordwire.messages import find_message
from coordwire.messages.headers import RequestHeader
from coordwire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordwire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.conformance.engines import MESSAGES

pytestmark = pytest.mark.skipif(native is None, reason="the native engine isn't built, or Python is forced")

REQUEST = HeartbeatRequest(group_id="payments", generation_id=300, member_id="till-3", tags={7: b"x"})


def outcome(call: Callable[[], object]) -> object:
    try:
        return call()
    except (CoordwireError, TypeError) as error:
        return type(error), str(error), getattr(error, "position", None), getattr(error, "path", None)


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], object]:
    """The outcome of a call where no frame is native."""

    def run(call: Callable[[], object]) -> object:
        with monkeypatch.context() as patch:
            patch.setattr(frames, "_requests", None)
            patch.setattr(frames, "_responses", None)
            return outcome(call)

    return run


InPython = Callable[[Callable[[], object]], object]


@pytest.mark.parametrize("direction", ["request", "response"])
def test_every_message_in_every_version(direction: str, in_python: InPython) -> None:
    for cls in MESSAGES:
        if cls.direction != direction or cls.api_key is None:
            continue
        for version in cls.versions:
            write, read, bare = _calls(cls, version)
            raw: Any = write()
            assert raw == in_python(write)
            assert read(raw) == bare(raw[4:]) == in_python(partial(read, raw))
            assert gc.is_tracked(read(raw))


def _calls(
    cls: type[Message], version: int
) -> tuple[Callable[[], bytes], Callable[[bytes], object], Callable[[bytes], object]]:
    """A frame's writer, its reader, and the one of what follows the size."""
    key: Any = cls.api_key
    if cls.direction == "request":
        write = partial(frames.encode_request, cls(), version=version, correlation_id=-7, client_id="till")
        return write, frames.decode_request, frames.read_request
    return (
        partial(frames.encode_response, cls(), version=version, correlation_id=1 << 30),
        partial(frames.decode_response, api_key=key, version=version),
        partial(frames.read_response, api_key=key, version=version),
    )


def _parts(raw: bytes, key: Any, version: Any) -> tuple[Any, Any, bool] | None:
    """The parts of a request or a response, as a lazy entry is filled with."""
    if key is None:
        assert frames.request_framer is not None
        return frames.request_framer.parts(raw)
    assert frames.response_framer is not None
    return frames.response_framer.parts(raw, key, version)


def test_parts_are_those_of_the_frame_and_say_whether_a_text_has_a_zero() -> None:
    chance = random.Random(7)
    texts = ("", "a", "a\0", "\0", "\u00fc\0\u00fc", "x" * 200, "x" * 200 + "\0", None)
    for _ in range(300):
        text, other = chance.choice(texts[:-1]), chance.choice(texts)
        offer = JoinGroupRequestProtocol(name=chance.choice(texts[:-1]) or "", metadata=b"\0\0")
        request = JoinGroupRequest(
            group_id=text or "", group_instance_id=other, protocols=[offer], reason=other
        )
        reply = HeartbeatResponse(throttle_time_ms=1 << 24, tags={1: b"\0"})
        for version, message in ((9, request), (5, request), (4, reply)):
            is_request = message is request
            if is_request:
                raw = frames.encode_request(request, version=version, correlation_id=0, client_id="a\0")[4:]
                frame: Any = frames.read_request(raw)
            else:
                raw = frames.encode_response(reply, version=version, correlation_id=0)[4:]
                frame = frames.read_response(raw, 12, version)
            known = (None, None) if is_request else (12, version)
            zero = any(isinstance(place.value, str) and "\0" in place.value for place in walk(frame.message))
            assert _parts(raw, *known) == (frame.header, frame.message, zero)
            assert _parts(raw[:-1], *known) is None
            assert _parts(raw + b"\0", *known) is None
            assert _parts(cast(bytes, bytearray(raw)), *known) is None


def test_bytes_that_were_changed(in_python: InPython) -> None:
    chance = random.Random(5)
    request = frames.encode_request(REQUEST, version=4, correlation_id=7, client_id="till-3")
    reply = frames.encode_response(HeartbeatResponse(tags={1: b"one"}), version=4, correlation_id=7)
    for _ in range(3000):
        for raw in (request, reply):
            changed = bytearray(raw)
            for _ in range(chance.randrange(1, 3)):
                changed[chance.randrange(len(raw))] = chance.choice((0, 1, 2, 3, 4, 12, 127, 128, 255))
            cut = bytes(changed[: chance.choice((len(raw), len(raw), chance.randrange(len(raw))))])
            for strict in (True, False):
                for call in (
                    lambda: frames.decode_request(cut, strict=strict),  # noqa: B023
                    lambda: frames.read_request(cut[4:], strict=strict),  # noqa: B023
                    lambda: frames.decode_response(cut, api_key=12, version=4, strict=strict),  # noqa: B023
                ):
                    assert outcome(call) == in_python(call)


@pytest.mark.parametrize("data", [b"", b"\0\0\0\0", bytearray(b"\0\0\0\1a"), memoryview(b"a"), None, "x", 5])
def test_data_of_any_kind(data: Any, in_python: InPython) -> None:
    for call in (
        lambda: frames.decode_request(data),
        lambda: frames.decode_response(data, api_key=12, version=4),
    ):
        assert outcome(call) == in_python(call)


@pytest.mark.parametrize("key", [12, ApiKey.HEARTBEAT, True, -1, 1 << 15, 1 << 70, 9999])
@pytest.mark.parametrize("version", [4, True, 99, -1, 1 << 15, 1 << 70])
def test_keys_and_versions_of_any_kind(key: Any, version: Any, in_python: InPython) -> None:
    raw = frames.encode_response(HeartbeatResponse(), version=4, correlation_id=7)
    for call in (
        lambda: frames.decode_response(raw, api_key=key, version=version),
        lambda: frames.encode_request(REQUEST, version=version, correlation_id=key),
        lambda: frames.encode_response(HeartbeatResponse(), version=version, correlation_id=key),
    ):
        assert outcome(call) == in_python(call)


class Own(HeartbeatRequest):
    def encode(self, version: int) -> bytes:
        return b"own"


MESSAGES_OF_ANY_KIND: list[Any] = [
    REQUEST, HeartbeatResponse(), RequestHeader(), Own(), HeartbeatRequest(group_id=cast(Any, 5)), None, 5,
    Message,
]  # fmt: skip


@pytest.mark.parametrize("message", MESSAGES_OF_ANY_KIND)
@pytest.mark.parametrize("client_id", [None, "", "till-3", "é", 5])
@pytest.mark.parametrize("tags", [None, {}, {5: b"five"}])
def test_messages_of_any_kind(message: Any, client_id: Any, tags: Any, in_python: InPython) -> None:
    def outcome_of(call: Callable[[], object]) -> object:
        try:
            return call()
        except Exception as error:
            return type(error), str(error)

    for call in (
        lambda: frames.encode_request(
            message, version=4, correlation_id=1, client_id=client_id, header_tags=tags
        ),
        lambda: frames.encode_response(message, version=4, correlation_id=1, header_tags=tags),
    ):
        assert outcome_of(call) == in_python(lambda: outcome_of(call))  # noqa: B023


def test_the_budget_of_a_frame() -> None:
    raw = frames.encode_request(REQUEST, version=4, correlation_id=7)
    with limits(frame=len(raw) - 4):
        assert frames.decode_request(raw).message == REQUEST
    with limits(frame=len(raw) - 5), pytest.raises(CoordwireError, match="exceeds the budget"):
        frames.decode_request(raw)


def test_what_is_kept_does_not_grow_with_what_strangers_ask() -> None:
    assert native is not None
    asked = []

    def route(key: int, version: int) -> None:
        asked.append((key, version))

    framer = native.Framer(frames.RequestFrame, RequestHeader(), True, route)
    for _ in range(2):
        assert framer.read(b"\0\x0c\0\4" + bytes(20), False) is None
        assert framer.write(REQUEST, 4, 1, None) is None
    assert asked == [(12, 4)] * 4


def test_framers_that_are_wrong_are_refused() -> None:
    assert native is not None
    header, route = RequestHeader(), lambda key, version: None
    for arguments in (
        (object, header, True, route), (5, header, True, route), (HeartbeatRequest, header, True, route),
        (frames.RequestFrame, 5, True, route), (frames.RequestFrame, header, False, route),
    ):  # fmt: skip
        with pytest.raises((TypeError, AttributeError)):
            native.Framer(*arguments)
    framer = native.Framer(frames.RequestFrame, header, True, route)
    for call in (framer.read, framer.write, partial(framer.parts, b"", 12)):
        with pytest.raises(TypeError):
            call(b"")


def test_a_route_of_other_programs_is_not_taken() -> None:
    assert native is not None
    message = find_message(11, "request")
    head, body = message_program(message, 4), message_program(HeartbeatRequest, 4)
    for made in ((head, body), (body,), [body, body], 5, (None, body)):
        route: Any = partial(lambda made, key, version: made, made)
        framer = native.Framer(frames.RequestFrame, RequestHeader(), True, route)
        assert framer.read(b"\0\x0c\0\4" + bytes(20), False) is None
