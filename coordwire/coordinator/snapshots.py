"""State that can be read as of the last durable write, and reverted to before a failed one.

Strategy: one `Snapshots` for a shard; each write that is handed to the log ends an epoch, named by the
log's end offset after it. The first change of a key in an epoch keeps the value that the key had when the
epoch began.

    changes:   epoch 0 | epoch 5 | epoch 9 (now)
    revert(5): undoes all that epoch 5 and 9 changed
    commit(9): drops what epochs before 9 kept; `committed` reads as of the beginning of the oldest one kept

Rules: values are replaced, never mutated, unless they keep track of their own changes; None is not a value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, KeysView, ValuesView
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["SnapshotDict", "SnapshotValue", "Snapshots"]

K = TypeVar("K")
V = TypeVar("V")


class _Table(Protocol):
    """A table that keeps track of its own changes."""

    def undo(self, key: Any) -> object | None:
        """Take back the newest epoch's change; or remove the key, and return the value for `restore`."""

    def restore(self, key: Any, value: Any) -> None: ...
    def forget(self, key: Any) -> None:
        """Drop the oldest stored change, which is durable."""


class Snapshots:
    """The epochs of a shard's state."""

    def __init__(self) -> None:
        self.epoch = 0
        self._changed: deque[tuple[int, list[tuple[_Table, Hashable]]]] = deque([(0, [])])

    def begin(self, epoch: int) -> None:
        """Begin an epoch, after the write that ends at this offset."""
        self.epoch = epoch
        self._changed.append((epoch, []))

    def changed(self, table: _Table, key: Hashable) -> None:
        self._changed[-1][1].append((table, key))

    def revert(self, epoch: int) -> None:
        """Undo every change since the beginning of an epoch."""
        while self._changed[-1][0] > epoch:
            self._undo()
            self._changed.pop()
        self._undo()
        self.epoch = epoch

    def _undo(self) -> None:
        """Take back one epoch. A restored key is the newest in its table, as in Apache Kafka's."""
        changed = self._changed[-1][1]
        before = [(table, key, table.undo(key)) for table, key in changed]
        for table, key, value in before:
            if value is not None:
                table.restore(key, value)
        changed.clear()

    def commit(self, epoch: int) -> None:
        """Drop the changes before this offset, up to which the log is durable."""
        while len(self._changed) > 1 and self._changed[0][0] < epoch:
            for table, key in self._changed.popleft()[1]:
                table.forget(key)


class SnapshotValue(Generic[V]):
    """One value under a shard's `Snapshots`."""

    __slots__ = ("_before", "_snapshots", "value")

    def __init__(self, snapshots: Snapshots, value: V) -> None:
        self._snapshots = snapshots
        self._before: deque[tuple[int, V]] = deque()
        self.value = value

    def set(self, value: V) -> None:
        epoch = self._snapshots.epoch
        if not self._before or self._before[-1][0] < epoch:
            self._before.append((epoch, self.value))
            self._snapshots.changed(self, None)
        self.value = value

    @property
    def committed(self) -> V:
        """The value as of the last durable write."""
        return self._before[0][1] if self._before else self.value

    def undo(self, key: None) -> None:
        self.value = self._before.pop()[1]

    def restore(self, key: None, value: None) -> None:
        """Do nothing: `undo` restored the value."""

    def forget(self, key: None) -> None:
        self._before.popleft()


class SnapshotDict(Generic[K, V]):
    """A dictionary under a shard's `Snapshots`.

    peak: the largest number of keys that it had or made room for: Apache Kafka's table makes room for one
    more before it looks whether the key is there. changes: the number of changes, for caches of derived
    values. get: the value of a key as it is now, or None.
    """

    __slots__ = ("_before", "_snapshots", "_values", "changes", "get", "peak")

    get: Callable[[K], V | None]

    def __init__(self, snapshots: Snapshots) -> None:
        self._snapshots = snapshots
        self.peak = 0
        self.changes = 0
        self._values: dict[K, V] = {}
        self.get = self._values.get
        self._before: dict[K, deque[tuple[int, V | None]]] = {}

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[K]:
        return iter(list(self._values))

    def keys(self) -> KeysView[K]:
        """The keys, to be read while nothing changes; `values_view` gives the values so."""
        return self._values.keys()

    def values_view(self) -> ValuesView[V]:
        return self._values.values()

    def values(self) -> list[V]:
        return list(self._values.values())

    def items(self) -> list[tuple[K, V]]:
        return list(self._values.items())

    def __getitem__(self, key: K) -> V:
        return self._values[key]

    def __setitem__(self, key: K, value: V) -> None:
        self._keep(key)
        if len(self._values) >= self.peak:
            self.peak = len(self._values) + 1
        self._values[key] = value

    def pop(self, key: K) -> V | None:
        if key not in self._values:
            return None
        self._keep(key)
        return self._values.pop(key)

    def is_new(self, key: K) -> bool:
        """Whether the value changed after the last write that was handed to the log."""
        before = self._before.get(key)
        return before is not None and before[-1][0] == self._snapshots.epoch

    def committed(self, key: K) -> V | None:
        """The value as of the last durable write."""
        before = self._before.get(key)
        return before[0][1] if before else self._values.get(key)

    def committed_items(self) -> list[tuple[K, V]]:
        if not self._before:
            return list(self._values.items())
        keys = dict.fromkeys([*self._values, *self._before])
        return [(key, value) for key in keys if (value := self.committed(key)) is not None]

    def _keep(self, key: K) -> None:
        self.changes += 1
        before = self._before.get(key)
        if before is None:
            before = self._before[key] = deque()
        epoch = self._snapshots.epoch
        if not before or before[-1][0] < epoch:
            before.append((epoch, self._values.get(key)))
            self._snapshots.changed(self, key)

    def undo(self, key: K) -> V | None:
        """Remove the key, and return the value that it had when the epoch began."""
        self.changes += 1
        _, value = self._before[key].pop()
        if not self._before[key]:
            del self._before[key]
        self._values.pop(key, None)
        return value

    def restore(self, key: K, value: V) -> None:
        self._values[key] = value

    def forget(self, key: K) -> None:
        before = self._before[key]
        before.popleft()
        if not before:
            del self._before[key]
