"""`Kafka`, as tests have it: records, offsets, groups that are waited for, the exchange, the timeline."""

from __future__ import annotations

import asyncio
import re
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coordwire.broker import BrokerConfig
from coordwire.broker.harness import GroupSnapshot, Kafka, StoredRecord
from coordwire.broker.harness.cluster_view import read_records
from coordwire.broker.injection import FaultRule
from coordwire.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    MetadataRequest,
    ProduceRequest,
    SyncGroupResponse,
)
from tests.broker.blocking_peer import BlockingPeer
from tests.broker.core import Core
from tests.broker.transaction_client import TransactionClient

BOTH = frozenset({("orders", 0), ("orders", 1)})


def test_records_that_were_written() -> None:
    with Kafka(topics={"orders": 2}) as kafka:
        written = kafka.produce("orders", "one", b"two", None, key="k", headers={"h": "v"}, timestamp=5)
        kafka.produce("orders", "three", partition=1)
        records = kafka.records("orders")
        assert records[:3] == written
        assert records[0] == StoredRecord("orders", 0, 0, 5, b"k", b"one", (("h", b"v"),))
        assert [(record.partition, record.offset, record.value) for record in records] == [
            (0, 0, b"one"),
            (0, 1, b"two"),
            (0, 2, None),
            (1, 0, b"three"),
        ]
        assert kafka.produce("orders") == []


def test_what_is_not_there() -> None:
    with Kafka(topics=["orders"], auto_create_topics=False) as kafka:
        assert kafka.records("order") == []
        missing = "expected a topic of the broker, got 'order'; there are: orders"
        with pytest.raises(LookupError, match=missing):
            kafka.produce("order", "one")
        with pytest.raises(LookupError, match="expected a partition of orders below 1, got 1"):
            kafka.produce("orders", "one", partition=1)
        with pytest.raises(TypeError, match="expected bytes, text or None, got int"):
            kafka.produce("orders", "one", 2)  # type: ignore[arg-type]
        assert kafka.records("orders") == []
        with pytest.raises(ValueError, match="expected a new topic, got 'orders'"):
            kafka.create_topic("orders")
        assert kafka.group("g").state == GroupSnapshot("g")
    with pytest.raises(
        TypeError, match=r"expected a setting of Broker or BrokerConfig, got 'node'; .* nodes\?"
    ):
        Kafka(node=3)


