"""Invariants of failure detection: who is silent for too long is out, and not before (S8, S10, S27, P7).

Strategy: note when each member was last heard of and what limits it has; then look at who is still there when
its time is over, and at who was removed by a timer before.
"""

from __future__ import annotations

from typing import Any

from coordwire.coordinator.model.classic_group import ClassicGroupModel, ClassicMember
from coordwire.coordinator.model.consumer_group import (
    LEFT_FOR_NOW,
    ConsumerGroupModel,
    ConsumerMember,
    MemberState,
)
from coordwire.enums import ErrorCode
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from tests.coordinator.invariants.watch import Call, Checker

_CONTACTS = (
    ConsumerGroupHeartbeatRequest, HeartbeatRequest, JoinGroupRequest, SyncGroupRequest, OffsetCommitRequest,
)  # fmt: skip


class Sessions(Checker):
    """S27: a member that is silent longer than its session, or keeps partitions that it shall give up longer
    than its rebalance time-out, is fenced; and none is fenced before (which an old timer of an earlier term
    would do: P7). A write that failed is tried again 500 ms later, which is allowed for. A heartbeat counts
    when it is handled, although its answer may wait for the log.

    A removal by a timer whose write takes longer than a write may last counts as failed in Kafka, although
    its records stay: the timer is set again, in place of the session of a member that joined again meanwhile.

    Kafka gives a classic member of a consumer group its session once its JoinGroup is durable; one whose
    write took longer than the request may last is a member without any timer until it asks again. Nor does
    Kafka take timers back when an append fails: a member may then have none, or one of what was taken back,
    until it is heard of again in another epoch."""

    name = "S27"
    RETRY = SLACK = 500

    def __init__(self, shard: Any) -> None:
        super().__init__(shard)
        self._contact: dict[tuple[str, str], int] = {}
        self._renewed: dict[tuple[str, str], int] = {}
        self._revoking: dict[tuple[str, str], tuple[int, int, int]] = {}
        self._members: dict[tuple[str, str], tuple[int, int]] = {}
        self._limits: dict[str, tuple[int, int]] = {}
        self._joining: set[tuple[str, str]] = set()
        self._ended: dict[tuple[str, str], int] = {}
        self._unsure: dict[tuple[str, str], int] = {}
        self._moving = False

    def loaded(self) -> None:
        self.unloaded()
        self._note_members()
        self._renewed = dict.fromkeys(self._members, self.shard.now)

    def unloaded(self) -> None:
        self._members = {}
        self._contact.clear()
        self._renewed.clear()
        self._revoking.clear()
        self._joining.clear()
        self._ended.clear()
        self._unsure.clear()

    def reverted(self) -> None:
        self._members = {}
        for group in self.shard.all_groups():
            if isinstance(group, ConsumerGroupModel):
                for member in group.members.values():
                    self._unsure[group.group_id, member.member_id] = member.epoch

    def before(self, call: Call) -> None:
        self._moving = False
        request = call.request
        if isinstance(request, JoinGroupRequest):
            self._joining.add((request.group_id, request.member_id))
        elif isinstance(request, ConsumerGroupHeartbeatRequest) and request.member_epoch >= 0:
            self._contact[request.group_id, request.member_id] = call.now

    def moving(self) -> None:
        self._moving = True

    def answered(self, call: Call, response: Any) -> None:
        request = call.request
        if getattr(response, "error_code", 0) == ErrorCode.UNKNOWN_SERVER_ERROR:
            self.reverted()  # a record that can't be written: the shard took it back by itself
        if not isinstance(request, _CONTACTS):
            return
        key = request.group_id, getattr(response, "member_id", None) or request.member_id
        if not isinstance(request, ConsumerGroupHeartbeatRequest):
            self._contact[key] = max(self.shard.now, self._contact.get(key, 0))
        if isinstance(request, OffsetCommitRequest) or response.error_code:
            return
        self._joining -= {key, (request.group_id, request.member_id)}
        group = self.shard.consumer(key[0])
        member = None if group is None else group.members.get(key[1])
        if member is not None and self._unsure.get(key) != member.epoch:
            self._unsure.pop(key, None)
        if isinstance(request, ConsumerGroupHeartbeatRequest) and request.member_epoch >= 0:
            self._renewed[key] = call.now

    def settled(self) -> None:
        now = self.shard.now
        known, revoking, unsure = self._members, self._revoking, self._unsure
        self._note_members()
        if self._moving:
            for key, (session, _) in known.items():
                group = self.shard.consumer(key[0])
                if key in self._members or group is None:
                    continue
                ended_again = self._ends_again(key)
                self._ended[key] = now
                if key in unsure or ended_again:
                    continue
                silent = now - self._renewed.get(key, -1 << 60)
                since, least, _ = revoking.get(key, (now, 1 << 60, 0))
                if silent < session and now - since < least:
                    self.wrong(f"{key[1]} of {key[0]} is out {silent} ms after it was heard of ({session})")
        elif not self.shard.is_settled:
            return
        for key, (_, session) in self._members.items():
            due = self.shard.next_deadline()
            if due is not None and due <= now:
                continue
            group = self.shard.consumer(key[0])
            if group is None or key in self._joining or key in self._unsure:
                continue
            if now - self._contact.get(key, now) > session + self.SLACK and not self._retried(group, key[1]):
                self.wrong(
                    f"{key[1]} of {key[0]} is still in, {now - self._contact[key]} ms after it was heard of"
                )
            if key in self._revoking:
                since, _, most = self._revoking[key]
                if now - since > most + self.SLACK:
                    self.wrong(f"{key[1]} of {key[0]} keeps its partitions since {since}")

    def _ends_again(self, key: tuple[str, str]) -> bool:
        """Whether a timer that removed a member before the member's last heartbeat may be set again since."""
        if key not in self._ended:
            return False
        given_up: int = self._ended[key] + self.shard.state.config.write_timeout_ms
        return self._renewed.get(key, 0) <= given_up <= self.shard.now - self.RETRY

    def _retried(self, group: ConsumerGroupModel, member_id: str) -> bool:
        """Whether the end of a member can't be written, and is tried again and again: without it all others
        were classic members, of which one's metadata can't be read."""
        due = self.shard.deadlines().get(f"session-timeout-{group.group_id}-{member_id}")
        return (
            due is not None
            and due <= self.shard.now + self.SLACK
            and any(member.classic is not None for member in group.members.values())
        )

    def _note_members(self) -> None:
        now, members, revoking = self.shard.now, {}, {}
        for group in self.shard.all_groups():
            if not isinstance(group, ConsumerGroupModel):
                continue
            session = self.shard.state.config.of_consumer_group(group.group_id).session_timeout_ms
            least, most = self._limits.get(group.group_id, (session, session))
            least, most = self._limits[group.group_id] = min(least, session), max(most, session)
            for member in group.members.values():
                key = group.group_id, member.member_id
                if key not in self._members:
                    self._contact[key] = now  # what it asked before it was a member does not count
                members[key] = self._session(member, least, most, self._members.get(key))
                revokes = member.state is MemberState.UNREVOKED_PARTITIONS and member.epoch != LEFT_FOR_NOW
                if revokes and member.classic is None:
                    revoking[key] = self._revocation(member, self._revoking.get(key))
        self._members, self._revoking = members, revoking
        self._unsure = {key: self._unsure[key] for key in self._unsure if key in members}
        if len(self._contact) > 4 * len(members) + 64:
            self._contact = {key: self._contact[key] for key in members}

    def _session(
        self, member: ConsumerMember, least: int, most: int, known: tuple[int, int] | None
    ) -> tuple[int, int]:
        """The least and the greatest time that a member may be silent. A classic one's join and sync have
        limits of their own; what it says holds from the next timer on."""
        if member.classic is None:
            return least, most
        own = member.classic.session_timeout_ms
        limits = min(own, max(member.rebalance_timeout_ms, 0)), max(own, most)
        return limits if known is None else (min(limits[0], known[0]), max(limits[1], known[1]))

    def _revocation(self, member: ConsumerMember, known: tuple[int, int, int] | None) -> tuple[int, int, int]:
        """Since when a member shall give up partitions, and its limits: what it says meanwhile may not hold
        for this revocation."""
        limit = member.rebalance_timeout_ms
        since, least, most = known or (self.shard.now, limit, limit)
        return since, min(least, limit), max(most, limit)


