"""Metadata: a client learns the brokers, and who leads which partition.

A request for all topics is an empty array in version 0 and null from version 1 on, where an empty array means none.
"""

from schemas.vocabulary import (
    Api,
    Array,
    Between,
    Boolean,
    BrokerHost,
    BrokerId,
    BrokerPort,
    Default,
    ErrorCode,
    Int32,
    Nullable,
    Since,
    String,
    Struct,
    TopicName,
    Uuid,
)

Metadata = Api(
    3, "Metadata", versions=(0, 13), flexible=9, modifies=("allow_auto_topic_creation", True),
    doc="Reports brokers, controller, and the topics asked for with their partitions and leaders. Any broker answers.",
    changes={
        1: "Racks, the controller, and internal topics; null requests all topics, empty none.",
        2: "The cluster's id (KIP-78).",
        3: "The response reports how long it was throttled (KIP-124).",
        4: "The client can forbid that asking creates a topic.",
        5: "Replicas that are offline (KIP-112).",
        6: "Same layout; the broker throttles after it has answered (KIP-219).",
        7: "The leader's epoch (KIP-320).",
        8: "Operations that the client may do, on request (KIP-430).",
        9: "Flexible lengths and tagged fields (KIP-482).",
        10: "Ids of topics (KIP-516).",
        11: "Drops the cluster's operations; DescribeCluster returns them (KIP-700).",
        12: "Topics can be asked for by id (KIP-516).",
        13: "A top-level error, after which the client may have to bootstrap again (KIP-1102).",
    },
    errors={
        "UNKNOWN_TOPIC_OR_PARTITION": "The topic does not exist, or is being created.",
        "LEADER_NOT_AVAILABLE": "The partition has no leader.",
        "REPLICA_NOT_AVAILABLE": "The broker of a replica is not available (version 0).",
        "INVALID_TOPIC_EXCEPTION": "The topic's name is not valid.",
        "TOPIC_AUTHORIZATION_FAILED": "The client may not describe the topic.",
        "INVALID_REPLICATION_FACTOR": "",
        "LISTENER_NOT_FOUND": "The partition's leader does not have the listener that the client uses (from version 6 on).",
        "UNKNOWN_TOPIC_ID": "No topic has the id.",
        "REBOOTSTRAP_REQUIRED": "",
    },
)

MetadataRequestTopic = Struct(
    "topic_id" / Since(10, Uuid, ignorable=True)            * "Zero if the topic is given by name; other ids work from version 12 on (KIP-516).",
    "name"     / Default(Nullable(TopicName, since=10), "") * "Null if the topic is given by id.",
    doc="A topic to describe.",
)

MetadataRequest = Metadata.request(
    "topics"                                / Default(Nullable(Array(MetadataRequestTopic), since=1), []) * "Null for all topics; empty for none, but for all in version 0.",
    "allow_auto_topic_creation"             / Since(4, Default(Boolean, True))                            * "True lets the broker create a missing topic, if it is set up so.",
    "include_cluster_authorized_operations" / Between(8, 10, Boolean)                                     * "Asks for cluster_authorized_operations (KIP-430).",
    "include_topic_authorized_operations"   / Since(8, Boolean)                                           * "Asks for topic_authorized_operations (KIP-430).",
)

MetadataResponseBroker = Struct(
    "node_id" / BrokerId                                   * "The broker's id.",
    "host"    / BrokerHost                                 * "Its advertised host name or address.",
    "port"    / BrokerPort                                 * "Its advertised TCP port.",
    "rack"    / Since(1, Nullable(String), ignorable=True) * "Its rack; null if it has none (KIP-36).",
    doc="A live broker, as the client's listener reaches it.",
)

MetadataResponsePartition = Struct(
    "error_code"       / ErrorCode                                    * "0, or what is wrong with it, such as LEADER_NOT_AVAILABLE.",
    "partition_index"  / Int32                                        * "Its number within the topic.",
    "leader_id"        / BrokerId                                     * "The broker that leads it; -1 if none does.",
    "leader_epoch"     / Since(7, Default(Int32, -1), ignorable=True) * "Grows with each new leader; -1 if unknown (KIP-320).",
    "replica_nodes"    / Array(BrokerId)                              * "All brokers assigned to it, the preferred leader first.",
    "isr_nodes"        / Array(BrokerId)                              * "Those of them that keep up with the leader.",
    "offline_replicas" / Since(5, Array(BrokerId), ignorable=True)    * "Those of them that can't serve it now (KIP-112).",
    doc="A partition and the brokers that hold it.",
)

MetadataResponseTopic = Struct(
    "error_code"                  / ErrorCode                                  * "0, or why it is not described.",
    "name"                        / Default(Nullable(TopicName, since=12), "") * "Null if it was asked for by an id that can't be resolved.",
    "topic_id"                    / Since(10, Uuid, ignorable=True)            * "Its id; zero if unknown (KIP-516).",
    "is_internal"                 / Since(1, Boolean, ignorable=True)          * "True for Kafka's own topics, such as __consumer_offsets.",
    "partitions"                  / Array(MetadataResponsePartition)           * "Its partitions, in no fixed order.",
    "topic_authorized_operations" / Since(8, Default(Int32, -2_147_483_648))   * "Bits of the operations allowed on it; the least int32 if not asked.",
    doc="A topic and its partitions.",
)

MetadataResponse = Metadata.response(
    "throttle_time_ms"              / Since(3, Int32, ignorable=True)                 * "Throttling in ms: 0, or how long the quota holds this client back.",
    "brokers"                       / Array(MetadataResponseBroker)                   * "All live brokers.",
    "cluster_id"                    / Since(2, Nullable(String), ignorable=True)      * "Null if the broker doesn't know it (KIP-78).",
    "controller_id"                 / Since(1, Default(BrokerId, -1), ignorable=True) * "The broker to send controller requests to; -1 if unknown.",
    "topics"                        / Array(MetadataResponseTopic)                    * "Those asked for, found or not.",
    "cluster_authorized_operations" / Between(8, 10, Default(Int32, -2_147_483_648))  * "Bits of those allowed on the cluster; the least int32 if not asked.",
    "error_code"                    / Since(13, ErrorCode, ignorable=True)            * "0, or why the whole request failed, such as REBOOTSTRAP_REQUIRED (KIP-1102).",
)
