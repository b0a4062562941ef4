"""Steps that several procedures take in ZooKeeper: a node's parents, and nodes that are written wherever
they are (ZkUtils' createPersistentPath, updatePersistentPath); and a
group's nodes, as a coordinator reads and writes them: partitions, owners, offsets.

Source: rebalance steps 1.1, 3 and 4.6 of both drafts with a pinging coordinator. Rules: a partition is named
"broker-partition" after the broker that leads it, as both documents say of their messages; a topic that
cannot be read counts as without partitions; the owners' nodes are persistent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coordwire.designs.drafts.actions import DraftPartition
from coordwire.designs.drafts.machine import Steps
from coordwire.designs.drafts.zookeeper_operations import (
    CreateNode,
    DeleteNode,
    GetChildren,
    GetData,
    OperationOutcome,
    SetData,
    ZooKeeperError,
)
from coordwire.dialects.zookeeper import Offset, Owner, Topic
from coordwire.errors import DecodeError


def ensure_parents(*paths: str) -> Steps:
    """Create the persistent nodes above these paths, where they are missing."""
    above = dict.fromkeys(parent for path in paths for parent in _parents(path))
    if above:
        yield tuple(map(CreateNode, above))


def _parents(path: str) -> list[str]:
    """The nodes above a path, the highest first."""
    parts = path.split("/")[1:-1]
    return ["/" + "/".join(parts[: count + 1]) for count in range(len(parts))]


def write_nodes(nodes: Mapping[str, bytes]) -> Steps:
    """Set the data of persistent nodes; those that are missing are created, with their parents.

    All in three requests at most, however many nodes there are.
    """
    if not nodes:
        return
    outcomes = yield tuple(SetData(path, data) for path, data in nodes.items())
    missing = {
        path: data
        for (path, data), outcome in zip(nodes.items(), outcomes, strict=True)
        if outcome.error is ZooKeeperError.NO_NODE
    }
    if missing:
        yield from ensure_parents(*missing)
        yield tuple(CreateNode(path, data) for path, data in missing.items())


# --- ownership nodes ---


def partitions_of(outcome: OperationOutcome) -> list[str]:
    """The partitions that a topic's node lists, as "broker-partition"."""
    try:
        topic = Topic.parse(outcome.data) if outcome.ok else Topic()
    except DecodeError:
        return []
    return [f"{replicas[0]}-{number}" for number, replicas in topic.partitions.items() if replicas]


def read_partitions(topics: Iterable[str], *, watch: bool = False) -> Steps:
    """The partitions of these topics (step 1.1)."""
    names = list(topics)
    outcomes = (yield tuple(GetData(Topic.path(name), watch) for name in names)) if names else ()
    return {name: partitions_of(outcome) for name, outcome in zip(names, outcomes, strict=True)}


def read_owners(group: str, topics: Iterable[str]) -> Steps:
    """Which thread owns which partition of these topics, as ZooKeeper has it (step 3)."""
    names = list(topics)
    above = [Owner.path(group, name, "0").rpartition("/")[0] for name in names]
    lists = (yield tuple(map(GetChildren, above))) if names else ()
    candidates = [
        DraftPartition(name, partition)
        for name, outcome in zip(names, lists, strict=True)
        for partition in outcome.children
    ]
    outcomes = (
        (yield tuple(GetData(Owner.path(group, *partition)) for partition in candidates))
        if candidates
        else ()
    )
    owners = {}
    for owned, outcome in zip(candidates, outcomes, strict=True):
        try:
            if outcome.ok:
                owners[owned] = Owner.parse(outcome.data).thread_id
        except DecodeError:
            owners[owned] = ""
    return owners


def rebalance_reason(
    plan: Mapping[DraftPartition, str],
    owners: Mapping[DraftPartition, str],
    partitions: Mapping[str, Iterable[str]],
) -> str | None:
    """Why a rebalance is necessary (steps 3.1 to 3.4); None if it is not (3.5)."""
    if not owners and plan:
        return "no registered ownership"
    existing = {DraftPartition(topic, name) for topic, names in partitions.items() for name in names}
    if any(partition not in owners for partition in existing if partition in plan):
        return "partitions without an owner"
    if any(partition not in existing for partition in owners):
        return "partitions that no longer exist"
    return "another ownership" if dict(plan) != dict(owners) else None


def write_owners(
    group: str, plan: Mapping[DraftPartition, str], before: Mapping[DraftPartition, str]
) -> Steps:
    """The new ownership in the place of the one before (step 4.6)."""
    deletions = [DeleteNode(Owner.path(group, *partition)) for partition in before if partition not in plan]
    if deletions:
        yield tuple(deletions)
    yield from write_nodes(
        {Owner.path(group, *partition): Owner(thread).build() for partition, thread in plan.items()}
    )


def read_offsets(group: str, partitions: Iterable[DraftPartition]) -> Steps:
    """The offsets that the group has committed, of those partitions that have one."""
    names = list(partitions)
    outcomes = (yield tuple(GetData(Offset.path(group, *partition)) for partition in names)) if names else ()
    offsets = {}
    for partition, outcome in zip(names, outcomes, strict=True):
        try:
            if outcome.ok:
                offsets[partition] = Offset.parse(outcome.data).offset
        except DecodeError:
            continue
    return offsets
