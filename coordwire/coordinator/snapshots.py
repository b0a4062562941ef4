"""State that can be read as of the last durable write, and reverted to before a failed one.

Strategy: one `Snapshots` for a shard; each write that is handed to the log ends an epoch, named by the
log's end offset after it. The first change of a key in an epoch keeps the value that the key had when the
epoch began.

    changes:   epoch 0 | epoch 5 | epoch 9 (now)
    revert(5): undoes all that epoch 5 and 9 changed
    commit(9): drops what epochs before 9 kept; `committed` reads as of the beginning of the oldest one kept

A table's order is that of Kafka's `TimelineHashMap`: by slot, which is the upper bits of a key's hash after a
multiplication, and in a slot the newest key first. It is made when it is asked for and kept until it changes.

Rules: values are replaced, never mutated, unless they keep track of their own changes; None is not a value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, KeysView, Sequence, ValuesView
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from coordwire.coordinator.hash_tables import java_hash

K = TypeVar("K")
V = TypeVar("V")


# --- slots ---

_FIBONACCI = 0x9E3779B97F4A7C15
_INT64 = (1 << 64) - 1


@lru_cache(maxsize=1 << 14)
def _string_place(text: str) -> int:
    """The number whose upper bits are a string's slot."""
    return java_hash(text) * _FIBONACCI & _INT64


def _other_place(key: Any) -> int:
    hashed: int = key.java_hash
    return (hashed - (1 << 32) if hashed >> 31 else hashed) * _FIBONACCI & _INT64


def _bits(peak: int) -> int:
    """The number of bits of a slot in a table with this peak size."""
    bits = 1
    while peak * 3 > 4 << bits:
        bits += 1
    return bits


def _has_order(keys: Sequence[Any]) -> bool:
    """Whether keys have a slot; no caller needs the order of others."""
    return bool(keys) and (isinstance(keys[0], str) or hasattr(keys[0], "java_hash"))


def _slots(keys: Sequence[Any], peak: int) -> list[int]:
    """The slot of each key in a table with this peak size."""
    if not _has_order(keys):
        return [0] * len(keys)
    shift = 64 - _bits(peak)
    place_of = _string_place if isinstance(keys[0], str) else _other_place
    return [place >> shift for place in map(place_of, keys)]


def _in_order(keys: list[K], peak: int) -> list[K]:
    """Keys, given in the order of their arrival, slot by slot."""
    if len(keys) < 2 or not _has_order(keys):
        return keys
    keys.reverse()
    slots = _slots(keys, peak)
    return list(map(keys.__getitem__, sorted(range(len(keys)), key=slots.__getitem__)))


# --- epochs ---


class _Table(Protocol):
    """A table that keeps track of its own changes."""

    def undo(self, key: Any) -> object | None:
        """Take back the newest epoch's change; or remove the key, and return the value for `restore`."""

    def restore(self, key: Any, value: Any) -> None:
        """Add a key that was removed or changed with its value; None for one that has not changed."""

    def forget(self, key: Any) -> None:
        """Drop the oldest stored change, which is durable."""


class _ChangedKeys:
    """The keys that an epoch changed, in the order of the hash table that Kafka keeps them in."""

    __slots__ = ("_keys", "_peak")

    def __init__(self) -> None:
        self._keys: dict[Any, None] = {}
        self._peak = 0

    def copy(self) -> _ChangedKeys:
        copied = _ChangedKeys()
        copied._keys, copied._peak = self._keys.copy(), self._peak
        return copied

    def add(self, key: Hashable) -> None:
        # The table makes room before it looks whether the key is there.
        self._peak = max(self._peak, len(self._keys) + 1)
        self._keys[key] = None

    def _slots(self) -> dict[Any, int]:
        keys = list(self._keys)
        return dict(zip(keys, _slots(keys, self._peak), strict=True))

    def in_order(self) -> list[Any]:
        slots = self._slots()
        return sorted(slots, key=slots.__getitem__)

    def merge(self, later: _ChangedKeys, table: _Table, changed: set[tuple[_Table, Hashable]]) -> None:
        """Add the keys of a later epoch of a table; not those that changed before it.

        Kafka adds all of them again with each slot after theirs.
        """
        if not self._keys and not self._peak:
            self._keys, self._peak = later._keys, later._peak
            return
        slots = later._slots()
        added = [key for key in sorted(slots, key=slots.__getitem__) if (table, key) not in changed]
        for key in added:
            self.add(key)
        if added and max(map(slots.__getitem__, added)) < (1 << _bits(later._peak)) - 1:
            self._peak = max(self._peak, len(self._keys) + 1)


_Restored: TypeAlias = dict["_Table", _ChangedKeys]
"""By table, the keys that were restored by reverts to an epoch."""


