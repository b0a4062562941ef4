"""Settings of topics, groups and brokers: their names, types, defaults and bounds, as Apache Kafka has them.

Rules: a value is kept as the text that a client sent; `checked` refuses what Kafka would refuse. A topic's
setting falls back to the broker's of `synonym`, then to its default. The descriptions for DescribeConfigs are
short texts of this package, not Kafka's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from coordwire._dataclasses import dataclass
from coordwire.enums import ConfigType

_INT64 = (1 << 63) - 1
_INT32 = (1 << 31) - 1


class BadSetting(ValueError):
    """A setting that does not exist, or a value that it cannot have."""


_THROTTLED = ".replication.throttled.replicas"
_REPLICAS = re.compile(r"\*|(?:\d+:\d+(?:,\d+:\d+)*)?")
"""The form of a list of throttled replicas."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. synonym: the broker's setting that is its default; choices: of a text or a list.

    unset_synonym: the broker's setting of that name has no default of its own. is_internal: it is listed only
    where it is set. repeats: whether a list may have an element twice.
    """

    name: str
    type: ConfigType
    default: str
    synonym: str = ""
    least: float = -(1 << 63)
    most: float = _INT64
    choices: tuple[str, ...] = ()
    unset_synonym: bool = False
    is_internal: bool = False
    repeats: bool = True


def _table(*settings: Setting) -> dict[str, Setting]:
    return {setting.name: setting for setting in settings}


_B, _S, _I, _L, _D, _T = (
    ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.LONG, ConfigType.DOUBLE,
    ConfigType.LIST,
)  # fmt: skip
_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

TOPIC_SETTINGS = _table(
    Setting("cleanup.policy", _T, "delete", "log.cleanup.policy", choices=("compact", "delete")),
    Setting("compression.gzip.level", _I, "-1", "compression.gzip.level", -1, 9),
    Setting("compression.lz4.level", _I, "9", "compression.lz4.level", 1, 17),
    Setting("compression.type", _S, "producer", "compression.type", choices=_CODECS),
    Setting("compression.zstd.level", _I, "3", "compression.zstd.level", -131072, 22),
    Setting("delete.retention.ms", _L, "86400000", "log.cleaner.delete.retention.ms", 0),
    Setting("errors.deadletterqueue.group.enable", _B, "false"),
    Setting("file.delete.delay.ms", _L, "60000", "log.segment.delete.delay.ms", 0),
    Setting("flush.messages", _L, str(_INT64), "log.flush.interval.messages", 1),
    Setting("flush.ms", _L, str(_INT64), "log.flush.interval.ms", 0, unset_synonym=True),
    Setting("follower.replication.throttled.replicas", _T, ""),
    Setting("index.interval.bytes", _I, "4096", "log.index.interval.bytes", 0, _INT32),
    Setting("leader.replication.throttled.replicas", _T, ""),
    Setting("local.retention.bytes", _L, "-2", "log.local.retention.bytes", -2),
    Setting("local.retention.ms", _L, "-2", "log.local.retention.ms", -2),
    Setting(
        "max.decompressed.message.bytes", _I, "2147483639", "max.decompressed.message.bytes", 0, _INT32
    ),
    Setting("max.compaction.lag.ms", _L, str(_INT64), "log.cleaner.max.compaction.lag.ms", 1),
    Setting("max.message.bytes", _I, "1048588", "message.max.bytes", 0, _INT32),
    Setting("message.timestamp.after.max.ms", _L, "3600000", "log.message.timestamp.after.max.ms", 0),
    Setting("message.timestamp.before.max.ms", _L, str(_INT64), "log.message.timestamp.before.max.ms", 0),
    Setting(
        "message.timestamp.type", _S, "CreateTime", "log.message.timestamp.type",
        choices=("CreateTime", "LogAppendTime"),
    ),
    Setting("min.cleanable.dirty.ratio", _D, "0.5", "log.cleaner.min.cleanable.ratio", 0, 1),
    Setting("min.compaction.lag.ms", _L, "0", "log.cleaner.min.compaction.lag.ms", 0),
    Setting("min.insync.replicas", _I, "1", "min.insync.replicas", 1, _INT32),
    Setting("preallocate", _B, "false", "log.preallocate"),
    Setting("remote.copy.lag.bytes", _L, "-1", "log.remote.copy.lag.bytes", -1),
    Setting("remote.copy.lag.ms", _L, "0", "log.remote.copy.lag.ms", -1),
    Setting("remote.log.copy.disable", _B, "false"),
    Setting("remote.log.delete.on.disable", _B, "false"),
    Setting("remote.storage.enable", _B, "false"),
    Setting("retention.bytes", _L, "-1", "log.retention.bytes"),
    Setting("retention.ms", _L, "604800000", "log.retention.ms", -1, unset_synonym=True),
    Setting("segment.bytes", _I, "1073741824", "log.segment.bytes", 1 << 20, _INT32),
    Setting("segment.index.bytes", _I, "10485760", "log.index.size.max.bytes", 4, _INT32),
    Setting("segment.jitter.ms", _L, "0", "log.roll.jitter.ms", 0, unset_synonym=True),
    Setting("segment.ms", _L, "604800000", "log.roll.ms", 1, unset_synonym=True),
    Setting("unclean.leader.election.enable", _B, "false", "unclean.leader.election.enable"),
)  # fmt: skip

GROUP_SETTINGS = _table(
    Setting(
        "consumer.assignment.interval.ms", _I, "1000", "group.consumer.assignment.interval.ms", 0, 15_000
    ),
    Setting("consumer.heartbeat.interval.ms", _I, "5000", "group.consumer.heartbeat.interval.ms", 1, _INT32),
    Setting("consumer.session.timeout.ms", _I, "45000", "group.consumer.session.timeout.ms", 1, _INT32),
    Setting(
        "errors.deadletterqueue.copy.record.enable", _B, "false", "errors.deadletterqueue.copy.record.enable"
    ),
    Setting("errors.deadletterqueue.topic.name", _S, "", "errors.deadletterqueue.topic.name"),
    Setting("share.assignment.interval.ms", _I, "1000", "group.share.assignment.interval.ms", 0, 15_000),
    Setting("share.auto.offset.reset", _S, "latest", "share.auto.offset.reset"),
    Setting("share.delivery.count.limit", _I, "5", "group.share.delivery.count.limit", 2, 10),
    Setting("share.heartbeat.interval.ms", _I, "5000", "group.share.heartbeat.interval.ms", 1, 15_000),
    Setting(
        "share.isolation.level",
        _S,
        "read_uncommitted",
        "share.isolation.level",
        choices=("read_committed", "read_uncommitted"),
    ),
    Setting(
        "share.partition.max.record.locks", _I, "2000", "group.share.partition.max.record.locks", 100, 10_000
    ),
    Setting(
        "share.record.lock.duration.ms", _I, "30000", "group.share.record.lock.duration.ms", 1_000, 3_600_000
    ),
    Setting("share.renew.acknowledge.enable", _B, "true", "share.renew.acknowledge.enable"),
    Setting("share.session.timeout.ms", _I, "45000", "group.share.session.timeout.ms", 1, _INT32),
    Setting(
        "streams.acceptable.recovery.lag",
        _L,
        "10000",
        "group.streams.acceptable.recovery.lag",
        0,
        is_internal=True,
    ),
    Setting("streams.assignor.name", _S, "sticky", "group.streams.assignors", choices=("sticky",)),
    Setting("streams.assignment.interval.ms", _I, "1000", "group.streams.assignment.interval.ms", 0, 15_000),
    Setting("streams.heartbeat.interval.ms", _I, "5000", "group.streams.heartbeat.interval.ms", 1, _INT32),
    Setting(
        "streams.initial.rebalance.delay.ms",
        _I,
        "3000",
        "group.streams.initial.rebalance.delay.ms",
        0,
        _INT32,
    ),
    Setting("streams.num.standby.replicas", _I, "0", "group.streams.num.standby.replicas", 0, 2),
    Setting(
        "streams.rack.aware.assignment.tags",
        _T,
        "",
        "group.streams.rack.aware.assignment.tags",
        repeats=False,
    ),
    Setting("streams.session.timeout.ms", _I, "45000", "group.streams.session.timeout.ms", 1, _INT32),
    Setting(
        "streams.task.offset.interval.ms",
        _I,
        "60000",
        "group.streams.task.offset.interval.ms",
        1,
        _INT32,
        is_internal=True,
    ),
)


METRICS_SETTINGS = _table(
    Setting("interval.ms", _I, "300000", least=100, most=3_600_000),
    Setting("match", _T, ""),
    Setting("metrics", _T, ""),
)
"""Of a subscription to clients' metrics (KIP-714); this broker asks for none."""


