"""The range assignor: of each topic, each subscriber gets consecutive partitions, in the members' order.

Static members come first, by instance id, then dynamic ones by member id; so members that subscribe to the
same topics get the same partitions of each (co-partitioning).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from uuid import UUID

from coordwire.coordinator.assignors.numbered_group import NumberedGroup, NumberedMap
from coordwire.coordinator.assignors.specification import GroupSpec
from coordwire.coordinator.hash_tables import HashMap
from coordwire.coordinator.model.assignment import Target


def range_targets(spec: GroupSpec) -> Mapping[str, Target]:
    members = sorted(spec.members, key=lambda member_id: _rank(spec, member_id))
    return _equal_targets(spec, members) if spec.homogeneous else _mixed_targets(spec, members)


def _equal_targets(spec: GroupSpec, members: list[str]) -> Mapping[str, Target]:
    """The targets of members that all have the first member's topics."""
    targets: dict[str, dict[UUID, tuple[int, ...]]] = {member_id: {} for member_id in members}
    topics = spec.members[members[0]].topics if members else ()
    for topic in topics:
        for member_id, share in zip(members, _shares(spec.partitions[topic], len(members)), strict=False):
            targets[member_id][topic] = share
    ordered: dict[str, Target] = {}
    for member_id, target in targets.items():
        table: HashMap[UUID, tuple[int, ...]] = HashMap(_capacity(len(topics)))
        table.update(target)
        ordered[member_id] = table.in_order()
    return ordered


def _mixed_targets(spec: GroupSpec, members: list[str]) -> Mapping[str, Target]:
    group = NumberedGroup(spec, members)
    shares_of: list[dict[int, tuple[int, ...]]] = [{} for _ in members]
    for topic, subscribers in enumerate(group.subscribers):
        shares = _shares(group.partitions[topic], len(subscribers))
        for index, share in zip(subscribers, shares, strict=False):
            shares_of[index][topic] = share
    places: dict[int, dict[int, int]] = {}
    targets: dict[str, Target] = {}
    for index, (member_id, target) in enumerate(zip(members, shares_of, strict=True)):
        topics = list(target)
        if len(topics) > 1:
            kind = group.kinds[index]
            if group.shares_kinds:
                place = places.get(kind)
                if place is None:
                    numbers = group.subscriptions[kind]
                    place = places[kind] = dict(zip(numbers, range(len(numbers)), strict=True))
                topics.sort(key=place.__getitem__)
            else:
                topics = list(filter(target.__contains__, group.subscriptions[kind]))
        capacity = _capacity(spec.members[member_id].subscribed)
        table: NumberedMap[tuple[int, ...]] = NumberedMap(group, capacity)
        table.update((topic, target[topic]) for topic in topics)
        targets[member_id] = {group.topics[topic]: share for topic, share in table.items()}
    return targets


def _capacity(expected: int) -> int:
    """The capacity of a table that is made for an expected size."""
    return int(expected / 0.75) + 1


def _rank(spec: GroupSpec, member_id: str) -> tuple[bool, bytes]:
    instance_id = spec.members[member_id].instance_id
    name = member_id if instance_id is None else instance_id
    return instance_id is None, name.encode("utf-16-be", "surrogatepass")


def _shares(partitions: int, members: int) -> Iterator[tuple[int, ...]]:
    """The members' shares, as equal as possible, larger ones first; without the empty ones."""
    least, extra = divmod(partitions, members)
    start = 0
    for index in range(min(partitions, members)):
        end = start + least + (index < extra)
        yield tuple(range(start, end))
        start = end
