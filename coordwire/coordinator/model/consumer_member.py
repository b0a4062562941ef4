"""A member of a consumer group (KIP-848) and its states.

A member is a value: the contents of its requests, and its partitions. It is replaced as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from coordwire.coordinator.model.assignment import NOTHING_OWNED, Owned
from coordwire.coordinator.model.classic_group import Protocols

__all__ = [
    "LEFT",
    "LEFT_FOR_NOW",
    "ClassicSide",
    "ConsumerGroupState",
    "ConsumerMember",
    "MemberState",
]


# --- states ---


class ConsumerGroupState(Enum):
    """A group's state, by the name that ConsumerGroupDescribe gives it."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class MemberState(Enum):
    """The progress of a member towards its target, by the number in records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127

    @classmethod
    def of(cls, number: int) -> MemberState:
        """The state of a record, which a newer Kafka may have written."""
        return cls(number) if number in (0, 1, 2) else cls.UNKNOWN


# --- the member ---

LEFT = -1
LEFT_FOR_NOW = -2
"""The epochs of a member that left, and of a static one that left for now."""


@dataclass(frozen=True, slots=True)
class ClassicSide:
    """The JoinGroup of a member that uses the classic protocol in a consumer group."""

    session_timeout_ms: int
    protocols: Protocols


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """A member.

    epoch: of the target that it has reached; previous_epoch: the epoch before that. topics: names, sorted.
    named: the names in the order of the member's request, until the log has them. regex: a pattern, empty or
    None without one. owned: with the epoch in which each partition was assigned. revoking: partitions that
    it has to give up and has not yet. classic: None where it uses KIP-848.
    """

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    regex: str | None = ""
    assignor: str | None = None
    owned: Owned = field(default_factory=lambda: NOTHING_OWNED)
    revoking: Owned = field(default_factory=lambda: NOTHING_OWNED)
    classic: ClassicSide | None = None
    named: tuple[str, ...] = field(default=(), compare=False)

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch
