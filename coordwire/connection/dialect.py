"""What a connection needs of a protocol other than Kafka's.

Strategy: `Connection` takes such a protocol as an object, and asks it for the endpoint of its side, so that
this package knows none of them. `coordwire.designs.dialects` has those that there are.
"""

from __future__ import annotations

from typing import Literal, Protocol

from coordwire.connection.endpoint import Endpoint

__all__ = ["AnyDialect", "Side"]

Side = Literal["client", "server"]


class AnyDialect(Protocol):
    """A protocol that a connection uses instead of Kafka's."""

    def endpoint(self, side: Side, *, strict: bool) -> Endpoint:
        """A new connection's endpoint."""
