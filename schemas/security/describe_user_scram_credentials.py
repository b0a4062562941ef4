"""TODO"""

from schemas.vocabulary import Api, Array, Default, Int8, Int16, Int32, Nullable, String, Struct

DescribeUserScramCredentials = Api(
    50, "DescribeUserScramCredentials", versions=(0, 0), flexible=0,
    about="TODO",
    changes={},
)

UserName = Struct(
    "name" / String * "TODO",
    about="TODO",
)

DescribeUserScramCredentialsRequest = DescribeUserScramCredentials.request(
    "users" / Default(Nullable(Array(UserName)), []) * "TODO",
)

CredentialInfo = Struct(
    "mechanism"  / Int8  * "TODO",
    "iterations" / Int32 * "TODO",
    about="TODO",
)

DescribeUserScramCredentialsResult = Struct(
    "user"             / String                        * "TODO",
    "error_code"       / Int16                         * "TODO",
    "error_message"    / Default(Nullable(String), "") * "TODO",
    "credential_infos" / Array(CredentialInfo)         * "TODO",
    about="TODO",
)

DescribeUserScramCredentialsResponse = DescribeUserScramCredentials.response(
    "throttle_time_ms" / Int32                                     * "TODO",
    "error_code"       / Int16                                     * "TODO",
    "error_message"    / Default(Nullable(String), "")             * "TODO",
    "results"          / Array(DescribeUserScramCredentialsResult) * "TODO",
)
