"""The log of a shard: records and markers on their way, and the ids as durable records say.

Rules: an id's facts change when a record of them is durable. Markers follow a decision that is durable, and
are written again until each partition has them; then so is the record that completes the transaction. Ids
that were not used for long are removed by tombstones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from coordwire.coordinator.config import TransactionConfig
from coordwire.coordinator.refusal import translated
from coordwire.coordinator.timers import Timers
from coordwire.coordinator.transactions.decisions import IDLE
from coordwire.coordinator.transactions.effects import MarkersToWrite, TransactionAppend, TransactionEffect
from coordwire.coordinator.transactions.records import record_of, tombstone_of
from coordwire.coordinator.transactions.transactional_id import (
    NO_TIMEOUT,
    Place,
    TransactionalId,
    TransactionFacts,
)
from coordwire.enums import ErrorCode, TransactionStatus
from coordwire.logs import LogRecord

__all__ = ["Then", "TransactionLog", "nothing"]


_FINAL = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
"""Answers to a marker after which this coordinator leaves the transaction alone."""

_EXPIRATION = "expiration"

Then = Callable[[int], None]


def nothing(*_: object) -> None:
    """No operation waits for it."""


class _Write(NamedTuple):
    """A record on its way. facts: of the id when it is durable, None for a tombstone. retry: it is written
    again until it is."""

    names: tuple[str, ...]
    facts: TransactionFacts | None
    then: Then
    retry: bool = False


class TransactionLog:
    """What is on its way to the log, and back."""

    def __init__(self, config: TransactionConfig, now: int) -> None:
        self.config = config
        self.now = now
        self.coordinator_epoch = 0
        self.ids: dict[str, TransactionalId] = {}
        self._began = now
        self._effects: deque[TransactionEffect] = deque()
        self._timers: Timers[None] = Timers()
        self._numbers = 0
        self._writes: dict[int, _Write] = {}
        self._markers: dict[int, tuple[TransactionalId, TransactionFacts]] = {}

    def effects(self) -> Iterator[TransactionEffect]:
        """What is to be done, each once, in order."""
        while self._effects:
            yield self._effects.popleft()

    def _clear(self) -> list[_Write]:
        """Forget all ids; gives the records that were on their way."""
        writes = list(self._writes.values())
        self.ids = {}
        self._writes, self._markers, self._timers = {}, {}, Timers()
        return writes

    # --- the log ---

    def _append(
        self, one: TransactionalId, after: TransactionFacts, then: Then, *, retry: bool = False
    ) -> None:
        self._submit(_Write((one.name,), after, then, retry), record_of(one.name, after, self.config.version))

    def _submit(self, write: _Write, *records: LogRecord) -> None:
        self._numbers += 1
        self._writes[self._numbers] = write
        self._effects.append(TransactionAppend(number=self._numbers, records=records))

    def appended(self, number: int) -> None:
        """The append with this number is durable."""
        write = self._writes.pop(number, None)
        if write is None:
            return
        if write.facts is None:
            for name in write.names:
                del self.ids[name]
            if not self.ids:
                self._timers.cancel(_EXPIRATION)
        else:
            one = self.ids[write.names[0]]
            one.facts, one.pending = write.facts, None
            self._became(one)
        write.then(0)

    def failed(self, number: int, error: int) -> None:
        """The append with this number failed, with a broker's error code."""
        write = self._writes.pop(number, None)
        if write is None:
            return
        code = translated(error)
        if write.retry and write.facts is not None:
            facts, one = write.facts, self.ids[write.names[0]]
            self._timers.set(
                ("complete", one.name),
                self.now + self.config.retry_ms,
                lambda: self._append(one, facts, write.then, retry=True),
            )
            return
        for name in write.names:
            self.ids[name].pending = None
        write.then(code)

    # --- markers ---

    def _write_markers(self, one: TransactionalId, completed: TransactionFacts) -> None:
        facts = one.facts
        if not facts.places:
            self._append(one, completed, nothing, retry=True)
            return
        self._numbers += 1
        self._markers[self._numbers] = (one, completed)
        self._effects.append(
            MarkersToWrite(
                number=self._numbers,
                transactional_id=one.name,
                producer_id=facts.producer_id,
                producer_epoch=facts.producer_epoch,
                committed=facts.status is TransactionStatus.PREPARE_COMMIT,
                coordinator_epoch=self.coordinator_epoch,
                transaction_version=facts.version,
                places=facts.places,
            )
        )

    def marked(self, number: int, errors: Mapping[Place, int]) -> None:
        """What became of the markers with this number, for each partition; 0 for one that is gone too.

        What failed is written again, until another coordinator or a newer epoch is in the way.
        """
        found = self._markers.pop(number, None)
        if found is None:
            return
        one, completed = found
        one.marked([place for place, error in errors.items() if not error])
        if any(error in _FINAL for error in errors.values()):
            return
        if not one.facts.places:
            self._append(one, completed, nothing, retry=True)
            return
        self._timers.set(
            ("markers", one.name),
            self.now + self.config.retry_ms,
            lambda: self._write_markers(one, completed),
        )

    # --- timers that go with facts ---

    def _tick(self, due: int, interval: int) -> int:
        """The first check at or after a time; checks come at this interval from the start on."""
        return self._began + max(1, -((self._began - due) // interval)) * interval

    def _became(self, one: TransactionalId) -> None:
        """Set the timers that go with an id's facts."""
        facts, key = one.facts, ("timeout", one.name)
        if facts.status is TransactionStatus.ONGOING and facts.timeout_ms != NO_TIMEOUT:
            due = facts.start_time + facts.timeout_ms + 1
            self._timers.set(
                key, self._tick(due, self.config.abort_interval_ms), lambda: self._time_over(one)
            )
        else:
            self._timers.cancel(key)
        self._watch_expiration()

    def _time_over(self, one: TransactionalId) -> None:
        """A transaction has been open for too long."""
        raise NotImplementedError

    def _watch_expiration(self) -> None:
        if not self._timers.is_set(_EXPIRATION):
            interval = self.config.expiration_interval_ms
            self._timers.set(_EXPIRATION, self._tick(self.now + 1, interval), self._expire)

    def _expire(self) -> None:
        """Remove the ids that were not used for long."""
        latest = self.now - self.config.expiration_ms
        gone = [
            one
            for one in self.ids.values()
            if one.pending is None and one.facts.status in IDLE and one.facts.update_time <= latest
        ]
        for one in gone:
            one.expires()
        if gone:
            names = tuple(one.name for one in gone)
            self._submit(_Write(names, None, nothing), *map(tombstone_of, names))
        if self.ids:
            self._watch_expiration()
