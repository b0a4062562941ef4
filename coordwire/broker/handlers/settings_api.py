"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs: of topics, groups and brokers.

API keys and versions: DescribeConfigs 32 v1-4, AlterConfigs 33 v0-2, IncrementalAlterConfigs 44 v0-1,
ListConfigResources 74 v0-1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from coordwire._dataclasses import dataclass
from coordwire.broker.cluster.cluster_state import ClusterState
from coordwire.broker.cluster.dead_letters import DEAD_LETTERS_SHARE_VERSION
from coordwire.broker.cluster.fact_records import setting_records
from coordwire.broker.handlers.api_call import ApiCall
from coordwire.broker.settings.settings import (
    BROKER_DOCUMENTATION,
    GROUP_DOCUMENTATION,
    GROUP_SETTINGS,
    METRICS_DOCUMENTATION,
    METRICS_SETTINGS,
    TOPIC_DOCUMENTATION,
    TOPIC_SETTINGS,
    BadSetting,
    Settings,
    checked,
)
from coordwire.coordinator.topics import bad_name
from coordwire.enums import AlterConfigOperation, ConfigResourceType, ConfigSource, ConfigType, ErrorCode
from coordwire.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from coordwire.messages.alter_configs import AlterConfigsResource as ReplacedResource
from coordwire.messages.alter_configs import AlterConfigsResourceResponse as AlteredResource
from coordwire.messages.describe_configs import (
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from coordwire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
)
from coordwire.messages.list_config_resources import ConfigResource

_LISTED = frozenset(
    {
        ConfigResourceType.TOPIC,
        ConfigResourceType.BROKER,
        ConfigResourceType.BROKER_LOGGER,
        ConfigResourceType.CLIENT_METRICS,
        ConfigResourceType.GROUP,
    }
)
"""The types of resources that ListConfigResources knows."""


_DOCUMENTATION: Mapping[int, Mapping[str, str]] = {
    ConfigResourceType.TOPIC: TOPIC_DOCUMENTATION,
    ConfigResourceType.GROUP: GROUP_DOCUMENTATION,
    ConfigResourceType.BROKER: BROKER_DOCUMENTATION,
    ConfigResourceType.CLIENT_METRICS: METRICS_DOCUMENTATION,
}

_Altered = AlterConfigsResource | ReplacedResource


class _Refused(Exception):
    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code, self.message = int(code), message


# --- describing ---


