"""The states of a connection: every transition, and what each state refuses."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from coordwire import Connection, ConnectionState, EncodeError, limits
from coordwire.connection.events import (
    ConnectionClosed,
    ConnectionFailed,
    Event,
    FrameRefused,
    RequestReceived,
    ResponseReceived,
    TokenReceived,
)
from coordwire.connection.state import TRANSITIONS, Transition, next_state
from coordwire.dialects.connection import ConnectionDialect
from coordwire.frames import encode_response
from coordwire.messages import (
    Draft2ClusterMetadataRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from tests.connections import in_python

OPEN, HANDSHAKING, AUTHENTICATING, CLOSED_BY_PEER, CLOSED, FAILED = ConnectionState
HANDSHAKE = SaslHandshakeRequest(mechanism="PLAIN")
HEARTBEAT = HeartbeatRequest(group_id="g")
TOKEN = struct.pack(">i", 3) + b"abc"


def feed(connection: Connection, data: bytes) -> list[Event]:
    connection.receive_data(data)
    return list(connection.events())


def shaken(error_code: int = 0) -> tuple[Connection, Connection]:
    """Both sides after a SaslHandshake v0 and its answer."""
    client, server = Connection("client"), Connection("server")
    (event,) = feed(server, client.send(HANDSHAKE, version=0))
    assert isinstance(event, RequestReceived)
    assert (client.state, server.state) == (HANDSHAKING, HANDSHAKING)
    feed(client, server.send(SaslHandshakeResponse(error_code=error_code), request=event))
    return client, server


def closed_by_peer(role: str) -> Connection:
    connection = Connection(role)  # type: ignore[arg-type]
    connection.receive_data(b"")
    assert connection.state is OPEN  # until the event is given out
    (event,) = connection.events()
    assert isinstance(event, ConnectionClosed)
    return connection


def closed(role: str) -> Connection:
    connection = Connection(role)  # type: ignore[arg-type]
    connection.close()
    return connection


def failed(role: str) -> Connection:
    connection = Connection(role)  # type: ignore[arg-type]
    (event,) = feed(connection, struct.pack(">i", -1))
    assert isinstance(event, ConnectionFailed)
    return connection


ENDS = {CLOSED_BY_PEER: closed_by_peer, CLOSED: closed, FAILED: failed}


# --- transitions ---


def connection_in(state: ConnectionState, role: str) -> tuple[Connection, RequestReceived | None]:
    """A connection of this role in this state, and the SaslHandshake that waits for its answer."""
    if state is AUTHENTICATING:
        return shaken()[role == "server"], None
    client, server = Connection("client"), Connection("server")
    side = client if role == "client" else server
    if state is OPEN:
        return side, None
    (handshake,) = feed(server, client.send(HANDSHAKE, version=0))
    assert isinstance(handshake, RequestReceived)
    return side, handshake


def answer_handshake(connection: Connection, handshake: RequestReceived, error_code: int) -> None:
    answer = SaslHandshakeResponse(error_code=error_code)
    if connection.role.value == "server":
        connection.send(answer, request=handshake)
    else:
        feed(connection, encode_response(answer, version=0, correlation_id=0))


def cause(transition: Transition, connection: Connection, handshake: RequestReceived | None) -> None:
    """Make a transition happen by the connection's public operations."""
    match transition:
        case Transition.HANDSHAKE if connection.role.value == "client":
            connection.send(HANDSHAKE, version=0)
        case Transition.HANDSHAKE:
            feed(connection, Connection("client").send(HANDSHAKE, version=0))
        case Transition.ACCEPTED | Transition.REFUSED:
            assert handshake is not None
            answer_handshake(connection, handshake, 33 if transition is Transition.REFUSED else 0)
        case Transition.TOKENS_ENDED:
            connection.end_tokens()
        case Transition.PEER_CLOSED:
            feed(connection, b"")
        case Transition.FAILED:
            with limits(frame=10):  # a server that handshakes holds its bytes, up to a frame
                feed(connection, struct.pack(">i", -1) + bytes(100))
        case Transition.CLOSED:
            connection.close()


