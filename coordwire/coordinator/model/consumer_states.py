"""The states of a consumer group and of its members (KIP-848). They follow from epochs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

__all__ = ["CONSUMER_TRANSITIONS", "MEMBER_TRANSITIONS", "ConsumerGroupState", "MemberState"]


class ConsumerGroupState(Enum):
    """A group's state, by the name that ConsumerGroupDescribe gives it."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class MemberState(Enum):
    """How far a member has come towards its target, by the number that records have for it."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127

    @classmethod
    def of(cls, number: int) -> MemberState:
        """The state of a record, which may be a newer Kafka's."""
        return cls(number) if number in (0, 1, 2) else cls.UNKNOWN


CONSUMER_TRANSITIONS: Mapping[tuple[ConsumerGroupState, ConsumerGroupState], str] = {
    (ConsumerGroupState.EMPTY, ConsumerGroupState.ASSIGNING): "a member joins: the group's epoch rises",
    (ConsumerGroupState.ASSIGNING, ConsumerGroupState.RECONCILING): "a target is computed",
    (ConsumerGroupState.ASSIGNING, ConsumerGroupState.STABLE): "a target is computed that members have",
    (ConsumerGroupState.RECONCILING, ConsumerGroupState.STABLE): "the last member has come to it",
    (ConsumerGroupState.RECONCILING, ConsumerGroupState.ASSIGNING): "the group's epoch rises",
    (ConsumerGroupState.STABLE, ConsumerGroupState.ASSIGNING): "the group's epoch rises",
    (ConsumerGroupState.STABLE, ConsumerGroupState.RECONCILING): "a static member leaves for now (-2)",
    (ConsumerGroupState.ASSIGNING, ConsumerGroupState.EMPTY): "the last member leaves",
    (ConsumerGroupState.RECONCILING, ConsumerGroupState.EMPTY): "the last member leaves",
    (ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY): "the last member leaves",
}
"""How the state that follows from a group's epochs changes; one heartbeat may take a group several steps."""

MEMBER_TRANSITIONS: Mapping[tuple[MemberState, MemberState], str] = {
    (MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS): "its new target lacks what it owns",
    (MemberState.STABLE, MemberState.UNRELEASED_PARTITIONS): "others own what its new target has",
    (
        MemberState.UNREVOKED_PARTITIONS,
        MemberState.UNRELEASED_PARTITIONS,
    ): "it gave up, while others have not",
    (MemberState.UNREVOKED_PARTITIONS, MemberState.STABLE): "it gave up, and all of its target is free",
    (MemberState.UNRELEASED_PARTITIONS, MemberState.STABLE): "the last partition is free",
    (
        MemberState.UNRELEASED_PARTITIONS,
        MemberState.UNREVOKED_PARTITIONS,
    ): "a newer target lacks what it owns",
}
"""How far a member has come, and what takes it further."""