def checked(table: Mapping[str, Setting], name: str, value: str, *, of: str = "topic") -> str:
    """A value that the setting can have. of: whose setting it is, for the error. Raises `BadSetting`."""
    setting = table.get(name)
    if setting is None:
        raise BadSetting(f"Unknown {of} config name: {name}")
    text = value.strip()

    def bad_setting(reason: str) -> BadSetting:
        return BadSetting(f"Invalid value {value} for configuration {name}: {reason}")

    if setting.type in (ConfigType.INT, ConfigType.LONG, ConfigType.DOUBLE):
        number = _number(setting.type, text)
        if number is None:
            raise bad_setting(f"Not a number of type {setting.type.name}")
        if number < setting.least:
            raise bad_setting(f"Value must be at least {setting.least}")
        if number > setting.most:
            raise bad_setting(f"Value must be no more than {setting.most}")
    elif setting.type is ConfigType.BOOLEAN:
        if text.lower() not in ("true", "false"):
            raise bad_setting("Expected value to be either true or false")
        text = text.lower()
    elif setting.type is ConfigType.LIST and text:
        items = [element.strip() for element in text.split(",")]
        if not setting.repeats and len(set(items)) < len(items):
            raise BadSetting(f"{name} must not contain duplicate tag keys.")
        if "" in items:
            raise BadSetting(f"Configuration '{name}' values must not be empty.")
        if name.endswith(_THROTTLED) and not _REPLICAS.fullmatch(text):
            raise BadSetting(
                f"Invalid value [{', '.join(items)}] for configuration {name}: {name} must be the literal '*'"
                " or a list of replicas in the following format:"
                " [partitionId]:[brokerId],[partitionId]:[brokerId],..."
            )
        for item in items:
            if setting.choices and item not in setting.choices:
                raise BadSetting(_not_a_choice(setting, item))
    elif setting.type is ConfigType.STRING and setting.choices and text not in setting.choices:
        raise BadSetting(_not_a_choice(setting, text))
    if name == "errors.deadletterqueue.topic.name" and text.startswith("__"):
        raise BadSetting(f"{name}: DLQ topic name must not start with '__'")
    if name == "remote.storage.enable" and text == "true":
        raise BadSetting(
            "Tiered Storage functionality is disabled in the broker."
            " Topic cannot be configured with remote log storage."
        )
    return text


