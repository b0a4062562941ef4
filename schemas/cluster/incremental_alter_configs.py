"""IncrementalAlterConfigs: changes single settings of topics, brokers and others (KIP-339)."""

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

IncrementalAlterConfigs = Api(
    44, "IncrementalAlterConfigs", versions=(0, 1), flexible=1, listeners=("broker", "controller"),
    answered_by="broker of the resource", modifies=("validate_only", False),
    doc="Sets, resets or extends the settings named and leaves the rest alone. The changes to one resource succeed or fail together.",
    changes={
        1: "Flexible lengths and tagged fields (KIP-482).",
    },
    errors=(
        "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION", "TOPIC_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "INVALID_CONFIG", "NOT_CONTROLLER",
        "INVALID_REQUEST", "POLICY_VIOLATION",
    ),
)

AlterableConfig = Struct(
    "name"             / String                                * "The setting's name, such as retention.ms.",
    "config_operation" / Int8                                  * "0 set, 1 reset to the default, 2 append to a list, 3 remove from a list.",
    "value"            / Default(Nullable(Secret(String)), "") * "The value as text, or the list's entries with commas; null for a reset.",
    doc="One change to a setting.",
)

AlterConfigsResource = Struct(
    "resource_type" / Int8                   * "2 topic, 4 broker, 8 broker's logger, 16 client metrics, 32 group.",
    "resource_name" / String                 * "Topic's or group's name, broker's id, …; empty for the default of all brokers.",
    "configs"       / Array(AlterableConfig) * "What to change.",
    doc="The changes to one resource.",
)

IncrementalAlterConfigsRequest = IncrementalAlterConfigs.request(
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

IncrementalAlterConfigsResponse = IncrementalAlterConfigs.response(
    "throttle_time_ms" / Int32                               * "How long a quota holds the client back, in ms; 0 for not at all.",
    "responses"        / Array(AlterConfigsResourceResponse) * "One outcome for each resource.",
)
