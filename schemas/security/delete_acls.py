"""DeleteAcls: removes the access rules that match filters."""

from schemas.vocabulary import Api, Array, Default, ErrorCode, Int8, Int32, Nullable, Since, String, Struct

DeleteAcls = Api(
    31, "DeleteAcls", versions=(0, 3), flexible=2, listeners=("broker", "controller"), deprecated=(0, 0), modifies=True,
    doc="Deletes every ACL that one of the filters matches, and returns them.",
    changes={
        1: "Name patterns with their type, such as prefixes (KIP-290); the broker throttles after it has answered (KIP-219).",
        2: "Flexible lengths and tagged fields (KIP-482).",
        3: "Same layout; users are a resource type too (KIP-373).",
    },
    errors=("CLUSTER_AUTHORIZATION_FAILED", "NOT_CONTROLLER", "INVALID_REQUEST", "SECURITY_DISABLED"),
)

DeleteAclsFilter = Struct(
    "resource_type_filter" / Int8                          * "Type of resource: 2 topic, 3 group, 4 cluster, …; 1 for any.",
    "resource_name_filter" / Default(Nullable(String), "") * "Name of the resource; null for any.",
    "pattern_type_filter"  / Since(1, Default(Int8, 3))    * "3 literal, 4 prefix, 2 every pattern that covers the name, 1 any; v0 means 3.",
    "principal_filter"     / Default(Nullable(String), "") * 'Whom the rule is for, such as "User:alice"; null for anyone.',
    "host_filter"          / Default(Nullable(String), "") * "The host in the rule; null for any.",
    "operation"            / Int8                          * "The operation in the rule: 3 read, 4 write, …; 1 for any.",
    "permission_type"      / Int8                          * "2 deny, 3 allow; 1 for either.",
    doc="One filter. A rule matches if all parts of the filter do.",
)

DeleteAclsRequest = DeleteAcls.request(
    "filters" / Array(DeleteAclsFilter) * "What to delete: all that any of these matches.",
)

DeleteAclsMatchingAcl = Struct(
    "error_code"      / ErrorCode                     * "0, or why this rule was not deleted.",
    "error_message"   / Default(Nullable(String), "") * "More about the error; null or empty for none.",
    "resource_type"   / Int8                          * "2 topic, 3 group, 4 cluster, 5 transactional id, 6 delegation token, 7 user.",
    "resource_name"   / String                        * 'Name of the resource, or a prefix of names; "*" means all.',
    "pattern_type"    / Since(1, Default(Int8, 3))    * "How the name is meant: 3 literally, 4 as a prefix; v0 knows only 3.",
    "principal"       / String                        * 'Whom the rule is for, such as "User:alice"; "User:*" for everyone.',
    "host"            / String                        * 'The IP address the client comes from; "*" for any.',
    "operation"       / Int8                          * "2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, 9 and up the rest.",
    "permission_type" / Int8                          * "2 deny, 3 allow.",
    doc="One rule that matched, and what became of it.",
)

DeleteAclsFilterResult = Struct(
    "error_code"    / ErrorCode                     * "0, or why the filter was not applied.",
    "error_message" / Default(Nullable(String), "") * "More about the error; null or empty for none.",
    "matching_acls" / Array(DeleteAclsMatchingAcl)  * "The rules that matched; empty for none.",
    doc="What one filter found.",
)

DeleteAclsResponse = DeleteAcls.response(
    "throttle_time_ms" / Int32                         * "How long a quota holds the client back, in ms; 0 for not at all.",
    "filter_results"   / Array(DeleteAclsFilterResult) * "One outcome for each filter, in the request's order.",
)
