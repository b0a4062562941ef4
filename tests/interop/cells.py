"""What Kafka's classes judge: every message in every version, and how its JSON differs from ours.

Rules: a cell is one message in one version. Its judge is the newest of our releases that has the version.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from coordwire.codec import Message, Struct
from coordwire.messages import find_message
from coordwire.messages.keys import FACTS
from coordwire.messages.record_types import RECORD_TYPES
from tests.interop.java_oracle import JavaOracle, oracle
from tests.interop.maven import CURRENT, FIRST_LOGS, PREVIOUS

HEADERS = ["RequestHeader", "ResponseHeader"]
DATA = [
    "AbortedTxn", "ConsumerProtocolAssignment", "ConsumerProtocolSubscription", "ControlRecordTypeSchema",
    "DefaultPrincipalData", "EndTxnMarker", "KRaftVersionRecord", "LeaderChangeMessage",
    "SnapshotFooterRecord", "SnapshotHeaderRecord", "VotersRecord",
]  # fmt: skip
"""Kafka's data types inside other bytes."""

NO_JUDGE = {"ShareGroupPartitionMetadataKey"}
"""Kafka 4.0 alone had it, with the record type as its version."""

RECORDS = [
    name
    for types in RECORD_TYPES.values()
    for names in types.values()
    for name in names
    if name and name not in NO_JUDGE
]
"""What is in brokers' own logs."""

GREATEST = (1 << 31) - 1
"""The first tag that Kafka's writer refuses ("as an undefined tag")."""

_NOT_FINITE = ("NaN", "Infinity", "-Infinity")


def kinds() -> Iterator[type[Message]]:
    for key in FACTS:
        yield find_message(key, "request")
        yield find_message(key, "response")
    yield from map(find_message, HEADERS + DATA + RECORDS)


UNRELEASED = {("RequestHeader", 3)}
"""No release has it yet."""

CELLS = [
    (cls, version) for cls in kinds() for version in cls.versions if (cls.__name__, version) not in UNRELEASED
]


def java_name(cls: type[Message]) -> str:
    """Kafka's class: what isn't a data type has "Data" after its name."""
    return cls.__name__ if cls.direction == "data" else f"{cls.__name__}Data"


@functools.cache
def _judges(name: str) -> list[tuple[range, JavaOracle]]:
    results = []
    for release in (CURRENT, FIRST_LOGS if name in RECORDS else PREVIOUS):
        kafka = oracle(release)
        versions = kafka.versions(name)
        if versions is not None:
            results.append((versions, kafka))
    return results


def judge(cls: type[Message], version: int) -> JavaOracle | None:
    """The release that judges a cell; None if no release has it."""
    return next((kafka for versions, kafka in _judges(java_name(cls)) if version in versions), None)


def drop_great_tags(value: Any) -> None:
    """Take out the unknown tags that Kafka reads but can't write again."""
    if value.tags is not None:
        value.tags = {tag: data for tag, data in value.tags.items() if tag < GREATEST} or None
    for field in value._layout_.fields:
        content = getattr(value, field.name) if field.struct is not None else None
        for one in content if isinstance(content, list) else [content] * (content is not None):
            drop_great_tags(one)


# --- forms --------------------------------------------------------------------------------------------------


def as_kafka(cls: type[Struct], form: dict[str, Any]) -> dict[str, Any]:
    """Our form of a message as Kafka's converter writes it: without unknown tags, with records empty (their
    bytes are judged by what is written again), every NaN as "NaN"."""
    return _mapped(cls, form, _written)


def without_tags(cls: type[Struct], form: dict[str, Any]) -> dict[str, Any]:
    """Our form as Kafka's converter can read it: without unknown tags, a number for what isn't finite."""
    return _mapped(cls, form, lambda kind, value: 0.5 if kind == "float64" and _odd(value) else value)


def _odd(value: object) -> bool:
    return isinstance(value, str) and (value in _NOT_FINITE or value.startswith("NaN:"))


def _written(kind: str, value: Any) -> Any:
    if kind == "records" and value is not None:
        return ""
    return "NaN" if kind == "float64" and isinstance(value, str) and value.startswith("NaN:") else value


def _mapped(cls: type[Struct], form: dict[str, Any], leaf: Any) -> dict[str, Any]:
    out = {}
    for field in cls._layout_.fields:
        if field.json_name not in form:
            continue
        value = form[field.json_name]
        if value is not None and field.struct is not None:
            struct = field.struct
            value = (
                [_mapped(struct, element, leaf) for element in value]
                if field.array
                else _mapped(struct, value, leaf)
            )
        elif not field.array:
            value = leaf(field.type, value)
        out[field.json_name] = value
    return out
