"""The settings of an operator, with the names and defaults of Apache Kafka's broker settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

__all__ = [
    "ConsumerGroupConfig",
    "CoordinatorConfig",
    "GroupConfig",
    "MigrationPolicy",
    "ShareGroupConfig",
    "StreamsGroupConfig",
    "TransactionConfig",
]


# --- groups ---

_INT32_MAX = (1 << 31) - 1


class MigrationPolicy(Enum):
    """The directions in which groups may change their protocol while they have members."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def upgrades(self) -> bool:
        """Whether a classic group may become a consumer group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def downgrades(self) -> bool:
        """Whether a consumer group may become a classic group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupConfig:
    """The settings of consumer groups, or of one of them (a GROUP resource), in milliseconds.

    session_timeout_ms: the silence after which a member counts as dead. heartbeat_interval_ms: sent to
    members. assignment_interval_ms: the shortest time between two targets (KIP-1263).
    """

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupConfig:
    """The settings of share groups, or of one of them (a GROUP resource), in milliseconds; as with consumer
    groups."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupConfig:
    """The settings of streams groups, or of one of them (a GROUP resource); times are in milliseconds.

    session_timeout_ms: the silence after which a member counts as dead. heartbeat_interval_ms: sent to
    members. assignment_interval_ms: the shortest time between two targets. initial_rebalance_delay_ms: how
    long a new group waits for more members before its first target. num_standby_replicas: of each task that
    has state.
    """

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    initial_rebalance_delay_ms: int = 3_000
    num_standby_replicas: int = 0


GroupConfig: TypeAlias = ConsumerGroupConfig | ShareGroupConfig | StreamsGroupConfig
"""The settings of one group, for when it is of this kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorConfig:
    """The settings of a group coordinator. Times are in milliseconds, sizes in characters or members.

    min_session_timeout_ms, max_session_timeout_ms: the limits of a classic member's session time-out.
    initial_rebalance_delay_ms: how long an empty group waits for more members, and again after each member
    that joins. new_member_join_timeout_ms: how long a member whose client does not know its id may stay
    parked in JoinGroup. group_max_size: of a classic group. offset_metadata_max_size: of the text that goes
    with a committed offset. offsets_retention_ms, offsets_retention_check_interval_ms: KIP-211's expiry.
    write_timeout_ms: an operation whose records are not durable by then is answered with an error.
    consumer, consumer_groups: of all consumer groups, and of single ones by id. consumer_group_max_size: of
    a consumer group. streams, streams_groups, streams_group_max_size: the same of streams groups; share,
    share_groups, share_group_max_size: of share groups. share_initialize_retry_ms: the time after which the
    state of a share group's partition is initialized again if the share coordinator has not answered.
    consumer_assignors: names, the default first. regex_refresh_interval_ms: how long a pattern's topics stay
    when no topic is created. migration_policy: of groups with members.
    """

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    new_member_join_timeout_ms: int = 300_000
    group_max_size: int = _INT32_MAX
    offset_metadata_max_size: int = 4_096
    offsets_retention_ms: int = 10_080 * 60_000
    offsets_retention_check_interval_ms: int = 600_000
    write_timeout_ms: int = 5_000
    consumer: ConsumerGroupConfig = field(default_factory=ConsumerGroupConfig)
    consumer_groups: Mapping[str, ConsumerGroupConfig] = field(default_factory=dict)
    consumer_group_max_size: int = _INT32_MAX
    streams: StreamsGroupConfig = field(default_factory=StreamsGroupConfig)
    streams_groups: Mapping[str, StreamsGroupConfig] = field(default_factory=dict)
    streams_group_max_size: int = _INT32_MAX
    share: ShareGroupConfig = field(default_factory=ShareGroupConfig)
    share_groups: Mapping[str, ShareGroupConfig] = field(default_factory=dict)
    share_group_max_size: int = 200
    share_initialize_retry_ms: int = 30_000
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    regex_refresh_interval_ms: int = 600_000
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL

    def of_share_group(self, group_id: str) -> ShareGroupConfig:
        return self.share_groups.get(group_id, self.share)

    def of_consumer_group(self, group_id: str) -> ConsumerGroupConfig:
        return self.consumer_groups.get(group_id, self.consumer)

    def of_streams_group(self, group_id: str) -> StreamsGroupConfig:
        return self.streams_groups.get(group_id, self.streams)


# --- transactions ---


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionConfig:
    """The settings of a transaction coordinator. Times are in milliseconds.

    max_timeout_ms: the longest time-out of a transaction. abort_interval_ms: the time between two searches
    for transactions that exceed their time-out. expiration_ms, expiration_interval_ms: how long an unused id
    is kept, and the time between two searches for such ids. retry_ms: the time after which markers that
    failed are written again. version: the level of the feature transaction.version; from 1 on records have
    version 1, from 2 on each transaction has an epoch of its own (KIP-890). two_phase_commit: whether a
    producer may begin a transaction without a time-out (KIP-939).
    """

    max_timeout_ms: int = 900_000
    abort_interval_ms: int = 10_000
    expiration_ms: int = 604_800_000
    expiration_interval_ms: int = 3_600_000
    retry_ms: int = 100
    version: int = 2
    two_phase_commit: bool = False
