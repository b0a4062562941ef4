"""The regular expressions of filters: any part of a text may match; the bound is lower than a coordinator's."""

from functools import partial

from coordwire import patterns
from coordwire.patterns import InvalidPattern as PatternError

__all__ = ["MAX_INSTRUCTIONS", "Pattern", "PatternError"]

MAX_INSTRUCTIONS = 4_000
"""Of a regular expression: a text of a frame is longer than a topic's name."""

Pattern = partial(patterns.Pattern, anywhere=True, max_instructions=MAX_INSTRUCTIONS)
