"""DeleteRecords: drops the oldest records of partitions, up to an offset."""

from schemas.vocabulary import Api, Array, ErrorCode, Int32, Int64, Struct, TopicName

DeleteRecords = Api(
    21, "DeleteRecords", versions=(0, 2), flexible=2, partitions="topics[].partitions[].partition_index", modifies=True,
    doc="Moves the start of a partition's log forward. The partition's leader does it, and answers when its followers have done so too.",
    changes={
        1: "Same layout; the broker throttles after it has answered (KIP-219).",
        2: "Flexible lengths and tagged fields (KIP-482).",
    },
    errors=(
        "OFFSET_OUT_OF_RANGE", "UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT",
        "INVALID_TOPIC_EXCEPTION", "TOPIC_AUTHORIZATION_FAILED", "POLICY_VIOLATION", "KAFKA_STORAGE_ERROR",
    ),
)

DeleteRecordsPartition = Struct(
    "partition_index" / Int32 * "The partition's number.",
    "offset"          / Int64 * "Everything before it goes; -1 for the high watermark.",
    doc="Where the log of one partition shall begin.",
)

DeleteRecordsTopic = Struct(
    "name"       / TopicName                     * "The topic's name.",
    "partitions" / Array(DeleteRecordsPartition) * "Its partitions to shorten.",
    doc="The partitions of one topic to shorten.",
)

DeleteRecordsRequest = DeleteRecords.request(
    "topics"     / Array(DeleteRecordsTopic) * "What to delete, by topic.",
    "timeout_ms" / Int32                     * "How long to wait for the followers, in ms.",
)

DeleteRecordsPartitionResult = Struct(
    "partition_index" / Int32     * "The partition's number.",
    "low_watermark"   / Int64     * "Lowest start offset among the live replicas now; -1 on an error.",
    "error_code"      / ErrorCode * "0, or why the records were not deleted.",
    doc="What became of one partition.",
)

DeleteRecordsTopicResult = Struct(
    "name"       / TopicName                           * "The topic's name.",
    "partitions" / Array(DeleteRecordsPartitionResult) * "One outcome for each partition.",
    doc="What became of one topic's partitions.",
)

DeleteRecordsResponse = DeleteRecords.response(
    "throttle_time_ms" / Int32                           * "How long a quota holds the client back, in ms; 0 for not at all.",
    "topics"           / Array(DeleteRecordsTopicResult) * "One outcome for each topic.",
)
