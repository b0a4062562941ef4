"""The fields of an entry that an expression or a column can name, and their values.

Strategy: a path is resolved once, before anything is read. One of `FIELDS` has a function of its own; every
other path leads into the entry's JSON line, whose form is made at most once for an entry and only where a
path needs it; what is redacted there is null here too. Numbers and texts in the body of a plain frame (its
text is known and nothing of it is withheld) are read from its text or its message instead, to the same
effect, and nothing is decoded where its version lacks the field. Paths into the body are held to the field
tables of all messages, so that a wrong name is an error and not a silence.

Rules: a path is names with dots between them, as in JSON (`groupId`) or as in Python (`group_id`); `[]` goes
through an array, `[2]` to one of its elements, and an array is gone through without `[]` too. Any
other name is looked for in the body. `request.` before a path is that of the request that a response answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple

from coordwire.capture import jsonlines
from coordwire.capture.answer_errors import AnswerError, answer_errors
from coordwire.capture.body_text import has_no_codes
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.named_groups import groups
from coordwire.capture.redaction.entry_secrets import NOTHING, Withheld, shown_text, withheld
from coordwire.cli.selection.expressions import FilterError, Name
from coordwire.cli.selection.names import TopicNames, members
from coordwire.codec import Field, Message, Struct
from coordwire.codec.names import suggestion
from coordwire.codec.walk import entity_values, fields_of, layout_of
from coordwire.connection.dialect import Direction
from coordwire.dialects import CALLS
from coordwire.enums import enum_of, meaning
from coordwire.errors import UnreadableRange
from coordwire.messages import find_message
from coordwire.messages.headers import RequestHeader, ResponseHeader
from coordwire.messages.keys import FACTS

Sort = Literal["number", "text", "name", "boolean", "duration", "time", "error", "struct", "any"]
"""What a field's values are; "name": a text of which upper and lower case are the same."""

_SNAKE = re.compile(r"_([a-z0-9])")
_STEP = re.compile(r"([A-Za-z_]\w*)|\[(\d*)\]")
_MORE = ("error.reason", "error.position", "error.path")


class EntryFields:
    """The values of one entry's fields, each found when it is asked for. names: of topics, where known."""

    def __init__(
        self, entry: Entry, digits: int, *, show_secrets: bool, names: TopicNames | None = None
    ) -> None:
        self.entry = entry
        self.names = TopicNames() if names is None else names
        self._digits = digits
        self._show_secrets = show_secrets

    @cached_property
    def form(self) -> dict[str, Any]:
        """The entry's JSON line."""
        form = jsonlines.entry_form(self.entry, self._digits, show_secrets=self._show_secrets)
        if (header := self._header) is not None:
            form["header"] = header
        return form

    @cached_property
    def plain_text(self) -> str | None:
        """The text of its body, if nothing of it is withheld."""
        if isinstance(self.entry, UnreadableRange):
            return None
        return shown_text(self.entry, show_secrets=self._show_secrets)

    @cached_property
    def hidden(self) -> Withheld:
        """What must not be shown of it."""
        plain = self._show_secrets or isinstance(self.entry, UnreadableRange)
        return NOTHING if plain else withheld(self.entry)  # type: ignore[arg-type]

    @property
    def _header(self) -> dict[str, Any] | None:
        header = getattr(self.entry, "header", None)
        if header is None:
            return None
        values = {field.json_name: getattr(header, field.name) for field in fields_of(header)}
        return values | ({"clientId": None} if self.hidden.client and "clientId" in values else {})

    @cached_property
    def request(self) -> EntryFields | None:
        """Those of the request that it answers."""
        request = getattr(self.entry, "request", None)
        return (
            None if request is None else EntryFields(request, self._digits, show_secrets=self._show_secrets)
        )

    @cached_property
    def messages(self) -> list[Message]:
        """Its message and its request's, where they may be shown."""
        messages = [] if self.hidden.body else [getattr(self.entry, "message", None)]
        if self.request is not None and not self.request.hidden.body:
            messages.append(self.request.entry.message)  # type: ignore[union-attr]
        return [message for message in messages if message is not None]

    @cached_property
    def errors(self) -> list[AnswerError]:
        """The error codes of a response."""
        is_shown = isinstance(self.entry, FrameEntry) and not self.hidden.body
        return answer_errors(self.entry) if is_shown else []  # type: ignore[arg-type]


