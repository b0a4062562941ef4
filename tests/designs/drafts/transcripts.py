"""What happened in a world, as lines: who sent whom which message when, what processes logged, and the nodes.

    at 301 broker-1 > a: Draft1PingRequest num_retries=0

Rules: a message is a line when it arrives; fields are in the order of the wire, each with its value.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from coordwire.codec import Message
from coordwire.designs.drafts.actions import FetchersStarted, FetchersStopped, Noted
from coordwire.designs.drafts.pinging_coordinator import PingingCoordinator
from coordwire.designs.drafts.zookeeper_operations import GetData, Operation, OperationOutcome
from tests.designs.drafts.cluster import Cluster, Entry

__all__ = ["fetched", "lines", "nodes", "queued", "record_operations", "the"]


def the(value: Any) -> str:
    """A value on a line."""
    if isinstance(value, list):
        return "[" + ", ".join(map(the, value)) + "]"
    if is_dataclass(value):
        return "(" + _fields(value) + ")"
    return repr(value)


def _fields(value: Any) -> str:
    return " ".join(
        f"{one.name}={the(getattr(value, one.name))}" for one in fields(value) if one.name != "tags"
    )


def lines(world: Cluster, *, since: int = 0, times: bool = True) -> list[str]:
    """The history. times: whether lines begin with theirs."""
    result = []
    for entry in world.history:
        what = entry.what
        if entry.time < since:
            continue
        if isinstance(what, Message):
            text = f"{entry.name} > {entry.peer}: {type(what).__name__} {_fields(what)}".rstrip()
        elif isinstance(what, FetchersStarted | FetchersStopped):
            owned = " ".join(f"{topic}/{name}:{at}" for (topic, name), at in what.partitions.items())
            text = f"{entry.name}: {type(what).__name__} {owned}".rstrip()
        elif isinstance(what, Noted):
            text = f"{entry.name}: {what.name} {what.text}".rstrip()
        else:
            continue
        result.append(f"{entry.time} {text}" if times else text)
    return result


def nodes(world: Cluster, under: str) -> dict[str, tuple[bytes, str]]:
    """The nodes with data below a path: the data, and whose session they end with; "" if persistent."""
    owners = {node.session: node.name for node in world.nodes.values()}
    for node in world.nodes.values():
        owners.setdefault(getattr(node.machine, "coordinator_session", 0), f"{node.name}'s coordinator")
    result = {}
    for path in world.tree.paths():
        outcome = world.tree.apply(world.admin, GetData(path), world.now)
        if path.startswith(under) and outcome.ok and outcome.data and outcome.stat is not None:
            owner = outcome.stat.ephemeral_owner
            result[path] = outcome.data, owners.get(owner, "nobody") if owner else ""
    return result


def queued(coordinator: PingingCoordinator) -> list[list[str]]:
    """The groups in each handler's queue, and those that wait for room in it."""
    return [[*queue.groups, *queue.blocked] for queue in coordinator._queues]


def record_operations(world: Cluster, kinds: tuple[type[Operation], ...] = ()) -> None:
    """Write down what the processes ask of ZooKeeper from now on, and what it answers. kinds: of operations;
    none for all."""
    apply = world.tree.apply

    def seen(session: int, operation: Operation, now: int) -> OperationOutcome:
        outcome = apply(session, operation, now)
        name = next((node.name for node in world.nodes.values() if session in node.sessions.values()), "")
        if name and (not kinds or isinstance(operation, kinds)):
            words = [
                value.decode() if isinstance(value, bytes) else value if isinstance(value, str) else one.name
                for one in fields(operation)
                if (value := getattr(operation, one.name)) not in (False, b"", -1)
            ]
            answer = [outcome.error.name, outcome.data.decode(), *outcome.children]
            text = f"{' '.join(words)} -> {' '.join(filter(None, answer))}"
            world.history.append(Entry(world.now, name, Noted(type(operation).__name__, text)))
        return outcome

    world.tree.apply = seen  # type: ignore[method-assign]


def fetched(consumer: Any) -> str:
    """What its fetchers have to fetch, each with how far it was consumed and fetched."""
    fetchers = consumer.fetchers
    progress = {name: (one.consumed, one.fetched) for name, one in fetchers.partitions.items()}
    brokers = {name: sorted(partitions) for name, partitions in fetchers.fetchers.items()}
    return f"{progress} {sorted(fetchers.without_leader)} {brokers}"
