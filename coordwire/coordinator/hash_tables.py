"""Java's HashMap and HashSet, entry by entry, for code whose outcome depends on the order of its tables.

Rules: a table has buckets, whose number doubles when it is three quarters full. A key is added after the
other keys of its bucket, but `find_or_add`, as Java's computeIfAbsent, adds it before them, and makes room
first. Buckets of eight keys and more become trees in Java, whose order may differ. The buckets are not kept:
the order is made when it is asked for, so that neither room nor keys of one hash cost more than others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Generic, TypeVar
from uuid import UUID

from coordwire.coordinator.hash_order import MIN_CAPACITY, id_hash, initial_capacity, java_hash, spread_hash

__all__ = ["HashMap", "HashSet", "of_expected_size"]

K = TypeVar("K", int, str, UUID, tuple[UUID, int])
V = TypeVar("V")

_INT32 = (1 << 32) - 1
_PLACE = itemgetter(0, 1)


def _bucket_hash(key: int | str | UUID | tuple[UUID, int]) -> int:
    """The number whose lower bits are the key's bucket."""
    if isinstance(key, int):
        return spread_hash(key & _INT32)
    if isinstance(key, str):
        return spread_hash(java_hash(key) & _INT32)
    if isinstance(key, tuple):  # a record's fields, one after the other
        return spread_hash(31 * id_hash(key[0]) + key[1] & _INT32)
    return spread_hash(id_hash(key))


def of_expected_size(size: int) -> int:
    """The capacity of the tables that Apache Kafka's assignors make for so many keys."""
    return initial_capacity(int((size + 1) / 0.75 + 1))


class HashMap(Generic[K, V]):
    """A HashMap. capacity: of a new one; a copy has room for what it copies."""

    __slots__ = ("_capacity", "_entries", "_first", "_last", "_order")

    def __init__(self, capacity: int = MIN_CAPACITY) -> None:
        self._capacity = capacity
        self._entries: dict[K, tuple[V, int, int]] = {}
        """By key the value, the hash, and the key's turn in its bucket."""
        self._first = self._last = 0
        self._order: list[K] | None = None

    @classmethod
    def of(cls, items: Iterable[tuple[K, V]], capacity: int = MIN_CAPACITY) -> HashMap[K, V]:
        """A table into which these were put."""
        table = cls(capacity)
        for key, value in items:
            table[key] = value
        return table

    @classmethod
    def copy_of(cls, items: HashMap[K, V]) -> HashMap[K, V]:
        """A copy, which has only as much room as it needs."""
        size = len(items)
        return cls.of(items.items(), initial_capacity(int(size / 0.75 + 1.0)) if size else MIN_CAPACITY)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        """The keys that there are now, bucket by bucket."""
        if self._order is None:
            mask = self._capacity - 1
            places = [(hash_ & mask, turn, key) for key, (_, hash_, turn) in self._entries.items()]
            places.sort(key=_PLACE)
            self._order = [key for _, _, key in places]
        return iter(self._order)

    def items(self) -> list[tuple[K, V]]:
        return [(key, self._entries[key][0]) for key in self]

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def __getitem__(self, key: K) -> V:
        return self._entries[key][0]

    def __setitem__(self, key: K, value: V) -> None:
        entry = self._entries.get(key)
        if entry is not None:
            self._entries[key] = (value, entry[1], entry[2])
            return
        self._last += 1
        self._add(key, value, self._last)
        if len(self._entries) > self._capacity * 3 // 4:
            self._capacity *= 2

    def find_or_add(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key, which is made where there is none."""
        if len(self._entries) > self._capacity * 3 // 4:
            self._capacity *= 2
            self._order = None
        entry = self._entries.get(key)
        if entry is not None:
            return entry[0]
        value = make()
        self._first -= 1
        self._add(key, value, self._first)
        return value

    def _add(self, key: K, value: V, turn: int) -> None:
        self._entries[key] = (value, _bucket_hash(key), turn)
        self._order = None

    def discard(self, key: K) -> None:
        if self._entries.pop(key, None) is not None:
            self._order = None


class HashSet(Generic[K]):
    """A HashSet."""

    __slots__ = ("_table",)

    def __init__(self, capacity: int = MIN_CAPACITY) -> None:
        self._table: HashMap[K, bool] = HashMap(capacity)

    @classmethod
    def copy_of(cls, keys: Iterable[K]) -> HashSet[K]:
        """A set that copies a collection."""
        keys = list(keys)
        copy = cls(initial_capacity(max(int(len(keys) / 0.75) + 1, MIN_CAPACITY)))
        for key in keys:
            copy.add(key)
        return copy

    @classmethod
    def of(cls, keys: Iterable[K]) -> HashSet[K]:
        """A set to which these were added one after the other."""
        hash_set = cls()
        for key in keys:
            hash_set.add(key)
        return hash_set

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, key: K) -> bool:
        return key in self._table

    def __iter__(self) -> Iterator[K]:
        return iter(self._table)

    def add(self, key: K) -> None:
        self._table[key] = True

    def discard(self, key: K) -> None:
        self._table.discard(key)