Values = Callable[[EntryFields], Iterable[Any]]


class EntryField(NamedTuple):
    """A field of entries. values: finds them; about: what it says, for the help."""

    sort: Sort
    summary: str
    values: Values


def _transactions(message: Struct) -> Iterator[Any]:
    return entity_values(message, "transactional_id")


def _from_form(name: str) -> Values:
    return lambda fields: (fields.form.get(name),)


def _attribute(name: str) -> Values:
    return lambda fields: (getattr(fields.entry, name, None),)


def _named(of: Callable[[Struct], Iterator[Any]]) -> Values:
    """What `of` finds in the message and in its request, each once."""

    def values(fields: EntryFields) -> Iterable[Any]:
        values_found: dict[Any, None] = {}
        for message in fields.messages:
            values_found.update(dict.fromkeys(of(message)))
        return [value for value in values_found if value]

    return values


def _capture(fields: EntryFields) -> Iterable[Any]:
    entry = fields.entry
    return (entry.file if isinstance(entry, UnreadableRange) else entry.capture,)


def _size(fields: EntryFields) -> Iterable[Any]:
    entry = fields.entry
    return (entry.length if isinstance(entry, UnreadableRange) else entry.size,)


def _client_id(fields: EntryFields) -> Iterable[Any]:
    return (None if fields.hidden.client else getattr(fields.entry, "client_id", None),)


def _error(fields: EntryFields) -> Iterable[Any]:
    entry = fields.entry
    if isinstance(entry, UnreadableRange) or entry.direction != "response" or fields.hidden.body:
        return ()
    if has_no_codes(entry):
        return _NO_ERROR
    if entry.message is None:
        return ()
    return fields.errors or (() if entry.error is not None else _NO_ERROR)


_NO_ERROR = (AnswerError(0, "NONE", "", 0),)


def _refused(fields: EntryFields) -> Iterable[Any]:
    entry = fields.entry
    if isinstance(entry, UnreadableRange):
        return (entry.reason,)
    return (None if entry.error is None else entry.error.reason,)


def _request(name: str) -> Values:
    return lambda fields: (getattr(getattr(fields.entry, "request", None), name, None),)


FIELDS: dict[str, EntryField] = {
    "time": EntryField("time", "when its last byte came, UTC", _attribute("time_ns")),
    "capture": EntryField("text", "the name of the input", _capture),
    "frame": EntryField("number", "its number in the input", _attribute("number")),
    "packet": EntryField("number", "the packet of its last byte, as Wireshark counts", _attribute("packet")),
    "firstPacket": EntryField("number", "the packet of its first byte", _attribute("first_packet")),
    "connection": EntryField("number", "the connection, as Wireshark's tcp.stream", _from_form("connection")),
    "client": EntryField("text", "address and port of the client", _from_form("client")),
    "broker": EntryField("text", "address and port of the broker", _from_form("broker")),
    "flow": EntryField("text", 'sender and receiver, "A:1 > B:2"', _attribute("flow")),
    "direction": EntryField("name", "request or response", _attribute("direction")),
    "api": EntryField("name", "the API's name", _attribute("api_name")),
    "apiKey": EntryField("number", "its key", _attribute("api_key")),
    "apiVersion": EntryField("number", "the version of the request", _attribute("api_version")),
    "bodyVersion": EntryField("number", "the version of the body", _attribute("body_version")),
    "correlationId": EntryField("number", "the correlation id", _attribute("correlation_id")),
    "clientId": EntryField("text", "the client id; of a response, its request's", _client_id),
    "dialect": EntryField("name", "the protocol's dialect", _attribute("dialect")),
    "size": EntryField("number", "bytes after the size prefix", _size),
    "latency": EntryField("duration", "from the request to the response", _attribute("latency_ns")),
    "latencyMs": EntryField("number", "the same in milliseconds", _from_form("latencyMs")),
    "request": EntryField("number", "the number of the request that it answers", _request("number")),
    "requestPacket": EntryField("number", "the packet of that request's last byte", _request("packet")),
    "error": EntryField("error", "the error codes of a response, by number or name; 0 if none", _error),
    "refused": EntryField("text", "why it could not be decoded", _refused),
    "token": EntryField("boolean", "whether it is a bare SASL token", _attribute("token")),
    "group": EntryField("text", "the groups that it or its request names", _named(groups)),
    "member": EntryField("text", "the members that it or its request names", _named(members)),
    "topic": EntryField(
        "text", "the topics that it or its request names", lambda fields: fields.names.topics(fields.messages)
    ),
    "transactionalId": EntryField("text", "the transactional ids", _named(_transactions)),
}
"""What an entry has besides its header and its body."""

