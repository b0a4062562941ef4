"""Which topics a consumer reads, from its `topic_count`, and with how many threads each.

Strategy: a static subscription names its topics; a wildcard is matched against the topics that there are.
Rules: regular expressions are those of `coordwire.patterns`, which match in linear time, and
match whole names as Java's `matches` does; wildcards leave out the offsets topic. What cannot be used raises
`DecodeError`: an expression that is invalid, a name that cannot be in a path, more than `MAX_STREAMS`
threads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from coordwire.designs.drafts.actions import DraftPartition
from coordwire.dialects.zookeeper import (
    StaticTopics,
    Topic,
    TopicCount,
    parse_topic_count,
    range_assignment,
    thread_ids,
)
from coordwire.errors import DecodeError, EncodeError, Malformed
from coordwire.patterns import InvalidPattern, RegularExpression

MAX_STREAMS = 1_000
"""Threads that a consumer may have for a topic; a number of ten digits would cost that much memory."""

INTERNAL_TOPICS = frozenset({"__consumer_offsets"})


class TopicInterest:
    """A consumer's subscription, checked. internal_topics: those that a wildcard leaves out. Raises
    `DecodeError`."""

    def __init__(self, count: TopicCount, *, internal_topics: Collection[str] = INTERNAL_TOPICS) -> None:
        self.count = count
        self._internal_topics = internal_topics
        streams = count.streams.values() if isinstance(count, StaticTopics) else (count.streams,)
        if (most := max(streams, default=0)) > MAX_STREAMS:
            raise Malformed(f"expected at most {MAX_STREAMS} streams, got {most}", 0, "topic_count")
        self._pattern: RegularExpression | None = None
        if isinstance(count, StaticTopics):
            for topic in count.streams:
                try:
                    Topic.path(topic)
                except EncodeError as error:
                    raise Malformed(error.reason, 0, "topic_count") from None
            return
        try:
            self._pattern = RegularExpression(count.pattern)
        except InvalidPattern as error:
            raise Malformed(f"not a regular expression: {error}", 0, "topic_count") from None

    @classmethod
    def parse(cls, text: str | None) -> TopicInterest:
        """The interest that a `topic_count` expresses. Raises `DecodeError`."""
        return cls(parse_topic_count(text or ""))

    @classmethod
    def valid(cls, text: str | None) -> TopicInterest | None:
        """The same; None for a `topic_count` that cannot be used."""
        try:
            return cls.parse(text)
        except DecodeError:
            return None

    @property
    def is_wildcard(self) -> bool:
        return self._pattern is not None

    def wants(self, topic: str) -> bool:
        """Whether the consumer reads a topic."""
        if isinstance(self.count, StaticTopics):
            return topic in self.count.streams
        assert self._pattern is not None
        return topic not in self._internal_topics and self._pattern.matches(topic) is not self.count.blacklist

    def streams(self, topics: Iterable[str]) -> dict[str, int]:
        """The number of threads for each topic, of those that exist."""
        if isinstance(self.count, StaticTopics):
            return {topic: self.count.streams[topic] for topic in topics if topic in self.count.streams}
        return {topic: self.count.streams for topic in topics if self.wants(topic)}


def partition_order(partition: str) -> tuple[tuple[int, str], ...]:
    """Sorts partitions by number, and "broker-partition" by broker first, so that those of one broker are
    together (`/consumers` page, rebalancing step 4)."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in partition.split("-"))


def plan_ownership(
    consumers: dict[str, dict[str, int]], partitions: dict[str, list[str]]
) -> dict[DraftPartition, str]:
    """Which thread owns which partition: each topic's partitions in ranges to the threads that read it.

    consumers: the streams of each topic that a consumer reads; partitions: of each topic.
    """
    threads: dict[str, list[str]] = {}
    for consumer, streams in consumers.items():
        for topic, count in streams.items():
            threads.setdefault(topic, []).extend(thread_ids(consumer, count))
    plan = {}
    for topic in sorted(threads):
        ordered = sorted(partitions.get(topic, ()), key=partition_order)
        for thread, owned in range_assignment(range(len(ordered)), sorted(set(threads[topic]))).items():
            for index in owned:
                plan[DraftPartition(topic, ordered[index])] = thread
    return plan
