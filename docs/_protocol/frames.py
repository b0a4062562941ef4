"""Frames with the meaning of each byte: a real exchange where one was captured, else encoded example values.

Rules: a frame that was not captured is labelled as made up. Example values explain themselves: a text is its
field's name, a number its default or 1, a list has one element, and nothing is null. In the table of a frame
every byte is shown once, in order, and belongs to one row; a span of many bytes takes several lines of its
cell.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

from _protocol.markup import Html, join, table, tag
from coordwire.cli.api.contents import PageEntry
from coordwire.codec import Field, Message, Struct
from coordwire.codec.fields import TEXTS
from coordwire.codec.walk import fields_of
from coordwire.connection.dialect import Direction
from coordwire.dialects import CALLS, Call
from coordwire.frames import PREFIX, encode_request, encode_response
from coordwire.logs import LogRecord, encode_log_record
from coordwire.messages.record_types import RECORD_TYPES
from coordwire.spans import Span, body_spans, describe, message_spans

CORRELATION_ID = 7
MADE = "made up: encoded by coordwire from example values, captured nowhere"
_UUID = UUID(int=0x00112233_44556677_8899AABB_CCDDEEFF)
_EXAMPLES: dict[str, object] = {
    "bool": True, "float64": 0.5, "uuid": _UUID, "bytes": b"\x01\x02\x03", "records": b"",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sample:
    """Bytes of one message in one version. origin: who wrote them; spans: all of `data`, in order, their
    offsets counted from `start`."""

    title: str
    origin: str
    data: bytes
    start: int
    spans: list[Span]


def samples(page: PageEntry) -> list[Sample]:
    """One for each message of a page."""
    if page.api_key is not None:
        return _exchange(page, page.api_key)
    record = _record(page)
    if record is not None:
        return record
    call = next(
        (call for calls in CALLS.values() for call in calls if call.request == page.messages[0]), None
    )
    return [_called(cls, call) if call else _alone(cls) for cls in page.classes]


# --- Kafka's own ---


@cache
def captured() -> dict[str, tuple[int, str, str, bytes, bytes]]:
    """Real exchanges by API: version, client, broker, request and response after their size prefixes."""
    exchanges = {}
    for line in Path(__file__).with_name("frames.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            name, version, client, broker, request, response = line.split("\t")
            exchanges[name] = int(version), client, broker, bytes.fromhex(request), bytes.fromhex(response)
    return exchanges


def _exchange(page: PageEntry, key: int) -> list[Sample]:
    request, response = page.classes
    if page.name in captured():
        version, client, broker, request_body, response_body = captured()[page.name]
        origins = f"captured: written by {client}", f"captured: written by {broker}"
    else:
        version = request.versions[-1]
        wire = encode_request(
            example(request, version), version=version, correlation_id=CORRELATION_ID, client_id="client-id"
        )
        reply = encode_response(example(response, version), version=version, correlation_id=CORRELATION_ID)
        request_body, response_body = wire[PREFIX:], reply[PREFIX:]
        origins = MADE, MADE
    return [
        _frame(f"{request.__name__} v{version}", origins[0], request_body, body_spans(request_body)),
        _frame(
            f"{response.__name__} v{version}",
            origins[1],
            response_body,
            body_spans(response_body, key, version),
        ),
    ]


def _frame(title: str, origin: str, body: bytes, spans: list[Span]) -> Sample:
    size = Span(-PREFIX, PREFIX, "size", len(body), "size", "int32")
    return Sample(title, origin, struct.pack(">i", len(body)) + body, PREFIX, [size, *spans])


# --- the others ---


def _called(cls: type[Message], call: Call) -> Sample:
    version = cls.versions[-1]
    direction: Direction = "request" if cls.direction == "request" else "response"
    wire = call.encode(example(cls, version), direction, version=version)
    spans = message_spans(wire[PREFIX:], cls, version, header=call.header(direction))
    return _frame(f"{cls.__name__}, version {version}", MADE, wire[PREFIX:], spans)


def _record(page: PageEntry) -> list[Sample] | None:
    """The key and value of a record of a broker's own log, if the page is about one."""
    places = ((log, number, names) for log, types in RECORD_TYPES.items() for number, names in types.items())
    place = next((place for place in places if place[2].value == page.name), None)
    if place is None:
        return None
    log, number, names = place
    value = page.classes[-1]
    version = value.versions[-1]
    record = LogRecord(log=log, type=number, value=example(value, version), version=version)
    if names.key is not None:
        record.key = example(page.classes[0], 0)
    key, data = encode_log_record(record)
    assert data is not None
    heads = ("frame_version", "type", "version") if log == "metadata" else ("version",)
    samples_of_record = [] if key is None else [_prefixed(page.classes[0], 0, key, ("type",))]
    return [*samples_of_record, _prefixed(value, version, data, heads)]


