"""Error codes in responses, at the places where a Kafka broker puts them.

Strategy: a code belongs to one level of a response, by the rules of `level_of`; the elements of that level
that were asked for get it, with the values that Kafka has beside an error, and the other elements are as they
were. Rules: every response can be encoded afterwards in its version; where it has a message for the error, it
names the fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from coordwire.broker.injection.subjects import (
    CodePlace,
    Level,
    Subject,
    code_places,
    element_of,
    identifying,
)
from coordwire.codec import Message, Struct
from coordwire.codec.walk import fields_of
from coordwire.enums import ErrorCode
from coordwire.messages import (
    FindCoordinatorResponse,
    InitProducerIdResponse,
    JoinGroupResponse,
)
from coordwire.messages.delete_records import DeleteRecordsPartitionResult
from coordwire.messages.fetch import PartitionData
from coordwire.messages.find_coordinator import Coordinator
from coordwire.messages.offset_fetch import (
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from coordwire.messages.produce import PartitionProduceResponse
from coordwire.versions import ApiKey

_SESSIONS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
_OF_PARTITIONS = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    }
)
_OF_SHARED_PARTITIONS = _OF_PARTITIONS | {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.INVALID_RECORD_STATE,
}
_OF_MEMBERS = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID})
_OF_REQUESTS = frozenset({ErrorCode.REBOOTSTRAP_REQUIRED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED})

_OUTER: Mapping[int, tuple[frozenset[ErrorCode], tuple[Level, ...]]] = {
    ApiKey.OFFSET_FETCH: (_OF_PARTITIONS, ("group", "request")),
    ApiKey.OFFSET_DELETE: (_OF_PARTITIONS, ("request",)),
    ApiKey.LEAVE_GROUP: (_OF_MEMBERS, ("request",)),
    ApiKey.DESCRIBE_LOG_DIRS: (frozenset({ErrorCode.KAFKA_STORAGE_ERROR}), ("request",)),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (
        frozenset({ErrorCode.RESOURCE_NOT_FOUND, ErrorCode.DUPLICATE_RESOURCE}),
        ("request",),
    ),
    ApiKey.SHARE_FETCH: (_OF_SHARED_PARTITIONS, ("request",)),
    ApiKey.SHARE_ACKNOWLEDGE: (_OF_SHARED_PARTITIONS, ("request",)),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (_OF_PARTITIONS, ("group",)),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (_OF_PARTITIONS, ("request",)),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: (_OF_PARTITIONS, ("request",)),
    ApiKey.DESCRIBE_QUORUM: (frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}), ("request",)),
    ApiKey.UPDATE_FEATURES: (frozenset(), ("request",)),
    ApiKey.METADATA: (frozenset(), ("topic",)),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (frozenset(), ("topic",)),
}
"""Where an inner level has a few codes only: these, and the levels that have all others."""

_BESIDE: Mapping[type[Struct], Mapping[str, Any]] = {
    PartitionProduceResponse: {"base_offset": -1},
    PartitionData: {"high_watermark": -1, "records": b""},
    OffsetFetchResponsePartition: {"committed_offset": -1, "metadata": ""},
    OffsetFetchResponsePartitions: {"committed_offset": -1, "metadata": ""},
    DeleteRecordsPartitionResult: {"low_watermark": -1},
    FindCoordinatorResponse: {"node_id": -1, "port": -1},
    Coordinator: {"node_id": -1, "port": -1},
    InitProducerIdResponse: {"producer_id": -1, "producer_epoch": -1},
    JoinGroupResponse: {"protocol_name": ""},
}
"""What Kafka says beside an error, where it is not the field's default."""

_INNER: tuple[Level, ...] = (
    "partition",
    "member",
    "topic",
    "resource",
    "coordinator",
    "group",
    "transaction",
)


def level_of(api_key: int, levels: Iterable[Level], code: ErrorCode, condition: Level | None = None) -> Level:
    """The level of a response that a code belongs to. levels: those that the response has in its version.

    condition: what a rule is about; a code goes to that level, where the response has it.
    """
    known = list(levels)
    if condition in known:
        return condition
    if ("request" in known) and code in (_SESSIONS if api_key == ApiKey.FETCH else _OF_REQUESTS):
        return "request"
    inner, outer = _OUTER.get(api_key, (frozenset(), ()))
    if code not in inner:
        for level in outer:
            if level in known:
                return level
    return next((level for level in _INNER if level in known), "request")


