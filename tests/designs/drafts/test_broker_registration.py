"""A broker's registration: an id that another broker has is an error."""

from __future__ import annotations

from coordwire.designs.drafts.draft_2_broker import DetailedDesignBroker
from coordwire.designs.drafts.draft_settings import BrokerAddress, BrokerSettings
from coordwire.designs.zookeeper import Broker
from tests.designs.drafts.cluster import Cluster


def broker(number: int, host: str) -> DetailedDesignBroker:
    return DetailedDesignBroker(BrokerSettings(broker_id=number, address=BrokerAddress(host, 9092)))


def test_a_broker_id_in_use_is_an_error() -> None:
    """The page: "An attempt to register a broker id that is already in use … results in an error"."""
    cluster = Cluster()
    cluster.add("one", broker(1, "one"))
    cluster.run(100)
    cluster.add("two", broker(1, "two"))
    cluster.run(20_000)
    assert [entry.name for entry in cluster.noted("BrokerIdInUse")] == ["two"]
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
