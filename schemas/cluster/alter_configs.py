"""AlterConfigs: replaces all settings of a topic, a broker or another resource (KIP-133)."""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    Default,
    ErrorCode,
    Int8,
    Int32,
    Nullable,
    Secret,
    String,
    Struct,
)

AlterConfigs = Api(
    33, "AlterConfigs", versions=(0, 2), flexible=2, listeners=("broker", "controller"),
    answered_by="broker of the resource", modifies=("validate_only", False),
    doc="What the request does not name falls back to its default. IncrementalAlterConfigs changes single settings and is the better choice.",
    changes={
        1: "Same layout; the broker throttles after it has answered (KIP-219).",
        2: "Flexible lengths and tagged fields (KIP-482).",
    },
    errors=(
        "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION", "TOPIC_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "INVALID_CONFIG", "NOT_CONTROLLER",
        "INVALID_REQUEST", "POLICY_VIOLATION",
    ),
)

AlterableConfig = Struct(
    "name"  / String                                * "The setting's name, such as retention.ms.",
    "value" / Default(Nullable(Secret(String)), "") * "Its value as text; null is refused.",
    doc="One setting.",
)

AlterConfigsResource = Struct(
    "resource_type" / Int8                   * "2 topic, 4 broker, 8 broker's logger, 16 client metrics, 32 group.",
    "resource_name" / String                 * "Topic's or group's name, broker's id, …; empty for the default of all brokers.",
    "configs"       / Array(AlterableConfig) * "What it shall have; all other settings are reset.",
    doc="All settings of one resource.",
)

AlterConfigsRequest = AlterConfigs.request(
    "resources"     / Array(AlterConfigsResource) * "The resources to change.",
    "validate_only" / Boolean                     * "True: only check the request, change nothing.",
)

AlterConfigsResourceResponse = Struct(
    "error_code"    / ErrorCode                     * "0, or why the resource was not changed.",
    "error_message" / Default(Nullable(String), "") * "More about the error; null or empty for none.",
    "resource_type" / Int8                          * "2 topic, 4 broker, 8 broker's logger, 16 client metrics, 32 group.",
    "resource_name" / String                        * "The resource as the request named it.",
    doc="What became of one resource.",
)

AlterConfigsResponse = AlterConfigs.response(
    "throttle_time_ms" / Int32                               * "How long a quota holds the client back, in ms; 0 for not at all.",
    "responses"        / Array(AlterConfigsResourceResponse) * "One outcome for each resource.",
)
