"""Settings described and altered: unknown resources, bad names and values, odd operations."""

from __future__ import annotations

from typing import Any

from tests.broker.corners.script import Step, ask, case, only_if, quiet, topic

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
_KEYS = ["retention.ms", "cleanup.policy"]


def _described(kind: int, name: str, keys: Any = None, *, version: int = 4, **more: Any) -> Step:
    one = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    return ask("DescribeConfigs", version, resources=[one], **more)


case("describe-configs-of-topic", topic(), _described(TOPIC, "$t"))
for v in (1, 2, 3):
    case(f"describe-configs-v{v}", topic(retention_ms="5000"), _described(TOPIC, "$t", _KEYS, version=v))
case(
    "describe-configs-synonyms",
    topic(retention_ms="5000"),
    _described(TOPIC, "$t", _KEYS, include_synonyms=True),
)
case("describe-configs-all-synonyms", topic(), _described(TOPIC, "$t", include_synonyms=True))
case(
    "describe-configs-documented",
    topic(),
    _described(TOPIC, "$t", ["preallocate"], include_documentation=True),
)
case(
    "describe-configs-unknown-topic", _described(TOPIC, "$t"), _described(TOPIC, ""), _described(TOPIC, "a/b")
)
case("describe-configs-unknown-key", topic(), _described(TOPIC, "$t", ["no.such.setting", "retention.ms"]))
case("describe-configs-no-keys", topic(), _described(TOPIC, "$t", ["nothing"]))
case(
    "describe-configs-twice",
    topic(),
    ask(
        "DescribeConfigs",
        4,
        resources=[{"resource_type": TOPIC, "resource_name": "$t", "configuration_keys": _KEYS}] * 2,
    ),
)
case("describe-configs-none", ask("DescribeConfigs", 4, resources=[]))
case(
    "describe-configs-group",
    _described(GROUP, "$g", ["consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"]),
    _described(GROUP, ""),
)
case(
    "describe-configs-broker",
    _described(BROKER, "1", ["num.partitions", "log.retention.ms"]),
    _described(BROKER, "7"),
    _described(BROKER, "x"),
    _described(BROKER, "", []),
)
case("describe-configs-of-types", *(_described(kind, "x") for kind in (0, 1, 3, 5, 99)))
case("describe-configs-metrics", _described(METRICS, "$c"), _described(METRICS, ""))
case("describe-configs-logger", _described(LOGGER, "7"), _described(LOGGER, "x"), _described(LOGGER, ""))


def _set(kind: int, name: str, *changes: tuple[str, int, str | None], version: int = 1, **more: Any) -> Step:
    configs = [
        {"name": key, "config_operation": operation, "value": value} for key, operation, value in changes
    ]
    one = {"resource_type": kind, "resource_name": name, "configs": configs}
    return ask("IncrementalAlterConfigs", version, resources=[one], **more)


SET, DELETE, APPEND, SUBTRACT = range(4)
case(
    "alter-set",
    topic(),
    _set(TOPIC, "$t", ("retention.ms", SET, "5000")),
    _set(TOPIC, "$t", ("retention.ms", DELETE, None)),
)
for number, change in enumerate(
    [
        ("no.such.setting", SET, "1"),
        ("no.such.setting", DELETE, None),
        ("retention.ms", SET, "x"),
        ("retention.ms", SET, None),
        ("retention.ms", SET, ""),
        ("retention.ms", APPEND, "1"),
        ("retention.ms", 9, "1"),
        ("retention.ms", -1, "1"),
        ("cleanup.policy", APPEND, "compact"),
        ("cleanup.policy", SUBTRACT, "delete"),
        ("cleanup.policy", APPEND, "shrink"),
        ("cleanup.policy", APPEND, ""),
        ("cleanup.policy", APPEND, None),
        ("", SET, "1"),
        ("retention.ms", DELETE, "5"),
        ("min.insync.replicas", SET, "2"),
        ("cleanup.policy", SUBTRACT, "nonsense"),
    ]
):
    case(f"alter-change-{number:02}", topic(), _set(TOPIC, "$t", change))
