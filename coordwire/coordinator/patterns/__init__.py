"""Topic patterns of KIP-848: the syntax of RE2, as RE2/J has it, matched in linear time.

    pattern = TopicPattern("orders-[a-z]+")     raises `InvalidPattern` with RE2/J's own description
    pattern.matches("orders-eu")                the whole name

A coordinator must not run a client's pattern on Python's `re`, which backtracks, and whose syntax is another
(look-around and back-references, but no `\\Q`, `\\z`, `\\pL`). What differs from RE2/J: a pattern that would
take more than `MAX_INSTRUCTIONS` or `MAX_DEPTH` is refused, where RE2/J takes any amount of memory; scripts
(`\\p{Greek}`) and case folding of letters outside ASCII follow Python's Unicode tables. Topic names have
neither.
"""

from coordwire.coordinator.patterns.invalid_pattern import InvalidPattern
from coordwire.coordinator.patterns.topic_pattern import TopicPattern

__all__ = ["InvalidPattern", "TopicPattern"]
