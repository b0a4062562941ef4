"""The settings of the ZooKeeper consumer's streams, and its ids and registrations in the documents' forms."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from coordwire.designs.drafts.actions import AskOffsetManager, DraftPartition
from coordwire.designs.drafts.consumer_streams import (
    ConsumerTimeout,
    Decoders,
    MessageSizeTooLarge,
    StreamMessage,
    StreamSettings,
)
from coordwire.designs.drafts.zookeeper_consumer import (
    ZooKeeperConsumer,
    ZooKeeperConsumerConfig,
    transient_consumer_id,
)
from coordwire.designs.drafts.zookeeper_offsets import OffsetSettings
from coordwire.designs.drafts.zookeeper_operations import CreateNode
from tests.designs.drafts.cluster import Cluster
from tests.designs.drafts.test_zookeeper_consumer import join, owned, world

ZERO = DraftPartition("t", "0")


def consumer(**settings: Any) -> tuple[Cluster, ZooKeeperConsumer]:
    cluster = world()
    machine = join(cluster, "a", **settings)
    cluster.run(100)
    return cluster, machine


@pytest.mark.parametrize("most", [2, 5])
def test_a_queue_holds_as_many_chunks_as_its_setting(most: int) -> None:
    """queuedMaxMessages: a full queue makes the fetcher wait."""
    _, machine = consumer(**({} if most == 2 else {"queued_max_messages": most}))
    assert [machine.fetched(ZERO, end) for end in range(1, most + 2)] == [True] * most + [False]
    assert machine.take("t", "a-0") == (ZERO, 0)
    assert machine.fetched(ZERO, most + 1)


def test_a_stream_waits_no_longer_than_its_time() -> None:
    """consumerTimeoutMs: ConsumerTimeoutException, each time anew; -1 waits for ever."""
    cluster, machine = consumer(consumer_timeout_ms=300, client_id="till-3")
    assert machine.take("t", "a-0") is None
    cluster.run(299)
    assert machine.take("t", "a-0") is None
    cluster.run(1)
    with pytest.raises(ConsumerTimeout, match="300"):
        machine.take("t", "a-0")
    assert machine.take("t", "a-0") is None
    cluster.run(200)
    machine.fetched(ZERO, 1)
    assert machine.take("t", "a-0") == (ZERO, 0)
    assert machine.take("t", "a-0") is None
    cluster.run(200)
    assert machine.take("t", "a-0") is None  # the message has ended the wait before
    cluster, machine = consumer()
    assert machine.take("t", "a-0") is None
    cluster.run(10_000_000)
    assert machine.take("t", "a-0") is None


def test_a_fetch_has_no_more_bytes_than_its_setting() -> None:
    """fetchMessageMaxBytes: whole messages, and an error for one that is larger."""
    _, machine = consumer(fetch_message_max_bytes=100)
    message = (b"k" * 10, b"v" * 35)
    assert machine.fetch(ZERO, [message] * 3) == 2
    assert machine.fetch(ZERO, [message]) == 1
    assert machine.fetch(ZERO, [message]) == 0  # the queue is full
    assert machine.fetchers.partitions[ZERO].fetched == 3
    assert machine.fetch(DraftPartition("t", "9"), [message]) == 0
    _, machine = consumer(fetch_message_max_bytes=100)
    assert machine.fetch(ZERO, [(None, bytes(100))]) == 1
    with pytest.raises(MessageSizeTooLarge, match="offset 1 of t-0, got 1 more"):
        machine.fetch(ZERO, [(b"k", bytes(100))])


def test_decoders_make_what_the_application_gets() -> None:
    """createMessageStreams(topicCountMap, keyDecoder, valueDecoder)."""
    decoders = Decoders(key=lambda data: (data or b"").decode(), value=lambda data: int(data or b"0"))
    cluster = world()
    config = ZooKeeperConsumerConfig(group_id="g", consumer_id="a", topic_count='{"t":1}')
    machine: ZooKeeperConsumer = cluster.add("a", ZooKeeperConsumer(config, decoders=decoders))
    cluster.run(100)
    machine.fetch(ZERO, [(b"one", b"1"), (None, b"2")])
    machine.fetch(ZERO, [(b"three", b"3")])
    messages = [machine.take_message("t", "a-0") for _ in range(4)]
    assert messages == [
        StreamMessage(ZERO, 0, "one", 1), StreamMessage(ZERO, 1, "", 2), StreamMessage(ZERO, 2, "three", 3),
        None,
    ]  # fmt: skip
    assert machine.owned[ZERO] == 3
    machine.fetch(ZERO, [(b"four", b""), (b"", None)])
    messages = [machine.take_message("t", "a-0") for _ in range(2)]
    assert messages == [StreamMessage(ZERO, 3, "four", 0), StreamMessage(ZERO, 4, "", 0)]
    _, machine = consumer()
    machine.fetch(ZERO, [(b"k", None)])
    assert machine.take_message("t", "a-0") == StreamMessage(ZERO, 0, b"k", None)


@pytest.mark.parametrize("client_id", [None, "till-3"])
def test_streams_and_requests_have_the_client_id(client_id: str | None) -> None:
    """clientId; by default the group's id."""
    cluster = world()
    ids: list[str] = []
    ask = cluster._ask_offset_manager

    def seen(node: Any, action: AskOffsetManager) -> None:
        ids.append(action.client_id)
        ask(node, action)

    cluster._ask_offset_manager = seen  # type: ignore[method-assign]
    machine = join(cluster, "a", offsets_storage="kafka", client_id=client_id)
    cluster.run(100)
    assert {*ids, *(stream.client_id for stream in machine.streams.all())} == {client_id or "g"}
    assert ids


