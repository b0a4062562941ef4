"""Field tables to transcribers, by which the native engine writes the JSON text of a message's bytes.

Strategy: a transcriber goes by the program of its layout; a row for each field on the wire adds what the text
needs. Rules: the text is that of `coordwire.to_json` as `json` writes it, compact and ASCII; bytes that the
engine's decoder declines are declined, and so are unknown tagged fields. Whatever is accepted would be
written as it is, but for tagged fields at their defaults (`OTHERWISE`). Transcribers are made when a version
is first used; where the engine can't serve, None takes the place of one.
"""

from __future__ import annotations

__all__ = ["HAS_CODES", "HAS_ZEROS", "OTHERWISE", "layout_transcriber"]

from typing import TYPE_CHECKING

from coordwire._speedups import native
from coordwire.codec.fields import Field, VersionLayout
from coordwire.codec.program import layout_program
from coordwire.errors import EncodeError

if TYPE_CHECKING:
    from coordwire._speedups import _native

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
        row = _row(field, layout, order)
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


def _row(field: Field, layout: VersionLayout, order: list[Field]) -> _native.TextRow | None:
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
