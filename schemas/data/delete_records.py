"""TODO"""

from schemas.vocabulary import Api, Array, Int16, Int32, Int64, String, Struct

DeleteRecords = Api(
    21, "DeleteRecords", versions=(0, 2), flexible=2,
    about="TODO",
    changes={},
)

DeleteRecordsPartition = Struct(
    "partition_index" / Int32 * "TODO",
    "offset"          / Int64 * "TODO",
    about="TODO",
)

DeleteRecordsTopic = Struct(
    "name"       / String                        * "TODO",
    "partitions" / Array(DeleteRecordsPartition) * "TODO",
    about="TODO",
)

DeleteRecordsRequest = DeleteRecords.request(
    "topics"     / Array(DeleteRecordsTopic) * "TODO",
    "timeout_ms" / Int32                     * "TODO",
)

DeleteRecordsPartitionResult = Struct(
    "partition_index" / Int32 * "TODO",
    "low_watermark"   / Int64 * "TODO",
    "error_code"      / Int16 * "TODO",
    about="TODO",
)

DeleteRecordsTopicResult = Struct(
    "name"       / String                              * "TODO",
    "partitions" / Array(DeleteRecordsPartitionResult) * "TODO",
    about="TODO",
)

DeleteRecordsResponse = DeleteRecords.response(
    "throttle_time_ms" / Int32                           * "TODO",
    "topics"           / Array(DeleteRecordsTopicResult) * "TODO",
)
