"""Metadata, descriptions of the cluster and of topics, coordinators, versions."""

from __future__ import annotations

from tests.broker.corners.script import ask, case, topic
from tests.broker.corners.values import NO_TOPIC

_ONE = [{"name": "$t"}]
for v in (0, 1, 4, 7, 8, 9, 10, 12, 13):
    case(f"metadata-known-v{v}", topic("$t", 2), ask("Metadata", v, topics=_ONE))
for v in (4, 9, 12):
    case(f"metadata-unknown-v{v}", ask("Metadata", v, topics=_ONE, allow_auto_topic_creation=False))
case("metadata-none", ask("Metadata", 12, topics=[]))
case(
    "metadata-names",
    ask(
        "Metadata",
        12,
        allow_auto_topic_creation=False,
        topics=[{"name": name} for name in ("", ".", "a/b", "x" * 250, "é")],
    ),
)
case(
    "metadata-names-auto",
    ask("Metadata", 12, topics=[{"name": name} for name in ("", ".", "a/b", "x" * 250, "é")]),
)
case("metadata-twice", topic(), ask("Metadata", 12, topics=[{"name": "$t"}, {"name": "$t"}]))
case(
    "metadata-unknown-twice",
    ask("Metadata", 12, allow_auto_topic_creation=False, topics=[{"name": "$t"}, {"name": "$t"}]),
)
case("metadata-by-id", topic(), ask("Metadata", 12, topics=[{"name": None, "topic_id": "$t#id"}]))
case("metadata-by-id-v10", topic(), ask("Metadata", 10, topics=[{"name": "", "topic_id": "$t#id"}]))
case("metadata-by-unknown-id", ask("Metadata", 12, topics=[{"name": None, "topic_id": NO_TOPIC}]))
case("metadata-by-both", topic(), ask("Metadata", 12, topics=[{"name": "$t", "topic_id": "$t#id"}]))
case("metadata-by-neither", ask("Metadata", 12, topics=[{"name": None}]))
case(
    "metadata-by-id-and-name",
    topic(),
    ask("Metadata", 12, topics=[{"name": None, "topic_id": "$t#id"}, {"name": "$t"}]),
)
case(
    "metadata-operations",
    topic(),
    ask("Metadata", 12, topics=_ONE, include_topic_authorized_operations=True),
    ask(
        "Metadata",
        10,
        topics=_ONE,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    ),
)
case("metadata-internal", ask("Metadata", 12, topics=[{"name": "__consumer_offsets"}][:0]))

for v in (0, 1, 2):
    case(f"cluster-v{v}", ask("DescribeCluster", v, include_cluster_authorized_operations=True))
case("cluster-of-controllers", ask("DescribeCluster", 1, endpoint_type=2))
case(
    "cluster-of-unknown-type",
    ask("DescribeCluster", 1, endpoint_type=9),
    ask("DescribeCluster", 1, endpoint_type=0),
)
case("cluster-fenced", ask("DescribeCluster", 2, include_fenced_brokers=True))


_TWO = [*topic("$t", 3), *topic("$t2")]
case(
    "topic-partitions",
    _TWO,
    ask("DescribeTopicPartitions", 0, topics=[{"name": "$t2"}, {"name": "$t"}], response_partition_limit=100),
)
case(
    "topic-partitions-limit",
    _TWO,
    *(
        ask(
            "DescribeTopicPartitions",
            0,
            topics=[{"name": "$t"}, {"name": "$t2"}],
            response_partition_limit=limit,
        )
        for limit in (3, 2, 1, 0, -1)
    ),
)
case(
    "topic-partitions-cursor",
    _TWO,
    *(
        ask(
            "DescribeTopicPartitions",
            0,
            topics=[{"name": "$t"}, {"name": "$t2"}],
            response_partition_limit=100,
            cursor={"topic_name": name, "partition_index": index},
        )
        for name, index in (("$t", 1), ("$t", 3), ("$t", 99), ("$t2", 0), ("$t3", 0), ("$t", -1))
    ),
)
for number, name in enumerate(("$t", "a/b", "", "x" * 250)):
    case(
        f"topic-partitions-unknown-{number}",
        ask("DescribeTopicPartitions", 0, response_partition_limit=100, topics=[{"name": name}]),
    )
case(
    "topic-partitions-unknown-cursor",
    topic(),
    ask(
        "DescribeTopicPartitions",
        0,
        response_partition_limit=100,
        topics=[{"name": "$t"}, {"name": "$t3"}],
        cursor={"topic_name": "$t2", "partition_index": 0},
    ),
)
case(
    "topic-partitions-twice",
    topic(),
    ask("DescribeTopicPartitions", 0, response_partition_limit=100, topics=[{"name": "$t"}, {"name": "$t"}]),
)

for v in (0, 1, 3):
    case(f"coordinator-v{v}", ask("FindCoordinator", v, key="$g"))
for v in (4, 6):
    case(f"coordinator-v{v}", ask("FindCoordinator", v, coordinator_keys=["$g", "$g2"]))
case("coordinator-of-transactions", ask("FindCoordinator", 4, key_type=1, coordinator_keys=["$x", ""]))
case(
    "coordinator-without-key",
    ask("FindCoordinator", 3, key=""),
    ask("FindCoordinator", 4, coordinator_keys=[""]),
)
case("coordinator-of-nothing", ask("FindCoordinator", 4, coordinator_keys=[]))
case("coordinator-key-twice", ask("FindCoordinator", 4, coordinator_keys=["$g", "$g"]))
case(
    "coordinator-unknown-type",
    ask("FindCoordinator", 4, key_type=9, coordinator_keys=["$g"]),
    ask("FindCoordinator", 3, key_type=9, key="$g"),
    ask("FindCoordinator", 4, key_type=-1, coordinator_keys=["$g"]),
)
case("coordinator-share-old-version", ask("FindCoordinator", 5, key_type=2, coordinator_keys=["$g"]))
case("coordinator-share-bad-key", ask("FindCoordinator", 6, key_type=2, coordinator_keys=["nonsense"]))
