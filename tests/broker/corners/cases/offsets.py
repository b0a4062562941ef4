"""Commits, fetches of offsets, ends of epochs, records deleted: of odd partitions, members and times."""

from __future__ import annotations

from typing import Any

from tests.broker.corners.script import ask, case, quiet, topic, write
from tests.broker.corners.values import NO_TOPIC, batch

_AT_3 = [{"name": "$t", "partitions": [{"partition_index": 0, "committed_offset": 3}]}]


def _commit(**changes: Any) -> dict[str, Any]:
    fields = {"group_id": "$g", "generation_id_or_member_epoch": -1, "member_id": "", "topics": _AT_3}
    return fields | changes


for v in (2, 9):
    case(f"commit-by-nobody-v{v}", topic(), ask("OffsetCommit", v, **_commit()))
case(
    "commit-by-nobody-v10",
    topic(),
    ask(
        "OffsetCommit",
        10,
        **_commit(
            topics=[{"topic_id": "$t#id", "partitions": [{"partition_index": 0, "committed_offset": 3}]}]
        ),
    ),
)
case(
    "commit-unknown-id-v10",
    ask(
        "OffsetCommit",
        10,
        **_commit(
            topics=[{"topic_id": NO_TOPIC, "partitions": [{"partition_index": 0, "committed_offset": 3}]}]
        ),
    ),
)
case("commit-of-unknown-member", topic(), ask("OffsetCommit", 9, **_commit(member_id="m")))
case(
    "commit-of-unknown-group",
    topic(),
    ask("OffsetCommit", 9, **_commit(generation_id_or_member_epoch=1, member_id="m")),
)
case(
    "commit-of-unknown-group-v8",
    topic(),
    ask("OffsetCommit", 8, **_commit(generation_id_or_member_epoch=1, member_id="m")),
)
case("commit-without-group", topic(), ask("OffsetCommit", 9, **_commit(group_id="")))
case("commit-of-nothing", ask("OffsetCommit", 9, **_commit(topics=[])))
case(
    "commit-to-odd-partitions",
    topic(),
    ask(
        "OffsetCommit",
        9,
        **_commit(
            topics=[
                {
                    "name": "$t",
                    "partitions": [{"partition_index": index, "committed_offset": 1} for index in (0, 7, -1)],
                },
                {"name": "$t2", "partitions": [{"partition_index": 0, "committed_offset": 1}]},
                {"name": "", "partitions": [{"partition_index": 0, "committed_offset": 1}]},
            ]
        ),
    ),
)
case(
    "commit-odd-offsets",
    topic("$t", 4),
    ask(
        "OffsetCommit",
        9,
        **_commit(
            topics=[
                {
                    "name": "$t",
                    "partitions": [
                        {"partition_index": 0, "committed_offset": -1},
                        {"partition_index": 1, "committed_offset": -5},
                        {"partition_index": 2, "committed_offset": (1 << 63) - 1},
                        {"partition_index": 3, "committed_offset": 0},
                    ],
                }
            ]
        ),
    ),
    ask("OffsetFetch", 7, group_id="$g", topics=[{"name": "$t", "partition_indexes": [0, 1, 2, 3]}]),
)
case(
    "commit-long-metadata",
    topic(),
    ask(
        "OffsetCommit",
        9,
        **_commit(
            topics=[
                {
                    "name": "$t",
                    "partitions": [
                        {"partition_index": 0, "committed_offset": 1, "committed_metadata": "m" * 5000}
                    ],
                }
            ]
        ),
    ),
)
case(
    "commit-null-metadata",
    topic(),
    ask(
        "OffsetCommit",
        9,
        **_commit(
            topics=[
                {
                    "name": "$t",
                    "partitions": [{"partition_index": 0, "committed_offset": 1, "committed_metadata": None}],
                }
            ]
        ),
    ),
    ask("OffsetFetch", 7, group_id="$g", topics=[{"name": "$t", "partition_indexes": [0]}]),
)
case(
    "commit-partition-twice",
    topic(),
    ask(
        "OffsetCommit",
        9,
        **_commit(
            topics=[
                {
                    "name": "$t",
                    "partitions": [
                        {"partition_index": 0, "committed_offset": 1},
                        {"partition_index": 0, "committed_offset": 2},
                    ],
                }
            ]
        ),
    ),
    ask("OffsetFetch", 7, group_id="$g", topics=[{"name": "$t", "partition_indexes": [0]}]),
)
for v in (1, 2, 5, 7):
    case(
        f"offset-fetch-of-unknown-group-v{v}",
        topic(),
        ask("OffsetFetch", v, group_id="$g", topics=[{"name": "$t", "partition_indexes": [0, 7]}]),
    )