@pytest.mark.parametrize("role", ["client", "server"])
@pytest.mark.parametrize(("state", "transition"), TRANSITIONS, ids=lambda value: value.name)
def test_every_transition_of_the_table(state: ConnectionState, transition: Transition, role: str) -> None:
    for engine in (nullcontext, in_python):
        with engine():
            connection, handshake = connection_in(state, role)
            assert connection.state is state
            cause(transition, connection, handshake)
            assert connection.state is TRANSITIONS[state, transition]


def test_each_state_and_cause_is_in_the_table() -> None:
    assert {state for state, _ in TRANSITIONS} == {state for state in ConnectionState if not state.is_over}
    assert {transition for _, transition in TRANSITIONS} == set(Transition)
    assert all(next_state(state, transition) is state for state in ENDS for transition in Transition)
    with pytest.raises(KeyError):
        next_state(OPEN, Transition.ACCEPTED)


def test_the_diagram_of_the_docs_is_the_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "connection.md"
    lines = ["stateDiagram-v2", f"    [*] --> {OPEN.name}"]
    for (state, cause), following in TRANSITIONS.items():
        lines.append(f"    {state.name} --> {following.name}: {cause.value}")
    lines += [f"    {state.name} --> [*]" for state in ConnectionState if state.is_over]
    assert "\n".join(["```mermaid", *lines, "```"]) in page.read_text()


def test_a_new_connection_is_open() -> None:
    for connection in (
        Connection("client"),
        Connection("server"),
        Connection("client", dialect=ConnectionDialect("draft-2")),
    ):
        assert connection.state is OPEN
        assert not connection.state.is_over


def test_an_accepted_handshake_leads_to_tokens_and_back() -> None:
    client, server = shaken()
    assert (client.state, server.state) == (AUTHENTICATING, AUTHENTICATING)
    assert feed(server, client.send_token(b"abc")) == [TokenReceived(token=b"abc")]
    assert feed(client, server.send_token(b"")) == [TokenReceived(token=b"")]
    client.end_tokens()
    assert (client.state, server.state) == (OPEN, AUTHENTICATING)
    server.end_tokens()
    (event,) = feed(server, client.send(HEARTBEAT, version=4))
    assert isinstance(event, RequestReceived)
    assert server.state is OPEN


def test_a_refused_handshake_leads_back() -> None:
    client, server = shaken(error_code=33)
    assert (client.state, server.state) == (OPEN, OPEN)
    client, server = Connection("client"), Connection("server")
    client.send(HANDSHAKE, version=0)
    (event,) = feed(client, struct.pack(">ii", 4, 0))  # an answer without a body
    assert isinstance(event, FrameRefused)
    assert client.state is OPEN


def test_a_handshake_v1_and_its_authentication_are_requests_like_others() -> None:
    client, server = Connection("client"), Connection("server")
    for request, response in (
        (HANDSHAKE, SaslHandshakeResponse()),
        (SaslAuthenticateRequest(auth_bytes=b"x"), SaslAuthenticateResponse()),
    ):
        (event,) = feed(server, client.send(request, version=1))
        assert isinstance(event, RequestReceived)
        (got,) = feed(client, server.send(response, request=event))
        assert isinstance(got, ResponseReceived)
        assert (client.state, server.state) == (OPEN, OPEN)


def test_answers_to_earlier_requests_come_before_the_handshakes() -> None:
    client, server = Connection("client"), Connection("server")
    first, second = feed(server, client.send(HEARTBEAT, version=4) + client.send(HANDSHAKE, version=0))
    assert isinstance(first, RequestReceived)
    assert isinstance(second, RequestReceived)
    (got,) = feed(client, server.send(HeartbeatResponse(), request=first))
    assert isinstance(got, ResponseReceived)
    assert (client.state, server.state) == (HANDSHAKING, HANDSHAKING)
    feed(client, server.send(SaslHandshakeResponse(), request=second))
    assert (client.state, server.state) == (AUTHENTICATING, AUTHENTICATING)


