"""A share partition (KIP-932): the records of one partition that are in flight in one share group.

    partition = SharePartition(config, now=...)
    partition.load(start_offset, state_epoch, batches)       what the share coordinator has
    records = partition.acquire(member_id, fetched, ...)     records for a member, locked for it
    ticket = partition.acknowledge(member_id, batches)       and the outcome, after its state was written
    for effect in partition.effects(): ...                   StateWrite: write it, then `written`; an outcome
    partition.next_deadline(); partition.advance(now)        locks end by the clock

Strategy: Apache Kafka's SharePartition, step by step: batches between the start and the end offset, which
split when their records go different ways. Rules: time is an input; nothing that a client sends raises, but
for `AcquisitionFailed`, after which the records that were acquired stay so until their locks end. Work is
linear in the records in flight, of which there are at most `max_record_locks` and those of one fetched batch.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from coordwire.coordinator.share_partition.effects import (
    AcknowledgementBatch,
    AcknowledgementOutcome,
    AcquiredRecords,
    ShareEffect,
    SharePartitionConfig,
    StateWrite,
    translated_error,
)
from coordwire.coordinator.share_partition.in_flight import (
    NO_MEMBER,
    AcquisitionFailed,
    AcquisitionLock,
    BatchMap,
    InFlightBatch,
    InFlightState,
    RecordState,
)
from coordwire.coordinator.share_partition.locks import Locks
from coordwire.coordinator.share_state.state_batches import StateBatch
from coordwire.enums import ErrorCode
from coordwire.errors import Malformed

__all__ = ["OffsetRange", "SharePartition"]

OffsetRange = tuple[int, int]
"""The first and the last offset of a batch of the log."""

_AVAILABLE, _ACQUIRED, _ACKNOWLEDGED, _ARCHIVED = (
    RecordState.AVAILABLE, RecordState.ACQUIRED, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED,
)  # fmt: skip

_RENEW = 4
_STATES = {0: _ARCHIVED, 1: _ACKNOWLEDGED, 2: _AVAILABLE, 3: _ARCHIVED}
"""The state after each type of acknowledgement."""

_THROTTLED_FROM = 2
_ALONE_FROM = 2
"""A record on its last delivery comes alone where the limit of deliveries is greater than this."""

_INVALID_RECORD_STATE = int(ErrorCode.INVALID_RECORD_STATE)
_INVALID_REQUEST = int(ErrorCode.INVALID_REQUEST)


class _Refused(Exception):
    """An acknowledgement that is refused; what it has begun is taken back."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class _Change:
    """A transition that is to be written, and its batch in `__share_group_state`."""

    __slots__ = ("batch", "state")

    def __init__(self, state: InFlightState, first: int, last: int) -> None:
        self.state = state
        self.batch = StateBatch(first, last, state.delivery_count, int(state.state))

    @property
    def was_terminal(self) -> bool:
        return self.batch.delivery_state in (_ACKNOWLEDGED, _ARCHIVED)


