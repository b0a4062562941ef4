"""TODO"""

from schemas.vocabulary import Api, Array, Int16, Int32, Nullable, String, Struct, Uuid

DeleteShareGroupOffsets = Api(
    92, "DeleteShareGroupOffsets", versions=(0, 0), flexible=0,
    about="TODO",
    changes={},
)

DeleteShareGroupOffsetsRequestTopic = Struct(
    "topic_name" / String * "TODO",
    about="TODO",
)

DeleteShareGroupOffsetsRequest = DeleteShareGroupOffsets.request(
    "group_id" / String                                     * "TODO",
    "topics"   / Array(DeleteShareGroupOffsetsRequestTopic) * "TODO",
)

DeleteShareGroupOffsetsResponseTopic = Struct(
    "topic_name"    / String           * "TODO",
    "topic_id"      / Uuid             * "TODO",
    "error_code"    / Int16            * "TODO",
    "error_message" / Nullable(String) * "TODO",
    about="TODO",
)

DeleteShareGroupOffsetsResponse = DeleteShareGroupOffsets.response(
    "throttle_time_ms" / Int32                                       * "TODO",
    "error_code"       / Int16                                       * "TODO",
    "error_message"    / Nullable(String)                            * "TODO",
    "responses"        / Array(DeleteShareGroupOffsetsResponseTopic) * "TODO",
)
