"""The uniform assignor: partitions are balanced over the members, and stay where they are as far as they can.

Here members that all subscribe to the same topics; others in `balanced`.
Strategy: every member has a quota, some have one more. Members in turn keep what they have up to their
quota; what is over, and what no member has, goes to those below theirs. A member that could have one more
gives that up for another while others remain who must take it.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from coordwire.coordinator.assignors.balanced import balanced_targets
from coordwire.coordinator.assignors.specification import GroupSpec, TargetTable
from coordwire.coordinator.hash_order import copied_set_capacity, topics_in_order
from coordwire.coordinator.model.assignment import Target
from coordwire.coordinator.refusal import OperationRefused
from coordwire.enums import ErrorCode

__all__ = ["uniform_targets"]


def uniform_targets(spec: GroupSpec) -> Mapping[str, Target]:
    if not spec.members:
        return {}
    return _equal_targets(spec) if spec.homogeneous else balanced_targets(spec)


def _equal_targets(spec: GroupSpec) -> Mapping[str, Target]:
    first = next(iter(spec.members.values()))
    topics = topics_in_order(dict.fromkeys(first.topics), copied_set_capacity(first.subscribed))
    if not topics:
        return {}
    unassigned = _unassigned(spec, topics)
    least, extra = divmod(sum(spec.partitions[topic] for topic in topics), len(spec.members))
    targets: dict[str, Target] = {}
    tables: dict[str, TargetTable] = {}
    unfilled: list[tuple[str, int]] = []
    for index, (member_id, member) in enumerate(spec.members.items()):
        may_have_extra = extra > 0
        quota, table = least + may_have_extra, None
        if member.target:
            quota, table, taken = _kept(member.target, topics, quota)
            unassigned += taken
        if quota and may_have_extra and len(spec.members) - index > extra:
            quota -= 1
        elif may_have_extra:
            extra -= 1
        if quota:
            unfilled.append((member_id, quota))
        if table is None:
            targets[member_id] = member.target
        else:
            tables[member_id] = table
    position = 0
    for member_id, quota in unfilled:
        table = tables.setdefault(member_id, TargetTable(spec.members[member_id].target))
        for topic, partition in unassigned[position : position + quota]:
            table.add(topic, partition)
        position += quota
    if position < len(unassigned):
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    return targets | {member_id: table.target() for member_id, table in tables.items()}


def _unassigned(spec: GroupSpec, topics: Mapping[UUID, None]) -> list[tuple[UUID, int]]:
    assigned: dict[UUID, set[int]] = {topic: set() for topic in topics}
    for one in filter(None, spec.assigned_before):
        for topic, partitions in one.items():
            if topic in assigned:
                assigned[topic].update(partitions)
    return [
        (topic, partition)
        for topic in topics
        for partition in range(spec.partitions[topic])
        if partition not in assigned[topic]
    ]


def _kept(
    target: Target, topics: Mapping[UUID, None], quota: int
) -> tuple[int, TargetTable | None, list[tuple[UUID, int]]]:
    """What is left of a member's quota; its new target, if it loses something; what it loses to others."""
    table: TargetTable | None = None
    taken: list[tuple[UUID, int]] = []
    for topic, partitions in target.items():
        if topic not in topics:
            table = table or TargetTable(target)
            table.remove_topic(topic)
        elif len(partitions) <= quota:
            quota -= len(partitions)
        else:
            table = table or TargetTable(target)
            for partition in partitions[quota:]:
                table.remove(topic, partition)
                taken.append((topic, partition))
            quota = 0
    return quota, table, taken
