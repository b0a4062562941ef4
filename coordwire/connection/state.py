"""The states of a connection, and the error for an operation that its state does not allow.

                  SaslHandshake v0                 its answer, without an error
          +-----> sent or received --> HANDSHAKING ------------> AUTHENTICATING
    OPEN -+                                 |                           |
      ^   |                                 | its answer, with an error | end_tokens()
      +---|---------------------------------+---------------------------+
          |
          +-> CLOSED_BY_PEER, CLOSED, FAILED (from each state above; nothing leaves them)

Rules: frames with headers are exchanged in OPEN and HANDSHAKING, bare SASL tokens in AUTHENTICATING.
SaslHandshake v1 and SaslAuthenticate are requests like any other, so that the state stays OPEN: only the SASL
mechanism knows when it is done. A state changes when the event that causes it is given out, not when its
bytes arrive. docs/reference/connection.md has the diagram with every transition.
"""

from __future__ import annotations

from enum import Enum

from coordwire.errors import EncodeError

__all__ = ["ConnectionState", "illegal"]


class ConnectionState(Enum):
    """What a connection can do next.

    OPEN: exchange requests and responses. HANDSHAKING: a SaslHandshake v0 waits for its answer.
    AUTHENTICATING: exchange bare SASL tokens, until `end_tokens`. CLOSED_BY_PEER, CLOSED (by us), FAILED (the
    bytes cannot be split into frames): nothing more.
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


_ENDS = frozenset({ConnectionState.CLOSED_BY_PEER, ConnectionState.CLOSED, ConnectionState.FAILED})
_HINTS = {
    ConnectionState.HANDSHAKING: ": the SaslHandshake waits for its answer",
    ConnectionState.AUTHENTICATING: ": SASL tokens are exchanged until end_tokens()",
}


def illegal(operation: str, state: ConnectionState, *expected: ConnectionState) -> EncodeError:
    """The error for an operation in the wrong state: what was expected, and what it is."""
    names = " or ".join(one.name for one in expected)
    return EncodeError(f"{operation} expects state {names}, got {state.name}{_HINTS.get(state, '')}")
