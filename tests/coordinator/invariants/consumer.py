"""Invariants of consumer groups: S20-S33 without those about time (KIP-848, -1263)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from coordwire.coordinator import Append
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.consumer_group import (
    LEFT_FOR_NOW,
    ConsumerGroupModel,
    ConsumerGroupState,
    ConsumerMember,
    MemberState,
)
from coordwire.coordinator.model.members import static_member
from coordwire.enums import ErrorCode
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from tests.coordinator.invariants.watch import Call, Checker

_STABLE = MemberState.STABLE


def partitions_of(owned: Any) -> set[tuple[UUID, int]]:
    """Of a target, or of what a member owns."""
    return {(topic, partition) for topic, partitions in owned.items() for partition in partitions}


class OfConsumerGroups(Checker):
    """What all of these look at: consumer groups after each call that may have changed them."""

    def groups(self) -> Iterator[ConsumerGroupModel]:
        for group in self.shard.all_groups():
            if isinstance(group, ConsumerGroupModel):
                yield group


class OneOwner(OfConsumerGroups):
    """S20: no partition is assigned to, or about to be given up by, two members; the group's own book says
    the same."""

    name = "S20"

    def settled(self) -> None:
        for group in self.groups():
            owners: dict[tuple[UUID, int], ConsumerMember] = {}
            for member in group.members.values():
                for partition in (*partitions_of(member.owned), *partitions_of(member.revoking)):
                    if partition in owners:
                        self.wrong(f"{partition} is {owners[partition].member_id}'s and {member.member_id}'s")
                    owners[partition] = member
            book = dict(group.owners.items())
            if book.keys() != owners.keys():
                self.wrong(f"{group.group_id} books {sorted(book)}, members have {sorted(owners)}")


class Epochs(OfConsumerGroups):
    """S22: group epoch >= assignment epoch >= member epoch >= previous epoch, and none falls, but a member's
    to 0, -1 or -2. What a failed append takes back, falls with it."""

    name = "S22"

    def __init__(self, shard: Any) -> None:
        super().__init__(shard)
        self._groups: dict[str, tuple[ConsumerGroupModel, int, int]] = {}
        self._members: dict[tuple[str, str], int] = {}

    def reverted(self) -> None:
        self._groups.clear()
        self._members.clear()

    loaded = unloaded = reverted

    def settled(self) -> None:
        members: dict[tuple[str, str], int] = {}
        for group in self.groups():
            epoch, assigned = group.epoch, group.assignment_epoch
            if epoch < assigned:
                self.wrong(f"{group.group_id} is in epoch {epoch}, its target is of {assigned}")
            known = self._groups.get(group.group_id)
            if known is not None and known[0] is group and (epoch < known[1] or assigned < known[2]):
                self.wrong(f"{group.group_id} falls from {known[1:]} to {epoch, assigned}")
            self._groups[group.group_id] = group, epoch, assigned
            for member in group.members.values():
                if member.epoch > max(assigned, 0):
                    self.wrong(f"{member.member_id} is in epoch {member.epoch}, the target of {assigned}")
                if 0 < member.epoch < member.previous_epoch:
                    self.wrong(f"{member.member_id} is in {member.epoch}, was in {member.previous_epoch}")
                key = group.group_id, member.member_id
                before = self._members.get(key, 0)
                if 0 < member.epoch < before:
                    self.wrong(f"{member.member_id} falls from epoch {before} to {member.epoch}")
                members[key] = member.epoch
        self._members = members


class Targets(OfConsumerGroups):
    """S23: a target gives no partition twice, and when it is computed each partition of a subscribed topic
    that exists to a member that subscribes to it. S31: a pattern that is not resolved counts as no topics.

    Kafka notes whether all members subscribe to the same when a member's topics change, not when a pattern
    is resolved, nor when a member comes that subscribes to nothing. It gives partitions by that note: groups
    with patterns, or with members without topics, and with several subscriptions are therefore left out.
    """

    name = "S23"

    def __init__(self, shard: Any) -> None:
        super().__init__(shard)
        self._appends: list[Append] = []

    def wrote(self, append: Append, call: Call | None) -> None:
        self._appends.append(append)

    def settled(self) -> None:
        appends, self._appends = self._appends, []
        computed = {
            record.key.group_id
            for record in (appends[0].records if len(appends) == 1 else ())
            if isinstance(record.key, ConsumerGroupTargetAssignmentMetadataKey) and record.value is not None
        }
        for group in self.groups():
            owners: dict[tuple[UUID, int], str] = {}
            for member_id in group.targets:
                for partition in partitions_of(group.target(member_id)):
                    if partition in owners and {member_id, owners[partition]} <= set(group.members):
                        self.wrong(f"{partition} is to be {owners[partition]}'s and {member_id}'s")
                    owners[partition] = member_id
            subscriptions = {(member.topics, member.regex or "") for member in group.members.values()}
            is_homogeneous = len(subscriptions) == 1 or (
                not group.patterns and all(member.topics for member in group.members.values())
            )
            if group.group_id in computed and is_homogeneous:
                self._complete(group, owners)

    def _complete(self, group: ConsumerGroupModel, target: dict[tuple[UUID, int], str]) -> None:
        topics = self.shard.state.topics
        subscribers: dict[tuple[UUID, int], set[str]] = {}
        for member in group.members.values():
            resolved = group.resolved.get(member.regex) if member.regex else None
            names = {*member.topics, *(() if resolved is None else resolved.topics)}
            for name in names:
                topic = topics.find(name)
                for index in range(0 if topic is None else topic.partitions):
                    subscribers.setdefault((topic.id, index), set()).add(member.member_id)
        for partition, member_id in target.items():
            if member_id in group.members and member_id not in subscribers.get(partition, ()):
                self.wrong(f"{partition} is to be {member_id}'s, which does not subscribe to it")
        missing = [partition for partition in subscribers if partition not in target]
        if missing:
            self.wrong(f"{group.group_id} has a target without {missing}")


class AtTheTarget(OfConsumerGroups):
    """S24: a member in the target's epoch owns nothing that the target gives another. S25: a group is Stable
    just when its epochs are equal and every member is STABLE, in that epoch and owns its target. A log may
    end between a new target's records and that of its epoch: until the next target a group has some of it."""

    name = "S24"

    def __init__(self, shard: Any) -> None:
        super().__init__(shard)
        self._cut: dict[str, int] = {}

    def loaded(self) -> None:
        self._cut = {
            group.group_id: group.assignment_epoch
            for group in self.groups()
            if group.epoch > group.assignment_epoch
        }

    def settled(self) -> None:
        for group in self.groups():
            epoch, stable = group.assignment_epoch, group.epoch == group.assignment_epoch
            if self._cut.get(group.group_id) == epoch and not stable:
                continue
            assigned = {
                partition: member_id
                for member_id in group.targets
                if member_id in group.members
                for partition in partitions_of(group.target(member_id))
            }
            for member in group.members.values():
                owned, target = partitions_of(member.owned), partitions_of(group.target(member.member_id))
                if member.epoch == epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
                    for partition in owned:
                        if assigned.get(partition, member.member_id) != member.member_id:
                            self.wrong(
                                f"{member.member_id} owns {partition} in epoch {epoch}, "
                                f"{assigned[partition]} shall"
                            )
                if member.state is not _STABLE or member.epoch != epoch:
                    stable = False
                elif owned - target and not self._unsubscribed(group, member, owned - target):
                    self.wrong(f"{member.member_id} is STABLE and owns {owned - target} too much", "S25")
            expected = stable and bool(group.members)
            if expected is not (group.state is ConsumerGroupState.STABLE):
                self.wrong(f"{group.group_id} is {group.state}, members say {expected}", "S25")

    def _unsubscribed(
        self, group: ConsumerGroupModel, member: ConsumerMember, extra: set[tuple[UUID, int]]
    ) -> bool:
        return False


