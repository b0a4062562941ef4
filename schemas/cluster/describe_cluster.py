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
)

DescribeCluster = Api(
    60, "DescribeCluster", versions=(0, 2), flexible=0,
    about="TODO",
    changes={},
)

DescribeClusterRequest = DescribeCluster.request(
    "include_cluster_authorized_operations" / Boolean                    * "TODO",
    "endpoint_type"                         / Since(1, Default(Int8, 1)) * "TODO",
    "include_fenced_brokers"                / Since(2, Boolean)          * "TODO",
)

DescribeClusterBroker = Struct(
    "broker_id" / Int32             * "TODO",
    "host"      / String            * "TODO",
    "port"      / Int32             * "TODO",
    "rack"      / Nullable(String)  * "TODO",
    "is_fenced" / Since(2, Boolean) * "TODO",
    about="TODO",
)

DescribeClusterResponse = DescribeCluster.response(
    "throttle_time_ms"              / Int32                          * "TODO",
    "error_code"                    / Int16                          * "TODO",
    "error_message"                 / Nullable(String)               * "TODO",
    "endpoint_type"                 / Since(1, Default(Int8, 1))     * "TODO",
    "cluster_id"                    / String                         * "TODO",
    "controller_id"                 / Default(Int32, -1)             * "TODO",
    "brokers"                       / Array(DescribeClusterBroker)   * "TODO",
    "cluster_authorized_operations" / Default(Int32, -2_147_483_648) * "TODO",
)
