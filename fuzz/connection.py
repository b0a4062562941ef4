"""Whatever bytes a peer sends, in whatever pieces: a connection raises nothing, pieces don't matter, and the
fast path gives the events of the slow one. Only what its state allows can be sent."""

from __future__ import annotations

from contextlib import nullcontext

from hypothesis import given
from hypothesis import strategies as st

from coordwire import Connection, ConnectionState, EncodeError, Role
from coordwire.codec import Message
from coordwire.connection.events import ConnectionClosed, ConnectionFailed, RequestReceived, TokenReceived
from coordwire.frames import encode_request, encode_response
from coordwire.messages import (
    ApiVersionsRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    ProduceRequest,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
    find_message,
)
from fuzz._run import main
from fuzz.seeds import framed
from tests.connections import in_python

SENT = ((ApiVersionsRequest(), 3), (HeartbeatRequest(), 4), (SaslHandshakeRequest(), 0))
"""What the client has sent."""

FRAMES = [
    *framed(),
    *(encode_request(message, version=version, correlation_id=7) for message, version in SENT),
    *(encode_request(ProduceRequest(acks=acks), version=9, correlation_id=8) for acks in (0, 1)),
    *(encode_response(HeartbeatResponse(), version=4, correlation_id=number) for number in (0, 1, 2)),
    *(
        encode_response(SaslHandshakeResponse(error_code=code), version=0, correlation_id=2)
        for code in (0, 33)
    ),
    b"\0\0\0\x03abc",
]


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Captured frames, frames that change the state, and noise, one after the other."""
    parts = draw(st.lists(st.one_of(st.sampled_from(FRAMES), st.binary(max_size=40)), min_size=1, max_size=5))
    data = b"".join(parts)
    if draw(st.booleans()):
        return data
    at = draw(st.integers(0, len(data)))
    return data[:at] + draw(st.binary(max_size=4)) + data[at + draw(st.integers(0, 4)) :]


def story(role: Role, strict: bool, refuse: bool, tokens: int, pieces: list[bytes]) -> list[object]:
    """The events of a connection, each with the state after it. Handshakes are answered, or refused; so many
    tokens are exchanged."""
    connection = Connection(role, strict=strict)
    if role is Role.CLIENT:
        for message, version in SENT:
            connection.send(message, version=version)
    results: list[object] = []
    owed: list[RequestReceived] = []
    remaining = tokens
    for piece in [*pieces, b""]:
        connection.receive_data(piece)
        for event in connection.events():
            results.append((event, connection.state))
            if isinstance(event, RequestReceived) and event.expects_response:
                owed.append(event)
            if connection.state is ConnectionState.HANDSHAKING and isinstance(event, RequestReceived):
                results.append(answered(connection, owed, refuse))
            if connection.state is ConnectionState.AUTHENTICATING and isinstance(event, TokenReceived):
                remaining -= 1
                if remaining <= 0:
                    connection.end_tokens()
                    remaining = tokens
            check(connection, event)
    assert connection.state.is_over
    return results


def answered(connection: Connection, owed: list[RequestReceived], refuse: bool) -> bytes:
    """The answers to all requests that wait, of which the last is a handshake."""
    data = b""
    for request in owed:
        if request is owed[-1]:
            answer: Message = SaslHandshakeResponse(error_code=33 if refuse else 0)
        else:
            answer = find_message(f"{type(request.request).__name__.removesuffix('Request')}Response")()
        data += connection.send(answer, request=request)
    owed.clear()
    return data


def check(connection: Connection, event: object) -> None:
    """What a connection refuses is what its state does not allow."""
    state = connection.state
    assert isinstance(event, ConnectionClosed | ConnectionFailed) == state.is_over
    try:
        connection.send_token(b"")
        assert state is ConnectionState.AUTHENTICATING
    except EncodeError:
        assert state is not ConnectionState.AUTHENTICATING
    assert connection.state is state


@given(
    streams(),
    st.lists(st.integers(1, 50), max_size=8),
    st.sampled_from(Role),
    st.booleans(),
    st.booleans(),
    st.integers(1, 2),
)
def fuzz(data: bytes, cuts: list[int], role: Role, strict: bool, refuse: bool, tokens: int) -> None:
    pieces, at = [], 0
    for cut in cuts:
        pieces.append(data[at : at + cut])
        at += cut
    pieces = [piece for piece in [*pieces, data[at:]] if piece]
    whole = repr(story(role, strict, refuse, tokens, [data] if data else []))
    bytewise = [bytes([byte]) for byte in data]
    for engine in (nullcontext, in_python):
        with engine():
            for chunks in (pieces, bytewise, [data] if data else []):
                assert repr(story(role, strict, refuse, tokens, chunks)) == whole


if __name__ == "__main__":
    main(fuzz)