case("offset-fetch-everything-of-unknown-group", ask("OffsetFetch", 7, group_id="$g", topics=None))
case(
    "offset-fetch-everything-v2",
    topic(),
    quiet("OffsetCommit", 9, **_commit()),
    ask("OffsetFetch", 2, group_id="$g", topics=None),
)
case("offset-fetch-without-group", ask("OffsetFetch", 7, group_id="", topics=None))
case("offset-fetch-no-groups", ask("OffsetFetch", 9, groups=[]))
case(
    "offset-fetch-two-groups",
    topic(),
    quiet("OffsetCommit", 9, **_commit()),
    ask(
        "OffsetFetch",
        8,
        groups=[
            {"group_id": "$g", "topics": None},
            {"group_id": "$g2", "topics": [{"name": "$t", "partition_indexes": [0]}]},
            {"group_id": "", "topics": None},
        ],
    ),
)
case(
    "offset-fetch-by-unknown-member-v9",
    topic(),
    ask("OffsetFetch", 9, groups=[{"group_id": "$g", "member_id": "m", "member_epoch": 1, "topics": None}]),
)
case(
    "offset-fetch-unknown-topic-v9",
    ask("OffsetFetch", 9, groups=[{"group_id": "$g", "topics": [{"name": "$t", "partition_indexes": [0]}]}]),
)
case(
    "offset-fetch-unknown-id-v10",
    ask(
        "OffsetFetch",
        10,
        groups=[{"group_id": "$g", "topics": [{"topic_id": NO_TOPIC, "partition_indexes": [0]}]}],
    ),
)


def _listed(*times: int, index: int = 0, **more: Any) -> list[dict[str, Any]]:
    return [
        {"name": "$t", "partitions": [{"partition_index": index, "timestamp": time, **more}]}
        for time in times[:1]
    ]


# --- ListOffsets ---

_WRITTEN = [*topic(), write("$t", 0, batch(b"a", b"b", b"c", timestamp=1000))]
for v, time in (
    (1, -1),
    (1, -2),
    (7, -3),
    (6, -3),
    (8, -4),
    (7, -4),
    (9, -5),
    (8, -5),
    (11, -6),
    (10, -6),
    (11, -7),
    (11, -1),
):
    case(
        f"list-offsets-{time}-v{v}",
        _WRITTEN,
        ask("ListOffsets", v, replica_id=-1, topics=_listed(time), timeout_ms=1000),
    )
for time in (0, 999, 1000, 1001, 1002, 1003, 1 << 60):
    case(f"list-offsets-time-{time}", _WRITTEN, ask("ListOffsets", 7, replica_id=-1, topics=_listed(time)))
