"""A member of a consumer group: what it said of itself, and what it owns. A value, replaced as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field

from coordwire.coordinator.model.assignment import NOTHING_OWNED, Owned
from coordwire.coordinator.model.classic_member import Protocols
from coordwire.coordinator.model.consumer_states import MemberState

__all__ = ["LEFT", "LEFT_FOR_NOW", "ClassicSide", "ConsumerMember"]

LEFT = -1
LEFT_FOR_NOW = -2
"""Epochs of a member that is gone, and of a static one that will be back."""


@dataclass(frozen=True, slots=True)
class ClassicSide:
    """What a member said that uses the classic protocol in a consumer group."""

    session_timeout_ms: int
    protocols: Protocols


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """A member.

    epoch: of the target that it has come to; previous_epoch: the one before. topics: names, sorted. named:
    the same as the member's request lists them, until the log has them. regex: a pattern, empty or None
    without one. owned: with the epoch in which each partition was assigned. revoking: partitions that it
    shall give up and has not yet. classic: None where it uses KIP-848.
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