def _number(kind: ConfigType, text: str) -> float | None:
    try:
        if kind is ConfigType.DOUBLE:
            return float(text)
        number = int(text)
    except ValueError:
        return None
    most = _INT32 if kind is ConfigType.INT else _INT64
    return number if -most - 1 <= number <= most else None


def _not_a_choice(setting: Setting, value: str) -> str:
    choices = ", ".join(setting.choices)
    return f"Invalid value {value} for configuration {setting.name}: String must be one of: {choices}"


class Settings:
    """The settings of one topic, group or broker; a setting that is not set has its default.

    defaults: what a broker sets for all, by the names of `table`.
    """

    def __init__(self, table: Mapping[str, Setting], defaults: Mapping[str, str] | None = None) -> None:
        self.table = table
        self.own: dict[str, str] = {}
        self.defaults = dict(defaults or {})

    def __getitem__(self, name: str) -> str:
        value = self.own.get(name)
        if value is None:
            value = self.defaults.get(name)
        return self.table[name].default if value is None else value

    def number(self, name: str) -> int:
        return int(self[name])

    def items(self, name: str) -> list[str]:
        """A list's elements."""
        return [element.strip() for element in self[name].split(",") if element.strip()]


TOPIC_DOCUMENTATION: Mapping[str, str] = {
    "cleanup.policy": "How old records are removed: delete, compact, both, or neither.",
    "compression.gzip.level": "The level of compression with gzip.",
    "compression.lz4.level": "The level of compression with LZ4.",
    "compression.type": "The codec of stored batches; producer keeps the one that the producer used.",
    "compression.zstd.level": "The level of compression with Zstandard.",
    "delete.retention.ms": "How long compaction keeps tombstones and transaction markers, in ms.",
    "errors.deadletterqueue.group.enable": "Whether share groups may use the topic as a dead letter queue.",
    "file.delete.delay.ms": "How long a deleted file stays on disk, in ms.",
    "flush.messages": "The number of records after which the log is forced to disk.",
    "flush.ms": "The time after which the log is forced to disk, in ms.",
    "follower.replication.throttled.replicas":
        "Replicas whose followers are throttled, as partition:broker pairs; * for all.",
    "index.interval.bytes": "The number of bytes of records between two entries of the offset index.",
    "leader.replication.throttled.replicas":
        "Replicas whose leaders are throttled, as partition:broker pairs; * for all.",
    "local.retention.bytes":
        "The size up to which a partition keeps local segments with tiered storage; -2 for retention.bytes.",
    "local.retention.ms":
        "How long local segments are kept with tiered storage, in ms; -2 for retention.ms.",
    "max.compaction.lag.ms": "The longest time that a record stays uncompacted, in ms.",
    "max.decompressed.message.bytes": "The largest size of a batch after decompression, in bytes.",
    "max.message.bytes": "The largest size of a batch as it is stored, in bytes.",
    "message.timestamp.after.max.ms":
        "How far a record's timestamp may be after the broker's clock, in ms.",
    "message.timestamp.before.max.ms":
        "How far a record's timestamp may be before the broker's clock, in ms.",
    "message.timestamp.type":
        "Whether a record has the producer's time (CreateTime) or the broker's (LogAppendTime).",
    "min.cleanable.dirty.ratio": "The uncompacted part of a log from which on it is compacted.",
    "min.compaction.lag.ms": "The shortest time that a record stays uncompacted, in ms.",
    "min.insync.replicas": "The number of replicas in sync that a write with acks=all needs.",
    "preallocate": "Whether a new segment's file has its full size at once.",
    "remote.copy.lag.bytes": "The size of closed segments that need not be copied to remote storage yet.",
    "remote.copy.lag.ms": "How long a closed segment need not be copied to remote storage, in ms.",
    "remote.log.copy.disable": "Whether no more segments are copied to remote storage.",
    "remote.log.delete.on.disable":
        "Whether segments in remote storage are deleted when tiered storage is disabled.",
    "remote.storage.enable": "Whether the topic has tiered storage.",
    "retention.bytes": "The size up to which a partition keeps records with the policy delete; -1 for any.",
    "retention.ms": "How long records are kept with the policy delete, in ms; -1 for ever.",
    "segment.bytes": "The largest size of a segment's file.",
    "segment.index.bytes": "The largest size of a segment's index.",
    "segment.jitter.ms": "The largest random time by which a segment is closed earlier, in ms.",
    "segment.ms": "The time after which a segment is closed even if it is not full, in ms.",
    "unclean.leader.election.enable": "Whether a replica that is not in sync may become the leader.",
}  # fmt: skip

