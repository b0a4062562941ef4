"""Consumer groups as a shard has them beside other kinds: records, listing, commits, expiry.

Members may commit and fetch in their epochs (KIP-848). A commit of an older epoch counts while the
member has owned the partition since that epoch or longer (KIP-1251). A member of the classic protocol gets
ILLEGAL_GENERATION where others get STALE_MEMBER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from coordwire.coordinator.consumer import sessions
from coordwire.coordinator.consumer.replay import CONSUMER_KEYS, replay_consumer_group
from coordwire.coordinator.member_epochs import check_version, committing_member, fetching_member
from coordwire.coordinator.model.classic_group import CONSUMER_PROTOCOL_TYPE
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.coordinator.model.consumer_member import ConsumerMember, MemberState
from coordwire.coordinator.model.offsets import CommittedOffset
from coordwire.coordinator.records import consumer_tombstones
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import GroupCommit, GroupKind, PartitionCheck, State
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages.list_groups import ListedGroup

__all__ = ["ConsumerKind"]


class ConsumerKind(GroupKind[ConsumerGroupModel]):
    """Groups of KIP-848's protocol."""

    name = ConsumerGroupModel.kind
    record_keys = CONSUMER_KEYS

    def replay(self, state: State, key: object, value: object) -> None:
        replay_consumer_group(state, key, value)

    def resume(self, state: State, group: ConsumerGroupModel) -> None:
        """Begin members' sessions again, and their time to give up partitions."""
        for member in group.members.values():
            sessions.keep_alive(state, group.group_id, member.member_id)
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                sessions.limit_revocation(state, group.group_id, member)

    def list_entry(self, group: ConsumerGroupModel) -> ListedGroup:
        return ListedGroup(
            group_id=group.group_id, protocol_type=CONSUMER_PROTOCOL_TYPE,
            group_state=group.committed_facts()[0].value, group_type=self.name,
        )  # fmt: skip

    def tombstones(self, state: State, group: ConsumerGroupModel) -> list[LogRecord]:
        return consumer_tombstones(group)

    def topics_changed(self, group: ConsumerGroupModel, names: Iterable[str]) -> None:
        if group.subscribes_to_any(names):
            group.refresh.request()

    # --- offsets ---

    def validate_commit(
        self, state: State, group: ConsumerGroupModel, commit: GroupCommit
    ) -> PartitionCheck | None:
        epoch = commit.generation
        member = committing_member(group, commit)
        if member is None:
            return None
        if member.classic is None:
            check_version(commit)
        if epoch > member.epoch:
            raise _stale(member)
        return None if epoch == member.epoch else _check_of_older_epoch(member, epoch)

    def validate_fetch(
        self, group: ConsumerGroupModel, member_id: str | None, epoch: int, *, stable: bool
    ) -> None:
        member = fetching_member(group, member_id, epoch, stable=stable)
        if member is not None and member.epoch != epoch:
            raise _stale(member)

    def retention_start(self, group: ConsumerGroupModel, committed: CommittedOffset) -> int:
        return committed.committed_at


def _stale(member: ConsumerMember) -> OperationRefused:
    return OperationRefused(
        ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
    )


def _check_of_older_epoch(member: ConsumerMember, epoch: int) -> PartitionCheck:
    unowned: Mapping[int, int] = {}

    def check(topic: str, topic_id: UUID, partition: int) -> None:
        since = member.owned.get(topic_id, unowned).get(partition)
        if since is None:
            since = member.revoking.get(topic_id, unowned).get(partition)
        if since is None or epoch < since:
            raise _stale(member)

    return check