_LINE = {
    "header": "struct", "body": "struct", "raw": "text", "redacted": "text", "deviations": "struct",
    "errors": "struct", "headerTags": "struct",
}  # fmt: skip
"""What of a JSON line has no function of its own."""

_INSIDE: dict[str, dict[str, Sort]] = {
    "error": {"reason": "text", "position": "number", "path": "text"},
    "errors": {"errorCode": "number", "error": "name", "path": "text", "times": "number"},
    "deviations": {"reason": "text", "position": "number", "path": "text"},
}


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A field as it was resolved. sort: of its values; values: finds them; steps: the names on the way to it
    in a body, empty for all else; asked: it is the request's."""

    path: str
    sort: Sort
    values: Values
    steps: tuple[str, ...] = ()
    may_be_asked: bool = False

    def named(self, fields: EntryFields, value: int) -> str | None:
        """Kafka's name for a number that a body's field holds."""
        owner = fields.request if self.may_be_asked else fields
        message = getattr(owner.entry, "message", None) if owner is not None and self.steps else None
        cls: Any = type(message)
        place = None if message is None else _place(cls, self.steps)
        return None if place is None else meaning(place[0], place[1].name, value)


def resolve(name: Name) -> FieldPath:
    """The field of this name. Raises `FilterError` where there is none."""
    steps = _steps(name.path)
    first = steps[0]
    if first == "request" and len(steps) > 1 and isinstance(steps[1], str):
        length = len("request.")
        inner = resolve(Name(name.path[length:], name.start + length, name.end))
        return FieldPath(
            name.path, inner.sort, lambda fields: inner.values(fields.request) if fields.request else (),
            inner.steps, True,
        )  # fmt: skip
    if len(steps) == 1 and first in FIELDS:
        field = FIELDS[str(first)]
        return FieldPath(name.path, field.sort, field.values)
    known = {entry.lower(): entry for entry in (*FIELDS, *_LINE)}
    if first in _INSIDE:
        sort = _sort_inside(name, steps)
        return FieldPath(name.path, sort, _walk(steps))
    if first in ("header", "body") or first not in known.values():
        return _in_message(name, steps)
    if first in FIELDS:
        raise FilterError(f"{first} has nothing inside", name.start, name.end)
    return FieldPath(name.path, _LINE[str(first)], _walk(steps))  # type: ignore[arg-type]


def _steps(path: str) -> list[str | int]:
    """A path's names, and for `[]` -1, for `[2]` 2; names in Kafka's spelling."""
    return [
        _SNAKE.sub(lambda letter: letter[1].upper(), match[1]) if match[1] else int((match[2] or "-1")[:9])
        for match in _STEP.finditer(path)
    ]