@pytest.mark.parametrize("error_code", [0, 33])
@pytest.mark.parametrize("together", [False, True])
def test_what_follows_a_handshake_waits_for_the_answer(error_code: int, together: bool) -> None:
    server = Connection("server")
    follows = Connection("client").send(HEARTBEAT, version=4) if error_code else TOKEN
    handshake = Connection("client").send(HANDSHAKE, version=0)
    if together:
        (event,) = feed(server, handshake + follows)
    else:
        (event,) = feed(server, handshake)
        assert feed(server, follows[:2]) == feed(server, follows[2:]) == []
    assert isinstance(event, RequestReceived)
    assert server.next_event() is None
    server.send(SaslHandshakeResponse(error_code=error_code), request=event)
    (after,) = server.events()
    if error_code:
        assert isinstance(after, RequestReceived)
    else:
        assert after == TokenReceived(token=b"abc")


def test_what_waits_for_a_handshakes_answer_is_bounded() -> None:
    server = Connection("server")
    feed(server, Connection("client").send(HANDSHAKE, version=0))
    with limits(frame=100):
        assert feed(server, bytes(104)) == []
        (event,) = feed(server, bytes(1))
    assert isinstance(event, ConnectionFailed)
    assert "105 bytes" in event.error.reason
    assert server.state is FAILED


def test_a_peer_that_closes_before_the_answer() -> None:
    server = Connection("server")
    feed(server, Connection("client").send(HANDSHAKE, version=0))
    server.receive_data(TOKEN)
    (event,) = feed(server, b"")
    assert event == ConnectionClosed(remainder=TOKEN, unanswered=[])
    assert server.state is CLOSED_BY_PEER


@pytest.mark.parametrize("role", ["client", "server"])
@pytest.mark.parametrize("end", ENDS, ids=lambda state: state.name)
def test_an_end_is_for_good(role: str, end: ConnectionState) -> None:
    connection = ENDS[end](role)
    assert connection.state is end
    assert connection.state.is_over
    assert feed(connection, TOKEN) == feed(connection, b"") == []
    assert connection.close() == ConnectionClosed(remainder=b"", unanswered=[])
    assert connection.state is end
    assert len(connection._endpoint.buffer) == 0


@pytest.mark.parametrize("state", [HANDSHAKING, AUTHENTICATING])
@pytest.mark.parametrize("side", [0, 1], ids=["client", "server"])
def test_each_state_can_end(state: ConnectionState, side: int) -> None:
    def made() -> Connection:
        if state is AUTHENTICATING:
            return shaken()[side]
        client, server = Connection("client"), Connection("server")
        feed(server, client.send(HANDSHAKE, version=0))
        return (client, server)[side]

    connection = made()
    assert connection.state is state
    assert connection.close().remainder == b""
    assert connection.state is CLOSED
    connection = made()
    (event,) = feed(connection, b"")
    assert isinstance(event, ConnectionClosed)
    assert connection.state is CLOSED_BY_PEER
    connection = made()
    if (state, side) != (HANDSHAKING, 1):  # where bytes are not looked at
        (event,) = feed(connection, struct.pack(">i", -1))
        assert isinstance(event, ConnectionFailed)
        assert connection.state is FAILED


def test_closing_gives_what_was_not_read_and_not_answered() -> None:
    client = Connection("client")
    client.send(HEARTBEAT, version=4)
    client.receive_data(b"\0\0")
    client.receive_data(b"\0")
    assert [sent.message for sent in client.unanswered] == [HEARTBEAT]
    closing = client.close()
    assert closing.remainder == b"\0\0\0"
    assert closing.unanswered == client.unanswered
    failing = Connection("client")
    failing.send(HEARTBEAT, version=4)
    feed(failing, struct.pack(">i", -1))
    assert [sent.message for sent in failing.unanswered] == [HEARTBEAT]


