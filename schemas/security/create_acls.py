"""CreateAcls: adds access rules."""

from schemas.vocabulary import Api, Array, Default, ErrorCode, Int8, Int32, Nullable, Since, String, Struct

CreateAcls = Api(
    30, "CreateAcls", versions=(0, 3), flexible=2, listeners=("broker", "controller"), deprecated=(0, 0), modifies=True,
    doc="Stores ACLs, each on its own: some may be refused while others are stored.",
    changes={
        1: "Name patterns with their type, such as prefixes (KIP-290); the broker throttles after it has answered (KIP-219).",
        2: "Flexible lengths and tagged fields (KIP-482).",
        3: "Same layout; users are a resource type too (KIP-373).",
    },
    errors=("CLUSTER_AUTHORIZATION_FAILED", "NOT_CONTROLLER", "INVALID_REQUEST", "SECURITY_DISABLED"),
)

AclCreation = Struct(
    "resource_type"         / Int8                       * "2 topic, 3 group, 4 cluster, 5 transactional id, 6 delegation token, 7 user.",
    "resource_name"         / String                     * 'Name of the resource, or a prefix of names; "*" means all.',
    "resource_pattern_type" / Since(1, Default(Int8, 3)) * "How the name is meant: 3 literally, 4 as a prefix; v0 knows only 3.",
    "principal"             / String                     * 'Whom the rule is for, such as "User:alice"; "User:*" for everyone.',
    "host"                  / String                     * 'The IP address the client comes from; "*" for any.',
    "operation"             / Int8                       * "2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, 9 and up the rest.",
    "permission_type"       / Int8                       * "2 deny, 3 allow.",
    doc="One rule to add.",
)

CreateAclsRequest = CreateAcls.request(
    "creations" / Array(AclCreation) * "The rules to add.",
)

AclCreationResult = Struct(
    "error_code"    / ErrorCode                     * "0, or why the rule was not stored.",
    "error_message" / Default(Nullable(String), "") * "More about the error; null or empty for none.",
    doc="What became of one rule.",
)

CreateAclsResponse = CreateAcls.response(
    "throttle_time_ms" / Int32                    * "How long a quota holds the client back, in ms; 0 for not at all.",
    "results"          / Array(AclCreationResult) * "One outcome for each rule, in the request's order.",
)
