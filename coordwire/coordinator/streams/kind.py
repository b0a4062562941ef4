"""Streams groups as a shard has them beside other kinds: records, listing, commits, expiry.

Members commit and fetch in their epochs. A commit of an older epoch counts while the member has had the task
of the partition since that epoch or longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from coordwire.coordinator.member_epochs import check_version, committing_member, fetching_member
from coordwire.coordinator.model.offsets import CommittedOffset
from coordwire.coordinator.model.streams_group import StreamsGroupModel
from coordwire.coordinator.model.streams_member import StreamsMember
from coordwire.coordinator.model.streams_topology import StreamsTopology
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import GroupCommit, GroupKind, PartitionCheck, State
from coordwire.coordinator.streams import sessions
from coordwire.coordinator.streams.records import streams_tombstones
from coordwire.coordinator.streams.replay import STREAMS_KEYS, replay_streams_group
from coordwire.enums import ErrorCode, StreamsMemberState
from coordwire.logs import LogRecord
from coordwire.messages.list_groups import ListedGroup

__all__ = ["StreamsKind"]


class StreamsKind(GroupKind[StreamsGroupModel]):
    """Groups of KIP-1071's protocol."""

    name = StreamsGroupModel.kind
    record_keys = STREAMS_KEYS

    def replay(self, state: State, key: object, value: object) -> None:
        replay_streams_group(state, key, value)

    def resume(self, state: State, group: StreamsGroupModel) -> None:
        """Begin members' sessions again, and their time to give up tasks."""
        for member in group.members.values():
            sessions.begin_session(state, group.group_id, member.member_id)
            if member.state is StreamsMemberState.UNREVOKED_TASKS:
                sessions.limit_revocation(state, group.group_id, member)

    def list_entry(self, group: StreamsGroupModel) -> ListedGroup:
        return ListedGroup(
            group_id=group.group_id, protocol_type=self.name, group_state=group.committed_state().value,
            group_type=self.name,
        )  # fmt: skip

    def state_filter(self, state: str) -> str:
        return "not_ready" if state == "NotReady" else super().state_filter(state)

    def tombstones(self, state: State, group: StreamsGroupModel) -> list[LogRecord]:
        sessions.cancel_initial_delay(state, group.group_id)
        return streams_tombstones(group)

    def topics_changed(self, group: StreamsGroupModel, names: Iterable[str]) -> None:
        if group.subscribes_to_any(names):
            group.refresh.request()

    # --- offsets ---

    def validate_commit(
        self, state: State, group: StreamsGroupModel, commit: GroupCommit
    ) -> PartitionCheck | None:
        epoch = commit.generation
        member = committing_member(group, commit)
        if member is None:
            return None
        check_version(commit)
        if not member.is_placed:
            raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
        if epoch == member.epoch:
            return None
        if epoch > member.epoch or group.topology is None:
            raise _stale()
        return _check_of_older_epoch(group.topology, member, epoch)

    def validate_fetch(
        self, group: StreamsGroupModel, member_id: str | None, epoch: int, *, stable: bool
    ) -> None:
        member = fetching_member(group, member_id, epoch, stable=stable)
        if member is None:
            return
        if not member.is_placed:
            raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
        if member.epoch != epoch:
            raise _stale()

    def retention_start(self, group: StreamsGroupModel, committed: CommittedOffset) -> int:
        return committed.committed_at


def _stale() -> OperationRefused:
    return OperationRefused(ErrorCode.STALE_MEMBER_EPOCH)


def _check_of_older_epoch(topology: StreamsTopology, member: StreamsMember, epoch: int) -> PartitionCheck:
    no_tasks: Mapping[int, int] = {}

    def check(topic: str, topic_id: UUID, partition: int) -> None:
        part_id = topology.sources.get(topic)
        if part_id is None:
            raise _stale()
        since = member.tasks.active.get(part_id, no_tasks).get(partition)
        if since is None:
            since = member.revoking.active.get(part_id, no_tasks).get(partition)
        if since is None or epoch < since:
            raise _stale()

    return check
