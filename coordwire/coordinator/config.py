"""The settings of an operator, with the names and defaults of Apache Kafka's broker settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from enum import Enum
from typing import Any, TypeAlias

from coordwire._dataclasses import dataclass
from coordwire.coordinator.releases import RELEASES, full_release

# --- groups ---

_INT32_MAX, _INT64_MAX = (1 << 31) - 1, (1 << 63) - 1


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
    Since Kafka 4.4, task_offset_interval_ms: how often members report offsets; acceptable_recovery_lag: the
    offsets that a task may lack and still count as caught up, sent to members; rack_aware_assignment_tags:
    keys of clients' tags, for assignors: a change of them is a reason for a new target.
    """

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    initial_rebalance_delay_ms: int = 3_000
    num_standby_replicas: int = 0
    task_offset_interval_ms: int = 60_000
    acceptable_recovery_lag: int = 10_000
    rack_aware_assignment_tags: tuple[str, ...] = ()


GroupConfig: TypeAlias = ConsumerGroupConfig | ShareGroupConfig | StreamsGroupConfig
"""The settings of one group, for when it is of this kind."""

# --- Kafka's names ---

_KINDS: Mapping[str, type[GroupConfig]] = {
    "consumer": ConsumerGroupConfig,
    "share": ShareGroupConfig,
    "streams": StreamsGroupConfig,
}
_GROUP_FIELDS = {
    f"{kind}.{own.name.replace('_', '.')}": (kind, own.name)
    for kind, config in _KINDS.items()
    for own in fields(config)
}
"""The settings of a GROUP resource: the kind of group, and the field of its configuration."""

_BROKER_FIELDS = {
    "group.min.session.timeout.ms": "min_session_timeout_ms",
    "group.max.session.timeout.ms": "max_session_timeout_ms",
    "group.initial.rebalance.delay.ms": "initial_rebalance_delay_ms",
    "group.max.size": "group_max_size",
    "group.consumer.max.size": "consumer_group_max_size",
    "group.consumer.assignors": "consumer_assignors",
    "group.consumer.migration.policy": "migration_policy",
    "group.consumer.regex.refresh.interval.ms": "regex_refresh_interval_ms",
    "group.share.max.size": "share_group_max_size",
    "group.share.initialize.retry.interval.ms": "share_initialize_retry_ms",
    "group.streams.max.size": "streams_group_max_size",
    "offset.metadata.max.bytes": "offset_metadata_max_size",
    "offsets.commit.timeout.ms": "write_timeout_ms",
    "offsets.retention.check.interval.ms": "offsets_retention_check_interval_ms",
    "offsets.retention.minutes": "offsets_retention_ms",
}
"""The settings of a broker, without those of `_GROUP_FIELDS`, which a broker has as `group.…`, too."""

BROKER_SETTINGS = (*_BROKER_FIELDS, *(f"group.{name}" for name in _GROUP_FIELDS))
"""The names that `CoordinatorConfig.with_settings` knows."""

_MAY_BE_ZERO = (
    "assignment.interval.ms", "rebalance.delay.ms", "standby.replicas", "metadata.max.bytes", "recovery.lag",
)  # fmt: skip
_MINUTE_MS = 60_000


def _read_setting(name: str, value: str | int) -> Any:
    """The value of a field. Raises `ValueError` for one that the setting can't have."""
    text = str(value).strip()
    setting = f"for {name}, got {text[:40]!r}"
    if name == "group.consumer.assignors":
        names = tuple(part.strip() for part in text.split(","))
        if not all(names):
            raise ValueError(f"expected names of assignors {setting}")
        return names
    if name == "group.consumer.migration.policy":
        try:
            return MigrationPolicy(text.lower())
        except ValueError:
            policies = ", ".join(policy.value for policy in MigrationPolicy)
            raise ValueError(f"expected one of {policies} {setting}") from None
    if name.endswith("assignment.tags"):
        tags = tuple(part.strip() for part in text.split(",")) if text else ()
        if len({*tags, ""}) <= len(tags):
            raise ValueError(f"expected different tags {setting}")
        return tags
    least = 0 if name.endswith(_MAY_BE_ZERO) else 1
    most = _INT64_MAX if name.endswith("recovery.lag") else _INT32_MAX
    if len(text) > 19 or not (text.isascii() and text.isdecimal()) or not least <= int(text) <= most:
        raise ValueError(f"expected an integer from {least} to {most} {setting}")
    return int(text) * (_MINUTE_MS if name == "offsets.retention.minutes" else 1)


