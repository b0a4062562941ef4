"""DescribeProducers: which producers a partition remembers, and what they have open."""

from schemas.vocabulary import (
    Api,
    Array,
    Default,
    ErrorCode,
    Int32,
    Int64,
    Nullable,
    ProducerId,
    String,
    Struct,
    TopicName,
)

DescribeProducers = Api(
    61, "DescribeProducers", versions=(0, 0), flexible=0, partitions="topics[].partition_indexes[]",
    doc="Shows the producer state of partitions, as a search for hanging transactions needs it (KIP-664). The partition's leader answers; other brokers can be asked too where they hold a replica.",
    changes={},
    errors=(
        "UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_OR_FOLLOWER", "INVALID_TOPIC_EXCEPTION",
        "TOPIC_AUTHORIZATION_FAILED",
    ),
)

TopicRequest = Struct(
    "name"              / TopicName    * "The topic's name.",
    "partition_indexes" / Array(Int32) * "Numbers of the partitions to look at.",
    doc="The partitions of one topic to look at.",
)

DescribeProducersRequest = DescribeProducers.request(
    "topics" / Array(TopicRequest) * "The partitions asked about, by topic.",
)

ProducerState = Struct(
    "producer_id"              / ProducerId         * "The producer's id.",
    "producer_epoch"           / Int32              * "The producer's epoch; 32 bits wide here, 16 in other messages.",
    "last_sequence"            / Default(Int32, -1) * "Sequence number of the last record it wrote; -1 for none.",
    "last_timestamp"           / Default(Int64, -1) * "Timestamp of its last batch, ms since the epoch; -1 for none.",
    "coordinator_epoch"        / Int32              * "Coordinator epoch of its last transaction marker; -1 before the first.",
    "current_txn_start_offset" / Default(Int64, -1) * "Where its open transaction began in this partition; -1 if none is open.",
    doc="One producer, as the partition's log knows it.",
)

PartitionResponse = Struct(
    "partition_index"  / Int32                * "The partition's number.",
    "error_code"       / ErrorCode            * "0, or why this partition could not be described.",
    "error_message"    / Nullable(String)     * "More about the error; null for none.",
    "active_producers" / Array(ProducerState) * "The producers remembered, idle ones too until they expire.",
    doc="The producers of one partition.",
)

TopicResponse = Struct(
    "name"       / TopicName                * "The topic's name.",
    "partitions" / Array(PartitionResponse) * "One answer for each partition asked about.",
    doc="The answers for one topic.",
)

DescribeProducersResponse = DescribeProducers.response(
    "throttle_time_ms" / Int32                * "How long a quota holds the client back, in ms; 0 for not at all.",
    "topics"           / Array(TopicResponse) * "The answers, by topic.",
)
