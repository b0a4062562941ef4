"""A node's process: a machine without socket and clock that gets bytes, timers and the ends of links.

Rules: a process acts only inside these calls, through its node and its links; what it wants to remember after
a crash it keeps in `node.disk`. Randomness comes from `node.random` alone, so that a seed gives a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from coordwire.connection.events import Event

if TYPE_CHECKING:
    from coordwire.designs.simulator.network import Link, SimulatedNode

__all__ = ["Process"]


class Process:
    """One process, from its start to its crash. Every method may be left out."""

    node: SimulatedNode
    keeps_no_offsets = False
    """Whether its design says nothing of where offsets are kept: `MessageFlow` keeps them."""

    def start(self, node: SimulatedNode) -> None:
        """The process begins on its node."""
        self.node = node

    def on_accept(self, link: Link) -> None:
        """Another node connected to this one: a process that reads messages sets `link.connection`."""

    def on_open(self, link: Link) -> None:
        """A link that this process asked for is open."""

    def on_bytes(self, link: Link, data: bytes) -> None:
        """Bytes came; by default they go to the link's connection, and its events to `on_event`."""
        connection = link.connection
        if connection is not None:
            connection.receive_data(data)
            for event in connection.events():
                self.on_event(link, event)

    def on_event(self, link: Link, event: Event) -> None:
        """The link's connection read a message, or could not."""

    def on_close(self, link: Link) -> None:
        """The other side closed the link, it was lost, or it could not be opened."""

    def on_timer(self, key: str) -> None:
        """A timer of this process is due."""

    def positions(self) -> Mapping[tuple[str, str, int], int]:
        """The partitions (group, topic, number) that it fetches now, each with the next offset."""
        return {}

    def consumed(self, partition: tuple[str, str, int], offset: int) -> None:
        """Its application has consumed a partition up to before this offset."""

    def on_fault(self, kind: str, words: tuple[str, ...]) -> None:
        """A fault of the plan that only this process can carry out."""
