"""Topics made, grown and deleted with odd names, numbers, replicas and settings."""

from __future__ import annotations

from typing import Any

from tests.broker.corners.script import Step, ask, case, quiet, topic
from tests.broker.corners.values import NO_TOPIC


def _made(*topics: dict[str, Any], version: int = 7, **more: Any) -> Step:
    full = [{"num_partitions": 1, "replication_factor": 1, **one} for one in topics]
    return ask("CreateTopics", version, topics=full, timeout_ms=5000, **more)


def _one(version: int = 7, name: str = "$t", **fields: Any) -> Step:
    return _made({"name": name, **fields}, version=version)


# The settings that CreateTopics lists are compared by `describe-configs-of-topic`.
for v in (2, 4, 5, 7):
    case(f"create-v{v}", _one(v, configs=[{"name": "retention.ms", "value": "5000"}]))
for number, name in enumerate(["", ".", "..", "a b", "a/b", "é", "x" * 249, "x" * 250, "a:b", "a\0b"]):
    case(f"create-name-{number}", _one(4, name))
case("create-exists", topic(), _one(), _made({"name": "$t"}, validate_only=True))
case("create-collides", _one(4, "co.lli.des"), _one(4, "co_lli_des"), _one(4, "co.lli_des"))
case("create-twice-in-one", _made({"name": "$t"}, {"name": "$t"}, {"name": "$t2"}, version=4))
case("create-none", _made())
for count in (0, -2, -1):
    case(f"create-partitions-{count}", _one(num_partitions=count))
case("create-partitions-many", _one(4, num_partitions=10_001))
for factor in (0, -2, -1, 2, 32767):
    case(f"create-factor-{factor}", _one(4, replication_factor=factor))
case("create-both-wrong", _one(4, replication_factor=0, num_partitions=0))
case(
    "create-validate-only",
    _made({"name": "$t"}, version=4, validate_only=True),
    ask("Metadata", 12, topics=[{"name": "$t"}]),
)
case("create-validate-only-v7", _made({"name": "$t"}, version=7, validate_only=True))
for number, (name, value) in enumerate(
    [
        ("no.such.setting", "1"),
        ("", "1"),
        ("retention.ms", ""),
        ("retention.ms", "x"),
        ("retention.ms", "-2"),
        ("retention.ms", None),
        ("cleanup.policy", "shrink"),
        ("cleanup.policy", "compact,delete"),
        ("cleanup.policy", ""),
        ("cleanup.policy", "compact,compact"),
        ("compression.type", "lzma"),
        ("compression.type", "ZSTD"),
        ("min.insync.replicas", "0"),
        ("min.insync.replicas", "5"),
        ("preallocate", "maybe"),
        ("preallocate", "TRUE"),
        ("max.message.bytes", "-1"),
        ("segment.bytes", "1"),
        ("retention.ms", " 5000 "),
        ("max.message.bytes", "99999999999"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("message.timestamp.type", "createtime"),
        ("remote.storage.enable", "true"),
        ("retention.bytes", "-5"),
        ("segment.ms", "0"),
        ("flush.messages", "0"),
        ("compression.zstd.level", "99"),
        ("leader.replication.throttled.replicas", "nonsense"),
        ("local.retention.ms", "-3"),
    ]
):
    case(f"create-setting-{number:02}", _one(4, configs=[{"name": name, "value": value}]))
case(
    "create-setting-twice",
    _one(4, configs=[{"name": "retention.ms", "value": "1"}, {"name": "retention.ms", "value": "2"}]),
)


def _placed(*replicas: list[int], numbers: list[int] | None = None, **fields: Any) -> Step:
    placed = [
        {"partition_index": index, "broker_ids": ids}
        for index, ids in zip(numbers or range(len(replicas)), replicas, strict=True)
    ]
    return _one(4, **{"num_partitions": -1, "replication_factor": -1, **fields}, assignments=placed)


case("create-placed", _placed([1], [1]))
case("create-placed-with-count", _placed([1], num_partitions=1))
case("create-placed-with-factor", _placed([1], replication_factor=1))
case("create-placed-unknown-node", _placed([9]))
case("create-placed-nowhere", _placed([]))
case("create-placed-twice-on-one", _placed([1, 1]))
case("create-placed-uneven", _placed([1], [1, 9]))
case("create-placed-gap", _placed([1], [1], numbers=[0, 2]))
case("create-placed-duplicate", _placed([1], [1], numbers=[0, 0]))
case("create-placed-negative", _placed([1], numbers=[-1]))

# --- grown ---


def _grown(count: int, name: str = "$t", assignments: Any = None, **more: Any) -> Step:
    return ask(
        "CreatePartitions",
        3,
        topics=[{"name": name, "count": count, "assignments": assignments}],
        timeout_ms=5000,
        **more,
    )


case("grow", topic(), _grown(3), _grown(3), _grown(2), _grown(0), _grown(-1))
case("grow-unknown", _grown(3), _grown(3, ""), _grown(3, "a/b"))
case("grow-validate-only", topic(), _grown(3, validate_only=True), _grown(2))
case("grow-too-many", topic(), _grown(10_002))
case(
    "grow-placed",
    topic(),
    _grown(3, assignments=[{"broker_ids": [1]}]),
    _grown(2, assignments=[{"broker_ids": [9]}]),
    _grown(2, assignments=[{"broker_ids": []}]),
    _grown(2, assignments=[{"broker_ids": [1, 1]}]),
    _grown(2, assignments=[]),
    _grown(2, assignments=[{"broker_ids": [1]}]),
)
case(
    "grow-twice-in-one",
    topic(),
    ask(
        "CreatePartitions",
        3,
        timeout_ms=5000,
        topics=[
            {"name": "$t", "count": 2, "assignments": None},
            {"name": "$t", "count": 3, "assignments": None},
        ],
    ),
)
case("grow-none", ask("CreatePartitions", 3, topics=[], timeout_ms=5000))

# --- deleted ---


def _deleted(*names: str, version: int = 5) -> Step:
    return ask("DeleteTopics", version, topic_names=list(names), timeout_ms=5000)


case("delete-unknown", _deleted("$t"), _deleted("$t", version=1), _deleted(""), _deleted("a/b"), _deleted())
case(
    "delete-unknown-v6",
    ask("DeleteTopics", 6, topics=[{"name": "$t"}, {"name": None, "topic_id": NO_TOPIC}], timeout_ms=5000),
)
case("delete-neither", ask("DeleteTopics", 6, topics=[{"name": None}], timeout_ms=5000))
case(
    "delete-both",
    topic(),
    ask("DeleteTopics", 6, topics=[{"name": "$t", "topic_id": "$t#id"}], timeout_ms=5000),
)
case(
    "delete-by-id",
    topic(),
    ask("DeleteTopics", 6, topics=[{"name": None, "topic_id": "$t#id"}], timeout_ms=5000),
    ask("DeleteTopics", 6, topics=[{"name": None, "topic_id": "$t#id"}], timeout_ms=5000),
)
case("delete-twice-in-one", topic(), _deleted("$t", "$t"))
case(
    "delete-by-name-and-by-id",
    topic(),
    ask("DeleteTopics", 6, topics=[{"name": "$t"}, {"name": None, "topic_id": "$t#id"}], timeout_ms=5000),
)
case("delete-twice", topic(), _deleted("$t"), _deleted("$t"))
case(
    "delete-and-make-anew",
    topic(),
    quiet("DeleteTopics", 5, topic_names=["$t"], timeout_ms=5000),
    _one(4),
    ask("CreateTopics", 4, topics=[], timeout_ms=0),
)
