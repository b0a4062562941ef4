"""Where a request belongs, by what its schema declares; how one that belongs to several is split, and how
their answers become one.

    targets(DescribeGroupsRequest(groups=["a", "b"]))   # [(0,): CoordinatorOf("group", "a"), (1,): …("b")]
    restricted(request, [(1,)])                         # the request for "b" alone
    merged([answer, answer])

Strategy: a target is who answers for one element of the request, which has a place: the indexes of the arrays
on the way to it. `FACTS` has who answers each API; the keys of coordinators are found by the entities of
fields. Rules: pure functions; a request is never changed, parts are copies that share what is not split;
elements keep their order; time is linear.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from coordwire.client.errors import RequestFailed
from coordwire.codec import Message, Response, Struct
from coordwire.codec.fields import Field
from coordwire.codec.primitives import uuid_text
from coordwire.codec.walk import fields_of
from coordwire.enums import ConfigResourceType, CoordinatorType
from coordwire.messages import FindCoordinatorRequest
from coordwire.messages.keys import FACTS, ApiFacts
from coordwire.messages.record_types import TOPICS

M = TypeVar("M", bound=Message)
R = TypeVar("R", bound=Response)

Place = tuple[int, ...]
"""The indexes of arrays on the way to an element; () for the whole request."""


class AnyBroker(NamedTuple):
    """Any broker answers."""


class EveryBroker(NamedTuple):
    """Each broker answers for itself."""


class Controller(NamedTuple):
    """The controller, or the broker that forwards to it."""


class NamedNode(NamedTuple):
    """The node of an id."""

    node_id: int


class CoordinatorOf(NamedTuple):
    """The coordinator of a group, a transactional id or a share partition. kind: "group", "transaction" or
    "share"."""

    kind: str
    key: str


class LeaderOf(NamedTuple):
    """The leader of a partition. topic: its name, or its id."""

    topic: str | UUID
    partition: int


Target = AnyBroker | EveryBroker | Controller | NamedNode | CoordinatorOf | LeaderOf

_ENTITIES = {"group": "group_id", "transaction": "transactional_id"}
COORDINATOR_TOPICS = {
    "group": TOPICS["consumer_offsets"],
    "transaction": TOPICS["transaction_state"],
    "share": TOPICS["share_group_state"],
}
"""The logs of coordinators by their kinds."""
_OF_BROKERS = (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER)
_NO_TOPIC = UUID(int=0)


def targets(request: Message, to: str | None = None) -> dict[Place, Target]:
    """The nodes that answer a request, by the places of its elements.

    to: instead of what the schema declares: "any", "controller", "leader" or "coordinator". Raises
    `RequestFailed` for a request that names none such, or whose broker only the caller can know.
    """
    facts = _facts(request)
    answered_by = _ANSWERED_BY.get(to or "", to) or facts.answered_by
    match answered_by:
        case "any broker":
            return {(): AnyBroker()}
        case "every broker":
            return {(): EveryBroker()}
        case "controller":
            return {(): Controller()}
        case "leader":
            if facts.partitions is None:
                raise RequestFailed(f"{facts.name} names no partition whose leader could answer")
            return dict(_leaders(request, facts.partitions)) or {(): AnyBroker()}
        case "coordinator":
            return dict(_coordinators(request, facts)) or {(): AnyBroker()}
        case "broker of the resource":
            return dict(_resources(request)) or {(): AnyBroker()}
    raise RequestFailed(
        f"{facts.name} does not name the broker that answers it: expected a node to send it to"
    )


_ANSWERED_BY = {"any": "any broker"}


def coordinator_topics(request: Message, to: int | str | None = None) -> list[str]:
    """The topics of the coordinators that are looked up for a request, by itself or before it: a broker that
    is asked for a coordinator makes its topic where there is none (Kafka's KafkaApis.getCoordinator).

    to: the argument of `targets`, or a node's id or "every", for which nothing is looked up. Raises
    `RequestFailed`.
    """
    if isinstance(request, FindCoordinatorRequest):
        kinds = {CoordinatorType(request.key_type).name.lower()}
    elif isinstance(to, int) or to == "every":
        kinds = set()
    else:
        kinds = {target.kind for target in targets(request, to).values() if isinstance(target, CoordinatorOf)}
    return [topic for kind, topic in COORDINATOR_TOPICS.items() if kind in kinds]


def modifies(request: Message) -> bool:
    """Whether a request changes something, as its schema declares."""
    declared = _facts(request).modifies
    if isinstance(declared, tuple):
        field, value = declared
        return bool(getattr(request, field) == value)
    return declared


def _facts(request: Message) -> ApiFacts:
    if request.api_key is None or request.direction != "request":
        raise RequestFailed(f"expected a request, got {type(request).__name__}")
    return FACTS[request.api_key]


# --- elements and their places ---


def _elements(struct: Any, path: Sequence[str], place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """The values at a path of field names, those of arrays one by one, with their places."""
    name, *following = path
    value = getattr(struct, name)
    values = (
        [((*place, index), element) for index, element in enumerate(value)]
        if isinstance(value, list)
        else [(place, value)]
    )
    if not following:
        yield from values
        return
    for inner_place, element in values:
        yield from _elements(element, following, inner_place)


@cache
def _path(text: str) -> tuple[str, ...]:
    return tuple(part.removesuffix("[]") for part in text.split("."))


def _leaders(request: Message, partitions: str) -> Iterator[tuple[Place, Target]]:
    for place, topic, partition in _with_topics(request, _path(partitions)):
        yield place, LeaderOf(topic, partition)


def _with_topics(request: Any, path: Sequence[str]) -> Iterator[tuple[Place, str | UUID, int]]:
    """The partitions at a path, with their topics: what the struct around them names."""
    depth = len(path) - (2 if _is_struct_array(request, path) else 1)
    for place, topic_struct in _structs(request, path[:depth]):
        topic = _topic_of(topic_struct)
        for inner, partition in _elements(topic_struct, path[depth:]):
            yield (*place, *inner), topic, partition


def _is_struct_array(request: Any, path: Sequence[str]) -> bool:
    """Whether partitions are structs with an index ("partitions[].index"), not numbers ("partitions[]")."""
    cls: Any = type(request)
    field = None
    for name in path:
        field = next(field for field in fields_of(cls) if field.name == name)
        cls = field.struct
    return field is not None and not field.array


def _structs(struct: Any, path: Sequence[str], place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """The structs in the arrays at a path."""
    if not path:
        yield place, struct
        return
    for index, element in enumerate(getattr(struct, path[0]) or ()):
        yield from _structs(element, path[1:], (*place, index))


def _topic_of(struct: Any) -> str | UUID:
    """The topic that a struct names, or its id."""
    name: str = next(
        (getattr(struct, field.name) for field in fields_of(struct) if field.entity == "topic_name"), ""
    )
    identity: UUID = getattr(struct, "topic_id", _NO_TOPIC)
    return name or identity


def _coordinators(request: Any, facts: ApiFacts) -> Iterator[tuple[Place, Target]]:
    if facts.coordinator == "share" and facts.partitions is not None:
        group: str = request.group_id
        for place, topic, partition in _with_topics(request, _path(facts.partitions)):
            yield place, CoordinatorOf("share", f"{group}:{_topic_text(topic)}:{partition}")
        return
    kinds = [facts.coordinator] if facts.coordinator else list(_ENTITIES)
    cls: Any = type(request)
    paths = [(kind, path) for kind in kinds for path in _entity_paths(cls, _ENTITIES[kind])]
    if not paths:
        raise RequestFailed(f"{facts.name} names no group or transactional id whose coordinator could answer")
    for kind, path in paths:
        keys = [(place, key) for place, key in _elements(request, path) if place or key]
        if keys:
            yield from ((place, CoordinatorOf(kind, key)) for place, key in keys)
            return


def _topic_text(topic: str | UUID) -> str:
    """A topic's id as Kafka writes it."""
    return topic if isinstance(topic, str) else uuid_text(topic)


@cache
def _entity_paths(cls: Any, entity: str) -> tuple[tuple[str, ...], ...]:
    """The paths to the fields of an entity: those in arrays first, which newer versions have."""
    own = [(field.name,) for field in fields_of(cls) if field.entity == entity]
    nested = [
        (field.name, *path)
        for field in fields_of(cls)
        if field.struct is not None
        for path in _entity_paths(_class(field), entity)
    ]
    return (*nested, *own)


def _class(field: Field) -> Any:
    return field.struct


def _resources(request: Any) -> Iterator[tuple[Place, Target]]:
    for index, resource in enumerate(request.resources):
        name: str = resource.resource_name
        if resource.resource_type in _OF_BROKERS and name.isdecimal():
            yield (index,), NamedNode(int(name))
        else:
            yield (index,), AnyBroker()


# --- parts of a request ---


def restricted(request: M, places: Iterable[Place]) -> M:
    """A copy of a request that has only the elements at these places; the request itself for `()`."""
    places = set(places)
    if () in places:
        return request
    path = _split_path(request, len(next(iter(places))))
    part: M = _restricted(request, path, places)
    return part


def _split_path(request: Any, depth: int) -> tuple[str, ...]:
    """The arrays that places of this depth index."""
    facts = _facts(request)
    if facts.answered_by == "broker of the resource":
        return ("resources",)
    paths = [_path(facts.partitions)] if facts.partitions else []
    cls: Any = type(request)
    paths += [path for entity in _ENTITIES.values() for path in _entity_paths(cls, entity)]
    for path in paths:
        arrays = _arrays(request, path)
        if len(arrays) == depth and getattr(request, path[0]):
            return arrays
    raise AssertionError(f"{facts.name} has no arrays of depth {depth}")  # places come from `targets`


def _arrays(request: Any, path: Sequence[str]) -> tuple[str, ...]:
    """The part of a path that arrays are on."""
    cls: Any = type(request)
    arrays = []
    for name in path:
        field = next(field for field in fields_of(cls) if field.name == name)
        if field.array:
            arrays.append(name)
        cls = field.struct
    return tuple(arrays)


def _restricted(struct: Any, path: Sequence[str], places: Iterable[Place], depth: int = 0) -> Any:
    by_index: dict[int, list[Place]] = {}
    for place in places:
        by_index.setdefault(place[depth], []).append(place)
    part, elements = copy.copy(struct), getattr(struct, path[0])
    setattr(
        part,
        path[0],
        [
            elements[index] if len(path) == 1 else _restricted(elements[index], path[1:], places, depth + 1)
            for index, places in sorted(by_index.items())
        ],
    )
    return part


# --- answers ---


def merged(answers: Sequence[R], *, distinct: bool = True) -> R:
    """One answer of the answers to the parts of a request.

    Arrays are joined; elements that differ in their arrays only (a topic in two answers) become one, if
    `distinct`. The throttle time is the longest, the error code the first that is not 0; other fields are the
    first answer's. Raises `ValueError` without answers.
    """
    if not answers:
        raise ValueError("expected an answer at least, got none")
    if len(answers) == 1:
        return answers[0]
    result: Any = copy.copy(answers[0])
    for field in fields_of(result):
        values = [getattr(answer, field.name) for answer in answers]
        if field.array:
            setattr(result, field.name, _joined([value for value in values if value is not None], distinct))
        elif field.name == "throttle_time_ms":
            setattr(result, field.name, max(values))
    if (failed := next((answer for answer in answers if getattr(answer, "error_code", 0)), None)) is not None:
        for name in ("error_code", "error_message"):
            if hasattr(result, name):
                setattr(result, name, getattr(failed, name))
    return result  # type: ignore[no-any-return]


def _joined(arrays: list[list[Any]], distinct: bool) -> list[Any]:
    """The elements of all arrays; those of several arrays that differ in their own arrays only become one."""
    joined: list[Any] = []
    alike: dict[Any, tuple[int, list[Any]]] = {}
    for array in arrays:
        fresh: dict[Any, tuple[int, list[Any]]] = {}
        for element in array:
            if distinct and isinstance(element, Struct):
                identity = _identity(element)
                if (earlier := alike.get(identity)) is not None:
                    earlier[1].append(element)
                    continue
                fresh[identity] = len(joined), [element]
            joined.append(element)
        alike |= fresh
    for index, elements in alike.values():
        if len(elements) > 1:
            joined[index] = _union(elements)
    return joined


def _union(structs: list[Any]) -> Any:
    """The first of structs that differ in their arrays only, with the arrays of all."""
    union = copy.copy(structs[0])
    for field in fields_of(union):
        if field.array:
            arrays = [array for struct in structs if (array := getattr(struct, field.name))]
            setattr(union, field.name, _joined(arrays, True) if arrays else getattr(union, field.name))
    return union


def _identity(struct: Struct) -> tuple[object, ...]:
    """What a struct has beside its arrays."""
    values = ((getattr(struct, field.name), field) for field in fields_of(struct) if not field.array)
    return tuple(repr(value) if field.struct is not None else value for value, field in values)
