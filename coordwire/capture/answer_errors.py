"""The error codes that a response carries, by Kafka's names, and which of them are routine.

Strategy: a response may carry a code for each topic, partition or member. `own_places` gives each with what
it is about; `answer_errors` reports each code once, with the place where it is first and how often it is
there. Rules: a code of 0 is none; a code that Kafka doesn't name is "UNKNOWN_" and its number; the codes of
other dialects, whose meaning no document gives, too. A code's own struct, or the nearest struct around it,
names its subject; the request names the group, where the response doesn't.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

from coordwire.capture.body_text import has_no_codes
from coordwire.capture.entries import FrameEntry
from coordwire.codec.message import Struct
from coordwire.codec.walk import (
    FieldSelection,
    elements,
    entity_field,
    entity_places,
    entity_values,
    fields_of,
)
from coordwire.versions import ApiKey

T = TypeVar("T")

ROUTINE = frozenset({(ApiKey.JOIN_GROUP, 79), (ApiKey.API_VERSIONS, 35)})
"""API and code of answers that belong to the protocol's normal course and that clients act on by themselves:
MEMBER_ID_REQUIRED gives a new member its id (KIP-394), and UNSUPPORTED_VERSION of ApiVersions gives a newer
client the broker's versions (KIP-511)."""

_CODE = "error_code"
_CODES = FieldSelection(lambda field: field.entity == _CODE)
_OTHER_PROTOCOLS = ("Draft", "Kafka07", "ZooKeeper")
"""How the names of other protocols' classes begin."""

_PARTITIONS = ("partition_index", "partition", "partition_id", "index")


class AnswerError(NamedTuple):
    """An error code of a response.

    name: Kafka's; path: of the first field that holds it; times: how many do.
    """

    code: int
    name: str
    path: str
    times: int


class ErrorPlace(NamedTuple):
    """One field with an error code.

    message_path: of the field that has the broker's words for it. message, topic, partition, group: None
    where neither the struct nor those around it say.
    """

    code: int
    name: str
    path: str
    message_path: str
    message: str | None
    topic: str | None
    partition: int | None
    group: str | None


def answer_errors(entry: FrameEntry) -> list[AnswerError]:
    """The error codes other than 0 that a response carries, each once, in the order of the message."""
    if not _has_codes(entry):
        return []
    message = entry.message
    errors: dict[int, AnswerError] = {}
    for path, owner, _, code in entity_places(message, _CODE):
        if not code:
            continue
        before = errors.get(code)
        if before is not None:
            errors[code] = before._replace(times=before.times + 1)
        else:
            errors[code] = AnswerError(code, _name_of(owner, path, code), path, 1)
    return list(errors.values())


MOST_TEXTS, LONGEST_TEXT = 1_000, 300
"""Answers whose errors are kept, and the longest text of their bodies."""


class KnownAnswers(Generic[T]):
    """What is made of answers whose bodies' texts are known and that their texts alone decide.

    Groups have the same answers again and again, so that of short texts it is kept, in `known`: by API, the
    body's version and text.

    make: makes it.
    """

    def __init__(self, make: Callable[[FrameEntry], T]) -> None:
        self._make = make
        self.known: dict[tuple[int | None, int | None, str | None], T] = {}

    def of(self, entry: FrameEntry, body: str) -> T:
        """What is made of an answer. body: its body's text."""
        if len(body) > LONGEST_TEXT:
            return self._make(entry)
        key = entry.api_key, entry.body_version, body
        value = self.known.get(key)
        if value is None:
            value = self._make(entry)
            if len(self.known) >= MOST_TEXTS:
                self.known.clear()
            self.known[key] = value
        return value


def own_places(entry: FrameEntry) -> list[ErrorPlace]:
    """All error codes other than 0 that a response carries, in the order of the message; `asked_places` adds
    the group that only the request names."""
    if not _has_codes(entry) or entry.body_version is None:
        return []
    return list(_places(entry.message, entry.body_version, "", _About(None, None, None)))


