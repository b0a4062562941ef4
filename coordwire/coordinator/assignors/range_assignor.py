"""The range assignor: of each topic, each subscriber gets consecutive partitions, in the members' order.

Static members come first, by instance id, then dynamic ones by member id; so members that subscribe to the
same topics get the same partitions of each (co-partitioning).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from uuid import UUID

from coordwire.coordinator.assignors.specification import GroupSpec
from coordwire.coordinator.hash_order import capacity_for, initial_capacity, topics_in_order
from coordwire.coordinator.model.assignment import Target

__all__ = ["range_targets"]


def range_targets(spec: GroupSpec) -> Mapping[str, Target]:
    members = sorted(spec.members, key=lambda member_id: _rank(spec, member_id))
    found: dict[str, dict[UUID, tuple[int, ...]]] = {member_id: {} for member_id in members}
    for topic, subscribers in _subscribers(spec, members).items():
        shares = _shares(spec.partitions[topic], len(subscribers))
        for member_id, share in zip(subscribers, shares, strict=False):
            found[member_id][topic] = share
    return {member_id: _in_order(spec, member_id, target) for member_id, target in found.items()}


def _subscribers(spec: GroupSpec, members: list[str]) -> dict[UUID, list[str]]:
    """By topic, in the order of the members; all have the first one's topics if they all have the same."""
    if spec.homogeneous:
        return {topic: members for member_id in members[:1] for topic in spec.members[member_id].topics}
    found: dict[UUID, list[str]] = {}
    for member_id in members:
        for topic in spec.members[member_id].topics:
            found.setdefault(topic, []).append(member_id)
    return found


def _in_order(spec: GroupSpec, member_id: str, target: dict[UUID, tuple[int, ...]]) -> Target:
    if not target:
        return target
    member = spec.members[member_id]
    if spec.homogeneous:
        known = len(next(iter(spec.members.values())).topics)
    else:
        known = member.subscribed
        target = {topic: target[topic] for topic in member.topics if topic in target}
    return topics_in_order(target, capacity_for(len(target), initial_capacity(int(known / 0.75) + 1)))


def _rank(spec: GroupSpec, member_id: str) -> tuple[bool, bytes]:
    instance_id = spec.members[member_id].instance_id
    name = member_id if instance_id is None else instance_id
    return instance_id is None, name.encode("utf-16-be", "surrogatepass")


def _shares(partitions: int, members: int) -> Iterator[tuple[int, ...]]:
    """Each member's part: as equal as can be, the larger ones first; nothing for those who get nothing."""
    least, extra = divmod(partitions, members)
    start = 0
    for index in range(min(partitions, members)):
        end = start + least + (index < extra)
        yield tuple(range(start, end))
        start = end
