"""TODO"""

from schemas.vocabulary import Api, Array, Default, Int8, Int16, Int32, Nullable, Since, String, Struct

CreateAcls = Api(
    30, "CreateAcls", versions=(0, 3), flexible=2,
    about="TODO",
    changes={},
)

AclCreation = Struct(
    "resource_type"         / Int8                       * "TODO",
    "resource_name"         / String                     * "TODO",
    "resource_pattern_type" / Since(1, Default(Int8, 3)) * "TODO",
    "principal"             / String                     * "TODO",
    "host"                  / String                     * "TODO",
    "operation"             / Int8                       * "TODO",
    "permission_type"       / Int8                       * "TODO",
    about="TODO",
)

CreateAclsRequest = CreateAcls.request(
    "creations" / Array(AclCreation) * "TODO",
)

AclCreationResult = Struct(
    "error_code"    / Int16                         * "TODO",
    "error_message" / Default(Nullable(String), "") * "TODO",
    about="TODO",
)

CreateAclsResponse = CreateAcls.response(
    "throttle_time_ms" / Int32                    * "TODO",
    "results"          / Array(AclCreationResult) * "TODO",
)
