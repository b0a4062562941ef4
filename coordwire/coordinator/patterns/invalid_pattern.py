"""Why a pattern is refused, in RE2/J's words."""

from __future__ import annotations

__all__ = ["InvalidPattern"]


class InvalidPattern(Exception):
    """A pattern that isn't one. description: what is wrong, as RE2/J describes it."""

    def __init__(self, description: str) -> None:
        super().__init__(description)
        self.description = description
