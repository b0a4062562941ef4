"""A consumer group's timers: sessions, and how long a member may take to give up partitions, join or sync.

Rules: a timer whose records can't be written is tried again. It looks the group and the member up when it
fires, so that one of a group that was converted, or of a member that is gone, does nothing. Nor does one that
would convert a group which can't be: the member stays, without a session, as in Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Callable

from coordwire.coordinator.listener import Leaving
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.coordinator.model.consumer_member import ConsumerMember
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import NOTHING, Result, State
from coordwire.enums import ErrorCode

__all__ = ["MemberTimers", "cancel_timers", "find_consumer"]

Fence = Callable[[State, ConsumerGroupModel, ConsumerMember, Leaving], Result]
"""Removes a member from its group; the last says how it went."""

_NOTHING_TO_DO = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_MEMBER_ID)
_SESSION, _REVOCATION, _JOIN, _SYNC = "session-timeout", "rebalance-timeout", "join", "sync"


def find_consumer(state: State, group_id: str) -> ConsumerGroupModel | None:
    group = state.groups.get(group_id)
    return group if isinstance(group, ConsumerGroupModel) else None


def cancel_timers(state: State, group_id: str, member_id: str) -> None:
    """All timers of a member."""
    for kind in (_SESSION, _REVOCATION, _JOIN, _SYNC):
        state.timers.cancel((kind, group_id, member_id))


class MemberTimers:
    """The timers of consumer groups' members. fence: what happens to a member whose time is over."""

    def __init__(self, fence: Fence) -> None:
        self._fence = fence

    def _limit(
        self,
        state: State,
        kind: str,
        group_id: str,
        member_id: str,
        timeout_ms: int,
        epoch: int | None = None,
    ) -> None:
        def over() -> Result:
            group = find_consumer(state, group_id)
            member = None if group is None else group.members.get(member_id)
            if group is None or member is None or (epoch is not None and member.epoch != epoch):
                return NOTHING
            how: Leaving = "session_timeout" if kind == _SESSION else "not_rejoined"
            try:
                return self._fence(state, group, member, how)
            except OperationRefused as refusal:
                if refusal.code in _NOTHING_TO_DO:
                    return NOTHING
                raise

        state.set_timer_with_retry((kind, group_id, member_id), timeout_ms, over)

    def keep_alive(self, state: State, group_id: str, member_id: str, timeout_ms: int | None = None) -> None:
        """Begin a session anew; by default with the time-out that the group's members have."""
        if timeout_ms is None:
            timeout_ms = state.config.of_consumer_group(group_id).session_timeout_ms
        if not state.timers.renew((_SESSION, group_id, member_id), state.now + timeout_ms):
            self._limit(state, _SESSION, group_id, member_id, timeout_ms)

    def limit_revocation(self, state: State, group_id: str, member: ConsumerMember) -> None:
        """The member has its rebalance time-out to give up partitions and leave its epoch."""
        timeout_ms = member.rebalance_timeout_ms
        self._limit(state, _REVOCATION, group_id, member.member_id, timeout_ms, member.epoch)

    def unlimit_revocation(self, state: State, group_id: str, member_id: str) -> None:
        state.timers.cancel((_REVOCATION, group_id, member_id))

    def limit_join(self, state: State, group_id: str, member: ConsumerMember) -> None:
        """A classic member that shall join again has its rebalance time-out, from when it was first asked."""
        if not state.timers.is_set((_JOIN, group_id, member.member_id)):
            self._limit(state, _JOIN, group_id, member.member_id, member.rebalance_timeout_ms)

    def unlimit_join(self, state: State, group_id: str, member_id: str) -> None:
        state.timers.cancel((_JOIN, group_id, member_id))

    def limit_sync(self, state: State, group_id: str, member_id: str, timeout_ms: int) -> None:
        """A classic member that joined has this long to fetch its assignment."""
        self._limit(state, _SYNC, group_id, member_id, timeout_ms)

    def unlimit_sync(self, state: State, group_id: str, member_id: str) -> None:
        state.timers.cancel((_SYNC, group_id, member_id))
