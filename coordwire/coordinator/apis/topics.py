"""Guards of topics: requests about offsets reach a coordinator with topics that exist, by name and id.

Strategy: topics and partitions that do not exist are taken out of the request, and put before the others in
the answer, with their errors. OffsetFetch reads any name; its topics with an unknown id come last. Rules: a
topic that a request names twice is in the answer twice, as in Apache Kafka's, unless a topic or partition is
missing: then the partitions of each topic are merged. The cost is linear in the request and the answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from coordwire.codec import Message
from coordwire.coordinator.apis.guards import Change, Guard, GuardedCall, Verdict, replaced
from coordwire.coordinator.topics import NO_TOPIC_ID, TopicImage
from coordwire.enums import ErrorCode
from coordwire.messages import OffsetCommitResponse, TxnOffsetCommitResponse, offset_commit, offset_delete
from coordwire.messages import txn_offset_commit as transactional
from coordwire.messages.offset_fetch import OffsetFetchResponsePartitions, OffsetFetchResponseTopics
from coordwire.versions import ApiKey

_UNKNOWN_ID = int(ErrorCode.UNKNOWN_TOPIC_ID)
_UNKNOWN = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


class _Topic(Protocol):
    """A topic of a response, of any type of request."""

    @property
    def partitions(self) -> list[Any]: ...


T = TypeVar("T", bound=_Topic)


class _ResponseTopics(Generic[T]):
    """Topics by key. key: gives the key of a topic; empty: copies a topic without its partitions."""

    def __init__(self, key: Callable[[T], Hashable], empty: Callable[[T], T]) -> None:
        self._key = key
        self._empty = empty
        self._topics: dict[Hashable, T] = {}

    def add(self, topic: T) -> None:
        """Add a topic, or its partitions to the known topic."""
        self._topics.setdefault(self._key(topic), self._empty(topic)).partitions.extend(topic.partitions)

    def merged(self, topics: Iterable[T]) -> list[T]:
        """All added topics with these, which stay as they are where nothing was added."""
        if not self._topics:
            return list(topics)
        merged = _ResponseTopics(self._key, self._empty)
        for topic in (*self._topics.values(), *topics):
            merged.add(topic)
        return list(merged._topics.values())


def _split_partitions(call: GuardedCall, name: str, requested: Any) -> tuple[list[Any], list[Any]]:
    """A topic's partitions: those that exist, and those that do not."""
    valid: list[Any] = []
    missing: list[Any] = []
    for partition in requested.partitions:
        exists = call.topics.has(name, partition.partition_index)
        (valid if exists else missing).append(partition)
    return valid, missing


def _errors(response: Callable[..., Any], partitions: Iterable[Any], code: int) -> list[Any]:
    """The answer for partitions that do not exist. response: the class of a partition's answer."""
    return [response(partition_index=partition.partition_index, error_code=code) for partition in partitions]


def _reach(call: GuardedCall, known: list[Any], unknown: _ResponseTopics[Any]) -> Change:
    """Leave the known topics in the request; the change adds the unknown ones to the answer."""
    call.request = replaced(call.request, {"topics": known})

    def add(response: Any) -> None:
        if not getattr(response, "error_code", 0):  # it is refused as a whole
            response.topics = unknown.merged(response.topics)

    return add


# --- OffsetCommit ---

_COMMIT_BY_ID = 10


def _commit_topics(call: GuardedCall) -> Verdict:
    by_id = call.version >= _COMMIT_BY_ID
    known = []
    unknown: _ResponseTopics[Any] = _ResponseTopics(
        (lambda topic: topic.topic_id) if by_id else (lambda topic: topic.name),
        lambda topic: offset_commit.OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id),
    )
    for requested in call.request.topics:
        topic = call.topics.find_id(requested.topic_id) if by_id else call.topics.find(requested.name)
        if topic is None:
            topic_id = requested.topic_id if by_id else NO_TOPIC_ID
            code = _UNKNOWN_ID if by_id else _UNKNOWN
            name = "" if by_id else requested.name
            errors = _errors(offset_commit.OffsetCommitResponsePartition, requested.partitions, code)
            unknown.add(
                offset_commit.OffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=errors)
            )
            continue
        valid, missing = _split_partitions(call, topic.name, requested)
        if missing:
            errors = _errors(offset_commit.OffsetCommitResponsePartition, missing, _UNKNOWN)
            unknown.add(
                offset_commit.OffsetCommitResponseTopic(name=topic.name, topic_id=topic.id, partitions=errors)
            )
        if valid:
            known.append(
                offset_commit.OffsetCommitRequestTopic(name=topic.name, topic_id=topic.id, partitions=valid)
            )
    change = _reach(call, known, unknown)
    return change if known else _answered_with(OffsetCommitResponse(), change)


