"""Trees and tables of texts to HTML.

Rules: every text is escaped here, whatever it is and wherever it is from; there are no scripts, links or
images; colours are those of the page around it, so that dark themes work.
"""

from __future__ import annotations

__all__ = ["rendered"]

from html import escape

from coordwire.capture.printable import shown
from coordwire.notebook.display_table import DisplayTable
from coordwire.notebook.display_tree import DisplayNode

_STYLE = (
    "<style>.coordwire{font-size:.9em;overflow-x:auto}"
    ".coordwire table{border-collapse:collapse;margin:0}"
    ".coordwire th,.coordwire td{text-align:left;vertical-align:top;padding:.1em .8em .1em 0;"
    "background:none;overflow-wrap:anywhere}"
    ".coordwire th{font-weight:600;white-space:nowrap}"
    ".coordwire .note{opacity:.65;font-weight:400}.coordwire summary{cursor:pointer}</style>"
)


def rendered(value: DisplayNode | DisplayTable) -> str:
    """A whole piece of HTML."""
    inside = _table(value) if isinstance(value, DisplayTable) else _tree(value)
    return f'<div class="coordwire">{_STYLE}{inside}</div>'


def _escaped(text: str) -> str:
    return escape(shown(text))


def _tree(node: DisplayNode) -> str:
    text = f" {_escaped(node.text)}" if node.text else ""
    return f"<b>{_escaped(node.name)}</b>{text}{_rows(node.inside)}"


def _rows(nodes: tuple[DisplayNode, ...]) -> str:
    if not nodes:
        return ""
    rows = []
    for node in nodes:
        kind = ' class="note"' if node.note else ""
        cell = _escaped(node.text)
        if node.inside:
            summary = cell or f"{len(node.inside)} fields"
            cell = f"<details open><summary>{summary}</summary>{_rows(node.inside)}</details>"
        rows.append(f"<tr{kind}><th>{_escaped(node.name)}</th><td>{cell}</td></tr>")
    return f"<table>{''.join(rows)}</table>"


def _table(table: DisplayTable) -> str:
    head = "".join(f"<th>{_escaped(name)}</th>" for name in table.head)
    rows = "".join(f"<tr>{''.join(f'<td>{_escaped(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    more = f'<p class="note">The first {len(table.rows):,}; there are more.</p>' if table.more else ""
    empty = "" if table.rows else '<p class="note">Nothing.</p>'
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}{empty}"