def describe_settings(call: ApiCall) -> DescribeConfigsResponse:
    request: DescribeConfigsRequest = call.request
    response = DescribeConfigsResponse(results=[])
    for resource in request.resources:
        result = DescribeConfigsResult(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        try:
            entries = _described(call, resource, request.include_synonyms)
            keys = frozenset(resource.configuration_keys or ())
            result.configs = [subject for subject in entries if not keys or subject.name in keys]
            if request.include_documentation:
                texts = _DOCUMENTATION.get(resource.resource_type, {})
                for config in result.configs:
                    config.documentation = texts.get(config.name)
        except _Refused as refusal:
            result.error_code, result.error_message = refusal.code, refusal.message
        response.results.append(result)
    return response


def _described(
    call: ApiCall, resource: DescribeConfigsResource, synonyms: bool
) -> Iterable[DescribeConfigsResourceResult]:
    cluster, name = call.cluster, resource.resource_name
    if resource.resource_type == ConfigResourceType.TOPIC:
        topic = cluster.topics.get(name)
        if topic is None:
            reason = bad_name(name)
            if reason is not None:
                raise _Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
            raise _Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
        return described_settings(topic.settings, own_source=ConfigSource.TOPIC_CONFIG, synonyms=synonyms)
    if resource.resource_type == ConfigResourceType.GROUP:
        if not name:
            raise _Refused(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return described_settings(
            cluster.settings_of_group(name), own_source=ConfigSource.GROUP_CONFIG, synonyms=synonyms
        )
    if resource.resource_type == ConfigResourceType.BROKER:
        if name and name != str(call.node):
            _check_number(name, "Broker id")
            raise _Refused(
                ErrorCode.INVALID_REQUEST,
                f"Unexpected broker id, expected {call.node} or empty string, but received {name}",
            )
        return _described_broker(call, name, synonyms)
    if resource.resource_type == ConfigResourceType.BROKER_LOGGER:
        if not name:
            raise _Refused(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        _check_number(name, "Broker id")
        if name != str(call.node):
            message = f"Unexpected broker id, expected {call.node} but received {name}"
            raise _Refused(ErrorCode.INVALID_REQUEST, message)
        return []
    if resource.resource_type == ConfigResourceType.CLIENT_METRICS:
        if not name:
            raise _Refused(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
        return described_settings(
            Settings(METRICS_SETTINGS), own_source=ConfigSource.CLIENT_METRICS_CONFIG, synonyms=synonyms
        )
    raise _Refused(ErrorCode.INVALID_REQUEST, f"resource type {resource.resource_type} has no settings here")


def _check_number(name: str, kind: str) -> None:
    try:
        int(name)
    except ValueError:
        message = f"{kind} must be an integer, but it is: {name}"
        raise _Refused(ErrorCode.INVALID_REQUEST, message) from None


def described_settings(
    settings: Settings, *, own_source: ConfigSource, synonyms: bool = False
) -> list[DescribeConfigsResourceResult]:
    """Each setting of a topic or a group, with where it comes from."""
    results = []
    for setting in settings.table.values():
        own, fixed = settings.own.get(setting.name), settings.defaults.get(setting.name)
        if fixed == setting.default:
            fixed = None
        if setting.is_internal and own is None:
            continue
        source = (
            own_source
            if own is not None
            else ConfigSource.STATIC_BROKER_CONFIG
            if fixed is not None
            else ConfigSource.DEFAULT_CONFIG
        )
        result = DescribeConfigsResourceResult(
            name=setting.name,
            value=settings[setting.name],
            is_default=own is None,
            config_source=int(source),
            synonyms=[],
            config_type=int(setting.type),
            documentation=None,
        )
        if synonyms:
            result.synonyms = [
                DescribeConfigsSynonym(name=name, value=value, source=int(origin))
                for name, value, origin in (
                    (setting.name, own, own_source),
                    (setting.synonym, fixed, ConfigSource.STATIC_BROKER_CONFIG),
                    (setting.synonym, setting.default, ConfigSource.DEFAULT_CONFIG),
                )
                if value is not None
                and name
                and not (setting.unset_synonym and origin is ConfigSource.DEFAULT_CONFIG)
            ]
        results.append(result)
    return results


def _described_broker(call: ApiCall, name: str, synonyms: bool) -> list[DescribeConfigsResourceResult]:
    dynamic = call.cluster.broker_settings.get(name, {})
    static = {} if not name else broker_settings(call.cluster, call.node)
    results = []
    for key in sorted({*dynamic, *static}):
        setting = static.get(key)
        value = dynamic.get(key, setting.value if setting is not None else None)
        source = ConfigSource.DEFAULT_CONFIG
        if key in dynamic:
            source = ConfigSource.DYNAMIC_BROKER_CONFIG
        elif setting is not None and setting.configured:
            source = ConfigSource.STATIC_BROKER_CONFIG
        kind = ConfigType.STRING if setting is None else setting.type
        result = DescribeConfigsResourceResult(
            name=key,
            value=value,
            read_only=setting is not None and setting.read_only,
            is_default=source is ConfigSource.DEFAULT_CONFIG,
            config_source=int(source),
            synonyms=[],
            config_type=int(kind),
            documentation=None,
        )
        if synonyms:
            result.synonyms = [DescribeConfigsSynonym(name=key, value=value, source=int(source))]
        results.append(result)
    return results


def list_resources(call: ApiCall) -> ListConfigResourcesResponse:
    """Which resources have settings: those that were given some, and each topic and broker."""
    request: ListConfigResourcesRequest = call.request
    cluster = call.cluster
    if not _LISTED.issuperset(request.resource_types):
        return ListConfigResourcesResponse(error_code=int(ErrorCode.UNSUPPORTED_VERSION))
    kinds = set(request.resource_types) if call.version > 0 else {ConfigResourceType.CLIENT_METRICS}
    is_for_all = not kinds
    names: dict[ConfigResourceType, list[str]] = {
        ConfigResourceType.TOPIC: sorted(cluster.topics),
        ConfigResourceType.BROKER: [str(node) for node in cluster.nodes],
        ConfigResourceType.BROKER_LOGGER: [str(node) for node in cluster.nodes],
        ConfigResourceType.GROUP: sorted(cluster.group_settings),
    }
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=int(kind))
            for kind, known in names.items()
            if is_for_all or kind in kinds
            for name in known
        ]
    )


# --- altering ---


def incrementally_alter_settings(call: ApiCall) -> IncrementalAlterConfigsResponse:
    request: IncrementalAlterConfigsRequest = call.request
    response = IncrementalAlterConfigsResponse(responses=[])
    times = _times(request.resources)
    for resource in request.resources:
        result = AlterConfigsResourceResponse(
            resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
        )
        try:
            _check_once(times, resource)
            known = _own(call, resource.resource_type, resource.resource_name)
            changed = dict(known)
            for config in resource.configs:
                _change(call, resource.resource_type, changed, config)
            if not request.validate_only:
                _store(call, resource.resource_type, resource.resource_name, known, changed)
        except _Refused as refusal:
            result.error_code, result.error_message = refusal.code, refusal.message
        response.responses.append(result)
    return response


def alter_settings(call: ApiCall) -> AlterConfigsResponse:
    """All settings of a resource at once: what is not named has its default again."""
    request: AlterConfigsRequest = call.request
    response = AlterConfigsResponse(responses=[])
    times = _times(request.resources)
    for resource in request.resources:
        result = AlteredResource(
            resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
        )
        try:
            _check_once(times, resource)
            known = _own(call, resource.resource_type, resource.resource_name)
            changed = {
                config.name: _checked(call, resource.resource_type, config.name, config.value)
                for config in resource.configs
            }
            if not request.validate_only:
                _store(call, resource.resource_type, resource.resource_name, known, changed)
        except _Refused as refusal:
            result.error_code, result.error_message = refusal.code, refusal.message
        response.responses.append(result)
    return response


def _times(resources: Iterable[_Altered]) -> Counter[tuple[int, str]]:
    return Counter((resource.resource_type, resource.resource_name) for resource in resources)


def _check_once(times: Counter[tuple[int, str]], resource: _Altered) -> None:
    """Check that a resource and each of its settings are named once. Raises `_Refused`."""
    if times[resource.resource_type, resource.resource_name] > 1:
        raise _Refused(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    if len({config.name for config in resource.configs}) != len(resource.configs):
        raise _Refused(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")


def _own(call: ApiCall, kind: int, name: str) -> dict[str, str]:
    """What is set for a resource now."""
    cluster = call.cluster
    if kind == ConfigResourceType.TOPIC:
        topic = cluster.topics.get(name)
        if not name:
            raise _Refused(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        if topic is None:
            raise _Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        return topic.settings.own
    if kind == ConfigResourceType.GROUP:
        if not name:
            raise _Refused(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        known = cluster.group_settings.get(name)
        return {} if known is None else known.own
    if kind == ConfigResourceType.BROKER:
        if name and name != str(call.node):
            _check_number(name, "Node id")
            message = f"Unexpected broker id, expected {call.node}, but received {name}"
            raise _Refused(ErrorCode.INVALID_REQUEST, message)
        return cluster.broker_settings.get(name, {})
    raise _Refused(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")


def _checked(call: ApiCall, kind: int, name: str, value: str | None) -> str:
    if value is None:
        raise _Refused(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {name}")
    code = ErrorCode.INVALID_CONFIG
    try:
        if kind == ConfigResourceType.TOPIC:
            return checked(TOPIC_SETTINGS, name, value)
        if kind == ConfigResourceType.GROUP:
            return checked(GROUP_SETTINGS, name, value, of="group")
        code = ErrorCode.INVALID_REQUEST
        return _checked_of_broker(call, name, value)
    except BadSetting as refusal:
        raise _Refused(code, str(refusal)) from None


def _checked_of_broker(call: ApiCall, name: str, value: str) -> str:
    """A broker's setting; one that is not known here is kept as it is."""
    known = broker_settings(call.cluster, call.node).get(name)
    if known is not None and known.read_only:
        raise BadSetting(f"Cannot update these configs dynamically: [{name}]")
    setting = next((element for element in TOPIC_SETTINGS.values() if element.synonym == name), None)
    return value if setting is None else checked({name: replace(setting, name=name)}, name, value)


def _change(call: ApiCall, kind: int, settings: dict[str, str], config: AlterableConfig) -> None:
    name, operation = config.name, config.config_operation
    if operation == AlterConfigOperation.DELETE:
        settings.pop(name, None)
        return
    if operation == AlterConfigOperation.SET:
        settings[name] = _checked(call, kind, name, config.value)
        return
    table = TOPIC_SETTINGS if kind == ConfigResourceType.TOPIC else {}
    if operation not in (AlterConfigOperation.APPEND, AlterConfigOperation.SUBTRACT):
        raise _Refused(ErrorCode.UNKNOWN_SERVER_ERROR, f"unknown operation {operation} on {name}")
    if config.value is None:
        raise _Refused(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {name}")
    if name not in table or table[name].type is not ConfigType.LIST:
        verb = AlterConfigOperation(operation).name
        raise _Refused(ErrorCode.INVALID_CONFIG, f"Can't {verb} to key {name} because its type is not LIST.")
    current = settings.get(name, call.cluster.config.topic_defaults.get(name, table[name].default))
    now = [element for element in current.split(",") if element]
    named = [element.strip() for element in config.value.split(",")]
    known, new_items = frozenset(now), frozenset(named)
    if operation == AlterConfigOperation.APPEND:
        now += [element for element in named if element not in known]
    else:
        now = [element for element in now if element not in new_items]
    settings[name] = _checked(call, kind, name, ",".join(now)) if now else ""


def _store(call: ApiCall, kind: int, name: str, known: dict[str, str], settings: dict[str, str]) -> None:
    """Give a resource the settings in place of those known before. Raises `_Refused`."""
    cluster = call.cluster
    if kind == ConfigResourceType.TOPIC:
        topic = cluster.topics[name]
        topic.settings.own = settings
        topic.apply_settings()
        try:
            cluster.logs.topic_changed(topic)
        except OSError as error:
            topic.settings.own = known
            topic.apply_settings()
            raise _Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from None
        cluster.replication.topic_changed(topic)
        return
    reason = call.change(setting_records(ConfigResourceType(kind), name, known, settings))
    if reason is not None:
        raise _Refused(ErrorCode.KAFKA_STORAGE_ERROR, reason)
    if kind == ConfigResourceType.GROUP:
        cluster.groups.configure(name)
        cluster.share_partitions.configure(name)


_QUEUE = "errors.deadletterqueue"
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
    share = cluster.features.supported.get("share.version")
    if share is not None and share.newest >= DEAD_LETTERS_SHARE_VERSION:
        is_created = str(config.creates_dead_letter_queues).lower()
        settings[f"{_QUEUE}.auto.create.topics.enable"] = BrokerSetting(is_created, ConfigType.BOOLEAN)
        settings[f"{_QUEUE}.topic.name.prefix"] = BrokerSetting(
            config.dead_letter_queue_prefix, ConfigType.STRING
        )
    settings["auto.create.topics.enable"] = BrokerSetting(
        str(config.auto_create_topics).lower(), ConfigType.BOOLEAN
    )
    settings["group.consumer.migration.policy"] = BrokerSetting(
        groups.migration_policy.value, ConfigType.STRING
    )
    settings["group.consumer.assignors"] = BrokerSetting(",".join(groups.consumer_assignors), ConfigType.LIST)
    tags = ",".join(groups.streams.rack_aware_assignment_tags)
    settings["group.streams.rack.aware.assignment.tags"] = BrokerSetting(tags, ConfigType.LIST)
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