def _answered_with(response: Message, change: Change) -> Message:
    change(response)
    return response


# --- TxnOffsetCommit ---

_TRANSACTIONAL_BY_ID = 6
_KNOWS_LOADING = 2
"""The first version whose clients wait while a coordinator loads."""


def _transactional_topics(call: GuardedCall) -> Verdict:
    by_id = call.version >= _TRANSACTIONAL_BY_ID
    known = []
    unknown: _ResponseTopics[Any] = _ResponseTopics(
        lambda topic: (topic.name, topic.topic_id),
        lambda topic: transactional.TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id),
    )
    for requested in call.request.topics:
        topic: TopicImage | None
        topic = call.topics.find_id(requested.topic_id) if by_id else call.topics.find(requested.name)
        code = _UNKNOWN_ID if topic is None and by_id else _UNKNOWN
        name, topic_id = requested.name, requested.topic_id
        if topic is not None:
            name, topic_id = topic.name, topic.id
        valid, missing = _split_partitions(call, name, requested)
        if missing or code == _UNKNOWN_ID:  # also one without partitions
            errors = _errors(transactional.TxnOffsetCommitResponsePartition, missing, code)
            unknown.add(
                transactional.TxnOffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=errors)
            )
        if valid:
            known.append(
                transactional.TxnOffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=valid)
            )
    add = _reach(call, known, unknown)
    if not known:
        return _answered_with(TxnOffsetCommitResponse(), add)
    if call.version >= _KNOWS_LOADING:
        return add

    def reword(response: Any) -> None:
        for topic in response.topics:
            for partition in topic.partitions:
                if partition.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                    partition.error_code = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        add(response)

    return reword


# --- OffsetDelete ---


def _deleted_topics(call: GuardedCall) -> Verdict:
    """A group is looked for even where none of the topics exists: its own errors come first."""
    known = []
    unknown: _ResponseTopics[Any] = _ResponseTopics(
        lambda topic: topic.name, lambda topic: offset_delete.OffsetDeleteResponseTopic(name=topic.name)
    )
    for requested in call.request.topics:
        valid, missing = _split_partitions(call, requested.name, requested)
        if missing:
            errors = _errors(offset_delete.OffsetDeleteResponsePartition, missing, _UNKNOWN)
            unknown.add(offset_delete.OffsetDeleteResponseTopic(name=requested.name, partitions=errors))
        if valid:
            known.append(offset_delete.OffsetDeleteRequestTopic(name=requested.name, partitions=valid))
    return _reach(call, known, unknown)


# --- OffsetFetch ---

_FETCH_BY_ID = 10


def _fetched_topics(call: GuardedCall) -> Verdict:
    """Ids are replaced by names in the request; in the answer for all topics names get their ids, as of the
    time of the answer."""
    if call.version < _FETCH_BY_ID:
        return None
    changes: dict[str, deque[Callable[[Any], list[Any]]]] = {}  # by group, as often as it is named
    groups = []
    for group in call.request.groups:
        changes_of_group = changes.setdefault(group.group_id, deque())
        if group.topics is None:
            changes_of_group.append(lambda answer: _with_ids(call, answer.topics))
            groups.append(group)
            continue
        known: list[Any] = []
        unknown: list[Any] = []
        for topic in group.topics:
            image = call.topics.find_id(topic.topic_id)
            if image is None:
                unknown.append(_missing_fetch(topic))
            else:
                known.append(replaced(topic, {"name": image.name}))
        changes_of_group.append(partial(_with_unknown, unknown))
        groups.append(replaced(group, {"topics": known}))
    call.request = replaced(call.request, {"groups": groups})

    def change(response: Any) -> None:
        for answer in response.groups:
            topics = changes[answer.group_id].popleft()(answer)
            if not answer.error_code:
                answer.topics = topics

    return change


def _with_unknown(unknown: list[Any], answer: Any) -> list[Any]:
    return [*answer.topics, *unknown]


def _with_ids(call: GuardedCall, topics: list[Any]) -> list[Any]:
    known = [(call.topics.find(topic.name), topic) for topic in topics]
    return [replaced(topic, {"topic_id": image.id}) for image, topic in known if image is not None]


def _missing_fetch(topic: Any) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1, error_code=_UNKNOWN_ID)
            for index in topic.partition_indexes
        ],
    )


TOPIC_GUARDS: Mapping[int, Guard] = {
    ApiKey.OFFSET_COMMIT: _commit_topics,
    ApiKey.OFFSET_FETCH: _fetched_topics,
    ApiKey.OFFSET_DELETE: _deleted_topics,
    ApiKey.TXN_OFFSET_COMMIT: _transactional_topics,
}
"""By API, the part of its guard that knows topics and no rights."""
