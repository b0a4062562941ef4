"""Share groups (KIP-932), whose protocol the coordinator does not speak.

A log may hold them. They are remembered, listed and deleted, and their ids are refused to groups of other
kinds as by Apache Kafka: a log in which two kinds share an id can't be loaded again. Rules: members have no
sessions here, since they can't send heartbeats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, TypeVar

from coordwire.codec import Message
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.consumer_member import LEFT
from coordwire.coordinator.model.offsets import CommittedOffset
from coordwire.coordinator.refusal import OperationRefused, contradiction
from coordwire.coordinator.snapshots import SnapshotDict, Snapshots
from coordwire.coordinator.state import GroupCommit, GroupKind, State
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
)
from coordwire.messages.list_groups import ListedGroup

__all__ = ["SHARE_GROUPS", "ForeignGroup"]

_NEW_MEMBER = 0
_TARGET, _EPOCHS = "target", "epochs"


# --- the models ---


class ForeignState(Enum):
    """A group's state, by the name that ListGroups gives it."""

    EMPTY = "Empty"
    STABLE = "Stable"


class ForeignGroup:
    """A group as far as its records say.

    members: the epoch and the state of each, by id; targets: the ids of members that have one; values: the
    other records, by their part of the group.
    """

    kind: ClassVar[str]
    becomes_classic: ClassVar[bool]

    __slots__ = ("group_id", "members", "targets", "values")

    def __init__(self, group_id: str, snapshots: Snapshots) -> None:
        self.group_id = group_id
        self.members: SnapshotDict[str, tuple[int, int]] = SnapshotDict(snapshots)
        self.targets: SnapshotDict[str, bool] = SnapshotDict(snapshots)
        self.values: SnapshotDict[str, Any] = SnapshotDict(snapshots)

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def is_dead(self) -> bool:
        return False

    def is_subscribed(self, topic: str) -> bool:
        return False

    @property
    def state(self) -> ForeignState:
        return self._state([member for _, member in self.members.items()], self.values.get)

    @property
    def committed_state(self) -> ForeignState:
        """The state as of the last durable write."""
        return self._state([member for _, member in self.members.committed_items()], self.values.committed)

    def _state(self, members: list[tuple[int, int]], value: Callable[[str], Any]) -> ForeignState:
        return ForeignState.STABLE if members else ForeignState.EMPTY


class ForeignShareGroup(ForeignGroup):
    """A share group."""

    kind: ClassVar[str] = "share"
    becomes_classic: ClassVar[bool] = False
    __slots__ = ()


M = TypeVar("M", bound=ForeignGroup)


# --- the kinds ---


class ForeignKind(GroupKind[M]):
    """A kind of which only the log speaks.

    model: makes a group. replaces_simple: whether a group may take the place of one that a commit made.
    parts: by the type of a record's key, the part of the group that it describes. ends: the types and keys of
    the tombstones by which a group without members ends.
    """

    model: ClassVar[type[ForeignGroup]]
    replaces_simple: ClassVar[bool]
    parts: ClassVar[Mapping[type[Message], str]]
    ends: ClassVar[Sequence[tuple[int, type[Message]]]]

    def replay(self, state: State, key: Any, value: Any) -> None:
        part = self.parts[type(key)]
        group = state.groups.get(key.group_id)
        if group is None and value is None:
            return
        if not isinstance(group, ForeignGroup) or group.kind != self.name:
            is_simple = isinstance(group, ClassicGroupModel) and group.is_simple
            if group is not None and not (self.replaces_simple and is_simple):
                raise contradiction()
            group = self.model(key.group_id, state.snapshots)
            state.groups[key.group_id] = group
        if part == "member":
            self._replay_member(group, key.member_id, value)
        elif part == "current":
            self._replay_current(group, key.member_id, value)
        elif part == "member's target" and value is not None:
            group.targets[key.member_id] = True
        elif part == "member's target":
            group.targets.pop(key.member_id)
        elif value is not None:
            group.values[part] = value
        else:
            self._end(state, group, part)

    def _replay_member(self, group: ForeignGroup, member_id: str, value: Message | None) -> None:
        member = group.members.get(member_id)
        if value is not None:
            group.members[member_id] = member or (_NEW_MEMBER, 0)
        elif member is not None:
            if member[0] != LEFT or member_id in group.targets:
                raise contradiction()
            group.members.pop(member_id)

    def _replay_current(self, group: ForeignGroup, member_id: str, value: Any) -> None:
        if value is not None:
            group.members[member_id] = value.member_epoch, value.state
        elif member_id in group.members:
            group.members[member_id] = LEFT, 0

    def _end(self, state: State, group: ForeignGroup, part: str) -> None:
        """Replay the tombstone of a record of the whole group."""
        if part == _EPOCHS:
            if group.members or group.targets or _TARGET in group.values:
                raise contradiction()
            state.groups.pop(group.group_id)
        elif part == _TARGET and group.targets:
            raise contradiction()
        else:
            group.values.pop(part)

    def resume(self, state: State, group: M) -> None:
        """Do nothing: see the module."""

    def list_entry(self, group: M) -> ListedGroup:
        return ListedGroup(
            group_id=group.group_id,
            protocol_type=self.name,
            group_state=group.committed_state.value,
            group_type=self.name,
        )

    def tombstones(self, state: State, group: M) -> list[LogRecord]:
        return [
            LogRecord(log="consumer_offsets", type=number, key=key(group_id=group.group_id))  # type: ignore[call-arg]
            for number, key in self.ends
        ]


class _ShareKind(ForeignKind[ForeignShareGroup]):
    name = ForeignShareGroup.kind
    model = ForeignShareGroup
    replaces_simple = False
    expires = False
    parts: ClassVar[Mapping[type[Message], str]] = {
        ShareGroupMemberMetadataKey: "member",
        ShareGroupMetadataKey: _EPOCHS,
        ShareGroupTargetAssignmentMetadataKey: _TARGET,
        ShareGroupTargetAssignmentMemberKey: "member's target",
        ShareGroupCurrentMemberAssignmentKey: "current",
        ShareGroupStatePartitionMetadataKey: "partitions",
    }
    record_keys = tuple(parts)
    ends = (
        (12, ShareGroupTargetAssignmentMetadataKey),
        (15, ShareGroupStatePartitionMetadataKey),
        (11, ShareGroupMetadataKey),
    )

    def deletion_error(self, group: ForeignShareGroup) -> int:
        return 0 if group.is_empty else int(ErrorCode.NON_EMPTY_GROUP)

    def validate_commit(self, state: State, group: ForeignShareGroup, commit: GroupCommit) -> None:
        raise self._not_a_consumer_group(group)

    def validate_fetch(
        self, group: ForeignShareGroup, member_id: str | None, epoch: int, *, stable: bool
    ) -> None:
        raise self._not_a_consumer_group(group)

    def validate_deletion_of_offsets(self, group: ForeignShareGroup) -> None:
        raise self._not_a_consumer_group(group)

    def retention_start(self, group: ForeignShareGroup, committed: CommittedOffset) -> None:
        """None: a share group has no offsets of this kind."""

    @staticmethod
    def _not_a_consumer_group(group: ForeignShareGroup) -> OperationRefused:
        return OperationRefused(
            ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} is not a consumer group."
        )


SHARE_GROUPS = _ShareKind()
