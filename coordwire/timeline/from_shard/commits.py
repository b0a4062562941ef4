"""Events of commits, and of the transactions that some of them are part of: durable records, to events.

Rules: a record of a transaction's producer is a commit that holds once a marker says so; each group with such
commits has an event of the marker. The log has no transactional ids: the id of a transaction that was under
way when the shard got its partition is empty.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from coordwire.coordinator.listener import AppendCause
from coordwire.messages import OffsetCommitKey
from coordwire.timeline.events import GroupEvent, OffsetCommitted, TransactionStep
from coordwire.timeline.from_shard.rebalances import Rebalances

__all__ = ["NO_PRODUCER", "ShardCommits"]

NO_PRODUCER = -1


@dataclass(slots=True)
class _Transaction:
    """One that is not ended. groups: those that it commits offsets of, in their order."""

    transactional_id: str = ""
    groups: dict[str, None] = field(default_factory=dict)


class ShardCommits:
    """Of all groups."""

    def __init__(self, report: Callable[[GroupEvent], None], rebalances: Rebalances) -> None:
        self._report = report
        self._rebalances = rebalances
        self._transactions: dict[int, _Transaction] = {}

    def load(self, key: OffsetCommitKey, producer_id: int) -> None:
        """A record from before."""
        if producer_id != NO_PRODUCER:
            self._transactions.setdefault(producer_id, _Transaction()).groups[key.group] = None

    def load_end(self, producer_id: int) -> None:
        """A marker from before."""
        self._transactions.pop(producer_id, None)

    def committed(
        self, now: int, key: OffsetCommitKey, value: Any, because: AppendCause, producer_id: int
    ) -> None:
        """A record is durable."""
        if isinstance(value, bytes):
            return
        removed = value is None
        if producer_id != NO_PRODUCER and not removed:
            known = self._transactions.setdefault(producer_id, _Transaction())
            known.transactional_id = because.transactional_id or known.transactional_id
            known.groups[key.group] = None
        self._report(
            OffsetCommitted(
                **self._rebalances.place(key.group, now), member_id=None if removed else because.member_id,
                client_id=None, generation=-1 if removed else because.generation, topic=key.topic,
                partition=key.partition, offset=-1 if removed else value.offset,
                leader_epoch=-1 if removed else value.leader_epoch,
                metadata=None if removed else value.metadata,
                transactional_id=because.transactional_id, removed=removed,
            )
        )  # fmt: skip

    def ended(self, now: int, producer_id: int, producer_epoch: int, *, committed: bool) -> None:
        """A marker is durable."""
        known = self._transactions.pop(producer_id, None)
        for group_id in () if known is None else known.groups:
            self._report(
                TransactionStep(
                    **self._rebalances.place(group_id, now), step="commit" if committed else "abort",
                    transactional_id="" if known is None else known.transactional_id,
                    producer_id=producer_id, producer_epoch=producer_epoch, error_code=0,
                )
            )  # fmt: skip
