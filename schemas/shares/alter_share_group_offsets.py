"""TODO"""

from schemas.vocabulary import Api, Array, Int16, Int32, Int64, Nullable, String, Struct, Uuid

AlterShareGroupOffsets = Api(
    91, "AlterShareGroupOffsets", versions=(0, 0), flexible=0,
    about="TODO",
    changes={},
)

AlterShareGroupOffsetsRequestPartition = Struct(
    "partition_index" / Int32 * "TODO",
    "start_offset"    / Int64 * "TODO",
    about="TODO",
)

AlterShareGroupOffsetsRequestTopic = Struct(
    "topic_name" / String                                        * "TODO",
    "partitions" / Array(AlterShareGroupOffsetsRequestPartition) * "TODO",
    about="TODO",
)

AlterShareGroupOffsetsRequest = AlterShareGroupOffsets.request(
    "group_id" / String                                    * "TODO",
    "topics"   / Array(AlterShareGroupOffsetsRequestTopic) * "TODO",
)

AlterShareGroupOffsetsResponsePartition = Struct(
    "partition_index" / Int32            * "TODO",
    "error_code"      / Int16            * "TODO",
    "error_message"   / Nullable(String) * "TODO",
    about="TODO",
)

AlterShareGroupOffsetsResponseTopic = Struct(
    "topic_name" / String                                         * "TODO",
    "topic_id"   / Uuid                                           * "TODO",
    "partitions" / Array(AlterShareGroupOffsetsResponsePartition) * "TODO",
    about="TODO",
)

AlterShareGroupOffsetsResponse = AlterShareGroupOffsets.response(
    "throttle_time_ms" / Int32                                      * "TODO",
    "error_code"       / Int16                                      * "TODO",
    "error_message"    / Nullable(String)                           * "TODO",
    "responses"        / Array(AlterShareGroupOffsetsResponseTopic) * "TODO",
)
