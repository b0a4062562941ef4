"""What of two answers to one request differs, and where.

Strategy: both are walked side by side by their field tables; elements of arrays that name a topic, a
partition, a group or a broker are compared with those of the same name. Ids and epochs that the cluster gives
again are equal if they are what the replay has learned. Rules: what differs between any two runs is left out:
throttle times, addresses, timestamps, texts of errors; records are compared by what is in them, without
producer and time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from coordwire.codec import Field, Message, Struct
from coordwire.codec.walk import fields_of
from coordwire.errors import CoordwireError, counted
from coordwire.records import batches
from coordwire.replay.identifiers import kind_of, matched

_VOLATILE = frozenset(
    {"throttle_time_ms", "error_message", "cluster_id", "client_host", "host", "rack", "log_append_time_ms"}
)
MOST = 100
"""Differences of one answer that are listed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """One place. path: in the captured answer, as in errors ("topics[0].error_code"); captured, answered: the
    values; None for what only one of them has; of structs, how many they are. answered_path: the place in the
    other answer."""

    path: str
    captured: Any
    answered: Any
    answered_path: str = dataclasses.field(compare=False, default="")


def differences(captured: Message, answered: Message, version: int) -> list[Difference]:
    """What differs, at most `MOST` places."""
    places: list[Difference] = []
    for place in _differ(captured, answered, version, "", ""):
        places.append(place)
        if len(places) == MOST:
            break
    return places


def _is_volatile(field: Field) -> bool:
    return (
        field.name in _VOLATILE
        or field.name.endswith(("timestamp", "timestamp_ms"))
        or field.entity in ("broker_host", "broker_port")
        or kind_of(field) is not None  # which `Identifiers` has learned
        or field.name.endswith("leader_epoch")
    )


def _differ(
    own: Struct, answered_part: Struct, version: int, prefix: str, answered_prefix: str
) -> Iterator[Difference]:
    for field in fields_of(own, version):
        if _is_volatile(field):
            continue
        first, second = getattr(own, field.name), getattr(answered_part, field.name)
        path, answered_path = f"{prefix}{field.name}", f"{answered_prefix}{field.name}"
        if field.struct is None:
            if not _equal(field, first, second):
                yield Difference(path, first, second, answered_path)
        elif first is None or second is None:
            if first is not second:
                yield Difference(path, _count(first), _count(second), answered_path)
        elif not field.array:
            yield from _differ(first, second, version, f"{path}.", f"{answered_path}.")
        else:
            yield from _elements_differ(first, second, version, path, answered_path)


def _count(value: Any) -> str | None:
    """How many structs a field has; None where it is null."""
    return None if value is None else counted(len(value) if isinstance(value, list) else 1, "element")


def _elements_differ(
    first: Any, second: Any, version: int, path: str, answered_path: str
) -> Iterator[Difference]:
    pairs = list(matched(first, second, version))
    places, answered_places = (
        {id(element): at for at, element in enumerate(side)} for side in (first, second)
    )
    if len(first) != len(second) or len(pairs) != len(first):
        yield Difference(path, _count(first), _count(second), answered_path)
    for own, answered_part in pairs:
        prefix, answered_prefix = (
            f"{path}[{places[id(own)]}].",
            f"{answered_path}[{answered_places[id(answered_part)]}].",
        )
        yield from _differ(own, answered_part, version, prefix, answered_prefix)


def _equal(field: Field, first: Any, second: Any) -> bool:
    if first == second:
        return True
    if field.type == "records" and first and second:
        return _records_of(first) == _records_of(second)
    return False


def _records_of(data: bytes) -> object:
    """The records of a set, as far as two runs write the same; its bytes where it cannot be read."""
    try:
        return [
            (record.offset, record.key, record.value, list(record.headers))
            for batch in batches(data)
            for record in batch
        ]
    except CoordwireError:
        return data
