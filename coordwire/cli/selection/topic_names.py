"""The names of topics by their ids: newer versions of Fetch and of similar requests carry ids only.

Strategy: responses with both, such as Metadata's, are remembered as they are read. Rules: a topic whose name
is unknown is shown by its id as Kafka writes it; beyond a number of topics the oldest is dropped.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from uuid import UUID

from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.redaction.entry_secrets import is_accounted_for
from coordwire.codec import Struct
from coordwire.codec.entities import entity_values
from coordwire.codec.walk import FieldSelection
from coordwire.versions import ApiKey

MOST_TOPICS = 100_000
_TOPIC_IDS = FieldSelection(lambda field: field.type == "uuid" and field.name == "topic_id")
TELLING = frozenset((ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.DESCRIBE_TOPIC_PARTITIONS))
"""APIs whose responses have names beside ids."""


class TopicNames:
    """The names of topics by their ids, from the entries read so far."""

    def __init__(self) -> None:
        self._names: OrderedDict[UUID, str] = OrderedDict()

    def learn(self, entry: Entry) -> None:
        """Read an entry, which may have names and ids."""
        if (
            not isinstance(entry, FrameEntry)
            or entry.api_key not in TELLING
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
        topics: dict[str, None] = {}
        for message in messages:
            for topic in _topics(message, self._names):
                if topic and topic not in topics:
                    topics[topic] = None
                    yield topic


def _topics(message: Struct, names: OrderedDict[UUID, str]) -> Iterator[str]:
    yield from entity_values(message, "topic_name")
    for number in _TOPIC_IDS.values(message):
        if number.int:
            yield names.get(number) or base64.urlsafe_b64encode(number.bytes).decode().rstrip("=")
