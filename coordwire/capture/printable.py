"""Text from outside, made fit to be shown.

Rules: what isn't printable (control characters, line separators, bidirectional overrides, lone surrogates) is
escaped as in Python's literals, so that it moves no cursor and hides nothing; all else stays as it is.
"""

from __future__ import annotations


def shown(text: str) -> str:
    """Text without anything that moves a terminal's cursor or changes the direction of what follows."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
