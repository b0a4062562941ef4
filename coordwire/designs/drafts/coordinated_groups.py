"""A pinging coordinator's state in memory: its groups, and the registration of each consumer.

Source: the first draft's groupsBeingRebalanced, and the detailed design's GroupRegistry and ConsumerRegistry
(section 12.1). Rules: a group stays when its last consumer has gone, as section 13 of the detailed design
says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from coordwire.codec import Message
from coordwire.designs.drafts.actions import DraftPartition
from coordwire.designs.drafts.topic_interest import TopicInterest

__all__ = ["ConsumerRegistry", "GroupRegistry"]


@dataclass(slots=True, eq=False)
class ConsumerRegistry:
    """A registered consumer. connection: None once it is closed. ping_ms: how often it is pinged; answer_ms:
    how soon it must answer; max_retries: unanswered pings that are allowed; starts_at: for a partition
    without an offset. pinged: whether a ping waits for its answer; is_rebalancing: whether a rebalance uses
    its channel; pending: the last Stop or Start that it has to answer."""

    group_id: str
    consumer_id: str
    connection: int | None
    interest: TopicInterest
    auto_commit: bool
    starts_at: int
    ping_ms: int
    answer_ms: int
    max_retries: int
    failures: int = 0
    pinged: bool = False
    is_rebalancing: bool = False
    pending: Message | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.group_id, self.consumer_id


@dataclass(slots=True, eq=False)
class GroupRegistry:
    """A group. offsets: of its partitions, as consumers have reported them; unsaved: those that ZooKeeper
    does not have yet. queued: the bit that its rebalance waits in a queue (in draft 1 until it has
    succeeded); handler: which one has it. failed: the running attempt has. waiting: the consumers whose
    answer the attempt waits for. registered: consumers that have registered since the last rebalance that
    succeeded; stopped: an attempt has sent Stop since then. awaited: those that a new coordinator waits
    for, or a rebalance that has broken their connections; awaited_since: since when; awaited_ms: for how long
    at least."""

    group_id: str
    members: dict[str, ConsumerRegistry] = field(default_factory=dict)
    topics: set[str] = field(default_factory=set)
    offsets: dict[DraftPartition, int] = field(default_factory=dict)
    unsaved: dict[DraftPartition, int] = field(default_factory=dict)
    queued: bool = False
    handler: int | None = None
    failed: bool = False
    stopped: bool = False
    waiting: set[str] = field(default_factory=set)
    registered: set[str] = field(default_factory=set)
    awaited: set[str] = field(default_factory=set)
    awaited_since: int = 0
    awaited_ms: int = 0

    @property
    def wildcards(self) -> bool:
        return any(member.interest.is_wildcard for member in self.members.values())

    def wants(self, topic: str) -> bool:
        """Whether the group is interested in a topic."""
        return topic in self.topics or any(member.interest.wants(topic) for member in self.members.values())


def reported_offsets(message: Any) -> dict[DraftPartition, int]:
    """The offsets in a response, by partition."""
    return {
        DraftPartition(part.topic or "", part.partition or ""): part.offset for part in message.offset_info
    }  # fmt: skip
