"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    Default,
    Float64,
    Int8,
    Int16,
    Int32,
    Nullable,
    String,
    Struct,
)

DescribeClientQuotas = Api(
    48, "DescribeClientQuotas", versions=(0, 1), flexible=1,
    about="TODO",
    changes={},
)

ComponentData = Struct(
    "entity_type" / String                        * "TODO",
    "match_type"  / Int8                          * "TODO",
    "match"       / Default(Nullable(String), "") * "TODO",
    about="TODO",
)

DescribeClientQuotasRequest = DescribeClientQuotas.request(
    "components" / Array(ComponentData) * "TODO",
    "strict"     / Boolean              * "TODO",
)

EntityData = Struct(
    "entity_type" / String                        * "TODO",
    "entity_name" / Default(Nullable(String), "") * "TODO",
    about="TODO",
)

ValueData = Struct(
    "key"   / String  * "TODO",
    "value" / Float64 * "TODO",
    about="TODO",
)

EntryData = Struct(
    "entity" / Array(EntityData) * "TODO",
    "values" / Array(ValueData)  * "TODO",
    about="TODO",
)

DescribeClientQuotasResponse = DescribeClientQuotas.response(
    "throttle_time_ms" / Int32                                   * "TODO",
    "error_code"       / Int16                                   * "TODO",
    "error_message"    / Default(Nullable(String), "")           * "TODO",
    "entries"          / Default(Nullable(Array(EntryData)), []) * "TODO",
)