@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
@pytest.mark.parametrize("excludes", [True, False])
def test_a_wildcard_has_internal_topics_where_they_are_not_excluded(excludes: bool, strategy: str) -> None:
    """excludeInternalTopics: of what the consumer reads itself, and of what it reads of the others."""
    cluster = world(partitions=1)
    cluster.topic("__consumer_offsets", {0: [1], 1: [1]})
    for name in "ab":
        join(
            cluster, name, "*1*.*", exclude_internal_topics=excludes, rebalance_backoff_ms=100,
            partition_assignment_strategy=strategy,
        )  # fmt: skip
        cluster.run(5_000)
    names = {partition.topic for partition, owners in cluster.owners.items() if owners}
    assert names == ({"t"} if excludes else {"t", "__consumer_offsets"})
    shares = [machine.machine.owned for machine in cluster.nodes.values()]
    assert sum(map(len, shares)) == (1 if excludes else 3)
    assert excludes or all(shares)


def test_a_consumer_has_a_transient_id_of_its_host_and_a_uuid() -> None:
    """hostname:uuid: two starts on one host are two consumers."""
    assert transient_consumer_id("till-3", UUID(int=7)) == "till-3:00000000-0000-0000-0000-000000000007"
    cluster = world()
    names = [transient_consumer_id("till-3", uuid4()) for _ in range(2)]
    for name in names:
        join(cluster, name)
        cluster.run(5_000)
    assert all(cluster.read(f"/consumers/g/ids/{name}") for name in names)
    assert set(owned(cluster).values()) == set(names)


def test_a_consumer_that_has_registered_topics_alone_has_its_share() -> None:
    """/consumers/[group_id]/ids/[consumer_id] -> topic1,...topicN: one stream of each."""
    cluster = world()
    session = cluster.tree.open_session(1 << 60, 0)
    for path in ("/consumers", "/consumers/g", "/consumers/g/ids"):
        cluster.tree.apply(session, CreateNode(path), 0)
    cluster.tree.apply(session, CreateNode("/consumers/g/ids/a", b"other,t", ephemeral=True), 0)
    machine = join(cluster, "b")
    cluster.run(5_000)
    assert not cluster.noted("UnreadableNode")
    assert set(machine.owned) == {DraftPartition("t", "2"), DraftPartition("t", "3")}


def test_streams_and_offsets_have_the_consumers_settings() -> None:
    config = ZooKeeperConsumerConfig(
        group_id="g", consumer_id="g_a", topic_count="{}", queued_max_messages=7, consumer_timeout_ms=8,
        fetch_message_max_bytes=9, client_id="c", offsets_storage="kafka", dual_commit_enabled=True,
        offsets_commit_max_retries=3, kafka_version="0.8.2.2",
    )  # fmt: skip
    assert config.stream_settings == StreamSettings(
        queued_max_messages=7, consumer_timeout_ms=8, fetch_message_max_bytes=9, client_id="c"
    )
    assert config.offset_settings == OffsetSettings(
        offsets_storage="kafka", dual_commit_enabled=True, offsets_commit_max_retries=3, literal=True
    )
