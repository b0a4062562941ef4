"""Java's HashMap and HashSet, for code whose outcome depends on the order of its tables.

Kafka elects the first member of a HashMap as leader, breaks a tie of votes in a HashMap's order, and writes
assignments in it. Members of one group must read the same outcome from any coordinator, so that order is part
of the behaviour.

Rules: a table has buckets, whose number doubles when it is three quarters full and never falls; a key's
bucket is given by its hash. A key is added after the other keys of its bucket, but `find_or_add` and
`compute`, as Java's computeIfAbsent, compute and merge, add it before them, and make room first. Buckets of
eight keys and more become trees in Java, whose order may differ. A copy has room for what it copies, as in
Java 17; newer ones copy into smaller tables at a few sizes.

Strategy: the buckets are not kept. The order is made when it is asked for and kept until a key is added, so
that neither room nor keys of one hash cost more than others. Keys are strings, numbers, topic ids, pairs that
begin with a string or a topic id, and what has a `java_hash`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, KeysView, Mapping, ValuesView
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar
from uuid import UUID

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
K_co = TypeVar("K_co", covariant=True)
V_co = TypeVar("V_co", covariant=True)

_MIN_CAPACITY = 16
_INT32 = (1 << 32) - 1
_INT64 = (1 << 64) - 1
_UNMIXED = 1 << 16
"""Numbers below this have no higher bits that Java would mix into the lower ones."""


# --- hashes ---


def java_hash(text: str) -> int:
    """Java's String.hashCode."""
    unsigned = _string_hash(text)
    return unsigned - (1 << 32) if unsigned >> 31 else unsigned


def id_hash(topic_id: UUID) -> int:
    """Java's hash of a topic id, unsigned."""
    folded = topic_id.int >> 64 ^ topic_id.int & _INT64
    return (folded >> 32 ^ folded) & _INT32


@lru_cache(maxsize=1 << 14)
def _string_hash(text: str) -> int:
    """Java's String.hashCode, unsigned."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & _INT32
    return value


def _spread(hashed: int) -> int:
    """Mix the higher bits into the lower ones, which are the bucket."""
    return hashed ^ hashed >> 16


@lru_cache(maxsize=1 << 14)
def _spread_string(text: str) -> int:
    return _spread(_string_hash(text))


@lru_cache(maxsize=1 << 14)
def _spread_integer(topic_id: int) -> int:
    # By the integer: a UUID's own hash is computed in Python.
    folded = topic_id >> 64 ^ topic_id & _INT64
    return _spread((folded >> 32 ^ folded) & _INT32)


def spread_id(topic_id: UUID) -> int:
    """A topic id's hash, of which the lower bits are the bucket."""
    return _spread_integer(topic_id.int)


def _spread_number(number: int) -> int:
    return _spread(number & _INT32)


def _spread_pair(pair: tuple[Any, int]) -> int:
    """The hash of a record with two fields."""
    first, second = pair
    hashed = _string_hash(first) if isinstance(first, str) else id_hash(first)
    return _spread(31 * hashed + second & _INT32)


def _spread_other(key: Any) -> int:
    return _spread(key.java_hash)


_SPREADS: dict[type, Callable[[Any], int]] = {
    int: _spread_number, str: _spread_string, tuple: _spread_pair, UUID: spread_id,
}  # fmt: skip


def _spread_of(kind: type) -> Callable[[Any], int]:
    """The hash of keys that have their own, or whose type is derived from another."""
    if hasattr(kind, "java_hash"):
        return _spread_other
    return next(_SPREADS[base] for base in kind.__mro__ if base in _SPREADS)


# --- tables ---


def _power(capacity: int) -> int:
    """The next power of 2."""
    return 1 << (capacity - 1).bit_length() if capacity > 1 else 1


def _in_order(keys: list[K], capacity: int) -> list[K]:
    """Keys, given in the order of their arrival, bucket by bucket."""
    kind = type(keys[0])
    mask = capacity - 1
    if kind is int:
        numbers: list[Any] = keys
        most = max(numbers)
        if min(numbers) >= 0 and most < _UNMIXED:
            numbers.sort(key=None if most < capacity else mask.__and__)
            return keys
    places = [hashed & mask for hashed in map(_SPREADS.get(kind) or _spread_of(kind), keys)]
    return list(map(keys.__getitem__, sorted(range(len(keys)), key=places.__getitem__)))