def asked_places(entry: FrameEntry, places: list[ErrorPlace]) -> list[ErrorPlace]:
    """`own_places` with the group that the request names, where the response does not."""
    for place in places:
        if place.group is None:
            group = _asked_group(entry)
            return [ErrorPlace(*place[:-1], group) if place.group is None else place for place in places]
    return places


def _has_codes(entry: FrameEntry) -> bool:
    """Whether it is a response with an error code other than 0."""
    if entry.direction != "response" or has_no_codes(entry) or entry.message is None:
        return False
    return any(entity_values(entry.message, _CODE))


class _About(NamedTuple):
    topic: str | None
    partition: int | None
    group: str | None


def _places(value: Any, version: int, path: str, subject: _About) -> Iterator[ErrorPlace]:
    """The places in a struct and in the structs inside it. subject: as the structs around it name it."""
    cls: Any = type(value)
    own: list[Any] = [
        before if name is None or (own_value := getattr(value, name)) is None else own_value
        for name, before in zip(_names(cls, version), subject, strict=True)
    ]
    subject = _About(*own)
    for field in _CODES.fields(cls, version):
        content = getattr(value, field.name)
        field_path = f"{path}.{field.name}" if path else field.name
        for place, element in elements(field_path, field, content):
            if field.struct is not None:
                yield from _places(element, version, place, subject)
            elif element:
                message_name = field.name.replace(_CODE, "error_message")
                message_text = None if field.array else getattr(value, message_name, None)
                name = _name_of(value, place, element)
                yield ErrorPlace(
                    element,
                    name,
                    place,
                    f"{path}.{message_name}" if path else message_name,
                    message_text,
                    *subject,
                )


@cache
def _names(cls: Any, version: int) -> tuple[str | None, str | None, str | None]:
    """The fields of a class in a version that name a topic, a partition and a group."""
    own = [f for f in fields_of(cls) if f.exists(version) and f.struct is None and not f.array]
    entities = {field.entity: field.name for field in reversed(own)}
    partition = next((name for name in _PARTITIONS if any(field.name == name for field in own)), None)
    return entities.get("topic_name"), partition, entities.get("group_id")


def _asked_group(entry: FrameEntry) -> str | None:
    """The group that the request names, where it was read and is about one."""
    request = entry.request
    if (
        request is None
        or request.error is not None
        or request.message is None
        or request.body_version is None
    ):
        return None
    cls: Any = type(request.message)
    name = _names(cls, request.body_version)[2]
    return None if name is None else getattr(request.message, name)


def _name_of(owner: Struct, path: str, code: int) -> str:
    return _code_name(type(owner).__name__, path.rpartition(".")[2].partition("[")[0], code)


def _code_name(owner: str, field: str, code: int) -> str:
    """A code's name. A field of this name has Kafka's error codes in every API of Kafka's."""
    if field == _CODE and not owner.startswith(_OTHER_PROTOCOLS):
        from coordwire.enums import ErrorCode  # without the numbers of all other fields

        return ErrorCode(code).name
    from coordwire.enums import enum_of

    codes = enum_of(owner, field)
    return codes(code).name if codes else f"UNKNOWN_{code}"


def error_code(entry: FrameEntry) -> tuple[int, str] | None:
    """A response's error code and its name: the message's own, else the first one inside that is not 0.

    (0, "NONE") where all are 0; None for requests, for responses without error codes, and for what was
    refused before an error code other than 0.
    """
    message, version = entry.message, entry.body_version
    if entry.direction != "response" or message is None or version is None:
        return None
    cls: Any = type(message)
    if _has_codes(entry):
        own = entity_field(cls, _CODE)
        if own is not None and (code := getattr(message, own)):
            return code, _code_name(cls.__name__, own, code)
        return next(
            (code, _name_of(owner, path, code))
            for path, owner, _, code in entity_places(message, _CODE)
            if code
        )
    return None if entry.error is not None or not carries_codes(cls, version) else (0, "NONE")


def carries_codes(cls: Any, version: int) -> bool:
    """Whether a message has error codes in a version."""
    return bool(_CODES.fields(cls, version))


def is_routine(entry: FrameEntry, code: int) -> bool:
    """Whether an error code of a response belongs to the protocol's normal course."""
    return (entry.api_key, code) in ROUTINE
