"""The records of a coordinator's log that are still valid at its end.

Strategy: `decide` remembers a transaction's commits and hands them to the marker that ends it. `latest` keeps
the last value of each key, as the coordinator does when it loads its log: a transaction's commit counts from
its marker on, and only where there is no later one; a tombstone takes away what was there and what is
pending. Rules: both follow the items' order, so the segments of a partition come in theirs. What is pending
is bounded; what `latest` keeps is as large as the coordinator's own state.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from coordwire.timeline.from_log.coordinator_log import CoordinatorRecord, LogItem, Marker

NO_OP = "NoOp"
"""The record that a controller writes so that there is one."""

MOST_PENDING = 100_000
"""So many undecided commits are remembered; beyond them the oldest transaction is forgotten."""


def decide(items: Iterable[LogItem]) -> Iterator[LogItem]:
    """The items, each commit or abort marker with the records that it decides (`Marker.decided`)."""
    pending = _Pending()
    for item in items:
        if isinstance(item, CoordinatorRecord):
            pending.see(item)
        elif isinstance(item, Marker) and item.kind in ("commit", "abort"):
            yield replace(item, decided=pending.take(item))
            continue
        yield item


@dataclass(slots=True)
class Latest:
    """The state at the end of some segments.

    records: the last of each key, and all of a log without keys, in the order in which they were written.
    pending: of transactions that were not ended. removed: keys that a tombstone took away. no_ops: the
    metadata log's records that say nothing, which are left out.
    """

    records: list[CoordinatorRecord] = field(default_factory=list)
    pending: list[CoordinatorRecord] = field(default_factory=list)
    removed: int = 0
    no_ops: int = 0


def latest(items: Iterable[LogItem]) -> Latest:
    """The compacted view of items: those of whole segments, partition by partition. Markers and what
    couldn't be read only steer it."""
    standing: dict[Hashable, tuple[int, CoordinatorRecord]] = {}
    pending = _Pending()
    removed = no_ops = 0
    for number, item in enumerate(items):
        if isinstance(item, CoordinatorRecord):
            key = item.identity
            if item.kind == NO_OP:
                no_ops += 1
            elif key is None:
                standing[number] = number, item
            elif item.tombstone:
                removed += standing.pop(key, None) is not None
                pending.drop(key)
            elif item.transactional:
                pending.see(item)
            else:
                standing.pop(key, None)
                standing[key] = number, item
        elif isinstance(item, Marker):
            for record in pending.take(item):
                before = standing.get(record.identity)
                if item.kind == "commit" and (before is None or before[1].log_offset < record.log_offset):
                    standing.pop(record.identity, None)
                    standing[record.identity] = number, record
    records = [record for _, record in sorted(standing.values(), key=lambda pair: pair[0])]
    return Latest(records, pending.remaining(), removed, no_ops)


class _Pending:
    """The commits of open transactions, by producer in a partition of the log."""

    def __init__(self) -> None:
        # The first is found at once: a dict's iteration steps over the places of those that are gone.
        self._open: OrderedDict[Hashable, dict[Hashable, CoordinatorRecord]] = OrderedDict()
        self._producers: dict[Hashable, set[Hashable]] = {}
        self._count = 0

    def see(self, record: CoordinatorRecord) -> None:
        key = record.identity
        if not record.transactional or key is None:
            return
        producer = _producer(record)
        commits = self._open.setdefault(producer, {})
        self._count += key not in commits
        commits[key] = record
        self._producers.setdefault(key, set()).add(producer)
        while self._count > MOST_PENDING:
            self._forget(next(iter(self._open)))

    def take(self, marker: Marker) -> tuple[CoordinatorRecord, ...]:
        """Remove and return the commits that this marker decides."""
        return tuple(self._forget(_producer(marker)).values())

    def drop(self, key: Hashable) -> None:
        """Take a key out of all transactions."""
        for producer in self._producers.pop(key, ()):
            commits = self._open[producer]
            del commits[key]
            self._count -= 1
            if not commits:
                del self._open[producer]

    def remaining(self) -> list[CoordinatorRecord]:
        return [record for commits in self._open.values() for record in commits.values()]

    def _forget(self, producer: Hashable) -> dict[Hashable, CoordinatorRecord]:
        commits = self._open.pop(producer, {})
        self._count -= len(commits)
        for key in commits:
            positions = self._producers[key]
            positions.discard(producer)
            if not positions:
                del self._producers[key]
        return commits


def _producer(item: CoordinatorRecord | Marker) -> Hashable:
    return item.log, item.log_partition, item.producer_id