def _prefixed(cls: type[Message], version: int, data: bytes, heads: tuple[str, ...]) -> Sample:
    """A message of a log, after an int16, or after numbers that are a byte each."""
    body = example(cls, version).encode(version=version)
    start = len(data) - len(body)
    width = start // len(heads)
    kind = "int16" if width == 2 else "uvarint"
    spans = [
        Span(at - start, width, name, int.from_bytes(data[at : at + width], "big"), "size", kind)
        for at, name in zip(range(0, start, width), heads, strict=True)
    ]
    title = f"{cls.__name__}, version {version}"
    return Sample(title, MADE, data, start, [*spans, *message_spans(body, cls, version)])


def _alone(cls: type[Message]) -> Sample:
    version = cls.versions[-1]
    body = example(cls, version).encode(version=version)
    return Sample(f"{cls.__name__} v{version}", MADE, body, 0, message_spans(body, cls, version))


# --- example values ---


def example(cls: type[Message], version: int) -> Message:
    """A message with something in every field that the version has."""
    value: Message = _struct(cls, version)
    return value


def _struct(cls: type[Struct], version: int) -> Any:
    value = cls()
    for field in fields_of(cls):
        if field.exists(version):
            element = _struct(field.struct, version) if field.struct else _leaf(field)
            setattr(value, field.name, [element] if field.array else element)
    return value


def _leaf(field: Field) -> object:
    if field.type in TEXTS:
        return field.name.replace("_", "-")
    if field.type in _EXAMPLES:
        return _EXAMPLES[field.type]
    return 0 if field.entity == "error_code" else field.default or 1


# --- a frame as a table ---

_WIDTH = 8
_KEY = (
    ("value", "a value"),
    ("length", "a length, count or marker"),
    ("tags", "tagged fields"),
    ("size", "a prefix"),
)


def annotated_frame(sample: Sample, *, has_key: bool = True) -> Html:
    """A sample's bytes, with what each of them says. has_key: whether the colours are explained below."""
    origin = tag("p", f"{len(sample.data)} bytes, {sample.origin}.", class_="soft")
    key = tag("p", join(tag("span", says, class_=sort) for sort, says in _KEY), class_="soft key")
    rows = (_row(sample, span) for span in sample.spans)
    frame = table(["offset", "bytes", "type", "what they say"], rows, class_="frame")
    return join([origin, frame, key] if has_key else [origin, frame])


def _row(sample: Sample, span: Span) -> Html:
    at = sample.start + span.position
    data = sample.data[at : at + span.length]
    hex_digits = "\n".join(data[row : row + _WIDTH].hex(" ") for row in range(0, len(data), _WIDTH))
    return tag(
        "tr",
        tag("td", str(span.position), class_="at"),
        tag("td", hex_digits, class_="hex"),
        tag("td", span.kind, class_="soft"),
        tag("td", describe(span) if span.sort != "size" else f"{span.path} = {span.value}", class_="says"),
        class_=span.sort,
    )
