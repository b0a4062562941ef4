"""The topics that frames are about, by name: newer versions of Fetch and their like carry ids only.

Strategy: the answers that hold both, such as Metadata's, are learned as they go by. Rules: what wasn't seen
has no name, and its id is shown as Kafka writes it; so many topics are remembered, the oldest is forgotten.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any
from uuid import UUID

from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.redaction.withheld import is_accounted_for
from coordwire.codec import Field, Struct
from coordwire.codec.entities import entity_values
from coordwire.versions import ApiKey

MOST_TOPICS = 100_000
_LEARNED = {ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.DESCRIBE_TOPIC_PARTITIONS}


class TopicNames:
    """The names of topics by their ids, as far as the entries so far have said them."""

    def __init__(self) -> None:
        self._names: OrderedDict[UUID, str] = OrderedDict()

    def learn(self, entry: Entry) -> None:
        """Take in an entry."""
        if (
            not isinstance(entry, FrameEntry)
            or entry.api_key not in _LEARNED
            or entry.direction != "response"
            or not is_accounted_for(entry)
        ):
            return
        for topic in getattr(entry.message, "topics", None) or ():
            if (number := getattr(topic, "topic_id", None)) and topic.name and number.int:
                self._names[number] = topic.name
                if len(self._names) > MOST_TOPICS:
                    self._names.popitem(last=False)

    def topics(self, messages: Iterable[Struct]) -> Iterator[str]:
        """The topics that messages are about, by name, or by id where that isn't known; each once."""
        found: dict[str, None] = {}
        for message in messages:
            for topic in _topics(message, self._names):
                if topic and topic not in found:
                    found[topic] = None
                    yield topic


def _topics(message: Struct, names: OrderedDict[UUID, str]) -> Iterator[str]:
    yield from entity_values(message, "topic_name")
    for number in _ids(message):
        if number.int:
            yield names.get(number) or base64.urlsafe_b64encode(number.bytes).decode().rstrip("=")


def _ids(value: Struct) -> Iterator[UUID]:
    """The topic ids in a message, in its order."""
    cls: Any = type(value)
    for field in _ways(cls):
        inside: Any = getattr(value, field.name)
        if inside is None:
            continue
        for element in inside if field.array else (inside,):
            if field.struct is None:
                yield element
            else:
                yield from _ids(element)


@cache
def _ways(cls: Any) -> tuple[Field, ...]:
    """The fields that hold topic ids, and those that lead to them."""
    return tuple(
        field
        for field in cls._layout_.fields
        if (_ways(field.struct) if field.struct else field.type == "uuid" and field.name == "topic_id")
    )
