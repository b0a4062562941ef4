"""`coordwire api NAME VERSION`: the wire layout of one version in words, such as `group_id: COMPACT_STRING`.

Strategy: the words are those of Kafka's protocol guide, and of Kafka's kind where the guide has none
(`SHORT_ARRAY`, `SEQUENCE`); `WORDS` explains each once. A field is a line, in the order of the bytes. The
lines become dicts, which `--format json` writes and `layout_text` lays out with the meaning of each word that
they use. Rules: the layout comes from the field tables alone, and no message has a rule of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from coordwire.cli.api.fields import rows
from coordwire.cli.api.text import wrap
from coordwire.codec import Field, Message, VersionLayout
from coordwire.codec.walk import layout_of
from coordwire.messages import find_message
from coordwire.versions import header_version

Form = dict[str, Any]
WIDEST = 40
"""Columns of names and of words; what is wider moves its line's text."""

_PLAIN = ("INT", "UINT", "FLOAT", "BOOLEAN", "UUID")
"""How the words begin that need no explanation."""

_NUMBERS = {
    "int8": "1 byte, signed", "int16": "2 bytes, signed, big-endian", "int32": "4 bytes, signed, big-endian",
    "int64": "8 bytes, signed, big-endian", "uint16": "2 bytes, unsigned, big-endian",
    "uint32": "4 bytes, unsigned, big-endian", "float64": "8 bytes, IEEE 754 double, big-endian",
}  # fmt: skip

_COMPACT = "UVARINT of the {what} + 1, then {then}; {null}"
_CLASSIC = "{count} of the {what}, then {then}; {null}"


def _sized(kind: str, count: str, unit: str, content: str) -> Iterator[tuple[str, str]]:
    for null in (False, True):
        name = f"NULLABLE_{kind}" if null else kind
        yield (
            name,
            _CLASSIC.format(count=count, what=unit, then=content, null="-1: null" if null else "not null"),
        )
        layout = _COMPACT.format(what=unit, then=content, null="0: null" if null else "not null")
        yield f"COMPACT_{name}", layout


WORDS: dict[str, str] = {
    **{name.upper(): says for name, says in _NUMBERS.items()},
    "BOOLEAN": "1 byte: 0 or 1",
    "UUID": "16 bytes; all zero where there is none",
    "UVARINT": "1 to 5 bytes of 7 bits each, the lowest first; bit 7 is set in all but the last",
    **dict(_sized("STRING", "INT16", "bytes", "UTF-8")),
    "LONG_STRING": "INT32 of its bytes (-1: null where null is allowed), then UTF-8 (ZooKeeper's texts)",
    **dict(_sized("BYTES", "INT32", "bytes", "the bytes")),
    **dict(_sized("RECORDS", "INT32", "bytes", "record batches")),
    **dict(_sized("ARRAY", "INT32", "elements", "the elements")),
    "SHORT_ARRAY": "INT16 of the elements, then the elements (before Kafka 0.8)",
    "STRUCT": "its fields, with nothing before them",
    "NULLABLE_STRUCT": "INT8: 1, then its fields; or -1: null",
    "TAGGED_NULLABLE_STRUCT": "UVARINT: 1, then its fields; or 0: null",
    "SEQUENCE": "structs up to the end, each after the INT32 of its bytes",
    "REST": "the bytes up to the end",
    "TAG_SECTION": "UVARINT of the tagged fields that are there, then each by rising number: UVARINT of its "
    "number, UVARINT of its bytes, its value. A field at its default is left out; unknown numbers are kept.",
}  # fmt: skip
"""Each word of a layout, and its bytes."""


@dataclass(frozen=True, slots=True)
class LayoutLine:
    """One part of a layout: `depth` structs deep, the field at `path`, its words from the outside in.

    tag: its number in the section of tagged fields; embedded: as the field's.
    """

    depth: int
    name: str
    path: str
    words: tuple[str, ...]
    tag: int | None = None
    embedded: tuple[tuple[str, str], ...] = ()


def lines(cls: type[Message], version: int) -> list[LayoutLine]:
    """The layout of a message in one version."""
    return list(_lines(layout_of(cls, version), 0, ""))


def _lines(layout: VersionLayout, depth: int, prefix: str) -> Iterator[LayoutLine]:
    for field in layout.inline:
        yield from _field(field, layout, depth, prefix)
    if layout.flexible:
        yield LayoutLine(depth, "tags", "", ("TAG_SECTION",))
        for _, field in sorted(layout.tagged.items()):
            yield from _field(field, layout, depth + 1, prefix)


def _field(field: Field, layout: VersionLayout, depth: int, prefix: str) -> Iterator[LayoutLine]:
    path = f"{prefix}{field.name}"
    yield LayoutLine(depth, field.name, path, tuple(_words(field, layout)), field.tag, field.embedded)
    if field.struct is not None:
        yield from _lines(layout_of(field.struct, layout.version), depth + 1, f"{path}.")


def _words(field: Field, layout: VersionLayout) -> Iterator[str]:
    null = field.nullable(layout.version)
    compact = layout.flexible and not field.fixed
    if field.unprefixed:
        yield "SEQUENCE" if field.array else "REST"
    elif field.array:
        yield "SHORT_ARRAY" if layout.count_type == "int16" else _sized_word("ARRAY", compact, null)
    if field.struct is not None:
        marker = "NULLABLE_STRUCT" if field.tag is None else "TAGGED_NULLABLE_STRUCT"
        yield marker if null and not field.array else "STRUCT"
    elif field.type in ("string", "bytes", "records") and not field.unprefixed:
        yield _sized_word(field.type.upper(), compact, null and not field.array)
    elif not field.unprefixed:
        yield {"bool": "BOOLEAN"}.get(field.type, field.type.upper())


def _sized_word(kind: str, compact: bool, null: bool) -> str:
    return ("COMPACT_" if compact else "") + ("NULLABLE_" if null else "") + kind


# --- one version as JSON and as text ---


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
        yield from _table_lines(table, width)
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


def _table_lines(table: list[tuple[str, str, str]], width: int) -> Iterator[str]:
    column = min(max(len(name) for name, _, _ in table), WIDEST)
    wires = min(max(len(wire) for _, wire, _ in table), WIDEST)
    indent = column + wires + 4
    for name, wire, doc in table:
        start = f"{name:<{column}}  {wire:<{wires}}  "
        yield from wrap(doc, indent, width, start)
