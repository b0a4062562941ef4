"""LeaderAndIsr: a ZooKeeper-era controller assigns a broker the partitions to lead or follow."""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    BrokerHost,
    BrokerId,
    BrokerPort,
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

LeaderAndIsr = Api(
    4, "LeaderAndIsr", versions=(0, 7), flexible=4, listeners=("zkBroker",), modifies=True,
    doc="Sent by the controller to brokers that hold the partitions. Under KRaft the metadata log takes its place; Kafka 4.0 dropped the API.",
    changes={
        1: "States for each partition whether it is new.",
        2: "The broker's epoch; partitions are grouped by topic (KIP-380).",
        3: "The replicas that a reassignment adds and removes (KIP-455).",
        4: "Flexible lengths and tagged fields (KIP-482).",
        5: "Topic ids, and whether the request is full or incremental (KIP-516).",
        6: "Whether the leader still recovers from an unclean election (KIP-704).",
        7: "States whether the controller runs KRaft, for the migration (KIP-866).",
    },
    errors=(
        "STALE_CONTROLLER_EPOCH", "CLUSTER_AUTHORIZATION_FAILED", "KAFKA_STORAGE_ERROR",
        "STALE_BROKER_EPOCH", "INCONSISTENT_TOPIC_ID",
    ),
)

LeaderAndIsrPartitionState = Struct(
    "topic_name"            / Until(1, TopicName, ignorable=True)       * "The topic's name; from v2 on it is in the topic (v0-1).",
    "partition_index"       / Int32                                     * "The partition's number.",
    "controller_epoch"      / Int32                                     * "Epoch of the controller that last changed the partition.",
    "leader"                / BrokerId                                  * "Broker id of the leader; -1 for none.",
    "leader_epoch"          / Int32                                     * "Raised at each change of leader; an older one is ignored.",
    "isr"                   / Array(BrokerId)                           * "Broker ids of the in-sync replicas.",
    "partition_epoch"       / Int32                                     * "Number of this state: the version of its node in ZooKeeper.",
    "replicas"              / Array(BrokerId)                           * "Broker ids of all replicas, the preferred leader first.",
    "adding_replicas"       / Since(3, Array(BrokerId), ignorable=True) * "Broker ids that a reassignment adds; empty for none (KIP-455).",
    "removing_replicas"     / Since(3, Array(BrokerId), ignorable=True) * "Broker ids that a reassignment removes; empty for none (KIP-455).",
    "is_new"                / Since(1, Boolean, ignorable=True)         * "True: the replica may be created, also beside a failed directory.",
    "leader_recovery_state" / Since(6, Int8)                            * "0 recovered, 1 still recovering from an unclean election (KIP-704).",
    doc="One partition as the controller has it.",
)

LeaderAndIsrTopicState = Struct(
    "topic_name"       / TopicName                         * "The topic's name.",
    "topic_id"         / Since(5, Uuid, ignorable=True)    * "The topic's id; all zeros if it has none (KIP-516).",
    "partition_states" / Array(LeaderAndIsrPartitionState) * "Its partitions that the broker holds.",
    doc="The partitions of one topic.",
)

LeaderAndIsrLiveLeader = Struct(
    "broker_id" / BrokerId   * "The leader's broker id.",
    "host_name" / BrokerHost * "Host name or IP address.",
    "port"      / BrokerPort * "TCP port.",
    doc="The address of one leader.",
)

LeaderAndIsrRequest = LeaderAndIsr.request(
    "controller_id"              / BrokerId                                     * "Node id of the controller that sends.",
    "is_k_raft_controller"       / Since(7, Boolean)                            * "True: the controller runs KRaft, during the migration (KIP-866).",
    "controller_epoch"           / Int32                                        * "The controller's epoch; a broker that knows a newer one refuses.",
    "broker_epoch"               / Since(2, Default(Int64, -1), ignorable=True) * "The life of the broker that is meant; -1 if unknown (KIP-380).",
    "type"                       / Since(5, Int8)                               * "0 unknown, 1 some partitions, 2 all that the broker should hold (KIP-516).",
    "ungrouped_partition_states" / Until(1, Array(LeaderAndIsrPartitionState))  * "Every partition with its topic's name (v0-1).",
    "topic_states"               / Since(2, Array(LeaderAndIsrTopicState))      * "The partitions by topic (v2, KIP-380).",
    "live_leaders"               / Array(LeaderAndIsrLiveLeader)                * "Where the leaders named are reached.",
)

LeaderAndIsrPartitionError = Struct(
    "topic_name"      / Until(4, TopicName, ignorable=True) * "The topic's name; replaced by the topic's id in v5 (v0-4).",
    "partition_index" / Int32                               * "The partition's number.",
    "error_code"      / ErrorCode                           * "0, or why the broker did not take its role.",
    doc="What became of one partition.",
)

LeaderAndIsrTopicError = Struct(
    "topic_id"         / Uuid                              * "The topic's id.",
    "partition_errors" / Array(LeaderAndIsrPartitionError) * "One outcome for each partition.",
    doc="What became of one topic's partitions.",
)

LeaderAndIsrResponse = LeaderAndIsr.response(
    "error_code"       / ErrorCode                                   * "0, or why the whole request was refused, such as STALE_CONTROLLER_EPOCH.",
    "partition_errors" / Until(4, Array(LeaderAndIsrPartitionError)) * "One outcome for each partition (v0-4).",
    "topics"           / Since(5, Array(LeaderAndIsrTopicError))     * "The outcomes by topic id (v5, KIP-516).",
)
