"""Settings of topics, groups and brokers: their names, types, defaults and bounds, as Apache Kafka has them.

Rules: a value is kept as the text that a client sent; `checked` refuses what Kafka would refuse. A topic's
setting falls back to the broker's of `synonym`, then to its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from coordwire.enums import ConfigType

__all__ = ["GROUP_SETTINGS", "TOPIC_SETTINGS", "BadSetting", "Setting", "Settings", "checked"]

_INT64 = (1 << 63) - 1
_INT32 = (1 << 31) - 1


class BadSetting(ValueError):
    """A setting that does not exist, or a value that it cannot have."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. synonym: the broker's setting that is its default; choices: of a text or a list."""

    name: str
    type: ConfigType
    default: str
    synonym: str = ""
    least: float = -(1 << 63)
    most: float = _INT64
    choices: tuple[str, ...] = ()


def _table(*settings: Setting) -> dict[str, Setting]:
    return {one.name: one for one in settings}


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
    Setting("file.delete.delay.ms", _L, "60000", "log.segment.delete.delay.ms", 0),
    Setting("flush.messages", _L, str(_INT64), "log.flush.interval.messages", 1),
    Setting("flush.ms", _L, str(_INT64), "log.flush.interval.ms", 0),
    Setting("follower.replication.throttled.replicas", _T, ""),
    Setting("index.interval.bytes", _I, "4096", "log.index.interval.bytes", 0, _INT32),
    Setting("leader.replication.throttled.replicas", _T, ""),
    Setting("local.retention.bytes", _L, "-2", "log.local.retention.bytes", -2),
    Setting("local.retention.ms", _L, "-2", "log.local.retention.ms", -2),
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
    Setting("remote.log.copy.disable", _B, "false"),
    Setting("remote.log.delete.on.disable", _B, "false"),
    Setting("remote.storage.enable", _B, "false"),
    Setting("retention.bytes", _L, "-1", "log.retention.bytes"),
    Setting("retention.ms", _L, "604800000", "log.retention.ms", -1),
    Setting("segment.bytes", _I, "1073741824", "log.segment.bytes", 1 << 20, _INT32),
    Setting("segment.index.bytes", _I, "10485760", "log.index.size.max.bytes", 4, _INT32),
    Setting("segment.jitter.ms", _L, "0", "log.roll.jitter.ms", 0),
    Setting("segment.ms", _L, "604800000", "log.roll.ms", 1),
    Setting("unclean.leader.election.enable", _B, "false", "unclean.leader.election.enable"),
)  # fmt: skip

GROUP_SETTINGS = _table(
    Setting(
        "consumer.assignment.interval.ms", _I, "1000", "group.consumer.assignment.interval.ms", 0, 15_000
    ),
    Setting("consumer.heartbeat.interval.ms", _I, "5000", "group.consumer.heartbeat.interval.ms", 1, _INT32),
    Setting("consumer.session.timeout.ms", _I, "45000", "group.consumer.session.timeout.ms", 1, _INT32),
)


def checked(table: Mapping[str, Setting], name: str, value: str | None) -> str:
    """A value that the setting can have. Raises `BadSetting`."""
    setting = table.get(name)
    if setting is None:
        raise BadSetting(f"Unknown config name: {name}")
    if value is None:
        raise BadSetting(f"Null value not supported for: {name}")
    text = value.strip()
    if setting.type in (ConfigType.INT, ConfigType.LONG, ConfigType.DOUBLE):
        try:
            number = float(text) if setting.type is ConfigType.DOUBLE else int(text)
        except ValueError:
            number = None
        if number is None:
            raise BadSetting(f"Invalid value {value} for configuration {name}: not a number of type"
                             f" {setting.type.name}")  # fmt: skip
        if not setting.least <= number <= setting.most:
            raise BadSetting(f"Invalid value {value} for configuration {name}: expected a value within"
                             f" [{setting.least}, {setting.most}]")  # fmt: skip
    elif setting.type is ConfigType.BOOLEAN:
        if text.lower() not in ("true", "false"):
            raise BadSetting(f"Invalid value {value} for configuration {name}: expected true or false")
        text = text.lower()
    elif setting.choices:
        for one in text.split(",") if setting.type is ConfigType.LIST else [text]:
            if one.strip() not in setting.choices:
                raise BadSetting(f"Invalid value {value} for configuration {name}: expected one of"
                                 f" {', '.join(setting.choices)}")  # fmt: skip
    return text


class Settings:
    """What is set for one topic, group or broker; what is not set has its default.

    defaults: what a broker sets for all, by the names of `table`.
    """

    def __init__(self, table: Mapping[str, Setting], defaults: Mapping[str, str] | None = None) -> None:
        self.table = table
        self.own: dict[str, str] = {}
        self.defaults = dict(defaults or {})

    def __getitem__(self, name: str) -> str:
        found = self.own.get(name)
        if found is None:
            found = self.defaults.get(name)
        return self.table[name].default if found is None else found

    def number(self, name: str) -> int:
        return int(self[name])

    def items(self, name: str) -> list[str]:
        """A list's elements."""
        return [one.strip() for one in self[name].split(",") if one.strip()]