class Snapshots:
    """The epochs of a shard's state."""

    def __init__(self) -> None:
        self.epoch = 0
        self._changed: deque[tuple[int, list[tuple[_Table, Hashable]]]] = deque([(0, [])])
        self._restored: dict[int, _Restored] = {}

    def begin(self, epoch: int) -> None:
        """Begin an epoch, after the write that ends at this offset."""
        self.epoch = epoch
        self._changed.append((epoch, []))

    def changed(self, table: _Table, key: Hashable) -> None:
        self._changed[-1][1].append((table, key))

    def revert(self, epoch: int) -> None:
        """Undo every change since the beginning of an epoch.

        Apache Kafka's tables drop what changed, and add it again as it was, in the order of a hash table of
        it, which the epoch keeps for the next time.
        """
        changed: list[list[tuple[_Table, Hashable]]] = []
        known_keys: list[_Restored] = []
        while self._changed[-1][0] > epoch:
            undone, changes = self._changed.pop()
            changed.append(changes)
            known_keys.append(self._restored.pop(undone, {}))
        changed.append(self._changed[-1][1])
        known_keys.append(self._restored.pop(epoch, {}))
        before: dict[tuple[_Table, Hashable], Any] = {}
        tables_of: list[_Restored] = []
        for changes, known in zip(changed, known_keys, strict=True):
            tables = {table: keys.copy() for table, keys in known.items()}
            for table, key in changes:
                value = before[table, key] = table.undo(key)  # the oldest is the one that counts
                if value is not None:
                    tables.setdefault(table, _ChangedKeys()).add(key)
            tables_of.append(tables)
        restored: _Restored = {}
        changed_since: set[tuple[_Table, Hashable]] = set()
        for changes, tables in zip(reversed(changed), reversed(tables_of), strict=True):
            for table, keys in tables.items():
                restored.setdefault(table, _ChangedKeys()).merge(keys, table, changed_since)
            changed_since.update(changes)
        for table, keys in restored.items():
            for key in keys.in_order():
                table.restore(key, before.get((table, key)))
        if restored:
            self._restored[epoch] = restored
        self._changed[-1][1].clear()
        self.epoch = epoch

    def commit(self, epoch: int) -> None:
        """Drop the changes before this offset, up to which the log is durable."""
        while len(self._changed) > 1 and self._changed[0][0] < epoch:
            ended, changes = self._changed.popleft()
            self._restored.pop(ended, None)
            for table, key in changes:
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


class TimelineHashMap(Generic[K, V]):
    """A table under a shard's `Snapshots`, in the order of Apache Kafka's.

    peak: the largest number of keys that it had or made room for: Apache Kafka's table makes room for one
    more before it looks whether the key is there. changes: the number of changes, for caches of derived
    values. get: the value of a key as it is now, or None. Only strings and keys with a `java_hash` are put in
    order; no outcome depends on the order of others.
    """

    __slots__ = ("_before", "_order", "_snapshots", "_values", "changes", "get", "peak")

    get: Callable[[K], V | None]

    def __init__(self, snapshots: Snapshots) -> None:
        self._snapshots = snapshots
        self.peak = 0
        self.changes = 0
        self._values: dict[K, V] = {}
        self.get = self._values.get
        self._order: list[K] | None = None
        self._before: dict[K, deque[tuple[int, V | None]]] = {}

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[K]:
        """The keys that there are now, in order."""
        return iter(self._keys())

    def _keys(self) -> list[K]:
        if self._order is None:
            self._order = _in_order(list(self._values), self.peak)
        return self._order

    def values(self) -> list[V]:
        return list(map(self._values.__getitem__, self._keys()))

    def items(self) -> list[tuple[K, V]]:
        values = self._values
        return [(key, values[key]) for key in self._keys()]

    def keys_with(self, key: K) -> list[K]:
        """The keys in order, as if this one had been added."""
        if key in self._values:
            return list(self)
        return _in_order([*self._values, key], max(self.peak, len(self._values) + 1))

    def keys_view(self) -> KeysView[K]:
        """The keys in the order of their arrival, to be read while nothing changes."""
        return self._values.keys()

    def values_view(self) -> ValuesView[V]:
        """The same for the values."""
        return self._values.values()

    def __getitem__(self, key: K) -> V:
        return self._values[key]

    def __setitem__(self, key: K, value: V) -> None:
        self._keep(key)
        self._make_room()
        if key not in self._values:
            self._order = None
        self._values[key] = value

    def _make_room(self) -> None:
        if len(self._values) >= self.peak:
            self.peak = len(self._values) + 1
            self._order = None

    def pop(self, key: K) -> V | None:
        if key not in self._values:
            return None
        self._keep(key)
        self._order = None
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
        """What there was at the last durable write, in order."""
        if not self._before:
            return self.items()
        keys = dict.fromkeys([*self._values, *self._before])
        values = {key: value for key in keys if (value := self.committed(key)) is not None}
        return [(key, values[key]) for key in _in_order(list(values), self.peak)]

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
        self._order = None
        _, value = self._before[key].pop()
        if not self._before[key]:
            del self._before[key]
        self._values.pop(key, None)
        return value

    def restore(self, key: K, value: V | None) -> None:
        self._make_room()
        if value is not None:
            self._order = None
            self._values[key] = value

    def forget(self, key: K) -> None:
        before = self._before[key]
        before.popleft()
        if not before:
            del self._before[key]
