"""Groups of KIP-932: membership, fetches and their sessions, acknowledgements, positions, states."""

from __future__ import annotations

from typing import Any

from tests.broker.corners.script import Step, ask, case, only_if, quiet, topic, write
from tests.broker.corners.values import NO_TOPIC, batch

# --- members ---


def _first(**changes: Any) -> dict[str, Any]:
    return {"group_id": "$g", "member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["$t"]} | changes


_FIRST: dict[str, dict[str, Any]] = {
    "without-member": {"member_id": ""},
    "blank-member": {"member_id": "  "},
    "without-group": {"group_id": ""},
    "blank-group": {"group_id": "  "},
    "without-topics": {"subscribed_topic_names": None},
    "no-topics": {"subscribed_topic_names": []},
    "same-topic-twice": {"subscribed_topic_names": ["$t", "$t"]},
    "bad-topic-name": {"subscribed_topic_names": ["a b"]},
    "empty-rack": {"rack_id": ""},
    "epoch-below": {"member_epoch": -2},
    "leaves-no-group": {"member_epoch": -1},
    "epoch-of-no-group": {"member_epoch": 5},
    "first-without-its-topic": {},
}
for name, changes in _FIRST.items():
    case(f"heartbeat-932-{name}", ask("ShareGroupHeartbeat", 1, **_first(**changes)))

_JOINED = [quiet("ShareGroupHeartbeat", 1, **_first())]
"""A group of one member, whose topic is missing."""

case("heartbeat-932-first", topic(partitions=2), ask("ShareGroupHeartbeat", 1, **_first()))
case("heartbeat-932-first-again", topic(), _JOINED, ask("ShareGroupHeartbeat", 1, **_first()))
_LATER: dict[str, dict[str, Any]] = {
    "far-epoch": {"member_epoch": 99},
    "unknown-member": {"member_id": "n", "member_epoch": 1},
    "unknown-member-leaves": {"member_id": "n", "member_epoch": -1},
    "leaves": {"member_epoch": -1},
    "stays": {"member_epoch": 1},
    "same-topics": {"member_epoch": 1, "subscribed_topic_names": ["$t"]},
}
for name, fields in _LATER.items():
    beat = {"group_id": "$g", "member_id": "m"} | fields
    case(f"heartbeat-932-{name}", _JOINED, ask("ShareGroupHeartbeat", 1, **beat))
case(
    "heartbeat-932-of-a-consumer-group",
    quiet(
        "ConsumerGroupHeartbeat",
        1,
        group_id="$g",
        member_id="m",
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=["$t"],
        topic_partitions=[],
    ),
    ask("ShareGroupHeartbeat", 1, **_first()),
    ask("ShareGroupDescribe", 1, group_ids=["$g"]),
    ask("DescribeShareGroupOffsets", 1, groups=[{"group_id": "$g", "topics": None}]),
    ask("AlterShareGroupOffsets", 0, group_id="$g", topics=[]),
    ask("DeleteShareGroupOffsets", 0, group_id="$g", topics=[]),
)

case("describe-932-nothing", ask("ShareGroupDescribe", 1, group_ids=[]))
case("describe-932-missing", ask("ShareGroupDescribe", 1, group_ids=["$g"]))
case("describe-932-empty-name", ask("ShareGroupDescribe", 1, group_ids=[""]))
case("describe-932-twice", ask("ShareGroupDescribe", 1, group_ids=["$g", "$g2", "$g"]))
case(
    "describe-932-without-its-topic",
    _JOINED,
    ask("ShareGroupDescribe", 1, group_ids=["$g", "$g2"], include_authorized_operations=True),
)
case(
    "describe-932-as-other-kinds",
    _JOINED,
    ask("ConsumerGroupDescribe", 0, group_ids=["$g"]),
    ask("DescribeGroups", 5, groups=["$g"]),
    ask("OffsetFetch", 9, groups=[{"group_id": "$g", "topics": None}]),
    ask("DeleteGroups", 2, groups_names=["$g"]),
)

# --- fetches ---

_NOT_INITIALIZED = (3, 14, 15, 16, 42)
"""Errors of a state that its coordinator does not have yet."""


def _state(topic_id: Any = "$t#id", index: int = 0, group_id: str = "$g", **fields: Any) -> dict[str, Any]:
    place = {"topic_id": topic_id, "partitions": [{"partition": index, **fields}]}
    return {"group_id": group_id, "topics": [place]}


_READ_FROM_THE_START: list[Step] = [
    *topic(),
    write("$t", 0, batch(b"a", b"b", b"c")),
    quiet(
        "IncrementalAlterConfigs",
        1,
        resources=[
            {
                "resource_type": 32,
                "resource_name": "$g",
                "configs": [{"name": "share.auto.offset.reset", "value": "earliest"}],
            }
        ],
    ),
    quiet("ShareGroupHeartbeat", 1, **_first()),
    quiet("ReadShareGroupState", 0, again=_NOT_INITIALIZED, **_state(leader_epoch=0)),
]
"""A topic with three records, and a group of one member that reads it."""

_MEMBER: dict[str, Any] = {"group_id": "$g", "member_id": "m"}


def _partition(*acknowledged: tuple[int, int, list[int]], topic_id: Any = "$t#id", index: int = 0) -> Any:
    batches = [
        {"first_offset": first, "last_offset": last, "acknowledge_types": types}
        for first, last, types in acknowledged
    ]
    return [
        {
            "topic_id": topic_id,
            "partitions": [{"partition_index": index, "acknowledgement_batches": batches}],
        }
    ]


def _fetch(epoch: int, *acknowledged: tuple[int, int, list[int]], version: int = 2, **changes: Any) -> Step:
    fields: dict[str, Any] = {
        **_MEMBER,
        "share_session_epoch": epoch,
        "max_wait_ms": 500,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "max_records": 500,
        "batch_size": 500,
        "topics": _partition(*acknowledged),
        **only_if(version > 1, share_acquire_mode=0),
    }
    return ask("ShareFetch", version, **fields | changes)


def _acknowledge(
    epoch: int, *acknowledged: tuple[int, int, list[int]], version: int = 2, **changes: Any
) -> Step:
    fields: dict[str, Any] = {
        **_MEMBER,
        "share_session_epoch": epoch,
        "topics": _partition(*acknowledged),
    }
    return ask("ShareAcknowledge", version, **fields | changes)


def _acquire() -> Step:
    """A session begins; what it gets is asked for until there is something."""
    fields: dict[str, Any] = {
        **_MEMBER,
        "share_session_epoch": 0,
        "max_wait_ms": 500,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "max_records": 500,
        "batch_size": 500,
        "topics": _partition(),
    }
    return quiet("ShareFetch", 2, until="responses.0.partitions.0.acquired_records", **fields)


for version in (1, 2):
    case(f"share-fetch-v{version}", _READ_FROM_THE_START, _fetch(0, version=version))
case("share-fetch-batches-of-one", _READ_FROM_THE_START, _fetch(0, batch_size=1))
case("share-fetch-one-record", _READ_FROM_THE_START, _fetch(0, max_records=1, share_acquire_mode=1))
case("share-fetch-one-record-in-batches", _READ_FROM_THE_START, _fetch(0, max_records=1))
_NOT_FETCHED: dict[str, dict[str, Any]] = {
    "without-group": {"group_id": None},
    "empty-group": {"group_id": ""},
    "without-member": {"member_id": None},
    "empty-member": {"member_id": ""},
    "long-member": {"member_id": "m" * 37},
    "unknown-topic": {"topics": _partition(topic_id=NO_TOPIC)},
    "unknown-partition": {"topics": _partition(index=7)},
    "acknowledges-at-first": {"topics": _partition((0, 0, [1]))},
    "nothing": {"topics": []},
    "no-session": {"share_session_epoch": 3},
    "ends-no-session": {"share_session_epoch": -1},
    "renews": {"is_renew_ack": True},
}
for name, changes in _NOT_FETCHED.items():
    case(f"share-fetch-{name}", topic(), _fetch(0, **changes))
case(
    "share-fetch-of-no-group",
    topic(),
    write("$t", 0, batch(b"a")),
    _fetch(0),
)
case("share-fetch-acquires-otherwise", topic(), _fetch(0, share_acquire_mode=9), _fetch(1))
case("share-fetch-far-epoch", _READ_FROM_THE_START, _acquire(), _fetch(7))
case("share-fetch-session-again", _READ_FROM_THE_START, _acquire(), _fetch(0), _fetch(1, (0, 2, [1])))
case("share-fetch-accepts", _READ_FROM_THE_START, _acquire(), _fetch(1, (0, 2, [1])), _fetch(2))
case("share-fetch-releases", _READ_FROM_THE_START, _acquire(), _fetch(1, (0, 2, [1, 2, 3])), _fetch(2))
case(
    "share-fetch-forgets",
    _READ_FROM_THE_START,
    _acquire(),
    _fetch(1, topics=[], forgotten_topics_data=[{"topic_id": "$t#id", "partitions": [0]}]),
    _fetch(2, topics=[]),
)
case("share-fetch-ends", _READ_FROM_THE_START, _acquire(), _fetch(-1, (0, 0, [1])), _fetch(1), _fetch(0))
case(
    "share-fetch-renews-a-lock",
    _READ_FROM_THE_START,
    _acquire(),
    _fetch(
        1,
        (0, 0, [4]),
        is_renew_ack=True,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=0,
        max_records=0,
        batch_size=0,
    ),
    _fetch(2, (0, 0, [4])),
)

# --- acknowledgements ---

_NOT_ACKNOWLEDGED: dict[str, dict[str, Any]] = {
    "without-group": {"group_id": None},
    "without-member": {"member_id": None},
    "empty-member": {"member_id": ""},
    "long-member": {"member_id": "m" * 37},
    "first-epoch": {"share_session_epoch": 0},
    "no-session": {},
    "ends-no-session": {"share_session_epoch": -1},
}
for name, changes in _NOT_ACKNOWLEDGED.items():
    case(f"share-acknowledge-{name}", topic(), _acknowledge(1, (0, 0, [1]), **changes))
_WRONG: dict[str, tuple[int, int, list[int]]] = {
    "backwards": (1, 0, [1]),
    "without-types": (0, 1, []),
    "too-many-types": (0, 1, [1, 1, 1]),
    "too-few-types": (0, 2, [1, 1]),
    "renewal": (0, 0, [4]),
    "unknown-type": (0, 0, [9]),
    "negative-type": (0, 0, [-1]),
    "what-is-not-acquired": (0, 9, [1]),
    "far-beyond": (50, 60, [1]),
    "all": (0, 2, [1]),
    "each": (0, 2, [1, 2, 3]),
    "gap": (0, 2, [1, 0, 1]),
}
for name, acknowledged in _WRONG.items():
    case(f"share-acknowledge-{name}", _READ_FROM_THE_START, _acquire(), _acknowledge(1, acknowledged))
case(
    "share-acknowledge-twice",
    _READ_FROM_THE_START,
    _acquire(),
    _acknowledge(1, (0, 1, [1])),
    _acknowledge(2, (0, 1, [1])),
    _acknowledge(3, (2, 2, [2]), (0, 0, [1])),
)
case("share-acknowledge-far-epoch", _READ_FROM_THE_START, _acquire(), _acknowledge(5, (0, 0, [1])))
case(
    "share-acknowledge-unknown-places",
    _READ_FROM_THE_START,
    _acquire(),
    _acknowledge(1, topics=_partition((0, 0, [1]), topic_id=NO_TOPIC)),
    _acknowledge(2, topics=_partition((0, 0, [1]), index=7)),
    _acknowledge(3, topics=[]),
)
case(
    "share-acknowledge-ends",
    _READ_FROM_THE_START,
    _acquire(),
    _acknowledge(-1, (0, 1, [1])),
    _acknowledge(2, (2, 2, [1])),
    _fetch(0),
)
case(
    "share-acknowledge-renews-a-lock",
    _READ_FROM_THE_START,
    _acquire(),
    _acknowledge(1, (0, 0, [4]), is_renew_ack=True),
    _acknowledge(2, (0, 2, [1]), version=1),
)

# --- positions ---


def _offsets(*names: str, partitions: tuple[int, ...] = (0,), group_id: str = "$g") -> dict[str, Any]:
    topics = [{"topic_name": name, "partitions": list(partitions)} for name in names]
    return {"groups": [{"group_id": group_id, "topics": topics}]}


case("share-offsets-nothing", ask("DescribeShareGroupOffsets", 1, groups=[]))
case("share-offsets-missing", ask("DescribeShareGroupOffsets", 1, **_offsets("$t")))
case(
    "share-offsets-all-of-missing",
    ask("DescribeShareGroupOffsets", 1, groups=[{"group_id": "$g", "topics": None}]),
)
case("share-offsets-empty-name", ask("DescribeShareGroupOffsets", 1, **_offsets("$t", group_id="")))
for version in (0, 1):
    case(
        f"share-offsets-v{version}",
        _READ_FROM_THE_START,
        _acquire(),
        _acknowledge(1, (0, 1, [1])),
        ask("DescribeShareGroupOffsets", version, **_offsets("$t")),
        ask("DescribeShareGroupOffsets", version, **_offsets("$t2")),
        ask("DescribeShareGroupOffsets", version, groups=[{"group_id": "$g", "topics": None}]),
    )
case(
    "share-offsets-unknown-partition",
    _READ_FROM_THE_START,
    _acquire(),
    ask("DescribeShareGroupOffsets", 1, patience=60.0, **_offsets("$t", partitions=(0, 7))),
)
_ALTERED = [{"topic_name": "$t", "partitions": [{"partition_index": 0, "start_offset": 1}]}]
case("alter-share-offsets-missing", topic(), ask("AlterShareGroupOffsets", 0, group_id="$g", topics=_ALTERED))
case("alter-share-offsets-empty-name", ask("AlterShareGroupOffsets", 0, group_id="", topics=[]))
case(
    "alter-share-offsets-of-members",
    _READ_FROM_THE_START,
    ask("AlterShareGroupOffsets", 0, group_id="$g", topics=_ALTERED),
)
_LEFT = [*_READ_FROM_THE_START, _acquire(), quiet("ShareGroupHeartbeat", 1, **_MEMBER, member_epoch=-1)]
"""The group has no member, and a position."""

case(
    "alter-share-offsets",
    _LEFT,
    ask("AlterShareGroupOffsets", 0, group_id="$g", topics=_ALTERED),
    ask("DescribeShareGroupOffsets", 1, **_offsets("$t")),
)
case(
    "alter-share-offsets-unknown-places",
    _LEFT,
    ask(
        "AlterShareGroupOffsets",
        0,
        group_id="$g",
        topics=[
            {"topic_name": "$t", "partitions": [{"partition_index": 7, "start_offset": 1}]},
            {"topic_name": "$t2", "partitions": [{"partition_index": 0, "start_offset": 1}]},
        ],
    ),
)
case(
    "alter-share-offsets-negative",
    _LEFT,
    ask(
        "AlterShareGroupOffsets",
        0,
        group_id="$g",
        topics=[{"topic_name": "$t", "partitions": [{"partition_index": 0, "start_offset": -5}]}],
    ),
    ask("DescribeShareGroupOffsets", 1, **_offsets("$t")),
)
_GONE = [{"topic_name": "$t"}, {"topic_name": "$t2"}]
case("delete-share-offsets-missing", ask("DeleteShareGroupOffsets", 0, group_id="$g", topics=_GONE))
case("delete-share-offsets-empty-name", ask("DeleteShareGroupOffsets", 0, group_id="", topics=_GONE))
case(
    "delete-share-offsets-of-members",
    _READ_FROM_THE_START,
    ask("DeleteShareGroupOffsets", 0, group_id="$g", topics=_GONE),
)
case(
    "delete-share-offsets",
    _LEFT,
    ask("DeleteShareGroupOffsets", 0, group_id="$g", topics=_GONE),
    ask("DescribeShareGroupOffsets", 1, **_offsets("$t")),
    ask("DeleteGroups", 2, groups_names=["$g"]),
)
case("delete-group-932", _LEFT, ask("DeleteGroups", 2, groups_names=["$g"]))

# --- states, which other brokers ask for ---


_READY = [
    *topic(),
    quiet("InitializeShareGroupState", 0, again=_NOT_INITIALIZED, **_state(state_epoch=1, start_offset=-1)),
]
"""A state with its coordinator ready."""

_STATES: list[tuple[str, int, dict[str, Any]]] = [
    ("InitializeShareGroupState", 0, {"state_epoch": 1, "start_offset": 0}),
    ("ReadShareGroupState", 0, {"leader_epoch": 0}),
    (
        "WriteShareGroupState",
        1,
        {"state_epoch": 1, "leader_epoch": 0, "start_offset": 1, "delivery_complete_count": 0},
    ),
    ("ReadShareGroupStateSummary", 1, {"leader_epoch": 0}),
    ("DeleteShareGroupState", 0, {}),
]
for api, version, fields in _STATES:
    name = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in api)[1:]
    case(f"{name}-without-group", topic(), ask(api, version, **_state(group_id="", **fields)))
    case(f"{name}-unknown-topic", ask(api, version, **_state(topic_id=NO_TOPIC, **fields)))
    case(f"{name}-unknown-partition", topic(), ask(api, version, **_state(index=7, **fields)))
    case(f"{name}-nothing", ask(api, version, group_id="$g", topics=[]))
    case(f"{name}-of-nothing", topic(), ask(api, version, again=(3,), **_state(**fields)))
    case(f"{name}-of-a-state", _READY, ask(api, version, **_state(**fields)))
case(
    "share-state-fenced",
    _READY,
    ask("ReadShareGroupState", 0, **_state(leader_epoch=5)),
    ask("ReadShareGroupState", 0, **_state(leader_epoch=3)),
    ask("WriteShareGroupState", 0, **_state(state_epoch=1, leader_epoch=3, start_offset=1)),
    ask("WriteShareGroupState", 0, **_state(state_epoch=0, leader_epoch=5, start_offset=1)),
    ask("InitializeShareGroupState", 0, **_state(state_epoch=0, start_offset=0)),
)
