"""AlterPartition: a partition's leader asks the controller to change the in-sync replicas (KIP-497)."""

from schemas.vocabulary import (
    Api,
    Array,
    BrokerId,
    Default,
    ErrorCode,
    Int8,
    Int32,
    Int64,
    Since,
    Struct,
    TopicName,
    Until,
    Uuid,
)

AlterPartition = Api(
    56, "AlterPartition", versions=(0, 3), flexible=0, listeners=("controller",), modifies=True,
    doc="Sent when a follower lags or catches up; the change counts once the controller has agreed. Stale leaders and brokers are fenced by their epochs.",
    changes={
        1: "Whether the leader still recovers from an unclean election (KIP-704).",
        2: "Topics by id instead of name; fenced brokers may not enter the set (KIP-841).",
        3: "Each replica comes with its broker epoch, so that a restarted one is noticed (KIP-903).",
    },
    errors=(
        "UNKNOWN_TOPIC_OR_PARTITION", "CLUSTER_AUTHORIZATION_FAILED", "NOT_CONTROLLER", "INVALID_REQUEST",
        "OPERATION_NOT_ATTEMPTED", "FENCED_LEADER_EPOCH", "STALE_BROKER_EPOCH", "INVALID_UPDATE_VERSION",
        "UNKNOWN_TOPIC_ID", "INELIGIBLE_REPLICA", "NEW_LEADER_ELECTED",
    ),
)

BrokerState = Struct(
    "broker_id"    / BrokerId           * "The replica's broker.",
    "broker_epoch" / Default(Int64, -1) * "Its epoch when the leader last heard of it; -1 skips the check.",
    doc="One in-sync replica, with the life it was seen in.",
)

AlterPartitionRequestPartitionData = Struct(
    "partition_index"       / Int32                        * "The partition's number.",
    "leader_epoch"          / Int32                        * "The leader epoch under which the sender leads.",
    "new_isr"               / Until(2, Array(BrokerId))    * "Broker ids of the wanted in-sync replicas (v0-2).",
    "new_isr_with_epochs"   / Since(3, Array(BrokerState)) * "The wanted in-sync replicas with their epochs (v3, KIP-903).",
    "leader_recovery_state" / Since(1, Int8)               * "0 recovered, 1 still recovering from an unclean election (KIP-704).",
    "partition_epoch"       / Int32                        * "The state that the change builds on; refused unless current.",
    doc="The change wanted in one partition.",
)

AlterPartitionRequestTopicData = Struct(
    "topic_name" / Until(1, TopicName, ignorable=True)       * "The topic's name; replaced by topic_id in v2.",
    "topic_id"   / Since(2, Uuid, ignorable=True)            * "The topic's id (v2, KIP-841).",
    "partitions" / Array(AlterPartitionRequestPartitionData) * "One change for each partition.",
    doc="The changes wanted in one topic.",
)

AlterPartitionRequest = AlterPartition.request(
    "broker_id"    / BrokerId                              * "The broker that asks, leader of all the partitions.",
    "broker_epoch" / Default(Int64, -1)                    * "Its epoch from registration; -1 if it has none.",
    "topics"       / Array(AlterPartitionRequestTopicData) * "The changes wanted.",
)

AlterPartitionResponsePartitionData = Struct(
    "partition_index"       / Int32                          * "The partition's number.",
    "error_code"            / ErrorCode                      * "0, or why the change was refused, such as INELIGIBLE_REPLICA.",
    "leader_id"             / BrokerId                       * "The leader's broker id; -1 for none.",
    "leader_epoch"          / Int32                          * "The leader epoch that holds.",
    "isr"                   / Array(BrokerId)                * "Broker ids of the in-sync replicas.",
    "leader_recovery_state" / Since(1, Int8, ignorable=True) * "0 recovered, 1 still recovering from an unclean election (KIP-704).",
    "partition_epoch"       / Int32                          * "Number of the partition's present state, raised by each change.",
    doc="One partition as the controller now has it.",
)

AlterPartitionResponseTopicData = Struct(
    "topic_name" / Until(1, TopicName, ignorable=True)        * "The topic's name; replaced by topic_id in v2.",
    "topic_id"   / Since(2, Uuid, ignorable=True)             * "The topic's id (v2, KIP-841).",
    "partitions" / Array(AlterPartitionResponsePartitionData) * "One outcome for each partition.",
    doc="One topic's partitions.",
)

AlterPartitionResponse = AlterPartition.response(
    "throttle_time_ms" / Int32                                  * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode                              * "0, or why the whole request was refused, such as STALE_BROKER_EPOCH.",
    "topics"           / Array(AlterPartitionResponseTopicData) * "The outcomes; empty on such an error.",
)