def _sort_inside(name: Name, steps: list[str | int]) -> Sort:
    names = [step for step in steps if isinstance(step, str)]
    sorts_inside = _INSIDE[names[0]]
    if len(names) == 1:
        return "struct"
    if len(names) > 2 or names[1] not in sorts_inside:
        raise FilterError(f"{names[0]} has the fields {', '.join(sorts_inside)}", name.start, name.end)
    return sorts_inside[names[1]]


def _in_message(name: Name, steps: list[str | int]) -> FieldPath:
    """A field of the header or of the body, which needs no `body.` before it."""
    bare = steps[0] not in ("header", "body")
    path: list[str | int] = ["body", *steps] if bare else steps
    names = tuple(step for step in path[1:] if isinstance(step, str))
    if not names:
        return FieldPath(name.path, "struct", _walk(path))
    classes: Iterable[Any] = (RequestHeader, ResponseHeader) if path[0] == "header" else _messages()
    first = next((place for cls in classes if (place := _place(cls, names)) is not None), None)
    if first is None:
        raise _unknown(name, names, bare, str(path[0]))
    values = _walk(path) if path[0] == "header" else _of_body(path)
    return FieldPath(name.path, _sort(first[1]), values, names if path[0] == "body" else ())


def _sort(field: Field) -> Sort:
    if field.struct is not None:
        return "struct"
    if field.type == "bool":
        return "boolean"
    return "text" if field.type in ("string", "bytes", "records", "uuid") else "number"


def sorts(steps: tuple[str, ...]) -> set[Sort]:
    """What the values of a body's field are, in all messages that have it."""
    return {_sort(place[1]) for cls in _messages() if (place := _place(cls, steps)) is not None}


def has_names(steps: tuple[str, ...]) -> bool:
    """Whether Kafka has names for the numbers of a body's field, in any message."""
    return any(
        enum_of(place[0], place[1].name) is not None or place[1].entity == "error_code"
        for cls in _messages()
        if (place := _place(cls, steps)) is not None
    )


def holds_errors(steps: tuple[str, ...]) -> bool:
    """Whether a body's field holds error codes, in the first message that has it."""
    place = next((place for cls in _messages() if (place := _place(cls, steps)) is not None), None)
    return place is not None and place[1].entity == "error_code"


@cache
def _place(cls: Any, steps: tuple[str, ...]) -> tuple[str, Field] | None:
    """The class and the field to which the names lead from a message's class; None if it hasn't them."""
    name, *deeper = steps
    for field in fields_of(cls):
        if field.json_name == name:
            if not deeper:
                return cls.__name__, field
            struct: Any = field.struct
            return None if struct is None else _place(struct, tuple(deeper))
    return None


@cache
def is_text(key: int | None, direction: Direction, steps: tuple[str, ...]) -> bool:
    """Whether the values of a body's field are texts that its bytes have as they are, if an API has it."""
    cls: Any = None
    with suppress(KeyError):
        cls = None if key is None else find_message(key, direction)
    place = None if cls is None else _place(cls, steps)
    return place is None or (place[1].type == "string" and place[1].default in (None, ""))


def _messages() -> Iterator[Any]:
    """The classes of all messages of frames; groups' first, as they are asked for most."""
    for key in sorted(FACTS, key=lambda key: (not 8 <= key <= 16, key)):
        yield find_message(key, "request")
        yield find_message(key, "response")
    for calls in CALLS.values():
        for call in calls:
            yield call.message("request")
            if call.response is not None:
                yield call.message("response")


