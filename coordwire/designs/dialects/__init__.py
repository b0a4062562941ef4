"""Dialects: the protocol before Kafka 0.8, and those that Kafka's coordinator drafts describe.

frames.py        a call and a frame
grammar.py       the calls of each dialect, and the bytes of their frames
matching.py      what a frame may be, and which request it answers
connection.py    one side of a connection
conversation.py  a recorded connection
groups.py        groups in recorded traffic
"""

from coordwire.designs.dialects.connection import ConnectionDialect
from coordwire.designs.dialects.grammar import Dialect, DraftFrame, Grammar

__all__ = ["ConnectionDialect", "Dialect", "DraftFrame", "Grammar"]
