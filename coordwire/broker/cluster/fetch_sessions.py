"""Fetch sessions (KIP-227): a client sends only what has changed since its last request, and is answered so.

Strategy: Kafka's `FetchManager` and `IncrementalFetchContext`. A session keeps the partitions in the order in
which they came; an answer moves partitions with records to the end, so that each gets its turn. Rules: the
number of sessions is bounded; when there is no room, the client gets none and sends full requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import UUID

from coordwire._dataclasses import dataclass
from coordwire.messages.fetch import FetchPartition, PartitionData

FINAL_EPOCH = -1
_HIGHEST = 0x7FFFFFFF
_IDLE_MS = 120_000
"""How long a session is idle before another may take its place."""

FetchKey = tuple[str, UUID, int]
"""A topic's name (before version 13, else empty), its id (since then) and the partition."""


@dataclass(slots=True)
class _Entry:
    """A partition of a session, and what its client got last."""

    partition: FetchPartition
    high_watermark: int = -1
    start_offset: int = -1


class FetchSession:
    """One client's session. epoch: that of the next request."""

    def __init__(self, number: int, uses_ids: bool, now: int) -> None:
        self.id = number
        self.uses_ids = uses_ids
        self.epoch = 1
        self.used = now
        self._entries: dict[FetchKey, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def update(
        self, changed: Iterable[tuple[FetchKey, FetchPartition]], forgotten: Iterable[FetchKey]
    ) -> None:
        """Apply the changes of a request."""
        for key, partition in changed:
            entry = self._entries.get(key)
            if entry is None:
                self._entries[key] = _Entry(partition)
            else:
                entry.partition = partition
        for key in forgotten:
            self._entries.pop(key, None)

    def partitions(self) -> list[tuple[FetchKey, FetchPartition]]:
        return [(key, entry.partition) for key, entry in self._entries.items()]

    def changed(self, key: FetchKey, data: PartitionData) -> bool:
        """Whether the client does not know this yet; it gets it now."""
        entry = self._entries.get(key)
        if entry is None:
            return True
        has_records = bool(data.records)
        is_new = (
            has_records
            or bool(data.error_code)
            or entry.high_watermark != data.high_watermark
            or entry.start_offset != data.log_start_offset
            or data.diverging_epoch.epoch >= 0
            or data.preferred_read_replica >= 0
        )
        entry.high_watermark = -1 if data.error_code else data.high_watermark
        entry.start_offset = data.log_start_offset
        if has_records:
            self._entries[key] = self._entries.pop(key)
        return is_new

    def advance(self, now: int) -> None:
        """Note a request of this session."""
        self.epoch = 1 if self.epoch == _HIGHEST else self.epoch + 1
        self.used = now


class FetchSessions:
    """The sessions of one node. most: as many are kept. new_id: gives a random positive int32."""

    def __init__(self, most: int, new_id: Callable[[], int]) -> None:
        self._most = most
        self._new_id = new_id
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def clear(self) -> None:
        """Drop all sessions, as a broker does that went down."""
        self._sessions.clear()

    def find(self, number: int) -> FetchSession | None:
        return self._sessions.get(number)

    def remove(self, number: int) -> None:
        self._sessions.pop(number, None)

    def create(self, uses_ids: bool, now: int) -> FetchSession | None:
        """A new session; None if there is no room."""
        if len(self._sessions) >= self._most:
            oldest = min(self._sessions.values(), key=lambda session: session.used, default=None)
            if oldest is None or now - oldest.used < _IDLE_MS:
                return None
            self.remove(oldest.id)
        number = self._new_id()
        while number in self._sessions or number == 0:
            number = number % _HIGHEST + 1
        session = self._sessions[number] = FetchSession(number, uses_ids, now)
        return session
