"""Invariants of classic groups' rounds: S1-S6, by answers and state. Those of members: `classic_members`."""

from __future__ import annotations

from typing import Any

from coordwire.coordinator.model.classic_group import ClassicGroupModel, GroupState
from coordwire.enums import ErrorCode
from coordwire.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    SyncGroupRequest,
)
from tests.coordinator.invariants.watch import Call, Checker

_PREPARING, _COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE
_STABLE, _EMPTY, _DEAD = GroupState.STABLE, GroupState.EMPTY, GroupState.DEAD
_PENDING_ID_VERSION = 4
_SKIPS = 9

ENTERED_FROM = {
    _EMPTY: {_PREPARING}, _PREPARING: {_STABLE, _COMPLETING, _EMPTY}, _COMPLETING: {_PREPARING},
    _STABLE: {_COMPLETING}, _DEAD: set(GroupState),
}  # fmt: skip
"""S4's table, written here again."""


class OneLeader(Checker):
    """S1: one leader, a member of the group, gets all members' metadata; followers get an empty list."""

    name = "S1"

    def before(self, call: Call) -> None:
        # A classic member of a consumer group has no leader, even if its answer leaves after a conversion.
        if isinstance(call.request, JoinGroupRequest) and self.shard.consumer(call.request.group_id):
            call.facts["S1"] = "no leader"

    def answered(self, call: Call, response: Any) -> None:
        if not isinstance(call.request, JoinGroupRequest) or response.error_code or "S1" in call.facts:
            return
        group = self.shard.classic(call.request.group_id)
        if group is None or response.generation_id != group.generation:
            return
        metadata_by_id = {member.member_id: member.metadata for member in response.members}
        if response.leader != response.member_id:
            if metadata_by_id:
                self.wrong(f"follower {response.member_id} is given the members {sorted(metadata_by_id)}")
            if call.version >= _SKIPS and response.leader not in group.members:
                self.wrong(f"the leader {response.leader!r} is not a member")
            return
        members = {
            member.member_id: dict(member.protocols).get(group.protocol or "")
            for member in group.members.values()
        }
        if group.state in (_COMPLETING, _STABLE) and metadata_by_id != members:
            self.wrong(
                f"leader {response.leader} is given {sorted(metadata_by_id)}, members are {sorted(members)}"
            )


class OneGeneration(Checker):
    """S2: a generation's members get one protocol type, protocol and leader; all support the protocol, and it
    wins by votes. A static member that replaces another changes the leader's id within a generation."""

    name = "S2"

    def __init__(self, shard: Any) -> None:
        super().__init__(shard)
        self._known: dict[str, tuple[ClassicGroupModel, dict[int, tuple[object, ...]]]] = {}
        self._generations: dict[str, int] = {}
        self._replaced: set[tuple[str, int]] = set()

    def loaded(self) -> None:
        self._known.clear()
        self._generations.clear()
        self._replaced.clear()

    def before(self, call: Call) -> None:
        request = call.request
        if isinstance(request, JoinGroupRequest) and request.group_instance_id and not request.member_id:
            group = self.shard.classic(request.group_id)
            if group is not None and request.group_instance_id in group.static_members:
                self._replaced.add((request.group_id, group.generation))

    def answered(self, call: Call, response: Any) -> None:
        if not isinstance(call.request, JoinGroupRequest) or response.error_code:
            return
        group = self.shard.classic(call.request.group_id)
        if group is None or group.generation != response.generation_id:
            return
        key = call.request.group_id, response.generation_id
        leader = None if key in self._replaced else response.leader
        facts = response.protocol_type, response.protocol_name, leader
        if self._known.get(group.group_id, (None,))[0] is not group:
            self._known[group.group_id] = group, {}
        known = self._known[group.group_id][1].setdefault(group.generation, facts)
        if known[:2] != facts[:2] or (leader is not None and known[2] not in (None, leader)):
            self.wrong(f"generation {key} is {facts} for {response.member_id}, {known} for others")

    def settled(self) -> None:
        for group in self.shard.all_groups():
            if not isinstance(group, ClassicGroupModel):
                continue
            before = self._generations.get(group.group_id)
            self._generations[group.group_id] = group.generation
            if before == group.generation or group.state is not _COMPLETING:
                continue
            if any(member.parked_join is not None for member in group.members.values()):
                continue
            votes: dict[str, int] = {}
            common = set.intersection(
                *({name for name, _ in member.protocols} for member in group.members.values())
            )
            for member in group.members.values():
                first = next((name for name, _ in member.protocols if name in common), None)
                if first is not None:
                    votes[first] = votes.get(first, 0) + 1
            if group.protocol not in common or votes.get(group.protocol, 0) != max(votes.values()):
                self.wrong(f"protocol {group.protocol} of {group.group_id} with votes {votes}")


