"""A member of a classic group."""

from __future__ import annotations

from dataclasses import dataclass

from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.reply import Reply
from coordwire.enums import ErrorCode

__all__ = ["ClassicMember", "Protocols"]

Protocols = tuple[tuple[str, bytes], ...]
"""Assignment protocols with the member's metadata for each, most preferred first."""


@dataclass(slots=True, eq=False)
class ClassicMember:
    """A member and the requests of its that are parked.

    instance_id: a static member's name, None for a dynamic one. new: it has not yet been through a completed
    join phase, so that its client knows no member id to send heartbeats with.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes = b""
    parked_join: Reply | None = None
    parked_sync: Reply | None = None
    new: bool = False

    @property
    def satisfies_heartbeat(self) -> bool:
        """Whether its silence is not a failure: it waits for an answer. A new member's patience has a
        limit."""
        return not self.new and (self.parked_join is not None or self.parked_sync is not None)

    def metadata(self, protocol: str | None) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
