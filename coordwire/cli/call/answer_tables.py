"""Answers as tables: a row for each element of a list, with the fields of what it is in.

Strategy: a column for each field, from the outermost struct to the element; nested lists are followed as long
as a struct has one of them, and are shown as counts where a path says where to stop. Rules: a column is left
out where every row has its default, and a topic's id beside its name; numbers align right, by name where they
have one; a secret is not shown; no word is broken: what is too long for its column has a line of its own, and
where most of a column is, each cell has.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from coordwire.capture.printable import Pieces, shown
from coordwire.codec import Struct
from coordwire.codec.fields import Field
from coordwire.codec.walk import fields_of
from coordwire.enums import meaning

_GAP = 2
_HIDDEN = "(hidden)"


class Table(NamedTuple):
    """Cells by row; numeric: the columns that align right."""

    names: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: Collection[int]


def _lists(cls: type[Struct], version: int) -> list[Field]:
    return [field for field in fields_of(cls, version) if field.struct is not None and field.array]


def is_list(cls: type[Struct], version: int) -> bool:
    """Whether a response is one list of elements without lists of their own."""
    lists = _lists(cls, version)
    return len(lists) == 1 and lists[0].struct is not None and not _lists(lists[0].struct, version)


def tables(
    message: Struct,
    version: int,
    hidden: Collection[str],
    path: str | None = None,
    columns: Collection[str] = (),
) -> Iterator[tuple[str, Table]]:
    """The tables of an answer by the path of their lists. hidden: paths of secrets; path: of the only list,
    after which none is followed; columns: those that it has, all by default."""
    hidden = {path.rpartition("[")[0] if path.endswith("]") else path for path in hidden}
    for field in _lists(type(message), version):
        chain = _chain(field, version) if path is None else _named(field, path.split("."), version)
        if chain:
            rows = list(_rows(message, chain, version, hidden, "", []))
            yield ".".join(field.name for field in chain), _table(rows, columns)


def _chain(field: Field, version: int) -> list[Field]:
    """A list and those in its elements, as long as there is one."""
    assert field.struct is not None
    inner = _lists(field.struct, version)
    return [field, *_chain(inner[0], version)] if len(inner) == 1 else [field]


def _named(field: Field, names: Sequence[str], version: int) -> list[Field]:
    """A list and those in its elements that are named; nothing where it has another name."""
    if field.name != names[0]:
        return []
    assert field.struct is not None
    inner = [_named(nested, names[1:], version) for nested in _lists(field.struct, version) if names[1:]]
    return [field, *(nested for chain in inner for nested in chain)]


class _Cell(NamedTuple):
    column: str
    array: str
    text: str
    is_number: bool
    is_default: bool


def _rows(
    owner: Any, chain: Sequence[Field], version: int, hidden: Collection[str], prefix: str, outer: list[_Cell]
) -> Iterator[list[_Cell]]:
    """The rows of the last list of a chain; one without elements there has a row of what it is in."""
    field, *further = chain
    for number, element in enumerate(getattr(owner, field.name) or ()):
        place = f"{prefix}{field.name}[{number}]."
        cells = [*outer, *_cells(element, field.name, version, hidden, place, counts=not further)]
        if further and getattr(element, further[0].name):
            yield from _rows(element, further, version, hidden, place, cells)
        else:
            yield cells


def _cells(
    element: Any, array: str, version: int, hidden: Collection[str], place: str, *, counts: bool
) -> Iterator[_Cell]:
    for field in fields_of(type(element), version):
        value = getattr(element, field.name)
        if field.struct is not None and not (field.array and counts):
            continue
        is_default = value == field.fresh_default()
        number = isinstance(value, int) and not isinstance(value, bool)
        text = _HIDDEN if f"{place}{field.name}" in hidden else _text(element, field, value)
        yield _Cell(field.name, array, text, number and text == str(value), is_default)


def _text(element: Any, field: Field, value: Any) -> str:
    if field.struct is not None:
        return str(len(value or ()))
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        name = meaning(type(element).__name__, field.name, value)
        return name if (name is not None and field.name != "error_code") or (name and value) else str(value)
    if isinstance(value, list):
        return shown(",".join(map(str, value)))
    if isinstance(value, bytes | bytearray):
        return f"{len(value):,} bytes"
    return str(value) if isinstance(value, UUID | float) else shown(str(value))


def _table(rows: list[list[_Cell]], selected: Collection[str]) -> Table:
    used: dict[tuple[str, str], bool] = {}
    numeric: dict[tuple[str, str], bool] = {}
    for row in rows:
        for cell in row:
            key = cell.array, cell.column
            used[key] = used.get(key, False) or not cell.is_default
            numeric[key] = numeric.get(key, True) and cell.is_number
    keys = [key for key, is_used in used.items() if is_used and (not selected or key[1] in selected)]
    if not selected:
        keys = [(array, name) for array, name in keys if name != "topic_id" or (array, "name") not in keys]
    names = [column for _, column in keys]
    headings = [f"{array} {name}" if names.count(name) > 1 else name for array, name in keys]
    texts = [{(cell.array, cell.column): cell.text for cell in row} for row in rows]
    return Table(
        headings,
        [[row.get(key, "-") for key in keys] for row in texts],
        {index for index, key in enumerate(keys) if numeric[key]},
    )


# --- on a screen ---

_SHARES = (0.9, 0.75, 0.5)
"""How many texts of each column are to fit into it; the first of these that a screen has room for."""


def lines(table: Table, room: int) -> Iterator[Pieces]:
    """The lines of a table for so many columns of a screen."""
    heads = [name.replace("_", " ") for name in table.names]
    cells = [[head, *(row[i] for row in table.rows)] for i, head in enumerate(heads)]
    widths = [max(map(len, texts)) for texts in cells]
    spare = room - _GAP * (len(widths) - 1)
    for share in _SHARES:
        least = [max(_width(texts[1:], share), *map(len, texts[0].split())) for texts in cells]
        if sum(least) <= spare:
            break
    else:
        yield from _blocks(heads, table.rows, room)
        return
    while sum(widths) > spare:
        widest = max(range(len(widths)), key=lambda i: widths[i] - least[i])
        widths[widest] -= min(widths[widest] - least[widest], sum(widths) - spare)
    yield from ([(text, "note")] for text in _row(heads, widths, table.numeric, room))
    for row in table.rows:
        yield from ([(text, "plain")] for text in _row(row, widths, table.numeric, room))


def _width(texts: Sequence[str], share: float) -> int:
    """The width that so many of the texts of a column fit into."""
    sizes = sorted(map(len, texts))
    return sizes[int((len(sizes) - 1) * share)] if sizes else 0


def _row(cells: Sequence[str], widths: Sequence[int], numeric: Collection[int], room: int) -> Iterator[str]:
    """One row: texts of several words take further lines of their column, and longer words a line alone."""
    wrapped = [
        textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False) or [""]
        for cell, width in zip(cells, widths, strict=True)
    ]
    if not any(len(text) > width for texts, width in zip(wrapped, widths, strict=True) for text in texts):
        for number in range(max(map(len, wrapped))):
            texts = [texts[number] if number < len(texts) else "" for texts in wrapped]
            yield _joined(texts, widths, numeric)
        return
    indent, waiting = 0, [""] * len(cells)
    for i, cell in enumerate(cells):
        if len(cell) > widths[i]:
            if any(waiting):
                yield _joined(waiting, widths, numeric)
                waiting = [""] * len(cells)
            yield _placed(cell, indent, room)
        else:
            waiting[i] = cell
        indent += widths[i] + _GAP
    if any(waiting):
        yield _joined(waiting, widths, numeric)


def _joined(texts: Sequence[str], widths: Sequence[int], numeric: Collection[int]) -> str:
    parts = (
        f"{text:>{width}}" if i in numeric else f"{text:<{width}}"
        for i, (text, width) in enumerate(zip(texts, widths, strict=True))
    )
    return (" " * _GAP).join(parts).rstrip()


def _placed(text: str, indent: int, room: int) -> str:
    """A text alone on a line: in its column, unless it is too long for that."""
    start = next((start for start in (indent, _GAP) if start + len(text) <= room), 0)
    return f"{'':{start}}{text}"


def _blocks(heads: Sequence[str], rows: Sequence[Sequence[str]], room: int) -> Iterator[Pieces]:
    """A line a cell, where the columns are too many."""
    width = max(map(len, heads), default=0) + _GAP
    for number, row in enumerate(rows):
        if number:
            yield []
        for head, cell in zip(heads, row, strict=True):
            texts = textwrap.wrap(cell, max(room - width, 1), break_long_words=False, break_on_hyphens=False)
            first = texts.pop(0) if texts and width + len(texts[0]) <= room else ""
            yield [(f"{head:<{width}}", "note"), (first, "plain")] if first else [(head, "note")]
            yield from ([(_placed(text, width, room), "plain")] for text in texts)
