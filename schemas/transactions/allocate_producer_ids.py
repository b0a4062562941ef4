"""AllocateProducerIds: a broker asks the controller for a block of producer ids."""

from schemas.vocabulary import Api, BrokerId, Default, ErrorCode, Int32, Int64, ProducerId

AllocateProducerIds = Api(
    67, "AllocateProducerIds", versions=(0, 0), flexible=0, listeners=("controller",), modifies=True,
    doc="Sent by brokers only. Each broker hands out ids from its own block, so that no two producers of a cluster share one (KIP-730).",
    changes={},
    errors=(
        "CLUSTER_AUTHORIZATION_FAILED", "NOT_CONTROLLER", "STALE_BROKER_EPOCH", "BROKER_ID_NOT_REGISTERED",
    ),
)

AllocateProducerIdsRequest = AllocateProducerIds.request(
    "broker_id"    / BrokerId           * "The broker that asks.",
    "broker_epoch" / Default(Int64, -1) * "The epoch of its registration, to recognise a stale broker; -1 if unknown.",
)

AllocateProducerIdsResponse = AllocateProducerIds.response(
    "throttle_time_ms"  / Int32      * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"        / ErrorCode  * "0, or why no block was given.",
    "producer_id_start" / ProducerId * "First id of the block.",
    "producer_id_len"   / Int32      * "How many ids the block holds, counted up from the first.",
)
