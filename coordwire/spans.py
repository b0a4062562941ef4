"""Frames as spans: which bytes say what; behind `coordwire.explain` and the annotated hex dump.

Strategy: the exact decoder notes where every part stood (`Mark`); here they become spans, ordered by offset,
and a refusal becomes the last one. Rules: spans cover every byte of a frame, in order and without overlap;
offsets count from the byte behind the size prefix, whose own span stands at -4.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from coordwire.enums import meaning
from coordwire.errors import DecodeError
from coordwire.frames import PREFIX, check_size, read_request, read_response
from coordwire.layout.message import Buffer, Message
from coordwire.layout.reader import Mark, Reader
from coordwire.messages import find_message
from coordwire.versions import api_name

API_KEYS = frozenset({"api_key", "request_api_key"})
"""The fields that hold an api key."""

_INDEX = re.compile(r"\[\d+\]$")
_WIDTH = 8
_LONGEST_VALUE = 60


@dataclass(frozen=True, slots=True)
class Span:
    """`length` bytes from `offset`: the field at `path`, and what they say.

    sort: "value" for a field's own bytes; "length", "count", "marker" or "tags" for what goes with them;
    "size" for the prefix; "refused" for bytes that couldn't be read (`value` is then the reason), "rest" for
    what stands behind them. kind: the type on the wire. meaning: the name of a number that has one.
    """

    offset: int
    length: int
    path: str
    value: object
    sort: str
    kind: str
    meaning: str | None = None


def explain(data: Buffer, *, api_key: int | None = None, version: int | None = None) -> list[Span]:
    """The spans of one frame, size prefix included: a request, or the response to `api_key` in `version`.

    Bytes that are refused end in a span of sort "refused". Raises `DecodeError` only where the size prefix is
    none, and `ValueError` if just one of `api_key` and `version` is given.
    """
    wire = data if isinstance(data, bytes) else bytes(memoryview(data))
    if len(wire) < PREFIX:
        raise DecodeError(f"a size prefix needs {PREFIX} bytes, {len(wire)} given")
    (size,) = struct.unpack_from(">i", wire)
    check_size(size)
    return [
        Span(-PREFIX, PREFIX, "size", size, "size", "int32"),
        *body_spans(wire[PREFIX:], api_key, version),
    ]


def body_spans(
    body: bytes, api_key: int | None = None, version: int | None = None, *, lenient: bool = False
) -> list[Span]:
    """`explain` of what stands behind the size prefix."""
    if (api_key is None) != (version is None):
        raise ValueError("a response's explanation needs its api key and its version")
    marks: list[Mark] = []
    error: DecodeError | None = None
    try:
        if api_key is None or version is None:
            read_request(body, lenient=lenient, marks=marks)
        else:
            read_response(body, api_key, version, lenient=lenient, marks=marks)
    except DecodeError as caught:
        error = caught
    return list(_cover(marks, error, len(body)))


def message_spans(
    body: bytes, cls: type[Message], version: int, *, typed: bool = False, lenient: bool = False
) -> list[Span]:
    """The spans of one message without a header of Kafka's; `typed`: a type id stands before it, as in
    `coordwire.dialects`."""
    marks: list[Mark] = []
    try:
        header = Reader(body, 0, 0, marks=marks)
        if typed:
            header.message(find_message("RequestTypeHeader"), whole=False)
        Reader(body, header.pos, version, lenient=lenient, marks=marks).message(cls)
    except DecodeError as error:
        return list(_cover(marks, error, len(body)))
    return list(_cover(marks, None, len(body)))


def _cover(marks: Iterable[Mark], error: DecodeError | None, end: int) -> Iterator[Span]:
    """The marks as spans, and what they leave."""
    at = 0
    for mark in sorted(marks, key=lambda mark: mark.offset):
        if mark.length == 0 or mark.offset < at:
            continue
        if mark.offset > at:
            yield Span(at, mark.offset - at, "", None, "rest", "")
        yield Span(mark.offset, mark.length, mark.path, mark.value, mark.sort, mark.kind, _meaning(mark))
        at = mark.offset + mark.length
    if error is None:
        if at < end:
            yield Span(at, end - at, "", None, "rest", "")
        return
    where = min(max(error.offset, at), end)
    if where > at:
        yield Span(at, where - at, "", None, "rest", "")
    yield Span(where, end - where, error.path, error.reason, "refused", type(error).__name__)


def _meaning(mark: Mark) -> str | None:
    if mark.sort != "value" or not isinstance(mark.value, int) or isinstance(mark.value, bool):
        return None
    name = _INDEX.sub("", mark.path.rpartition(".")[2])
    return api_name(mark.value) if name in API_KEYS else meaning(mark.owner, name, mark.value)


def annotated(body: bytes, spans: Iterable[Span]) -> Iterator[str]:
    """A hex dump with one line or more a span: offset, bytes, and what they say."""
    for span in spans:
        start = span.offset
        data = _bytes_of(body, span)
        for row in range(0, max(len(data), 1), _WIDTH):
            part = data[row : row + _WIDTH]
            note = describe(span) if row == 0 else ""
            yield f"{start + row:>8}  {part.hex(' '):<{3 * _WIDTH - 1}}  {note}".rstrip()


def _bytes_of(body: bytes, span: Span) -> bytes:
    if span.sort == "size":
        return struct.pack(">i", span.value)
    return body[span.offset : span.offset + span.length]


def describe(span: Span) -> str:
    """What a span says, in one line."""
    path = span.path or "-"
    match span.sort:
        case "refused":
            return f"!! {path}: {span.value}"
        case "rest":
            return "(not read)"
        case "length" | "count":
            return f"{path}: {span.value} {'bytes' if span.sort == 'length' else 'elements'}"
        case "marker":
            return f"{path}: {'present' if span.value == 1 else 'null'}"
        case "tags" if isinstance(span.value, tuple):
            return f"{path}: tag {span.value[0]}, {span.value[1]} bytes"
        case "tags":
            return f"{path}: {span.value} tagged fields".removeprefix("-: ")
    text = repr(span.value.hex()) if isinstance(span.value, bytes) else _plain(span.value)
    if len(text) > _LONGEST_VALUE:
        text = text[: _LONGEST_VALUE - 1] + "…"
    return f"{path} = {text}" + (f" {span.meaning}" if span.meaning else "")


def _plain(value: object) -> str:
    return repr(value) if isinstance(value, (str, type(None), int, float)) else str(value)
