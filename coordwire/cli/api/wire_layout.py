"""One version of a message as it is on the wire: field after field, with the encoding of each.

Strategy: the version's layout gives fields in their order; they become dicts, which `--format json` writes
and `layout_text` lays out. Rules: a struct's fields follow the field that holds it; tagged fields come last,
by number; where there is little room beside them, fields have no docs.
"""

from __future__ import annotations

__all__ = ["layout", "layout_text"]

from collections.abc import Iterator
from typing import Any

from coordwire.cli.api.api_text import wrap
from coordwire.cli.api.field_docs import field_doc
from coordwire.codec import Field, Message, VersionLayout
from coordwire.messages import find_message
from coordwire.versions import header_version

Form = dict[str, Any]
WIDEST = 40
"""Columns of names and of types; what is wider moves its line's text."""

LEAST = 30
"""Columns that docs need."""

TAGGED = "tagged fields"
LEGEND = {
    "compact string": "an unsigned varint with the length plus 1, 0 for null; UTF-8",
    "compact bytes": "an unsigned varint with the length plus 1, 0 for null",
    "compact array": "an unsigned varint with the count plus 1, 0 for null",
    "string": "an int16 length, -1 for null; UTF-8",
    "bytes": "an int32 length, -1 for null",
    "array": "an int32 count, -1 for null",
    "records": "as bytes: record batches",
    "compact records": "as compact bytes: record batches",
    TAGGED: "an unsigned varint with their count; of each its number and size as unsigned varints, its bytes",
}
"""How the encodings begin that are not a number of a fixed size."""


def layout(cls: type[Message], version: int) -> Form:
    """A message in one version, with the header before it."""
    form: Form = {"name": cls.__name__, "version": version, "flexible": version in cls.flexible_versions}
    if cls.api_key is not None:
        number = header_version(cls.api_key, version, cls.direction)
        header = find_message(f"{cls.direction.capitalize()}Header")
        form["header"] = {"version": number, "fields": list(_fields(header._layout_.at(number), ""))}
    return form | {"fields": list(_fields(cls._layout_.at(version), ""))}


def _fields(at: VersionLayout, prefix: str) -> Iterator[Form]:
    for field in at.inline:
        yield from _field(at, field, prefix)
    if at.flexible:
        tags = [field.tag for field in at.tagged_in_order]
        yield {"path": f"{prefix}tags", "name": "tags", "wire": TAGGED, "tags": tags, "doc": ""}
        for field in at.tagged_in_order:
            yield from _field(at, field, f"{prefix}tags.")


def _field(at: VersionLayout, field: Field, prefix: str) -> Iterator[Form]:
    path = f"{prefix}{field.name}"
    form = {"path": path, "name": field.name, "wire": _wire(at, field), "doc": field_doc(at.cls, field.name)}
    yield form | ({} if field.tag is None else {"tag": field.tag})
    if (inner := at.inner(field)) is not None:
        yield from _fields(inner, f"{path}.")


def _wire(at: VersionLayout, field: Field) -> str:
    """A field's encoding in words."""
    kind = field.struct.__name__ if field.struct else field.type
    null = "nullable " if field.nullable(at.version) else ""
    compact = "compact " if at.compact(field) else ""
    if field.unprefixed:
        return f"{kind}, each after its int32 size, to the end" if field.array else f"{kind} to the end"
    if field.array:
        if at.count_type != "int32":
            return f"{null}array of {kind} after an {at.count_type} count"
        return f"{null}{compact}array of {compact if kind == 'string' else ''}{kind}"
    if field.struct:
        return f"int8, -1 for null, then {kind}" if null else kind
    return f"{null}{compact}{kind}" if kind in ("string", "bytes", "records") else kind


def layout_text(form: Form, width: int) -> Iterator[str]:
    """The text of what `api` makes of an API's messages in one version."""
    used: set[str] = set()
    for number, message in enumerate(form["messages"]):
        if number:
            yield ""
        flexible = ", flexible" if message["flexible"] else ""
        yield f"{message['name']} v{message['version']}{flexible}"
        rows = []
        if "header" in message:
            rows += [(0, "size", "int32", "The bytes that follow.")]
            header = message["header"]
            rows.append((0, f"header v{header['version']}", "", ""))
            rows += [_row(field, 1) for field in header["fields"]]
            rows.append((0, "body", "", ""))
        rows += [_row(field, int("header" in message)) for field in message["fields"]]
        if not message["fields"]:
            rows.append((int("header" in message), "(no fields)", "", ""))
        yield from _lines(rows, width)
        used |= {wire for _, _, wire, _ in rows}
    words = {word: text for word, text in LEGEND.items() if any(_is_of(word, wire) for wire in used)}
    if words:
        yield ""
        for word, text in words.items():
            yield from wrap(text, 19, width, f"  {word:<15}  ")


def _is_of(word: str, wire: str) -> bool:
    """Whether an encoding begins with this one, or its elements have it."""
    return any(part.removeprefix("nullable ").startswith(word) for part in (wire, wire.partition(" of ")[2]))


def _row(field: Form, depth: int) -> tuple[int, str, str, str]:
    number = f"{field['tag']} " if "tag" in field else ""
    return depth + field["path"].count("."), f"{number}{field['name']}", field["wire"], field["doc"]


def _lines(rows: list[tuple[int, str, str, str]], width: int) -> Iterator[str]:
    names = [f"{'  ' * (depth + 1)}{name}" for depth, name, _, _ in rows]
    column = min(max(map(len, names)), WIDEST)
    wires = min(max(len(wire) for _, _, wire, _ in rows), WIDEST)
    indent = column + wires + 4
    for name, (_, _, wire, about) in zip(names, rows, strict=True):
        start = f"{name:<{column}}  {wire:<{wires}}  "
        if width - indent < LEAST:
            yield start
        else:
            yield from wrap(about, indent, width, start)
