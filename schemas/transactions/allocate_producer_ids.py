"""TODO"""

from schemas.vocabulary import Api, Default, Int16, Int32, Int64

AllocateProducerIds = Api(
    67, "AllocateProducerIds", versions=(0, 0), flexible=0,
    about="TODO",
    changes={},
)

AllocateProducerIdsRequest = AllocateProducerIds.request(
    "broker_id"    / Int32              * "TODO",
    "broker_epoch" / Default(Int64, -1) * "TODO",
)

AllocateProducerIdsResponse = AllocateProducerIds.response(
    "throttle_time_ms"  / Int32 * "TODO",
    "error_code"        / Int16 * "TODO",
    "producer_id_start" / Int64 * "TODO",
    "producer_id_len"   / Int32 * "TODO",
)
