"""The time at which a group looks at its topics' metadata again.

Rules: it is not under the shard's snapshots: after a failed append a group looks once more than it has to.
"""

from __future__ import annotations

__all__ = ["MetadataRefresh"]

_INTERVAL_MS = (1 << 31) - 1


class MetadataRefresh:
    """at: the time of the next refresh, in milliseconds. epoch: the group's after the last one."""

    __slots__ = ("at", "epoch")

    def __init__(self) -> None:
        self.request()

    def request(self) -> None:
        """Let the next heartbeat refresh the metadata."""
        self.at = self.epoch = 0

    def is_due(self, now: int, epoch: int) -> bool:
        """epoch: the group's now; it is smaller than after the last refresh if the append of that failed."""
        return now >= self.at or epoch < self.epoch

    def complete(self, now: int, epoch: int) -> None:
        self.at, self.epoch = now + _INTERVAL_MS, epoch
