"""TODO"""

from schemas.vocabulary import Api, Array, Boolean, Default, Int8, Int16, Int32, Nullable, String, Struct

AlterConfigs = Api(
    33, "AlterConfigs", versions=(0, 2), flexible=2,
    about="TODO",
    changes={},
)

AlterableConfig = Struct(
    "name"  / String                        * "TODO",
    "value" / Default(Nullable(String), "") * "TODO",
    about="TODO",
)

AlterConfigsResource = Struct(
    "resource_type" / Int8                   * "TODO",
    "resource_name" / String                 * "TODO",
    "configs"       / Array(AlterableConfig) * "TODO",
    about="TODO",
)

AlterConfigsRequest = AlterConfigs.request(
    "resources"     / Array(AlterConfigsResource) * "TODO",
    "validate_only" / Boolean                     * "TODO",
)

AlterConfigsResourceResponse = Struct(
    "error_code"    / Int16                         * "TODO",
    "error_message" / Default(Nullable(String), "") * "TODO",
    "resource_type" / Int8                          * "TODO",
    "resource_name" / String                        * "TODO",
    about="TODO",
)

AlterConfigsResponse = AlterConfigs.response(
    "throttle_time_ms" / Int32                               * "TODO",
    "responses"        / Array(AlterConfigsResourceResponse) * "TODO",
)
