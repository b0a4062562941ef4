"""Text from outside in HTML.

Rules: neither markup nor a character that isn't printable gets through: such a character is shown as its
escape, which browsers would drop, or obey.
"""

from __future__ import annotations

from html import escape

from coordwire.capture.printable import shown

__all__ = ["escaped"]


def escaped(text: str) -> str:
    """Text for an element or an attribute."""
    return escape(shown(text))
