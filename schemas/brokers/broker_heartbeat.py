"""TODO"""

from schemas.vocabulary import Api, Array, Boolean, Default, Int16, Int32, Int64, Since, Tagged, Uuid

BrokerHeartbeat = Api(
    63, "BrokerHeartbeat", versions=(0, 1), flexible=0,
    about="TODO",
    changes={},
)

BrokerHeartbeatRequest = BrokerHeartbeat.request(
    "broker_id"               / Int32                            * "TODO",
    "broker_epoch"            / Default(Int64, -1)               * "TODO",
    "current_metadata_offset" / Int64                            * "TODO",
    "want_fence"              / Boolean                          * "TODO",
    "want_shut_down"          / Boolean                          * "TODO",
    "offline_log_dirs"        / Since(1, Tagged(0, Array(Uuid))) * "TODO",
)

BrokerHeartbeatResponse = BrokerHeartbeat.response(
    "throttle_time_ms" / Int32                  * "TODO",
    "error_code"       / Int16                  * "TODO",
    "is_caught_up"     / Boolean                * "TODO",
    "is_fenced"        / Default(Boolean, True) * "TODO",
    "should_shut_down" / Boolean                * "TODO",
)
