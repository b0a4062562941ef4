"""Runs of records in one state, and how newer ones take the place of older ones.

Strategy: Apache Kafka's PersisterStateBatchCombiner: the two first runs of a heap are taken out, and what
they make is put back, until none overlap. Rules: where runs overlap, the one with more deliveries counts, and
of equal ones that with the greater state; runs that follow each other in one state are one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["StateBatch", "combined_batches"]

_ANY_OFFSET = -1


class StateBatch(NamedTuple):
    """The state of a run of records, as `__share_group_state` keeps it; ordered as Apache Kafka orders them.

    delivery_state: 0 available, 1 acquired, 2 acknowledged, 3 being archived, 4 archived.
    """

    first_offset: int
    last_offset: int
    delivery_count: int
    delivery_state: int


def combined_batches(batches: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """Combine older batches and the newer ones after them, from the start offset on (-1 for all)."""
    retained = list(batches)
    if start_offset != _ANY_OFFSET:
        retained = [
            batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)
            for batch in retained
            if batch.last_offset >= start_offset
        ]
    if len(retained) < 2:
        return retained
    heap = retained
    heapq.heapify(heap)
    combined = []
    while heap:
        first = heapq.heappop(heap)
        while heap and heap[0] == first:
            heapq.heappop(heap)
        if heap and _meet(first, heap[0]):
            for batch in _merged(first, heapq.heappop(heap)):
                heapq.heappush(heap, batch)
        else:
            combined.append(first)
    return combined


def _meet(first: StateBatch, second: StateBatch) -> bool:
    """Whether two batches overlap, or follow each other in one state."""
    if second.first_offset <= first.last_offset:
        return True
    return first.last_offset + 1 == second.first_offset and first[2:] == second[2:]


def _merged(first: StateBatch, second: StateBatch) -> list[StateBatch]:
    """What two batches make that meet, of which the first is not after the second."""
    if first[2:] == second[2:]:
        return [first._replace(last_offset=max(first.last_offset, second.last_offset))]
    if second[2:] < first[2:]:
        if second.last_offset <= first.last_offset:
            return [first]
        return [first, second._replace(first_offset=first.last_offset + 1)]
    if second.first_offset == first.first_offset:
        return [second]
    parts = [first._replace(last_offset=second.first_offset - 1), second]
    if second.last_offset < first.last_offset:
        parts.append(first._replace(first_offset=second.last_offset + 1))
    return parts
