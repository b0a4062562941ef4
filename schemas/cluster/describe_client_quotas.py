"""DescribeClientQuotas: which quotas are set for users, clients and IP addresses (KIP-546)."""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    Default,
    ErrorCode,
    Float64,
    Int8,
    Int32,
    Nullable,
    String,
    Struct,
)

DescribeClientQuotas = Api(
    48, "DescribeClientQuotas", versions=(0, 1), flexible=1,
    doc="Finds entities by their parts and lists the limits set for each. Limits that an entity inherits from a default are not resolved.",
    changes={
        1: "Flexible lengths and tagged fields (KIP-482).",
    },
    errors=("CLUSTER_AUTHORIZATION_FAILED", "INVALID_REQUEST"),
)

ComponentData = Struct(
    "entity_type" / String                        * 'The kind of part: "user", "client-id" or "ip".',
    "match_type"  / Int8                          * "0 the name in match, 1 the default of that kind, 2 anything of that kind.",
    "match"       / Default(Nullable(String), "") * "The name looked for; null unless match_type is 0.",
    doc="A condition on one part of the entities.",
)

DescribeClientQuotasRequest = DescribeClientQuotas.request(
    "components" / Array(ComponentData) * "The conditions, all of which must hold; empty finds every entity.",
    "strict"     / Boolean              * "True: leave out entities that have parts beyond those asked for.",
)

EntityData = Struct(
    "entity_type" / String                        * 'The kind of part: "user", "client-id" or "ip".',
    "entity_name" / Default(Nullable(String), "") * "The user, client id or address; null for the default of that kind.",
    doc="One part of an entity.",
)

ValueData = Struct(
    "key"   / String  * "The quota's name, such as consumer_byte_rate.",
    "value" / Float64 * "The limit, in the quota's own unit.",
    doc="One limit.",
)

EntryData = Struct(
    "entity" / Array(EntityData) * "Its parts; a user and a client id together mean that pair.",
    "values" / Array(ValueData)  * "The limits set for it.",
    doc="One entity and its limits.",
)

DescribeClientQuotasResponse = DescribeClientQuotas.response(
    "throttle_time_ms" / Int32                                   * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode                               * "0, or why there is no answer.",
    "error_message"    / Default(Nullable(String), "")           * "More about the error; null or empty for none.",
    "entries"          / Default(Nullable(Array(EntryData)), []) * "The entities found; null on an error.",
)
