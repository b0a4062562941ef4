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
    Until,
)

DescribeConfigs = Api(
    32, "DescribeConfigs", versions=(0, 4), flexible=4,
    about="TODO",
    changes={},
)

DescribeConfigsResource = Struct(
    "resource_type"      / Int8                                 * "TODO",
    "resource_name"      / String                               * "TODO",
    "configuration_keys" / Default(Nullable(Array(String)), []) * "TODO",
    about="TODO",
)

DescribeConfigsRequest = DescribeConfigs.request(
    "resources"             / Array(DescribeConfigsResource) * "TODO",
    "include_synonyms"      / Since(1, Boolean)              * "TODO",
    "include_documentation" / Since(3, Boolean)              * "TODO",
)

DescribeConfigsSynonym = Struct(
    "name"   / String                        * "TODO",
    "value"  / Default(Nullable(String), "") * "TODO",
    "source" / Int8                          * "TODO",
    about="TODO",
)

DescribeConfigsResourceResult = Struct(
    "name"          / String                                                  * "TODO",
    "value"         / Default(Nullable(String), "")                           * "TODO",
    "read_only"     / Boolean                                                 * "TODO",
    "is_default"    / Until(0, Boolean)                                       * "TODO",
    "config_source" / Since(1, Default(Int8, -1), ignorable=True)             * "TODO",
    "is_sensitive"  / Boolean                                                 * "TODO",
    "synonyms"      / Since(1, Array(DescribeConfigsSynonym), ignorable=True) * "TODO",
    "config_type"   / Since(3, Int8, ignorable=True)                          * "TODO",
    "documentation" / Since(3, Default(Nullable(String), ""), ignorable=True) * "TODO",
    about="TODO",
)

DescribeConfigsResult = Struct(
    "error_code"    / Int16                                * "TODO",
    "error_message" / Default(Nullable(String), "")        * "TODO",
    "resource_type" / Int8                                 * "TODO",
    "resource_name" / String                               * "TODO",
    "configs"       / Array(DescribeConfigsResourceResult) * "TODO",
    about="TODO",
)

DescribeConfigsResponse = DescribeConfigs.response(
    "throttle_time_ms" / Int32                        * "TODO",
    "results"          / Array(DescribeConfigsResult) * "TODO",
)