class _Table(Generic[K, V]):
    """What maps and sets share.

    _first: the keys that were added before others of their bucket. _order: all keys in order, and perhaps
    some that were removed since; None before it is needed. _skipped: how many at its beginning were removed.
    """

    __slots__ = ("_capacity", "_entries", "_first", "_order", "_skipped")

    def __init__(self, capacity: int = _MIN_CAPACITY) -> None:
        self._capacity = capacity if capacity == _MIN_CAPACITY else _power(capacity)
        self._entries: dict[K, V] = {}
        self._first: dict[K, Any] | None = None
        self._order: list[K] | None = None
        self._skipped = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        """The keys that there are now, bucket by bucket."""
        return iter(self.keys())

    def keys(self) -> list[K]:
        """The same as a list, which is the table's own: to be read, not to be changed."""
        order, entries = self._order, self._entries
        if order is None:
            order = list(entries)
            if len(order) > 1:
                first = self._first
                if first:
                    last_keys = [key for key in order if key not in first] if len(first) < len(order) else ()
                    order = [*reversed(first), *last_keys]
                order = self._in_order(order)
            self._order = order
            self._skipped = 0
        elif len(order) > len(entries):
            order = self._order = list(filter(entries.__contains__, order))
            self._skipped = 0
        return order

    def _in_order(self, keys: list[K]) -> list[K]:
        """Keys, given in the order of their arrival, bucket by bucket."""
        return _in_order(keys, self._capacity)

    def first(self) -> K | None:
        """The first key; None for an empty table. The order stays while keys are removed."""
        order, entries = self._order or self.keys(), self._entries
        if not entries:
            return None
        while order[self._skipped] not in entries:
            self._skipped += 1
        return order[self._skipped]

    def discard(self, key: K) -> None:
        if key in self._entries:
            del self._entries[key]
            if self._first:
                self._first.pop(key, None)

    def retain(self, is_kept: Callable[[K], bool]) -> None:
        """Remove the keys for which this is false."""
        for key in [key for key in self._entries if not is_kept(key)]:
            self.discard(key)

    def _add_all(self, entries: dict[K, V]) -> None:
        """Add or replace entries one after the other."""
        before = len(self._entries)
        self._entries.update(entries)
        if len(self._entries) > before:
            self._order = None
            self.grow(len(self._entries))

    def make_room(self) -> None:
        """Make room for one more, as `find_or_add` and `compute` do first."""
        self.grow(len(self._entries))

    def grow(self, size: int) -> None:
        """Make room for this many."""
        while size > self._capacity * 3 // 4:
            self._capacity *= 2
            self._order = None


class _Entries(Protocol[K_co, V_co]):
    """Keys with values, in order."""

    def __len__(self) -> int: ...
    def items(self) -> Iterable[tuple[K_co, V_co]]: ...


class HashMap(_Table[K, V]):
    """A HashMap. capacity: that it is made with, rounded up to a power of 2."""

    __slots__ = ("get",)

    get: Callable[[K], V | None]

    def __init__(self, capacity: int = _MIN_CAPACITY) -> None:
        super().__init__(capacity)
        self.get = self._entries.get

    @classmethod
    def of(cls, items: Mapping[K, V] | Iterable[tuple[K, V]]) -> HashMap[K, V]:
        """A table into which these were put."""
        table = cls()
        table._entries.update(items)
        table.make_room()
        return table

    @classmethod
    def copy_of(cls, items: _Entries[K, V]) -> HashMap[K, V]:
        """A copy, which has only as much room as it needs."""
        size = len(items)
        table = cls(int(size / 0.75 + 1.0) if size else _MIN_CAPACITY)
        table._entries.update(items.items())
        return table

    def items(self) -> list[tuple[K, V]]:
        entries = self._entries
        return [(key, entries[key]) for key in self.keys()]

    def values(self) -> list[V]:
        return list(map(self._entries.__getitem__, self.keys()))

    def keys_view(self) -> KeysView[K]:
        """The keys in the order of their arrival, to be read while nothing changes."""
        return self._entries.keys()

    def values_view(self) -> ValuesView[V]:
        """The same for the values."""
        return self._entries.values()

    def in_order(self) -> dict[K, V]:
        """A plain dictionary in the table's order."""
        entries = self._entries
        if len(entries) < 2:
            return dict(entries)
        return {key: entries[key] for key in self.keys()}

    def __getitem__(self, key: K) -> V:
        return self._entries[key]

    def __setitem__(self, key: K, value: V) -> None:
        entries = self._entries
        if key in entries:
            entries[key] = value
            return
        self._order = None
        entries[key] = value
        if len(entries) > self._capacity * 3 // 4:
            self._capacity *= 2

    def update(self, items: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        self._add_all(dict(items))

    def pop(self, key: K) -> V | None:
        value = self._entries.get(key)
        self.discard(key)
        return value

    def find_or_add(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key, which is made where there is none."""
        self.make_room()
        if key not in self._entries:
            self._put_first(key, make())
        return self._entries[key]

    def compute(self, key: K, change: Callable[[V | None], V | None]) -> None:
        """Set a key's value by the one before; None removes the key."""
        self.make_room()
        value = change(self._entries.get(key))
        if value is None:
            self.discard(key)
        elif key in self._entries:
            self._entries[key] = value
        else:
            self._put_first(key, value)

    def add_first(self, entries: dict[K, V]) -> None:
        """Add new keys as `find_or_add` adds each. The dictionary is the table's from then on."""
        self.grow(len(self._entries) + len(entries) - 1)
        self._entries.update(entries)
        self._first = {**self._first, **entries} if self._first else entries
        self._order = None

    def _put_first(self, key: K, value: V) -> None:
        self._entries[key] = value
        if self._first is None:
            self._first = {}
        self._first[key] = None
        self._order = None


class HashSet(_Table[K, None]):
    """A HashSet. capacity: that it is made with, rounded up to a power of 2."""

    __slots__ = ()

    @classmethod
    def copy_of(cls, keys: Iterable[K], size: int | None = None) -> HashSet[K]:
        """A set that copies a collection. size: of the collection, where it is not the number of its keys."""
        keys = list(keys)
        size = len(keys) if size is None else size
        copy = cls(max(int(size / 0.75) + 1, _MIN_CAPACITY))
        copy._entries = dict.fromkeys(keys)
        return copy

    @classmethod
    def of(cls, keys: Iterable[K]) -> HashSet[K]:
        """A set to which these were added one after the other."""
        hash_set = cls()
        hash_set.update(keys)
        return hash_set

    def add(self, key: K) -> None:
        if key in self._entries:
            return
        self._order = None
        self._entries[key] = None
        if len(self._entries) > self._capacity * 3 // 4:
            self._capacity *= 2

    def update(self, keys: Iterable[K]) -> None:
        self._add_all(dict.fromkeys(keys))
