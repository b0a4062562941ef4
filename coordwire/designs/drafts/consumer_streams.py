"""A consumer's streams with bounded queues, and its fetchers by broker: those of ZookeeperConsumerConnector.

    streams = ConsumerStreams(topic_count, consumer_id)        createMessageStreams
    fetchers = ConsumerFetcherManager()
    fetchers.start({partition: offset}); fetchers.leader_found(partition, broker)
    fetchers.fetched(partition, end, streams.stream(partition.topic, thread))
    streams.stream(topic, thread).take()                       ConsumerIterator.next

Source: the description of ZookeeperConsumerConnector, whose queues and streams the drafts keep. Strategy: a
thread has one queue of chunks, and one stream that iterates over them, which all its partitions share; a
wildcard's topics share the queues of its threads. A fetcher fetches from one broker, for all partitions that
it leads. Rules: a chunk is a range of one partition's offsets, so that order holds within a partition, and
only there; a full queue takes no chunk; what is cleared was fetched and not consumed, so its offsets are not
committed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from coordwire.designs.drafts.actions import DraftPartition
from coordwire.dialects.zookeeper import StaticTopics, TopicCount, thread_ids

__all__ = [
    "ConsumerFetcherManager",
    "ConsumerStreams",
    "FetchedChunk",
    "MessageStream",
    "PartitionProgress",
    "StreamingConsumer",
]

QUEUED_CHUNKS = 2
"""queued.max.message.chunks of Kafka 0.8.2."""


@dataclass(frozen=True, slots=True)
class FetchedChunk:
    """Messages of a partition, from `begin` to before `end`."""

    partition: DraftPartition
    begin: int
    end: int


class MessageStream:
    """One thread's stream (KafkaStream) and its queue. queued: at most so many chunks wait in it."""

    def __init__(self, queued: int = QUEUED_CHUNKS) -> None:
        self._queued = queued
        self._chunks: deque[FetchedChunk] = deque()
        self._current: FetchedChunk | None = None
        self._next = 0

    @property
    def has_room(self) -> bool:
        return len(self._chunks) < self._queued

    def put(self, chunk: FetchedChunk) -> bool:
        """Enqueue what was fetched; False if the queue is full, so that the fetcher waits."""
        if not self.has_room:
            return False
        self._chunks.append(chunk)
        return True

    def take(self) -> tuple[DraftPartition, int] | None:
        """The next message, as its partition and offset; None if none waits."""
        while self._current is None or self._next >= self._current.end:
            if not self._chunks:
                self._current = None
                return None
            self._current = self._chunks.popleft()
            self._next = self._current.begin
        self._next += 1
        return self._current.partition, self._next - 1

    def clear(self) -> None:
        """Drop what waits: the queue, and the chunk that is iterated over."""
        self._chunks.clear()
        self._current = None


class ConsumerStreams:
    """The streams of a consumer, by topic and thread (topicThreadIdAndQueues)."""

    def __init__(self, count: TopicCount, consumer_id: str, *, queued: int = QUEUED_CHUNKS) -> None:
        self._streams: dict[tuple[str, str], MessageStream] = {}
        self._shared: dict[str, MessageStream] = {}
        if isinstance(count, StaticTopics):
            for topic, number in count.streams.items():
                for thread in thread_ids(consumer_id, number):
                    self._streams[topic, thread] = MessageStream(queued)
        else:
            self._shared = {
                thread: MessageStream(queued) for thread in thread_ids(consumer_id, count.streams)
            }

    def stream(self, topic: str, thread: str) -> MessageStream | None:
        """The stream of a topic's thread; None if the consumer has no such thread."""
        return self._shared.get(thread) or self._streams.get((topic, thread))

    def all(self) -> list[MessageStream]:
        """Each stream once."""
        return [*self._streams.values(), *self._shared.values()]

    def clear(self) -> None:
        """clearFetcherQueues, before offsets are committed."""
        for stream in self.all():
            stream.clear()


@dataclass(slots=True)
class PartitionProgress:
    """PartitionTopicInfo: how far a partition was fetched, and how far consumed."""

    consumed: int
    fetched: int


@dataclass
class ConsumerFetcherManager:
    """ConsumerFetcherManager: who fetches which partition from where.

    partitions: those to be fetched. without_leader: those of which the leader finder looks for the leader.
    fetchers: the partitions of the fetcher of each broker.
    """

    partitions: dict[DraftPartition, PartitionProgress] = field(default_factory=dict)
    without_leader: set[DraftPartition] = field(default_factory=set)
    fetchers: dict[str, set[DraftPartition]] = field(default_factory=dict)

    def start(self, offsets: Mapping[DraftPartition, int]) -> None:
        """startConnections: the leaders of all these are looked for."""
        self.stop()
        self.partitions = {name: PartitionProgress(offset, offset) for name, offset in offsets.items()}
        self.without_leader = set(offsets)

    def stop(self) -> None:
        """stopConnections: all fetchers and the leader finder end."""
        self.partitions, self.without_leader, self.fetchers = {}, set(), {}

    def leader_found(self, partition: DraftPartition, broker: str) -> None:
        """The leader finder has found a partition's leader: the broker's fetcher fetches it."""
        if partition in self.without_leader:
            self.without_leader.discard(partition)
            self.fetchers.setdefault(broker, set()).add(partition)

    def failed(self, broker: str, partitions: Iterable[DraftPartition] | None = None) -> None:
        """addPartitionsWithError: the broker does not lead these, or cannot be reached. None: all it has. A
        fetcher without partitions ends."""
        fetched = self.fetchers.get(broker, set())
        lost = set(fetched if partitions is None else fetched & set(partitions))
        fetched -= lost
        self.without_leader |= lost
        if not fetched:
            self.fetchers.pop(broker, None)

    def fetched(self, partition: DraftPartition, end: int, stream: MessageStream) -> bool:
        """The broker has messages up to before `end`: they go into the queue, if it has room."""
        progress = self.partitions.get(partition)
        if progress is None or end <= progress.fetched:
            return False
        if not stream.put(FetchedChunk(partition, progress.fetched, end)):
            return False
        progress.fetched = end
        return True

    def consumed(self, partition: DraftPartition, offset: int) -> None:
        """The application has consumed up to before this offset."""
        progress = self.partitions.get(partition)
        if progress is not None:
            progress.consumed = offset


class StreamingConsumer:
    """What consumers with streams have in common. owned: what a consumer owns, each with how far it has
    consumed; threads: which of its threads reads each; streams: what createMessageStreams returns."""

    owned: dict[DraftPartition, int]
    threads: Mapping[DraftPartition, str]
    streams: ConsumerStreams
    fetchers: ConsumerFetcherManager

    def consumed(self, partition: DraftPartition, offset: int) -> None:
        """The application has consumed a partition up to here."""
        if partition in self.owned:
            self.owned[partition] = offset
            self.fetchers.consumed(partition, offset)

    def fetched(self, partition: DraftPartition, end: int) -> bool:
        """A fetcher has a partition's messages up to before `end`: they go into the queue of the thread that
        owns it. False if they don't, for lack of room or of an owner: the fetcher asks again."""
        stream = self.streams.stream(partition.topic, self.threads.get(partition, ""))
        return stream is not None and self.fetchers.fetched(partition, end, stream)

    def take(self, topic: str, thread: str) -> tuple[DraftPartition, int] | None:
        """ConsumerIterator.next: the next message of a thread's stream, as its partition and offset; None if
        none waits. It counts as consumed."""
        stream = self.streams.stream(topic, thread)
        message = None if stream is None else stream.take()
        if message is not None:
            self.consumed(message[0], message[1] + 1)
        return message
