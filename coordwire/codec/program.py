"""Field tables to programs, which the native engine runs, and to transcribers, by which it writes the JSON
text of a message's bytes: one of each for each struct and version.

Strategy: `FieldTable.at(version)` says what is on the wire; each field becomes a row that the engine checks
and keeps with the offset of its slot. Rules: programs are made when a version is first used; where the engine
can't serve, None takes the place of one, and the Python code serves. Numbers and flags are those of
`engine.h`.

A transcriber goes by the program of its layout; a row for each field on the wire adds what the text
needs. The text is that of `coordwire.to_json` as `json` writes it, compact and ASCII; bytes that the
engine's decoder declines are declined, and so are unknown tagged fields. Whatever is accepted would be
written as it is, but for tagged fields at their defaults (`OTHERWISE`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from coordwire._speedups import native
from coordwire.codec.fields import LEAF_FACTOR, NEVER, Field, VersionLayout
from coordwire.codec.primitives import ELEMENT_COST, ZERO_UUID
from coordwire.errors import EncodeError
from coordwire.limits import Limits, context

if TYPE_CHECKING:
    from coordwire._speedups import _native
    from coordwire.codec.message import Message, Struct

if native is not None:
    native.bind(UUID, ZERO_UUID.is_safe, Limits, context, LEAF_FACTOR, ELEMENT_COST)

_KINDS = {
    "int8": 0, "int16": 1, "int32": 2, "int64": 3, "uint16": 4, "uint32": 5, "float64": 6, "bool": 7,
    "uuid": 8, "string": 9, "bytes": 10, "records": 10, "struct": 11, "long_string": 12,
}  # fmt: skip

_ARRAY, _NULLABLE, _COMPACT, _SHORT, _UNPREFIXED, _IGNORABLE, _FRESH, _EVER_NULL = (
    1 << bit for bit in range(8)
)


def message_program(cls: type[Message], version: int) -> _native.Program | None:
    """The program that makes and reads objects of a message class, or of a user's subclass of one."""
    if version not in cls.versions:
        return None
    layout = cls._layout_.at(version)
    return layout_program(layout) if cls is layout.cls else compiled(layout, cls)


def layout_program(layout: VersionLayout) -> _native.Program | None:
    """The program of a layout for its own class, made once; None where Python alone serves."""
    if not layout.programs:
        layout.programs.append(compiled(layout, layout.cls))
    return layout.programs[0]


def compiled(layout: VersionLayout, cls: type[Struct]) -> _native.Program | None:
    """The program of a layout, for its class or a subclass that keeps its slots and the common way to
    them."""
    if native is None or (layout.tagged and not layout.flexible):
        return None
    if cls.__setattr__ is not object.__setattr__ or cls.__getattribute__ is not object.__getattribute__:
        return None
    names = (*(field.name for field in layout.table.fields), "tags")
    if any(getattr(cls, name) is not getattr(layout.cls, name) for name in names):
        return None
    sections = (layout.inline, layout.tagged_in_order, layout.absent)
    places = [[_row(field, layout) for field in section] for section in sections]
    if any(row is None for place in places for row in place):
        return None
    inline, tags, absent = (tuple(row for row in place if row is not None) for place in places)
    program: _native.Program = native.Program(cls, layout.flexible, inline, tags, absent)
    return program


def _row(field: Field, layout: VersionLayout) -> _native.Row | None:
    """A field as the engine takes it; None where it can't."""
    version = layout.version
    min_size = 1 if field.unprefixed and field.struct is None else layout.element_min_size(field)
    inner: Any = None
    if field.struct is not None:
        inner = layout_program(field.struct._layout_.at(version))
        if inner is None:
            return None
    if min_size < 1:  # any number of elements would fit no bytes
        return None
    fresh = field.default is not None and (field.array or field.struct is not None)
    flags = (
        (_ARRAY if field.array else 0)
        | (_NULLABLE if field.nullable(version) else 0)
        | (_COMPACT if layout.compact(field) else 0)
        | (_SHORT if field.array and layout.table.short_counts else 0)
        | (_UNPREFIXED if field.unprefixed else 0)
        | (_IGNORABLE if field.ignorable else 0)
        | (_FRESH if fresh else 0)
        | (_EVER_NULL if field.null < NEVER else 0)
    )
    default = None if fresh else field.default
    cost = layout.element_memory_cost(field)
    tag = -1 if field.tag is None else field.tag
    return field.name, _KINDS[field.type], flags, tag, min_size, cost, inner, default


# --- transcriber ---


HAS_CODES, OTHERWISE, HAS_ZEROS = 1, 2, 4
"""What a transcriber finds on its way: an error code that is not 0; a tagged field at its default; a zero in
the text, which is "\\u0000" there."""


def layout_transcriber(layout: VersionLayout) -> _native.Transcriber | None:
    """The transcriber of a layout, made once; None where Python alone serves."""
    if not layout.transcribers:
        layout.transcribers.append(_build(layout))
    return layout.transcribers[0]


def _build(layout: VersionLayout) -> _native.Transcriber | None:
    program = layout_program(layout)
    if native is None or program is None:
        return None
    order = [field for field in layout.table.fields if field.exists(layout.version)]
    tagged = layout.tagged_in_order
    if not _can_be_moved(order, tagged):
        return None
    rows = []
    for field in (*layout.inline, *tagged):
        row = _text_row(field, layout, order)
        if row is None:
            return None
        rows.append(row)
    transcriber: _native.Transcriber = native.Transcriber(program, tuple(rows))
    return transcriber


def _can_be_moved(order: list[Field], tagged: list[Field]) -> bool:
    """Whether the engine can bring tagged fields, one by one as the wire has them, into the text's order.

    It can where those that go before others are in that order on the wire, and so are those at the end.
    """
    last = max((index for index, field in enumerate(order) if field.tag is None), default=-1)
    indexes = [order.index(field) for field in tagged]
    moved, at_end = [i for i in indexes if i < last], [i for i in indexes if i > last]
    return moved == sorted(moved) and at_end == sorted(at_end)


def _text_row(field: Field, layout: VersionLayout, order: list[Field]) -> _native.TextRow | None:
    """A field as the engine takes it; None where it can't."""
    inner = None
    if field.struct is not None:
        inner = layout_transcriber(field.struct._layout_.at(layout.version))
        if inner is None:
            return None
    if field.unprefixed or (field.tag is not None and field.type == "float64"):  # 0.0 and -0.0 are equal
        return None
    before = order[: order.index(field)]
    place = sum(earlier.tag is None for earlier in before)
    code = field.entity == "error_code"
    if code and (field.array or field.type != "int16"):
        return None
    default = None if field.tag is None else _default(field, layout)
    return f'"{field.json_name}":'.encode(), code, place, default, inner


def _default(field: Field, layout: VersionLayout) -> bytes | None:
    """A tagged field's default on the wire; None if the version has no bytes for it."""
    from coordwire.codec.interpreter.encoder import Writer

    writer = Writer(layout.version)
    try:
        writer.field(field.fresh_default(), field, layout)
    except EncodeError:
        return None
    return bytes(writer.out)