class Fencing(OfConsumerGroups):
    """S26: a greater epoch, or a smaller one that is not the previous with what the member owns, is fenced;
    an unknown member is unknown. S32: a static member that has not left keeps others out."""

    name = "S26"

    def before(self, call: Call) -> None:
        request = call.request
        if not isinstance(request, ConsumerGroupHeartbeatRequest) or self.shard._error:
            return
        group = self.shard.consumer(request.group_id)
        if group is None or not request.member_id or request.member_epoch < LEFT_FOR_NOW:
            return
        expected = self._expected(group, request)
        if expected is not None:
            call.facts["S26"] = expected

    def _expected(
        self, group: ConsumerGroupModel, request: ConsumerGroupHeartbeatRequest
    ) -> ErrorCode | None:
        member = group.members.get(request.member_id)
        if request.instance_id is not None:
            holder = static_member(group, request.instance_id)
            if request.member_epoch == 0:
                is_held = holder is not None and holder.epoch != LEFT_FOR_NOW and holder.classic is None
                return ErrorCode.UNRELEASED_INSTANCE_ID if is_held else None
            if holder is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if holder.member_id != request.member_id:
                return ErrorCode.FENCED_INSTANCE_ID
            member = holder
        if member is None:
            return None if request.member_epoch == 0 else ErrorCode.UNKNOWN_MEMBER_ID
        epoch = request.member_epoch
        if epoch <= 0 or epoch == member.epoch:
            return None
        if epoch < member.epoch and epoch == member.previous_epoch and request.topic_partitions is not None:
            reported = {
                (topic.topic_id, index) for topic in request.topic_partitions for index in topic.partitions
            }
            if reported <= partitions_of(member.owned):
                return None
        return ErrorCode.FENCED_MEMBER_EPOCH

    def answered(self, call: Call, response: Any) -> None:
        expected = call.facts.get("S26")
        accepted = (expected, ErrorCode.INVALID_REQUEST, ErrorCode.UNSUPPORTED_ASSIGNOR)
        full = ErrorCode.GROUP_MAX_SIZE_REACHED
        if expected is not None and response.error_code not in (*accepted, full):
            name = "S32" if expected is ErrorCode.UNRELEASED_INSTANCE_ID else None
            self.wrong(f"{call.request} is answered {response.error_code}, expected {expected!r}", name)


