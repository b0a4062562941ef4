"""The states of a consumer group and of its members (KIP-848). They follow from epochs."""

from __future__ import annotations

from enum import Enum

__all__ = ["ConsumerGroupState", "MemberState"]


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
