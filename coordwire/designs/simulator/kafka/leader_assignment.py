"""The assignment that a classic group's leader computes: range, or cooperative, which keeps what it can.

Rules: members and topics are taken in sorted order, so that an assignment follows from its input. The
cooperative assignor never gives a member what another still owns: that comes in the rebalance after the owner
gave it up (KIP-429). Of two members that claim a partition, the one of the later generation owns it; of the
same, neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Claim", "cooperative_assignment", "range_assignment"]

Partitions = dict[str, list[tuple[str, int]]]
"""By member: topics and partitions."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a member says in its subscription. instance_id: sorts static members."""

    topics: tuple[str, ...]
    owned: tuple[tuple[str, int], ...] = ()
    generation: int = -1


def range_assignment(members: Mapping[str, Claim], partitions: Mapping[str, int]) -> Partitions:
    """Of each topic, a range for each member; the first members get one more where it does not divide."""
    plan: Partitions = {member: [] for member in members}
    for topic in sorted(partitions):
        takers = sorted(member for member, claim in members.items() if topic in claim.topics)
        if not takers:
            continue
        size, extra = divmod(partitions[topic], len(takers))
        begin = 0
        for number, member in enumerate(takers):
            end = begin + size + (number < extra)
            plan[member] += [(topic, index) for index in range(begin, end)]
            begin = end
    return plan


def cooperative_assignment(members: Mapping[str, Claim], partitions: Mapping[str, int]) -> Partitions:
    """A balanced assignment that leaves partitions with their owners, without those that would move now."""
    owners = _owners(members, partitions)
    every = [(topic, index) for topic in sorted(partitions) for index in range(partitions[topic])]
    target: Partitions = {member: [] for member in sorted(members)}
    quota = -(-len(every) // len(members)) if members else 0
    free = []
    for partition in every:
        owner = owners.get(partition)
        if owner is not None and len(target[owner]) < quota:
            target[owner].append(partition)
        else:
            free.append(partition)
    for partition in free:
        takers = [member for member, claim in members.items() if partition[0] in claim.topics]
        if takers:
            target[min(takers, key=lambda member: (len(target[member]), member))].append(partition)
    return {
        member: [partition for partition in partitions if owners.get(partition, member) == member]
        for member, partitions in target.items()
    }  # fmt: skip


def _owners(members: Mapping[str, Claim], partitions: Mapping[str, int]) -> dict[tuple[str, int], str]:
    owners: dict[tuple[str, int], tuple[int, str | None]] = {}
    for member in sorted(members):
        claim = members[member]
        for partition in claim.owned:
            if partition[0] not in claim.topics or partition[1] >= partitions.get(partition[0], 0):
                continue
            known = owners.get(partition)
            if known is None or known[0] < claim.generation:
                owners[partition] = claim.generation, member
            elif known[0] == claim.generation:
                owners[partition] = claim.generation, None
    return {partition: member for partition, (_, member) in owners.items() if member is not None}