def _unknown(name: Name, names: tuple[str, ...], bare: bool, root: str) -> FilterError:
    """That no message has the field, with the nearest that there is."""
    classes: Iterable[Any] = (RequestHeader, ResponseHeader) if root == "header" else _messages()
    names_inside: set[str] = set()
    for cls in classes:
        *way, _ = names
        for length in range(len(way), -1, -1):
            place = _place(cls, tuple(way[:length])) if length else None
            owner = cls if length == 0 else place[1].struct if place is not None else None
            if owner is not None:
                names_inside.update(field.json_name for field in fields_of(owner))
                break
    own_names = [*FIELDS, *_LINE] if bare and len(names) == 1 else []
    hint = suggestion(names[-1], [*own_names, *sorted(names_inside)])
    subject = "no entry and no message has" if bare else f"no {'message' if root == 'body' else root} has"
    return FilterError(f"{subject} a field {name.path!r}{hint}", name.start, name.end)


_SIMPLE = frozenset(("string", "bool", "int8", "int16", "int32", "int64", "uint16", "uint32"))
"""Types whose values are the same in the JSON form."""


class _Way(NamedTuple):
    """How a field is reached in a message: by these attributes, through structs and arrays; none where the
    version lacks it. beginning: that of a body's text which has it first, if it is a text."""

    attributes: tuple[str, ...]
    beginning: str = ""


@cache
def _way(key: int, direction: Direction, version: int, steps: tuple[str | int, ...]) -> _Way | None:
    """The way to a field; None where the JSON form must tell: for tagged fields, elements of arrays and types
    whose form is another."""
    cls: Any = find_message(key, direction)
    attributes: list[str] = []
    field: Field | None = None
    for step in steps:
        if isinstance(step, int):
            if step >= 0 or field is None or not field.array:
                return None
            continue
        if field is not None:
            if field.struct is None:
                return _Way(())
            cls = field.struct
        layout = layout_of(cls, version)
        if any(tagged.json_name == step for tagged in layout.tagged.values()):
            return None
        field = next((inline for inline in layout.inline if inline.json_name == step), None)
        if field is None:
            return _Way(())
        attributes.append(field.name)
    if field is None or field.type not in _SIMPLE:
        return None
    is_first = len(attributes) == 1 and layout_of(cls, version).inline[0] is field
    is_text = field.type == "string" and not field.array
    return _Way(tuple(attributes), f'{{"{field.json_name}":"' if is_first and is_text else "")


def _of_body(path: list[str | int]) -> Values:
    """Finds the values at a path that begins with "body"."""
    steps = tuple(path[1:])

    def values(fields: EntryFields) -> Iterable[Any]:
        body = fields.plain_text
        if body is None:
            return _walked(fields.form, path, 0)
        entry: Any = fields.entry
        way = _way(entry.api_key, entry.direction, entry.body_version, steps)
        if way is None:
            return _walked(fields.form, path, 0)
        attributes, beginning = way
        if not attributes:
            return ()
        if beginning and body.startswith(beginning):
            value = body[len(beginning) : body.index('"', len(beginning))]
            if "\\" not in value:  # which may be before a quotation mark
                return (value,)
        return _attributes(entry.message, attributes, 0)

    return values


def _attributes(value: Any, names: tuple[str, ...], at: int) -> Iterator[Any]:
    content = getattr(value, names[at])
    if at + 1 == len(names):
        if isinstance(content, list):
            yield from content
        else:
            yield content
        return
    for element in content if isinstance(content, list) else (content,):
        if element is not None:
            yield from _attributes(element, names, at + 1)


def _walk(steps: list[str | int]) -> Values:
    """Finds the values at a path of the JSON line."""

    def values(fields: EntryFields) -> Iterator[Any]:
        return _walked(fields.form, steps, 0)

    return values


def _walked(value: Any, steps: list[str | int], at: int) -> Iterator[Any]:
    if at == len(steps):
        if isinstance(value, list):
            yield from value
        else:
            yield value
        return
    step = steps[at]
    if isinstance(step, str):
        if isinstance(value, dict):
            if step in value:
                yield from _walked(value[step], steps, at + 1)
        elif isinstance(value, list):
            for element in value:
                yield from _walked(element, steps, at)
    elif isinstance(value, list):
        for element in value if step < 0 else value[step : step + 1]:
            yield from _walked(element, steps, at + 1)
