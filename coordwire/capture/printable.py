"""Text from untrusted input, escaped for display.

Rules: a character that isn't printable (control characters, line separators, bidirectional overrides, lone
surrogates) is escaped as in Python's literals, so that it moves no cursor and hides nothing; all else stays
as it is. A number that may be four bytes of something else is not quoted.
"""

from __future__ import annotations

import re

Pieces = list[tuple[str, str]]
"""A line: texts with the names of their styles."""

_NUMBER = re.compile(r"-?[0-9]{8,}")
BOUND = 9_999_999
"""No number above that is quoted: its bytes may be a text's."""


def shown(text: str) -> str:
    """Text without anything that moves a terminal's cursor or changes the direction of what follows."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def quoted(text: str, most: int) -> str:
    """A text in quotes, with what would disturb a terminal escaped. most: so many characters are shown."""
    if len(text) > most:
        return f'"{shown(text[:most])}…" ({len(text)} characters)'
    return f'"{shown(text)}"'


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def as_text(cell: str) -> str:
    """A text for a cell in CSV: what a spreadsheet would take for a formula gets an apostrophe before it."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def without_numbers(reason: str) -> str:
    """The reason of a refusal without numbers of four bytes or more: where bytes aren't what they are taken
    for, a length is a piece of a text, and that may be a secret."""
    return _NUMBER.sub(lambda match: f"{'less than -' if match[0] < '0' else 'more than '}{BOUND}", reason)
