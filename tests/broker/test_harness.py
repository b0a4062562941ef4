"""`Kafka`, as tests have it: records, offsets, groups that are waited for, the exchange, the timeline."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from coordwire.broker.harness import GroupSnapshot, Kafka, StoredRecord
from coordwire.broker.harness.cluster_view import read_records
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
        found = kafka.records("orders")
        assert found[:3] == written
        assert found[0] == StoredRecord("orders", 0, 0, 5, b"k", b"one", (("h", b"v"),))
        assert [(one.partition, one.offset, one.value) for one in found] == [
            (0, 0, b"one"),
            (0, 1, b"two"),
            (0, 2, None),
            (1, 0, b"three"),
        ]
        assert kafka.produce("orders") == []


def test_what_is_not_there() -> None:
    with Kafka(topics=["orders"]) as kafka:
        with pytest.raises(KeyError, match="expected a topic of the broker, got 'order'; there are: orders"):
            kafka.records("order")
        with pytest.raises(KeyError, match="expected a partition of orders below 1, got 1"):
            kafka.produce("orders", "one", partition=1)
        with pytest.raises(ValueError, match="expected a new topic, got 'orders'"):
            kafka.create_topic("orders")
        assert kafka.group("g").state == GroupSnapshot("g")
    with pytest.raises(TypeError, match="node"):
        Kafka(node=3)


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