class Generations(Checker):
    """S3: the generation rises by one a completed join phase, never falls; -1 is never stored.

    It may fall where a group is loaded anew (a join phase in memory is not in the log) or deleted. In one
    moment several phases may end, as members' sessions do.
    """

    name = "S3"

    def __init__(self, shard: Any) -> None:
        super().__init__(shard)
        self._known: dict[str, tuple[ClassicGroupModel, int, int]] = {}
        self._moving = False

    def loaded(self) -> None:
        self._known.clear()

    def before(self, call: Call) -> None:
        self._moving = False

    def moving(self) -> None:
        self._moving = True

    def settled(self) -> None:
        for group in self.shard.all_groups():
            if not isinstance(group, ClassicGroupModel):
                continue
            known = self._known.get(group.group_id)
            if group.generation < 0:
                self.wrong(f"generation {group.generation} of {group.group_id}")
            most = known[2] + 1 if known is not None and self._moving else 1
            is_known = known is not None and known[0] is group
            if known is not None and is_known and not 0 <= group.generation - known[1] <= most:
                self.wrong(f"generation of {group.group_id} goes from {known[1]} to {group.generation}")
            self._known[group.group_id] = group, group.generation, len(group.members)

    def answered(self, call: Call, response: Any) -> None:
        # Each completed join phase has a number of its own.
        if isinstance(call.request, JoinGroupRequest) and not response.error_code:
            group = self.shard.classic(call.request.group_id)
            if group is not None and response.generation_id > group.generation:
                self.wrong(f"generation {response.generation_id} is given, {group.generation} is stored")


class States(Checker):
    """S4: transitions only as the table of states has them."""

    name = "S4"

    def __init__(self, shard: Any) -> None:
        super().__init__(shard)
        self._known: dict[str, tuple[ClassicGroupModel, GroupState]] = {}

    def settled(self) -> None:
        for group in self.shard.all_groups():
            if not isinstance(group, ClassicGroupModel):
                continue
            known = self._known.get(group.group_id)
            is_known = known is not None and known[0] is group
            moved = is_known and known is not None and known[1] is not group.state
            if moved and group.previous_state not in ENTERED_FROM[group.state]:
                self.wrong(f"{group.group_id} goes from {group.previous_state} to {group.state}")
            self._known[group.group_id] = group, group.state


class Assignments(Checker):
    """S5: a SyncGroup answer without an error has the bytes that the leader gave for that member in that
    generation, or none. Those of a log that was loaded, and of a conversion, count as given."""

    name = "S5"

    def __init__(self, shard: Any) -> None:
        super().__init__(shard)
        self._assignments: dict[tuple[str, int], list[dict[str, bytes]]] = {}
        self._groups: dict[str, ClassicGroupModel] = {}

    def loaded(self) -> None:
        self._assignments.clear()
        self._groups.clear()

    def before(self, call: Call) -> None:
        request = call.request
        if isinstance(request, SyncGroupRequest):
            group = self.shard.classic(request.group_id)
            if group is not None and group.is_leader(request.member_id):
                assignments = {
                    assignment.member_id: assignment.assignment for assignment in request.assignments
                }
                self._assignments.setdefault((request.group_id, request.generation_id), []).append(
                    assignments
                )

    def answered(self, call: Call, response: Any) -> None:
        request = call.request
        if not isinstance(request, SyncGroupRequest) or response.error_code:
            return
        group = self.shard.classic(request.group_id)
        if group is None or not response.assignment:
            return
        candidates = self._assignments.get((request.group_id, request.generation_id), [])
        allowed = {
            assignments.get(name)
            for assignments in candidates
            for name in self._names(group, request.member_id)
        }
        if response.assignment not in allowed:
            self.wrong(
                f"{request.member_id} of {request.group_id} gets {response.assignment!r} in generation "
                f"{request.generation_id}, the leader gave {sorted(map(repr, allowed))}"
            )

    def _names(self, group: ClassicGroupModel, member_id: str) -> list[str]:
        """A static member's ids: it may have been replaced since."""
        member = group.members.get(member_id)
        if member is None or member.instance_id is None:
            return [member_id]
        return [
            name
            for candidates in self._assignments.values()
            for assignments in candidates
            for name in assignments
            if name
        ] or [member_id]

    def settled(self) -> None:
        for group in self.shard.all_groups():
            if isinstance(group, ClassicGroupModel) and self._groups.get(group.group_id) is not group:
                self._groups[group.group_id] = group
                assignments = {member.member_id: member.assignment for member in group.members.values()}
                self._assignments.setdefault((group.group_id, group.generation), []).append(assignments)


class Heartbeats(Checker):
    """S6: Heartbeat answers 0 to a known member of the current generation in Stable or CompletingRebalance,
    27 in PreparingRebalance, otherwise 22, 25, 82 or 15."""

    name = "S6"

    def before(self, call: Call) -> None:
        request = call.request
        if not isinstance(request, HeartbeatRequest) or not request.group_id or self.shard._error:
            return
        group = self.shard.state.groups.get(request.group_id)
        if group is None:
            call.facts["S6"] = ErrorCode.UNKNOWN_MEMBER_ID
        elif isinstance(group, ClassicGroupModel):
            call.facts["S6"] = member_error(group, request.member_id, request.group_instance_id) or (
                ErrorCode.ILLEGAL_GENERATION
                if request.generation_id != group.generation
                else ErrorCode.REBALANCE_IN_PROGRESS if group.state is _PREPARING
                else ErrorCode.UNKNOWN_MEMBER_ID if group.state is _EMPTY
                else ErrorCode.NONE
            )  # fmt: skip

    def answered(self, call: Call, response: Any) -> None:
        expected = call.facts.get("S6")
        if (
            expected is not None
            and response.error_code != expected
            and not (call.waited and response.error_code)
        ):
            self.wrong(f"{call.request} is answered {response.error_code}, expected {expected!r}")


def member_error(group: ClassicGroupModel, member_id: str, instance_id: str | None) -> ErrorCode | None:
    if group.state is _DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if instance_id is not None:
        known = group.static_members.get(instance_id)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if known != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return None if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID


CLASSIC = [OneLeader, OneGeneration, Generations, States, Assignments, Heartbeats]
