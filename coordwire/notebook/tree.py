"""A message, a frame or an event to a tree of texts, bounded and without secrets.

Strategy: a message is walked by its field tables; fields at their defaults are only
named. Numbers that Kafka names have the name beside them, and bytes whose content is known are opened.
Rules: at most `MOST_NODES` nodes, `MOST_ELEMENTS` of an array, `MOST_TEXT` characters of a text and
`MOST_BYTES` of bytes are shown, and what is left out is counted; secrets are those of
`coordwire.capture.redaction`; a struct that is shown by itself hides each field that is a secret in any
message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from coordwire._quantities import counted, duration
from coordwire.capture.entries import FrameEntry
from coordwire.capture.flows import format_time
from coordwire.capture.printable import shown
from coordwire.capture.redaction import secret_fields
from coordwire.capture.redaction.entry_secrets import Withheld, size_withheld, withheld
from coordwire.codec import Field, Message, Struct
from coordwire.codec.walk import fields_of
from coordwire.embedded import Embedded, open_embedded
from coordwire.enums import ErrorCode, meaning
from coordwire.errors import UnreadableRange
from coordwire.frames import RequestFrame, ResponseFrame
from coordwire.messages.secret_paths import SECRET_PATHS
from coordwire.spans import API_KEYS
from coordwire.timeline.events import EVENTS, GroupEvent
from coordwire.versions import api_name

MOST_NODES = 400
MOST_ELEMENTS = 20
MOST_TEXT = 200
MOST_BYTES = 32
MOST_DEPTH = 12
MOST_DEVIATIONS = 20
SECRET = "(secret, not shown)"


class DisplayNode(NamedTuple):
    """A name with a text, with nodes below it, or with both. note: it is about the display."""

    name: str
    text: str = ""
    children: tuple[DisplayNode, ...] = ()
    note: bool = False


def tree_of(value: object) -> DisplayNode:
    """The tree of a message, struct, frame, entry or event."""
    if isinstance(value, RequestFrame | ResponseFrame):
        value = entry_of(value)
    if isinstance(value, FrameEntry):
        return _frame(value)
    if isinstance(value, Message):
        return DisplayNode(type(value).__name__, children=_Walk(value).nodes())
    if isinstance(value, Struct):
        return DisplayNode(type(value).__name__, children=_Walk(value).nodes())
    if isinstance(value, GroupEvent):
        return _event(value)
    return DisplayNode(type(value).__name__, _leaf(value))


# --- frames ---


def entry_of(frame: RequestFrame | ResponseFrame) -> FrameEntry:
    """A frame as the entry of a capture that it would be."""
    response = isinstance(frame, ResponseFrame)
    return FrameEntry(
        capture="", number=0, flow="", time_ns=None, body=b"",
        direction="response" if response else "request",
        api_key=frame.api_key, api_version=frame.api_version,
        body_version=frame.body_version if isinstance(frame, ResponseFrame) else frame.api_version,
        correlation_id=frame.correlation_id, header=frame.header, message=frame.message,
        client_id=frame.client_id if isinstance(frame, RequestFrame) else None,
        deviations=frame.deviations, released=frame.size,
    )  # fmt: skip


def head_of(entry: FrameEntry) -> str:
    """A frame's heading: "JoinGroup v9 request"."""
    if entry.token:
        return f"SASL token, {entry.direction}"
    name = entry.api_name or ("unknown" if entry.api_key is None else f"api {entry.api_key}")
    version = "" if entry.api_version is None else f" v{entry.api_version}"
    return f"{shown(name)}{version} {entry.direction}"


def _frame(entry: FrameEntry) -> DisplayNode:
    hidden = withheld(entry)
    children = [*_surroundings(entry, hidden)]
    message = entry.message
    if message is not None and hidden.body:
        children.append(DisplayNode("message", f"({size_withheld(entry)})"))
    elif message is not None:
        nodes = _Walk(message, set(hidden.paths)).nodes()
        children.append(DisplayNode(type(message).__name__, children=nodes))
    elif entry.body:
        children.append(
            DisplayNode("bytes", f"({size_withheld(entry)})" if hidden.raw else _leaf(entry.body))
        )
    if entry.error is not None:
        place = f", {shown(entry.error.path)}" if entry.error.path else ""
        refusal = f"byte {entry.error.position}{place}: {shown(entry.error.reason)}"
        children.append(DisplayNode("refused", _cut(refusal)))
    for deviation in entry.deviations[:MOST_DEVIATIONS]:
        place = f", {shown(deviation.path)}" if deviation.path else ""
        children.append(
            DisplayNode("deviation", _cut(f"byte {deviation.position}{place}: {shown(deviation.reason)}"))
        )
    if len(entry.deviations) > MOST_DEVIATIONS:
        children.append(_omission(len(entry.deviations) - MOST_DEVIATIONS, "deviation"))
    return DisplayNode(head_of(entry), children=tuple(children))


