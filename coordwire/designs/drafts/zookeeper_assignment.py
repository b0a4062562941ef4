"""Who owns which partition by the nodes of a group: Kafka's assignors, "range" and "roundrobin".

Source: the description of ZookeeperConsumerConnector (AssignmentContext, RangeAssignor), the implementation
page (rebalancing step 4), and `kafka.consumer` of 0.8.2.2 and 1.1.1. Strategy: what was read of registrations
and topics becomes the threads of each topic and its partitions; an assignor divides them. Rules: threads are
in the order of their texts ("c-10" before "c-2"); a static subscription counts for topics that do not exist
yet too; what cannot be read is a text that says why.

Results computed from the last few large values, each computed once: in a large group every consumer
reads the same nodes and computes the same plan.

Strategy: a value is known again by its identity, so that nothing is compared or hashed; it is kept as long as
its result. Rules: only for functions whose result depends on the value alone, and is not changed
by those who get it; a small value is not kept, as making its result again costs less than keeping it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from enum import Enum
from functools import lru_cache, partial
from itertools import cycle
from typing import Generic, TypeAlias, TypeVar

from coordwire.designs.drafts.actions import DraftPartition
from coordwire.designs.drafts.topic_interest import TopicInterest
from coordwire.designs.drafts.zookeeper_operations import OperationOutcome
from coordwire.dialects.zookeeper import (
    Registration,
    StaticTopics,
    Topic,
    WildcardTopics,
    java_hash,
    range_assignment,
    thread_ids,
    topic_filter,
)
from coordwire.errors import DecodeError

_Value = TypeVar("_Value", bound=Sized)
_Made = TypeVar("_Made")

_KEPT = 8


class RecentValues(Generic[_Value, _Made]):
    """make: what makes a result. large: the length from which on a value is kept."""

    def __init__(self, make: Callable[[_Value], _Made], large: int) -> None:
        self._make = make
        self._large = large
        self._entries: dict[int, tuple[_Value, _Made]] = {}

    def __call__(self, value: _Value) -> _Made:
        if len(value) < self._large:
            return self._make(value)
        entry = self._entries.get(id(value))
        if entry is not None:  # the value is kept, so that no other has its identity
            return entry[1]
        result = self._make(value)
        if len(self._entries) >= _KEPT:
            self._entries.pop(next(iter(self._entries)), None)
        self._entries[id(value)] = value, result
        return result


_TOPICS = "/brokers/topics"


class KafkaRelease(Enum):
    """The release whose consumer is followed where 0.8.2.2 and 1.1.1 differ."""

    KAFKA_0_8_2 = "0.8.2.2"
    KAFKA_1_1 = "1.1.1"

    @property
    def internal_topics(self) -> frozenset[str]:
        """What a wildcard leaves out."""
        topics = {"__consumer_offsets"}
        return frozenset(topics if self is KafkaRelease.KAFKA_0_8_2 else {*topics, "__transaction_state"})


class SortBy(Enum):
    """What a topic's partitions are sorted by before they are divided into ranges. NUMBER: as the code does;
    BROKER: as the page's step 4 says, those that one broker leads together."""

    NUMBER = "number"
    BROKER = "broker"


def filtered_interest(interest: TopicInterest, internal_topics: frozenset[str]) -> TopicInterest:
    """The interest of an application's `topic_count`: its expression is what a TopicFilter makes of it.
    internal_topics: those that it leaves out."""
    count = interest.count
    if isinstance(count, StaticTopics):
        return interest
    pattern = WildcardTopics(topic_filter(count.pattern), count.streams, blacklist=count.blacklist)
    return TopicInterest(pattern, internal_topics=internal_topics)


@lru_cache(maxsize=16_384)
def registered_interest(data: bytes, internal_topics: frozenset[str]) -> TopicInterest:
    """The interest of a registration node; many consumers read the same node. Raises `DecodeError`."""
    return filtered_interest(TopicInterest(Registration.parse(data).topic_count), internal_topics)


Plan: TypeAlias = dict[str, dict[DraftPartition, str]]
"""The partitions of each consumer, each with its thread."""


def range_plan(
    reads: Sequence[OperationOutcome], internal_topics: frozenset[str], sort_by: SortBy
) -> Plan | str:
    """RangeAssignor, for each topic by itself. reads: of topics and of all registrations; a text if one of
    them could not be read."""
    return _RANGE_PLANS[internal_topics, sort_by](reads)


