"""Invariants that clients see too: S14, S21 while they run, L1 and L2 once perturbations stop."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from coordwire.coordinator import ShardStatus
from coordwire.coordinator.model.classic_group import ClassicGroupModel, GroupState
from coordwire.coordinator.model.consumer_group import ConsumerGroupState
from coordwire.designs.simulator import World
from coordwire.designs.simulator.kafka import ClassicClient, Cluster, GroupClient
from coordwire.designs.simulator.kafka.classic_client import assigned
from tests.coordinator.invariants.watch import Violation, WatchedShard


class OwnersOfClients:
    """S21: no two clients that the coordinator counts as members own one partition
    (NoDoubleClientAssignment). S14, of classic groups: nor in the same generation, with the cooperative
    protocol in adjacent ones.

    A static member that misses a join phase stays in the group, and the leader is shown what it owned when it
    joined last (KIP-345 with KIP-429): of it, only the same generation counts. A client that was fenced and
    does not know it yet may own what another has by now: that is what sessions are for. What it commits is
    refused (S13)."""

    def __init__(self, world: World, cluster: Cluster) -> None:
        self._world = world
        self._cluster = cluster
        world.ownership.watch = self.check

    def check(self, partition: Hashable) -> None:
        owners = self._world.ownership.owners(partition)
        if len(owners) < 2:
            return
        process = self._cluster.process(self._cluster.leader)
        if process is None or process.shard.status is not ShardStatus.ACTIVE:
            return
        clients = [self._world.nodes[name].process for name in owners]
        shard = process.shard
        assert isinstance(shard, WatchedShard)
        counted = []
        for client in clients:
            if not isinstance(client, GroupClient) or not client.member_id or client.epoch <= 0:
                continue
            group = shard.state.groups.get(client.config.group_id)
            if group is None or group.members.get(client.member_id) is None:
                continue
            if isinstance(client, ClassicClient):
                adjacent = client.config.cooperative and client.config.instance_id is None
                counted.append((client.epoch, adjacent, client.member_id))
            elif group.members.get(client.member_id).epoch > 0:
                counted.append((0, True, client.member_id))
        for index, (epoch, adjacent, member_id) in enumerate(counted):
            for other, other_adjacent, other_id in counted[:index]:
                apart = abs(epoch - other)
                if other_id != member_id and apart <= (adjacent and other_adjacent):
                    name = "S21" if not epoch else "S14"
                    text = f"{partition} is read by {member_id} and {other_id} at {self._world.now} ms"
                    raise Violation(name, text)


def check_converged(world: World, cluster: Cluster) -> None:
    """L1, L2: without perturbations each group with members is stable, in one generation or epoch, and each
    partition that they subscribe to is read by just one of them.

    In a classic group the leader watches for new topics and partitions. A static one that came back to the
    same generation does not know what it had assigned, and before JoinGroup v9 (KIP-814) not even that it
    leads: what came meanwhile is read after the next rebalance."""
    process = cluster.process(cluster.leader)
    if process is None:
        raise Violation("L2", f"{cluster.leader} is down")
    clients = [node.process for node in world.nodes.values() if isinstance(node.process, GroupClient)]
    alive = [client for client in clients if not client.is_done]
    for group_id, group in process.shard.groups.items():
        members = [client for client in alive if client.config.group_id == group_id]
        if not members:
            continue
        classic = isinstance(group.state, GroupState)
        name = "L1" if classic else "L2"
        if group.state not in (GroupState.STABLE, ConsumerGroupState.STABLE):
            raise Violation(name, f"{group_id} is {group.state} at {world.now} ms")
        known = {client.member_id for client in members}
        if not known <= set(group.members):
            raise Violation(name, f"{known - set(group.members)} are not members of {group_id}")
        unwatched = isinstance(group, ClassicGroupModel) and not any(
            isinstance(client, ClassicClient) and client.assigned_in == group.generation for client in members
        )
        epochs = {client.epoch for client in members}
        if len(epochs) > 1:
            raise Violation(name, f"clients of {group_id} are in {epochs}")
        topics = {topic for client in members for topic in client.topics} & set(cluster.topics.names)
        for topic in sorted(topics):
            image = cluster.topics.find(topic)
            assert image is not None
            for index in range(image.partitions):
                owners = world.ownership.owners((group_id, topic, index))
                if unwatched and not owners and not _assigned(group, topic, index):
                    continue
                if len(owners) != 1:
                    raise Violation(name, f"{topic} {index} of {group_id} is read by {owners}")


def _assigned(group: Any, topic: str, index: int) -> bool:
    """Whether the leader gave a partition to anyone."""
    return any((topic, index) in assigned(member.assignment) for member in group.members.values())
