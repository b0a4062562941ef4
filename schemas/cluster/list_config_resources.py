"""ListConfigResources: the names of everything that can have settings (KIP-1142)."""

from schemas.vocabulary import Api, Array, Default, ErrorCode, Int8, Int32, Since, String, Struct

ListConfigResources = Api(
    74, "ListConfigResources", versions=(0, 1), flexible=0,
    doc="Lists resources; DescribeConfigs then returns their settings. v0 was ListClientMetricsResources and knew only client metrics.",
    changes={
        1: "Any type of resource, under the new name (KIP-1142).",
    },
    errors=("CLUSTER_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION"),
)

ListConfigResourcesRequest = ListConfigResources.request(
    "resource_types" / Since(1, Array(Int8)) * "Types wanted, numbered as in the answer; empty for all (KIP-1142).",
)

ConfigResource = Struct(
    "resource_name" / String                                      * "Name of the topic, group or metrics subscription, or the broker's id.",
    "resource_type" / Since(1, Default(Int8, 16), ignorable=True) * "2 topic, 4 broker, 8 broker's logger, 16 client metrics, 32 group (KIP-1142).",
    doc="One resource.",
)

ListConfigResourcesResponse = ListConfigResources.response(
    "throttle_time_ms" / Int32                 * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode             * "0, or why there is no list.",
    "config_resources" / Array(ConfigResource) * "The resources found.",
)
