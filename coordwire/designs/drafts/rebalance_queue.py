"""A handler's queue of groups to rebalance: a blocking queue of a fixed size.

Source: the detailed design, section 5 ("configurable fixed size list of blocking queue") and 12.7
(`BlockingQueue[String]`). Strategy: what is put into a full queue waits, as its thread would, and enters in
order when a handler takes a group. Rules: a group is in it once, as its bit is set until it is taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container


class RebalanceQueue:
    """size: at most so many groups are in it, at least 1. groups: those that are, the next one first;
    blocked: those that wait for room."""

    def __init__(self, size: int) -> None:
        self.size = max(size, 1)
        self.groups: deque[str] = deque()
        self.blocked: deque[str] = deque()

    def put(self, group_id: str) -> bool:
        """Add a group; False if the queue is full, so that it waits for room."""
        has_room = len(self.groups) < self.size
        (self.groups if has_room else self.blocked).append(group_id)
        return has_room

    def take(self) -> str | None:
        """The next group, which makes room for one that waits; None if there is none."""
        if not self.groups:
            return None
        group_id = self.groups.popleft()
        self._fill()
        return group_id

    def remove(self, group_ids: Container[str]) -> None:
        """Take these groups out."""
        self.groups = deque(name for name in self.groups if name not in group_ids)
        self.blocked = deque(name for name in self.blocked if name not in group_ids)
        self._fill()

    def _fill(self) -> None:
        while self.blocked and len(self.groups) < self.size:
            self.groups.append(self.blocked.popleft())
