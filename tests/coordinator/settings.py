"""What an operator sets for a history: small limits, so that histories meet them; the rest by the seed."""

from __future__ import annotations

from dataclasses import replace

from coordwire.coordinator import ConsumerGroupConfig, CoordinatorConfig, MigrationPolicy

__all__ = ["kafka_settings", "settings"]

_BASE = CoordinatorConfig(
    group_max_size=4, consumer_group_max_size=5, offset_metadata_max_size=8, offsets_retention_ms=3_600_000
)
_POLICIES = [*[MigrationPolicy.BIDIRECTIONAL] * 5, *MigrationPolicy]
_INTERVALS = [1_000, 0, 1_000, 5_000]


def settings(seed: int) -> CoordinatorConfig:
    return replace(
        _BASE,
        migration_policy=_POLICIES[seed % len(_POLICIES)],
        consumer=ConsumerGroupConfig(assignment_interval_ms=_INTERVALS[seed % len(_INTERVALS)]),
        consumer_assignors=("range", "uniform") if seed % 5 == 4 else ("uniform", "range"),
    )


def kafka_settings(seed: int) -> str:
    """The same as the oracle's command."""
    found = settings(seed)
    pairs = {
        "group.max.size": found.group_max_size,
        "group.consumer.max.size": found.consumer_group_max_size,
        "offset.metadata.max.bytes": found.offset_metadata_max_size,
        "offsets.retention.minutes": found.offsets_retention_ms // 60_000,
        "group.consumer.migration.policy": found.migration_policy.value,
        "group.consumer.assignment.interval.ms": found.consumer.assignment_interval_ms,
        "group.consumer.assignors": ",".join(found.consumer_assignors),
    }
    return " ".join(["new", *(f"{name}={value}" for name, value in pairs.items())])
