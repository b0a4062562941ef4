"""Invariants of classic groups' members: S7-S13 (KIP-345, -394, -814), by answers and state."""

from __future__ import annotations

from typing import Any

from coordwire.coordinator.model.classic_group import ClassicGroupModel, GroupState
from coordwire.coordinator.model.embedded_protocol import subscribed_topics
from coordwire.coordinator.refusal import OperationRefused
from coordwire.enums import ErrorCode
from coordwire.messages import (
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from tests.coordinator.invariants.classic import member_error
from tests.coordinator.invariants.watch import Call, Checker

_PREPARING, _COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE
_STABLE, _EMPTY, _DEAD = GroupState.STABLE, GroupState.EMPTY, GroupState.DEAD
_PENDING_ID_VERSION = 4
_SKIPS = 9


class StaticMembers(Checker):
    """S7: an instance id maps to one member id; a request of a replaced one is fenced.

    A member of a consumer group that names another instance id keeps the one before taken, as in Kafka."""

    name = "S7"

    def __init__(self, shard: Any) -> None:
        super().__init__(shard)
        self._instances: dict[tuple[str, str], str | None] = {}
        self._changed: set[tuple[str, str | None]] = set()

    def settled(self) -> None:
        for group in self.shard.all_groups():
            for member in group.members.values():
                key = group.group_id, member.member_id
                before = self._instances.setdefault(key, member.instance_id)
                if before != member.instance_id:
                    self._changed.add((group.group_id, before))
                    self._instances[key] = member.instance_id
            static = {
                name: group.static_members.get(name)
                for name in group.static_members
                if (group.group_id, name) not in self._changed
            }
            members = {
                member.instance_id: member.member_id
                for member in group.members.values()
                if member.instance_id is not None
                and (group.group_id, member.instance_id) not in self._changed
            }
            count = sum(member.instance_id in members for member in group.members.values())
            if static != members or count != len(members):
                self.wrong(f"instances {static} of {group.group_id}, members {members}")

    def before(self, call: Call) -> None:
        request = call.request
        if isinstance(request, JoinGroupRequest | SyncGroupRequest) and request.group_instance_id is not None:
            group = self.shard.classic(request.group_id)
            known = None if group is None else group.static_members.get(request.group_instance_id)
            if request.member_id and known is not None and known != request.member_id:
                call.facts["S7"] = known

    def answered(self, call: Call, response: Any) -> None:
        if "S7" in call.facts and not response.error_code:
            self.wrong(f"{call.request.member_id} is served, its instance is {call.facts['S7']}'s")


class PendingIds(Checker):
    """S8: an id given by MEMBER_ID_REQUIRED serves for a join within the session time-out, then not any
    more."""

    name = "S8"

    def __init__(self, shard: Any) -> None:
        super().__init__(shard)
        self._due: dict[tuple[str, str], tuple[int, ClassicGroupModel | None]] = {}

    def loaded(self) -> None:
        self._due.clear()

    def unloaded(self) -> None:
        self._due.clear()

    def before(self, call: Call) -> None:
        request = call.request
        if isinstance(request, JoinGroupRequest):
            due, group = self._due.get((request.group_id, request.member_id), (0, None))
            if self.shard.now < due and request.group_instance_id is None:
                call.facts["S8"] = group
        elif isinstance(request, LeaveGroupRequest):
            for member_id in [request.member_id, *(member.member_id for member in request.members)]:
                self._due.pop((request.group_id, member_id), None)

    def answered(self, call: Call, response: Any) -> None:
        request = call.request
        if not isinstance(request, JoinGroupRequest):
            return
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            current = self.shard.classic(request.group_id)
            if current is not None:
                due = self.shard.now + request.session_timeout_ms
                self._due[request.group_id, response.member_id] = due, current
            return
        key = request.group_id, request.member_id
        group = call.facts.get("S8")
        is_current = group is not None and group is self.shard.state.groups.get(request.group_id)
        if is_current and response.error_code == ErrorCode.UNKNOWN_MEMBER_ID and self.shard.handling is call:
            self.wrong(f"{key} was given, and is unknown when it joins in time")
        self._due.pop(key, None)

    def settled(self) -> None:
        now = self.shard.now
        for (group_id, member_id), (due, _) in list(self._due.items()):
            group = self.shard.classic(group_id)
            if group is None or member_id not in group.pending_joins:
                if group is None or member_id in group.members:
                    del self._due[group_id, member_id]
            elif now > due and self.shard.next_deadline() not in range(now + 1):
                self.wrong(f"{member_id} waits for its join beyond {due}")


class Parked(Checker):
    """S9: each parked Join or Sync has a member that waits with it, and a timer that will end the wait.

    A request that the same member sent again replaces the one before, which Kafka never answers; nor does
    it answer the SyncGroup of a member that another connection takes out of the group. A subscription that
    can't be read makes the completion fail: its group has no join timer then, until the next member joins,
    as Kafka's. A classic member's SyncGroup in a consumer group may never be answered for the same reason.
    """

    name = "S9"

    def __init__(self, shard: Any) -> None:
        super().__init__(shard)
        self._failed: dict[str, ClassicGroupModel] = {}

    def before(self, call: Call) -> None:
        request = call.request
        if isinstance(request, LeaveGroupRequest):
            self._drop_leavers(request)
        if not isinstance(request, JoinGroupRequest | SyncGroupRequest) or not request.member_id:
            return
        for other in self.shard.open_calls.values():
            is_same_call = type(other.request) is type(request) and other.request.group_id == request.group_id
            if is_same_call and other.request.member_id == request.member_id:
                other.facts["S9"] = "sent again"

    def _drop_leavers(self, request: LeaveGroupRequest) -> None:
        member_ids = {request.member_id, *(identity.member_id for identity in request.members)}
        instances = {identity.group_instance_id for identity in request.members} - {None}
        for call in self.shard.open_calls.values():
            parked = call.request
            if isinstance(parked, SyncGroupRequest) and parked.group_id == request.group_id:
                group = self.shard.classic(parked.group_id)
                member = None if group is None else group.members.get(parked.member_id)
                if parked.member_id in member_ids or (member is not None and member.instance_id in instances):
                    call.facts["S9"] = "left"

    def settled(self) -> None:
        if not self.shard.is_settled:
            return
        latest: dict[tuple[str, str, type], int] = {}
        anonymous: dict[str, int] = {}
        for ticket, call in self.shard.open_calls.items():
            if isinstance(call.request, JoinGroupRequest | SyncGroupRequest) and "S9" not in call.facts:
                latest[call.request.group_id, call.request.member_id, type(call.request)] = ticket
        for group_id, member_id, kind in latest:
            group = self.shard.classic(group_id)
            if group is None:
                if self.shard.consumer(group_id) is None:
                    self.wrong(
                        f"{kind.__name__} of {member_id!r} is parked in {group_id!r}, which is not there"
                    )
                continue
            if not member_id:
                anonymous[group_id] = anonymous.get(group_id, 0) + 1
                continue
            member = group.members.get(member_id)
            parked = (
                None
                if member is None
                else member.parked_join
                if kind is JoinGroupRequest
                else member.parked_sync
            )
            if parked is None and not self._converted(group):
                self.wrong(f"{kind.__name__} of {member_id} in {group_id} ({group.state}) waits for nothing")
        for group in self.shard.all_groups():
            if not isinstance(group, ClassicGroupModel):
                continue
            timers = self.shard.state.timers
            if group.state is not _PREPARING:
                self._failed.pop(group.group_id, None)
                continue
            if _has_unreadable(group):
                self._failed[group.group_id] = group
            if not timers.is_set(f"join-{group.group_id}") and self._failed.get(group.group_id) is not group:
                self.wrong(f"{group.group_id} rebalances without a timer")

    def _converted(self, group: ClassicGroupModel) -> bool:
        return group.previous_state is _DEAD


def _has_unreadable(group: ClassicGroupModel) -> bool:
    """Whether a member's subscription has a length that can't be, which makes Kafka fail."""
    for member in group.members.values():
        for _, metadata in member.protocols:
            try:
                subscribed_topics([metadata], impossible_is_malformed=False)
            except OperationRefused:
                return True
    return False


class Joins(Checker):
    """S10: dynamic members that did not rejoin in time are gone, and S11: a group has at most group.max.size
    members when a generation begins."""

    name = "S10"

    def __init__(self, shard: Any) -> None:
        super().__init__(shard)
        self._joining: set[tuple[str, str]] = set()
        self._known: dict[str, tuple[ClassicGroupModel, int, set[str]]] = {}

    def before(self, call: Call) -> None:
        if isinstance(call.request, JoinGroupRequest):
            self._joining.add((call.request.group_id, call.request.member_id))

    def settled(self) -> None:
        for group in self.shard.all_groups():
            if not isinstance(group, ClassicGroupModel):
                continue
            known = self._known.get(group.group_id)
            is_known = known is not None and known[0] is group
            if known is not None and is_known and (known[1] == group.generation or group.state is _PREPARING):
                continue
            new = not is_known and not group.generation
            self._known[group.group_id] = group, group.generation, set() if new else set(group.members)
            member_ids = {key for group_id, key in self._joining if group_id == group.group_id}
            self._joining = {key for key in self._joining if key[0] != group.group_id}
            if known is None or not is_known or group.state is not _COMPLETING:
                continue
            for member in group.members.values():
                if member.instance_id is None and member.member_id in known[2] - member_ids:
                    self.wrong(f"{member.member_id} is in generation {group.generation} and never joined it")
            if len(group.members) > self.shard.state.config.group_max_size:
                self.wrong(f"{group.group_id} has {len(group.members)} members", "S11")


class StaticRejoin(Checker):
    """S12 (KIP-814): a static member that comes back to a stable group with the same protocols causes no
    rebalance; a leader gets skipAssignment from version 9, and does not lead in older ones."""

    name = "S12"

    def before(self, call: Call) -> None:
        request = call.request
        if not isinstance(request, JoinGroupRequest) or request.member_id or not request.group_instance_id:
            return
        group = self.shard.classic(request.group_id)
        if group is None or group.state is not _STABLE or self.shard._error:
            return
        known = group.static_members.get(request.group_instance_id)
        if known is None or request.protocol_type != group.protocol_type:
            return
        # What it subscribes to may differ: it is the protocol that counts.
        names = [name for name, _ in group.members[known].protocols]
        if names == [protocol.name for protocol in request.protocols] and self.shard.is_settled:
            call.facts["S12"] = group, group.generation, group.is_leader(known)

    def answered(self, call: Call, response: Any) -> None:
        if "S12" not in call.facts or response.error_code:
            return
        _, generation, led = call.facts["S12"]
        if response.generation_id != generation:
            self.wrong(f"{response.member_id} causes generation {response.generation_id}")
        if led and call.version >= _SKIPS and not response.skip_assignment:
            self.wrong(f"leader {response.member_id} would assign anew")
        if call.version < _SKIPS and response.leader == response.member_id:
            self.wrong(f"{response.member_id} leads in version {call.version}")

    def settled(self) -> None:
        for call in self.shard.open_calls.values():
            if "S12" in call.facts and not call.facts.get("S12 seen"):
                call.facts["S12 seen"] = True
                group = call.facts["S12"][0]
                if group.state is _PREPARING:
                    self.wrong(f"{group.group_id} rebalances for a static member")


class CommitsOfMembers(Checker):
    """S13: a commit is stored only if it comes from a member in its generation, or from outside of an empty
    group; and it is refused with the error that says why."""

    name = "S13"

    def before(self, call: Call) -> None:
        request = call.request
        if not isinstance(request, OffsetCommitRequest) or self.shard._error or not request.group_id:
            return
        group = self.shard.state.groups.get(request.group_id)
        generation = request.generation_id_or_member_epoch
        if group is None:
            illegal = ErrorCode.GROUP_ID_NOT_FOUND if call.version >= 9 else ErrorCode.ILLEGAL_GENERATION
            call.facts["S13"] = ErrorCode.NONE if generation < 0 else illegal
            return
        if not isinstance(group, ClassicGroupModel):
            return
        call.facts["S13"] = _commit_error(group, request, generation)

    def answered(self, call: Call, response: Any) -> None:
        expected = call.facts.get("S13")
        if expected is None:
            return
        own = {
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_ID,
            ErrorCode.OFFSET_METADATA_TOO_LARGE,
        }
        for topic in response.topics:
            for partition in topic.partitions:
                error = partition.error_code
                if error == expected or error in own:
                    continue
                if expected == 0 and error and self.shard.handling is call and not call.waited:
                    self.wrong(f"{call.request} is refused with {error}")
                if expected != 0:
                    self.wrong(f"{call.request} is answered {error}, expected {expected!r}")


def _commit_error(group: ClassicGroupModel, request: OffsetCommitRequest, generation: int) -> ErrorCode:
    if group.state is _DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if generation < 0 and group.state is _EMPTY:
        return ErrorCode.NONE
    if generation >= 0 or request.member_id or request.group_instance_id is not None:
        error = member_error(group, request.member_id, request.group_instance_id)
        if error is not None:
            return error
        if generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
    elif group.state is not _EMPTY:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.REBALANCE_IN_PROGRESS if group.state is _COMPLETING else ErrorCode.NONE


CLASSIC_MEMBERS = [StaticMembers, PendingIds, Parked, Joins, StaticRejoin, CommitsOfMembers]
