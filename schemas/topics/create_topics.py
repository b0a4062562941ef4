"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    Default,
    Int8,
    Int16,
    Int32,
    Nullable,
    Since,
    String,
    Struct,
    Tagged,
    Uuid,
)

CreateTopics = Api(
    19, "CreateTopics", versions=(0, 7), flexible=5,
    about="TODO",
    changes={},
)

CreatableReplicaAssignment = Struct(
    "partition_index" / Int32        * "TODO",
    "broker_ids"      / Array(Int32) * "TODO",
    about="TODO",
)

CreatableTopicConfig = Struct(
    "name"  / String                        * "TODO",
    "value" / Default(Nullable(String), "") * "TODO",
    about="TODO",
)

CreatableTopic = Struct(
    "name"               / String                            * "TODO",
    "num_partitions"     / Int32                             * "TODO",
    "replication_factor" / Int16                             * "TODO",
    "assignments"        / Array(CreatableReplicaAssignment) * "TODO",
    "configs"            / Array(CreatableTopicConfig)       * "TODO",
    about="TODO",
)

CreateTopicsRequest = CreateTopics.request(
    "topics"        / Array(CreatableTopic)  * "TODO",
    "timeout_ms"    / Default(Int32, 60_000) * "TODO",
    "validate_only" / Since(1, Boolean)      * "TODO",
)

CreatableTopicConfigs = Struct(
    "name"          / String                        * "TODO",
    "value"         / Default(Nullable(String), "") * "TODO",
    "read_only"     / Boolean                       * "TODO",
    "config_source" / Default(Int8, -1)             * "TODO",
    "is_sensitive"  / Boolean                       * "TODO",
    about="TODO",
)

CreatableTopicResult = Struct(
    "name"                    / String                                                           * "TODO",
    "topic_id"                / Since(7, Uuid, ignorable=True)                                   * "TODO",
    "error_code"              / Int16                                                            * "TODO",
    "error_message"           / Since(1, Default(Nullable(String), ""), ignorable=True)          * "TODO",
    "topic_config_error_code" / Since(5, Tagged(0, Int16), ignorable=True)                       * "TODO",
    "num_partitions"          / Since(5, Default(Int32, -1), ignorable=True)                     * "TODO",
    "replication_factor"      / Since(5, Default(Int16, -1), ignorable=True)                     * "TODO",
    "configs"                 / Since(5, Default(Nullable(Array(CreatableTopicConfigs)), []), ignorable=True) * "TODO",
    about="TODO",
)

CreateTopicsResponse = CreateTopics.response(
    "throttle_time_ms" / Since(2, Int32, ignorable=True) * "TODO",
    "topics"           / Array(CreatableTopicResult)     * "TODO",
)
