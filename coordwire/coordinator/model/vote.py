"""The choice of a protocol: each member votes for the first on its list that all members support."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coordwire.coordinator.hash_order import MIN_CAPACITY, capacity_for, in_hash_order
from coordwire.coordinator.model.classic_member import ClassicMember
from coordwire.coordinator.refusal import OperationRefused
from coordwire.enums import ErrorCode

__all__ = ["elected_protocol"]


def elected_protocol(members: Iterable[ClassicMember], supported: Mapping[str, int], size: int) -> str:
    """The protocol with the most votes; a tie goes to the first in the order of Java's HashMap.

    supported: by how many of the `size` members each protocol is supported.
    """
    votes: dict[str, int] = {}
    for member in members:
        for name, _ in member.protocols:
            if supported.get(name) == size:
                votes[name] = votes.get(name, 0) + 1
                break
        else:
            raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    most = max(votes.values())
    ordered = in_hash_order(votes, capacity_for(len(votes), MIN_CAPACITY))
    return next(name for name in ordered if votes[name] == most)
