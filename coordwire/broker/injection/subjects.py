"""The subjects of requests: groups, members, topics, partitions, and where its response has error codes.

Strategy: the field tables say which fields identify something (entities, and the names that Kafka gives to
partitions, topic ids and resources). A request gives one `Subject` for each innermost element that its
response answers; a response has its error codes at `CodePlace`s, from the whole message down to partitions.
Rules: this module knows no API by its layout. An element that the response has no place for (a member's
assignment, topics that a session drops) is not a subject.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Literal, NamedTuple

from coordwire._dataclasses import dataclass
from coordwire.codec import Field, Message, Struct
from coordwire.codec.walk import fields_of
from coordwire.enums import ConfigResourceType, CoordinatorType
from coordwire.versions import ApiKey

Level = Literal["request", "group", "transaction", "coordinator", "resource", "topic", "member", "partition"]
"""What an error code of a response is about, from the outside to the inside."""

_ENTITIES = {
    "group_id": "group", "topic_name": "topic", "transactional_id": "transactional_id",
    "producer_id": "producer_id", "member_id": "member", "instance_id": "instance",
}  # fmt: skip
_NAMES = {
    "index": "partition", "partition": "partition", "partition_index": "partition",
    "partition_id": "partition", "partition_indexes": "partition", "partitions": "partition",
    "topic_id": "topic_id",
    "resource_type": "resource_type", "resource_name": "resource", "key": "key", "coordinator_keys": "key",
    "user": "user", "name": "user",
}  # fmt: skip
_LEVELS: tuple[tuple[str, Level], ...] = (
    ("partition", "partition"),
    ("member", "member"),
    ("topic", "topic"),
    ("topic_id", "topic"),
    ("resource", "resource"),
    ("user", "resource"),
    ("key", "coordinator"),
    ("group", "group"),
    ("transactional_id", "transaction"),
)
_BESIDE = {"member", "instance", "producer_id"}
"""What an element of a request may name although its answer does not."""

_FORGOTTEN = "forgotten_topics_data"
_NOT_A_REFUSAL = "topic_config_error_code"
"""Why CreateTopics does not list a topic's settings; the topic is made all the same."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The names in one element of a request; None for those that it lacks. resource, key: as the request has
    them, with the topic, group or transactional id that they name beside. all_of: the kinds of which it asks
    for all that there are ("topic", "partition")."""

    topic: str | None = None
    topic_id: Any = None
    partition: int | None = None
    group: str | None = None
    transactional_id: str | None = None
    producer_id: int | None = None
    member: str | None = None
    instance: str | None = None
    resource_type: int | None = None
    resource: str | None = None
    user: str | None = None
    key: str | None = None
    all_of: frozenset[str] = frozenset()

    def with_(self, **kinds: Any) -> Subject:
        """A copy with more names."""
        known = {name: getattr(self, name) for name in Subject.__slots__}
        return Subject(**known | {name: value for name, value in kinds.items() if value is not None})


class CodePlace(NamedTuple):
    """A field with an error code. path: the arrays that lead to it; kinds: what the elements on the way are
    identified by."""

    level: Level
    path: tuple[Field, ...]
    field: Field
    kinds: frozenset[str]


def _kind(field: Field) -> str | None:
    """What a field's values identify."""
    if field.struct is not None:
        return None
    if field.entity is not None:
        return _ENTITIES.get(field.entity)
    kind = _NAMES.get(field.name)
    return None if kind == "partition" and field.type != "int32" else kind


@cache
def _own(cls: Any, version: int) -> tuple[tuple[str, Field], ...]:
    """The fields of a class, but not arrays, that identify something."""
    return tuple(
        (kind, field)
        for field in fields_of(cls)
        if field.exists(version) and not field.array and (kind := _kind(field)) is not None
    )


@cache
def code_places(response: Any, version: int) -> tuple[CodePlace, ...]:
    """The places of a response's error codes in a version, the outer before the inner."""

    def walk(cls: Any, path: tuple[Field, ...], kinds: frozenset[str]) -> Iterator[CodePlace]:
        own = {kind for kind, _ in _own(cls, version)} if path else set()
        kinds |= own
        inner_subjects = []
        for field in fields_of(cls):
            if not field.exists(version):
                continue
            if field.entity == "error_code" and not field.array and field.name != _NOT_A_REFUSAL:
                level: Level = next(
                    (name for kind, name in _LEVELS if kind in own), "resource" if path else "request"
                )
                yield CodePlace(level, path, field, kinds)
            elif field.struct is not None and field.array:
                inner_subjects.append(field)
        for field in inner_subjects:
            yield from walk(field.struct, (*path, field), kinds)

    return tuple(walk(response, (), frozenset()))


@cache
def _answered(request: Any, response: Any, version: int) -> dict[Field, bool]:
    """The arrays of a request, at any depth, whose elements the response answers one by one."""
    kinds = frozenset[str]().union(*(place.kinds for place in code_places(response, version)))
    answers: dict[Field, bool] = {}

    def walk(cls: Any) -> None:
        for field in fields_of(cls):
            if not field.exists(version) or not field.array or field.name == _FORGOTTEN:
                continue
            if field.struct is None:
                kind = _kind(field)
                own = {kind} if kind is not None else set()
            else:
                struct: Any = field.struct
                own = {kind for kind, _ in _own(struct, version)}
            if own & kinds and own <= kinds | _BESIDE:
                answers[field] = True
                if field.struct is not None:
                    walk(field.struct)

    walk(request)
    return answers


