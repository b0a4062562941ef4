"""A broker's own settings as it describes them: those of Kafka that it has, by Kafka's names."""

from __future__ import annotations

from dataclasses import dataclass

from coordwire.broker.cluster.cluster_state import ClusterState
from coordwire.broker.settings.settings import TOPIC_SETTINGS
from coordwire.enums import ConfigType

__all__ = ["BrokerSetting", "broker_settings"]


_GIVEN = frozenset({"node.id", "broker.id"})


@dataclass(frozen=True, slots=True)
class BrokerSetting:
    """One setting. read_only: it cannot be changed while the broker runs. configured: it is in the
    broker's own configuration, where no default would do."""

    value: str | None
    type: ConfigType
    read_only: bool = True
    configured: bool = False


def broker_settings(cluster: ClusterState, node: int) -> dict[str, BrokerSetting]:
    """The settings of a node, by name."""
    config, groups, address = cluster.config, cluster.config.coordinator, cluster.nodes[node]
    numbers = {
        "node.id": node,
        "broker.id": node,
        "num.partitions": config.num_partitions,
        "default.replication.factor": config.default_replication_factor,
        "offsets.topic.num.partitions": config.offsets_partitions,
        "offsets.retention.minutes": groups.offsets_retention_ms // 60_000,
        "offset.metadata.max.bytes": groups.offset_metadata_max_size,
        "group.min.session.timeout.ms": groups.min_session_timeout_ms,
        "group.max.session.timeout.ms": groups.max_session_timeout_ms,
        "group.initial.rebalance.delay.ms": groups.initial_rebalance_delay_ms,
        "group.max.size": groups.group_max_size,
        "group.consumer.session.timeout.ms": groups.consumer.session_timeout_ms,
        "group.consumer.heartbeat.interval.ms": groups.consumer.heartbeat_interval_ms,
        "group.consumer.assignment.interval.ms": groups.consumer.assignment_interval_ms,
        "group.consumer.max.size": groups.consumer_group_max_size,
        "group.share.session.timeout.ms": groups.share.session_timeout_ms,
        "group.share.heartbeat.interval.ms": groups.share.heartbeat_interval_ms,
        "group.share.assignment.interval.ms": groups.share.assignment_interval_ms,
        "group.share.max.size": groups.share_group_max_size,
        "group.share.max.share.sessions": config.share_sessions,
        "group.share.delivery.count.limit": config.share_partitions.delivery_count_limit,
        "group.share.record.lock.duration.ms": config.share_partitions.lock_duration_ms,
        "group.share.partition.max.record.locks": config.share_partitions.max_record_locks,
        "share.coordinator.state.topic.num.partitions": config.share_state_partitions,
        "group.streams.session.timeout.ms": groups.streams.session_timeout_ms,
        "group.streams.heartbeat.interval.ms": groups.streams.heartbeat_interval_ms,
        "group.streams.assignment.interval.ms": groups.streams.assignment_interval_ms,
        "group.streams.initial.rebalance.delay.ms": groups.streams.initial_rebalance_delay_ms,
        "group.streams.num.standby.replicas": groups.streams.num_standby_replicas,
        "group.streams.max.size": groups.streams_group_max_size,
        "fetch.max.bytes": config.max_fetch_bytes,
        "max.incremental.fetch.session.cache.slots": config.fetch_sessions,
        "socket.request.max.bytes": config.max_frame,
    }
    listener = f"PLAINTEXT://{address.host}:{address.port}"
    settings = {
        name: BrokerSetting(str(value), ConfigType.INT, configured=name in _GIVEN)
        for name, value in numbers.items()
    }
    settings["auto.create.topics.enable"] = BrokerSetting(
        str(config.auto_create_topics).lower(), ConfigType.BOOLEAN
    )
    settings["group.consumer.migration.policy"] = BrokerSetting(
        groups.migration_policy.value, ConfigType.STRING
    )
    settings["group.consumer.assignors"] = BrokerSetting(",".join(groups.consumer_assignors), ConfigType.LIST)
    settings["listeners"] = settings["advertised.listeners"] = BrokerSetting(
        listener, ConfigType.LIST, configured=True
    )
    settings["broker.rack"] = BrokerSetting(
        address.rack, ConfigType.STRING, configured=address.rack is not None
    )
    selector = config.replica_selector_class
    settings["replica.selector.class"] = BrokerSetting(
        selector, ConfigType.STRING, configured=selector is not None
    )
    for setting in TOPIC_SETTINGS.values():
        if setting.synonym:
            default = None if setting.unset_synonym else setting.default
            value = config.topic_defaults.get(setting.name, default)
            settings[setting.synonym] = BrokerSetting(value, setting.type, read_only=False)
    return settings
