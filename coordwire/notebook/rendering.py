"""Trees and tables of texts to HTML, and to plain text.

Rules: every text loses its control characters here, and in HTML its markup, whatever it is and wherever it is
from. The HTML has no scripts, links or images; its colours are those of the page around it, so that dark
themes work.
"""

from __future__ import annotations

__all__ = ["html", "text"]

from collections.abc import Iterator
from html import escape

from coordwire.capture.printable import shown
from coordwire.notebook.table import DisplayTable
from coordwire.notebook.tree import DisplayNode

INDENT = "  "
WIDEST = 40
"""Characters to which a column of plain text is padded at most."""

_STYLE = (
    "<style>.coordwire{font-size:.9em;overflow-x:auto}"
    ".coordwire table{border-collapse:collapse;margin:0}"
    ".coordwire th,.coordwire td{text-align:left;vertical-align:top;padding:.1em .8em .1em 0;"
    "background:none;overflow-wrap:anywhere}"
    ".coordwire th{font-weight:600;white-space:nowrap}"
    ".coordwire .note{opacity:.65;font-weight:400}.coordwire summary{cursor:pointer}</style>"
)


# --- HTML ---


def html(value: DisplayNode | DisplayTable) -> str:
    """A tree or table as one piece of HTML."""
    content = _html_table(value) if isinstance(value, DisplayTable) else _html_tree(value)
    return f'<div class="coordwire">{_STYLE}{content}</div>'


def _escaped(value: str) -> str:
    return escape(shown(value))


def _html_tree(node: DisplayNode) -> str:
    summary = f" {_escaped(node.text)}" if node.text else ""
    return f"<b>{_escaped(node.name)}</b>{summary}{_html_rows(node.children)}"


def _html_rows(nodes: tuple[DisplayNode, ...]) -> str:
    if not nodes:
        return ""
    rows = []
    for node in nodes:
        kind = ' class="note"' if node.note else ""
        cell = _escaped(node.text)
        if node.children:
            summary = cell or f"{len(node.children)} fields"
            cell = f"<details open><summary>{summary}</summary>{_html_rows(node.children)}</details>"
        rows.append(f"<tr{kind}><th>{_escaped(node.name)}</th><td>{cell}</td></tr>")
    return f"<table>{''.join(rows)}</table>"


def _html_table(table: DisplayTable) -> str:
    head = "".join(f"<th>{_escaped(name)}</th>" for name in table.head)
    rows = "".join(f"<tr>{''.join(f'<td>{_escaped(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    note = f'<p class="note">The first {len(table.rows):,}; there are more.</p>' if table.is_cut else ""
    empty = "" if table.rows else '<p class="note">Nothing.</p>'
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{note}{empty}"


# --- plain text ---


def text(value: DisplayNode | DisplayTable) -> str:
    """A tree or table as lines."""
    lines = _text_table(value) if isinstance(value, DisplayTable) else _text_tree(value, 0)
    return "\n".join(line.rstrip() for line in lines)


def _text_tree(node: DisplayNode, depth: int) -> Iterator[str]:
    name = f"{INDENT * depth}{shown(node.name)}"
    value = shown(node.text)
    yield f"{name}: {value}" if value else f"{name}:" if node.children and depth else name
    for child in node.children:
        yield from _text_tree(child, depth + 1)


def _text_table(table: DisplayTable) -> Iterator[str]:
    rows = [table.head, *([shown(cell) for cell in row] for row in table.rows)]
    widths = [min(max(len(row[column]) for row in rows), WIDEST) for column in range(len(table.head))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
    if table.is_cut:
        yield f"The first {len(table.rows):,}; there are more."
