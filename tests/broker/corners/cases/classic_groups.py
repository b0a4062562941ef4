"""Classic groups: heartbeats, syncs and leaves of nobody, odd joins, groups described and deleted."""

from __future__ import annotations

from typing import Any

from tests.broker.corners.script import Step, ask, case, only_if, quiet, receive, topic

_PROTOCOLS = [{"name": "range", "metadata": b""}]


def _join(version: int = 9, **changes: Any) -> dict[str, Any]:
    fields = {
        "group_id": "$g",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": _PROTOCOLS,
    } | changes
    return {name: value for name, value in fields.items() if version or name != "rebalance_timeout_ms"}


def _member(**changes: Any) -> list[Step]:
    """A group of one member, m, in generation 1."""
    return [
        quiet("JoinGroup", 9, **_join(**changes), keep={"m": "member_id"}),
        quiet("JoinGroup", 9, **_join(**changes | {"member_id": "$m"})),
        quiet(
            "SyncGroup",
            5,
            group_id="$g",
            generation_id=1,
            member_id="$m",
            protocol_type="consumer",
            protocol_name="range",
            assignments=[{"member_id": "$m", "assignment": b"own"}],
            **{name: value for name, value in changes.items() if name == "group_instance_id"},
        ),
    ]


# --- heartbeats ---

for v in range(5):
    case(f"heartbeat-before-join-v{v}", ask("Heartbeat", v, group_id="$g", generation_id=1, member_id="m"))
case("heartbeat-without-group", ask("Heartbeat", 4, group_id="", generation_id=1, member_id="m"))
case("heartbeat-without-member", ask("Heartbeat", 4, group_id="$g", generation_id=-1, member_id=""))
case(
    "heartbeat-of-wrong-generation",
    _member(),
    ask("Heartbeat", 4, group_id="$g", generation_id=2, member_id="$m"),
    ask("Heartbeat", 4, group_id="$g", generation_id=-1, member_id="$m"),
    ask("Heartbeat", 4, group_id="$g", generation_id=1, member_id="$m"),
    ask("Heartbeat", 4, group_id="$g", generation_id=1, member_id="other"),
)
case(
    "heartbeat-of-unknown-instance",
    _member(),
    ask("Heartbeat", 4, group_id="$g", generation_id=1, member_id="$m", group_instance_id="i"),
)
case(
    "heartbeat-between-join-and-sync",
    quiet("JoinGroup", 9, **_join(), keep={"m": "member_id"}),
    quiet("JoinGroup", 9, **_join(member_id="$m")),
    ask("Heartbeat", 4, group_id="$g", generation_id=1, member_id="$m"),
)

# --- joins ---

case("join-oldest", ask("JoinGroup", 0, **_join(0)))
case("join-v1", ask("JoinGroup", 1, **_join()))
case("join-v3", ask("JoinGroup", 3, **_join()))
case("join-v4-needs-member-id", ask("JoinGroup", 4, **_join()))
case("join-v5-static", ask("JoinGroup", 5, **_join(group_instance_id="i")))
case("join-v9-needs-member-id", ask("JoinGroup", 9, **_join()))
case("join-of-unknown-member", ask("JoinGroup", 9, **_join(member_id="nobody")))
case("join-without-group", ask("JoinGroup", 9, **_join(group_id="")))
case("join-without-protocols", ask("JoinGroup", 9, **_join(protocols=[])))
case("join-without-protocol-type", ask("JoinGroup", 9, **_join(protocol_type="")))
case("join-v3-without-protocols", ask("JoinGroup", 3, **_join(protocols=[])))
case("join-session-too-short", ask("JoinGroup", 9, **_join(session_timeout_ms=1)))
case("join-session-too-long", ask("JoinGroup", 9, **_join(session_timeout_ms=1 << 30)))
case("join-session-negative", ask("JoinGroup", 9, **_join(session_timeout_ms=-1)))
case("join-rebalance-negative", ask("JoinGroup", 3, **_join(rebalance_timeout_ms=-1)))
case("join-protocol-twice", ask("JoinGroup", 3, **_join(protocols=_PROTOCOLS * 2)))
case("join-instance-empty", ask("JoinGroup", 9, **_join(group_instance_id="")))
case("join-instance-of-bad-name", ask("JoinGroup", 9, **_join(group_instance_id="a b/c")))
case("join-instance-too-long", ask("JoinGroup", 9, **_join(group_instance_id="i" * 250)))
case(
    "join-other-protocol",
    _member(),
    ask("JoinGroup", 3, link="b", **_join(protocols=[{"name": "other", "metadata": b""}])),
)
case("join-other-protocol-type", _member(), ask("JoinGroup", 3, link="b", **_join(protocol_type="connect")))
case("join-again-as-leader", _member(), ask("JoinGroup", 9, **_join(member_id="$m")))
case(
    "join-static-with-wrong-member-id",
    quiet("JoinGroup", 9, **_join(group_instance_id="i"), keep={"m": "member_id"}),
    ask("JoinGroup", 9, **_join(group_instance_id="i", member_id="other")),
)
case(
    "join-two-members",
    _member(),
    quiet("JoinGroup", 9, link="b", **_join(), keep={"n": "member_id"}),
    ask("JoinGroup", 9, link="b", **_join(member_id="$n"), waits=True),
    ask("Heartbeat", 4, group_id="$g", generation_id=1, member_id="$m", again=(0,)),
    ask("JoinGroup", 9, **_join(member_id="$m")),
    receive("b"),
    ask(
        "SyncGroup",
        5,
        link="b",
        group_id="$g",
        generation_id=2,
        member_id="$n",
        protocol_type="consumer",
        protocol_name="range",
        waits=True,
    ),
    ask(
        "SyncGroup",
        5,
        group_id="$g",
        generation_id=2,
        member_id="$m",
        protocol_type="consumer",
        protocol_name="range",
        assignments=[{"member_id": "$n", "assignment": b"all"}],
    ),
    receive("b"),
)

