"""A member of a streams group (KIP-1071), as its requests and its records describe it.

Rules: a member that a cut log has a part of only lacks `is_described` (its metadata) or `is_placed` (its
tasks); no heartbeat of it succeeds, as in Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from coordwire.coordinator.model.tasks import NO_OWNED_TASKS, OwnedTasks
from coordwire.enums import StreamsMemberState

__all__ = ["LEFT_STREAMS", "StreamsGroupState", "StreamsMember", "UserEndpoint"]

LEFT_STREAMS = -1
"""The epoch of a member that leaves."""


class StreamsGroupState(Enum):
    """The states of a group; NOT_READY while its topology lacks topics, or they don't fit."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class UserEndpoint(NamedTuple):
    """Where a member serves interactive queries."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """rebalance_timeout_ms: to give up tasks. process_id: of the process, which may have several members.
    revoking: the tasks that it has to give up.
    """

    member_id: str
    epoch: int = 0
    previous_epoch: int = 0
    state: StreamsMemberState = StreamsMemberState.STABLE
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: UserEndpoint | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    tasks: OwnedTasks = NO_OWNED_TASKS
    revoking: OwnedTasks = NO_OWNED_TASKS
    is_described: bool = True
    is_placed: bool = True

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.is_placed and self.state is StreamsMemberState.STABLE and self.epoch == assignment_epoch
