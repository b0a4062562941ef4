"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    Default,
    Int16,
    Int32,
    Int64,
    Since,
    String,
    Struct,
    Tagged,
)

ApiVersions = Api(
    18, "ApiVersions", versions=(0, 4), flexible=3,
    about="TODO",
    changes={},
)

ApiVersionsRequest = ApiVersions.request(
    "client_software_name"    / Since(3, String, ignorable=True) * "TODO",
    "client_software_version" / Since(3, String, ignorable=True) * "TODO",
)

ApiVersion = Struct(
    "api_key"     / Int16 * "TODO",
    "min_version" / Int16 * "TODO",
    "max_version" / Int16 * "TODO",
    about="TODO",
)

SupportedFeatureKey = Struct(
    "name"        / String * "TODO",
    "min_version" / Int16  * "TODO",
    "max_version" / Int16  * "TODO",
    about="TODO",
)

FinalizedFeatureKey = Struct(
    "name"              / String * "TODO",
    "max_version_level" / Int16  * "TODO",
    "min_version_level" / Int16  * "TODO",
    about="TODO",
)

ApiVersionsResponse = ApiVersions.response(
    "error_code"               / Int16                                                           * "TODO",
    "api_keys"                 / Array(ApiVersion)                                               * "TODO",
    "throttle_time_ms"         / Since(1, Int32, ignorable=True)                                 * "TODO",
    "supported_features"       / Since(3, Tagged(0, Array(SupportedFeatureKey)), ignorable=True) * "TODO",
    "finalized_features_epoch" / Since(3, Tagged(1, Default(Int64, -1)), ignorable=True)         * "TODO",
    "finalized_features"       / Since(3, Tagged(2, Array(FinalizedFeatureKey)), ignorable=True) * "TODO",
    "zk_migration_ready"       / Since(3, Tagged(3, Boolean), ignorable=True)                    * "TODO",
)