class _Gap:
    """Offsets that the persisted state leaves out, which may have records: from `start` to the end offset
    that was loaded."""

    __slots__ = ("end", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end


class SharePartition:
    """The records of a partition in flight in a group. config: may be replaced at any time.

    start_offset: the first record that is not acknowledged or archived. end_offset: the last one in flight;
    without any, the one to be fetched next. delivery_complete_count: records from the start offset on that
    are acknowledged or archived.
    """

    def __init__(self, config: SharePartitionConfig | None = None, *, now: int = 0) -> None:
        self.config = config or SharePartitionConfig()
        self.now = now
        self.start_offset = 0
        self.end_offset = 0
        self.state_epoch = 0
        self.delivery_complete_count = 0
        self._batches = BatchMap()
        self._locks = Locks()
        self._effects: deque[ShareEffect] = deque()
        self._writes: dict[int, tuple[list[_Change], int | None]] = {}
        self._numbers = 0
        self._tickets = 0
        self._searches = False
        self._gap: _Gap | None = None

    # --- loading ---

    def load(self, start_offset: int, state_epoch: int, batches: Iterable[StateBatch]) -> None:
        """Take the persisted state, whose batches are in the order of their offsets.

        Raises `Malformed` for batches before the start offset, that end before they begin, or of an unknown
        state.
        """
        self.start_offset, self.state_epoch = start_offset, state_epoch
        gap, previous = -1, start_offset - 1
        for batch in batches:
            if batch.first_offset < start_offset or batch.last_offset < batch.first_offset:
                raise Malformed(f"state batch {batch} of a share partition from {start_offset} on", 0)
            if gap == -1 and batch.first_offset > previous + 1:
                gap = previous + 1
            previous = batch.last_offset
            try:
                state = RecordState(batch.delivery_state)
            except ValueError:
                raise Malformed(f"unknown delivery state {batch.delivery_state}", 0) from None
            in_flight = InFlightBatch(
                batch.first_offset,
                batch.last_offset,
                InFlightState(state, batch.delivery_count, NO_MEMBER),
            )
            self._batches.put(in_flight)
            if state.is_terminal:
                self.delivery_complete_count += len(in_flight)
        if not len(self._batches):
            self.end_offset = start_offset
            return
        self._searches = True
        self.end_offset = self._batches.last.last
        if gap != -1:
            self._gap = _Gap(gap, self.end_offset)
        self._move_start()

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

    @property
    def _open_gap(self) -> _Gap | None:
        """The gap, while nothing after the loaded state was acquired."""
        return self._gap if self._gap is not None and self._gap.end == self.end_offset else None

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

    # --- archiving ---

    def _archive_unfetched(self, fetch_offset: int, base: int) -> None:
        """Archive available records that the log no longer has: it begins later than what was asked for."""
        if not len(self._batches) or fetch_offset >= base:
            return
        floor = self._batches.floor(fetch_offset)
        start = floor.first if floor is not None and floor.last >= fetch_offset else fetch_offset
        batches = self._batches.between(start, base - 1)
        if self._archive(fetch_offset, base, batches, _AVAILABLE, counted=True):
            self._searches = True

    def _archive(
        self, first: int, end: int, batches: Iterable[InFlightBatch], state: RecordState, *, counted: bool
    ) -> bool:
        """Archive the records in a state from `first` on up to before `end`; whether there were any."""
        is_any_archived = False
        for batch in batches:
            if batch.first >= end:
                break
            batch_state = batch.batch_state
            if batch_state is not None and batch_state.state is not state:
                continue
            if batch_state is not None and batch.first >= first and batch.last < end:
                batch_state.archive()
                is_any_archived = True
                if counted:
                    self.delivery_complete_count += len(batch)
                continue
            batch.split(self._locks.set)
            for _, own in batch.between(first, end - 1):
                if own.state is state:
                    own.archive()
                    is_any_archived = True
                    if counted:
                        self.delivery_complete_count += 1
        return is_any_archived

    def move_start(self, log_start_offset: int) -> None:
        """The log begins later than the records that were in flight: archive those before."""
        if log_start_offset <= self.start_offset:
            return
        if not len(self._batches):
            self.start_offset = self.end_offset = log_start_offset
            self.delivery_complete_count = 0
            return
        removed = self._terminal_before(log_start_offset)
        if self._archive(self.start_offset, log_start_offset, self._batches, _AVAILABLE, counted=False):
            self._searches = True
        self.start_offset = log_start_offset
        self.delivery_complete_count -= removed
        self.end_offset = max(self.end_offset, log_start_offset)

    def _terminal_before(self, end: int) -> int:
        count = 0
        for batch in self._batches:
            if batch.first >= end:
                break
            if batch.last < self.start_offset:
                continue
            if batch.batch_state is None:
                states = batch.between(self.start_offset, end - 1)
                count += sum(state.state.is_terminal for _, state in states)
            elif batch.batch_state.state.is_terminal:
                count += max(min(end - 1, batch.last) - max(self.start_offset, batch.first) + 1, 0)
        return count

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

    # --- acknowledging ---

    def acknowledge(self, member_id: str, batches: Iterable[AcknowledgementBatch]) -> int:
        """Acknowledge records of a member, all or none; returns the ticket of the outcome.

        Types that are not one for all have to be one for each offset of their batch.
        """
        changes: list[_Change] = []
        try:
            for batch in batches:
                if any(not 0 <= kind <= _RENEW for kind in batch.types):
                    kinds = ", ".join(map(str, batch.types))
                    raise _Refused(_INVALID_REQUEST, f"Invalid acknowledge type: [{kinds}]")
                if batch.last_offset >= self.start_offset:
                    self._acknowledge(member_id, batch, changes)
        except _Refused as refusal:
            return self._end(changes, refusal)
        return self._end(changes, None)

    def _acknowledge(self, member_id: str, batch: AcknowledgementBatch, changes: list[_Change]) -> None:
        """Begin the transitions of one batch of a request."""
        per_offset = len(batch.types) > 1
        for in_flight in self._acknowledged_batches(batch):
            if in_flight.last < self.start_offset:
                continue
            state = in_flight.batch_state
            if state is not None:
                if state.member_id == NO_MEMBER:
                    raise _invalid(
                        "The batch cannot be acknowledged. The batch is not in the acquired state."
                    )
                if state.member_id != member_id:
                    raise _invalid("Member is not the owner of batch record")
                if state.before is not None:
                    raise _invalid(_ONGOING)
            is_part = in_flight.first < batch.first_offset or in_flight.last > batch.last_offset
            if is_part or state is None or per_offset or in_flight.first < self.start_offset:
                if state is not None:
                    if state.state is not _ACQUIRED:
                        raise _invalid(
                            "The batch cannot be acknowledged. The subset batch is not in the acquired state."
                        )
                    in_flight.split(self._locks.set)
                self._acknowledge_offsets(member_id, batch, in_flight, changes)
            else:
                self._acknowledge_whole(batch.types[0], in_flight, state, changes)

    def _acknowledged_batches(self, batch: AcknowledgementBatch) -> list[InFlightBatch]:
        floor = self._batches.floor(batch.first_offset)
        if floor is None and batch.first_offset < self.start_offset:
            floor = self._batches.floor(self.start_offset)
        if floor is None:
            raise _invalid("Batch record not found. The request batch offsets are not found in the cache.")
        batches = self._batches.between(floor.first, batch.last_offset)
        end = batches[-1].last if batches else -1
        if end < batch.first_offset:
            raise _Refused(
                _INVALID_REQUEST,
                "Batch record not found. The first offset in request is past acquired records.",
            )
        if end < batch.last_offset:
            raise _Refused(
                _INVALID_REQUEST,
                "Batch record not found. The last offset in request is past acquired records.",
            )
        return batches

    def _acknowledge_offsets(
        self,
        member_id: str,
        batch: AcknowledgementBatch,
        in_flight: InFlightBatch,
        changes: list[_Change],
    ) -> None:
        first = batch.first_offset
        types = batch.types
        kind = types[0]
        limit = self.config.delivery_count_limit
        per_offset = len(types) > 1
        for offset, state in in_flight.between(max(first, self.start_offset), batch.last_offset):
            if state.state is not _ACQUIRED:
                raise _invalid("The offset cannot be acknowledged. The offset is not acquired.")
            if state.before is not None:
                raise _invalid(_ONGOING)
            if state.member_id != member_id:
                raise _invalid("Member is not the owner of offset")
            if per_offset:
                kind = types[offset - first]
            if kind == _RENEW:
                self._renew(state, offset, offset)
                continue
            if not state.begin(_STATES[kind], limit):
                raise _invalid("Unable to acknowledge records for the batch")
            changes.append(_Change(state, offset, offset))
            if state.state.is_terminal:
                self.delivery_complete_count += 1

    def _acknowledge_whole(
        self, kind: int, in_flight: InFlightBatch, state: InFlightState, changes: list[_Change]
    ) -> None:
        if state.state is not _ACQUIRED:
            raise _invalid("The batch cannot be acknowledged. The batch is not in the acquired state.")
        if kind == _RENEW:
            self._renew(state, in_flight.first, in_flight.last)
            return
        if not state.begin(_STATES[kind], self.config.delivery_count_limit):
            raise _invalid("Unable to acknowledge records for the batch")
        changes.append(_Change(state, in_flight.first, in_flight.last))
        if state.state.is_terminal:
            self.delivery_complete_count += len(in_flight)

    def _renew(self, state: InFlightState, first: int, last: int) -> None:
        if not self.config.renews:
            raise _invalid("Renewing acquisition locks is not enabled for the group.")
        state.unlock()
        state.set_lock(self._set_lock(first, last))

    def release(self, member_id: str) -> int:
        """Release all records that a member has, as its session ends; returns the outcome's ticket."""
        changes: list[_Change] = []
        limit = self.config.delivery_count_limit
        for batch in self._batches:
            state = batch.batch_state
            straddles = batch.first < self.start_offset <= batch.last
            if state is not None and state.state is _ACQUIRED and state.member_id == member_id and straddles:
                batch.split(self._locks.set)
                state = None
            if state is None:
                for offset, own in enumerate(batch.offsets, batch.first):
                    if own.member_id in (member_id, NO_MEMBER) and own.state is _ACQUIRED:
                        is_before = offset < self.start_offset
                        own.begin(_ARCHIVED if is_before else _AVAILABLE, limit)
                        changes.append(_Change(own, offset, offset))
                        if not is_before and own.state.is_terminal:
                            self.delivery_complete_count += 1
            elif state.member_id in (member_id, NO_MEMBER) and state.state is _ACQUIRED:
                state.begin(_ARCHIVED if batch.last < self.start_offset else _AVAILABLE, limit)
                changes.append(_Change(state, batch.first, batch.last))
                if state.state.is_terminal:
                    self.delivery_complete_count += self._counted(batch.first, batch.last)
        return self._end(changes, None)

    def _end(self, changes: list[_Change], refusal: _Refused | None) -> int:
        """Write the changes of an operation, or take them back."""
        ticket = self._tickets = self._tickets + 1
        if refusal is not None:
            self._take_back(changes)
            self._effects.append(
                AcknowledgementOutcome(ticket=ticket, error_code=refusal.code, message=refusal.message)
            )
        elif not changes:
            self._effects.append(AcknowledgementOutcome(ticket=ticket, error_code=0))
        else:
            self._write(changes, [change.batch for change in changes], ticket)
        return ticket

    def _take_back(self, changes: list[_Change]) -> None:
        for change in changes:
            change.state.complete(written=False)
            if change.state.state is _AVAILABLE:
                self._searches = True
            if change.was_terminal and not change.state.state.is_terminal:
                self.delivery_complete_count -= self._counted(
                    change.batch.first_offset, change.batch.last_offset
                )

    def _counted(self, first: int, last: int) -> int:
        """The offsets of a range that are not before the start offset."""
        return last - max(self.start_offset, first) + 1 if last >= self.start_offset else 0

    # --- writing ---

    def effects(self) -> Iterator[ShareEffect]:
        """The effects, each once, in order."""
        while self._effects:
            yield self._effects.popleft()

    def _write(self, changes: list[_Change], batches: list[StateBatch], ticket: int | None) -> None:
        number = self._numbers = self._numbers + 1
        self._writes[number] = changes, ticket
        self._effects.append(
            StateWrite(
                number=number,
                state_epoch=self.state_epoch,
                start_offset=self.start_offset,
                delivery_complete_count=self.delivery_complete_count,
                batches=tuple(batches),
            )
        )

    def written(self, number: int, error_code: int = 0, message: str | None = None) -> None:
        """The write with this number has ended, with an error of the share coordinator or 0."""
        waiting = self._writes.pop(number, None)
        if waiting is None:
            return
        changes, ticket = waiting
        error_code = translated_error(error_code)
        if ticket is None:
            self._move_start()
            return
        if error_code:
            self._take_back(changes)
        else:
            for change in changes:
                change.state.complete(written=True)
                if change.state.state is _AVAILABLE:
                    self._searches = True
            self._move_start()
        self._effects.append(AcknowledgementOutcome(ticket=ticket, error_code=error_code, message=message))

    def _move_start(self) -> None:
        """Let the start offset follow the records that are acknowledged or archived."""
        if not len(self._batches):
            return
        floor = self._batches.floor(self.start_offset)
        state = None if floor is None else floor.at(self.start_offset)
        if state is None or not state.is_final:
            return
        end = self._final_until()
        if end is None:
            return
        last = self._batches.last.last
        if end == last + 1:
            self.start_offset = self.end_offset = end
            self._batches.clear()
            self.delivery_complete_count = 0
            return
        count = self._final_count(end)
        batch = self._batches.floor(end - 1)
        assert batch is not None
        if batch.last == end - 1:
            following = self._batches.next_after(end - 1)
            assert following is not None
            gap = self._open_gap
            self.start_offset = max(following.first, self.start_offset)
            if gap is not None:
                self.start_offset = min(gap.start, self.start_offset)
            batch_start = following.first
        else:
            self.start_offset = max(end, self.start_offset)
            batch_start = batch.first
        self.delivery_complete_count -= count
        self._batches.drop_before(batch_start)

    def _final_until(self) -> int | None:
        """The offset after the records from the first batch on that are terminal; None if there are none."""
        gap = self._open_gap
        end = None
        for batch in self._batches:
            if gap is not None and batch.last >= gap.start:
                break
            until = batch.final_until()
            if until > batch.first:
                end = until
            if until <= batch.last:
                break
        return end

    def _final_count(self, end: int) -> int:
        """The offsets in flight from the start offset on up to before `end`, all of which are terminal."""
        return sum(
            self._counted(batch.first, min(batch.last, end - 1))
            for batch in self._batches.between(self._batches.first.first, end - 1)
        )

    # --- locks ---

    def _set_lock(self, first: int, last: int) -> AcquisitionLock:
        return self._locks.set(first, last, self.now + self.config.lock_duration_ms)

    def next_deadline(self) -> int | None:
        """When `advance` has something to do next."""
        return self._locks.next_deadline()

    def advance(self, now: int) -> bool:
        """Set the time, and end the locks that are over, each at its own time.

        Returns False if locks remain: one of them ended with state to write. Take the effects, write the
        state, and call again.
        """
        while (deadline := self._locks.next_deadline()) is not None and deadline <= now:
            self.now = max(self.now, deadline)
            lock = self._locks.pop()
            lock.has_expired = True
            if self._unlock(lock):
                return False
        self.now = max(self.now, now)
        return True

    def _unlock(self, lock: AcquisitionLock) -> bool:
        """Release the records of a lock that is over; whether there is state to write."""
        floor = self._batches.floor(lock.first)
        if floor is None:
            return False
        batches: list[StateBatch] = []
        for batch in self._batches.between(floor.first, lock.last):
            state = batch.batch_state
            if (
                state is not None
                and state.state is _ACQUIRED
                and batch.first < self.start_offset <= batch.last
            ):
                batch.split(self._locks.set)
                state = None
            if state is not None:
                self._unlock_state(state, batch.first, batch.last, batches)
            else:
                for offset, own in batch.between(lock.first, lock.last):
                    self._unlock_state(own, offset, offset, batches)
        if batches:
            self._write([], batches, None)
        return bool(batches)

    def _unlock_state(self, state: InFlightState, first: int, last: int, batches: list[StateBatch]) -> None:
        if state.state is not _ACQUIRED:
            return
        target = _ARCHIVED if last < self.start_offset else _AVAILABLE
        if not state.try_release(target, self.config.delivery_count_limit):
            return
        batches.append(StateBatch(first, last, state.delivery_count, int(state.state)))
        state.unlock()
        if state.state is _AVAILABLE:
            self._searches = True
        if state.state.is_terminal:
            self.delivery_complete_count += self._counted(first, last)

    def deadlines(self) -> list[tuple[int, int, int]]:
        """Deadline, first and last offset of each lock."""
        return self._locks.deadlines()

    @property
    def records_in_flight(self) -> list[tuple[int, int, RecordState, int, str]]:
        """First and last offset, state, deliveries and member of each run: to look at."""
        runs = []
        for batch in self._batches:
            if batch.batch_state is not None:
                batch_state = batch.batch_state
                runs.append(
                    (
                        batch.first,
                        batch.last,
                        batch_state.state,
                        batch_state.delivery_count,
                        batch_state.member_id,
                    )
                )
            else:
                for offset, own in enumerate(batch.offsets, batch.first):
                    runs.append((offset, offset, own.state, own.delivery_count, own.member_id))
        return runs


_ONGOING = "The record state is invalid. The acknowledgement of delivery could not be completed."


def _invalid(message: str) -> _Refused:
    return _Refused(_INVALID_RECORD_STATE, message)


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
