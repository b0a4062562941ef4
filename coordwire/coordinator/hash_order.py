"""The order in which Java's HashMap goes over its keys, where a coordinator's outcome depends on it.

Kafka elects the first member of a HashMap as leader and breaks a tie of votes in a HashMap's order. Members
of one group must read the same outcome from any coordinator, so that order is part of the behaviour.

Strategy: a table of 16 buckets that doubles when it is three quarters full and never shrinks; a key's
bucket is given by its hash, and keys of one bucket keep the order in which they came, as Python's dict does.
Buckets of 8 keys and more become trees in Java, which keep that order too, except for the tree's root.
Strings, topic ids and partition numbers are keys. The capacities of copies are those of Java 17; newer ones
copy into smaller tables at a few sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeVar
from uuid import UUID

__all__ = [
    "MIN_CAPACITY",
    "capacity_for",
    "copied_capacity",
    "copied_set_capacity",
    "id_hash",
    "in_hash_order",
    "in_timeline_order",
    "initial_capacity",
    "java_hash",
    "ordered_names",
    "partitions_in_order",
    "slots_of_hashes",
    "spread_hash",
    "spread_id",
    "timeline_capacity",
    "timeline_slots",
    "topics_in_order",
]

V = TypeVar("V")

MIN_CAPACITY = 16
_UNMIXED = 1 << 16
"""Numbers below this have no higher bits that Java would mix into the lower ones."""


def capacity_for(size: int, capacity: int = MIN_CAPACITY) -> int:
    """The number of buckets after this many keys were in, if it was `capacity` before."""
    while size > capacity * 3 // 4:
        capacity *= 2
    return capacity


def in_hash_order(keys: Iterable[str], capacity: int) -> list[str]:
    """Keys, given in the order of their arrival, as a HashMap of this capacity goes over them."""
    names, mask = list(keys), capacity - 1
    return _sorted(names, [hashed & mask for hashed in map(_spread_hash, names)])


def ordered_names(names: Iterable[str]) -> list[str]:
    """Names without their repetitions, as the HashSet that copies them goes over them."""
    names = list(names)
    return in_hash_order(dict.fromkeys(names), copied_set_capacity(len(names)))


def initial_capacity(expected: int) -> int:
    """The capacity of a table that is made for this many keys: the next power of 2."""
    return 1 << max(expected - 1, 0).bit_length()


def copied_capacity(size: int) -> int:
    """The capacity of a HashMap that copies another with this many keys."""
    return initial_capacity(int(size / 0.75 + 1.0)) if size else MIN_CAPACITY


def copied_set_capacity(size: int) -> int:
    """The capacity of a HashSet that copies a collection of this many keys."""
    return initial_capacity(max(int(size / 0.75) + 1, MIN_CAPACITY))


def partitions_in_order(partitions: Iterable[int], capacity: int) -> list[int]:
    """Partition numbers, given in the order of their arrival, as a table of this capacity goes over them."""
    ordered = list(partitions)
    if len(ordered) < 2:
        return ordered
    most = max(ordered)
    if min(ordered) < 0 or most >= _UNMIXED:
        ordered.sort(key=lambda partition: _spread(partition & _INT32) & (capacity - 1))
    elif most < capacity:
        ordered.sort()
    else:
        ordered.sort(key=(capacity - 1).__and__)
    return ordered


def topics_in_order(topics: Mapping[UUID, V], capacity: int) -> dict[UUID, V]:
    """A mapping of topic ids, given in the order of their arrival, as a table of this capacity has it."""
    if len(topics) < 2:
        return dict(topics)
    mask = capacity - 1
    return {key: topics[key] for key in sorted(topics, key=lambda key: spread_id(key) & mask)}


def in_timeline_order(keys: Iterable[str], peak: int) -> list[str]:
    """Keys in the order of Kafka's TimelineHashMap with this peak size, in which loading sets timers.

    Keys of one slot come last in, first out.
    """
    last_first = list(keys)[::-1]
    return _sorted(last_first, timeline_slots(last_first, peak))


def timeline_slots(keys: Iterable[str], peak: int) -> list[int]:
    """The slot of each key in Kafka's TimelineHashMap with this peak size."""
    shift = 64 - _timeline_bits(peak)
    return [hashed >> shift for hashed in map(_timeline_hash, keys)]


def timeline_capacity(peak: int) -> int:
    """The number of slots of Kafka's TimelineHashMap with this peak size."""
    return 1 << _timeline_bits(peak)


def _timeline_bits(peak: int) -> int:
    bits = 1
    while peak * 3 > 4 << bits:
        bits += 1
    return bits


def slots_of_hashes(hashes: Iterable[int], peak: int) -> list[int]:
    """The slots of keys with these hashes, unsigned, in a TimelineHashMap with this peak size."""
    bits = 1
    while peak * 3 > 4 << bits:
        bits += 1
    signed = (number - (1 << 32) if number >> 31 else number for number in hashes)
    return [(number * _FIBONACCI & _INT64) >> 64 - bits for number in signed]


_FIBONACCI = 0x9E3779B97F4A7C15
_INT64 = (1 << 64) - 1
_INT32 = (1 << 32) - 1


def _sorted(keys: list[str], places: list[int]) -> list[str]:
    """Keys in the order of their places, without a Python call for each."""
    return list(map(keys.__getitem__, sorted(range(len(keys)), key=places.__getitem__)))


@lru_cache(maxsize=1 << 14)
def _timeline_hash(text: str) -> int:
    return java_hash(text) * _FIBONACCI & _INT64


def java_hash(text: str) -> int:
    """Java's String.hashCode."""
    unsigned = _hash(text)
    return unsigned - (1 << 32) if unsigned >> 31 else unsigned


def spread_hash(hashed: int) -> int:
    """The number whose lower bits are a key's bucket, by the key's hash, unsigned."""
    return _spread(hashed)


def id_hash(topic_id: UUID) -> int:
    """Java's hash of a topic id, unsigned."""
    folded = topic_id.int >> 64 ^ topic_id.int & _INT64
    return (folded >> 32 ^ folded) & _INT32


def _spread(hashed: int) -> int:
    """Mix the higher bits into the lower ones, which Java's HashMap takes."""
    return hashed ^ hashed >> 16


@lru_cache(maxsize=1 << 14)
def _spread_hash(text: str) -> int:
    return _spread(_hash(text))


def spread_id(topic_id: UUID) -> int:
    """A topic id's hash, of which the lower bits are the bucket."""
    return _spread_integer(topic_id.int)


@lru_cache(maxsize=1 << 14)
def _spread_integer(number: int) -> int:
    # By the integer: a UUID's own hash is computed in Python.
    folded = number >> 64 ^ number & _INT64
    return _spread((folded >> 32 ^ folded) & _INT32)


@lru_cache(maxsize=1 << 14)
def _hash(text: str) -> int:
    """Java's String.hashCode, unsigned."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & _INT32
    return value
