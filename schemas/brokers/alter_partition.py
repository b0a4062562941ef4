"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Default,
    Int8,
    Int16,
    Int32,
    Int64,
    Since,
    String,
    Struct,
    Until,
    Uuid,
)

AlterPartition = Api(
    56, "AlterPartition", versions=(0, 3), flexible=0,
    about="TODO",
    changes={},
)

BrokerState = Struct(
    "broker_id"    / Int32              * "TODO",
    "broker_epoch" / Default(Int64, -1) * "TODO",
    about="TODO",
)

AlterPartitionRequestPartitionData = Struct(
    "partition_index"       / Int32                        * "TODO",
    "leader_epoch"          / Int32                        * "TODO",
    "new_isr"               / Until(2, Array(Int32))       * "TODO",
    "new_isr_with_epochs"   / Since(3, Array(BrokerState)) * "TODO",
    "leader_recovery_state" / Since(1, Int8)               * "TODO",
    "partition_epoch"       / Int32                        * "TODO",
    about="TODO",
)

AlterPartitionRequestTopicData = Struct(
    "topic_name" / Until(1, String, ignorable=True)          * "TODO",
    "topic_id"   / Since(2, Uuid, ignorable=True)            * "TODO",
    "partitions" / Array(AlterPartitionRequestPartitionData) * "TODO",
    about="TODO",
)

AlterPartitionRequest = AlterPartition.request(
    "broker_id"    / Int32                                 * "TODO",
    "broker_epoch" / Default(Int64, -1)                    * "TODO",
    "topics"       / Array(AlterPartitionRequestTopicData) * "TODO",
)

AlterPartitionResponsePartitionData = Struct(
    "partition_index"       / Int32                          * "TODO",
    "error_code"            / Int16                          * "TODO",
    "leader_id"             / Int32                          * "TODO",
    "leader_epoch"          / Int32                          * "TODO",
    "isr"                   / Array(Int32)                   * "TODO",
    "leader_recovery_state" / Since(1, Int8, ignorable=True) * "TODO",
    "partition_epoch"       / Int32                          * "TODO",
    about="TODO",
)

AlterPartitionResponseTopicData = Struct(
    "topic_name" / Until(1, String, ignorable=True)           * "TODO",
    "topic_id"   / Since(2, Uuid, ignorable=True)             * "TODO",
    "partitions" / Array(AlterPartitionResponsePartitionData) * "TODO",
    about="TODO",
)

AlterPartitionResponse = AlterPartition.response(
    "throttle_time_ms" / Int32                                  * "TODO",
    "error_code"       / Int16                                  * "TODO",
    "topics"           / Array(AlterPartitionResponseTopicData) * "TODO",
)
