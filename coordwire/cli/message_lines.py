"""A message laid out in lines: one field a line, short structs on one line, arrays as lists.

Strategy: walk the message by its field tables; whatever fits on the rest of a line is written flat
(`{partition_index: 0, error_code: 0 NONE}`), the rest is opened up, one level of indentation each. A line is
a list of pieces, each with the name of its style. Lines are given one by one, as the message is walked.

Rules: a refused field has its refusal in its place, and only decoded fields are shown; long texts and bytes,
and many tagged fields, are shortened, with their length; beyond a number of lines the others are only
counted. An embedded message is looked up by its path, without a search through all of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import Any
from uuid import UUID

from coordwire.capture.partial_messages import Step, decoded, steps
from coordwire.capture.printable import Pieces, quoted, shown
from coordwire.capture.redaction import secret_fields
from coordwire.codec import Field, Message, Struct
from coordwire.codec.primitives import uuid_text
from coordwire.codec.walk import layout_of
from coordwire.embedded import Embedded
from coordwire.enums import has_meaning, meaning
from coordwire.errors import DecodeError, counted
from coordwire.sasl import SaslMessage
from coordwire.spans import API_KEYS
from coordwire.versions import api_name

Inside = Embedded | Callable[[int, int], Iterable[Pieces]]
"""What bytes hold: a message, or what lays it out, given its depth and the width of a line."""

INDENT = "  "
SECRET = ("(secret, not shown)", "odd")
NULL = ("null", "none")
LONGEST_TEXT = 400
MOST_LINES = 100_000
"""Lines of one message that are shown."""

MOST_FLAT = 2_000
"""Characters of one field that are laid out for `MessageLines.line`."""

MOST_NUMBERS = 1_000
"""The names of so many numbers are kept."""

MOST_TAGS = 100
"""Unknown tagged fields of one struct that are shown."""


class MessageLines:
    """One message in one version.

    hidden: the paths of its secrets; error: where it was refused; embedded: what is inside its bytes, where
    `show_secrets` shows what else is hidden.
    """

    def __init__(
        self,
        message: Message,
        version: int,
        hidden: set[str],
        width: int,
        error: DecodeError | None = None,
        embedded: Mapping[str, Inside] | None = None,
        show_secrets: bool = False,
    ) -> None:
        self._message = message
        self._version = version
        self._hidden = hidden
        self._width = width
        self._error = error
        self._embedded = embedded or {}
        self._ways, self._inner = _sorted_out(self._embedded)
        self._show_secrets = show_secrets
        self._has_paths = bool(hidden or self._embedded)
        """Whether anything is looked up by its path; else no path is put together."""

    def lines(self, depth: int = 1) -> Iterator[Pieces]:
        """The lines; beyond `MOST_LINES` only their number."""
        lines = self._all(depth)
        yield from islice(lines, MOST_LINES)
        if unshown := sum(1 for _ in lines):
            yield more_lines(unshown, depth)
        if self._error is not None:
            yield refusal(self._error, depth)

    def line(self, unshown: Collection[str] = ()) -> Pieces:
        """The fields that are set on one line, as much of it as fits; bytes that are a text as that. unshown:
        names of fields to leave out."""
        pieces: Pieces = []
        room = self._width
        for field in self._fields(self._message):
            value = getattr(self._message, field.name)
            if room <= 0 or field.name in unshown or not field.is_set(value):
                continue
            if type(value) is bytes and value.isascii() and (text := value.decode()).isprintable():
                value = text
            flat = self._flat(type(self._message), field, value, self._place("", field.name), MOST_FLAT)
            if flat is None:
                flat = [(counted(len(value), "element", ",") if field.array else "…", "note")]
            for text, style in [(", " if pieces else "", "plain"), (f"{field.name}: ", "name"), *flat]:
                if len(text) <= room:
                    pieces.append((text, style))
                elif room > 0:
                    pieces.append((f"{text[: room - 1]}…", style))
                room -= len(text)
        return pieces

    def _all(self, depth: int) -> Iterator[Pieces]:
        path = steps(self._error.path) if self._error is not None else None
        return self._struct(self._message, "", depth, path, pack=False)

    def _place(self, path: str, name: str) -> str:
        """The path of a field."""
        return path + name if self._has_paths else ""

    # --- opened up ---

    def _struct(
        self, value: Struct, path: str, depth: int, stop: list[Step] | None, *, pack: bool
    ) -> Iterator[Pieces]:
        """A struct's fields, up to the one that was refused. pack: as many on a line as fit."""
        cls = type(value)
        complete, broken = decoded(self._fields(value), stop)
        packed: Pieces | None = None
        packed_length = 0
        indent = (INDENT * depth, "plain")
        for field in complete:
            content, place = getattr(value, field.name), self._place(path, field.name)
            if not pack and not self._has_paths and not field.array and field.struct is None:
                leaf = self._leaf(cls, field, content, "", self._width - 2 * depth - len(field.name) - 2)
                yield [indent, (f"{field.name}: ", "name"), *leaf]
                continue
            room = self._width - len(INDENT) * depth
            flat = self._flat(cls, field, content, place, room - len(field.name) - 3) if pack else None
            if flat is None or place in self._embedded:
                if packed is not None:
                    yield packed
                    packed = None
                yield from self._field(cls, field, content, place, depth, None)
                continue
            flat = [(f"{field.name}: ", "name"), *flat]
            length = _length(flat)
            if packed is not None and packed_length + 3 + length <= self._width:
                packed += [(", ", "plain"), *flat]
                packed_length += 2 + length
                continue
            if packed is not None:
                yield [*packed, (",", "plain")]
            packed, packed_length = _line(depth, flat), len(INDENT) * depth + length
        if packed is not None:
            yield packed
        if broken is not None and stop is not None and len(stop) > 1:
            content, place = getattr(value, broken.name), self._place(path, broken.name)
            yield from self._field(cls, broken, content, place, depth, stop[1:])
        if value.tags:
            tag_pieces = tags(value.tags, self._width, {tag for tag in value.tags if self._hides(path, tag)})
            yield _line(depth, [("tags: ", "name"), *tag_pieces])

    def _hides(self, path: str, tag: int) -> bool:
        return f"{path}tags[{tag}]" in self._hidden

    def _fields(self, value: Struct) -> Sequence[Field]:
        layout = layout_of(value, self._version)
        if not layout.tagged:
            return layout.inline
        return [*layout.inline, *(f for f in layout.tagged.values() if f.is_set(getattr(value, f.name)))]

    def _field(
        self, cls: type[Struct], field: Field, value: Any, path: str, depth: int, stop: list[Step] | None
    ) -> Iterator[Pieces]:
        """A field of `cls`."""
        name: Pieces = [(f"{field.name}: ", "name")]
        if value is not None and field.struct is not None and stop is not None:
            yield _line(depth, [(f"{field.name}:", "name")])
            if not field.array:
                yield from self._struct(value, f"{path}.", depth + 1, stop, pack=True)
                return
            for index, element in enumerate(value):
                last = index == len(value) - 1
                yield from self._element(element, f"{path}[{index}]", depth, stop[1:] if last else None, last)
            return
        if path in self._embedded:
            yield from self._embedded_lines(field, value, path, depth)
            return
        flat = self._flat(cls, field, value, path, self._width - len(INDENT) * depth - len(field.name) - 2)
        if flat is not None:
            yield _line(depth, name + flat)
        elif field.array:
            count = f"{len(value)} elements" if len(value) > 1 else ""
            yield _line(depth, [(f"{field.name}:", "name"), (f" {count}".rstrip(), "note")])
            for index, element in enumerate(value):
                place = f"{path}[{index}]" if self._has_paths else ""
                if field.struct is not None:
                    yield from self._element(element, place, depth, None, False)
                else:
                    leaf = self._leaf(cls, field, element, place, self._width)
                    yield _line(depth + 1, [("- ", "note"), *leaf])
        elif field.struct is not None:
            yield _line(depth, [(f"{field.name}:", "name")])
            yield from self._struct(value, f"{path}.", depth + 1, None, pack=True)

    def _element(
        self, value: Struct, path: str, depth: int, stop: list[Step] | None, cut: bool
    ) -> Iterator[Pieces]:
        """One struct of an array, with a dash before its first field."""
        if not cut and path not in self._ways:
            flat = self._flat_struct(
                value, f"{path}.", self._width - len(INDENT) * (depth + 2) - 2, braces=False
            )
            if flat is not None:
                yield _line(depth + 1, [("- ", "note"), *flat])
                return
        lines = self._struct(value, f"{path}.", depth + 2, stop, pack=True)
        first = next(lines, None)
        if first is not None:
            yield _line(depth + 1, [("- ", "note"), *first[1:]])
            yield from lines

    def _embedded_lines(self, field: Field, value: bytes, path: str, depth: int) -> Iterator[Pieces]:
        """The message, or the record set, inside a field's bytes."""
        opened = self._embedded[path]
        if not isinstance(opened, Embedded):
            yield _line(depth, [(f"{field.name}: ", "name"), (counted(len(value), "byte", ","), "plain")])
            yield from opened(depth + 1, self._width)
            return
        cls = type(opened.message)
        kind = f"{cls.__name__} v{opened.version}"
        yield _line(
            depth,
            [(f"{field.name}: ", "name"), (f"{counted(len(value), 'byte', ',')}, ", "plain"), (kind, "api")],
        )
        if (deviation := opened.deviation) is not None:
            text = f"! deviation at byte {deviation.position}, {deviation.path}: {deviation.reason}"
            yield _line(depth + 1, [(text, "odd")])
        version = min(opened.version, cls.versions[-1])
        hidden = set() if self._show_secrets else set(secret_fields.find(opened.message))
        deeper = self._inner.get(path, {})
        yield from MessageLines(
            opened.message, version, hidden, self._width, embedded=deeper, show_secrets=self._show_secrets
        ).lines(depth + 1)

    # --- on one line ---

    def _flat(self, cls: type[Struct], field: Field, value: Any, path: str, room: int) -> Pieces | None:
        """A field's value on one line; None if it takes more than `room`, unless it can't be opened up."""
        if value is None:
            return [NULL]
        if not field.array:
            if field.struct is not None:
                return self._flat_struct(value, f"{path}.", room, braces=True)
            return self._leaf(cls, field, value, path, room)
        pieces: Pieces = [("[", "plain")]
        used = 2
        for index, element in enumerate(value):
            if index:
                pieces.append((", ", "plain"))
                used += 2
            place = f"{path}[{index}]" if self._has_paths else ""
            if field.struct is not None:
                element_pieces = self._flat_struct(element, f"{place}.", room - used, braces=True)
            else:
                element_pieces = self._leaf(cls, field, element, place, self._width)
            used += _length(element_pieces) if element_pieces else 0
            if element_pieces is None or used > room:
                return None
            pieces += element_pieces
        return [*pieces, ("]", "plain")]

    def _flat_struct(self, value: Struct, path: str, room: int, *, braces: bool) -> Pieces | None:
        cls: Any = type(value)
        used = 2 if braces else 0
        if path[:-1] in self._ways or used + _least_length(cls, self._version) > room:
            return None
        pieces: Pieces = [("{", "plain")] if braces else []
        for index, field in enumerate(self._fields(value)):
            name = f"{field.name}: "
            if index:
                pieces.append((", ", "plain"))
                used += 2
            pieces.append((name, "name"))
            used += len(name)
            content = getattr(value, field.name)
            field_pieces = self._flat(cls, field, content, self._place(path, field.name), room - used)
            used += _length(field_pieces) if field_pieces else 0
            if field_pieces is None or used > room:
                return None
            pieces += field_pieces
        if value.tags:
            return None
        return [*pieces, ("}", "plain")] if braces else pieces

    def _leaf(self, cls: type[Struct], field: Field, value: Any, path: str, room: int) -> Pieces:
        if path in self._hidden:
            return [SECRET]
        kind = type(value)
        if kind is int or kind is float:
            return number(cls, field, value)
        if kind is str:
            return [(quoted(value, LONGEST_TEXT), "text")]
        match value:
            case None:
                return [NULL]
            case str():
                return [(quoted(value, LONGEST_TEXT), "text")]
            case bytes():
                return octets(value, max(min((room - 24) // 2, 32), 8))
            case UUID():
                return [(uuid_text(value), "none" if not value.int else "text")]
            case bool():
                return [("true" if value else "false", "number")]
        return number(cls, field, value)


def number(cls: type[Struct], field: Field, value: float) -> Pieces:
    """A number, with Kafka's name for it where it has one."""
    if not _may_have_name(cls.__name__, field.name):
        return [(str(value), "number")]
    name = _name_of(cls.__name__, field.name, int(value))
    if name is None:
        return [(str(value), "number")]
    if field.entity == "error_code":
        return [(f"{value} {name}", "error")] if value else [("0 ", "number"), (name, "none")]
    return [(f"{value} ", "number"), (name, "note")]


@lru_cache(MOST_NUMBERS)
def _name_of(cls: str, field: str, value: int) -> str | None:
    """Kafka's name for a number."""
    return api_name(value) if field in API_KEYS else meaning(cls, field, value)


@cache
def _may_have_name(cls: str, field: str) -> bool:
    """Whether Kafka has names for numbers of a field."""
    return field in API_KEYS or has_meaning(cls, field)


@cache
def _least_length(cls: type[Struct], version: int) -> int:
    """The length that the fields of a struct have at least on one line."""
    return sum(len(field.name) + len(": 0, ") for field in layout_of(cls, version).inline) - len(", ")


def sasl_lines(message: SaslMessage, *, show_secrets: bool) -> list[Pieces]:
    """The fields of a message of SASL, a line each."""
    lines: list[Pieces] = [[(f"{INDENT}contains ", "note"), (type(message).__name__, "api")]]
    if not show_secrets:
        lines[0].append((" (secret, not shown)", "odd"))
        return lines
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        text = octets(value, 32) if isinstance(value, bytes) else [(shown(repr(value)), "text")]
        lines.append([(f"{INDENT * 2}{field.name}: ", "name"), *text])
    return lines


def more_lines(count: int, depth: int) -> Pieces:
    """The line that takes the place of those beyond `MOST_LINES`."""
    return [(f"{INDENT * depth}… {count:,} more lines (--format json shows all)", "note")]


def refusal(error: DecodeError, depth: int) -> Pieces:
    """The line of a refusal: reason, position and path."""
    place = f", {error.path}" if error.path else ""
    return [(f"{INDENT * depth}✗ refused at byte {error.position}{place}: {error.reason}", "error")]


def octets(data: bytes, most: int) -> Pieces:
    """Bytes: how many, and the first of them in hex."""
    if not data:
        return [("0 bytes", "none")]
    count = f"{counted(len(data), 'byte', ',')} "
    return [(count, "plain"), (data[:most].hex() + ("…" if len(data) > most else ""), "bytes")]


def tags(data_by_tag: Mapping[int, bytes], width: int, hidden: Collection[int] = ()) -> Pieces:
    """Unknown tagged fields."""
    pieces: Pieces = []
    for number, data in islice(data_by_tag.items(), MOST_TAGS):
        pieces.append((f"{', ' if pieces else ''}{number}: ", "plain"))
        pieces += [SECRET] if number in hidden else octets(data, max((width - 30) // 2, 8))
    if len(data_by_tag) > MOST_TAGS:
        pieces.append((f", … {len(data_by_tag) - MOST_TAGS:,} more", "note"))
    return pieces


def _line(depth: int, pieces: Pieces) -> Pieces:
    return [(INDENT * depth, "plain"), *pieces]


def _sorted_out(embedded: Mapping[str, Inside]) -> tuple[set[str], dict[str, dict[str, Inside]]]:
    """The structs that lead to embedded messages, and for each path the messages inside it."""
    ways: set[str] = set()
    inner: dict[str, dict[str, Inside]] = {}
    for path, content in embedded.items():
        for at in (at for at, char in enumerate(path) if char == "."):
            above = path[:at]
            ways.add(above)
            if above in embedded:
                inner.setdefault(above, {})[path[at + 1 :]] = content
    return ways, inner


def _length(pieces: Pieces) -> int:
    if len(pieces) == 1:
        return len(pieces[0][0])
    return sum([len(text) for text, _ in pieces])
