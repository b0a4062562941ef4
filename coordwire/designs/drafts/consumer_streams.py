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
committed. A chunk may have its messages' keys and values; a consumer's decoders see them when they are taken,
so that a message that cannot be decoded counts as taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from coordwire.designs.drafts.actions import DraftPartition
from coordwire.dialects.zookeeper import StaticTopics, TopicCount, thread_ids
from coordwire.errors import CoordwireError

Decoder: TypeAlias = Callable[[bytes | None], Any]
"""Makes a value of a message's bytes; None for no bytes."""


def _as_they_are(data: bytes | None) -> bytes | None:
    return data


class Decoders(NamedTuple):
    """keyDecoder and valueDecoder of createMessageStreams."""

    key: Decoder = _as_they_are
    value: Decoder = _as_they_are


DEFAULT_DECODERS = Decoders()
"""Kafka's DefaultDecoder: the bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """Settings of a consumer's streams and fetchers, with the defaults of Kafka 0.8.2.

    queued_max_messages: how many chunks a queue holds. consumer_timeout_ms: how long a stream waits for a
    message; -1 for ever. fetch_message_max_bytes: the most that one fetch of a partition has. client_id: in
    requests, and of streams.
    """

    queued_max_messages: int = 2
    consumer_timeout_ms: int = -1
    fetch_message_max_bytes: int = 1 << 20
    client_id: str = ""


_DEFAULT_SETTINGS = StreamSettings()


class ConsumerTimeout(CoordwireError):
    """ConsumerTimeoutException: no message came to a stream within consumer.timeout.ms."""


class MessageSizeTooLarge(CoordwireError):
    """MessageSizeTooLargeException: a message is larger than fetch.message.max.bytes."""


class StreamMessage(NamedTuple):
    """A message as an application gets it (MessageAndMetadata). key, value: as decoded."""

    partition: DraftPartition
    offset: int
    key: Any
    value: Any


@dataclass(frozen=True, slots=True)
class FetchedChunk:
    """Messages of a partition, from `begin` to before `end`; with their keys and values, or with none."""

    partition: DraftPartition
    begin: int
    end: int
    messages: tuple[tuple[bytes | None, bytes | None], ...] = ()


class MessageStream:
    """One thread's stream (KafkaStream) and its queue. queued: at most so many chunks wait in it.
    client_id: whose stream it is. waiting_since: when its reader began to wait for a message."""

    def __init__(self, queued: int = _DEFAULT_SETTINGS.queued_max_messages, client_id: str = "") -> None:
        self.client_id = client_id
        self.waiting_since: int | None = None
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

    def last_taken(self) -> tuple[bytes | None, bytes | None]:
        """The key and value of the message that was taken last."""
        chunk = self._current
        return (
            (None, None)
            if chunk is None or not chunk.messages
            else chunk.messages[self._next - 1 - chunk.begin]
        )

    def clear(self) -> None:
        """Drop what waits: the queue, and the chunk that is iterated over."""
        self._chunks.clear()
        self._current = None


class ConsumerStreams:
    """The streams of a consumer, by topic and thread (topicThreadIdAndQueues)."""

    def __init__(
        self, count: TopicCount, consumer_id: str, *, settings: StreamSettings = _DEFAULT_SETTINGS
    ) -> None:
        self.settings = settings
        self._streams: dict[tuple[str, str], MessageStream] = {}
        self._shared: dict[str, MessageStream] = {}
        if isinstance(count, StaticTopics):
            for topic, number in count.streams.items():
                for thread in thread_ids(consumer_id, number):
                    self._streams[topic, thread] = self._new()
        else:
            self._shared = {thread: self._new() for thread in thread_ids(consumer_id, count.streams)}

    def _new(self) -> MessageStream:
        return MessageStream(self.settings.queued_max_messages, self.settings.client_id)

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

    def fetched(
        self,
        partition: DraftPartition,
        end: int,
        stream: MessageStream,
        messages: tuple[tuple[bytes | None, bytes | None], ...] = (),
    ) -> bool:
        """The broker has messages up to before `end`: they go into the queue, if it has room."""
        progress = self.partitions.get(partition)
        if progress is None or end <= progress.fetched:
            return False
        if not stream.put(FetchedChunk(partition, progress.fetched, end, messages)):
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
    consumed; threads: which of its threads reads each; streams: what createMessageStreams returns; now: the
    time, in milliseconds."""

    owned: dict[DraftPartition, int]
    threads: Mapping[DraftPartition, str]
    streams: ConsumerStreams
    fetchers: ConsumerFetcherManager
    now: int
    decoders: Decoders = DEFAULT_DECODERS

    def consumed(self, partition: DraftPartition, offset: int) -> None:
        """The application has consumed a partition up to here."""
        if partition in self.owned:
            self.owned[partition] = offset
            self.fetchers.consumed(partition, offset)

    def _stream_of(self, partition: DraftPartition) -> MessageStream | None:
        return self.streams.stream(partition.topic, self.threads.get(partition, ""))

    def fetched(self, partition: DraftPartition, end: int) -> bool:
        """A fetcher has a partition's messages up to before `end`: they go into the queue of the thread that
        owns it. False if they don't, for lack of room or of an owner: the fetcher asks again."""
        stream = self._stream_of(partition)
        return stream is not None and self.fetchers.fetched(partition, end, stream)

    def fetch(self, partition: DraftPartition, messages: Sequence[tuple[bytes | None, bytes | None]]) -> int:
        """A broker has these messages, keys and values, from where the fetcher is: as many as
        fetch.message.max.bytes allows go into the queue. Gives how many did. Raises `MessageSizeTooLarge`
        where not even the first is allowed."""
        stream, progress = self._stream_of(partition), self.fetchers.partitions.get(partition)
        if stream is None or progress is None or not messages:
            return 0
        room, count = self.streams.settings.fetch_message_max_bytes, 0
        for key, value in messages:
            room -= len(key or b"") + len(value or b"")
            if room < 0:
                break
            count += 1
        if not count:
            raise MessageSizeTooLarge(
                f"expected at most {self.streams.settings.fetch_message_max_bytes} bytes at offset"
                f" {progress.fetched} of {partition.topic}-{partition.partition}, got {-room} more"
            )
        end = progress.fetched + count
        return count if self.fetchers.fetched(partition, end, stream, tuple(messages[:count])) else 0

    def take(self, topic: str, thread: str) -> tuple[DraftPartition, int] | None:
        """ConsumerIterator.next: the next message of a thread's stream, as its partition and offset; None if
        none waits. It counts as consumed. Raises `ConsumerTimeout` if none has come for consumer.timeout.ms
        since a call that found none."""
        stream = self.streams.stream(topic, thread)
        message = None if stream is None else stream.take()
        if message is not None:
            self.consumed(message[0], message[1] + 1)
        if stream is not None:
            self._watch_wait(stream, has_message=message is not None)
        return message

    def take_message(self, topic: str, thread: str) -> StreamMessage | None:
        """The same with the message's key and value, as the decoders make them."""
        place = self.take(topic, thread)
        stream = self.streams.stream(topic, thread)
        if place is None or stream is None:
            return None
        key, value = stream.last_taken()
        return StreamMessage(*place, self.decoders.key(key), self.decoders.value(value))

    def _watch_wait(self, stream: MessageStream, *, has_message: bool) -> None:
        timeout_ms = self.streams.settings.consumer_timeout_ms
        if has_message:
            stream.waiting_since = None
        elif stream.waiting_since is None:
            stream.waiting_since = self.now
        if stream.waiting_since is not None and 0 <= timeout_ms <= self.now - stream.waiting_since:
            stream.waiting_since = None
            raise ConsumerTimeout(f"no message within {timeout_ms} ms")
