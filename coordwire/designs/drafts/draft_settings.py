"""The settings of the drafts' brokers, the codes of their errors, and the members of a cluster.

Rules: the documents name the settings but give no values: the defaults are Kafka 0.8's where it had the same
setting, else our own. Nor do they give error codes ("an appropriate error code", "some more error code"):
these are today's for the same refusal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple


class DraftError(IntEnum):
    """Error codes in the drafts' responses."""

    ILLEGAL_STATE = -1
    NONE = 0
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_GROUP_ID = 24
    UNKNOWN_CONSUMER = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_REGISTRATION = 42
    DUPLICATE_CONSUMER = 92


class BrokerAddress(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """A broker's settings, times in milliseconds.

    rebalance_handlers: threads, each with a queue of groups; rebalance_queue_size: how many groups such a
    queue holds, by default as many as Kafka's queued.max.requests; handler_us: the time in microseconds that
    one works on the Start or Stop of a consumer. batch_offsets: whether draft 1 writes offsets in an
    interval, as its "possible improvements" have it, and not with each ping. min_session_timeout_ms,
    max_ping_retries, offset_commit_interval_ms: draft 2's; in draft 1 a consumer sets the retries itself.
    coordinators: into how many subsets the groups are divided, each with a coordinator of its own (the
    detailed design, section 1; the new consumer's "coordinator id based on consumer group"); 1: one for all.
    election_delay_ms: where there are several, how long a broker waits before it is a candidate, so that
    brokers which start together share them. new_cluster_id: the id that the broker gives the cluster if it
    has none; None for a cluster without ids. topics: those that the broker has, each with the number of its
    partitions; others may be in ZooKeeper.

    The others are what the detailed design's section 13 leaves open. endless_retries: a rebalance is retried
    until it succeeds, after a third of the longest session timeout each time; delete_empty_groups: the
    registry of a group without consumers is deleted.

    zookeeper_enabled: whether the broker uses ZooKeeper, and so has a coordinator; else it registers nowhere
    and knows no coordinator. coordinator_has_client: whether the coordinator has a ZooKeeper client and a
    session of its own, as section 12.7 has it; else both are the broker's.
    """

    broker_id: int
    address: BrokerAddress
    rebalance_handlers: int = 4
    rebalance_queue_size: int = 500
    handler_us: int = 0
    batch_offsets: bool = False
    max_rebalance_retries: int = 4
    rebalance_backoff_ms: int = 2_000
    min_session_timeout_ms: int = 1_000
    max_ping_retries: int = 3
    offset_commit_interval_ms: int = 10_000
    coordinators: int = 1
    election_delay_ms: int = 500
    new_cluster_id: str | None = None
    topics: Mapping[str, int] = field(default_factory=dict)
    endless_retries: bool = False
    delete_empty_groups: bool = False
    zookeeper_enabled: bool = True
    coordinator_has_client: bool = True
