"""Elements of HTML, with their text escaped by construction.

Rules: a plain `str` is text and is escaped; only `Html`, which nothing but these functions makes, goes in as
it is. Attributes keep their order; `class_` is `class`, `data_find` is `data-find`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

VOID = {"br", "input"}
_BLOCK = {
    "details", "div", "h2", "h3", "li", "p", "pre", "section", "summary", "table", "tbody", "thead", "tr",
    "ul",
}  # fmt: skip
"""Elements that end their line."""


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def join(parts: Iterable[str], between: str = "") -> Html:
    """Parts one after the other, texts escaped."""
    return Html(_escaped(between).join(map(_escaped, parts)))


def _escaped(part: str) -> str:
    return part if isinstance(part, Html) else escape(part)


def tag(name: str, /, *children: str, **attributes: str | None) -> Html:
    """One element; an attribute of None is left out."""
    head = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    end = "\n" if name in _BLOCK else ""
    if name in VOID:
        return Html(f"<{name}{head}>")
    return Html(f"<{name}{head}>{''.join(map(_escaped, children))}</{name}>{end}")


def table(head: Sequence[str], rows: Iterable[Html], /, **attributes: str | None) -> Html:
    """A table with one row of column heads."""
    columns = join(
        cell if isinstance(cell, Html) and cell.startswith("<th") else tag("th", cell, scope="col")
        for cell in head
    )
    element = tag("table", tag("thead", tag("tr", columns)), tag("tbody", join(rows)), **attributes)
    return tag("div", element, class_="wide", tabindex="0")


def document(title: str, *main: str, facts: str = "", script: str = "") -> str:
    """A page of the site. facts: what the line below its title says; script: what runs in it."""
    parts = [tag("p", facts, class_="facts") if facts else "", *main]
    parts += [Html(f"<script>{script}</script>")] if script else []
    html = "".join(map(_escaped, parts)).strip()
    fence = "`" * 12
    return f"# {title}\n\n{fence}{{raw}} html\n<div class=protocol>\n{html}\n</div>\n{fence}\n"
