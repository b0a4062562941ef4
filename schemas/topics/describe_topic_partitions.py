"""DescribeTopicPartitions: the partitions of topics, page by page."""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    BrokerId,
    Default,
    ErrorCode,
    Int32,
    Nullable,
    Struct,
    TopicName,
    Uuid,
)

DescribeTopicPartitions = Api(
    75, "DescribeTopicPartitions", versions=(0, 0), flexible=0,
    doc="Reports leaders and replicas as Metadata does, and the eligible leader replicas besides (KIP-966). A long answer is cut, and a cursor gives where to continue.",
    changes={},
    errors=(
        "UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE", "INVALID_TOPIC_EXCEPTION",
        "TOPIC_AUTHORIZATION_FAILED", "LISTENER_NOT_FOUND",
    ),
)

TopicRequest = Struct(
    "name" / TopicName * "The topic's name.",
    doc="One topic asked about.",
)

DescribeTopicPartitionsRequestCursor = Struct(
    "topic_name"      / TopicName * "The topic to start with; those sorted before it are left out.",
    "partition_index" / Int32     * "The first partition of that topic to return.",
    doc="Where a page begins. Copied from the previous response.",
)

DescribeTopicPartitionsRequest = DescribeTopicPartitions.request(
    "topics"                   / Array(TopicRequest)                            * "The topics to describe; empty for all.",
    "response_partition_limit" / Default(Int32, 2000)                           * "Most partitions to return at once; the broker may set a lower limit.",
    "cursor"                   / Nullable(DescribeTopicPartitionsRequestCursor) * "Where to go on; null to start at the beginning.",
)

DescribeTopicPartitionsResponsePartition = Struct(
    "error_code"               / ErrorCode                 * "0, or what is wrong with this partition.",
    "partition_index"          / Int32                     * "The partition's number.",
    "leader_id"                / BrokerId                  * "Broker id of the leader; -1 for none.",
    "leader_epoch"             / Default(Int32, -1)        * "The leader's epoch; -1 if unknown.",
    "replica_nodes"            / Array(BrokerId)           * "Broker ids of all replicas, preferred leader first.",
    "isr_nodes"                / Array(BrokerId)           * "Broker ids of the replicas in sync.",
    "eligible_leader_replicas" / Nullable(Array(BrokerId)) * "Out of sync, yet safe to elect: they hold all committed data; null if unknown.",
    "last_known_elr"           / Nullable(Array(BrokerId)) * "Replicas last in sync or eligible, for recovery by hand; null if unknown.",
    "offline_replicas"         / Array(BrokerId)           * "Broker ids of the replicas whose broker or disk is down.",
    doc="One partition and its replicas.",
)

DescribeTopicPartitionsResponseTopic = Struct(
    "error_code"                  / ErrorCode                                       * "0, or why this topic could not be described.",
    "name"                        / Default(Nullable(TopicName), "")                * "The topic's name; null if unknown.",
    "topic_id"                    / Uuid                                            * "The topic's id; all zero if unknown.",
    "is_internal"                 / Boolean                                         * "True for a topic of Kafka's own, such as __consumer_offsets.",
    "partitions"                  / Array(DescribeTopicPartitionsResponsePartition) * "The topic's partitions on this page.",
    "topic_authorized_operations" / Default(Int32, -2_147_483_648)                  * "What the client may do, one bit for each ACL operation; -2147483648 if not requested.",
    doc="One topic, or the part of it that fits the page.",
)

DescribeTopicPartitionsResponseCursor = Struct(
    "topic_name"      / TopicName * "The topic to go on with.",
    "partition_index" / Int32     * "The first of its partitions not returned yet.",
    doc="Where the next page begins. To be sent back as it is.",
)

DescribeTopicPartitionsResponse = DescribeTopicPartitions.response(
    "throttle_time_ms" / Int32                                           * "How long a quota holds the client back, in ms; 0 for not at all.",
    "topics"           / Array(DescribeTopicPartitionsResponseTopic)     * "The topics on this page, sorted by name.",
    "next_cursor"      / Nullable(DescribeTopicPartitionsResponseCursor) * "Where the next page begins; null after the last one.",
)
