"""Groups of KIP-848: odd heartbeats, wrong epochs, descriptions of what is not there."""

from __future__ import annotations

from typing import Any

from tests.broker.corners.script import ask, case, quiet, topic


def _first(**changes: Any) -> dict[str, Any]:
    return {
        "group_id": "$g",
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout_ms": 10_000,
        "subscribed_topic_names": ["$t"],
        "topic_partitions": [],
    } | changes


_KNOWN = [
    *topic(),
    quiet(
        "ConsumerGroupHeartbeat",
        1,
        until="assignment.topic_partitions",
        **_first(group_id="$g2", member_id="first"),
    ),
]
"""A topic that the coordinator of consumer groups knows too."""

for v in (0, 1):
    case(f"heartbeat-848-first-v{v}", _KNOWN, ask("ConsumerGroupHeartbeat", v, **_first()))
case("heartbeat-848-server-made-id", ask("ConsumerGroupHeartbeat", 0, **_first(member_id="")))
case("heartbeat-848-without-member", ask("ConsumerGroupHeartbeat", 1, **_first(member_id="")))
case("heartbeat-848-without-group", ask("ConsumerGroupHeartbeat", 1, **_first(group_id="")))
case("heartbeat-848-blank-group", ask("ConsumerGroupHeartbeat", 1, **_first(group_id="  ")))
case("heartbeat-848-without-topics", ask("ConsumerGroupHeartbeat", 1, **_first(subscribed_topic_names=None)))
case("heartbeat-848-of-no-topic", ask("ConsumerGroupHeartbeat", 1, **_first(subscribed_topic_names=[])))
case("heartbeat-848-without-timeout", ask("ConsumerGroupHeartbeat", 1, **_first(rebalance_timeout_ms=-1)))
case("heartbeat-848-timeout-zero", ask("ConsumerGroupHeartbeat", 1, **_first(rebalance_timeout_ms=0)))
case("heartbeat-848-without-partitions", ask("ConsumerGroupHeartbeat", 1, **_first(topic_partitions=None)))
case(
    "heartbeat-848-owns-at-first",
    _KNOWN,
    ask("ConsumerGroupHeartbeat", 1, **_first(topic_partitions=[{"topic_id": "$t#id", "partitions": [0]}])),
)
case("heartbeat-848-unknown-assignor", ask("ConsumerGroupHeartbeat", 1, **_first(server_assignor="best")))
case("heartbeat-848-empty-instance", ask("ConsumerGroupHeartbeat", 1, **_first(instance_id="")))
case("heartbeat-848-empty-rack", ask("ConsumerGroupHeartbeat", 1, **_first(rack_id="")))
case(
    "heartbeat-848-bad-pattern",
    ask("ConsumerGroupHeartbeat", 1, **_first(subscribed_topic_names=None, subscribed_topic_regex="a(")),
)
case(
    "heartbeat-848-empty-pattern",
    ask("ConsumerGroupHeartbeat", 1, **_first(subscribed_topic_names=None, subscribed_topic_regex="")),
)
for epoch in (-3, -2, -1, 5):
    case(
        f"heartbeat-848-of-nobody-epoch{epoch}",
        ask("ConsumerGroupHeartbeat", 1, **_first(member_epoch=epoch)),
    )
case(
    "heartbeat-848-static-leave-without-instance", ask("ConsumerGroupHeartbeat", 1, **_first(member_epoch=-2))
)
case(
    "heartbeat-848-of-wrong-epoch",
    _KNOWN,
    ask("ConsumerGroupHeartbeat", 1, **_first()),
    ask("ConsumerGroupHeartbeat", 1, group_id="$g", member_id="m", member_epoch=7),
    ask("ConsumerGroupHeartbeat", 1, group_id="$g", member_id="n", member_epoch=1),
    ask("ConsumerGroupHeartbeat", 1, group_id="$g", member_id="m", member_epoch=-1),
    ask("ConsumerGroupHeartbeat", 1, group_id="$g", member_id="m", member_epoch=-1),
)
case(
    "heartbeat-848-instance-in-use",
    _KNOWN,
    ask("ConsumerGroupHeartbeat", 1, **_first(instance_id="i")),
    ask("ConsumerGroupHeartbeat", 1, **_first(instance_id="i", member_id="n")),
    ask("ConsumerGroupHeartbeat", 1, group_id="$g", member_id="n", instance_id="i", member_epoch=-2),
    ask("ConsumerGroupHeartbeat", 1, group_id="$g", member_id="m", instance_id="i", member_epoch=-2),
    ask("ConsumerGroupHeartbeat", 1, **_first(instance_id="i", member_id="n")),
)
case(
    "heartbeat-classic-in-848-group",
    _KNOWN,
    quiet("ConsumerGroupHeartbeat", 1, **_first()),
    ask("Heartbeat", 4, group_id="$g", generation_id=1, member_id="m"),
    ask("SyncGroup", 4, group_id="$g", generation_id=1, member_id="m"),
    ask(
        "JoinGroup",
        9,
        group_id="$g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b""}],
    ),
    ask("LeaveGroup", 5, group_id="$g", members=[{"member_id": "n"}]),
    ask("DescribeGroups", 6, groups=["$g"]),
    ask("DescribeGroups", 5, groups=["$g"]),
)
case("describe-848-unknown", ask("ConsumerGroupDescribe", 1, group_ids=["$g", ""]))
case("describe-848-none", ask("ConsumerGroupDescribe", 0, group_ids=[]))
case(
    "describe-848-classic-group",
    quiet("OffsetCommit", 8, group_id="$g", generation_id_or_member_epoch=-1, member_id="", topics=[]),
    quiet(
        "JoinGroup",
        3,
        group_id="$g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b""}],
    ),
    ask("ConsumerGroupDescribe", 1, group_ids=["$g"]),
    ask("ConsumerGroupHeartbeat", 1, **_first()),
)
case(
    "describe-848-twice",
    _KNOWN,
    quiet("ConsumerGroupHeartbeat", 1, **_first()),
    ask("ConsumerGroupDescribe", 1, group_ids=["$g", "$g"], include_authorized_operations=True),
)
