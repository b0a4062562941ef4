"""TODO"""

from schemas.vocabulary import Api, Int16, Int32, Int64, String

AddOffsetsToTxn = Api(
    25, "AddOffsetsToTxn", versions=(0, 4), flexible=3,
    about="TODO",
    changes={},
)

AddOffsetsToTxnRequest = AddOffsetsToTxn.request(
    "transactional_id" / String * "TODO",
    "producer_id"      / Int64  * "TODO",
    "producer_epoch"   / Int16  * "TODO",
    "group_id"         / String * "TODO",
)

AddOffsetsToTxnResponse = AddOffsetsToTxn.response(
    "throttle_time_ms" / Int32 * "TODO",
    "error_code"       / Int16 * "TODO",
)
