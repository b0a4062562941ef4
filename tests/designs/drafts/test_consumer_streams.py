"""Streams, queues and fetchers of ZookeeperConsumerConnector, by the description's rules."""

from __future__ import annotations

from coordwire.designs.drafts.actions import DraftPartition
from coordwire.designs.drafts.consumer_streams import (
    ConsumerFetcherManager,
    ConsumerStreams,
    FetchedChunk,
    MessageStream,
    PartitionProgress,
)
from coordwire.dialects.zookeeper import StaticTopics, WildcardTopics

ONE, TWO = DraftPartition("t", "0"), DraftPartition("t", "1")


def test_a_thread_has_a_queue_for_each_topic_of_a_static_subscription() -> None:
    """The description's C1: topic1 with 2 threads and topic2 with 3 have five queues."""
    streams = ConsumerStreams(StaticTopics({"topic1": 2, "topic2": 3}), "C1")
    assert len({id(one) for one in streams.all()}) == 5
    assert streams.stream("topic1", "C1-0") is not streams.stream("topic2", "C1-0")
    assert streams.stream("topic1", "C1-2") is None
    many = ConsumerStreams(StaticTopics({"topic1": 1, "Topic.2": 7, "topic3": 2}), "C1")
    assert len({id(one) for one in many.all()}) == 10
    assert many.stream("Topic.2", "C1-6") is not None


def test_the_topics_of_a_wildcard_share_the_queues_of_its_threads() -> None:
    streams = ConsumerStreams(WildcardTopics("t.*", 2), "c")
    assert len(streams.all()) == 2
    assert streams.stream("ta", "c-1") is streams.stream("tb", "c-1")
    assert streams.stream("ta", "c-0") is not streams.stream("ta", "c-1")
    assert len({id(one) for one in ConsumerStreams(WildcardTopics("t.*", 7), "c").all()}) == 7


def test_a_stream_keeps_the_order_of_each_partition() -> None:
    stream = MessageStream(queued=2)
    assert stream.put(FetchedChunk(ONE, 5, 7))
    assert stream.put(FetchedChunk(TWO, 0, 1))
    assert not stream.put(FetchedChunk(ONE, 7, 9))  # the queue is full: the fetcher waits
    assert [stream.take() for _ in range(4)] == [(ONE, 5), (ONE, 6), (TWO, 0), None]
    assert stream.put(FetchedChunk(TWO, 1, 2))
    assert stream.put(FetchedChunk(ONE, 7, 8))
    assert [stream.take() for _ in range(2)] == [(TWO, 1), (ONE, 7)]  # as they came


def test_what_is_cleared_was_not_consumed() -> None:
    stream = MessageStream()
    stream.put(FetchedChunk(ONE, 0, 3))
    assert stream.take() == (ONE, 0)
    stream.put(FetchedChunk(TWO, 0, 3))
    stream.clear()
    assert stream.take() is None
    assert stream.has_room


def test_one_fetcher_for_each_broker_and_a_set_without_leaders() -> None:
    fetchers = ConsumerFetcherManager()
    fetchers.start({ONE: 4, TWO: 0})
    assert fetchers.without_leader == {ONE, TWO}
    fetchers.leader_found(ONE, "b1")
    fetchers.leader_found(TWO, "b1")
    assert fetchers.fetchers == {"b1": {ONE, TWO}}
    fetchers.failed("b1", [TWO])
    assert (fetchers.fetchers, fetchers.without_leader) == ({"b1": {ONE}}, {TWO})
    fetchers.leader_found(TWO, "b2")
    fetchers.failed("b1")
    assert (fetchers.fetchers, fetchers.without_leader) == ({"b2": {TWO}}, {ONE})
    fetchers.leader_found(DraftPartition("t", "9"), "b2")  # nobody looks for it
    assert fetchers.fetchers == {"b2": {TWO}}
    fetchers.failed("b2")
    assert (fetchers.fetchers, fetchers.without_leader) == ({}, {ONE, TWO})
    fetchers.leader_found(ONE, "b1")
    fetchers.start({TWO: 3})  # as if it had just been made
    assert (fetchers.fetchers, fetchers.without_leader) == ({}, {TWO})
    assert fetchers.partitions == {TWO: PartitionProgress(3, 3)}
    fetchers.stop()
    assert (fetchers.partitions, fetchers.without_leader, fetchers.fetchers) == ({}, set(), {})


def test_a_full_queue_leaves_messages_at_the_broker() -> None:
    fetchers, stream = ConsumerFetcherManager(), MessageStream(queued=1)
    fetchers.start({ONE: 0})
    assert fetchers.fetched(ONE, 3, stream)
    assert not fetchers.fetched(ONE, 5, stream)
    assert fetchers.partitions[ONE] == PartitionProgress(0, 3)
    while stream.take():
        pass
    fetchers.consumed(ONE, 3)
    assert fetchers.fetched(ONE, 5, stream)
    assert [stream.take(), stream.take(), stream.take()] == [(ONE, 3), (ONE, 4), None]
    assert fetchers.partitions[ONE] == PartitionProgress(3, 5)
    assert not fetchers.fetched(TWO, 5, stream)  # not to be fetched
    fetchers, stream = ConsumerFetcherManager(), MessageStream(queued=2)
    fetchers.start({ONE: 0})
    assert fetchers.fetched(ONE, 2, stream)
    assert fetchers.fetched(ONE, 3, stream)  # goes on where it was, though nothing is consumed yet
    assert [stream.take() for _ in range(4)] == [(ONE, 0), (ONE, 1), (ONE, 2), None]
