"""The choice of the batches that make a log: offsets that rise, leader epochs that don't fall.

Strategy: of the batches that are valid by themselves the longest run with rising offsets, since Kafka can't
serve any other; of these the longest run with leader epochs in order. Batches inside the range that a bad
batch claims come next, where their offsets and epochs fit between two of that run. So one wrong base offset
or leader epoch, which no checksum covers, costs one batch, and a batch in the value of a damaged batch
replaces no sound one. There is one exception: if the last batch before such a range leaves a gap before it,
and two more of the inner ones fit without it, its own base offset is taken for the wrong one. Rules: n log n
comparisons; the order is that of the files.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import islice
from operator import gt

OUT, KEPT, EPOCH = 0, 1, 2
"""What becomes of a batch: its offsets are out of order, it is kept, or its leader epoch is out of order."""

NO_EPOCH = -1
"""The leader epoch of a batch that has none: no leader set it, or its format has no room for it."""


class FoundBatches:
    """Batches, as parallel arrays: first and last offset, leader epoch, and whether they are inside the range
    that a bad batch claims."""

    def __init__(self) -> None:
        self.firsts, self.lasts, self.epochs = (array("q") for _ in range(3))
        self.inner = bytearray()

    def add(self, first: int, last: int, epoch: int, inner: bool) -> None:
        """Add the next batch."""
        self.firsts.append(first)
        self.lasts.append(last)
        self.epochs.append(epoch)
        self.inner.append(inner)

    def extend(self, later: FoundBatches) -> None:
        """Add the batches of the next file."""
        self.firsts += later.firsts
        self.lasts += later.lasts
        self.epochs += later.epochs
        self.inner += later.inner

    def __len__(self) -> int:
        return len(self.firsts)


def select_batches(batches: FoundBatches, base: int) -> bytearray:
    """The choice for each batch (`OUT`, `KEPT`, `EPOCH`); base: the least offset that one can have."""
    outer: Sequence[int] = [number for number, inner in enumerate(batches.inner) if not inner]
    line = _longest(outer, batches.firsts, batches.lasts)
    if len(line) < len(outer):
        _prefer_joined(line, outer, batches, base - 1)
    fates = bytearray(len(batches))
    line = _in_epochs(line, batches.epochs, fates)
    if len(outer) < len(batches):
        line = _with_inner(line, batches, base - 1, fates)
    for number in line:
        fates[number] = KEPT
    return fates


def _longest(numbers: Sequence[int], firsts: Sequence[int], lasts: Sequence[int]) -> list[int]:
    """Of these batches the longest run in which each begins above the end of the one before."""
    if all(map(gt, (firsts[n] for n in islice(numbers, 1, None)), (lasts[n] for n in numbers))):
        return list(numbers)
    ends: list[int] = []  # of the run of each length that ends lowest, its last offset …
    tails: list[int] = []  # … and its last batch
    before: dict[int, int] = {}
    for number in numbers:
        last = lasts[number]
        length = bisect_left(ends, firsts[number])
        before[number] = tails[length - 1] if length else -1
        if length == len(ends):
            ends.append(last)
            tails.append(number)
        elif last < ends[length]:
            ends[length], tails[length] = last, number
    line = []
    at = tails[-1]
    while at >= 0:
        line.append(at)
        at = before[at]
    line.reverse()
    return line


def _prefer_joined(line: list[int], numbers: Sequence[int], batches: FoundBatches, start: int) -> None:
    """Where either of two batches could be in the line, take the one that leaves the fewer gaps.

    Of a batch and one whose base offset was damaged, that is the former.
    """
    firsts, lasts = batches.firsts, batches.lasts

    def fit(number: int, place: int) -> int:
        """How many neighbours a batch would join at a place of the line; -1 if it doesn't fit between."""
        low = lasts[line[place - 1]] if place else start
        high = firsts[line[place + 1]] if place + 1 < len(line) else None
        first, last = firsts[number], lasts[number]
        if first <= low or (high is not None and last >= high):
            return -1
        return (first == low + 1) + (high is not None and last + 1 == high)

    for number in numbers:
        after = bisect_left(line, number)
        if after < len(line) and line[after] == number:
            continue
        for place in (after - 1, after):
            if 0 <= place < len(line) and fit(number, place) > fit(line[place], place):
                line[place] = number
                break


