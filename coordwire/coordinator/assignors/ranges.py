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
    subscribers: dict[UUID, int] = {}
    first = next(iter(members), None)
    for member_id in members:
        of = member_id if not spec.homogeneous or first is None else first
        for topic in spec.members[of].topics:
            subscribers[topic] = subscribers.get(topic, 0) + 1
    shares = {topic: _shares(spec.partitions[topic], count) for topic, count in subscribers.items()}
    found: dict[str, Target] = {}
    for member_id in members:
        member = spec.members[member_id if not spec.homogeneous or first is None else first]
        target = {topic: share for topic in member.topics if (share := next(shares[topic]))}
        known = len(member.topics) if spec.homogeneous else member.subscribed
        capacity = capacity_for(len(target), initial_capacity(int(known / 0.75) + 1))
        found[member_id] = topics_in_order(target, capacity)
    return found


def _rank(spec: GroupSpec, member_id: str) -> tuple[bool, bytes]:
    instance_id = spec.members[member_id].instance_id
    name = member_id if instance_id is None else instance_id
    return instance_id is None, name.encode("utf-16-be", "surrogatepass")


def _shares(partitions: int, members: int) -> Iterator[tuple[int, ...]]:
    """Each member's part: as equal as can be, the larger ones first."""
    least, extra = divmod(partitions, members)
    start = 0
    for index in range(members):
        end = start + least + (index < extra)
        yield tuple(range(start, end))
        start = end
