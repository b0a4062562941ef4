"""TODO"""

from schemas.vocabulary import Api, Int16, Int32, Nullable, Since, String

Heartbeat = Api(
    12, "Heartbeat", versions=(0, 4), flexible=4,
    about="TODO",
    changes={},
)

HeartbeatRequest = Heartbeat.request(
    "group_id"          / String                     * "TODO",
    "generation_id"     / Int32                      * "TODO",
    "member_id"         / String                     * "TODO",
    "group_instance_id" / Since(3, Nullable(String)) * "TODO",
)

HeartbeatResponse = Heartbeat.response(
    "throttle_time_ms" / Since(1, Int32, ignorable=True) * "TODO",
    "error_code"       / Int16                           * "TODO",
)
