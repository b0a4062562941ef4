"""TODO"""

from schemas.vocabulary import Api, Boolean, Default, Int16, Int32, Int64, Since, String

EndTxn = Api(
    26, "EndTxn", versions=(0, 5), flexible=3,
    about="TODO",
    changes={},
)

EndTxnRequest = EndTxn.request(
    "transactional_id" / String  * "TODO",
    "producer_id"      / Int64   * "TODO",
    "producer_epoch"   / Int16   * "TODO",
    "committed"        / Boolean * "TODO",
)

EndTxnResponse = EndTxn.response(
    "throttle_time_ms" / Int32                                        * "TODO",
    "error_code"       / Int16                                        * "TODO",
    "producer_id"      / Since(5, Default(Int64, -1), ignorable=True) * "TODO",
    "producer_epoch"   / Since(5, Default(Int16, -1), ignorable=True) * "TODO",
)
