"""DescribeCluster: the nodes of the cluster and who controls it (KIP-700)."""

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
    Nullable,
    Since,
    String,
    Struct,
)

DescribeCluster = Api(
    60, "DescribeCluster", versions=(0, 2), flexible=0, listeners=("broker", "controller"),
    doc="The part of Metadata that is not about topics. Brokers answer it, and controllers too if asked for controllers.",
    changes={
        1: "Asks for brokers or for controllers (KIP-919).",
        2: "Fenced brokers can be included, and are marked (KIP-1073).",
    },
    errors=("MISMATCHED_ENDPOINT_TYPE", "UNSUPPORTED_ENDPOINT_TYPE"),
)

DescribeClusterRequest = DescribeCluster.request(
    "include_cluster_authorized_operations" / Boolean                    * "True: also report what the client may do with the cluster.",
    "endpoint_type"                         / Since(1, Default(Int8, 1)) * "Which nodes to list: 1 brokers, 2 controllers (KIP-919).",
    "include_fenced_brokers"                / Since(2, Boolean)          * "True: list registered brokers that are fenced, too (KIP-1073).",
)

DescribeClusterBroker = Struct(
    "broker_id" / BrokerId          * "The node's id.",
    "host"      / BrokerHost        * "Host name or IP address.",
    "port"      / BrokerPort        * "TCP port.",
    "rack"      / Nullable(String)  * "The node's rack; null if not given.",
    "is_fenced" / Since(2, Boolean) * "True: a fenced broker, which serves no clients (KIP-1073).",
    doc="One node: a broker, or a controller if those were asked for.",
)

DescribeClusterResponse = DescribeCluster.response(
    "throttle_time_ms"              / Int32                          * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"                    / ErrorCode                      * "0, or why there is no answer.",
    "error_message"                 / Nullable(String)               * "More about the error; null for none.",
    "endpoint_type"                 / Since(1, Default(Int8, 1))     * "Which nodes are listed: 1 brokers, 2 controllers (KIP-919).",
    "cluster_id"                    / String                         * "The id that the cluster was formatted with.",
    "controller_id"                 / Default(BrokerId, -1)          * "Node id of the controller to turn to; -1 if unknown.",
    "brokers"                       / Array(DescribeClusterBroker)   * "The nodes.",
    "cluster_authorized_operations" / Default(Int32, -2_147_483_648) * "Bit n: ACL operation n is allowed; -2147483648 if not asked for.",
)
