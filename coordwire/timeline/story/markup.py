"""Untrusted texts in HTML, tables of them, and the page around them.

Rules: neither markup nor a character that isn't printable gets through: such a character is shown as its
escape, since browsers would drop or obey it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from coordwire.capture.printable import shown

__all__ = ["document", "escaped", "table"]

SHORT = 30
"""Characters of a cell that are surely shown."""

MOST_CHARACTERS = 1_000
"""Of a cell; a longer text is cut."""


def document(title: str, subtitle: str, body: str) -> str:
    """A whole page, with its style in it."""
    from importlib.resources import files  # which stories in a terminal do without

    style = (files(__package__) / "page.css").read_text("utf-8")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escaped(title)}</title><style>\n{style}</style></head><body>"
        f'<h1>{escaped(title)}</h1><p class="sub">{escaped(subtitle)}</p>{body}</body></html>\n'
    )


def escaped(text: str) -> str:
    """Text for an element or an attribute."""
    return escape(shown(text))


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: Iterable[int] = (),
    long: Iterable[int] = (),
) -> str:
    """A table of texts. numbers: the columns that are set to the right; long: those whose texts take several
    lines. Any other cell has its whole text as a tooltip."""
    kinds = dict.fromkeys(numbers, "number") | dict.fromkeys(long, "long")

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(_cell(tag, kinds.get(index, "short"), text) for index, text in enumerate(row))

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    if not body:
        return ""
    top = f"<thead><tr>{cells('th', head)}</tr></thead>" if head else ""
    return f'<div class="scroll"><table>{top}<tbody>{body}</tbody></table></div>'


def _cell(tag: str, kind: str, text: str) -> str:
    text = text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
    title = f' title="{escaped(text)}"' if kind == "short" and len(text) > SHORT else ""
    return f'<{tag} class="{kind}"{title}>{escaped(text)}</{tag}>'
