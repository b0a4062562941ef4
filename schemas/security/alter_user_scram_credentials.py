"""AlterUserScramCredentials: sets and removes the SCRAM credentials of users."""

from schemas.vocabulary import (
    Api,
    Array,
    Bytes,
    Default,
    ErrorCode,
    Int8,
    Int32,
    Nullable,
    Secret,
    String,
    Struct,
)

AlterUserScramCredentials = Api(
    51, "AlterUserScramCredentials", versions=(0, 0), flexible=0, listeners=("broker", "controller"),
    answered_by="controller", modifies=True,
    doc="Changes what users log in with (KIP-554). The client salts and hashes the password, so that the broker never sees it in clear.",
    changes={},
    errors=(
        "CLUSTER_AUTHORIZATION_FAILED", "UNSUPPORTED_SASL_MECHANISM", "NOT_CONTROLLER",
        "RESOURCE_NOT_FOUND", "DUPLICATE_RESOURCE", "UNACCEPTABLE_CREDENTIAL",
    ),
)

ScramCredentialDeletion = Struct(
    "name"      / String * "The user's name.",
    "mechanism" / Int8   * "1 for SCRAM-SHA-256, 2 for SCRAM-SHA-512.",
    doc="One credential to remove.",
)

ScramCredentialUpsertion = Struct(
    "name"            / String        * "The user's name.",
    "mechanism"       / Int8          * "1 for SCRAM-SHA-256, 2 for SCRAM-SHA-512.",
    "iterations"      / Int32         * "How often the password was hashed, 4096 to 16384.",
    "salt"            / Secret(Bytes) * "Random bytes that the client chose.",
    "salted_password" / Secret(Bytes) * "The SaltedPassword of RFC 5802, from password, salt and iterations.",
    doc="One credential to set, whether it is new or replaces an old one.",
)

AlterUserScramCredentialsRequest = AlterUserScramCredentials.request(
    "deletions"  / Array(ScramCredentialDeletion)  * "Credentials to remove; empty for none.",
    "upsertions" / Array(ScramCredentialUpsertion) * "Credentials to set; empty for none.",
)

AlterUserScramCredentialsResult = Struct(
    "user"          / String                        * "The user's name.",
    "error_code"    / ErrorCode                     * "0, or why the user's credentials were not changed.",
    "error_message" / Default(Nullable(String), "") * "More about the error; null or empty for none.",
    doc="What became of one user's changes.",
)

AlterUserScramCredentialsResponse = AlterUserScramCredentials.response(
    "throttle_time_ms" / Int32                                  * "How long a quota holds the client back, in ms; 0 for not at all.",
    "results"          / Array(AlterUserScramCredentialsResult) * "One outcome for each user named.",
)
