"""Dialects: what was spoken before Kafka 0.8, and what its coordinator drafts would have spoken.

grammar.py           the calls of each dialect, and their frames' bytes
matching.py          which request a frame answers, and what it may be
draft_connection.py  one side of a connection in a dialect
"""

from coordwire.dialects.grammar import Dialect, DraftFrame, Grammar

__all__ = ["Dialect", "DraftFrame", "Grammar"]
