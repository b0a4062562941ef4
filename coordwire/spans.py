"""Frames as spans: which bytes mean what; the basis of `coordwire.explain` and the annotated hex dump.

Strategy: the exact decoder reports where each part begins and ends (`Mark`), in the order of the bytes; each
mark becomes a span at once, and a refusal becomes the last one. Rules: spans cover every byte of a frame, in
order and without overlap; offsets count from the byte after the size prefix, whose own span is at -4. The
functions that take a `Show` keep neither spans nor the elements of arrays.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from coordwire.codec.interpreter.decoder import Mark, PassingMarks, Reader
from coordwire.codec.message import Buffer, Message
from coordwire.enums import meaning
from coordwire.errors import DecodeError, counted
from coordwire.frames import PREFIX, check_size, read_request, read_response
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
    what follows them. kind: the type on the wire. meaning: the name of a number that has one.
    """

    position: int
    length: int
    path: str
    value: object
    sort: str
    kind: str
    meaning: str | None = None


def explain(
    data: Buffer, *, api_key: int | None = None, version: int | None = None, strict: bool = True
) -> list[Span]:
    """The spans of one frame, size prefix included: a request, or the response to `api_key` in `version`.

    Bytes that are refused end in a span of sort "refused". strict: as for `coordwire.decode_request`.
    Raises `DecodeError` only where the size prefix isn't one, and `ValueError` if just one of `api_key` and
    `version` is given.
    """
    wire = data if isinstance(data, bytes) else bytes(memoryview(data))
    if len(wire) < PREFIX:
        raise DecodeError(f"a size prefix needs {PREFIX} bytes, {len(wire)} given")
    (size,) = struct.unpack_from(">i", wire)
    check_size(size)
    return [
        Span(-PREFIX, PREFIX, "size", size, "size", "int32"),
        *body_spans(wire[PREFIX:], api_key, version, strict=strict),
    ]


Show = Callable[[Span], object]
"""What is given each span, in order."""


def body_spans(
    body: bytes, api_key: int | None = None, version: int | None = None, *, strict: bool = True
) -> list[Span]:
    """`explain` of what follows the size prefix."""
    spans: list[Span] = []
    show_body(spans.append, body, api_key, version, strict=strict)
    return spans


def show_body(
    show: Show,
    body: bytes,
    api_key: int | None = None,
    version: int | None = None,
    *,
    strict: bool = True,
) -> None:
    """Give `show` the spans of what follows the size prefix."""
    if (api_key is None) != (version is None):
        raise ValueError("expected both api_key and version for a response, or neither for a request")
    cover = _Cover(show, len(body))
    try:
        if api_key is None or version is None:
            read_request(body, strict=strict, marks=cover.marks)
        else:
            read_response(body, api_key, version, strict=strict, marks=cover.marks)
    except DecodeError as error:
        cover.finish(error)
    else:
        cover.finish(None)


def message_spans(
    body: bytes,
    cls: type[Message],
    version: int,
    *,
    header: tuple[type[Message], int] | None = None,
) -> list[Span]:
    """The spans of one message without a header of Kafka's. header: the class and version of what precedes it
    instead."""
    spans: list[Span] = []
    show_message(spans.append, body, cls, version, header=header)
    return spans


def show_message(
    show: Show,
    body: bytes,
    cls: type[Message],
    version: int,
    *,
    header: tuple[type[Message], int] | None = None,
    strict: bool = True,
) -> None:
    """Give `show` what `message_spans` returns."""
    cover = _Cover(show, len(body))
    try:
        reader = Reader(body, 0, header[1] if header else 0, marks=cover.marks)
        if header is not None:
            reader.message(header[0], to_end=False)
        Reader(body, reader.pos, version, strict=strict, marks=cover.marks).message(cls)
    except DecodeError as error:
        cover.finish(error)
    else:
        cover.finish(None)


class _Cover:
    """Marks, in the order of their offsets, as spans, and what they leave."""

    def __init__(self, show: Show, end: int) -> None:
        self.marks = PassingMarks(self.add)
        self._show = show
        self._end = end
        self._at = 0

    def add(self, mark: Mark) -> None:
        if mark.length == 0 or mark.offset < self._at:
            return
        self._rest(mark.offset)
        meaning = _meaning(mark)
        self._show(Span(mark.offset, mark.length, mark.path, mark.value, mark.sort, mark.kind, meaning))
        self._at = mark.offset + mark.length

    def finish(self, error: DecodeError | None) -> None:
        if error is None:
            self._rest(self._end)
            return
        self._rest(min(max(error.position, self._at), self._end))
        self._show(
            Span(self._at, self._end - self._at, error.path, error.reason, "refused", type(error).__name__)
        )

    def _rest(self, end: int) -> None:
        """What wasn't read, up to `end`."""
        if end > self._at:
            self._show(Span(self._at, end - self._at, "", None, "rest", ""))
            self._at = end


def _meaning(mark: Mark) -> str | None:
    if mark.sort != "value" or not isinstance(mark.value, int) or isinstance(mark.value, bool):
        return None
    name = _INDEX.sub("", mark.path.rpartition(".")[2])
    return api_name(mark.value) if name in API_KEYS else meaning(mark.owner, name, mark.value)


def annotated(body: bytes, spans: Iterable[Span]) -> Iterator[str]:
    """A hex dump with one line or more a span: offset, bytes, and what they say."""
    for span in spans:
        start = span.position
        data = _bytes_of(body, span)
        for row in range(0, max(len(data), 1), _WIDTH):
            part = data[row : row + _WIDTH]
            note = describe(span) if row == 0 else ""
            yield f"{start + row:>8}  {part.hex(' '):<{3 * _WIDTH - 1}}  {note}".rstrip()


def _bytes_of(body: bytes, span: Span) -> bytes:
    if span.sort == "size":
        return struct.pack(">i", span.value)
    return body[span.position : span.position + span.length]


def describe(span: Span) -> str:
    """What a span says, in one line."""
    path = span.path or "-"
    match span.sort:
        case "refused":
            return f"!! {path}: {span.value}"
        case "rest":
            return "(not read)"
        case "length" | "count" if isinstance(span.value, int):
            return f"{path}: {counted(span.value, 'byte' if span.sort == 'length' else 'element')}"
        case "marker":
            return f"{path}: {'present' if span.value == 1 else 'null'}"
        case "tags" if isinstance(span.value, tuple):
            return f"{path}: tag {span.value[0]}, {counted(span.value[1], 'byte')}"
        case "tags" if isinstance(span.value, int):
            return f"{path}: {counted(span.value, 'tagged field')}".removeprefix("-: ")
    text = repr(span.value.hex()) if isinstance(span.value, bytes) else _plain(span.value)
    if len(text) > _LONGEST_VALUE:
        text = text[: _LONGEST_VALUE - 1] + "…"
    return f"{path} = {text}" + (f" {span.meaning}" if span.meaning else "")


def _plain(value: object) -> str:
    return repr(value) if isinstance(value, (str, type(None), int, float)) else str(value)