def test_a_topic_that_a_client_would_have_made() -> None:
    with Kafka(num_partitions=3) as kafka:
        assert kafka.records("orders") == []
        assert "orders" not in kafka.broker.broker.cluster.topics
        kafka.produce("orders", "a", partition=2)
        assert [(record.partition, record.value) for record in kafka.records("orders")] == [(2, b"a")]
        with pytest.raises(ValueError, match="INVALID_TOPIC_EXCEPTION: Topic name is invalid: 'a b'"):
            kafka.produce("a b", "a")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"retention": 5}, "expected a setting of a topic, got 'retention'"),
        ({"cleanup_polcy": "compact"}, "got 'cleanup_polcy'; did you mean cleanup_policy?"),
        ({"retention_ms": "abc"}, "INVALID_CONFIG: Invalid value abc for configuration retention.ms"),
        ({"retention_ms": None}, "INVALID_CONFIG: Invalid value None for configuration retention.ms"),
        (
            {"cleanup_policy": "compakt"},
            "INVALID_CONFIG: Invalid value compakt for configuration cleanup.policy",
        ),
        ({"min_insync_replicas": 0}, "INVALID_CONFIG: Invalid value 0 for configuration min.insync.replicas"),
        ({"preallocate": 1}, "INVALID_CONFIG: Invalid value 1 for configuration preallocate"),
        ({"replication_factor": 2}, "INVALID_REPLICATION_FACTOR"),
        ({"partitions": 0}, "INVALID_PARTITIONS"),
        ({"name": "a/b"}, "INVALID_TOPIC_EXCEPTION"),
        ({"name": "t.t"}, "INVALID_TOPIC_EXCEPTION: Topic 't.t' collides with existing topic: t_t"),
    ],
)
def test_what_kafka_refuses_of_a_topic(settings: dict[str, Any], reason: str) -> None:
    with Kafka(topics=["t_t"]) as kafka:
        with pytest.raises(ValueError, match=re.escape(reason)):
            kafka.create_topic(**{"name": "t"} | settings)
        assert list(kafka.broker.broker.cluster.topics) == ["t_t"]
        kafka.create_topic("t", preallocate=True, cleanup_policy="compact,delete", retention_ms=5)
        own = kafka.broker.broker.cluster.topics["t"].settings.own
        assert own == {"preallocate": "true", "cleanup.policy": "compact,delete", "retention.ms": "5"}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"topics": ["a b"]}, "Topic name is invalid"),
        ({"topics": {"t": 0}}, "expected at least 1 partition of t, got 0"),
        ({"topic_defaults": {"cleanup.polcy": "delete"}}, "Unknown topic config name: cleanup.polcy"),
        ({"topic_defaults": {"retention.ms": "x"}}, "Invalid value x for configuration retention.ms"),
    ],
)
def test_what_no_broker_starts_with(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Kafka(**settings)


def test_records_that_kafka_refuses() -> None:
    with Kafka() as kafka:
        kafka.create_topic("small", max_message_bytes=100)
        kafka.create_topic("keyed", cleanup_policy="compact")
        with pytest.raises(ValueError, match="MESSAGE_TOO_LARGE: the record batch has"):
            kafka.produce("small", "x" * 200)
        with pytest.raises(ValueError, match=r"INVALID_RECORD: one or more .*: records\[0\]: .* needs a key"):
            kafka.produce("keyed", "x")


def test_a_config_of_its_own() -> None:
    config = BrokerConfig.kafka(num_partitions=3)
    with Kafka(config=config) as kafka:
        assert kafka.broker.broker.config == config
    with Kafka(config=config, num_partitions=4) as kafka:
        assert kafka.broker.broker.config == replace(config, num_partitions=4)
    with pytest.raises(TypeError, match="expected config or kafka_defaults, got both"):
        Kafka(config=config, kafka_defaults=True)


def test_a_broker_that_begins_again() -> None:
    with Kafka(topics={"orders": 2}, nodes=2) as kafka, BlockingPeer(kafka.bootstrap, "a") as peer:
        bootstrap, cluster_id = kafka.bootstrap, kafka.broker.broker.cluster.cluster_id
        kafka.produce("orders", "one")
        kafka.create_topic("later")
        joined = peer.join("g", "orders", 2)
        assert peer.commit(joined, "orders", 7) == 0
        kafka.faults.add(FaultRule("Fetch", lose=True))
        kafka.moves.fail_log_dir(1)
        kafka.moves.stop_node(2)
        for _ in range(2):
            kafka.reset()
            assert kafka.bootstrap == bootstrap
            assert kafka.broker.broker.cluster.cluster_id == cluster_id
            assert list(kafka.broker.broker.cluster.topics) == ["orders"]
            assert kafka.records("orders") == []
            assert kafka.exchange.all(MetadataRequest) == []
            assert kafka.faults.all == []
            assert kafka.committed("g") == {}
            assert kafka.group("g").state == GroupSnapshot("g")
            with pytest.raises(LookupError, match="expected a node that is down, got 2"):
                kafka.moves.start_node(2)
            with BlockingPeer(kafka.bootstrap.split(",")[1]) as other:
                brokers = other.ask(MetadataRequest(topics=None), 12).brokers
            assert [f"{node.host}:{node.port}" for node in brokers] == bootstrap.split(",")
            kafka.produce("orders", "two")
            assert [record.offset for record in kafka.records("orders")] == [0]


def test_a_client_goes_on_after_a_new_beginning() -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")

    with Kafka(topics=["orders"]) as kafka:
        producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap})
        for value in (b"one", b"two"):
            producer.produce("orders", value)
            assert producer.flush(10) == 0
            assert [record.value for record in kafka.records("orders")] == [value]
            kafka.reset()


def test_logs_on_disk_do_not_begin_again(tmp_path: Path) -> None:
    with Kafka(topics=["orders"], data=tmp_path) as kafka:
        kafka.produce("orders", "one")
        with pytest.raises(ValueError, match="expected a broker with its logs in memory"):
            kafka.reset()
        assert len(kafka.records("orders")) == 1


def test_what_a_coroutine_need_not_await() -> None:
    """What the broker does is done when the call returns; `await` is allowed."""

    async def main(kafka: Kafka) -> None:
        kafka.moves.stop_node(2)
        assert len(kafka.bootstrap.split(",")) == 1
        await kafka.moves.start_node(2)
        assert len(kafka.bootstrap.split(",")) == 2
        with pytest.raises(LookupError, match="expected a node that is up, got 3"):
            kafka.moves.stop_node(3)
        kafka.create_topic("orders")
        kafka.produce("orders", "one")
        kafka.reset()
        assert kafka.records("orders") == []

    with Kafka(nodes=2) as kafka:
        asyncio.run(main(kafka))
        kafka.check()


def test_topics_with_settings() -> None:
    with Kafka(nodes=3, default_replication_factor=3) as kafka:
        kafka.create_topic("events", 2, cleanup_policy="compact", max_message_bytes=100)
        topic = kafka.broker.broker.cluster.topics["events"]
        assert topic.settings.own == {"cleanup.policy": "compact", "max.message.bytes": "100"}
        assert [len(partition.replicas) for partition in topic.partitions] == [3, 3]


