"""Java's PriorityQueue: which of several least elements comes first depends on how it sifts.

Strategy: a binary heap as Java has it. `heapq` sifts in another way, so that its order of equals differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

__all__ = ["JavaQueue"]

T = TypeVar("T")


class JavaQueue(Generic[T]):
    """Elements by a number. Rules: an element's number changes only while it is out of the queue."""

    def __init__(self, number_of: Callable[[T], float], elements: Iterable[T] = ()) -> None:
        self._number_of = number_of
        self._heap: list[tuple[float, T]] = []
        for element in elements:
            self.add(element)

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, element: T) -> None:
        heap = self._heap
        number = self._number_of(element)
        entry = number, element
        place = len(heap)
        heap.append(entry)
        while place:
            parent = (place - 1) >> 1
            above = heap[parent]
            if number >= above[0]:
                break
            heap[place] = above
            place = parent
        heap[place] = entry

    def poll(self) -> T:
        """Remove the first element, and return it. Raises `IndexError` if there is none."""
        heap = self._heap
        last = heap.pop()
        if not heap:
            return last[1]
        first = heap[0]
        number = last[0]
        size = len(heap)
        half = size >> 1
        place = 0
        while place < half:
            child = 2 * place + 1
            below = heap[child]
            right = child + 1
            if right < size and below[0] > heap[right][0]:
                child, below = right, heap[right]
            if number <= below[0]:
                break
            heap[place] = below
            place = child
        heap[place] = last
        return first[1]
