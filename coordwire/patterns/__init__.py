"""Regular expressions in RE2's syntax, as RE2/J has it, matched in linear time.

    pattern = RegularExpression("orders-[a-z]+")     raises `InvalidPattern` with RE2/J's own description
    pattern.matches("orders-eu")           the whole name, or any part of it with `anywhere=True`
    match = PatternMatch(pattern, "orders-eu"); match.advance(1_000)    the same with interruptions

Neither a coordinator nor a filter may run a pattern on Python's `re`, which backtracks, and whose syntax is
another (look-around and back-references, but no `\\Q`, `\\z`, `\\pL`). What differs from RE2/J: a pattern
that exceeds `MAX_INSTRUCTIONS` or `MAX_DEPTH` is refused, where RE2/J takes any amount of memory. Classes of
Unicode and case folding follow Python's tables, which are newer, and scripts (`\\p{Greek}`) the names of
characters; topic names have nothing of that.
"""

from coordwire.patterns.pattern import CACHE_BYTES, PatternMatch, PatternSelection, RegularExpression
from coordwire.patterns.syntax import MAX_DEPTH, MAX_INSTRUCTIONS, InvalidPattern

__all__ = [
    "CACHE_BYTES",
    "MAX_DEPTH",
    "MAX_INSTRUCTIONS",
    "InvalidPattern",
    "PatternMatch",
    "PatternSelection",
    "RegularExpression",
]
