"""The batches of aborted transactions, which a group that reads committed records is not given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["FetchedBatch", "aborted_ranges"]

FetchedBatch = tuple[int, int, int, bool, bool]
"""The first and the last offset of a batch, its producer (-1 for none), whether it is transactional, and
whether it is an abort marker."""


def aborted_ranges(
    batches: Iterable[FetchedBatch], aborted: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The first and the last offsets of the batches that belong to aborted transactions.

    aborted: first offset and producer of each aborted transaction that the batches may be part of.
    """
    waiting = sorted(aborted, reverse=True)
    producers: set[int] = set()
    ranges = []
    for first, last, producer, is_transactional, ends in batches:
        if producer < 0:
            continue
        while waiting and waiting[-1][0] <= last:
            producers.add(waiting.pop()[1])
        if ends:
            producers.discard(producer)
        elif is_transactional and producer in producers:
            ranges.append((first, last))
    return ranges