def _surroundings(entry: FrameEntry, hidden: Withheld) -> Iterator[DisplayNode]:
    """The nodes before a frame's message."""
    if entry.capture:
        yield DisplayNode("capture", _cut(f"{shown(entry.capture)} #{entry.number}"))
    if entry.time_ns is not None:
        yield DisplayNode("time", format_time(entry.time_ns, 6))
    if entry.flow:
        yield DisplayNode("flow", _cut(shown(entry.flow)))
    if entry.correlation_id is not None:
        yield DisplayNode("correlation_id", str(entry.correlation_id))
    if entry.client_id is not None:
        yield DisplayNode("client_id", SECRET if hidden.client else _leaf(entry.client_id))
    yield DisplayNode("size", counted(entry.size, "byte"))
    if entry.latency_ns is not None:
        yield DisplayNode("latency", duration(entry.latency_ns / 1e9))


# --- messages ---


class _Walk:
    """One struct's nodes. hidden: the paths of secrets, by default those that `secret_fields` finds."""

    def __init__(self, value: Struct, hidden: set[str] | None = None) -> None:
        self._value = value
        self._lone = not isinstance(value, Message)
        self._embedded: dict[str, Embedded] = {}
        if isinstance(value, Message):
            self._embedded = open_embedded(value)
            hidden = set(secret_fields.find(value)) if hidden is None else hidden
        self._hidden = hidden or set()
        self._remaining = MOST_NODES

    def nodes(self) -> tuple[DisplayNode, ...]:
        return self._struct(self._value, "", 0)

    def _struct(self, value: Struct, path: str, depth: int) -> tuple[DisplayNode, ...]:
        cls: Any = type(value)
        nodes: list[DisplayNode] = []
        plain: list[str] = []
        for field in fields_of(cls):
            field_value = getattr(value, field.name)
            if field.entity != "error_code" and not field.is_set(field_value):
                plain.append(field.name)
            elif self._remaining <= 0:
                nodes.append(DisplayNode("…", "more fields are not shown", note=True))
                break
            else:
                nodes.append(self._field(value, field, field_value, f"{path}{field.name}", depth))
        if value.tags:
            nodes.append(self._tags(value.tags, path))
        if plain:
            nodes.append(DisplayNode("at their defaults", ", ".join(plain), note=True))
        return tuple(nodes)

    def _field(self, owner: Struct, field: Field, value: Any, path: str, depth: int) -> DisplayNode:
        self._remaining -= 1
        if path in self._hidden or (self._lone and _may_be_secret(owner, field.name)):
            return DisplayNode(field.name, SECRET)
        if value is not None and depth >= MOST_DEPTH:
            return DisplayNode(field.name, "…", note=True)
        if field.array and isinstance(value, list | tuple):
            return self._array(owner, field, value, path, depth)
        if isinstance(value, Struct):
            return DisplayNode(field.name, children=self._struct(value, f"{path}.", depth + 1))
        if (embedded := self._embedded.get(path)) is not None:
            return self._embedded_node(field.name, value, embedded, path)
        return DisplayNode(field.name, _named(owner, field, value))

    def _array(
        self, owner: Struct, field: Field, value: list[Any] | tuple[Any, ...], path: str, depth: int
    ) -> DisplayNode:
        if field.struct is None:
            texts = [_named(owner, field, element) for element in value[:MOST_ELEMENTS]]
            hidden = [f"{path}[{number}]" in self._hidden for number in range(len(texts))]
            texts = [SECRET if secret else text for secret, text in zip(hidden, texts, strict=True)]
            if len(value) > MOST_ELEMENTS:
                texts.append(f"… {len(value) - MOST_ELEMENTS:,} more")
            return DisplayNode(field.name, f"[{', '.join(texts)}]")
        nodes: list[DisplayNode] = []
        for number, element in enumerate(value[:MOST_ELEMENTS]):
            if self._remaining <= 0:
                break
            self._remaining -= 1
            place = f"{path}[{number}]"
            children = self._struct(element, f"{place}.", depth + 1) if isinstance(element, Struct) else ()
            nodes.append(DisplayNode(f"[{number}]", "" if children else _leaf(element), children))
        if len(value) > len(nodes):
            nodes.append(_omission(len(value) - len(nodes), "element"))
        return DisplayNode(field.name, counted(len(value), "element"), tuple(nodes))

    def _embedded_node(self, name: str, value: bytes, embedded: Embedded, path: str) -> DisplayNode:
        """A message in a field's bytes; bytes inside that message stay bytes."""
        cls = type(embedded.message)
        summary = f"{counted(len(value), 'byte')}, {cls.__name__} v{embedded.version}"
        deeper = _Walk(embedded.message)
        deeper._remaining, deeper._embedded = self._remaining, {}
        nodes = deeper.nodes()
        self._remaining = deeper._remaining
        return DisplayNode(name, summary, nodes)

    def _tags(self, tags: dict[int, bytes], path: str) -> DisplayNode:
        nodes = [
            DisplayNode(
                str(tag), SECRET if self._lone or f"{path}tags[{tag}]" in self._hidden else _leaf(data)
            )
            for tag, data in list(tags.items())[:MOST_ELEMENTS]
        ]
        if len(tags) > MOST_ELEMENTS:
            nodes.append(_omission(len(tags) - MOST_ELEMENTS, "tag"))
        self._remaining -= len(nodes)
        return DisplayNode("tags", children=tuple(nodes))