def test_bytes_before_the_peers_end_are_read_first() -> None:
    client, server = Connection("client"), Connection("server")
    server.receive_data(client.send(HEARTBEAT, version=4) + b"\0")
    server.receive_data(b"")
    server.receive_data(b"after the end")
    request, end = server.events()
    assert isinstance(request, RequestReceived)
    assert end == ConnectionClosed(remainder=b"\0", unanswered=[])


# --- what each state refuses ---


def send_heartbeat(connection: Connection) -> object:
    return connection.send(HEARTBEAT, version=4)


def send_token(connection: Connection) -> object:
    return connection.send_token(b"")


def end_tokens(connection: Connection) -> object:
    connection.end_tokens()
    return None


def waiting_for_an_answer() -> Connection:
    client = Connection("client")
    client.send(HANDSHAKE, version=0)
    return client


@pytest.mark.parametrize(
    ("make", "operation", "complaint"),
    [
        (lambda: Connection("client"), send_token, "send_token expects state AUTHENTICATING, got OPEN"),
        (lambda: Connection("client"), end_tokens, "end_tokens expects state AUTHENTICATING, got OPEN"),
        (
            lambda: Connection("server", dialect=ConnectionDialect("draft-2")),
            send_token,
            "expects state AUTHENTICATING, got OPEN",
        ),
        (
            waiting_for_an_answer,
            send_heartbeat,
            "send expects state OPEN, got HANDSHAKING: the SaslHandshake",
        ),
        (waiting_for_an_answer, send_token, "expects state AUTHENTICATING, got HANDSHAKING"),
        (waiting_for_an_answer, end_tokens, "expects state AUTHENTICATING, got HANDSHAKING"),
        (
            lambda: shaken()[0],
            send_heartbeat,
            r"expects state OPEN, got AUTHENTICATING: .* end_tokens\(\)",
        ),
        (lambda: shaken()[1], send_heartbeat, "send expects state OPEN or HANDSHAKING, got AUTHENTICATING"),
        *(
            (lambda make=make, role=role: make(role), operation, f"got {state.name}$")
            for state, make in ENDS.items()
            for role in ("client", "server")
            for operation in (send_heartbeat, send_token, end_tokens)
        ),
    ],
)
def test_an_illegal_operation_says_what_was_expected(
    make: Callable[[], Connection], operation: Callable[[Connection], object], complaint: str
) -> None:
    for engine in (nullcontext, in_python):
        connection = make()
        state, unanswered = connection.state, connection.unanswered
        with engine(), pytest.raises(EncodeError, match=complaint):
            operation(connection)
        assert (connection.state, connection.unanswered) == (state, unanswered)


def test_a_request_cannot_be_answered_after_the_end() -> None:
    client, server = Connection("client"), Connection("server")
    (event,) = feed(server, client.send(HEARTBEAT, version=4))
    assert isinstance(event, RequestReceived)
    feed(server, b"")
    with pytest.raises(EncodeError, match="got CLOSED_BY_PEER"):
        server.send(HeartbeatResponse(), request=event)


def test_a_dialects_connection_ends_too() -> None:
    request = Draft2ClusterMetadataRequest()
    for end in ("close", "peer", "failed"):
        connection = Connection("client", dialect=ConnectionDialect("draft-2"))
        connection.send(request)
        if end == "close":
            assert [sent.message for sent in connection.close().unanswered] == [request]
        else:
            assert feed(connection, b"" if end == "peer" else struct.pack(">i", -1))
        assert connection.state is {"close": CLOSED, "peer": CLOSED_BY_PEER, "failed": FAILED}[end]
        with pytest.raises(EncodeError, match="send expects state OPEN, got "):
            connection.send(request)


def test_an_answer_in_the_wrong_state_is_refused_by_its_number() -> None:
    client = Connection("client")
    data = encode_response(SaslHandshakeResponse(), version=0, correlation_id=0)
    (event,) = feed(client, data)
    assert isinstance(event, FrameRefused)
    assert client.state is OPEN
