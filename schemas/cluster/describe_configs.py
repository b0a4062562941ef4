"""DescribeConfigs: the settings of topics, brokers and other resources, and their origin (KIP-133)."""

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
    Since,
    String,
    Struct,
    Until,
)

DescribeConfigs = Api(
    32, "DescribeConfigs", versions=(0, 4), flexible=4, listeners=("broker", "controller"), deprecated=(0, 0),
    answered_by="broker of the resource",
    doc="Lists settings in force, with the level each comes from. The values of sensitive ones are held back.",
    changes={
        1: "The source of each setting, and on demand what else is set for it (KIP-226).",
        2: "Same layout; the broker throttles after it has answered (KIP-219).",
        3: "The type of each setting, and on demand its documentation (KIP-569).",
        4: "Flexible lengths and tagged fields (KIP-482).",
    },
    errors=(
        "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION", "TOPIC_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "INVALID_REQUEST",
    ),
)

DescribeConfigsResource = Struct(
    "resource_type"      / Int8                                 * "2 topic, 4 broker, 8 broker's logger, 16 client metrics, 32 group.",
    "resource_name"      / String                               * "Topic's or group's name, broker's id, …; empty for the default of all brokers.",
    "configuration_keys" / Default(Nullable(Array(String)), []) * "Names of the settings wanted; null for all.",
    doc="One resource asked about.",
)

DescribeConfigsRequest = DescribeConfigs.request(
    "resources"             / Array(DescribeConfigsResource) * "What to describe.",
    "include_synonyms"      / Since(1, Boolean)              * "True: also list the other levels at which a setting has a value (KIP-226).",
    "include_documentation" / Since(3, Boolean)              * "True: also send the text that explains each setting (KIP-569).",
)

DescribeConfigsSynonym = Struct(
    "name"   / String                                * "The setting's name at that level, such as log.retention.ms.",
    "value"  / Default(Nullable(Secret(String)), "") * "Its value as text; null if sensitive or none.",
    "source" / Int8                                  * "The level, numbered as in config_source.",
    doc="A value of the setting at one level.",
)

DescribeConfigsResourceResult = Struct(
    "name"          / String                                                  * "The setting's name, such as retention.ms.",
    "value"         / Default(Nullable(Secret(String)), "")                   * "Its value as text; null if sensitive or none.",
    "read_only"     / Boolean                                                 * "True: cannot be changed while the broker runs.",
    "is_default"    / Until(0, Boolean)                                       * "True: not set by anyone (v0).",
    "config_source" / Since(1, Default(Int8, -1), ignorable=True)             * "1 topic, 2 broker, 3 all brokers, 4 file, 5 default, 6 logger, 7 client, 8 group.",
    "is_sensitive"  / Boolean                                                 * "True: a secret such as a password, whose value is withheld.",
    "synonyms"      / Since(1, Array(DescribeConfigsSynonym), ignorable=True) * "Its values at all levels, the one in force first; empty if not asked for (KIP-226).",
    "config_type"   / Since(3, Int8, ignorable=True)                          * "1 bool, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password.",
    "documentation" / Since(3, Default(Nullable(String), ""), ignorable=True) * "What the setting is for; null or empty if not asked for (KIP-569).",
    doc="One setting.",
)

DescribeConfigsResult = Struct(
    "error_code"    / ErrorCode                            * "0, or why the resource is not described.",
    "error_message" / Default(Nullable(String), "")        * "More about the error; null or empty for none.",
    "resource_type" / Int8                                 * "2 topic, 4 broker, 8 broker's logger, 16 client metrics, 32 group.",
    "resource_name" / String                               * "The resource as the request named it.",
    "configs"       / Array(DescribeConfigsResourceResult) * "Its settings.",
    doc="The settings of one resource.",
)

DescribeConfigsResponse = DescribeConfigs.response(
    "throttle_time_ms" / Int32                        * "How long a quota holds the client back, in ms; 0 for not at all.",
    "results"          / Array(DescribeConfigsResult) * "One outcome for each resource.",
)
