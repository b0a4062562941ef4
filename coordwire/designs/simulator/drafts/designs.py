"""Each design with its nodes, all named as in the other simulations: zookeeper, coordinator-N, consumer-N."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from coordwire.designs.drafts.actions import Noted
from coordwire.designs.drafts.draft_1_broker import FirstDraftBroker
from coordwire.designs.drafts.draft_1_consumer import FirstDraftConsumer, FirstDraftConsumerConfig
from coordwire.designs.drafts.draft_2_broker import DetailedDesignBroker
from coordwire.designs.drafts.draft_2_consumer import DetailedDesignConsumer, DetailedDesignConsumerConfig
from coordwire.designs.drafts.draft_3_broker import NewConsumerBroker
from coordwire.designs.drafts.draft_3_consumer import NewConsumer, NewConsumerConfig
from coordwire.designs.drafts.draft_broker import DraftBroker
from coordwire.designs.drafts.draft_settings import BrokerAddress, BrokerSettings
from coordwire.designs.drafts.machine import Machine
from coordwire.designs.drafts.overview import OverviewBroker, OverviewConsumer
from coordwire.designs.drafts.zookeeper_consumer import ZooKeeperConsumer, ZooKeeperConsumerConfig
from coordwire.designs.simulator.drafts.machine_process import MachineProcess, ProcessorPool
from coordwire.designs.simulator.drafts.zookeeper_node import ZOOKEEPER_PORT, ZooKeeperProcess
from coordwire.designs.simulator.network import SimulatedNode
from coordwire.designs.simulator.world import World
from coordwire.dialects import Dialect
from coordwire.dialects.zookeeper import StaticTopics

DRAFT_DESIGNS = {
    "zookeeper": Dialect.DRAFT_1,  # its brokers and consumers speak to ZooKeeper alone
    "draft-1": Dialect.DRAFT_1,
    "draft-2-overview": Dialect.DRAFT_2,
    "draft-2": Dialect.DRAFT_2,
    "draft-3": Dialect.DRAFT_3,
    "draft-3-loaded": Dialect.DRAFT_3,
}
"""The designs, with the dialect of their connections."""

_SESSION_MS = 6_000
_PORT = 9092


@dataclass(slots=True)
class DraftRun:
    """A design in a world. log: what its processes noted, with the time and the node's name."""

    world: World
    design: str
    log: list[tuple[int, str, Noted]] = field(default_factory=list)

    def machine(self, name: str) -> Any:
        """The machine of a node that is up."""
        process = self.world.nodes[name].process
        return None if process is None else getattr(process, "machine", None)

    @property
    def zookeeper(self) -> ZooKeeperProcess:
        process = self.world.nodes["zookeeper"].process
        assert isinstance(process, ZooKeeperProcess)
        return process


def add_design(
    world: World,
    design: str,
    *,
    members: int = 3,
    partitions: Mapping[str, int] | None = None,
    coordinators: int = 2,
    group: str = "group",
    session_ms: int = _SESSION_MS,
    apart_ms: int = 500,
    metadata_ms: int = 30_000,
    broker: Mapping[str, Any] | None = None,
    groups: int = 1,
    processors: tuple[int, int] | None = None,
    dialect: Dialect | None = None,
) -> DraftRun:
    """Add the nodes of a design to a world.

    groups: among which the consumers are divided, "group-1" and so on if there are several. apart_ms: between
    the starts of two consumers. session_ms: of consumers, with their coordinator or with ZooKeeper, and of
    brokers with ZooKeeper. metadata_ms: between draft 3's consumers' refreshes. broker: settings of brokers
    (`BrokerSettings`); with several `coordinators` each subset of the groups has its own. processors: how
    many each broker has, and the microseconds that one needs for a message. dialect: another one with the
    design's messages, such as "draft-2-in-0.8". Raises `KeyError` for an unknown design.
    """
    dialect = dialect or DRAFT_DESIGNS[design]
    run = DraftRun(world, design)
    topics = dict(partitions or {"orders": 6})
    known = {number: BrokerAddress(f"coordinator-{number}", _PORT) for number in range(1, coordinators + 1)}
    replicas = {
        topic: {number: [number % coordinators + 1] for number in range(count)}
        for topic, count in topics.items()
    }  # fmt: skip
    note = _noter(run)
    world.add("zookeeper", lambda: ZooKeeperProcess(replicas, note), port=ZOOKEEPER_PORT)
    names = [group] if groups == 1 else [f"{group}-{number}" for number in range(1, groups + 1)]
    world.ownership.know(
        (name, topic, number) for name in names for topic, count in topics.items() for number in range(count)
    )
    per_group = (broker or {}).get("coordinators", 1) > 1
    given_settings = {"coordinator_has_client": design != "zookeeper"} | dict(broker or {})
    for number, address in known.items():
        settings = BrokerSettings(broker_id=number, address=address, **given_settings)
        world.add(
            address.host,
            partial(_broker_process, design, dialect, settings, processors, session_ms, note),
            port=_PORT,
            at=number * 10,
        )
    for number in range(1, members + 1):
        own = names[(number - 1) % groups]
        make = partial(
            _consumer, design, f"consumer-{number}", own, topics, known, session_ms, metadata_ms, per_group
        )
        world.add(
            f"consumer-{number}",
            partial(
                MachineProcess, make, dialect, session_ms=session_ms if design == "zookeeper" else None,
                group=own, on_note=note,
            ),
            at=1_000 + number * apart_ms,
        )  # fmt: skip
    return run


