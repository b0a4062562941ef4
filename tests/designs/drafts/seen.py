"""What a machine does, as a test sees it: each action with its time, also those that never arrive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from coordwire.codec import Message
from coordwire.designs.drafts.actions import Action, AskZooKeeper, Noted, Send
from coordwire.designs.drafts.machine import Machine
from tests.designs.drafts.cluster import Cluster


class Done(NamedTuple):
    """An action, and when (ms) the machine did it."""

    time: int
    what: Any


class Seen(list[Done]):
    """The actions of a machine from now on."""

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        do = machine.do

        def seen(action: Action) -> None:
            self.append(Done(machine.now, action))
            do(action)

        machine.do = seen  # type: ignore[method-assign]

    def of(self, kind: type) -> list[Done]:
        """The actions of a kind."""
        return [one for one in self if isinstance(one.what, kind)]

    def messages(self, kind: type[Message], name: str | None = None) -> list[Done]:
        """The messages of a class that it sent. name: of the consumer that they name."""
        sent = [Done(time, action.message) for time, action in self.of(Send)]
        return [
            one for one in sent
            if isinstance(one.what, kind) and (name is None or getattr(one.what, "consumer_id", "") == name)
        ]  # fmt: skip

    def operations(self, kind: type[Any], part: str = "") -> list[Done]:
        """The operations of a kind that it asked ZooKeeper for, at paths with this part."""
        return [
            Done(time, operation)
            for time, ask in self.of(AskZooKeeper)
            for operation in ask.operations
            if isinstance(operation, kind) and part in operation.path
        ]

    def noted(self, name: str) -> list[Done]:
        """What it noted under a name."""
        return [Done(time, note.text) for time, note in self.of(Noted) if note.name == name]


def run_until(world: Cluster, condition: Callable[[], bool], limit_ms: int = 20_000) -> None:
    """Let time pass, a millisecond at a time, until something holds."""
    for _ in range(limit_ms):
        if condition():
            return
        world.run(1)
    raise AssertionError(f"not within {limit_ms} ms")
