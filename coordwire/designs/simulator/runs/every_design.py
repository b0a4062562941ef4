"""The designs in a world, under the same names: consumer-N, coordinator-N, and zookeeper where needed.

    zookeeper         consumers that divide the partitions among themselves in ZooKeeper
    draft-1           a coordinator that pings its consumers; Stop is not awaited
    draft-2-overview  the detailed design's section 2: a rebalance breaks connections, all register again
    draft-2           the detailed design: Stop is awaited, ownership is written at the end
    draft-3           consumers ping the coordinator, and join for an assignment
    draft-3-loaded    the same, and a new coordinator loads the groups, as a later revision has it
    classic           JoinGroup, SyncGroup, Heartbeat; the leader assigns
    consumer          KIP-848: one heartbeat, the coordinator assigns, member by member
    share             KIP-932: the same, and several members may read a partition
    streams           KIP-1071: the same with tasks, one for each partition

Rules: one session timeout for all: of consumers, of ZooKeeper's sessions, and until another broker takes over
from one that crashed. Heartbeats and pings come three times in it. Draft 2's coordinator has one retry of a
ping, the fewest with which a consumer has stopped before the coordinator gives it up. Notes are what
processes report, in the same words for all designs where these have the same thing: `subject` is the consumer
that is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from coordwire.coordinator import (
    ConsumerGroupConfig,
    CoordinatorConfig,
    Shard,
    ShareGroupConfig,
    StreamsGroupConfig,
)
from coordwire.coordinator.timeline import ShardTimeline
from coordwire.designs.simulator.drafts import DRAFT_DESIGNS, DraftRun
from coordwire.designs.simulator.drafts import add_design as add_draft
from coordwire.designs.simulator.kafka import (
    ClassicClient,
    Cluster,
    ConsumerClient,
    GroupClient,
    GroupClientConfig,
)
from coordwire.designs.simulator.kafka.heartbeats import HEARTBEATS
from coordwire.designs.simulator.world import World
from coordwire.dialects import Dialect
from coordwire.errors import counted
from coordwire.timeline.events import MemberLeft

DESIGNS = {**DRAFT_DESIGNS, **dict.fromkeys(("classic", *HEARTBEATS), Dialect.KAFKA)}
"""The designs in the order of their time, with the dialect of their connections."""

PER_SUBSET = frozenset({"draft-2-overview", "draft-2", "draft-3", "draft-3-loaded"})
"""Designs of documents in which each subset of the groups may have its coordinator."""

GROUP = "group"
SESSION_MS = 6_000
METADATA_MS = 30_000
_FIRST_MS = 1_000
_GONE = frozenset({"ConsumerFailed", "ConsumerClosed", "MemberLeft"})
_NS = 1_000_000


class RunNote(NamedTuple):
    """Something that a process reports. subject: the consumer that counts as gone from now on, or ""."""

    time: int
    node: str
    name: str
    text: str
    subject: str = ""


class DesignRun:
    """A design in a world. zookeeper: whether its processes use ZooKeeper.

    >>> from coordwire.designs.simulator import World, parse_faults
    >>> from coordwire.designs.simulator.runs import add_design
    >>> world = World(seed=1)
    >>> run = add_design(world, "draft-1", members=2)
    >>> run
    <DesignRun draft-1: 5 nodes>
    >>> world.plan(parse_faults("20s crash consumer-2"))
    >>> world.run(40_000)
    True
    >>> [note.subject for note in run.notes() if note.name == "ConsumerFailed"]
    ['consumer-2']
    """

    def __init__(self, world: World, design: str) -> None:
        self.world = world
        self.design = design
        self.dialect = DESIGNS[design]

    def __repr__(self) -> str:
        return f"<DesignRun {self.design}: {counted(len(self.world.nodes), 'node')}>"

    @property
    def zookeeper(self) -> bool:
        return self.design in DRAFT_DESIGNS

    @property
    def shares(self) -> bool:
        """Whether a partition may have several readers."""
        return self.design == "share"

    def notes(self) -> list[RunNote]:
        """What was reported until now, in order."""
        raise NotImplementedError

    def identify(self, node: str) -> None:
        """A consumer has taken a partition: under which name the coordinator knows it may be asked now."""


def add_design(
    world: World,
    design: str,
    *,
    members: int = 3,
    partitions: int = 6,
    coordinators: int = 2,
    topic: str = "orders",
    session_ms: int = SESSION_MS,
    apart_ms: int = 500,
    metadata_ms: int = METADATA_MS,
    groups: int = 1,
    subsets: int = 1,
    client: Mapping[str, Any] | None = None,
) -> DesignRun:
    """Add the nodes of any design to a world: one group that reads one topic, or several that do.

    groups: among which the consumers are divided, "group-1" and so on if there are several. subsets: of the
    groups, each with a coordinator among the brokers; for draft-2, its overview and draft-3, whose documents
    have that. apart_ms: between the starts of two consumers. metadata_ms: between the times at which a
    consumer of draft 3 and of today's designs asks for metadata. client: settings of `GroupClientConfig` for
    today's designs; an `instance_id` gets the consumer's number, as each has its own. Raises
    `KeyError` for an unknown design.
    """
    if design in DRAFT_DESIGNS:
        draft = add_draft(
            world, design, members=members, partitions={topic: partitions}, coordinators=coordinators,
            group=GROUP, session_ms=session_ms, apart_ms=apart_ms, metadata_ms=metadata_ms,
            broker={"max_ping_retries": 1, "coordinators": subsets if design in PER_SUBSET else 1},
            groups=groups,
        )  # fmt: skip
        return _OfDraft(draft)
    return _OfKafka(
        world, design, members=members, topics={topic: partitions}, coordinators=coordinators,
        session_ms=session_ms, apart_ms=apart_ms, metadata_ms=metadata_ms, groups=groups,
        client=client or {},
    )  # fmt: skip


def group_names(groups: int) -> list[str]:
    """The names of the groups of a run."""
    return [GROUP] if groups == 1 else [f"{GROUP}-{number}" for number in range(1, groups + 1)]


class _OfDraft(DesignRun):
    def __init__(self, draft: DraftRun) -> None:
        super().__init__(draft.world, draft.design)
        self._draft = draft
        self._names: dict[str, str] = {}

    def notes(self) -> list[RunNote]:
        """Brokers of the ZooKeeper design elect a coordinator too, which has nothing to do: left out."""
        return [
            RunNote(time, node, note.name, note.text, self._subject(note.name, note.text))
            for time, node, note in self._draft.log
            if self.design != "zookeeper" or note.name not in ("Elected", "Resigned")
        ]

    def identify(self, node: str) -> None:
        machine = self._draft.machine(node)
        if machine is not None and self.design in ("draft-3", "draft-3-loaded"):
            self._names[machine.consumer_id] = node

    def _subject(self, name: str, text: str) -> str:
        if name == "SessionExpired":
            return text if self.design == "zookeeper" else ""
        if name not in _GONE:
            return ""
        consumer_id = text.partition("/")[2]
        if self.design in ("draft-3", "draft-3-loaded"):
            return self._names.get(consumer_id, "")
        return consumer_id.rpartition(".")[0]


class _ReportingShard(Shard):
    """A shard whose events are kept as notes."""

    def __init__(self, on_leave: Callable[[MemberLeft], None], now: int, config: CoordinatorConfig) -> None:
        self._timeline = ShardTimeline()
        super().__init__(now=now, config=config, listener=self._timeline)
        self._on_leave = on_leave

    def effects(self) -> Iterator[Any]:
        yield from super().effects()
        for event in self._timeline.events():
            if isinstance(event, MemberLeft):
                self._on_leave(event)


class _OfKafka(DesignRun):
    def __init__(
        self, world: World, design: str, *, members: int, topics: dict[str, int], coordinators: int,
        session_ms: int, apart_ms: int, metadata_ms: int, groups: int,
        client: Mapping[str, Any],
    ) -> None:  # fmt: skip
        super().__init__(world, design)
        self._departures: list[RunNote] = []
        beat_ms = max(session_ms // 3, 1)
        self.cluster = Cluster(
            world, coordinators=coordinators, topics=topics, failover_ms=session_ms,
            config=CoordinatorConfig(
                min_session_timeout_ms=min(session_ms, 6_000),
                consumer=ConsumerGroupConfig(session_timeout_ms=session_ms, heartbeat_interval_ms=beat_ms),
                share_group_max_size=max(members, 200),
                share=ShareGroupConfig(session_timeout_ms=session_ms, heartbeat_interval_ms=beat_ms),
                streams=StreamsGroupConfig(session_timeout_ms=session_ms, heartbeat_interval_ms=beat_ms),
            ),
            new_shard=partial(_ReportingShard, self._note_departure),
        )  # fmt: skip
        group_ids = group_names(groups)
        world.ownership.know(
            (group_id, name, number)
            for group_id in group_ids for name, count in topics.items() for number in range(count)
        )  # fmt: skip
        make: Callable[[GroupClientConfig], GroupClient] = ClassicClient
        if design in HEARTBEATS:
            make = partial(ConsumerClient, heartbeats=HEARTBEATS[design])
        names = tuple(self.cluster.names)
        for number in range(1, members + 1):
            config = GroupClientConfig(
                group_id=group_ids[(number - 1) % groups], topics=tuple(topics), coordinators=names,
                client_id=f"consumer-{number}",
                session_timeout_ms=session_ms, heartbeat_interval_ms=beat_ms,
                metadata_interval_ms=metadata_ms, **client,
            )  # fmt: skip
            if config.instance_id is not None:
                config = replace(config, instance_id=f"{config.instance_id}-{number}")
            world.add(f"consumer-{number}", partial(make, config), at=_FIRST_MS + number * apart_ms)

    def _note_departure(self, event: MemberLeft) -> None:
        time = self.world.now if event.time_ns is None else event.time_ns // _NS
        name = event.client_id or event.member_id
        self._departures.append(
            RunNote(time, self.cluster.leader, "MemberLeft", f"{name}: {event.how}", name)
        )

    def notes(self) -> list[RunNote]:
        elected = [RunNote(time, node, "Elected", node) for time, node in self.cluster.loaded]
        return sorted([*elected, *self._departures], key=lambda note: note.time)
