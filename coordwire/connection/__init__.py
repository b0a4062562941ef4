"""One connection without its socket, for both sides: bytes in, events out; messages in, bytes out.

connection.py       `Connection`, the public face of an endpoint
state.py            the states, and which may follow which
dialect.py          what a connection needs of a protocol other than Kafka's
endpoint.py         what every endpoint has: its buffer, its state, how it ends
kafka.py            Kafka's client and server: answers to requests by correlation id; bare SASL tokens; whose
                    a connection is
events.py           what comes out of a connection
receive_buffer.py   bytes to frames

Data flows one way: bytes, frame, event. Rules: no I/O, no clock; nothing that a peer sends raises.
"""

from typing import TYPE_CHECKING

from coordwire._lazy import exports

if TYPE_CHECKING:
    from coordwire.connection.connection import Connection, Role
    from coordwire.connection.state import ConnectionState

_LAZY = {"Connection": "connection", "ConnectionState": "state", "Role": "connection"}

__all__ = ["Connection", "ConnectionState", "Role"]

__getattr__, __dir__ = exports(__name__, __all__, _LAZY)