class ClassicSessions(Checker):
    """S10, the session's part: a classic member that is not parked and silent longer than its session is out,
    and none is out before, but for a rebalance that it did not join or sync."""

    name = "S10"
    SLACK = 1

    def __init__(self, shard: Any) -> None:
        super().__init__(shard)
        self._contact: dict[tuple[str, str], int] = {}
        self._known: dict[str, tuple[ClassicGroupModel, dict[str, Any]]] = {}
        self._moving = False

    def loaded(self) -> None:
        self._contact.clear()
        self._known.clear()

    unloaded = loaded

    def reverted(self) -> None:
        self._known.clear()  # the static member whose replacement failed is the one before again

    def before(self, call: Call) -> None:
        self._moving = False

    def moving(self) -> None:
        self._moving = True

    def answered(self, call: Call, response: Any) -> None:
        request = call.request
        if not isinstance(request, _CONTACTS) or isinstance(request, ConsumerGroupHeartbeatRequest):
            return
        parks = isinstance(request, JoinGroupRequest | SyncGroupRequest)
        if isinstance(request, OffsetCommitRequest):
            error = any(partition.error_code for topic in response.topics for partition in topic.partitions)
        else:
            error = response.error_code and response.error_code != ErrorCode.REBALANCE_IN_PROGRESS
        if error or (parks and self.shard.handling is call):
            return
        member_id = getattr(response, "member_id", None) or request.member_id
        self._contact[request.group_id, member_id] = self.shard.now if parks else call.now

    def settled(self) -> None:
        now, known, self._known = self.shard.now, self._known, {}
        for group in self.shard.all_groups():
            if not isinstance(group, ClassicGroupModel):
                continue
            self._known[group.group_id] = (
                group,
                {
                    member.member_id: (
                        member.session_timeout_ms,
                        member.new or member.member_id in group.pending_syncs,
                        group.state,
                        _is_parked(member),
                    )
                    for member in group.members.values()
                },
            )
            before = known.get(group.group_id)
            if self._moving and before is not None and before[0] is group and group.members:
                self._early(group, before[1])
            due = self.shard.next_deadline()
            if not self._moving and (due is None or due > now) and self.shard.is_settled:
                self._late(group)

    def _early(self, group: ClassicGroupModel, before: dict[str, Any]) -> None:
        for member_id, (session, limited, state, parked) in before.items():
            if member_id in group.members or limited:
                continue
            if parked and self.shard.is_settled:
                self.wrong(f"{member_id} of {group.group_id} is out while its request is parked")
            silent = self.shard.now - self._contact.get((group.group_id, member_id), -1 << 60)
            if state.value == "Stable" and silent < session:
                limit = max((member.rebalance_timeout_ms for member in group.members.values()), default=0)
                if silent < min(session, limit or session):
                    self.wrong(f"{member_id} of {group.group_id} is out {silent} ms after it was heard of")

    def _late(self, group: ClassicGroupModel) -> None:
        timers = self.shard.state.timers
        for member in group.members.values():
            if _is_parked(member):
                continue
            if not timers.is_set(("heartbeat", group.group_id, member.member_id)):
                self.wrong(
                    f"{member.member_id} of {group.group_id} ({group.state}) has no session that can end"
                )


def _is_parked(member: ClassicMember) -> bool:
    return member.parked_join is not None or member.parked_sync is not None


TIMING = [Sessions, ClassicSessions]
