"""StopReplica: a ZooKeeper-era controller instructs a broker to stop replicas, or to delete them."""

from schemas.vocabulary import (
    Api,
    Array,
    Between,
    Boolean,
    BrokerId,
    Default,
    ErrorCode,
    Int32,
    Int64,
    Since,
    Struct,
    TopicName,
    Until,
)

StopReplica = Api(
    5, "StopReplica", versions=(0, 4), flexible=2, listeners=("zkBroker",), modifies=True,
    doc="Sent at a reassignment, the deletion of a topic, or a broker's shutdown. Under KRaft the metadata log takes its place; Kafka 4.0 dropped the API.",
    changes={
        1: "The broker's epoch; partitions are grouped by topic (KIP-380).",
        2: "Flexible lengths and tagged fields (KIP-482).",
        3: "Each partition has a leader epoch and its own choice of deletion (KIP-570).",
        4: "States whether the controller runs KRaft, for the migration (KIP-866).",
    },
    errors=(
        "STALE_CONTROLLER_EPOCH", "CLUSTER_AUTHORIZATION_FAILED", "KAFKA_STORAGE_ERROR",
        "FENCED_LEADER_EPOCH", "STALE_BROKER_EPOCH",
    ),
)

StopReplicaPartitionV0 = Struct(
    "topic_name"      / TopicName * "The topic's name.",
    "partition_index" / Int32     * "The partition's number.",
    doc="One replica to stop (v0).",
)

StopReplicaTopicV1 = Struct(
    "name"              / TopicName    * "The topic's name.",
    "partition_indexes" / Array(Int32) * "The partitions' numbers.",
    doc="The replicas to stop in one topic (v1-2).",
)

StopReplicaPartitionState = Struct(
    "partition_index"  / Int32              * "The partition's number.",
    "leader_epoch"     / Default(Int32, -1) * "The controller's leader epoch; -1 if unknown, -2 when the topic is deleted.",
    "delete_partition" / Boolean            * "True: delete the replica's data too.",
    doc="One replica to stop (v3).",
)

StopReplicaTopicState = Struct(
    "topic_name"       / TopicName                        * "The topic's name.",
    "partition_states" / Array(StopReplicaPartitionState) * "Its partitions.",
    doc="The replicas to stop in one topic (v3).",
)

StopReplicaRequest = StopReplica.request(
    "controller_id"        / BrokerId                                     * "Node id of the controller that sends.",
    "is_k_raft_controller" / Since(4, Boolean)                            * "True: the controller runs KRaft, during the migration (KIP-866).",
    "controller_epoch"     / Int32                                        * "The controller's epoch; a broker that knows a newer one refuses.",
    "broker_epoch"         / Since(1, Default(Int64, -1), ignorable=True) * "The life of the broker that is meant; -1 if unknown (KIP-380).",
    "delete_partitions"    / Until(2, Boolean)                            * "True: delete the data of all these replicas too (v0-2).",
    "ungrouped_partitions" / Until(0, Array(StopReplicaPartitionV0))      * "Every partition with its topic's name (v0).",
    "topics"               / Between(1, 2, Array(StopReplicaTopicV1))     * "The partitions' numbers by topic (v1-2, KIP-380).",
    "topic_states"         / Since(3, Array(StopReplicaTopicState))       * "The partitions by topic, each with its own choices (v3, KIP-570).",
)

StopReplicaPartitionError = Struct(
    "topic_name"      / TopicName * "The topic's name.",
    "partition_index" / Int32     * "The partition's number.",
    "error_code"      / ErrorCode * "0, or why the replica was not stopped.",
    doc="What became of one replica.",
)

StopReplicaResponse = StopReplica.response(
    "error_code"       / ErrorCode                        * "0, or why the whole request was refused, such as STALE_CONTROLLER_EPOCH.",
    "partition_errors" / Array(StopReplicaPartitionError) * "One outcome for each partition.",
)