def subjects(
    request: Message, response: Any, version: int, name_of: Callable[[Any], str | None]
) -> list[Subject]:
    """The subjects of a request; one without details where it is about everything, or names nothing.

    name_of: gives the name of the topic with an id.
    """
    cls: Any = type(request)
    answered = _answered(cls, response, version)
    first = Subject(all_of=_unasked(cls, response, version))
    return [_named(element, request, name_of) for element in _walk(request, version, answered, first)]


_EMPTY_IS_ALL = ((ApiKey.METADATA, 0), (ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0))


def _walk(value: Any, version: int, answered: dict[Field, bool], outer: Subject) -> Iterator[Subject]:
    outer = element_of(value, version, outer)
    children = [field for field in fields_of(value) if field in answered]
    empty = True
    kinds: set[str] = set()
    for field in children:
        if getattr(value, field.name) is None or (
            isinstance(value, Message) and (value.api_key, version) in _EMPTY_IS_ALL
        ):
            kinds |= _inner_kinds(field, version)
        for element in getattr(value, field.name) or ():
            empty = False
            if field.struct is None:
                kind = _kind(field)
                assert kind is not None
                yield outer.with_(**{kind: element})
            else:
                yield from _walk(element, version, answered, outer)
    if empty:
        yield outer.with_(all_of=outer.all_of | kinds) if kinds else outer


@cache
def _unasked(request: Any, response: Any, version: int) -> frozenset[str]:
    """What a response gives in each element, and a request cannot name."""
    answer_kinds = frozenset[str]().union(*(place.kinds for place in code_places(response, version)))
    request_kinds = {kind for kind, _ in _own(request, version)}
    for field in _answered(request, response, version):
        request_kinds |= _inner_kinds(field, version)
    return (answer_kinds - request_kinds) & {"topic", "partition"}


def _inner_kinds(field: Field, version: int) -> set[str]:
    """What the elements of an array are identified by, and those of the arrays in them."""
    kind = _kind(field)
    kinds = set() if kind is None else {kind}
    if field.struct is not None:
        cls: Any = field.struct
        kinds |= {own for own, _ in _own(cls, version)}
        for inner in fields_of(cls):
            if inner.exists(version) and inner.array:
                kinds |= _inner_kinds(inner, version)
    return kinds


@cache
def identifying(cls: Any, version: int) -> tuple[tuple[str, str], ...]:
    """What the elements of a class are identified by, and the fields that have it."""
    return tuple((kind, field.name) for kind, field in _own(cls, version))


def element_of(value: Struct, version: int, outer: Subject | None = None) -> Subject:
    """What an element names, in addition to what those around it do."""
    cls: Any = type(value)
    kinds = {kind: getattr(value, field.name) for kind, field in _own(cls, version)}
    return (outer or Subject()).with_(**kinds)


def _named(subject: Subject, request: Any, name_of: Callable[[Any], str | None]) -> Subject:
    """With names for what the request has numbers for."""
    if not subject.topic and subject.topic_id is not None:
        subject = subject.with_(topic=name_of(subject.topic_id))
    if subject.key is not None:
        group = getattr(request, "key_type", CoordinatorType.GROUP) == CoordinatorType.GROUP
        subject = subject.with_(**{"group" if group else "transactional_id": subject.key})
    if subject.resource is not None:
        if subject.resource_type == ConfigResourceType.TOPIC:
            subject = subject.with_(topic=subject.resource)
        elif subject.resource_type == ConfigResourceType.GROUP:
            subject = subject.with_(group=subject.resource)
    return subject


def pruned(
    request: Message,
    response: Any,
    version: int,
    name_of: Callable[[Any], str | None],
    is_refused: Callable[[Subject], bool],
) -> Message | None:
    """The request without the elements for which `is_refused` holds; None if none is left."""
    cls: Any = type(request)
    answered = _answered(cls, response, version)

    def keep(value: Any, outer: Subject) -> Any:
        outer = element_of(value, version, outer)
        changes: dict[str, list[Any]] = {}
        had = has_remainder = False
        for field in fields_of(value):
            elements: Iterable[Any] = getattr(value, field.name) or () if field in answered else ()
            remainder: list[Any] = []
            for element in elements:
                had = True
                if field.struct is None:
                    kind = _kind(field)
                    assert kind is not None
                    if not is_refused(_named(outer.with_(**{kind: element}), request, name_of)):
                        remainder.append(element)
                elif (part := keep(element, outer)) is not None:
                    remainder.append(part)
            if elements:
                changes[field.name] = remainder
                has_remainder = has_remainder or bool(remainder)
        if not had:
            return None if is_refused(_named(outer, request, name_of)) else value
        if not has_remainder:
            return None
        return dataclasses.replace(value, **changes)

    remainder: Message | None = keep(request, Subject())
    return remainder
