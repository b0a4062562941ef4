"""Share groups as a shard has them beside other kinds: records, sessions, listing. They have no offsets of
consumers: requests for these are refused."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from coordwire.codec import Message
from coordwire.coordinator.model.offsets import CommittedOffset
from coordwire.coordinator.model.share_group import ShareGroupModel
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.share.heartbeat import keep_alive
from coordwire.coordinator.share.partition_states import deletion_of_group, without_topics
from coordwire.coordinator.share.records import group_tombstones
from coordwire.coordinator.share.replay import SHARE_KEYS, replay_share_group
from coordwire.coordinator.state import GroupCommit, GroupKind, State
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages.list_groups import ListedGroup

__all__ = ["ShareKind"]


class ShareKind(GroupKind[ShareGroupModel]):
    """Groups of KIP-932's protocol."""

    name = ShareGroupModel.kind
    record_keys = SHARE_KEYS
    expires = False

    def replay(self, state: State, key: object, value: object) -> None:
        replay_share_group(state, key, value)

    def resume(self, state: State, group: ShareGroupModel) -> None:
        """Restart the members' sessions."""
        timeout_ms = state.config.of_share_group(group.group_id).session_timeout_ms
        for member in group.members.values():
            keep_alive(state, group.group_id, member.member_id, timeout_ms)

    def list_entry(self, group: ShareGroupModel) -> ListedGroup:
        return ListedGroup(
            group_id=group.group_id, protocol_type=self.name, group_state=group.committed_state.value,
            group_type=self.name,
        )  # fmt: skip

    def deletion_error(self, group: ShareGroupModel) -> int:
        return 0 if group.is_empty else int(ErrorCode.NON_EMPTY_GROUP)

    def deletion_request(
        self, state: State, group: ShareGroupModel, records: list[LogRecord]
    ) -> Message | None:
        return deletion_of_group(state, group, records)

    def without_topics(self, state: State, group: ShareGroupModel, topics: set[UUID]) -> LogRecord | None:
        return without_topics(state, group, topics)

    def tombstones(self, state: State, group: ShareGroupModel) -> list[LogRecord]:
        return group_tombstones(group)

    def topics_changed(self, group: ShareGroupModel, names: Iterable[str]) -> None:
        if any(name in group.topics for name in names):
            group.refresh.request()

    # --- offsets of consumers ---

    def validate_commit(self, state: State, group: ShareGroupModel, commit: GroupCommit) -> None:
        raise _not_a_consumer_group(group)

    def validate_fetch(
        self, group: ShareGroupModel, member_id: str | None, epoch: int, *, stable: bool
    ) -> None:
        raise _not_a_consumer_group(group)

    def validate_deletion_of_offsets(self, group: ShareGroupModel) -> None:
        raise _not_a_consumer_group(group)

    def retention_start(self, group: ShareGroupModel, committed: CommittedOffset) -> None:
        """None: a share group has no such offsets."""


def _not_a_consumer_group(group: ShareGroupModel) -> OperationRefused:
    return OperationRefused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} is not a consumer group.")
