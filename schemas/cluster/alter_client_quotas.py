"""TODO"""

from schemas.vocabulary import Api, Array, Boolean, Default, Float64, Int16, Int32, Nullable, String, Struct

AlterClientQuotas = Api(
    49, "AlterClientQuotas", versions=(0, 1), flexible=1,
    about="TODO",
    changes={},
)

AlterClientQuotasRequestEntityData = Struct(
    "entity_type" / String                        * "TODO",
    "entity_name" / Default(Nullable(String), "") * "TODO",
    about="TODO",
)

OpData = Struct(
    "key"    / String  * "TODO",
    "value"  / Float64 * "TODO",
    "remove" / Boolean * "TODO",
    about="TODO",
)

AlterClientQuotasRequestEntryData = Struct(
    "entity" / Array(AlterClientQuotasRequestEntityData) * "TODO",
    "ops"    / Array(OpData)                             * "TODO",
    about="TODO",
)

AlterClientQuotasRequest = AlterClientQuotas.request(
    "entries"       / Array(AlterClientQuotasRequestEntryData) * "TODO",
    "validate_only" / Boolean                                  * "TODO",
)

AlterClientQuotasResponseEntityData = Struct(
    "entity_type" / String                        * "TODO",
    "entity_name" / Default(Nullable(String), "") * "TODO",
    about="TODO",
)

AlterClientQuotasResponseEntryData = Struct(
    "error_code"    / Int16                                      * "TODO",
    "error_message" / Default(Nullable(String), "")              * "TODO",
    "entity"        / Array(AlterClientQuotasResponseEntityData) * "TODO",
    about="TODO",
)

AlterClientQuotasResponse = AlterClientQuotas.response(
    "throttle_time_ms" / Int32                                     * "TODO",
    "entries"          / Array(AlterClientQuotasResponseEntryData) * "TODO",
)