case("alter-key-twice", topic(), _set(TOPIC, "$t", ("retention.ms", SET, "1"), ("retention.ms", SET, "2")))
case("alter-no-changes", topic(), _set(TOPIC, "$t"))
case(
    "alter-one-of-two-bad",
    topic(),
    _set(TOPIC, "$t", ("retention.ms", SET, "5000"), ("no.such.setting", SET, "2")),
    _described(TOPIC, "$t", ["retention.ms"]),
)
case(
    "alter-validate-only",
    topic(),
    _set(TOPIC, "$t", ("retention.ms", SET, "5000"), validate_only=True),
    _described(TOPIC, "$t", ["retention.ms"]),
)
case(
    "alter-unknown-topic",
    _set(TOPIC, "$t", ("retention.ms", SET, "1")),
    _set(TOPIC, "", ("retention.ms", SET, "1")),
)
case(
    "alter-resource-twice",
    topic(),
    ask(
        "IncrementalAlterConfigs",
        1,
        resources=[
            {
                "resource_type": TOPIC,
                "resource_name": "$t",
                "configs": [{"name": "retention.ms", "config_operation": SET, "value": value}],
            }
            for value in ("5000", "6000")
        ],
    ),
)
case("alter-types", *(_set(kind, "x", ("a", SET, "1")) for kind in (0, 1, 3, 99)))
case(
    "alter-group",
    _set(GROUP, "$g", ("consumer.session.timeout.ms", SET, "50000")),
    _set(GROUP, "$g", ("consumer.session.timeout.ms", SET, "1")),
    _set(GROUP, "$g", ("no.such.setting", SET, "1")),
    _set(GROUP, "", ("consumer.session.timeout.ms", SET, "50000")),
    _set(GROUP, "$g", ("consumer.heartbeat.interval.ms", SET, "60000")),
    _set(GROUP, "$g", ("consumer.session.timeout.ms", DELETE, None)),
)
case(
    "alter-broker",
    _set(BROKER, "7", ("log.retention.ms", SET, "5000")),
    _set(BROKER, "x", ("log.retention.ms", SET, "5000")),
    _set(BROKER, "1", ("no.such.setting", SET, "1")),
    _set(BROKER, "1", ("node.id", SET, "5")),
    _set(BROKER, "1", ("log.retention.ms", SET, "x")),
)
case("alter-none", ask("IncrementalAlterConfigs", 1, resources=[]))


def _replaced(kind: int, name: str, *changes: tuple[str, str | None], **more: Any) -> Step:
    configs = [{"name": key, "value": value} for key, value in changes]
    return ask(
        "AlterConfigs",
        2,
        resources=[{"resource_type": kind, "resource_name": name, "configs": configs}],
        **more,
    )


case(
    "replace-configs",
    topic(cleanup_policy="compact"),
    _replaced(TOPIC, "$t", ("retention.ms", "5000")),
    quiet("Metadata", 12, topics=[]),
    _replaced(TOPIC, "$t"),
)
case(
    "replace-configs-bad",
    topic(),
    _replaced(TOPIC, "$t", ("no.such.setting", "1")),
    _replaced(TOPIC, "$t", ("retention.ms", "x")),
    _replaced(TOPIC, "$t", ("retention.ms", None)),
    _replaced(TOPIC, "$t", ("retention.ms", "1"), ("retention.ms", "2")),
)
case(
    "replace-configs-unknown",
    _replaced(TOPIC, "$t", ("retention.ms", "5")),
    _replaced(0, "x"),
    _replaced(99, "x"),
    _replaced(BROKER, "7"),
)
case(
    "replace-configs-validate-only",
    topic(),
    _replaced(TOPIC, "$t", ("retention.ms", "5000"), validate_only=True),
)

_OF_STREAMS = [
    f"streams.{name}"
    for name in (
        "acceptable.recovery.lag", "assignor.name", "rack.aware.assignment.tags", "task.offset.interval.ms"
    )
]  # fmt: skip
case(
    "configs-of-a-streams-group",
    _described(GROUP, "$g", _OF_STREAMS, include_synonyms=True),
    *(
        _set(GROUP, "$g", (f"streams.{name}", SET, value))
        for name, value in (
            ("rack.aware.assignment.tags", "zone,cloud"),
            ("rack.aware.assignment.tags", "zone,zone"),
            ("rack.aware.assignment.tags", ","),
            ("task.offset.interval.ms", "-1"),
            ("task.offset.interval.ms", "30000"),
            ("acceptable.recovery.lag", "-1"),
            ("acceptable.recovery.lag", "99999999999"),
            ("assignor.name", "sticky"),
        )
    ),
    _described(GROUP, "$g", _OF_STREAMS, include_synonyms=True),
)
case(
    "configs-of-a-share-group",
    _described(
        GROUP,
        "$g",
        ["share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable"],
        include_synonyms=True,
    ),
)

for v in (0, 1):
    case(
        f"list-resources-metrics-v{v}",
        ask("ListConfigResources", v, **only_if(v, resource_types=[METRICS])),
    )
case(
    "list-resources-brokers",
    ask("ListConfigResources", 1, resource_types=[BROKER]),
    ask("ListConfigResources", 1, resource_types=[LOGGER]),
)
case(
    "list-resources-unknown",
    ask("ListConfigResources", 1, resource_types=[99]),
    ask("ListConfigResources", 1, resource_types=[0]),
)
