"""Operations on a real ZooKeeper with its answers and watch events, each replayed on `ZooKeeperTree`.

`tests/interop/java/ZooKeeperTree.java` writes them. Strategy: the same operations by as many sessions; after
each, the outcome and the events of every session must be the same, in order. Rules: transaction numbers are
not compared, as a real server counts sessions and refused operations too; of a session's end, whose
ephemeral nodes a real server removes in the order of a hash set, the events are compared without their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coordwire.designs.drafts.zookeeper_operations import (
    CheckVersion,
    CreateNode,
    DeleteNode,
    GetChildren,
    GetData,
    NodeExists,
    Operation,
    OperationOutcome,
    SetData,
    Transaction,
)
from coordwire.designs.drafts.zookeeper_tree import ZooKeeperTree

__all__ = ["differences", "operation_count"]

SESSIONS = 3
_TIMEOUT_MS = 1 << 60


def operation_count(lines: Iterable[str]) -> int:
    """How many operations a recording has."""
    return sum(line.startswith("do\t") for line in lines)


def differences(lines: Iterable[str]) -> Iterator[str]:
    """What differs, as a text each: the operation, what the real server gave, what ours gives."""
    run = _Run()
    given: list[str] = []
    for line in [*lines, "end"]:
        word = line.partition("\t")[0]
        if word in ("history", "do", "end") and given:
            yield from run.compare(given)
            given = []
        if word == "history":
            run = _Run()
        elif word != "end":
            given.append(line.rstrip("\n"))


class _Run:
    """Our tree, and the sessions of one history."""

    def __init__(self) -> None:
        self.tree = ZooKeeperTree()
        self.sessions = [self.tree.open_session(_TIMEOUT_MS, 0) for _ in range(SESSIONS)]
        self.tree.apply(self.sessions[0], CreateNode("/r"), 0)

    def compare(self, given: list[str]) -> Iterator[str]:
        """given: the operation, its answer, and the events."""
        _, number, *words = given[0].split("\t")
        real = [given[1], *given[2:]]
        if words[0] == "close":
            self.tree.close_session(self.sessions[int(number)])
            self.sessions[int(number)] = self.tree.open_session(_TIMEOUT_MS, 0)
            ours = ["ok", *sorted(self._events())]
            real = [real[0], *sorted(real[1:])]
        else:
            operation = _operation(words)
            outcome = self.tree.apply(self.sessions[int(number)], operation, 0)
            ours = [self._answer(operation, outcome), *self._events()]
        if ours != real:
            yield f"{given[0]!r}: real {real}, ours {ours}"

    def _events(self) -> list[str]:
        """By session, as each session's client has them."""
        events = [event for event in self.tree.events() if event.session in self.sessions]
        events.sort(key=lambda event: self.sessions.index(event.session))
        return [
            f"event\t{self.sessions.index(event.session)}\t{event.kind.value}\t{event.path[2:]}"
            for event in events
        ]

    def _answer(self, operation: Operation, outcome: OperationOutcome) -> str:
        if isinstance(operation, Transaction):
            if not outcome.ok:
                return "\t".join(
                    ["error", str(int(outcome.error)), *(str(int(o.error)) for o in outcome.outcomes)]
                )
            return "\t".join(["ok", *map(self._part, operation.operations, outcome.outcomes)])
        if not outcome.ok:
            return f"error\t{int(outcome.error)}"
        match operation:
            case CreateNode():
                return f"ok\t{outcome.path[2:]}"
            case GetData():
                return f"ok\t{outcome.data.decode()}\t{self._stat(outcome)}"
            case GetChildren():
                return f"ok\t{','.join(outcome.children)}\t{self._stat(outcome)}"
            case NodeExists() | SetData():
                return f"ok\t{self._stat(outcome)}"
            case _:
                return "ok"

    def _part(self, operation: Operation, outcome: OperationOutcome) -> str:
        if isinstance(operation, CreateNode):
            return outcome.path[2:]
        if isinstance(operation, SetData):
            assert outcome.stat is not None
            return f"v{outcome.stat.version}"
        return "-"

    def _stat(self, outcome: OperationOutcome) -> str:
        stat = outcome.stat
        assert stat is not None
        owner = self.sessions.index(stat.ephemeral_owner) if stat.ephemeral_owner else -1
        unchanged = str(stat.czxid == stat.mzxid).lower()
        return f"{stat.version} {stat.cversion} {owner} {stat.data_length} {stat.num_children} {unchanged}"


def _operation(words: list[str]) -> Operation:
    kind, path, *remaining = words
    if kind == "multi":
        return Transaction(tuple(_operation(part.split(" ")) for part in words[1:]))  # type: ignore[misc]
    path = f"/r{path}"
    match kind:
        case "create":
            return CreateNode(
                path,
                remaining[0].encode(),
                ephemeral="EPHEMERAL" in remaining[1],
                sequential="SEQUENTIAL" in remaining[1],
            )
        case "delete":
            return DeleteNode(path, int(remaining[0]))
        case "set":
            return SetData(path, remaining[0].encode(), int(remaining[1]))
        case "check":
            return CheckVersion(path, int(remaining[0]))
        case "get":
            return GetData(path, remaining[0] == "true")
        case "exists":
            return NodeExists(path, remaining[0] == "true")
        case _:
            return GetChildren(path, remaining[0] == "true")
