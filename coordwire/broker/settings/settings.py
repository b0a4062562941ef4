"""Settings of topics, groups and brokers: their names, types, defaults and bounds, as Apache Kafka has them.

Rules: a value is kept as the text that a client sent; `checked` refuses what Kafka would refuse. A topic's
setting falls back to the broker's of `synonym`, then to its default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from coordwire.enums import ConfigType

__all__ = [
    "GROUP_SETTINGS",
    "METRICS_SETTINGS",
    "TOPIC_SETTINGS",
    "BadSetting",
    "Setting",
    "Settings",
    "checked",
]

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

    unset_synonym: the broker's setting of that name has no default of its own.
    """

    name: str
    type: ConfigType
    default: str
    synonym: str = ""
    least: float = -(1 << 63)
    most: float = _INT64
    choices: tuple[str, ...] = ()
    unset_synonym: bool = False


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
    Setting("share.assignment.interval.ms", _I, "1000", "group.share.assignment.interval.ms", 0, 15_000),
    Setting("share.auto.offset.reset", _T, "latest"),
    Setting("share.delivery.count.limit", _I, "5", "group.share.delivery.count.limit", 2, 10),
    Setting("share.heartbeat.interval.ms", _I, "5000", "group.share.heartbeat.interval.ms", 1, 15_000),
    Setting("share.isolation.level", _T, "read_uncommitted", choices=("read_committed", "read_uncommitted")),
    Setting(
        "share.partition.max.record.locks", _I, "2000", "group.share.partition.max.record.locks", 100, 10_000
    ),
    Setting(
        "share.record.lock.duration.ms", _I, "30000", "group.share.record.lock.duration.ms", 1_000, 3_600_000
    ),
    Setting("share.renew.acknowledge.enable", _B, "true"),
    Setting("share.session.timeout.ms", _I, "45000", "group.share.session.timeout.ms", 1, _INT32),
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
    Setting("streams.session.timeout.ms", _I, "45000", "group.streams.session.timeout.ms", 1, _INT32),
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