# --- syncs ---

for v in (0, 3, 5):
    case(
        f"sync-before-join-v{v}",
        ask(
            "SyncGroup",
            v,
            group_id="$g",
            generation_id=1,
            member_id="m",
            **only_if(v == 5, protocol_type="consumer", protocol_name="range"),
        ),
    )
case("sync-without-group", ask("SyncGroup", 4, group_id="", generation_id=1, member_id="m"))
case(
    "sync-without-protocol-v5", _member(), ask("SyncGroup", 5, group_id="$g", generation_id=1, member_id="$m")
)
case(
    "sync-of-wrong-generation",
    _member(),
    ask("SyncGroup", 4, group_id="$g", generation_id=0, member_id="$m"),
    ask("SyncGroup", 4, group_id="$g", generation_id=1, member_id="other"),
)
case(
    "sync-of-wrong-protocol",
    _member(),
    ask(
        "SyncGroup",
        5,
        group_id="$g",
        generation_id=1,
        member_id="$m",
        protocol_type="connect",
        protocol_name="range",
    ),
    ask(
        "SyncGroup",
        5,
        group_id="$g",
        generation_id=1,
        member_id="$m",
        protocol_type="consumer",
        protocol_name="sticky",
    ),
)
case(
    "sync-again",
    _member(),
    ask("SyncGroup", 4, group_id="$g", generation_id=1, member_id="$m"),
    ask(
        "SyncGroup",
        4,
        group_id="$g",
        generation_id=1,
        member_id="$m",
        assignments=[{"member_id": "nobody", "assignment": b"x"}],
    ),
)

# --- leaves ---

case("leave-before-join-v0", ask("LeaveGroup", 0, group_id="$g", member_id="m"))
case("leave-before-join-v2", ask("LeaveGroup", 2, group_id="$g", member_id="m"))
case("leave-before-join-v5", ask("LeaveGroup", 5, group_id="$g", members=[{"member_id": "m"}]))
case("leave-of-nobody", _member(), ask("LeaveGroup", 5, group_id="$g", members=[]))
case("leave-without-group", ask("LeaveGroup", 5, group_id="", members=[{"member_id": "m"}]))
case(
    "leave-several",
    _member(),
    ask(
        "LeaveGroup",
        5,
        group_id="$g",
        members=[
            {"member_id": "other"},
            {"member_id": "", "group_instance_id": "i"},
            {"member_id": "$m"},
            {"member_id": "$m"},
        ],
    ),
    ask("LeaveGroup", 2, group_id="$g", member_id="$m"),
)
case(
    "leave-static-by-instance",
    quiet("JoinGroup", 9, **_join(group_instance_id="i"), keep={"m": "member_id"}),
    ask("LeaveGroup", 5, group_id="$g", members=[{"member_id": "wrong", "group_instance_id": "i"}]),
    ask("LeaveGroup", 5, group_id="$g", members=[{"member_id": "", "group_instance_id": "i"}]),
)

# --- described, listed, deleted ---

for v in (0, 5, 6):
    case(f"describe-groups-unknown-v{v}", ask("DescribeGroups", v, groups=["$g", ""]))
case("describe-groups-none", ask("DescribeGroups", 6, groups=[]))
case("describe-group-twice", _member(), ask("DescribeGroups", 6, groups=["$g", "$g"]))
case(
    "describe-group-operations",
    _member(),
    ask("DescribeGroups", 6, groups=["$g"], include_authorized_operations=True),
)
case("list-groups-of-unknown-state", ask("ListGroups", 5, states_filter=["Nonsense"]))
case("list-groups-of-unknown-type", ask("ListGroups", 5, types_filter=["nonsense"]))
case("list-groups-dead", ask("ListGroups", 4, states_filter=["Dead"]))
case("delete-groups-unknown", ask("DeleteGroups", 2, groups_names=["$g", ""]))
case("delete-groups-unknown-v3", ask("DeleteGroups", 3, groups_names=["$g", "", "$g"]))
case("delete-group-in-use-v3", _member(), ask("DeleteGroups", 3, groups_names=["$g", "$g2"]))
case("delete-groups-none", ask("DeleteGroups", 2, groups_names=[]))
case("delete-group-in-use", _member(), ask("DeleteGroups", 2, groups_names=["$g"]))
case(
    "delete-group-twice-in-one",
    _member(),
    quiet("LeaveGroup", 2, group_id="$g", member_id="$m"),
    ask("DeleteGroups", 2, groups_names=["$g", "$g"]),
    ask("DeleteGroups", 0, groups_names=["$g"]),
)
case(
    "offset-delete-of-unknown-group",
    topic(),
    ask("OffsetDelete", 0, group_id="$g", topics=[{"name": "$t", "partitions": [{"partition_index": 0}]}]),
    ask("OffsetDelete", 0, group_id="", topics=[]),
)
case(
    "offset-delete-of-odd-partitions",
    topic(),
    quiet(
        "OffsetCommit",
        8,
        group_id="$g",
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[{"name": "$t", "partitions": [{"partition_index": 0, "committed_offset": 1}]}],
    ),
    ask(
        "OffsetDelete",
        0,
        group_id="$g",
        topics=[
            {"name": "$t", "partitions": [{"partition_index": 0}, {"partition_index": 7}]},
            {"name": "$t2", "partitions": [{"partition_index": 0}]},
        ],
    ),
    ask("OffsetFetch", 7, group_id="$g", topics=[{"name": "$t", "partition_indexes": [0]}]),
)
