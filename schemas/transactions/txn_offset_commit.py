"""TODO"""

from schemas.vocabulary import Api, Array, Default, Int16, Int32, Int64, Nullable, Since, String, Struct

TxnOffsetCommit = Api(
    28, "TxnOffsetCommit", versions=(0, 5), flexible=3,
    about="TODO",
    changes={},
)

TxnOffsetCommitRequestPartition = Struct(
    "partition_index"        / Int32                                        * "TODO",
    "committed_offset"       / Int64                                        * "TODO",
    "committed_leader_epoch" / Since(2, Default(Int32, -1), ignorable=True) * "TODO",
    "committed_metadata"     / Default(Nullable(String), "")                * "TODO",
    about="TODO",
)

TxnOffsetCommitRequestTopic = Struct(
    "name"       / String                                 * "TODO",
    "partitions" / Array(TxnOffsetCommitRequestPartition) * "TODO",
    about="TODO",
)

TxnOffsetCommitRequest = TxnOffsetCommit.request(
    "transactional_id"  / String                             * "TODO",
    "group_id"          / String                             * "TODO",
    "producer_id"       / Int64                              * "TODO",
    "producer_epoch"    / Int16                              * "TODO",
    "generation_id"     / Since(3, Default(Int32, -1))       * "TODO",
    "member_id"         / Since(3, String)                   * "TODO",
    "group_instance_id" / Since(3, Nullable(String))         * "TODO",
    "topics"            / Array(TxnOffsetCommitRequestTopic) * "TODO",
)

TxnOffsetCommitResponsePartition = Struct(
    "partition_index" / Int32 * "TODO",
    "error_code"      / Int16 * "TODO",
    about="TODO",
)

TxnOffsetCommitResponseTopic = Struct(
    "name"       / String                                  * "TODO",
    "partitions" / Array(TxnOffsetCommitResponsePartition) * "TODO",
    about="TODO",
)

TxnOffsetCommitResponse = TxnOffsetCommit.response(
    "throttle_time_ms" / Int32                               * "TODO",
    "topics"           / Array(TxnOffsetCommitResponseTopic) * "TODO",
)
