"""The records that a member of a share group acquires: known ones that are available, and newly fetched ones.

Strategy: what is in flight comes first, in the order of offsets, then the batches of the log after it. Rules:
as `partition`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence

from coordwire.coordinator.share_partition.delivery_states import DeliveryStates
from coordwire.coordinator.share_partition.effects import AcquiredRecords
from coordwire.coordinator.share_partition.in_flight import (
    AcquisitionFailed,
    InFlightBatch,
    InFlightState,
    RecordState,
)

OffsetRange = tuple[int, int]
"""The first and the last offset of a batch of the log."""

_AVAILABLE, _ACQUIRED = RecordState.AVAILABLE, RecordState.ACQUIRED

_THROTTLED_FROM = 2
_ALONE_FROM = 2
"""A record on its last delivery comes alone where the limit of deliveries is greater than this."""


class Acquisition(DeliveryStates):
    """The part of a share partition by which members acquire records."""

    # --- what to fetch ---

    def next_fetch_offset(self) -> int:
        """The offset from which records are to be fetched for the next acquisition."""
        if not len(self._batches) or self.start_offset > self._batches.last.last:
            self._searches = False
            return self.end_offset
        if not self._searches:
            return self.end_offset + 1
        gap = self._open_gap
        start = -1 if gap is None else gap.start
        for batch in self._batches:
            if gap is not None:
                if batch.first > start:
                    return start
                start = max(batch.last + 1, start)
            if batch.batch_state is not None:
                if batch.batch_state.is_available:
                    return batch.first
                continue
            for offset, state in enumerate(batch.offsets, batch.first):
                if state.is_available:
                    return offset
        self._searches = False
        return self.end_offset + 1

    def can_acquire(self) -> bool:
        """Whether there are records to deliver again, or room for more in flight."""
        if self.next_fetch_offset() != self.end_offset + 1:
            return True
        return self.in_flight < self.config.max_record_locks

    @property
    def in_flight(self) -> int:
        """The offsets from the start to the end, if there are any in flight."""
        return self.end_offset - self.start_offset + 1 if len(self._batches) else 0

    # --- acquiring ---

    def acquire(
        self,
        member_id: str,
        fetched: Sequence[OffsetRange],
        *,
        fetch_offset: int,
        max_records: int,
        batch_size: int,
        record_limit: bool = False,
        aborted: Sequence[OffsetRange] = (),
    ) -> list[AcquiredRecords]:
        """Acquire records of batches that were read from `fetch_offset` on.

        max_records: whole batches of the log may exceed it, but with `record_limit`. batch_size: new records
        in flight are kept in batches of about this size. aborted: the fetched batches of aborted
        transactions, for a group that reads committed records only; they are archived.

        Raises `AcquisitionFailed`.
        """
        if max_records <= 0 or not fetched:
            return []
        first, last = fetched[0][0], fetched[-1][1]
        if last < self.start_offset:
            return []
        most = min(max_records, self.config.max_record_locks - self.in_flight)
        if most <= 0:
            if fetch_offset > self.end_offset:
                return []
            most = min(max_records, self.end_offset - fetch_offset + 1)
            last = min(last, self.end_offset)
        self._archive_unfetched(fetch_offset, first)
        base = first
        floor = self._batches.floor(base)
        if floor is None:
            base = max(base, self.start_offset)
        elif floor.last >= base:
            base = floor.first
        if min(first, base) > last:
            raise AcquisitionFailed  # Java's maps have no such range
        known = self._batches.between(min(first, base), last)
        if not known:
            acquired, _ = self._acquire_new(
                member_id, fetched, base, last, batch_size, most, record_limit=record_limit
            )
        else:
            acquired = self._acquire_known(
                member_id, fetched, known, base, last, batch_size, most, record_limit=record_limit
            )
            if not acquired:
                return []
            self._advance_gap(acquired[-1].last_offset + 1)
        return self._without_aborted(acquired, aborted) if aborted else acquired

    def _acquire_known(
        self,
        member_id: str,
        fetched: Sequence[OffsetRange],
        known: list[InFlightBatch],
        base: int,
        last: int,
        batch_size: int,
        most: int,
        *,
        record_limit: bool,
    ) -> list[AcquiredRecords]:
        """Acquire what is available again, what is in gaps, and what comes after."""
        first = fetched[0][0]
        acquired: list[AcquiredRecords] = []
        count, gap_start = 0, base
        limit = self.config.delivery_count_limit
        for batch in known:
            if count >= most:
                break
            if self._open_gap is not None:
                if gap_start < batch.first:
                    new, new_count = self._acquire_new(
                        member_id, fetched, gap_start, batch.first - 1, batch_size, most - count,
                        record_limit=record_limit,
                    )  # fmt: skip
                    acquired += new
                    count += new_count
                gap_start = batch.last + 1
                if count >= most:
                    break
            throttled = self._is_throttled(batch, first, last)
            if throttled and count:
                most = 0
                break
            exceeds = record_limit and len(batch) > most - count
            is_whole = batch.first >= first and batch.last <= last
            state = batch.batch_state
            if not is_whole or state is None or exceeds or throttled:
                if state is not None:
                    if not state.is_available:
                        continue
                    batch.split(self._locks.set)
                part = self._acquire_offsets(
                    member_id, batch, first, last, most - count if record_limit else None, limit
                )
                acquired += _merged(part)
                count += len(part)
                if throttled and part:
                    most = 0
                    break
                continue
            if not state.try_acquire(member_id):
                continue
            state.set_lock(self._set_lock(batch.first, batch.last))
            acquired.append(AcquiredRecords(batch.first, batch.last, state.delivery_count))
            count += len(batch)
        end = known[-1].last
        if count < most and end < last:
            acquired += self._acquire_new(
                member_id, fetched, end + 1, last, batch_size, most - count, record_limit=record_limit
            )[0]
        return acquired

    def _acquire_offsets(
        self,
        member_id: str,
        batch: InFlightBatch,
        first: int,
        last: int,
        most: int | None,
        limit: int,
    ) -> list[AcquiredRecords]:
        """Acquire available offsets of a batch that is split.

        A record that was delivered often comes with few others, and alone on its last delivery.
        """
        acquired: list[AcquiredRecords] = []
        throttled_most = None
        throttled_from = _throttled_from(limit)
        for offset, state in batch.between(first, last):
            if not state.is_available:
                continue
            delivered = state.delivery_count
            is_last = limit > _ALONE_FROM and delivered == limit - 1
            if is_last and acquired:
                break
            if delivered >= throttled_from and throttled_most is None:
                shift = (delivered - throttled_from + 1) & 63  # as Java shifts a long
                throttled_most = max(1, len(batch.offsets) >> shift)
            state.try_acquire(member_id)
            state.set_lock(self._set_lock(offset, offset))
            acquired.append(AcquiredRecords(offset, offset, state.delivery_count))
            if is_last or len(acquired) in (most, throttled_most):
                break
        return acquired

    def _is_throttled(self, batch: InFlightBatch, first: int, last: int) -> bool:
        """Whether available records of a batch were delivered so often that few are to come at once."""
        limit = _throttled_from(self.config.delivery_count_limit)
        if batch.batch_state is not None:
            return batch.batch_state.is_available and batch.batch_state.delivery_count >= limit
        return any(
            state.delivery_count >= limit for _, state in batch.between(first, last) if state.is_available
        )

    def _acquire_new(
        self,
        member_id: str,
        fetched: Sequence[OffsetRange],
        first: int,
        last: int,
        batch_size: int,
        most: int,
        *,
        record_limit: bool,
    ) -> tuple[list[AcquiredRecords], int]:
        """Acquire records that were not in flight, and count their offsets."""
        if not len(self._batches):
            first = max(first, self.end_offset)
        if most < last - first + 1:
            end = _end_of_batch(fetched, first + most - 1)
            last = min(end, last) if self._open_gap is not None else end
        acquired = self._put_new(member_id, fetched, first, last, batch_size, most, record_limit=record_limit)
        if self._batches.first.first == first:
            self.start_offset = first
        self.end_offset = max(self.end_offset, last)
        if record_limit:
            last = acquired[0].last_offset
        self._advance_gap(last + 1)
        return acquired, last - first + 1

    def _put_new(
        self,
        member_id: str,
        fetched: Sequence[OffsetRange],
        first: int,
        last: int,
        batch_size: int,
        most: int,
        *,
        record_limit: bool,
    ) -> list[AcquiredRecords]:
        runs: list[AcquiredRecords] = []
        run = first
        if not record_limit and last - first + 1 > batch_size:
            for base, _ in fetched:
                if base > last:
                    break
                if base - run >= batch_size:
                    runs.append(AcquiredRecords(run, base - 1, 1))
                    run = base
        runs.append(AcquiredRecords(run, last, 1))
        if record_limit and last - first + 1 > most:
            batch = InFlightBatch(first, last, InFlightState(_ACQUIRED, 1, member_id))
            last = first + most - 1
            batch.split_acquired(last, self.now + self.config.lock_duration_ms, self._locks.set)
            self._searches = True
            self._batches.put(batch)
            return [AcquiredRecords(first, last, 1)]
        for acquired in runs:
            lock = self._set_lock(acquired.first_offset, acquired.last_offset)
            state = InFlightState(_ACQUIRED, 1, member_id, lock)
            self._batches.put(InFlightBatch(acquired.first_offset, acquired.last_offset, state))
        return runs

    def _advance_gap(self, offset: int) -> None:
        gap = self._gap
        if gap is not None:
            if gap.end == self.end_offset and offset <= gap.end:
                gap.start = offset
            else:
                self._gap = None

    def _archive_unfetched(self, fetch_offset: int, base: int) -> None:
        """Archive available records that the log no longer has: it begins later than what was asked for."""
        if not len(self._batches) or fetch_offset >= base:
            return
        floor = self._batches.floor(fetch_offset)
        start = floor.first if floor is not None and floor.last >= fetch_offset else fetch_offset
        batches = self._batches.between(start, base - 1)
        if self._archive(fetch_offset, base, batches, _AVAILABLE, counted=True):
            self._searches = True

    def _without_aborted(
        self, acquired: list[AcquiredRecords], aborted: Sequence[OffsetRange]
    ) -> list[AcquiredRecords]:
        """Archive the batches of aborted transactions, and leave them out."""
        for first, last in aborted:
            floor = self._batches.floor(first)
            if floor is None:
                raise AcquisitionFailed
            self._archive(first, last + 1, self._batches.between(floor.first, last), _ACQUIRED, counted=True)
        retained = []
        remaining = deque(aborted)
        for run in acquired:
            first, last, count = run
            while remaining and remaining[0][1] < first:
                remaining.popleft()
            for cut_first, cut_last in remaining:
                if cut_first > last:
                    break
                if first < cut_first:
                    retained.append(AcquiredRecords(first, cut_first - 1, count))
                first = max(first, cut_last + 1)
            if first <= last:
                retained.append(AcquiredRecords(first, last, count))
        return retained


def _throttled_from(limit: int) -> int:
    """The deliveries from which on records come in small numbers."""
    return max(_THROTTLED_FROM, math.ceil(limit / 2))


def _end_of_batch(fetched: Sequence[OffsetRange], offset: int) -> int:
    """The end of the fetched batch that an offset is in, or the offset itself."""
    for base, last in reversed(fetched):
        if offset >= base:
            return last if offset <= last else offset
    return offset


def _merged(records: Iterable[AcquiredRecords]) -> list[AcquiredRecords]:
    """Runs of offsets with one number of deliveries."""
    runs: list[AcquiredRecords] = []
    for record in records:
        if (
            runs
            and record.first_offset == runs[-1].last_offset + 1
            and record.delivery_count == runs[-1].delivery_count
        ):
            runs[-1] = runs[-1]._replace(last_offset=record.last_offset)
        else:
            runs.append(record)
    return runs