case(
    "list-offsets-empty-log",
    topic(),
    *(ask("ListOffsets", 9, replica_id=-1, topics=_listed(time)) for time in (-1, -2, -3, -4, -5, 0, 1000)),
)
case(
    "list-offsets-unknown",
    topic(),
    ask("ListOffsets", 7, replica_id=-1, topics=_listed(-1, index=7)),
    ask("ListOffsets", 7, replica_id=-1, topics=_listed(-1, index=-1)),
    ask(
        "ListOffsets",
        7,
        replica_id=-1,
        topics=[{"name": "$t2", "partitions": [{"partition_index": 0, "timestamp": -1}]}],
    ),
    ask(
        "ListOffsets",
        7,
        replica_id=-1,
        topics=[{"name": "", "partitions": [{"partition_index": 0, "timestamp": -1}]}],
    ),
    ask("ListOffsets", 7, replica_id=-1, topics=[]),
)
case(
    "list-offsets-twice",
    topic(),
    ask(
        "ListOffsets",
        7,
        replica_id=-1,
        topics=[
            {
                "name": "$t",
                "partitions": [
                    {"partition_index": 0, "timestamp": -1},
                    {"partition_index": 0, "timestamp": -2},
                ],
            }
        ],
    ),
)
case(
    "list-offsets-epochs",
    topic(),
    *(
        ask("ListOffsets", 7, replica_id=-1, topics=_listed(-1, current_leader_epoch=epoch))
        for epoch in (-1, 0, 5, -7)
    ),
)
case(
    "list-offsets-of-replicas",
    topic(),
    *(ask("ListOffsets", 7, replica_id=replica, topics=_listed(-1)) for replica in (-2, -3, 1, 7)),
)
case(
    "list-offsets-isolation-9",
    topic(),
    ask("ListOffsets", 7, replica_id=-1, isolation_level=9, topics=_listed(-1)),
)
case(
    "list-offsets-committed",
    _WRITTEN,
    ask("ListOffsets", 7, replica_id=-1, isolation_level=1, topics=_listed(-1)),
)

# --- OffsetForLeaderEpoch ---

case(
    "epoch-ends",
    _WRITTEN,
    *(
        ask(
            "OffsetForLeaderEpoch",
            4,
            replica_id=-1,
            topics=[
                {
                    "topic": "$t",
                    "partitions": [{"partition": 0, "current_leader_epoch": -1, "leader_epoch": epoch}],
                }
            ],
        )
        for epoch in (-1, 0, 1, 99, -5)
    ),
)
case(
    "epoch-ends-of-wrong-epoch",
    topic(),
    *(
        ask(
            "OffsetForLeaderEpoch",
            2,
            topics=[
                {
                    "topic": "$t",
                    "partitions": [{"partition": 0, "current_leader_epoch": epoch, "leader_epoch": 0}],
                }
            ],
        )
        for epoch in (0, 5)
    ),
)
case(
    "epoch-ends-of-unknown",
    topic(),
    ask(
        "OffsetForLeaderEpoch",
        4,
        replica_id=-1,
        topics=[
            {"topic": "$t", "partitions": [{"partition": 7, "leader_epoch": 0}]},
            {"topic": "$t2", "partitions": [{"partition": 0, "leader_epoch": 0}]},
        ],
    ),
    ask("OffsetForLeaderEpoch", 4, replica_id=-1, topics=[]),
)

# --- DeleteRecords ---


def _deleted(*offsets: int, name: str = "$t", index: int = 0) -> list[dict[str, Any]]:
    return [
        {"name": name, "partitions": [{"partition_index": index, "offset": offset} for offset in offsets]}
    ]


for offset in (-2, -1, 0, 2, 3, 4, 1 << 60):
    case(
        f"delete-records-to-{offset}",
        _WRITTEN,
        ask("DeleteRecords", 2, topics=_deleted(offset), timeout_ms=2000),
        ask("ListOffsets", 7, replica_id=-1, topics=_listed(-2)),
    )
case("delete-records-v0", _WRITTEN, ask("DeleteRecords", 0, topics=_deleted(1), timeout_ms=2000))
case(
    "delete-records-backwards",
    _WRITTEN,
    quiet("DeleteRecords", 2, topics=_deleted(2), timeout_ms=2000),
    ask("DeleteRecords", 2, topics=_deleted(1), timeout_ms=2000),
)
case(
    "delete-records-of-unknown",
    topic(),
    ask("DeleteRecords", 2, topics=_deleted(0, index=7) + _deleted(0, name="$t2"), timeout_ms=2000),
    ask("DeleteRecords", 2, topics=[], timeout_ms=2000),
)
case(
    "delete-records-compacted",
    topic(cleanup_policy="compact"),
    ask("DeleteRecords", 2, topics=_deleted(0), timeout_ms=2000),
)
case(
    "delete-records-of-internal",
    ask("DeleteRecords", 2, topics=_deleted(0, name="__consumer_offsets"), timeout_ms=2000),
)
case("delete-records-twice", _WRITTEN, ask("DeleteRecords", 2, topics=_deleted(1, 2), timeout_ms=2000))