@cache
def _secret_names() -> frozenset[str]:
    """The names of fields that are secrets in any message."""
    return frozenset(
        path.rpartition(".")[2].removesuffix("[]") for paths in SECRET_PATHS.values() for path in paths
    )


def _may_be_secret(owner: Struct, name: str) -> bool:
    """Whether a field of a struct without its message is to be hidden."""
    if name not in _secret_names() or not getattr(owner, name):
        return False
    if name != "value":
        return True
    named = secret_fields.is_secret_value(owner) or not isinstance(getattr(owner, "name", None), str)
    return secret_fields.is_secret_config(str(getattr(owner, name)), named=named)


def _named(owner: Struct, field: Field, value: Any) -> str:
    """A value, with Kafka's name for it where it has one."""
    if type(value) is int:
        name = api_name(value) if field.name in API_KEYS else meaning(type(owner).__name__, field.name, value)
        return f"{value} {name}" if name else str(value)
    return _leaf(value)


def _leaf(value: Any) -> str:
    match value:
        case str():
            suffix = f" ({len(value):,} characters)" if len(value) > MOST_TEXT else ""
            return f'"{_cut(shown(value[:MOST_TEXT]), 4 * MOST_TEXT)}"{suffix}'
        case bytes():
            suffix = "…" if len(value) > MOST_BYTES else ""
            return f"{counted(len(value), 'byte')} {value[:MOST_BYTES].hex()}{suffix}".rstrip()
        case UUID():
            return str(value)
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return _cut(str(value) if abs(value) < 1 << 64 else type(value).__name__)
    return f"({type(value).__name__})"


def _cut(text: str, most: int = MOST_TEXT) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _short(text: str, most: int = 60) -> str:
    """A text from outside, cut before it is looked at."""
    return shown(text) if len(text) <= most else f"{shown(text[:most])}…"


def _omission(count: int, noun: str) -> DisplayNode:
    return DisplayNode("…", counted(count, f"more {noun}"), note=True)


# --- events ---


def _event(event: GroupEvent) -> DisplayNode:
    nodes = [DisplayNode(name, text) for name, text in event_texts(event) if text]
    return DisplayNode(EVENTS.get(type(event), type(event).__name__), children=tuple(nodes))


def event_texts(event: GroupEvent) -> Iterator[tuple[str, str]]:
    """An event's fields as texts, empty where a field has nothing to show."""
    for field in fields(event):
        value = getattr(event, field.name)
        name = field.name.removesuffix("_ns")
        if value is None or value == () or value == "":
            text = ""
        elif field.name == "length_ns":
            text = duration(value / 1e9)
        elif field.name.endswith("_ns"):
            text = format_time(value, 6)
        elif field.name == "error_code":
            text = f"{value} {ErrorCode(value).name}"
        elif isinstance(value, tuple):
            elements = ", ".join(_plain(element) for element in value[:MOST_ELEMENTS])
            text = elements + (
                f", … {len(value) - MOST_ELEMENTS:,} more" if len(value) > MOST_ELEMENTS else ""
            )
        elif isinstance(value, bool):
            text = "yes" if value else ""
        else:
            text = _short(str(value), MOST_TEXT)
        yield name, text


def _plain(value: Any) -> str:
    """An element of an event's list: a name, a partition, an assignment, a move."""
    if isinstance(value, str):
        return _short(value)
    match value:
        case (str() as topic, int() as number):
            return f"{_short(topic)}-{number}"
        case (str() as member, tuple() as partitions):
            names = " ".join(_plain(item) for item in partitions[:MOST_ELEMENTS])
            suffix = f" … {len(partitions) - MOST_ELEMENTS:,} more" if len(partitions) > MOST_ELEMENTS else ""
            return f"{_short(member)}: {names}{suffix}"
        case (str() as topic, int() as number, before, after):
            moved = " → ".join("none" if item is None else _short(str(item)) for item in (before, after))
            return f"{_short(topic)}-{number} {moved}"
    return _short(str(value))


def unreadable_text(unreadable: UnreadableRange) -> str:
    """An unreadable range's length, position and reason, without its bytes."""
    reason = _cut(shown(unreadable.reason))
    return f"{counted(unreadable.length, 'byte')} from byte {unreadable.position:,} on: {reason}"
