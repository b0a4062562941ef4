"""UpdateMetadata: a ZooKeeper-era controller sends brokers what they answer to Metadata."""

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
    Int16,
    Int32,
    Int64,
    Nullable,
    Since,
    String,
    Struct,
    Tagged,
    TopicName,
    Until,
    Uuid,
)

UpdateMetadata = Api(
    6, "UpdateMetadata", versions=(0, 8), flexible=6, listeners=("zkBroker",), modifies=True,
    doc="Carries live brokers and changed partitions to the brokers' caches. Under KRaft the metadata log takes its place; Kafka 4.0 dropped the API.",
    changes={
        1: "Brokers have several endpoints, each with its security protocol.",
        2: "The brokers' racks (KIP-36).",
        3: "Endpoints have the name of their listener (KIP-103).",
        4: "The replicas on failed disks (KIP-112).",
        5: "The broker's epoch; partitions are grouped by topic (KIP-380).",
        6: "Flexible lengths and tagged fields (KIP-482).",
        7: "Topic ids (KIP-516).",
        8: "Whether the controller runs KRaft and the request is full, for the migration (KIP-866).",
    },
    errors=("STALE_CONTROLLER_EPOCH", "CLUSTER_AUTHORIZATION_FAILED", "STALE_BROKER_EPOCH"),
)

UpdateMetadataPartitionState = Struct(
    "topic_name"       / Until(4, TopicName, ignorable=True)       * "The topic's name; from v5 on it is in the topic (v0-4).",
    "partition_index"  / Int32                                     * "The partition's number.",
    "controller_epoch" / Int32                                     * "Epoch of the controller that last changed the partition.",
    "leader"           / BrokerId                                  * "Broker id of the leader; -1 for none, -2 when the topic is being deleted.",
    "leader_epoch"     / Int32                                     * "Raised at each change of leader.",
    "isr"              / Array(BrokerId)                           * "Broker ids of the in-sync replicas.",
    "zk_version"       / Int32                                     * "Version of the partition's node in ZooKeeper.",
    "replicas"         / Array(BrokerId)                           * "Broker ids of all replicas, the preferred leader first.",
    "offline_replicas" / Since(4, Array(BrokerId), ignorable=True) * "Broker ids of the replicas that are down or on a failed disk (KIP-112).",
    doc="One partition as the controller has it.",
)

UpdateMetadataTopicState = Struct(
    "topic_name"       / TopicName                           * "The topic's name.",
    "topic_id"         / Since(7, Uuid, ignorable=True)      * "The topic's id; all zeros if it has none (KIP-516).",
    "partition_states" / Array(UpdateMetadataPartitionState) * "Its changed partitions.",
    doc="The partitions of one topic.",
)

UpdateMetadataEndpoint = Struct(
    "port"              / BrokerPort                       * "TCP port.",
    "host"              / BrokerHost                       * "Host name or IP address.",
    "listener"          / Since(3, String, ignorable=True) * "The listener's name, such as PLAINTEXT or INTERNAL (KIP-103).",
    "security_protocol" / Int16                            * "0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.",
    doc="One address at which a broker listens.",
)

UpdateMetadataBroker = Struct(
    "id"        / BrokerId                                                * "The broker's node id.",
    "v0_host"   / Until(0, BrokerHost, ignorable=True)                    * "Host name or IP address (v0).",
    "v0_port"   / Until(0, BrokerPort, ignorable=True)                    * "TCP port (v0).",
    "endpoints" / Since(1, Array(UpdateMetadataEndpoint), ignorable=True) * "Where the broker is reached (v1).",
    "rack"      / Since(2, Default(Nullable(String), ""), ignorable=True) * "The rack, for spreading replicas; null if not given (KIP-36).",
    doc="One live broker.",
)

UpdateMetadataRequest = UpdateMetadata.request(
    "controller_id"              / BrokerId                                      * "Node id of the controller that sends.",
    "is_k_raft_controller"       / Since(8, Boolean)                             * "True: the controller runs KRaft, during the migration (KIP-866).",
    "type"                       / Since(8, Tagged(0, Int8))                     * "0 unknown, 1 some partitions, 2 all partitions of the cluster (KIP-866).",
    "controller_epoch"           / Int32                                         * "The controller's epoch; a broker that knows a newer one refuses.",
    "broker_epoch"               / Since(5, Default(Int64, -1), ignorable=True)  * "The life of the broker that is meant; -1 if unknown (KIP-380).",
    "ungrouped_partition_states" / Until(4, Array(UpdateMetadataPartitionState)) * "Every partition with its topic's name (v0-4).",
    "topic_states"               / Since(5, Array(UpdateMetadataTopicState))     * "The partitions by topic (v5, KIP-380).",
    "live_brokers"               / Array(UpdateMetadataBroker)                   * "All brokers alive; those not named here are gone.",
)

UpdateMetadataResponse = UpdateMetadata.response(
    "error_code" / ErrorCode * "0, or why the request was refused, such as STALE_CONTROLLER_EPOCH.",
)
