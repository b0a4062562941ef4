"""The order in which Java's HashMap goes over its keys, where a coordinator's outcome depends on it.

Kafka elects the first member of a HashMap as leader and breaks a tie of votes in a HashMap's order. Members
of one group must read the same outcome from any coordinator, so that order is part of the behaviour.

Strategy: a table of 16 buckets that doubles when it is three quarters full and never shrinks; a key's
bucket is given by the string's hash, and keys of one bucket keep the order in which they came, as Python's
dict does. Buckets of 8 keys and more become trees in Java, which keep that order too, except for the tree's
root.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

__all__ = ["MIN_CAPACITY", "capacity_for", "in_hash_order", "in_timeline_order"]

T = TypeVar("T")

MIN_CAPACITY = 16


def capacity_for(size: int, capacity: int = MIN_CAPACITY) -> int:
    """The number of buckets after this many keys were in, if it was `capacity` before."""
    while size > capacity * 3 // 4:
        capacity *= 2
    return capacity


def in_hash_order(keys: Iterable[str], capacity: int) -> list[str]:
    """Keys, given in the order of their arrival, as a HashMap of this capacity goes over them."""
    return sorted(keys, key=lambda key: _spread_hash(key) & (capacity - 1))


def in_timeline_order(keys: Iterable[str], peak: int) -> list[str]:
    """The order of Kafka's TimelineHashMap, whose size peaked at this: timers are set in it on loading."""
    bits = 1
    while peak * 3 > 4 << bits:
        bits += 1
    return sorted(keys, key=lambda key: (_signed_hash(key) * _FIBONACCI & _INT64) >> (64 - bits))


_FIBONACCI = 0x9E3779B97F4A7C15
_INT64 = (1 << 64) - 1


def _signed_hash(text: str) -> int:
    found = _hash(text)
    return found - (1 << 32) if found >> 31 else found


def _spread_hash(text: str) -> int:
    found = _hash(text)
    return found ^ found >> 16


def _hash(text: str) -> int:
    """Java's String.hashCode, unsigned."""
    found = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        found = (31 * found + (high << 8 | low)) & 0xFFFFFFFF
    return found