class Answers(OfConsumerGroups):
    """S28: a lost answer is harmless: who says all again reads what it owns and its epoch. S29: the
    assignment is in the answer just when the member joins, says everything, or it changed."""

    name = "S29"

    def before(self, call: Call) -> None:
        request = call.request
        if isinstance(request, ConsumerGroupHeartbeatRequest):
            group = self.shard.consumer(request.group_id)
            member = None if group is None else group.members.get(request.member_id)
            if member is not None:
                call.facts["S29"] = partitions_of(member.owned), member.owned

    def wrote(self, append: Append, call: Call | None) -> None:
        self._note(call)

    def settled(self) -> None:
        for call in self.shard.open_calls.values():
            self._note(call)

    def _note(self, call: Call | None) -> None:
        """What the member owned right after its heartbeat, which may be answered later."""
        if call is None or "S29 after" in call.facts:
            return
        request = call.request
        if isinstance(request, ConsumerGroupHeartbeatRequest) and request.member_id:
            group = self.shard.consumer(request.group_id)
            member = None if group is None else group.members.get(request.member_id)
            if member is not None:
                call.facts["S29 after"] = partitions_of(member.owned), member.epoch

    def answered(self, call: Call, response: Any) -> None:
        request = call.request
        if (
            not isinstance(request, ConsumerGroupHeartbeatRequest)
            or response.error_code
            or not request.member_id
        ):
            return
        if request.member_epoch < 0:
            return
        self._note(call)
        if "S29 after" not in call.facts:
            return
        owned, epoch = call.facts["S29 after"]
        if response.member_epoch != epoch:
            self.wrong(f"{request.member_id} is given epoch {response.member_epoch}, it is in {epoch}", "S28")
        assignment = response.assignment
        if assignment is not None:
            partitions = {
                (topic.topic_id, index) for topic in assignment.topic_partitions for index in topic.partitions
            }
            if partitions != owned:
                self.wrong(f"{request.member_id} is given {partitions}, it has {owned}", "S28")
            return
        subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        full = request.rebalance_timeout_ms != -1 and subscribes and request.topic_partitions is not None
        if request.member_epoch == 0 or full:
            self.wrong(f"{request.member_id} says everything and is given no assignment")
        before = call.facts.get("S29")
        if before is not None and before[0] != owned:
            self.wrong(f"{request.member_id} is not given its new assignment {owned}")