# --- the coordinator ---


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorConfig:
    """The settings of a group coordinator. Times are in milliseconds, sizes in characters or members.

    min_session_timeout_ms, max_session_timeout_ms: the limits of a classic member's session time-out.
    initial_rebalance_delay_ms: how long an empty group waits for more members, and again after each member
    that joins. new_member_join_timeout_ms: how long a member whose client does not know its id may stay
    parked in JoinGroup. group_max_size: of a classic group. offset_metadata_max_size: of the text that goes
    with a committed offset. offsets_retention_ms, offsets_retention_check_interval_ms: KIP-211's expiry.
    write_timeout_ms: an operation whose records are not durable by then is answered with an error; None where
    it waits until the append's outcome is known.
    consumer, consumer_groups: of all consumer groups, and of single ones by id. consumer_group_max_size: of
    a consumer group. streams, streams_groups, streams_group_max_size: the same of streams groups; share,
    share_groups, share_group_max_size: of share groups. share_initialize_retry_ms: the time after which the
    state of a share group's partition is initialized again if the share coordinator has not answered.
    consumer_assignors: names, the default first. regex_refresh_interval_ms: how long a pattern's topics stay
    when no topic is created. migration_policy: of groups with members.
    release: of Apache Kafka, whose coordinator this one equals, as "4.3.1"; by default the newest that is
    known. "4.3" is its newest known patch, and an unknown one a `ValueError`.
    """

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    new_member_join_timeout_ms: int = 300_000
    group_max_size: int = _INT32_MAX
    offset_metadata_max_size: int = 4_096
    offsets_retention_ms: int = 10_080 * 60_000
    offsets_retention_check_interval_ms: int = 600_000
    write_timeout_ms: int | None = 5_000
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
    release: str = RELEASES[-1]

    def __post_init__(self) -> None:
        object.__setattr__(self, "release", full_release(self.release))

    def with_settings(self, settings: Mapping[str, str | int]) -> CoordinatorConfig:
        """The same with a broker's settings by Kafka's names, as {"group.share.max.size": "1000"}.

        Names of settings that a group coordinator does not have are ignored, so that they may be all of a
        broker's. Raises `ValueError` for a value that the setting can't have.
        """
        changes = {
            field: _read_setting(name, settings[name])
            for name, field in _BROKER_FIELDS.items()
            if name in settings
        }
        return replace(self, **changes, **self._merged(settings, "group."))

    def group_configs(self, settings: Mapping[str, str | int]) -> tuple[GroupConfig, ...]:
        """The configurations of one group, for `set_group_config`, of the kinds that its settings are for.

        settings: of the GROUP resource by Kafka's names, as {"streams.num.standby.replicas": "1"}; what they
        leave out is as for all groups of the kind. Others, as share.isolation.level, are ignored. Raises
        `ValueError` for a value that the setting can't have.
        """
        return tuple(self._merged(settings, "").values())

    def _merged(self, settings: Mapping[str, str | int], prefix: str) -> dict[str, Any]:
        """By kind, what is for all groups, with these settings."""
        changes: dict[str, dict[str, Any]] = {}
        for own, (kind, changed) in _GROUP_FIELDS.items():
            name = prefix + own
            if name in settings:
                changes.setdefault(kind, {})[changed] = _read_setting(name, settings[name])
        return {kind: replace(getattr(self, kind), **values) for kind, values in changes.items()}

    def group_settings(self) -> dict[str, str]:
        """The settings of all groups by the names that a GROUP resource has."""
        values = {name: getattr(getattr(self, kind), field) for name, (kind, field) in _GROUP_FIELDS.items()}
        return {
            name: ",".join(value) if isinstance(value, tuple) else str(value)
            for name, value in values.items()
        }

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
