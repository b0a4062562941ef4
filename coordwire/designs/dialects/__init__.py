"""Dialects: the protocol before Kafka 0.8, and those that Kafka's coordinator drafts describe.

frames.py        a call and a frame
grammar.py       the calls of each dialect, and the bytes of their frames
matching.py      what a frame may be, and which request it answers
connection.py    a dialect as connections, captures and timelines take it; one side of a connection
conversation.py  a recorded connection
groups.py        groups in recorded traffic
"""

from typing import TYPE_CHECKING

from coordwire._lazy import exports

if TYPE_CHECKING:
    from coordwire.designs.dialects.connection import ConnectionDialect, find_dialect
    from coordwire.designs.dialects.frames import Call, Dialect, DraftFrame
    from coordwire.designs.dialects.grammar import CALLS, Grammar, find_call

_LAZY = {
    "CALLS": "grammar",
    "Call": "frames",
    "ConnectionDialect": "connection",
    "Dialect": "frames",
    "DraftFrame": "frames",
    "Grammar": "grammar",
    "find_call": "grammar",
    "find_dialect": "connection",
}

__all__ = [
    "CALLS",
    "Call",
    "ConnectionDialect",
    "Dialect",
    "DraftFrame",
    "Grammar",
    "find_call",
    "find_dialect",
]

__getattr__, __dir__ = exports(__name__, __all__, _LAZY)
