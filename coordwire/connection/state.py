"""The states of a connection, the transitions between them, and the error for an operation in a wrong state.

Strategy: `TRANSITIONS` alone says which state follows which; an endpoint names the cause, and `next_state`
looks the state up. Both roles have the same table: a client sends what a server receives. The diagram of
docs/reference/connection.md shows it.

Rules: frames with headers are exchanged in OPEN and HANDSHAKING, bare SASL tokens in AUTHENTICATING.
SaslHandshake v1 and SaslAuthenticate are requests like any other, so that the state stays OPEN: only the SASL
mechanism knows when it is done. A state changes when the event that causes it is given out, not when its
bytes arrive. Nothing leaves a state in which the connection is over.
"""

from __future__ import annotations

from enum import Enum

from coordwire.errors import EncodeError


class ConnectionState(Enum):
    """The states of a connection: what it can do next.

    OPEN: exchange requests and responses. HANDSHAKING: a SaslHandshake v0 waits for its answer.
    AUTHENTICATING: exchange bare SASL tokens, until `end_tokens`. CLOSED_BY_PEER, CLOSED (by us), FAILED (the
    bytes cannot be split into frames): nothing more.

        >>> from coordwire import Connection
        >>> client = Connection("client")
        >>> client.state
        <ConnectionState.OPEN: 'open'>
        >>> client.receive_data(b"")
        >>> list(client.events())
        [ConnectionClosed(remainder=b'', unanswered=[])]
        >>> client.state, client.state.is_over
        (<ConnectionState.CLOSED_BY_PEER: 'closed by peer'>, True)
    """

    OPEN = "open"
    HANDSHAKING = "handshaking"
    AUTHENTICATING = "authenticating"
    CLOSED_BY_PEER = "closed by peer"
    CLOSED = "closed"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        """Whether the connection has ended: nothing more is sent or received."""
        return self in _ENDS


class Transition(Enum):
    """A change of the state of a connection; the value is its label in the diagram."""

    HANDSHAKE = "SaslHandshake v0 sent or received"
    ACCEPTED = "its answer, without an error"
    REFUSED = "its answer, with an error or unreadable"
    TOKENS_ENDED = "end_tokens()"
    PEER_CLOSED = "ConnectionClosed"
    FAILED = "ConnectionFailed"
    CLOSED = "close()"


_S, _T = ConnectionState, Transition
TRANSITIONS: dict[tuple[ConnectionState, Transition], ConnectionState] = {
    (_S.OPEN, _T.HANDSHAKE): _S.HANDSHAKING,
    (_S.HANDSHAKING, _T.ACCEPTED): _S.AUTHENTICATING,
    (_S.HANDSHAKING, _T.REFUSED): _S.OPEN,
    (_S.AUTHENTICATING, _T.TOKENS_ENDED): _S.OPEN,
    (_S.OPEN, _T.PEER_CLOSED): _S.CLOSED_BY_PEER,
    (_S.HANDSHAKING, _T.PEER_CLOSED): _S.CLOSED_BY_PEER,
    (_S.AUTHENTICATING, _T.PEER_CLOSED): _S.CLOSED_BY_PEER,
    (_S.OPEN, _T.FAILED): _S.FAILED,
    (_S.HANDSHAKING, _T.FAILED): _S.FAILED,
    (_S.AUTHENTICATING, _T.FAILED): _S.FAILED,
    (_S.OPEN, _T.CLOSED): _S.CLOSED,
    (_S.HANDSHAKING, _T.CLOSED): _S.CLOSED,
    (_S.AUTHENTICATING, _T.CLOSED): _S.CLOSED,
}
"""The state that follows, by the state and the cause."""

_ENDS = frozenset({ConnectionState.CLOSED_BY_PEER, ConnectionState.CLOSED, ConnectionState.FAILED})
_HINTS = {
    ConnectionState.HANDSHAKING: ": the SaslHandshake waits for its answer",
    ConnectionState.AUTHENTICATING: ": SASL tokens are exchanged until end_tokens()",
}


def illegal(operation: str, state: ConnectionState, *expected: ConnectionState) -> EncodeError:
    """The error for an operation in the wrong state: what was expected, and what it is."""
    names = " or ".join(expected_state.name for expected_state in expected)
    return EncodeError(f"{operation} expects state {names}, got {state.name}{_HINTS.get(state, '')}")


def next_state(state: ConnectionState, cause: Transition) -> ConnectionState:
    """The state that follows; a connection that is over keeps its state. Raises `KeyError` for a transition
    that the table does not have."""
    return state if state.is_over else TRANSITIONS[state, cause]
