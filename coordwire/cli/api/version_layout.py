"""`coordwire api NAME VERSION`: one version's messages as they are on the wire, with the headers before them.

Strategy: `wire_layout` gives the lines; they become dicts, which `--format json` writes and `layout_text`
lays out, with the meaning of each word that they use. Rule: where there is little room beside them, fields
have no docs.
"""

from __future__ import annotations

__all__ = ["layout", "layout_text"]

from collections.abc import Iterator
from typing import Any

from coordwire.cli.api.api_text import wrap
from coordwire.cli.api.field_docs import rows
from coordwire.cli.api.wire_layout import WORDS, lines
from coordwire.codec import Message
from coordwire.messages import find_message
from coordwire.versions import header_version

Form = dict[str, Any]
WIDEST = 40
"""Columns of names and of words; what is wider moves its line's text."""

LEAST = 30
"""Columns that docs need."""

_PLAIN = ("INT", "UINT", "FLOAT", "BOOLEAN", "UUID")
"""How the words begin that need no explanation."""


def layout(cls: type[Message], version: int) -> Form:
    """A message in one version, with the header before it."""
    form: Form = {"name": cls.__name__, "version": version, "flexible": version in cls.flexible_versions}
    if cls.api_key is not None:
        number = header_version(cls.api_key, version, cls.direction)
        header = find_message(f"{cls.direction.capitalize()}Header")
        form["header"] = {"version": number, "fields": _fields(header, number)}
    return form | {"fields": _fields(cls, version)}


def _fields(cls: type[Message], version: int) -> list[Form]:
    docs = {row.path: row.doc for row in rows(cls, version)}
    return [
        {
            "path": line.path, "name": line.name, "depth": line.depth, "wire": list(line.words),
            "tag": line.tag, "doc": docs.get(line.path, ""),
        }
        for line in lines(cls, version)
    ]  # fmt: skip


def layout_text(form: Form, width: int) -> Iterator[str]:
    """The text of what `api` makes of an API's messages in one version."""
    used: list[str] = []
    for number, message in enumerate(form["messages"]):
        if number:
            yield ""
        flexible = ", flexible" if message["flexible"] else ""
        yield f"{message['name']} v{message['version']}{flexible}"
        table = list(_table(message))
        yield from _lines(table, width)
        used += [word for _, wire, _ in table for word in wire.split(" of ")]
    words = {word: text for word, text in WORDS.items() if word in used and not word.startswith(_PLAIN)}
    if words:
        yield ""
        column = max(map(len, words))
        for word, text in words.items():
            yield from wrap(text, column + 4, width, f"  {word:<{column}}  ")


def _table(message: Form) -> Iterator[tuple[str, str, str]]:
    """Name, with its indentation, words and docs of each line."""
    depth = 1
    if "header" in message:
        yield "  size", "INT32", "The bytes that follow."
        yield f"  header v{message['header']['version']}", "", ""
        yield from (_row(field, 2) for field in message["header"]["fields"])
        yield "  body", "", ""
        depth = 2
    if not message["fields"]:
        yield f"{'  ' * depth}(no fields)", "", ""
    yield from (_row(field, depth) for field in message["fields"])


def _row(field: Form, depth: int) -> tuple[str, str, str]:
    number = "" if field["tag"] is None else f"{field['tag']} "
    return (
        f"{'  ' * (depth + field['depth'])}{number}{field['name']}",
        " of ".join(field["wire"]),
        field["doc"],
    )


def _lines(table: list[tuple[str, str, str]], width: int) -> Iterator[str]:
    column = min(max(len(name) for name, _, _ in table), WIDEST)
    wires = min(max(len(wire) for _, wire, _ in table), WIDEST)
    indent = column + wires + 4
    for name, wire, doc in table:
        start = f"{name:<{column}}  {wire:<{wires}}  "
        if width - indent < LEAST:
            yield start
        else:
            yield from wrap(doc, indent, width, start)
