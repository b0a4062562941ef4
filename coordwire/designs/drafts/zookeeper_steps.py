"""Steps that several procedures take in ZooKeeper: a node's parents, and nodes that are written wherever
they are (ZkUtils' createPersistentPath, updatePersistentPath)."""

from __future__ import annotations

from collections.abc import Mapping

from coordwire.designs.drafts.machine import Steps
from coordwire.designs.drafts.zookeeper_operations import CreateNode, SetData, ZooKeeperError

__all__ = ["ensure_parents", "write_nodes"]


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
