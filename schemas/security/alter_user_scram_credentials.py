"""TODO"""

from schemas.vocabulary import Api, Array, Bytes, Default, Int8, Int16, Int32, Nullable, String, Struct

AlterUserScramCredentials = Api(
    51, "AlterUserScramCredentials", versions=(0, 0), flexible=0,
    about="TODO",
    changes={},
)

ScramCredentialDeletion = Struct(
    "name"      / String * "TODO",
    "mechanism" / Int8   * "TODO",
    about="TODO",
)

ScramCredentialUpsertion = Struct(
    "name"            / String * "TODO",
    "mechanism"       / Int8   * "TODO",
    "iterations"      / Int32  * "TODO",
    "salt"            / Bytes  * "TODO",
    "salted_password" / Bytes  * "TODO",
    about="TODO",
)

AlterUserScramCredentialsRequest = AlterUserScramCredentials.request(
    "deletions"  / Array(ScramCredentialDeletion)  * "TODO",
    "upsertions" / Array(ScramCredentialUpsertion) * "TODO",
)

AlterUserScramCredentialsResult = Struct(
    "user"          / String                        * "TODO",
    "error_code"    / Int16                         * "TODO",
    "error_message" / Default(Nullable(String), "") * "TODO",
    about="TODO",
)

AlterUserScramCredentialsResponse = AlterUserScramCredentials.response(
    "throttle_time_ms" / Int32                                  * "TODO",
    "results"          / Array(AlterUserScramCredentialsResult) * "TODO",
)
