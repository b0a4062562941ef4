"""Dialects: the protocol before Kafka 0.8, those that Kafka's coordinator drafts describe, and ZooKeeper's.

frames.py                  a call and a frame
grammar.py                 the calls of each dialect, and the bytes of their frames
matching.py                what a frame may be, and which request it answers
matchings.py               the same of frames with the headers of Kafka 0.8; which of these each dialect has
dialect_options.py         the options of commands that read frames
connection.py              a dialect as connections, captures and timelines take it; one side of a connection
conversation.py            a recorded connection
groups.py                  groups in recorded traffic: those of
started_groups.py          drafts 1 and 2, whose coordinator starts and stops consumers
draft_registrations.py     (what it knows of a consumer, and when it gives it up,
draft_attempts.py          and what was seen of an attempt of a rebalance), and of
joined_groups.py           draft 3, whose consumers join
zookeeper_matching.py      ZooKeeper: what a frame is,
zookeeper_conversation.py  a recorded connection, and how it is recognised,
alternative.py             what captures may have beside another dialect: ZooKeeper's, by its first bytes
zookeeper_opening.py       how a connection begins,
zookeeper_multi.py         the operations inside a multi,
zookeeper_groups.py        groups of the ZooKeeper consumer, by its nodes
zookeeper/                 the nodes themselves: what brokers, consumers and drafts keep there
"""

from typing import TYPE_CHECKING

from coordwire._lazy import exports
from coordwire.connection.dialect import Dialect

if TYPE_CHECKING:
    from coordwire.dialects.alternative import AlternativeDialect, find_alternative
    from coordwire.dialects.connection import ConnectionDialect, find_dialect
    from coordwire.dialects.frames import Call, DraftFrame
    from coordwire.dialects.grammar import CALLS, Grammar, find_call

_LAZY = {
    "AlternativeDialect": "alternative",
    "CALLS": "grammar",
    "Call": "frames",
    "ConnectionDialect": "connection",
    "DraftFrame": "frames",
    "Grammar": "grammar",
    "find_alternative": "alternative",
    "find_call": "grammar",
    "find_dialect": "connection",
}

__all__ = [
    "CALLS",
    "AlternativeDialect",
    "Call",
    "ConnectionDialect",
    "Dialect",
    "DraftFrame",
    "Grammar",
    "find_alternative",
    "find_call",
    "find_dialect",
]

__getattr__, __dir__ = exports(__name__, __all__, _LAZY)
