"""TODO"""

from schemas.vocabulary import Api, Array, Default, Int8, Int16, Int32, Since, String, Struct

ListConfigResources = Api(
    74, "ListConfigResources", versions=(0, 1), flexible=0,
    about="TODO",
    changes={},
)

ListConfigResourcesRequest = ListConfigResources.request(
    "resource_types" / Since(1, Array(Int8)) * "TODO",
)

ConfigResource = Struct(
    "resource_name" / String                                      * "TODO",
    "resource_type" / Since(1, Default(Int8, 16), ignorable=True) * "TODO",
    about="TODO",
)

ListConfigResourcesResponse = ListConfigResources.response(
    "throttle_time_ms" / Int32                 * "TODO",
    "error_code"       / Int16                 * "TODO",
    "config_resources" / Array(ConfigResource) * "TODO",
)