GROUP_DOCUMENTATION: Mapping[str, str] = {
    "consumer.assignment.interval.ms": "The shortest time between a consumer group's assignments, in ms.",
    "consumer.heartbeat.interval.ms": "The time between two heartbeats of a consumer group's member, in ms.",
    "consumer.session.timeout.ms":
        "The time without a heartbeat after which a consumer group's member is removed, in ms.",
    "errors.deadletterqueue.copy.record.enable": "Whether dead letters copy a record's key and value.",
    "errors.deadletterqueue.topic.name": "The topic of a share group's dead letters; empty for none.",
    "share.assignment.interval.ms": "The shortest time between a share group's assignments, in ms.",
    "share.auto.offset.reset":
        "Where a share group begins that has no position: latest, earliest, or by_duration.",
    "share.delivery.count.limit": "How often a record is delivered to a share group before it is archived.",
    "share.heartbeat.interval.ms": "The time between two heartbeats of a share group's member, in ms.",
    "share.isolation.level": "Whether a share group gets records of transactions that are not committed.",
    "share.partition.max.record.locks":
        "The largest number of a share group's records in flight in a partition.",
    "share.record.lock.duration.ms":
        "How long a member of a share group has a record that it acquired, in ms.",
    "share.renew.acknowledge.enable": "Whether members of a share group may renew their hold of a record.",
    "share.session.timeout.ms":
        "The time without a heartbeat after which a share group's member is removed, in ms.",
    "streams.acceptable.recovery.lag":
        "How many offsets a task of a streams group may lack and still count as caught up.",
    "streams.assignor.name": "The assignor of a streams group's tasks.",
    "streams.assignment.interval.ms": "The shortest time between a streams group's assignments, in ms.",
    "streams.heartbeat.interval.ms": "The time between two heartbeats of a streams group's member, in ms.",
    "streams.initial.rebalance.delay.ms":
        "How long a new streams group waits for more members before its first assignment, in ms.",
    "streams.num.standby.replicas": "The number of standby tasks of each task with state.",
    "streams.rack.aware.assignment.tags": "The keys of clients' tags by which standby tasks are spread.",
    "streams.session.timeout.ms":
        "The time without a heartbeat after which a streams group's member is removed, in ms.",
    "streams.task.offset.interval.ms":
        "The time between two reports of its tasks' offsets by a streams group's member, in ms.",
}  # fmt: skip

