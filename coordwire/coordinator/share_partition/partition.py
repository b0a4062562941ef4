"""A share partition (KIP-932): the records of one partition that are in flight in one share group.

    partition = SharePartition(config, now=...)
    partition.load(start_offset, state_epoch, batches)       what the share coordinator has
    records = partition.acquire(member_id, fetched, ...)     records for a member, locked for it
    ticket = partition.acknowledge(member_id, batches)       and the outcome, after its state was written
    for effect in partition.effects(): ...                   StateWrite: write it, then `written`; an outcome;
                                                             DeadLetters: write them, then `archived`
    partition.next_deadline(); partition.advance(now)        locks end by the clock

Strategy: Apache Kafka's SharePartition, step by step. `delivery_states` has the records in flight, and
`acquisition` how members get them; here members acknowledge and release them. Rules: time is an input;
nothing that a client sends raises, but for `AcquisitionFailed`, after which the records that were acquired
stay so until their locks end. Work is linear in the records in flight, of which there are at most
`max_record_locks` and those of one fetched batch.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordwire.coordinator.share_partition.acquisition import Acquisition
from coordwire.coordinator.share_partition.delivery_states import StateChange
from coordwire.coordinator.share_partition.effects import AcknowledgementBatch, AcknowledgementOutcome
from coordwire.coordinator.share_partition.in_flight import (
    NO_MEMBER,
    InFlightBatch,
    InFlightState,
    RecordState,
)
from coordwire.enums import ErrorCode

_AVAILABLE, _ACQUIRED, _ACKNOWLEDGED, _ARCHIVED = (
    RecordState.AVAILABLE, RecordState.ACQUIRED, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED,
)  # fmt: skip

_REJECT, _RENEW = 3, 4
_STATES = {0: _ARCHIVED, 1: _ACKNOWLEDGED, 2: _AVAILABLE}
"""The state after each type of acknowledgement but a rejection."""

_INVALID_RECORD_STATE = int(ErrorCode.INVALID_RECORD_STATE)
_INVALID_REQUEST = int(ErrorCode.INVALID_REQUEST)
_ONGOING = "The record state is invalid. The acknowledgement of delivery could not be completed."


class _Refused(Exception):
    """An acknowledgement that is refused; what it has begun is taken back."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class SharePartition(Acquisition):
    """The records of a partition in flight in a group.

    >>> from coordwire.coordinator.share_partition import SharePartition
    >>> partition = SharePartition()
    >>> partition.load(10, state_epoch=0, batches=[])
    >>> partition.acquire("m", [(10, 14)], fetch_offset=10, max_records=500, batch_size=500)
    [AcquiredRecords(first_offset=10, last_offset=14, delivery_count=1)]
    >>> partition
    <SharePartition at 10..14: 5 in flight>
    """

    def __repr__(self) -> str:
        return f"<SharePartition at {self.start_offset}..{self.end_offset}: {self.in_flight} in flight>"

    # --- acknowledging ---

    def acknowledge(self, member_id: str, batches: Iterable[AcknowledgementBatch]) -> int:
        """Acknowledge records of a member, all or none; returns the ticket of the outcome.

        Types that are not one for all have to be one for each offset of their batch.
        """
        changes: list[StateChange] = []
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

    def _acknowledge(self, member_id: str, batch: AcknowledgementBatch, changes: list[StateChange]) -> None:
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
        changes: list[StateChange],
    ) -> None:
        first = batch.first_offset
        types = batch.types
        kind = types[0]
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
            self._begin(kind, state, offset, offset, changes)
            if state.state.is_terminal:
                self.delivery_complete_count += 1

    def _acknowledge_whole(
        self, kind: int, in_flight: InFlightBatch, state: InFlightState, changes: list[StateChange]
    ) -> None:
        if state.state is not _ACQUIRED:
            raise _invalid("The batch cannot be acknowledged. The batch is not in the acquired state.")
        if kind == _RENEW:
            self._renew(state, in_flight.first, in_flight.last)
            return
        self._begin(kind, state, in_flight.first, in_flight.last, changes)
        if state.state.is_terminal:
            self.delivery_complete_count += len(in_flight)

    def _begin(
        self, kind: int, state: InFlightState, first: int, last: int, changes: list[StateChange]
    ) -> None:
        """Begin the transition of an acknowledgement."""
        undeliverable, is_rejected = self._undeliverable, kind == _REJECT
        target = undeliverable if is_rejected else _STATES[kind]
        if not state.begin(target, self._most_deliveries, undeliverable):
            raise _invalid("Unable to acknowledge records for the batch")
        changes.append(StateChange(state, first, last, is_rejected=is_rejected))

    def _renew(self, state: InFlightState, first: int, last: int) -> None:
        if not self.config.renews:
            raise _invalid("Renewing acquisition locks is not enabled for the group.")
        state.unlock()
        state.set_lock(self._set_lock(first, last))

    def release(self, member_id: str) -> int:
        """Release all records that a member has, as its session ends; returns the outcome's ticket."""
        changes: list[StateChange] = []
        limit, undeliverable = self._most_deliveries, self._undeliverable
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
                        own.begin(_ARCHIVED if is_before else _AVAILABLE, limit, undeliverable)
                        changes.append(StateChange(own, offset, offset))
                        if not is_before and own.state.is_terminal:
                            self.delivery_complete_count += 1
            elif state.member_id in (member_id, NO_MEMBER) and state.state is _ACQUIRED:
                target = _ARCHIVED if batch.last < self.start_offset else _AVAILABLE
                state.begin(target, limit, undeliverable)
                changes.append(StateChange(state, batch.first, batch.last))
                if state.state.is_terminal:
                    self.delivery_complete_count += self._counted(batch.first, batch.last)
        return self._end(changes, None)

    def _end(self, changes: list[StateChange], refusal: _Refused | None) -> int:
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


def _invalid(message: str) -> _Refused:
    return _Refused(_INVALID_RECORD_STATE, message)
