"""What a classic group's leader computes: the range assignor, and a cooperative one that keeps what it can.

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
    found: Partitions = {member: [] for member in members}
    for topic in sorted(partitions):
        takers = sorted(member for member, claim in members.items() if topic in claim.topics)
        if not takers:
            continue
        size, more = divmod(partitions[topic], len(takers))
        begin = 0
        for number, member in enumerate(takers):
            end = begin + size + (number < more)
            found[member] += [(topic, index) for index in range(begin, end)]
            begin = end
    return found


def cooperative_assignment(members: Mapping[str, Claim], partitions: Mapping[str, int]) -> Partitions:
    """A balanced assignment that leaves partitions with their owners, without those that would move now."""
    owners = _owners(members, partitions)
    every = [(topic, index) for topic in sorted(partitions) for index in range(partitions[topic])]
    target: Partitions = {member: [] for member in sorted(members)}
    quota = -(-len(every) // len(members)) if members else 0
    free = []
    for one in every:
        owner = owners.get(one)
        if owner is not None and len(target[owner]) < quota:
            target[owner].append(one)
        else:
            free.append(one)
    for one in free:
        takers = [member for member, claim in members.items() if one[0] in claim.topics]
        if takers:
            target[min(takers, key=lambda member: (len(target[member]), member))].append(one)
    return {
        member: [one for one in given if owners.get(one, member) == member]
        for member, given in target.items()
    }  # fmt: skip


def _owners(members: Mapping[str, Claim], partitions: Mapping[str, int]) -> dict[tuple[str, int], str]:
    found: dict[tuple[str, int], tuple[int, str | None]] = {}
    for member in sorted(members):
        claim = members[member]
        for one in claim.owned:
            if one[0] not in claim.topics or one[1] >= partitions.get(one[0], 0):
                continue
            known = found.get(one)
            if known is None or known[0] < claim.generation:
                found[one] = claim.generation, member
            elif known[0] == claim.generation:
                found[one] = claim.generation, None
    return {one: member for one, (_, member) in found.items() if member is not None}
