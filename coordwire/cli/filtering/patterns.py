"""The regular expressions of filters: any part of a text may match, within a lower bound."""

from functools import partial

from coordwire.patterns import InvalidPattern as PatternError
from coordwire.patterns import RegularExpression

__all__ = ["MAX_INSTRUCTIONS", "Pattern", "PatternError"]

MAX_INSTRUCTIONS = 4_000
"""Of a regular expression: a text of a frame is longer than a topic's name."""

Pattern = partial(RegularExpression, anywhere=True, max_instructions=MAX_INSTRUCTIONS)
