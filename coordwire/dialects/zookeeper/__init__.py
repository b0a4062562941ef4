"""The nodes of Kafka and its consumers in ZooKeeper, and the `topic_count` that the drafts took from there.

    /brokers/ids/[id]                               Broker, or in the oldest form OldBroker
    /brokers/topics/[topic]                         Topic
    /brokers/topics/[topic]/partitions/[p]/state    PartitionState
    /consumers/[group]/ids/[consumer]               Registration
    /consumers/[group]/owners/[topic]/[partition]   Owner       (`owner` in the oldest form)
    /consumers/[group]/offsets/[topic]/[partition]  Offset
    /consumers/coordinator                          Coordinator (drafts)
    /cluster/id                                     ClusterId

    nodes.py   one class a node: `parse(data)`, `build()`, `path(…)`; `parse_node(path, data)` picks it;
               what a consumer wants to read, and which partitions its threads get
    checks.py  JSON and plain texts, checked value by value

Rules: parsing raises `DecodeError` alone, with the key as its path ("partitions.0[1]"); building raises
`EncodeError`. Keys that the documents don't have are kept and written back. Sources: Kafka's implementation
page, its consumer coordinator drafts, and a description of the ZooKeeper consumer.
"""

from coordwire.dialects.zookeeper.nodes import (
    Broker,
    ClusterId,
    Coordinator,
    Node,
    Offset,
    OldBroker,
    Owner,
    PartitionState,
    Registration,
    StaticTopics,
    Topic,
    TopicCount,
    WildcardTopics,
    escaped_twice,
    java_hash,
    parse_node,
    parse_topic_count,
    range_assignment,
    thread_ids,
    topic_filter,
)

__all__ = [
    "Broker",
    "ClusterId",
    "Coordinator",
    "Node",
    "Offset",
    "OldBroker",
    "Owner",
    "PartitionState",
    "Registration",
    "StaticTopics",
    "Topic",
    "TopicCount",
    "WildcardTopics",
    "escaped_twice",
    "java_hash",
    "parse_node",
    "parse_topic_count",
    "range_assignment",
    "thread_ids",
    "topic_filter",
]
