"""The common part of the models of all kinds of groups."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import ClassVar, Protocol

from coordwire.errors import counted


class MemberIds(Protocol):
    """The ids of a group's members; each kind's model gives the members for them."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[str]: ...


class GroupModel(Protocol):
    """A group of any kind, to look at.

    kind: its type, as ListGroups names it. becomes_classic: whether a member of the classic protocol may join
    the group while it is empty, which makes it a classic group.
    """

    kind: ClassVar[str]
    becomes_classic: ClassVar[bool]

    @property
    def group_id(self) -> str: ...

    @property
    def members(self) -> MemberIds: ...

    @property
    def state(self) -> Enum:
        """The state, whose value is its name in descriptions."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members, so that it can be deleted."""
        ...

    @property
    def is_dead(self) -> bool:
        """Whether the coordinator gave the group up."""
        ...

    def is_subscribed(self, topic: str) -> bool:
        """Whether a member reads this topic, so that its offsets neither expire nor can be deleted."""
        ...


def group_repr(group: GroupModel) -> str:
    """The `repr` of all kinds' models."""
    members = counted(len(group.members), "member")
    return f"<{group.kind} group {group.group_id!r}: {group.state.value}, {members}>"


_INTERVAL_MS = (1 << 31) - 1


class MetadataRefresh:
    """The time at which a group looks at its topics' metadata again.

    It is not under the shard's snapshots: after a failed append a group looks once more than it has to.

    at: the time of the next refresh, in milliseconds. epoch: the group's after the last one.
    """

    __slots__ = ("at", "epoch")

    def __init__(self) -> None:
        self.request()

    def request(self) -> None:
        """Let the next heartbeat refresh the metadata."""
        self.at = self.epoch = 0

    def is_due(self, now: int, epoch: int) -> bool:
        """epoch: the group's now; it is smaller than after the last refresh if the append of that failed."""
        return now >= self.at or epoch < self.epoch

    def complete(self, now: int, epoch: int) -> None:
        self.at, self.epoch = now + _INTERVAL_MS, epoch