def _noter(run: DraftRun) -> Callable[[int, str, Noted], None]:
    return lambda time, name, note: run.log.append((time, name, note))


def _broker_process(
    design: str, dialect: Dialect, settings: BrokerSettings, processors: tuple[int, int] | None,
    session_ms: int, note: Callable[[int, str, Noted], None],
) -> MachineProcess:  # fmt: skip
    return MachineProcess(
        partial(_broker, design, settings), dialect, session_ms=session_ms, on_note=note,
        pool=None if processors is None else ProcessorPool(*processors),
    )  # fmt: skip


def _broker(design: str, settings: BrokerSettings, node: SimulatedNode) -> Machine:
    kinds: dict[str, type[DraftBroker]] = {
        "draft-1": FirstDraftBroker, "draft-2": DetailedDesignBroker, "draft-2-overview": OverviewBroker,
        "draft-3": NewConsumerBroker,
    }  # fmt: skip
    if design == "draft-3-loaded":
        return NewConsumerBroker(settings, now=node.now, loads_groups=True)
    return kinds.get(design, DraftBroker)(settings, now=node.now)


def _consumer(
    design: str, name: str, group: str, topics: Mapping[str, int], known: Mapping[int, BrokerAddress],
    session_ms: int, metadata_ms: int, per_group: bool, node: SimulatedNode,
) -> Machine:  # fmt: skip
    """A consumer of all topics; each start of its process has an id of its own, as "hostname:uuid" has."""
    consumer_id = f"{name}.{node.boots}"
    topic_count = StaticTopics(dict.fromkeys(topics, 1)).build()
    match design:
        case "zookeeper":
            return ZooKeeperConsumer(
                ZooKeeperConsumerConfig(group_id=group, consumer_id=consumer_id, topic_count=topic_count),
                now=node.now,
            )
        case "draft-1":
            third = max(session_ms // 3, 1)
            return FirstDraftConsumer(
                FirstDraftConsumerConfig(
                    group_id=group, consumer_id=consumer_id, topic_count=topic_count,
                    ping_interval_ms=third, max_ping_retries=2,
                ),
                known, random=node.random, now=node.now,
            )  # fmt: skip
        case "draft-2" | "draft-2-overview":
            kind = DetailedDesignConsumer if design == "draft-2" else OverviewConsumer
            return kind(
                DetailedDesignConsumerConfig(
                    group_id=group, consumer_id=consumer_id, topic_count=topic_count,
                    session_timeout_ms=session_ms, group_coordinators=per_group,
                ),
                known, now=node.now,
            )  # fmt: skip
        case _:
            return NewConsumer(
                NewConsumerConfig(
                    group_id=group, client_id=name, topics=tuple(topics), session_timeout_ms=session_ms,
                    ping_interval_ms=max(session_ms // 3, 1), metadata_refresh_ms=metadata_ms,
                ),
                known, now=node.now,
            )  # fmt: skip