def _in_epochs(line: list[int], epochs: Sequence[int], fates: bytearray) -> list[int]:
    """The line without the batches whose leader epochs are out of order; these are marked."""
    known = [number for number in line if epochs[number] > NO_EPOCH]
    own = [epochs[number] for number in known]
    # As ranges of which one begins above the other's end if its epoch isn't lower.
    in_order = _longest(range(len(own)), [2 * epoch + 1 for epoch in own], [2 * epoch for epoch in own])
    for number in line:
        fates[number] = OUT if epochs[number] == NO_EPOCH else EPOCH
    for place in in_order:
        fates[known[place]] = OUT
    return [number for number in line if fates[number] != EPOCH]


def _with_inner(line: list[int], batches: FoundBatches, start: int, fates: bytearray) -> list[int]:
    """The line with those inner batches that fit between two of it."""
    inner = [number for number, is_inner in enumerate(batches.inner) if is_inner]
    nexts = _next_epochs(line, batches.epochs)
    result: list[int] = []
    at = 0
    before = after = (
        start,
        NO_EPOCH,
    )  # offset and epoch that the line had come to before its last batch, and has
    for place, stop in enumerate([*line, len(batches)]):
        end = bisect_left(inner, stop, at)
        numbers, at = inner[at:end], end
        above = batches.firsts[stop] if place < len(line) else None, nexts[place]
        fits = _between(numbers, batches, after, above, fates)
        if len(numbers) > len(fits) + 1 and result and batches.firsts[result[-1]] > before[0] + 1:
            alternatives = _between(numbers, batches, before, above, fates)
            if len(alternatives) > len(fits) + 1:
                result.pop()
                fits, after = alternatives, before
            else:
                _between(numbers, batches, after, above, fates)
        result += fits
        for number in fits:
            after = _passed(number, batches, after)
        if place < len(line):
            result.append(stop)
            before, after = after, _passed(stop, batches, after)
    return result


def _between(
    numbers: list[int],
    batches: FoundBatches,
    below: tuple[int, int],
    above: tuple[int | None, int | None],
    fates: bytearray,
) -> list[int]:
    """Of these batches the longest run that fits there; those whose leader epochs don't are marked.

    below, above: the last offset and the leader epoch before it, and the first offset and the epoch after it.
    """
    fits = []
    for number in numbers:
        fates[number] = OUT
        if batches.firsts[number] <= below[0] or (above[0] is not None and batches.lasts[number] >= above[0]):
            continue
        own = batches.epochs[number]
        if own != NO_EPOCH and (own < below[1] or (above[1] is not None and own > above[1])):
            fates[number] = EPOCH
            continue
        fits.append(number)
    return _in_epochs(_longest(fits, batches.firsts, batches.lasts), batches.epochs, fates) if fits else []


def _passed(number: int, batches: FoundBatches, before: tuple[int, int]) -> tuple[int, int]:
    """The last offset and leader epoch after a batch."""
    epoch = batches.epochs[number]
    return batches.lasts[number], before[1] if epoch == NO_EPOCH else epoch


def _next_epochs(line: list[int], epochs: Sequence[int]) -> list[int | None]:
    """For each place of the line, and its end, the next leader epoch from there on; None for none."""
    nexts: list[int | None] = [None]
    for number in reversed(line):
        nexts.append(nexts[-1] if epochs[number] == NO_EPOCH else epochs[number])
    nexts.reverse()
    return nexts
