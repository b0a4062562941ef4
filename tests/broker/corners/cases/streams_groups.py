"""Groups of KIP-1071: odd heartbeats and topologies, wrong epochs, descriptions of what is not there."""

from __future__ import annotations

from typing import Any

from tests.broker.corners.script import Step, ask, case, quiet, topic

_TOPOLOGY = {"epoch": 1, "subtopologies": [{"subtopology_id": "0", "source_topics": ["$t"]}]}


def _first(**changes: Any) -> dict[str, Any]:
    return {
        "group_id": "$g",
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout_ms": 10_000,
        "process_id": "p",
        "topology": _TOPOLOGY,
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
    } | changes


def _reading(**fields: Any) -> dict[str, Any]:
    """A topology of one part, with these fields beside its name."""
    return {"epoch": 1, "subtopologies": [{"subtopology_id": "0", **fields}]}


_TASKS = [{"subtopology_id": "0", "partitions": [0]}]
_REFUSED: dict[str, dict[str, Any]] = {
    "without-member": {"member_id": ""},
    "without-group": {"group_id": ""},
    "blank-group": {"group_id": "  "},
    "without-topology": {"topology": None},
    "without-timeout": {"rebalance_timeout_ms": -1},
    "timeout-zero": {"rebalance_timeout_ms": 0},
    "without-process": {"process_id": None},
    "empty-process": {"process_id": ""},
    "without-active-tasks": {"active_tasks": None},
    "without-standby-tasks": {"standby_tasks": None},
    "without-warmup-tasks": {"warmup_tasks": None},
    "owns-active-at-first": {"active_tasks": _TASKS},
    "owns-standby-at-first": {"standby_tasks": _TASKS},
    "owns-warmup-at-first": {"warmup_tasks": _TASKS},
    "static": {"instance_id": "i"},
    "empty-instance": {"instance_id": ""},
    "empty-rack": {"rack_id": ""},
    "internal-topic": {"topology": _reading(source_topics=["__consumer_offsets"])},
    "bad-topic-name": {"topology": _reading(source_topics=["a b"])},
    "pattern": {"topology": _reading(source_topic_regex=["a.*"])},
    "changelog-with-partitions": {
        "topology": _reading(source_topics=["$t"], state_changelog_topics=[{"name": "$t2", "partitions": 3}])
    },
    "epoch-below": {"member_epoch": -3},
    "restarts-when-dynamic": {"member_epoch": -2},
    "leaves-no-group": {"member_epoch": -1},
    "epoch-of-no-group": {"member_epoch": 5, "topology": None},
    "topology-later": {"member_epoch": 5},
}
for name, changes in _REFUSED.items():
    case(f"heartbeat-1071-{name}", ask("StreamsGroupHeartbeat", 0, **_first(**changes)))

_JOINED = [quiet("StreamsGroupHeartbeat", 0, **_first())]
"""A group of one member, whose topic is missing."""

_BEAT: dict[str, Any] = {"group_id": "$g", "member_id": "m"}

case("heartbeat-1071-first", topic(), ask("StreamsGroupHeartbeat", 0, **_first()))
case("heartbeat-1071-first-without-its-topic", ask("StreamsGroupHeartbeat", 0, **_first()))
_LATER: dict[str, dict[str, Any]] = {
    "far-epoch": {"member_epoch": 99},
    "unknown-member": {"member_id": "n", "member_epoch": 1},
    "unknown-member-leaves": {"member_id": "n", "member_epoch": -1},
    "leaves": {"member_epoch": -1},
    "owns-what-is-not-there": {
        "member_epoch": 1,
        "active_tasks": [{"subtopology_id": "9", "partitions": [0]}],
    },
}
for name, fields in _LATER.items():
    case(f"heartbeat-1071-{name}", _JOINED, ask("StreamsGroupHeartbeat", 0, **_BEAT | fields))
case(
    "heartbeat-1071-other-topology",
    _JOINED,
    ask("StreamsGroupHeartbeat", 0, **_first(member_id="n", topology=_reading(source_topics=["$t2"]))),
)
case(
    "heartbeat-1071-of-a-consumer-group",
    quiet(
        "ConsumerGroupHeartbeat",
        1,
        **_BEAT,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=["$t"],
        topic_partitions=[],
    ),
    ask("StreamsGroupHeartbeat", 0, **_first()),
    ask("StreamsGroupDescribe", 0, group_ids=["$g"]),
)

case("describe-1071-nothing", ask("StreamsGroupDescribe", 0, group_ids=[]))
case("describe-1071-missing", ask("StreamsGroupDescribe", 0, group_ids=["$g"]))
case("describe-1071-empty-name", ask("StreamsGroupDescribe", 0, group_ids=[""]))
case("describe-1071-twice", ask("StreamsGroupDescribe", 0, group_ids=["$g", "$g2", "$g"]))
case(
    "describe-1071-with-operations",
    ask("StreamsGroupDescribe", 0, group_ids=["$g"], include_authorized_operations=True),
)
case(
    "describe-1071-without-its-topic",
    _JOINED,
    ask("StreamsGroupDescribe", 0, group_ids=["$g", "$g2"], include_authorized_operations=True),
)
case(
    "describe-1071-as-other-kinds",
    _JOINED,
    ask("ConsumerGroupDescribe", 0, group_ids=["$g"]),
    ask("DescribeGroups", 5, groups=["$g"]),
)


def _described(group_id: str, member_id: str) -> Step:
    return ask(
        "StreamsGroupTopologyDescriptionUpdate",
        0,
        group_id=group_id,
        member_id=member_id,
        topology_epoch=0,
        topology_description={"subtopologies": [], "global_stores": []},
    )


case(
    "topology-described",
    _JOINED,
    *(_described(*ids) for ids in (("$g", "m"), ("$g", ""), ("$g2", "x"), ("", "x"))),
)

# --- version 1 ---

_NEWER: dict[str, dict[str, Any]] = {
    "first": {},
    "static": {"instance_id": "i"},
    "without-topology": {"topology": None},
    "with-offsets": {"task_offsets": [{"subtopology_id": "0", "partition": 0, "offset": 5}]},
}
for name, changes in _NEWER.items():
    case(f"heartbeat-1071-{name}-v1", ask("StreamsGroupHeartbeat", 1, **_first(**changes)))
case(
    "describe-1071-v1",
    quiet("StreamsGroupHeartbeat", 1, **_first()),
    ask("StreamsGroupDescribe", 1, group_ids=["$g", "$g2"]),
)
