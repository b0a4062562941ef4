"""What a seed decides of a history: its way, and what an operator sets, with small limits."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto

from coordwire.coordinator import (
    ConsumerGroupConfig,
    CoordinatorConfig,
    MigrationPolicy,
    ShareGroupConfig,
    StreamsGroupConfig,
)
from tests.coordinator.oracle import RELEASE


class Way(Enum):
    """What histories are like. WIDE: more topics, partitions and members; HOSTILE: with extreme requests."""

    PLAIN = auto()
    WIDE = auto()
    HOSTILE = auto()


_WAYS = [Way.PLAIN, Way.WIDE, Way.PLAIN, Way.HOSTILE]
_ALL_PLAIN = 10_000
"""Histories of smaller seeds are kept with the settings that they had."""


def way(seed: int) -> Way:
    return _WAYS[seed // 3 % len(_WAYS)] if seed >= _ALL_PLAIN else Way.PLAIN


def has_streams(seed: int) -> bool:
    """Whether the history has streams groups beside others."""
    return seed >= _ALL_PLAIN and seed // 12 % 2 == 1


_BASE = CoordinatorConfig(
    group_max_size=4,
    consumer_group_max_size=5,
    streams_group_max_size=5,
    offset_metadata_max_size=8,
    offsets_retention_ms=3_600_000,
)
_POLICIES = [*[MigrationPolicy.BIDIRECTIONAL] * 5, *MigrationPolicy]
_INTERVALS = [1_000, 0, 1_000, 5_000]
_DELAYS = [3_000, 0, 0, 1_000, 0]
_STANDBYS = [0, 1, 2, 1, 0, 1, 2]


def settings(seed: int, release: str = RELEASE) -> CoordinatorConfig:
    base = _BASE
    if way(seed) is Way.WIDE:
        base = replace(_BASE, group_max_size=8, consumer_group_max_size=14, streams_group_max_size=14)
    return replace(
        base,
        release=release,
        migration_policy=_POLICIES[seed % len(_POLICIES)],
        consumer=ConsumerGroupConfig(assignment_interval_ms=_INTERVALS[seed % len(_INTERVALS)]),
        streams=StreamsGroupConfig(
            assignment_interval_ms=_INTERVALS[seed % len(_INTERVALS)],
            initial_rebalance_delay_ms=_DELAYS[seed % len(_DELAYS)],
            num_standby_replicas=_STANDBYS[seed % len(_STANDBYS)],
        ),
        share=ShareGroupConfig(assignment_interval_ms=_INTERVALS[seed % len(_INTERVALS)]),
        share_group_max_size=8 if way(seed) is Way.WIDE else 4,
        share_initialize_retry_ms=5_000,
        consumer_assignors=("range", "uniform") if seed % 5 == 4 else ("uniform", "range"),
    )


def kafka_settings(seed: int) -> str:
    """The same as the oracle's command."""
    chosen_settings = settings(seed)
    pairs = {
        "group.max.size": chosen_settings.group_max_size,
        "group.consumer.max.size": chosen_settings.consumer_group_max_size,
        "offset.metadata.max.bytes": chosen_settings.offset_metadata_max_size,
        "offsets.retention.minutes": chosen_settings.offsets_retention_ms // 60_000,
        "group.consumer.migration.policy": chosen_settings.migration_policy.value,
        "group.consumer.assignment.interval.ms": chosen_settings.consumer.assignment_interval_ms,
        "group.streams.max.size": chosen_settings.streams_group_max_size,
        "group.streams.assignment.interval.ms": chosen_settings.streams.assignment_interval_ms,
        "group.streams.initial.rebalance.delay.ms": chosen_settings.streams.initial_rebalance_delay_ms,
        "group.streams.num.standby.replicas": chosen_settings.streams.num_standby_replicas,
        "group.share.max.size": chosen_settings.share_group_max_size,
        "group.share.assignment.interval.ms": chosen_settings.share.assignment_interval_ms,
        "group.share.initialize.retry.interval.ms": chosen_settings.share_initialize_retry_ms,
        "group.consumer.assignors": ",".join(chosen_settings.consumer_assignors),
    }
    return " ".join(["new", *(f"{name}={value}" for name, value in pairs.items())])
