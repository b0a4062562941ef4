"""Dialects: the protocol before Kafka 0.8, and those that Kafka's coordinator drafts describe.

grammar.py   the calls of each dialect, and the bytes of their frames
matching.py  what a frame may be, and which request it answers
"""

from coordwire.dialects.grammar import Dialect, DraftFrame, Grammar

__all__ = ["Dialect", "DraftFrame", "Grammar"]