class Intervals(OfConsumerGroups):
    """S30: at most one target is computed in an assignment interval, and the latest epoch is computed at
    last. S31: the group's epoch rises when a pattern's topics change, not before."""

    name = "S30"

    def __init__(self, shard: Any) -> None:
        super().__init__(shard)
        self._computed: dict[str, int] = {}

    def reverted(self) -> None:
        self._computed.clear()

    loaded = unloaded = reverted

    def wrote(self, append: Append, call: Call | None) -> None:
        keys = [record.key for record in append.records]
        for record in append.records:
            key, value = record.key, record.value
            if isinstance(key, ConsumerGroupTargetAssignmentMetadataKey):
                if value is None or not value.assignment_timestamp:  # type: ignore[union-attr]
                    self._computed.pop(key.group_id, None)
                    continue
                interval = self.shard.state.config.of_consumer_group(key.group_id).assignment_interval_ms
                last = self._computed.get(key.group_id)
                if last is not None and self.shard.now < last + interval:
                    self.wrong(f"{key.group_id} has targets at {last} and {self.shard.now}")
                self._computed[key.group_id] = self.shard.now
            elif isinstance(key, ConsumerGroupRegularExpressionKey) and value is not None:
                raised = any(
                    isinstance(other, ConsumerGroupMetadataKey) and other.group_id == key.group_id
                    for other in keys
                )
                if not raised and value.topics:  # type: ignore[union-attr]
                    group = self.shard.consumer(key.group_id)
                    if group is not None and group.epoch == 0:
                        self.wrong(f"{key.regular_expression} of {key.group_id} resolves unnoticed", "S31")

    def answered(self, call: Call, response: Any) -> None:
        request = call.request
        if not isinstance(request, ConsumerGroupHeartbeatRequest) or response.error_code:
            return
        group = self.shard.consumer(request.group_id)
        if group is None or request.member_epoch < 0 or call.now != self.shard.now or group.patterns:
            return  # a pattern that is resolved after the heartbeat raises the epoch once more
        interval = self.shard.state.config.of_consumer_group(request.group_id).assignment_interval_ms
        due = group.assigned_at + interval
        late = group.epoch > group.assignment_epoch and self.shard.now >= due
        if late and self.shard.is_settled and not self.shard.state.later:
            self.wrong(
                f"{request.group_id} is in epoch {group.epoch}, its target of {group.assignment_epoch}"
            )


class Conversions(Checker):
    """S33: a group that changes its protocol keeps its members and their partitions; only the one who leaves,
    or is replaced under its instance id, is gone. (A change that is taken back is none.)"""

    name = "S33"

    def __init__(self, shard: Any) -> None:
        super().__init__(shard)
        self._known: dict[str, tuple[Any, dict[str, str | None], set[str]]] = {}

    def loaded(self) -> None:
        self._known.clear()

    unloaded = reverted = loaded

    def settled(self) -> None:
        known, self._known = self._known, {}
        for group in self.shard.all_groups():
            members = {member.member_id: member.instance_id for member in group.members.values()}
            native = set()
            if isinstance(group, ConsumerGroupModel):
                native = {member.member_id for member in group.members.values() if member.classic is None}
            before = known.get(group.group_id)
            if before is not None and type(before[0]) is not type(group) and before[1]:
                instances = set(members.values()) - {None}
                departed = [
                    other
                    for other, instance in before[1].items()
                    if other not in members and instance not in instances and other not in before[2]
                ]
                if departed and not (
                    isinstance(before[0], ClassicGroupModel) and not self._counted(before[0])
                ):
                    self.wrong(f"{group.group_id} changes its protocol and loses {departed}")
            self._known[group.group_id] = group, members, native

    def _counted(self, group: ClassicGroupModel) -> bool:
        """Whether the group was one with members when it was converted."""
        return bool(group.members)


CONSUMER = [OneOwner, Epochs, Targets, AtTheTarget, Fencing, Answers, Intervals, Conversions]
