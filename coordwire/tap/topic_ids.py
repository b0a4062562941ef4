"""The topics that a tap has seen: their names by id, and the partitions of fetch sessions.

Strategy: what responses and requests say is remembered as it passes, since rules name topics, and newer
requests have ids in their place, or nothing at all where a session knows the partitions. Rules: both are
bounded; the oldest goes first; nothing is kept of a name that Kafka would refuse.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from functools import lru_cache
from typing import Any
from uuid import UUID

from coordwire.broker.cluster.fetch_sessions import FetchKey, FetchSession
from coordwire.client.settings import Address
from coordwire.codec import Struct
from coordwire.codec.walk import FieldSelection, entity_field, fields_of
from coordwire.messages import FetchRequest, FetchResponse, find_message
from coordwire.messages.keys import FACTS

MOST_TOPICS = 100_000
MOST_SESSIONS = 1_000
MOST_PARTITIONS = 100_000

LONGEST_NAME = 249
"""Characters of a topic's name."""

_IDS = FieldSelection(lambda field: field.type == "uuid" and field.name == "topic_id")


@lru_cache(maxsize=1_000)  # clients choose the version
def names_topics(api_key: int, version: int) -> bool:
    """Whether the response of an API has topics with both name and id in a version."""
    if api_key not in FACTS:
        return False

    def is_within(cls: Any) -> bool:
        return _has_name_and_id(cls, version) or any(
            field.struct is not None and is_within(field.struct) for field in fields_of(cls, version)
        )

    return is_within(find_message(api_key, "response"))


def _has_name_and_id(cls: Any, version: int) -> bool:
    names = {field.name for field in fields_of(cls, version)}
    return "topic_id" in names and entity_field(cls, "topic_name") in names


class TopicIds:
    """The names of topics by their ids."""

    def __init__(self) -> None:
        self._names: OrderedDict[UUID, str] = OrderedDict()

    def name(self, topic_id: UUID) -> str | None:
        return self._names.get(topic_id)

    def learn(self, response: Struct, version: int) -> None:
        """Remember the names and ids of a response."""
        for place in _IDS.places(response, version):
            owner: Any = type(place.owner)
            name_field = entity_field(owner, "topic_name")
            name = None if name_field is None else getattr(place.owner, name_field)
            if name and len(name) <= LONGEST_NAME and place.value.int:
                self._names[place.value] = name
                self._names.move_to_end(place.value)
        while len(self._names) > MOST_TOPICS:
            self._names.popitem(last=False)


class SessionPartitions:
    """The partitions of the fetch sessions of all brokers."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[tuple[Address, int], FetchSession] = OrderedDict()
        self._partitions = 0

    def __len__(self) -> int:
        return self._partitions

    def of(self, broker: Address, session_id: int) -> Iterable[FetchKey]:
        session = self._sessions.get((broker, session_id))
        return () if session is None else [key for key, _ in session.partitions()]

    def continued(self, broker: Address, request: FetchRequest) -> None:
        """Apply a request that continues a session, or ends one."""
        if not request.session_id:
            return
        key = broker, request.session_id
        session = self._sessions.get(key)
        if session is None:
            return
        if request.session_epoch <= 0:
            self._drop(key)
            return
        before = len(session)
        forgotten: list[FetchKey] = [
            (entry.topic, entry.topic_id, index)
            for entry in request.forgotten_topics_data
            for index in entry.partitions
        ]
        session.update(_partitions(request), forgotten)
        self._partitions += len(session) - before
        self._sessions.move_to_end(key)
        self._bound()

    def answered(self, broker: Address, request: FetchRequest, response: FetchResponse) -> None:
        """Remember the session that an answer begins."""
        if not response.session_id or request.session_epoch > 0:
            return
        key = broker, response.session_id
        self._drop(key)
        session = FetchSession(response.session_id, uses_ids=False, now=0)
        session.update(_partitions(request), ())
        self._sessions[key] = session
        self._partitions += len(session)
        self._bound()

    def _drop(self, key: tuple[Address, int]) -> None:
        session = self._sessions.pop(key, None)
        if session is not None:
            self._partitions -= len(session)

    def _bound(self) -> None:
        while self._sessions and (self._partitions > MOST_PARTITIONS or len(self._sessions) > MOST_SESSIONS):
            self._drop(next(iter(self._sessions)))


def _partitions(request: FetchRequest) -> list[tuple[FetchKey, Any]]:
    return [
        ((topic.topic, topic.topic_id, partition.partition), partition)
        for topic in request.topics
        if len(topic.topic) <= LONGEST_NAME
        for partition in topic.partitions
    ]
