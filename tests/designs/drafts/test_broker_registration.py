"""A broker's registration: an id that another broker has is an error."""

from __future__ import annotations

from typing import Any

from coordwire.designs.drafts.draft_2_broker import DetailedDesignBroker
from coordwire.designs.drafts.draft_settings import BrokerAddress, BrokerSettings
from coordwire.dialects.zookeeper import Broker, ClusterId, PartitionState, Topic
from tests.designs.drafts.cluster import Cluster


def broker(number: int, host: str, port: int = 9092, **settings: Any) -> DetailedDesignBroker:
    return DetailedDesignBroker(
        BrokerSettings(broker_id=number, address=BrokerAddress(host, port), **settings)
    )


def test_a_broker_id_in_use_is_an_error() -> None:
    """The page: "An attempt to register a broker id that is already in use … results in an error"."""
    cluster = Cluster()
    cluster.add("one", broker(1, "one"))
    cluster.run(100)
    cluster.add("two", broker(1, "two"))
    cluster.add("beside", broker(1, "one", 9093))
    cluster.run(20_000)
    assert [entry.name for entry in cluster.noted("BrokerIdInUse")] == ["two", "beside"]
    assert Broker.parse(cluster.read("/brokers/ids/1") or b"").host == "one"
    cluster.crash("one")
    cluster.run(20_000)
    assert [entry.name for entry in cluster.noted("Elected")] == ["one"]  # the other has ended


def test_a_broker_that_restarts_waits_for_its_old_session() -> None:
    cluster = Cluster()
    cluster.add("one", broker(1, "one"))
    cluster.run(100)
    cluster.crash("one")
    cluster.add("one", broker(1, "one"))
    cluster.run(20_000)
    assert cluster.noted("BrokerIdInUse") == []
    assert Broker.parse(cluster.read("/brokers/ids/1") or b"").host == "one"
    assert len(cluster.noted("Elected")) == 2


def test_the_first_broker_gives_the_cluster_its_id() -> None:
    cluster = Cluster()
    ids = ["a" * 22, "b" * 22]
    for number, name in enumerate(("one", "two"), 1):
        cluster.add(name, broker(number, name, new_cluster_id=ids[number - 1]))
    cluster.run(1_000)
    registered_id = ClusterId.parse(cluster.read("/cluster/id") or b"").id
    assert registered_id in ids
    assert {node.machine.cluster_id for node in cluster.nodes.values()} == {registered_id}
    cluster.crash("one")
    cluster.add("one", broker(1, "one", new_cluster_id="c" * 22))
    cluster.run(20_000)
    assert cluster.nodes["one"].machine.cluster_id == registered_id


def test_brokers_register_the_topics_that_they_have() -> None:
    """At their start, and when a topic is created; the states of partitions go with the broker."""
    cluster = Cluster()
    cluster.add("one", broker(1, "one", topics={"orders": 2}))
    cluster.add("two", broker(2, "two"))
    cluster.run(1_000)
    cluster.nodes["two"].machine.create_topic("payments", 1)
    cluster.drain("two")
    cluster.run(1_000)
    assert Topic.parse(cluster.read("/brokers/topics/orders") or b"").partitions == {0: [1], 1: [1]}
    state = PartitionState.parse(cluster.read("/brokers/topics/payments/partitions/0/state") or b"")
    assert (state.leader, state.isr) == (2, [2])
    cluster.crash("two")
    cluster.run(20_000)
    assert cluster.read("/brokers/topics/payments/partitions/0/state") is None
    assert cluster.read("/brokers/topics/payments") is not None
    cluster.add("two", broker(2, "two", topics={"payments": 1}))
    cluster.run(20_000)
    assert cluster.read("/brokers/topics/payments/partitions/0/state") is not None


def test_a_broker_that_moves_has_its_id_at_another_address() -> None:
    """The logical id stays; other brokers, and so consumers, learn where it is now."""
    cluster = Cluster()
    cluster.add("one", broker(1, "one"))
    cluster.add("two", broker(2, "two"))
    cluster.run(1_000)
    cluster.crash("one")
    cluster.run(20_000)
    cluster.add("moved", broker(1, "moved", 9094))
    cluster.run(1_000)
    assert cluster.noted("BrokerIdInUse") == []
    brokers = cluster.nodes["two"].machine.brokers
    assert brokers == {1: BrokerAddress("moved", 9094), 2: BrokerAddress("two", 9092)}
