"""Why a pattern is refused, in RE2/J's words."""

from __future__ import annotations

__all__ = ["InvalidPattern"]


class InvalidPattern(Exception):
    """A text that is not a pattern, or exceeds a bound.

    description: what is wrong, as RE2/J describes it. position: the index in the text. reason: the same in
    words that are clear to who does not know RE2/J.
    """

    def __init__(self, description: str, position: int, reason: str | None = None) -> None:
        super().__init__(description)
        self.description = description
        self.position = position
        self.reason = reason or description
