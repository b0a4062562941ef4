"""One rolling restart: members of a recorded group restart one after the other, in virtual time.

A member closes its consumer, is away for a while, and comes back with the other protocol. The next restarts
once the group has settled: all members have their partitions, and the coordinator counts it as stable; or
once that has taken too long. The first refusal ends the roll, as an operator would.

Rules: members heartbeat at moments of their own, by the seed. A partition is idle while no member reads it,
its own restart included. A rebalance is a new generation or a new epoch of the group.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from random import Random
from typing import NamedTuple

from coordwire.coordinator import CoordinatorConfig
from coordwire.coordinator.model.classic_group import ClassicGroupModel, GroupState
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel, ConsumerGroupState
from coordwire.designs.rehearsal.recorded_group import RecordedGroup, RecordedMember
from coordwire.designs.simulator.kafka import (
    ClassicClient,
    Cluster,
    ConsumerClient,
    EarlierMembership,
    GroupClient,
    GroupClientConfig,
)
from coordwire.designs.simulator.ownership import OwnershipChange
from coordwire.designs.simulator.world import World
from coordwire.logs import LogRecord, encode_log_record
from coordwire.messages import GroupMetadataKey

_COORDINATOR = "coordinator-1"
_GROUP_TYPE = 2
_FIRST_MS, _TICK_MS = 100, 100
_HEARTBEAT_MS, _LEAST_HEARTBEAT_MS = 3_000, 100
"""The Java client's default, which no record has; and the least, of members with short sessions."""

_PHASES_MS = 5_000
"""So much longer a pause may be, so that restarts do not keep step with heartbeats."""

_MOST_PATIENCE_MS = 600_000
"""The longest rebalance time-out that is awaited; some clients have one of 24 days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollConfig:
    """away_ms: between a member's end and its return. pause_ms: from a settled group to the next restart, and
    up to 5 s more, by the seed. patience_ms: how long the group may take to settle, beyond its longest
    rebalance time-out, of which 10 minutes count. assignor: that consumer members ask for."""

    away_ms: int = 5_000
    pause_ms: int = 10_000
    patience_ms: int = 120_000
    assignor: str | None = None
    seed: int = 1


class RollStep(NamedTuple):
    """A member, by name, and the protocol with which it comes back: "consumer" or "classic"."""

    member: str
    to: str = "consumer"


@dataclass(frozen=True, slots=True)
class MemberRefusal:
    """What a member's client got that it can't go on from. error: by Kafka's name. text: of the answer, or
    "" where it has none."""

    member: str
    error: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """What one member's restart did. Times are in milliseconds.

    rebalances: new generations or epochs. settled_ms: from the member's end on, None if the group did not
    settle. idle_ms: the sum over partitions without a reader; longest_ms: the longest of one of them.
    twice_ms: the sum over partitions that two members read. moved: partitions that another member has than
    before. kind: of the group after it, "classic" or "consumer", or "" where it is gone.
    """

    member: str
    to: str
    rebalances: int
    settled_ms: int | None
    idle_ms: int
    longest_ms: int
    twice_ms: int
    moved: int
    kind: str
    refusals: tuple[MemberRefusal, ...] = ()


@dataclass(frozen=True, slots=True)
class Roll:
    """The restarts up to the first refusal, in the order of these steps."""

    steps: tuple[RollStep, ...]
    restarts: tuple[Restart, ...] = ()

    @property
    def order(self) -> tuple[str, ...]:
        """The members' names."""
        return tuple(step.member for step in self.steps)

    @property
    def refusals(self) -> tuple[MemberRefusal, ...]:
        return tuple(refusal for restart in self.restarts for refusal in restart.refusals)

    @property
    def settles(self) -> bool:
        """Whether the group settled after each restart."""
        return all(restart.settled_ms is not None for restart in self.restarts)

    @property
    def is_complete(self) -> bool:
        """Whether every member restarted and the group settled each time."""
        return len(self.restarts) == len(self.steps) and self.settles and not self.refusals

    @property
    def rebalances(self) -> int:
        return sum(restart.rebalances for restart in self.restarts)

    @property
    def idle_ms(self) -> int:
        return sum(restart.idle_ms for restart in self.restarts)

    @property
    def longest_ms(self) -> int:
        return max((restart.longest_ms for restart in self.restarts), default=0)

    @property
    def twice_ms(self) -> int:
        return sum(restart.twice_ms for restart in self.restarts)

    @property
    def fallbacks(self) -> int:
        """How often a consumer group became a classic one."""
        kinds = [restart.kind for restart in self.restarts]
        return sum(pair == ("consumer", "classic") for pair in pairwise(kinds))