def _range_plan(
    internal_topics: frozenset[str], sort_by: SortBy, reads: Sequence[OperationOutcome]
) -> Plan | str:
    partitions = {}
    try:
        for outcome in reads:
            above, _, name = outcome.path.rpartition("/")
            if above == _TOPICS:
                partitions[name] = _ordered(outcome, sort_by)
        threads = _threads(
            (outcome for outcome in reads if not outcome.path.startswith(_TOPICS)),
            partitions,
            internal_topics,
        )
    except _Unreadable as error:
        return str(error)
    plan: Plan = {}
    for topic, ordered in partitions.items():
        if topic in threads:
            for thread, owned in range_assignment(range(len(ordered)), threads[topic]).items():
                for index in owned:
                    _give(plan, DraftPartition(topic, ordered[index]), thread)
    return plan


def round_robin_plan(
    topics: Sequence[OperationOutcome],
    registrations: Sequence[OperationOutcome],
    names: Iterable[str],
    release: KafkaRelease,
    internal_topics: frozenset[str],
) -> Plan | str:
    """RoundRobinAssignor: partitions by Java's hash of their texts, to the threads in turn.

    1.1.1 leaves out a thread that does not read a topic for its partitions; 0.8.2.2 wants all topics to be
    read by the same threads. topics: those of `read_topics`; names: of all that exist.
    """
    old = release is KafkaRelease.KAFKA_0_8_2
    partitions = []
    try:
        threads = _threads(registrations, names, internal_topics)
        for outcome in topics:
            topic = outcome.path.rpartition("/")[2]
            if topic in threads:
                partitions += [DraftPartition(topic, text) for text in _ordered(outcome, SortBy.NUMBER)]
    except _Unreadable as error:
        return str(error)
    if old and len({frozenset(ids) for ids in threads.values()}) != 1:
        return "roundrobin needs the same threads for every topic of the group"
    form = "[{},{}]" if old else "{}-{}"
    partitions.sort(key=lambda partition: java_hash(form.format(*partition)))
    turn = cycle(sorted({thread for ids in threads.values() for thread in ids}))
    plan: Plan = {}
    for partition in partitions:
        readers = set(threads[partition.topic])
        _give(plan, partition, next(thread for thread in turn if thread in readers))
    return plan


def read_topics(
    registrations: Sequence[OperationOutcome], names: Iterable[str], internal_topics: frozenset[str]
) -> list[str] | str:
    """The topics that any consumer reads; a text if a registration could not be read."""
    try:
        return sorted(_threads(registrations, names, internal_topics))
    except _Unreadable as error:
        return str(error)


class _Unreadable(Exception):
    """A node whose text is not what belongs there."""


def _threads(
    registrations: Iterable[OperationOutcome], names: Iterable[str], internal_topics: frozenset[str]
) -> dict[str, list[str]]:
    """The threads that read each topic. A registration that is gone is left out: a watch reports that."""
    threads: dict[str, list[str]] = {}
    topics = tuple(names)
    for outcome in registrations:
        if outcome.ok:
            consumer = outcome.path.rpartition("/")[2]
            try:
                interest = registered_interest(outcome.data, internal_topics)
            except DecodeError as error:
                raise _Unreadable(f"{outcome.path}: {error}") from None
            count = interest.count
            streams = count.streams if isinstance(count, StaticTopics) else interest.streams(topics)
            for topic, number in streams.items():
                threads.setdefault(topic, []).extend(thread_ids(consumer, number))
    return threads


def _give(plan: Plan, partition: DraftPartition, thread: str) -> None:
    plan.setdefault(thread.rpartition("-")[0], {})[partition] = thread


def _ordered(outcome: OperationOutcome, sort_by: SortBy) -> list[str]:
    if not outcome.ok:
        return []
    try:
        replicas = _partitions(outcome.data)
    except DecodeError as error:
        raise _Unreadable(f"{outcome.path}: {error}") from None
    if sort_by is SortBy.NUMBER:
        return [str(number) for number in sorted(replicas)]
    return [str(number) for number in sorted(replicas, key=lambda number: (replicas[number][:1], number))]


@lru_cache(maxsize=256)
def _partitions(data: bytes) -> Mapping[int, list[int]]:
    """The replicas of a topic's node; all consumers read the same one. Raises `DecodeError`."""
    return Topic.parse(data).partitions


_RANGE_PLANS = {
    (internal_topics, sort_by): RecentValues(partial(_range_plan, internal_topics, sort_by), 16)
    for internal_topics in {frozenset[str](), *(release.internal_topics for release in KafkaRelease)}
    for sort_by in SortBy
}
