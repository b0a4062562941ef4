"""Clusters of each draft, ready to run: brokers broker-1 and on, topic t, and consumers."""

from __future__ import annotations

from random import Random
from typing import Any

from coordwire.designs.drafts.actions import DraftPartition
from coordwire.designs.drafts.draft_1_broker import FirstDraftBroker
from coordwire.designs.drafts.draft_1_consumer import FirstDraftConsumer, FirstDraftConsumerConfig
from coordwire.designs.drafts.draft_2_broker import DetailedDesignBroker
from coordwire.designs.drafts.draft_2_consumer import DetailedDesignConsumer, DetailedDesignConsumerConfig
from coordwire.designs.drafts.draft_3_broker import NewConsumerBroker
from coordwire.designs.drafts.draft_3_consumer import NewConsumer, NewConsumerConfig
from coordwire.designs.drafts.draft_broker import DraftBroker
from coordwire.designs.drafts.draft_settings import BrokerAddress, BrokerSettings
from coordwire.designs.drafts.overview import OverviewBroker, OverviewConsumer
from coordwire.designs.drafts.zookeeper_consumer import ZooKeeperConsumer, ZooKeeperConsumerConfig
from coordwire.dialects import Dialect
from tests.designs.drafts.cluster import Cluster

DIALECTS = {0: Dialect.DRAFT_1, 1: Dialect.DRAFT_1, 2: Dialect.DRAFT_2, 3: Dialect.DRAFT_3}


class World(Cluster):
    """A cluster of one draft; 0: consumers of ZooKeeper. A latency without a seed is the same in each run.
    overview: draft 2 by its section 2."""

    def __init__(
        self, draft: int, *, brokers: int = 2, partitions: int = 4, consumers: str = "", seed: int = 0,
        latency: tuple[int, int] = (1, 1), broker: dict[str, Any] | None = None, overview: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(seed=seed, latency=latency)
        self.draft = draft
        self.overview = overview
        self.known = {number: BrokerAddress(f"broker-{number}", 9092) for number in range(1, brokers + 1)}
        self.broker_settings = broker or {}
        self.configs: dict[str, Any] = {}
        self.topic("t", {number: [1] for number in range(partitions)})
        for number in self.known:
            self.add_broker(number)
            self.run(100)
        for name in consumers:
            self.join(name)
            self.run(100)

    def add_broker(self, number: int) -> Any:
        extra = dict(self.broker_settings)
        literal, loads_groups = extra.pop("literal", None), extra.pop("loads_groups", None)
        settings = BrokerSettings(broker_id=number, address=self.known[number], **extra)
        machine: Any
        if self.draft == 0:
            machine = DraftBroker(settings)
        elif self.draft == 1:
            machine = FirstDraftBroker(settings)
        elif self.draft == 2:
            machine = OverviewBroker(settings) if self.overview else None
            machine = machine or DetailedDesignBroker(settings, literal=bool(literal))
        else:
            machine = NewConsumerBroker(settings, loads_groups=bool(loads_groups))
        return self.add(f"broker-{number}", machine, DIALECTS[self.draft])

    def join(self, name: str, *, process: str | None = None, **settings: Any) -> Any:
        """Start a consumer."""
        words = {"group_id": "g", "consumer_id": name, "topic_count": '{"t":1}'} | settings
        session_ms = words.pop("zookeeper_session_ms", 6_000)
        machine: Any
        if self.draft == 0:
            machine = ZooKeeperConsumer(ZooKeeperConsumerConfig(**words))
        elif self.draft == 1:
            machine = FirstDraftConsumer(
                FirstDraftConsumerConfig(**words), self.known, random=Random(len(self.history))
            )
        elif self.draft == 2:
            kind = OverviewConsumer if self.overview else DetailedDesignConsumer
            machine = kind(DetailedDesignConsumerConfig(**words), self.known)
        else:
            words = {"group_id": "g", "client_id": name, "topics": ("t",)} | settings
            machine = NewConsumer(NewConsumerConfig(**words), self.known)
        self.configs[name] = machine.config
        return self.add(process or name, machine, DIALECTS[self.draft], session_ms=session_ms)

    def owned(self) -> str:
        """Who owns the partitions, of each topic in order; "-" is nobody, "+" two."""
        result = ""
        for owner in sorted(
            self.owners, key=lambda owner: (owner.topic, int(owner.partition.rpartition("-")[2]))
        ):
            names = self.owners[owner]
            result += "-" if not names else "+" if len(names) > 1 else min(names)
        return result

    @classmethod
    def larger(cls, draft: int, **settings: Any) -> World:
        """Three brokers with ports of their own, and topics of several sizes, leaders and kinds of names."""
        world = cls(draft, brokers=0, partitions=3, **settings)
        world.known = {number: BrokerAddress(f"broker-{number}", 9090 + number) for number in (1, 2, 5)}
        for topic, count in (("Orders.EU", 5), ("u-v", 2), ("x_1", 11)):
            world.topic(topic, {number: [1 + number % 2, 5] for number in range(count)})
        for number in world.known:
            world.add_broker(number)
            world.run(100)
        return world

    def consume_each(self, name: str) -> None:
        """Let a consumer have consumed another number of messages of each partition."""
        machine = self.nodes[name].machine
        for number, one in enumerate(sorted(machine.owned)):
            machine.consumed(DraftPartition(*one), 10 + number)

    def consume(self, name: str, offset: int) -> None:
        machine = self.nodes[name].machine
        for one in list(machine.owned):
            machine.consumed(DraftPartition(*one), offset)

    @property
    def coordinator(self) -> Any:
        (result,) = (
            node.machine for node in self.nodes.values() if getattr(node.machine, "coordinates", False)
        )  # fmt: skip
        return result
