"""The records of a share partition in flight, by their states: loaded, archived, written, unlocked.

Strategy: batches between the start and the end offset, which split when their records go different ways. A
change is written to the share coordinator before it holds; the start offset follows the records that are
acknowledged or archived. Rules: time is an input; work is linear in the records in flight. Records with a
dead letter are archived in two writes, and delivered as a dead letter between them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from coordwire.coordinator.share_partition.effects import (
    AcknowledgementOutcome,
    DeadLetters,
    ShareEffect,
    SharePartitionConfig,
    StateWrite,
    translated_error,
)
from coordwire.coordinator.share_partition.in_flight import (
    NO_MEMBER,
    AcquisitionLock,
    BatchMap,
    InFlightBatch,
    InFlightState,
    Locks,
    RecordState,
)
from coordwire.coordinator.share_state.model import StateBatch
from coordwire.errors import Malformed

_AVAILABLE, _ACQUIRED, _ACKNOWLEDGED, _ARCHIVING, _ARCHIVED = (
    RecordState.AVAILABLE, RecordState.ACQUIRED, RecordState.ACKNOWLEDGED, RecordState.ARCHIVING,
    RecordState.ARCHIVED,
)  # fmt: skip


class StateChange:
    """A transition that is to be written, and its batch in `__share_group_state`. is_rejected: a member
    rejected the records."""

    __slots__ = ("batch", "is_rejected", "state")

    def __init__(self, state: InFlightState, first: int, last: int, *, is_rejected: bool = False) -> None:
        self.state = state
        self.is_rejected = is_rejected
        self.batch = StateBatch(first, last, state.delivery_count, int(state.state))

    @property
    def was_terminal(self) -> bool:
        return self.batch.delivery_state in (_ACKNOWLEDGED, _ARCHIVED)


class StateGap:
    """Offsets that the persisted state leaves out, which may have records: from `start` to the end offset
    that was loaded."""

    __slots__ = ("end", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end


class DeliveryStates:
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
        self._writes: dict[int, tuple[list[StateChange], list[StateBatch], int | None]] = {}
        self._dead_letters: dict[int, DeadLetters] = {}
        self._numbers = 0
        self._tickets = 0
        self._searches = False
        self._gap: StateGap | None = None

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
            if state is _ARCHIVING and self.config.resumes_archiving:
                self._send_dead_letters(batch, is_rejected=batch.delivery_count < self._most_deliveries)
        if not len(self._batches):
            self.end_offset = start_offset
            return
        self._searches = True
        self.end_offset = self._batches.last.last
        if gap != -1:
            self._gap = StateGap(gap, self.end_offset)
        self._move_start()

    @property
    def _open_gap(self) -> StateGap | None:
        """The gap, while nothing after the loaded state was acquired."""
        return self._gap if self._gap is not None and self._gap.end == self.end_offset else None

    @property
    def _most_deliveries(self) -> int:
        return self.config.delivery_count_limit

    @property
    def _undeliverable(self) -> RecordState:
        """The state of records that are rejected or were delivered too often."""
        return _ARCHIVING if self.config.has_dead_letters else _ARCHIVED

    # --- archiving ---

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

    # --- writing ---

    def effects(self) -> Iterator[ShareEffect]:
        """The effects, each once, in order."""
        while self._effects:
            yield self._effects.popleft()

    def _write(self, changes: list[StateChange], batches: list[StateBatch], ticket: int | None) -> None:
        number = self._numbers = self._numbers + 1
        self._writes[number] = changes, batches, ticket
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
        changes, batches, ticket = waiting
        error_code = translated_error(error_code)
        if ticket is None:
            self._move_start()
            for batch in batches:
                if batch.delivery_state == _ARCHIVING:
                    self._send_dead_letters(batch, is_rejected=False)
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
        if not error_code:
            for change in changes:
                if change.batch.delivery_state == _ARCHIVING:
                    self._send_dead_letters(change.batch, is_rejected=change.is_rejected)

    def _send_dead_letters(self, batch: StateBatch, *, is_rejected: bool) -> None:
        number = self._numbers = self._numbers + 1
        letters = DeadLetters(
            number=number, first_offset=batch.first_offset, last_offset=batch.last_offset,
            delivery_count=batch.delivery_count, is_rejected=is_rejected,
        )  # fmt: skip
        self._dead_letters[number] = letters
        self._effects.append(letters)

    def archived(self, number: int) -> None:
        """The dead letters with this number are written, or could not be: their records are archived."""
        letters = self._dead_letters.pop(number, None)
        if letters is None:
            return
        first, last = letters.first_offset, letters.last_offset
        floor = self._batches.floor(first)
        batches = self._batches.between(first if floor is None else floor.first, last)
        self._archive(first, last + 1, batches, _ARCHIVING, counted=False)
        self.delivery_complete_count += self._counted(first, last)
        self._write([], [StateBatch(first, last, letters.delivery_count, int(_ARCHIVED))], None)

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
        if not state.try_release(target, self._most_deliveries, self._undeliverable):
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

    def _take_back(self, changes: list[StateChange]) -> None:
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