def place_of(response: Any, version: int, level: Level) -> CodePlace:
    """The place of a level's codes."""
    return next(place for place in code_places(response, version) if place.level == level)


def refused_response(request: Any, response: Any, version: int, code: ErrorCode) -> Message:
    """A response that refuses the whole request. Without a place for a code it has its defaults."""
    refused: Message = response(**_BESIDE.get(response, {}))
    places = code_places(response, version)
    if any(place.level == "request" for place in places):
        _put(refused, place_of(response, version, "request"), version, code)
    if isinstance(refused, JoinGroupResponse):
        refused.member_id = request.member_id
    return refused


ElementIndex = dict[int, dict[tuple[Any, ...], Any]]
"""The elements of a response's arrays, by the array's identity and by what identifies them."""


def refuse_element(
    response: Message,
    version: int,
    place: CodePlace,
    subject: Subject,
    code: ErrorCode,
    index: ElementIndex | None = None,
) -> None:
    """Let the element of a response that is about a subject have an error; it is made if it is not there.

    index: kept between the calls for one response, which so take the same time however long its arrays are.
    """
    value: Any = response
    tables: ElementIndex = {} if index is None else index
    for field in place.path:
        elements: list[Any] = getattr(value, field.name) or []
        setattr(value, field.name, elements)
        assert field.struct is not None
        value = _element(elements, field.struct, version, subject, tables)
    _refuse(value, version, place, code)


def _element(elements: list[Any], cls: Any, version: int, subject: Subject, tables: ElementIndex) -> Any:
    """The element that is about a subject, a new one if there is none."""
    kinds = identifying(cls, version)
    identity = tuple(getattr(subject, kind) for kind, _ in kinds)
    table = tables.get(id(elements))
    if table is None:
        table = tables[id(elements)] = {}
        for element in elements:
            table.setdefault(tuple(getattr(element, name) for _, name in kinds), element)
    known = table.get(identity)
    if known is None and (None in identity or len(kinds) > 1):  # it may be named otherwise
        known = next((element for element in elements if _is_about(element, version, subject)), None)
    if known is None:
        known = _fresh(cls, version, subject)
        elements.append(known)
        table[identity] = known
    return known


def refuse_matching(response: Message, version: int, place: CodePlace, code: ErrorCode, matches: Any) -> None:
    """Give an error to the elements of a response whose subject `matches`."""

    def walk(value: Any, path: tuple[Any, ...], outer: Subject) -> None:
        if not path:
            if matches(outer):
                _refuse(value, version, place, code)
            return
        for element in getattr(value, path[0].name) or ():
            walk(element, path[1:], element_of(element, version, outer))

    walk(response, place.path, Subject())


def _is_about(element: Struct, version: int, subject: Subject) -> bool:
    """Whether an element names what the subject does, as far as both name it."""
    cls: Any = type(element)
    own = element_of(element, version)
    if own.topic_id is not None and own.topic_id == subject.topic_id and own.topic_id.int:
        own = own.with_(topic=subject.topic)
    return all(
        entry is None or other is None or entry == other
        for kind, _ in identifying(cls, version)
        for entry, other in ((getattr(own, kind), getattr(subject, kind)),)
    )


def _fresh(cls: Any, version: int, subject: Subject) -> Struct:
    """An element about a subject."""
    element: Struct = cls(**_BESIDE.get(cls, {}))
    for kind, name in identifying(cls, version):
        value = getattr(subject, kind)
        if value is not None:
            setattr(element, name, value)
    return element


def _refuse(value: Any, version: int, place: CodePlace, code: ErrorCode) -> None:
    """Give an element an error, and Kafka's values beside it for what it said before."""
    cls = type(value)
    if place.path:
        fresh = _fresh(cls, version, element_of(value, version))
        for field in fields_of(cls):
            setattr(value, field.name, getattr(fresh, field.name))
    _put(value, place, version, code)


def _put(value: Any, place: CodePlace, version: int, code: ErrorCode) -> None:
    setattr(value, place.field.name, int(code))
    for field in fields_of(value):
        if field.name == "error_message" and field.exists(version):
            value.error_message = f"{code.name}, by a fault"
