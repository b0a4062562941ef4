"""The patterns that members subscribe to, which must match a topic's whole name."""

from coordwire.patterns import InvalidPattern
from coordwire.patterns import RegularExpression as TopicPattern

__all__ = ["InvalidPattern", "TopicPattern"]
