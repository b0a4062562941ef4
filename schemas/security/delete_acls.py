"""TODO"""

from schemas.vocabulary import Api, Array, Default, Int8, Int16, Int32, Nullable, Since, String, Struct

DeleteAcls = Api(
    31, "DeleteAcls", versions=(0, 3), flexible=2,
    about="TODO",
    changes={},
)

DeleteAclsFilter = Struct(
    "resource_type_filter" / Int8                          * "TODO",
    "resource_name_filter" / Default(Nullable(String), "") * "TODO",
    "pattern_type_filter"  / Since(1, Default(Int8, 3))    * "TODO",
    "principal_filter"     / Default(Nullable(String), "") * "TODO",
    "host_filter"          / Default(Nullable(String), "") * "TODO",
    "operation"            / Int8                          * "TODO",
    "permission_type"      / Int8                          * "TODO",
    about="TODO",
)

DeleteAclsRequest = DeleteAcls.request(
    "filters" / Array(DeleteAclsFilter) * "TODO",
)

DeleteAclsMatchingAcl = Struct(
    "error_code"      / Int16                         * "TODO",
    "error_message"   / Default(Nullable(String), "") * "TODO",
    "resource_type"   / Int8                          * "TODO",
    "resource_name"   / String                        * "TODO",
    "pattern_type"    / Since(1, Default(Int8, 3))    * "TODO",
    "principal"       / String                        * "TODO",
    "host"            / String                        * "TODO",
    "operation"       / Int8                          * "TODO",
    "permission_type" / Int8                          * "TODO",
    about="TODO",
)

DeleteAclsFilterResult = Struct(
    "error_code"    / Int16                         * "TODO",
    "error_message" / Default(Nullable(String), "") * "TODO",
    "matching_acls" / Array(DeleteAclsMatchingAcl)  * "TODO",
    about="TODO",
)

DeleteAclsResponse = DeleteAcls.response(
    "throttle_time_ms" / Int32                         * "TODO",
    "filter_results"   / Array(DeleteAclsFilterResult) * "TODO",
)