def roll(
    group: RecordedGroup,
    steps: Sequence[RollStep],
    config: CoordinatorConfig,
    settings: RollConfig | None = None,
) -> Roll:
    """Restart members one after the other. Raises `KeyError` for a name that is not there."""
    rolling = _Rolling(group, config, settings or RollConfig())
    return Roll(tuple(steps), tuple(rolling.restarts(steps)))


class _Rolling:
    """A world with the group's coordinator and its members."""

    def __init__(self, group: RecordedGroup, config: CoordinatorConfig, settings: RollConfig) -> None:
        self._group = group
        self._settings = settings
        self._members = {member.name: member for member in group.members}
        self._making = dict.fromkeys(self._members, "recorded")
        self._world = World(seed=settings.seed)
        partitions = {topic: count for topic, count in group.partitions.items() if count}
        self._cluster = Cluster(self._world, coordinators=1, topics=partitions, config=config)
        self._cluster.log.append(_encoded(group))
        self._idle = _IdleTimes(self._world)
        self._world.ownership.know(
            (group.group_id, topic, number) for topic, count in partitions.items() for number in range(count)
        )
        longest_ms = max(_timeout_ms(member) for member in self._members.values())
        self._patience_ms = settings.patience_ms + min(longest_ms, _MOST_PATIENCE_MS)
        random = Random(f"{settings.seed}/heartbeats")
        for name in self._members:
            at = _FIRST_MS + random.randrange(_HEARTBEAT_MS)
            self._world.add(name, partial(self._client, name), at=at)

    # --- the members ---

    def _client(self, name: str) -> GroupClient:
        member, kind = self._members[name], self._making[name]
        record = member.record
        session_ms = record.session_timeout
        config = GroupClientConfig(
            group_id=self._group.group_id, topics=member.topics, coordinators=(_COORDINATOR,),
            instance_id=record.group_instance_id, client_id=record.client_id,
            session_timeout_ms=session_ms, rebalance_timeout_ms=_timeout_ms(member),
            heartbeat_interval_ms=min(_HEARTBEAT_MS, max(session_ms // 3, _LEAST_HEARTBEAT_MS)),
            commit_interval_ms=0,  # they commit what they give up
            cooperative=member.is_cooperative, assignors=member.assignors, assignment_data=member.data,
            subscription=None if member.topics else record.subscription,
        )  # fmt: skip
        if kind == "consumer":
            return ConsumerClient(replace(config, assignor=self._settings.assignor))
        if kind == "classic":
            return ClassicClient(config)
        membership = EarlierMembership(
            member_id=record.member_id, generation=self._group.value.generation, owned=member.owned,
            leads=record.member_id == self._group.value.leader,
        )  # fmt: skip
        return ClassicClient(config, membership)

    def _clients(self) -> dict[str, GroupClient]:
        """The clients that run."""
        processes = {name: self._world.nodes[name].process for name in self._members}
        return {name: process for name, process in processes.items() if isinstance(process, GroupClient)}

    # --- restarts ---

    def restarts(self, steps: Sequence[RollStep]) -> list[Restart]:
        world = self._world
        world.run(world.now + _FIRST_MS + _HEARTBEAT_MS)
        self._settle(world.now)
        restarts: list[Restart] = []
        random = Random(f"{self._settings.seed}/{[step.member for step in steps]}")
        for step in steps:
            world.run(world.now + self._settings.pause_ms + random.randrange(_PHASES_MS))
            restarts.append(self._restart(*step))
            if restarts[-1].refusals:
                break
        return restarts

    def _restart(self, name: str, to: str) -> Restart:
        world, node = self._world, self._world.nodes[name]
        ownership = world.ownership
        begin, before, owners = world.now, self._generation(), self._owners()
        idle_ms, twice_ms = ownership.orphaned_ms, ownership.duplicated_ms
        self._idle.longest_ms = 0
        if node.process is not None:
            node.call(node.process.on_fault, "leave", ())
        world.run(world.now + self._settings.away_ms)
        node.crash()
        self._making[name] = to
        node.boot()
        settled = self._settle(world.now)
        now_owners = self._owners()
        return Restart(
            member=name,
            to=to,
            rebalances=self._generation() - before,
            settled_ms=None if settled is None else settled - begin,
            idle_ms=ownership.orphaned_ms - idle_ms,
            longest_ms=self._idle.longest(),
            twice_ms=ownership.duplicated_ms - twice_ms,
            moved=sum(owners[key] != now_owners.get(key) for key in owners),
            kind=self._kind(),
            refusals=tuple(
                MemberRefusal(member, client.failure[0].name, client.failure[1])
                for member, client in self._clients().items() if client.failure is not None
            ),
        )  # fmt: skip

    def _owners(self) -> dict[Hashable, list[str]]:
        ownership = self._world.ownership
        return {partition: ownership.owners(partition) for partition in ownership.partitions}

    def _settle(self, begin: int) -> int | None:
        """Let time go by until the group has settled; when it had, or None if it took too long or a client
        failed."""
        world = self._world
        while world.now < begin + self._patience_ms:
            world.run(world.now + _TICK_MS)
            if any(client.failure is not None for client in self._clients().values()):
                return None
            if self._is_settled():
                return world.now
        return None

    def _is_settled(self) -> bool:
        if not all(map(_is_stable, self._clients().values())):
            return False
        return self._is_stable() and self._world.ownership.is_whole

    # --- the group at its coordinator ---

    def _model(self) -> ClassicGroupModel | ConsumerGroupModel | None:
        process = self._cluster.process(_COORDINATOR)
        group = None if process is None else process.shard.groups.get(self._group.group_id)
        return group if isinstance(group, ClassicGroupModel | ConsumerGroupModel) else None

    def _is_stable(self) -> bool:
        group = self._model()
        if isinstance(group, ConsumerGroupModel):
            return group.state is ConsumerGroupState.STABLE
        return group is not None and group.state is GroupState.STABLE

    def _generation(self) -> int:
        group = self._model()
        if group is None:
            return 0
        return group.epoch if isinstance(group, ConsumerGroupModel) else group.generation

    def _kind(self) -> str:
        group = self._model()
        return "" if group is None else group.kind


class _IdleTimes:
    """For how long each partition has had no reader, and the longest such time since it was set to 0."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._since: dict[Hashable, int] = {}
        self.longest_ms = 0
        world.ownership.observe = self._changed

    def _changed(
        self, owner: str, partition: Hashable, change: OwnershipChange, before: int, after: int
    ) -> None:
        if not after:
            self._since.setdefault(partition, self._world.now)
        elif partition in self._since:
            self.longest_ms = max(self.longest_ms, self._world.now - self._since.pop(partition))

    def longest(self) -> int:
        """The longest time, of those that last until now too."""
        return max([self.longest_ms, *(self._world.now - since for since in self._since.values())])


def _is_stable(client: GroupClient) -> bool:
    return isinstance(client, ClassicClient | ConsumerClient) and client.is_stable


def _timeout_ms(member: RecordedMember) -> int:
    """The rebalance time-out; the oldest records have none, and the session's counts."""
    record = member.record
    return record.rebalance_timeout if record.rebalance_timeout > 0 else record.session_timeout


def _encoded(group: RecordedGroup) -> tuple[bytes, bytes | None]:
    """The group's record as its log has it."""
    record = LogRecord(
        log="consumer_offsets", type=_GROUP_TYPE, key=GroupMetadataKey(group=group.group_id),
        value=group.value, version=group.version,
    )  # fmt: skip
    key, value = encode_log_record(record)
    assert key is not None
    return key, value