METRICS_DOCUMENTATION: Mapping[str, str] = {
    "interval.ms": "The time between two pushes of a client's metrics, in ms.",
    "match": "Which clients push metrics, as key=pattern pairs.",
    "metrics": "Prefixes of the names of metrics that clients push.",
}

BROKER_DOCUMENTATION: Mapping[str, str] = {
    "advertised.listeners": "The addresses that clients connect to.",
    "auto.create.topics.enable": "Whether a topic is created when a client asks for its metadata.",
    "broker.id": "The broker's number.",
    "broker.rack": "The rack that the broker is in.",
    "default.replication.factor": "The number of replicas of a topic that is created without one.",
    "errors.deadletterqueue.auto.create.topics.enable":
        "Whether a share group's dead letter queue is created when it is missing.",
    "errors.deadletterqueue.topic.name.prefix":
        "How the names of share groups' dead letter queues begin; empty for any name.",
    "fetch.max.bytes": "The largest size of the records in one answer to Fetch, in bytes.",
    "group.consumer.assignment.interval.ms": GROUP_DOCUMENTATION["consumer.assignment.interval.ms"],
    "group.consumer.assignors": "The assignors that consumer groups can use; the first is the default.",
    "group.consumer.heartbeat.interval.ms": GROUP_DOCUMENTATION["consumer.heartbeat.interval.ms"],
    "group.consumer.max.size": "The largest number of members of a consumer group.",
    "group.consumer.migration.policy":
        "Which online conversions between classic groups and consumer groups are done.",
    "group.consumer.session.timeout.ms": GROUP_DOCUMENTATION["consumer.session.timeout.ms"],
    "group.streams.assignment.interval.ms": GROUP_DOCUMENTATION["streams.assignment.interval.ms"],
    "group.streams.heartbeat.interval.ms": GROUP_DOCUMENTATION["streams.heartbeat.interval.ms"],
    "group.streams.initial.rebalance.delay.ms": GROUP_DOCUMENTATION["streams.initial.rebalance.delay.ms"],
    "group.streams.max.size": "The largest number of members of a streams group.",
    "group.streams.num.standby.replicas": GROUP_DOCUMENTATION["streams.num.standby.replicas"],
    "group.streams.rack.aware.assignment.tags": GROUP_DOCUMENTATION["streams.rack.aware.assignment.tags"],
    "group.streams.session.timeout.ms": GROUP_DOCUMENTATION["streams.session.timeout.ms"],
    "group.initial.rebalance.delay.ms":
        "How long the first rebalance of an empty classic group waits for more members, in ms.",
    "group.max.session.timeout.ms": "The longest session timeout of a classic group's member, in ms.",
    "group.max.size": "The largest number of members of a classic group.",
    "group.min.session.timeout.ms": "The shortest session timeout of a classic group's member, in ms.",
    "group.share.assignment.interval.ms": GROUP_DOCUMENTATION["share.assignment.interval.ms"],
    "group.share.delivery.count.limit": GROUP_DOCUMENTATION["share.delivery.count.limit"],
    "group.share.heartbeat.interval.ms": GROUP_DOCUMENTATION["share.heartbeat.interval.ms"],
    "group.share.max.share.sessions": "The largest number of share sessions.",
    "group.share.max.size": "The largest number of members of a share group.",
    "group.share.partition.max.record.locks": GROUP_DOCUMENTATION["share.partition.max.record.locks"],
    "group.share.record.lock.duration.ms": GROUP_DOCUMENTATION["share.record.lock.duration.ms"],
    "group.share.session.timeout.ms": GROUP_DOCUMENTATION["share.session.timeout.ms"],
    "listeners": "The addresses that the broker listens on.",
    "max.incremental.fetch.session.cache.slots": "The largest number of fetch sessions.",
    "node.id": "The node's number.",
    "num.partitions": "The number of partitions of a topic that is created without one.",
    "offset.metadata.max.bytes": "The largest size of the metadata of a committed offset.",
    "offsets.retention.minutes": "How long offsets of a group without members are kept, in minutes.",
    "offsets.topic.num.partitions": "The number of partitions of __consumer_offsets.",
    "replica.selector.class": "The class that chooses the replica that a consumer reads from.",
    "share.coordinator.state.topic.num.partitions": "The number of partitions of __share_group_state.",
    "socket.request.max.bytes": "The largest size of a request, in bytes.",
    **{
        setting.synonym: TOPIC_DOCUMENTATION[name]
        for name, setting in TOPIC_SETTINGS.items()
        if setting.synonym
    },
}  # fmt: skip
