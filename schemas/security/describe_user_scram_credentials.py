"""DescribeUserScramCredentials: which users can log in by SCRAM, and with which mechanisms."""

from schemas.vocabulary import Api, Array, Default, ErrorCode, Int8, Int32, Nullable, String, Struct

DescribeUserScramCredentials = Api(
    50, "DescribeUserScramCredentials", versions=(0, 0), flexible=0, listeners=("broker", "controller"),
    doc="Lists mechanisms and iteration counts of users (KIP-554). Salts and keys are never returned.",
    changes={},
    errors=("CLUSTER_AUTHORIZATION_FAILED", "RESOURCE_NOT_FOUND", "DUPLICATE_RESOURCE"),
)

UserName = Struct(
    "name" / String * "The user's name.",
    doc="One user asked about.",
)

DescribeUserScramCredentialsRequest = DescribeUserScramCredentials.request(
    "users" / Default(Nullable(Array(UserName)), []) * "Users to describe; null or empty for all.",
)

CredentialInfo = Struct(
    "mechanism"  / Int8  * "1 for SCRAM-SHA-256, 2 for SCRAM-SHA-512, 0 if unknown.",
    "iterations" / Int32 * "How often the password was hashed.",
    doc="One credential of the user, without its secrets.",
)

DescribeUserScramCredentialsResult = Struct(
    "user"             / String                        * "The user's name.",
    "error_code"       / ErrorCode                     * "0, or why this user could not be described; RESOURCE_NOT_FOUND for an unknown one.",
    "error_message"    / Default(Nullable(String), "") * "More about the error; null or empty for none.",
    "credential_infos" / Array(CredentialInfo)         * "One entry for each mechanism of the user.",
    doc="The credentials of one user.",
)

DescribeUserScramCredentialsResponse = DescribeUserScramCredentials.response(
    "throttle_time_ms" / Int32                                     * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode                                 * "0, or why nothing could be described.",
    "error_message"    / Default(Nullable(String), "")             * "More about the error; null or empty for none.",
    "results"          / Array(DescribeUserScramCredentialsResult) * "One entry for each user.",
)
