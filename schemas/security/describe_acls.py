"""TODO"""

from schemas.vocabulary import Api, Array, Default, Int8, Int16, Int32, Nullable, Since, String, Struct

DescribeAcls = Api(
    29, "DescribeAcls", versions=(0, 3), flexible=2,
    about="TODO",
    changes={},
)

DescribeAclsRequest = DescribeAcls.request(
    "resource_type_filter" / Int8                          * "TODO",
    "resource_name_filter" / Default(Nullable(String), "") * "TODO",
    "pattern_type_filter"  / Since(1, Default(Int8, 3))    * "TODO",
    "principal_filter"     / Default(Nullable(String), "") * "TODO",
    "host_filter"          / Default(Nullable(String), "") * "TODO",
    "operation"            / Int8                          * "TODO",
    "permission_type"      / Int8                          * "TODO",
)

AclDescription = Struct(
    "principal"       / String * "TODO",
    "host"            / String * "TODO",
    "operation"       / Int8   * "TODO",
    "permission_type" / Int8   * "TODO",
    about="TODO",
)

DescribeAclsResource = Struct(
    "resource_type" / Int8                       * "TODO",
    "resource_name" / String                     * "TODO",
    "pattern_type"  / Since(1, Default(Int8, 3)) * "TODO",
    "acls"          / Array(AclDescription)      * "TODO",
    about="TODO",
)

DescribeAclsResponse = DescribeAcls.response(
    "throttle_time_ms" / Int32                         * "TODO",
    "error_code"       / Int16                         * "TODO",
    "error_message"    / Default(Nullable(String), "") * "TODO",
    "resources"        / Array(DescribeAclsResource)   * "TODO",
)
