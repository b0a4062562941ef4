"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Default,
    Int16,
    Int32,
    Nullable,
    Since,
    String,
    Struct,
    Until,
    Uuid,
)

DeleteTopics = Api(
    20, "DeleteTopics", versions=(0, 6), flexible=4,
    about="TODO",
    changes={},
)

DeleteTopicState = Struct(
    "name"     / Nullable(String) * "TODO",
    "topic_id" / Uuid             * "TODO",
    about="TODO",
)

DeleteTopicsRequest = DeleteTopics.request(
    "topics"      / Since(6, Array(DeleteTopicState))       * "TODO",
    "topic_names" / Until(5, Array(String), ignorable=True) * "TODO",
    "timeout_ms"  / Int32                                   * "TODO",
)

DeletableTopicResult = Struct(
    "name"          / Default(Nullable(String, since=6), "")     * "TODO",
    "topic_id"      / Since(6, Uuid, ignorable=True)             * "TODO",
    "error_code"    / Int16                                      * "TODO",
    "error_message" / Since(5, Nullable(String), ignorable=True) * "TODO",
    about="TODO",
)

DeleteTopicsResponse = DeleteTopics.response(
    "throttle_time_ms" / Since(1, Int32, ignorable=True) * "TODO",
    "responses"        / Array(DeletableTopicResult)     * "TODO",
)