def test_a_group_is_waited_for_by_a_thread() -> None:
    with Kafka(topics={"orders": 2}) as kafka, BlockingPeer(kafka.bootstrap, "a") as peer:
        joined: list[JoinGroupRequest] = []
        thread = threading.Thread(target=lambda: joined.append(peer.join("g", "orders", 2)))
        thread.start()
        group = kafka.group("g").stable(members=1).value
        thread.join()
        assert (group.state, group.kind, group.assignor) == ("Stable", "classic", "range")
        (member,) = group.members
        assert (member.client_id, member.id, member.partitions) == ("a", joined[0].member_id, BOTH)
        assert kafka.group("g").state == group
        assert peer.commit(joined[0], "orders", 7) == 0
        assert kafka.committed("g") == {("orders", 0): 7}
        with pytest.raises(
            TimeoutError,
            match=r"waited 0.01 s for the group g to be stable with 2 members; the group is Stable, with"
            r" members \(partitions\): a 2",
        ):
            kafka.group("g").stable(members=2, timeout=0.01)
        with pytest.raises(ZeroDivisionError):
            kafka.group("g").wait(lambda group: 1 / 0, "nothing")


def test_a_group_is_waited_for_by_a_coroutine() -> None:
    async def main() -> None:
        with Kafka(topics={"orders": 2}) as kafka, BlockingPeer(kafka.bootstrap, "a") as peer:
            asyncio.get_running_loop().run_in_executor(None, peer.join, "g", "orders", 2)
            group = await kafka.group("g").stable(members=1)
            assert group.members[0].partitions == BOTH
            kafka.check()
            waiting = kafka.group("g").empty()
            with pytest.raises(AssertionError, match="never awaited: <the group g to have no members"):
                kafka.check()
            with pytest.raises(TimeoutError, match="no members; the group is Stable"):
                await kafka.group("g").empty(timeout=0.01)
            del waiting

    asyncio.run(main())


def test_what_was_said() -> None:
    with Kafka(topics={"orders": 2}) as kafka:
        for name in ("a", "b"):
            with BlockingPeer(kafka.bootstrap, name) as peer:
                peer.ask(MetadataRequest(topics=None), 12)
                member = peer.join(f"group-{name}", "orders", 2)
                assert [peer.beat(member), peer.beat(member, 9)] == [0, 22]
        join = kafka.exchange.one(JoinGroupRequest, client_id="a")
        assert (join.group_id, join.protocols[0].name) == ("group-a", "range")
        assert kafka.exchange.one(SyncGroupResponse, client_id="b").error_code == 0
        assert len(kafka.exchange.all(HeartbeatRequest, generation_id=9)) == 2
        assert len(kafka.exchange.all(HeartbeatResponse, when=lambda said: said.error_code)) == 2
        assert kafka.exchange.all(ProduceRequest) == []
        with pytest.raises(
            AssertionError, match=r"^expected 1 ProduceRequest, got 0; there were: 1 Metadata"
        ):
            kafka.exchange.one(ProduceRequest, client_id="a")
        with pytest.raises(AssertionError, match=r"^expected 1 JoinGroupRequest, got 2; there were: .*of b"):
            kafka.exchange.one(JoinGroupRequest)
        entry = next(kafka.exchange.entries())
        assert (entry.api_name, entry.client_id, entry.api_version) == ("Metadata", "a", 12)
        assert entry.connection is not None
        assert entry.connection.broker.port == int(kafka.bootstrap.rpartition(":")[2])


def test_traffic_is_bounded() -> None:
    with Kafka() as kafka, BlockingPeer(kafka.bootstrap) as peer:
        kafka.traffic._most = 100
        for _ in range(5):
            peer.ask(MetadataRequest(topics=None), 12)
        assert kafka.traffic.dropped > 0
        assert len(list(kafka.traffic.entries())) < 5
        with pytest.raises(AssertionError, match="bytes were not kept"):
            kafka.exchange.one(ProduceRequest)


def test_the_timeline_and_a_capture(tmp_path: Path) -> None:
    from coordwire.capture import Capture

    with Kafka(topics={"orders": 2}) as kafka, BlockingPeer(kafka.bootstrap, "a") as peer:
        member = peer.join("g", "orders", 2)
        peer.commit(member, "orders", 7)
        kinds = [type(event).__name__ for event in kafka.timeline()]
        assert {"MemberJoined", "RebalanceEnded", "OffsetCommitted"} <= set(kinds)
        kafka.write_pcap(tmp_path / "g.pcap")
    with (tmp_path / "g.pcap").open("rb") as stream:
        names = [entry.api_name for entry in Capture(stream, "g").entries()]  # type: ignore[union-attr]
    assert names == [name for name in ("JoinGroup", "SyncGroup", "OffsetCommit") for _ in range(2)]


def test_records_of_transactions() -> None:
    """The committed ones are those that a consumer of committed records sees."""
    core = Core(topics={"orders": 1}, offsets_partitions=1, transactions_partitions=1)
    first, second = TransactionClient(core), TransactionClient(core, "u")
    assert first.init() == second.init() == 0
    for number in range(4):
        assert first.produce(b"first %d" % number) == second.produce(b"second %d" % number) == 0
        assert first.end(number % 2 == 0) == second.end(number < 1) == 0
    assert first.produce(b"open") == 0
    committed = [record.value for record in read_records(core.cluster, "orders", committed=True)]
    assert committed == [b"first 0", b"second 0", b"first 2"]
    assert len(read_records(core.cluster, "orders", committed=False)) == 9
