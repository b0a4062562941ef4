"""The steps of a member towards its target (KIP-848): it gives up partitions first, then takes free ones.

    STABLE                  the member has its target's partitions, as of its epoch
    UNREVOKED_PARTITIONS    it has to give up partitions, and stays in its epoch while it still reports them
    UNRELEASED_PARTITIONS   it is in the target's epoch, and waits for partitions that other members have

Rules: a partition is taken only when no member has it; a partition that the member itself is about to give up
counts as its own. A heartbeat without a list of partitions proves nothing, so it releases nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import replace
from functools import partial
from uuid import UUID

from coordwire.coordinator.consumer import sessions
from coordwire.coordinator.consumer.target import TargetOfMember, subscribed_ids, subscribed_names
from coordwire.coordinator.hash_tables import HashMap, HashSet
from coordwire.coordinator.model.assignment import NOTHING_OWNED, Owned, Reported
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel, ConsumerMember, MemberState
from coordwire.coordinator.records import (
    owned_record,
)
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import State
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord


def reconcile(
    state: State,
    group: ConsumerGroupModel,
    member: ConsumerMember,
    target: TargetOfMember,
    reported: Reported,
    records: list[LogRecord],
    *,
    subscription_changed: bool,
) -> ConsumerMember:
    """Take the member's next step towards its target, with its record and its timer."""
    if not subscription_changed and member.is_reconciled_to(target.epoch):
        return member
    step = reconciled(state, group, member, target, reported, subscription_changed=subscription_changed)
    if step is member or step == member:
        return step
    records.append(owned_record(group.group_id, step))
    if step.classic is None:
        if step.state is MemberState.UNREVOKED_PARTITIONS:
            sessions.limit_revocation(state, group.group_id, step)
        else:
            sessions.unlimit_revocation(state, group.group_id, step.member_id)
    return step


# --- steps ---

_NONE: Mapping[int, int] = {}


def reconciled(
    state: State,
    group: ConsumerGroupModel,
    member: ConsumerMember,
    target: TargetOfMember,
    reported: Reported,
    *,
    subscription_changed: bool,
) -> ConsumerMember:
    """The member after the next step towards its target; the same one if there is none."""
    names = subscribed_names(group, member)
    step = _Step(group, member, target, reported, bool(names), set(subscribed_ids(state.topics, names)))
    match member.state:
        case MemberState.STABLE:
            if member.epoch != target.epoch:
                return step.towards_target(member.epoch)
            return step.within_subscription() if subscription_changed else member
        case MemberState.UNREVOKED_PARTITIONS:
            if step.reports(member.revoking):
                return step.within_subscription() if subscription_changed else member
            return step.towards_target(member.epoch)
        case MemberState.UNRELEASED_PARTITIONS:
            return step.towards_target(member.epoch)
        case MemberState.UNKNOWN:
            # A newer coordinator has more states. Without partitions the member can begin again.
            if reported is None or list(reported):
                raise OperationRefused(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The consumer group member is in a unknown state. "
                    "The member must abandon all its partitions and rejoin.",
                )
            return step.towards_target(target.epoch)


class _Step:
    def __init__(
        self,
        group: ConsumerGroupModel,
        member: ConsumerMember,
        target: TargetOfMember,
        reported: Reported,
        subscribes: bool,
        subscribed: Set[UUID],
    ) -> None:
        self._group = group
        self._member = member
        self._target = target
        self._reported = reported
        self._subscribes = subscribes
        self._subscribed = subscribed

    def reports(self, partitions: Owned) -> bool:
        """Whether the member may still own one of these."""
        if self._reported is None:
            return True
        return any(
            partition in partitions.get(topic.topic_id, _NONE)
            for topic in self._reported
            for partition in topic.partitions
        )

    def within_subscription(self) -> ConsumerMember:
        """Revoke topics that the member no longer subscribes to, before a new target does."""
        member = self._member
        if not self._subscribes and not member.revoking:
            if member.owned is NOTHING_OWNED:
                return member
            owned: Owned = NOTHING_OWNED
            revoking: Owned = member.owned
        else:
            dropped = [topic for topic in member.owned if topic not in self._subscribed]
            if not dropped:
                return member
            subscribed = HashMap.copy_of(member.owned)
            given_up = HashMap.copy_of(member.revoking)
            for topic in dropped:
                subscribed.discard(topic)
                given_up.compute(topic, partial(_merged, member.owned[topic]))
            owned, revoking = subscribed.in_order(), given_up.in_order()
        if revoking and self.reports(revoking):
            return self._moved(member.epoch, MemberState.UNREVOKED_PARTITIONS, owned, revoking)
        return replace(member, previous_epoch=member.epoch, owned=owned)

    def towards_target(self, epoch: int) -> ConsumerMember:
        """Retain the target's partitions, give up the others, then take free ones of the target.

        epoch: of the member while it gives up partitions.
        """
        member = self._member
        owned: HashMap[UUID, HashMap[int, int]] = HashMap()
        revoking: HashMap[UUID, HashMap[int, int]] = HashMap()
        gains: HashMap[UUID, HashSet[int]] = HashMap()
        waits = False
        target = self._target.target
        topics = HashSet.copy_of(target)
        topics.update(member.owned)
        for topic in topics:
            assigned = target.get(topic, ()) if topic in self._subscribed else ()
            owned_before = member.owned.get(topic, _NONE)
            assigned_set = frozenset(assigned)
            retained_count = sum(partition in assigned_set for partition in owned_before)
            if retained_count:
                owned[topic] = retained = HashMap.copy_of(owned_before)
                retained.retain(lambda partition, ids=assigned_set: partition in ids)  # type: ignore[misc]
            if retained_count < len(owned_before):
                revoking[topic] = lost = HashMap.copy_of(owned_before)
                lost.retain(lambda partition, ids=assigned_set: partition not in ids)  # type: ignore[misc]
            free, waits_here = self._free(topic, assigned, owned_before)
            waits = waits or waits_here
            if free:
                gains[topic] = free
        given_up = _frozen(revoking)
        if given_up and self.reports(given_up):
            return self._moved(epoch, MemberState.UNREVOKED_PARTITIONS, _frozen(owned), given_up)
        for topic, free in gains.items():
            owned.find_or_add(topic, HashMap).update(dict.fromkeys(free, self._target.epoch))
        state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
        return self._moved(self._target.epoch, state, _frozen(owned), NOTHING_OWNED)

    def _free(
        self, topic: UUID, assigned: Collection[int], owned: Mapping[int, int]
    ) -> tuple[HashSet[int], bool]:
        """The free partitions of a topic's target, and whether others are not free yet."""
        own = self._member.revoking.get(topic, _NONE)
        free, waits = HashSet.copy_of(assigned), False
        for partition in assigned:
            if partition in owned:
                free.discard(partition)
            elif partition not in own and not self._group.is_free(topic, partition):
                free.discard(partition)
                waits = True
        return free, waits

    def _moved(self, epoch: int, state: MemberState, owned: Owned, revoking: Owned) -> ConsumerMember:
        member = self._member
        return replace(
            member, epoch=epoch, previous_epoch=member.epoch, state=state, owned=owned, revoking=revoking
        )


def _merged(added: Mapping[int, int], known: Mapping[int, int] | None) -> Mapping[int, int]:
    if known is None:
        return added
    merged = HashMap.copy_of(known)
    merged.update(added)
    return merged.in_order()


def _frozen(owned: HashMap[UUID, HashMap[int, int]]) -> Owned:
    return {topic: partitions.in_order() for topic, partitions in owned.items()}
