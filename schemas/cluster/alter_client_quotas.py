"""AlterClientQuotas: sets and removes the quotas of users, clients and IP addresses (KIP-546)."""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    Default,
    ErrorCode,
    Float64,
    Int32,
    Nullable,
    String,
    Struct,
)

AlterClientQuotas = Api(
    49, "AlterClientQuotas", versions=(0, 1), flexible=1, listeners=("broker", "controller"),
    modifies=("validate_only", False),
    doc="Changes single limits and leaves the others alone. All changes to one entity succeed or fail together.",
    changes={
        1: "Flexible lengths and tagged fields (KIP-482).",
    },
    errors=("CLUSTER_AUTHORIZATION_FAILED", "NOT_CONTROLLER", "INVALID_REQUEST"),
)

AlterClientQuotasRequestEntityData = Struct(
    "entity_type" / String                        * 'The kind of part: "user", "client-id" or "ip".',
    "entity_name" / Default(Nullable(String), "") * "The user, client id or address; null for the default of that kind.",
    doc="One part of the entity, such as its user.",
)

OpData = Struct(
    "key"    / String  * "The quota's name, such as producer_byte_rate.",
    "value"  / Float64 * "The new limit, in the quota's own unit; ignored when removed.",
    "remove" / Boolean * "True: remove the limit, so that a more general one counts.",
    doc="One change to a limit.",
)

AlterClientQuotasRequestEntryData = Struct(
    "entity" / Array(AlterClientQuotasRequestEntityData) * "Its parts; a user and a client id together mean that pair.",
    "ops"    / Array(OpData)                             * "What to change.",
    doc="The changes to one entity.",
)

AlterClientQuotasRequest = AlterClientQuotas.request(
    "entries"       / Array(AlterClientQuotasRequestEntryData) * "The entities to change.",
    "validate_only" / Boolean                                  * "True: only check the request, change nothing.",
)

AlterClientQuotasResponseEntityData = Struct(
    "entity_type" / String                        * 'The kind of part: "user", "client-id" or "ip".',
    "entity_name" / Default(Nullable(String), "") * "The user, client id or address; null for the default of that kind.",
    doc="One part of the entity, as in the request.",
)

AlterClientQuotasResponseEntryData = Struct(
    "error_code"    / ErrorCode                                  * "0, or why the entity was not changed.",
    "error_message" / Default(Nullable(String), "")              * "More about the error; null or empty for none.",
    "entity"        / Array(AlterClientQuotasResponseEntityData) * "The parts of the entity.",
    doc="What became of one entity's changes.",
)

AlterClientQuotasResponse = AlterClientQuotas.response(
    "throttle_time_ms" / Int32                                     * "How long a quota holds the client back, in ms; 0 for not at all.",
    "entries"          / Array(AlterClientQuotasResponseEntryData) * "One outcome for each entity.",
)
