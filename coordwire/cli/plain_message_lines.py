"""Whole messages laid out as lines of text, without styles, secrets and anything embedded.

Strategy: as `coordwire.cli.message_lines`, with texts in place of pieces; what a class's fields need in a
version (labels, how a value is written) is determined once. Rules: the lines are those of `MessageLines`,
which is the oracle and serves for all other messages; they are given one by one.
"""

from __future__ import annotations

__all__ = ["PlainMessageLines"]

import base64
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from coordwire.cli.message_lines import INDENT, LONGEST_TEXT, MOST_LINES, NULL, number, octets, quoted, tags
from coordwire.codec import Field, Message, Struct
from coordwire.codec.fields import TEXTS
from coordwire.codec.walk import layout_of

_Leaf = Callable[[Any, int], str]
"""The text of a value; the number: how many characters there is room for."""

MOST_NUMBERS = 1_000
"""The texts of so many numbers of one field are kept."""


class _Part(NamedTuple):
    """A field, as a line has it. size: of its label."""

    name: str
    label: str
    size: int
    is_array: bool
    is_struct: bool
    leaf: _Leaf
    is_set: Callable[[Any], bool]


class PlainMessageLines:
    """The lines of messages. width: of a line."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._layouts: dict[tuple[type[Struct], int], tuple[list[_Part], list[_Part]]] = {}

    def lines(self, message: Message, version: int) -> Iterator[str]:
        """The lines of a message, each with its end; beyond `MOST_LINES` only their number."""
        lines = self._struct(message, version, 1, pack=False)
        for line in islice(lines, MOST_LINES):
            yield line + "\n"
        if unshown := sum(1 for _ in lines):
            yield f"{INDENT}… {unshown:,} more lines (--format json shows all)\n"

    def _parts(self, value: Struct, version: int) -> list[_Part]:
        """The fields of a struct that are shown: all inline ones, and tagged ones that are set."""
        key = type(value), version
        inline, tagged = self._layouts.get(key) or self._add_layout(*key)
        if not tagged:
            return inline
        return [*inline, *[part for part in tagged if part.is_set(getattr(value, part.name))]]

    def _add_layout(self, cls: type[Struct], version: int) -> tuple[list[_Part], list[_Part]]:
        layout = layout_of(cls, version)
        parts = (
            [_part(cls, field) for field in layout.inline],
            [_part(cls, field) for field in layout.tagged.values()],
        )
        self._layouts[cls, version] = parts
        return parts

    # --- opened up ---

    def _struct(self, value: Struct, version: int, depth: int, *, pack: bool) -> Iterator[str]:
        width, indent = self._width, INDENT * depth
        room = width - len(indent)
        packed: str | None = None
        for part in self._parts(value, version):
            content = getattr(value, part.name)
            if not pack:
                if part.is_array or part.is_struct:
                    yield from self._field(part, content, version, depth)
                else:
                    yield f"{indent}{part.label}{part.leaf(content, room - part.size)}"
                continue
            flat = self._flat(part, content, version, room - part.size - 1)
            if flat is None:
                if packed is not None:
                    yield packed
                    packed = None
                yield from self._field(part, content, version, depth)
            elif packed is not None and len(packed) + 3 + part.size + len(flat) <= width:
                packed += f", {part.label}{flat}"
            else:
                if packed is not None:
                    yield packed + ","
                packed = f"{indent}{part.label}{flat}"
        if packed is not None:
            yield packed
        if value.tags:
            yield f"{indent}tags: {''.join(text for text, _ in tags(value.tags, width))}"

    def _field(self, part: _Part, value: Any, version: int, depth: int) -> Iterator[str]:
        indent = INDENT * depth
        flat = self._flat(part, value, version, self._width - len(indent) - part.size)
        if flat is not None:
            yield f"{indent}{part.label}{flat}"
        elif part.is_array:
            yield f"{indent}{part.label}{f'{len(value)} elements' if len(value) > 1 else ''}".rstrip()
            for element in value:
                if part.is_struct:
                    yield from self._element(element, version, depth)
                else:
                    yield f"{indent}{INDENT}- {part.leaf(element, self._width)}"
        else:
            yield f"{indent}{part.label[:-1]}"
            yield from self._struct(value, version, depth + 1, pack=True)

    def _element(self, value: Struct, version: int, depth: int) -> Iterator[str]:
        """One struct of an array, with a dash before its first field."""
        indent = INDENT * (depth + 1)
        flat = self._flat_struct(value, version, self._width - len(indent) - 4, braces=False)
        if flat is not None:
            yield f"{indent}- {flat}"
            return
        lines = self._struct(value, version, depth + 2, pack=True)
        first = next(lines, None)
        if first is not None:
            yield f"{indent}- {first[len(indent) + 2 :]}"
            yield from lines

    # --- on one line ---

    def _flat(self, part: _Part, value: Any, version: int, room: int) -> str | None:
        """A field's value on one line; None if it takes more than `room`, unless it can't be opened up."""
        if not part.is_array:
            if part.is_struct and value is not None:
                return self._flat_struct(value, version, room, braces=True)
            return part.leaf(value, room)
        if value is None:
            return NULL[0]
        texts: list[str] = []
        used = 2
        for index, element in enumerate(value):
            if index:
                used += 2
            if part.is_struct:
                text = self._flat_struct(element, version, room - used, braces=True)
                if text is None:
                    return None
            else:
                text = part.leaf(element, self._width)
            used += len(text)
            if used > room:
                return None
            texts.append(text)
        return f"[{', '.join(texts)}]"

    def _flat_struct(self, value: Struct, version: int, room: int, *, braces: bool) -> str | None:
        texts: list[str] = []
        used = 2 if braces else 0
        for index, part in enumerate(self._parts(value, version)):
            used += part.size + 2 if index else part.size
            content = getattr(value, part.name)
            if part.is_array or part.is_struct:
                text = self._flat(part, content, version, room - used)
                if text is None:
                    return None
            else:
                text = part.leaf(content, room - used)
            used += len(text)
            if used > room:
                return None
            texts.append(part.label + text)
        if value.tags:
            return None
        return f"{{{', '.join(texts)}}}" if braces else ", ".join(texts)


def _part(cls: type[Struct], field: Field) -> _Part:
    label = f"{field.name}: "
    is_struct = field.struct is not None
    leaf = _null if is_struct else _leaf(cls, field)
    return _Part(field.name, label, len(label), bool(field.array), is_struct, leaf, field.is_set)


def _leaf(cls: type[Struct], field: Field) -> _Leaf:
    """Writes the values of a field without parts."""
    if field.type in TEXTS:
        return _text
    match field.type:
        case "bytes" | "records":
            return _bytes
        case "uuid":
            return _uuid
        case "bool":
            return _boolean
    return _number(cls, field)


def _null(_: Any, room: int) -> str:
    return NULL[0]


def _text(value: str | None, room: int) -> str:
    return NULL[0] if value is None else quoted(value, LONGEST_TEXT)


def _bytes(value: bytes | None, room: int) -> str:
    if value is None:
        return NULL[0]
    return "".join([text for text, _ in octets(value, max(min((room - 24) // 2, 32), 8))])


def _uuid(value: Any, room: int) -> str:
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def _boolean(value: bool, room: int) -> str:
    return "true" if value else "false"


def _number(cls: type[Struct], field: Field) -> _Leaf:
    texts: dict[Any, str] = {}

    def text(value: Any, room: int) -> str:
        known = texts.get(value)
        if known is None:
            if value is None:
                return NULL[0]
            if len(texts) >= MOST_NUMBERS:
                texts.clear()
            known = "".join([text for text, _ in number(cls, field, value)])
            if type(value) is int:  # 0.0 and -0.0 are equal
                texts[value] = known
        return known

    return text
