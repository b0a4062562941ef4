"""Trees and tables of texts to plain text, without control characters."""

from __future__ import annotations

__all__ = ["rendered"]

from collections.abc import Iterator

from coordwire.capture.printable import shown
from coordwire.notebook.display_table import DisplayTable
from coordwire.notebook.display_tree import DisplayNode

INDENT = "  "
WIDEST = 40
"""Characters that a column is padded to at most."""


def rendered(value: DisplayNode | DisplayTable) -> str:
    """Its lines."""
    lines = _table(value) if isinstance(value, DisplayTable) else _tree(value, 0)
    return "\n".join(line.rstrip() for line in lines)


def _tree(node: DisplayNode, depth: int) -> Iterator[str]:
    name = f"{INDENT * depth}{shown(node.name)}"
    text = shown(node.text)
    yield f"{name}: {text}" if text else f"{name}:" if node.inside and depth else name
    for inside in node.inside:
        yield from _tree(inside, depth + 1)


def _table(table: DisplayTable) -> Iterator[str]:
    rows = [table.head, *([shown(cell) for cell in row] for row in table.rows)]
    widths = [min(max(len(row[column]) for row in rows), WIDEST) for column in range(len(table.head))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
    if table.more:
        yield f"The first {len(table.rows):,}; there are more."
