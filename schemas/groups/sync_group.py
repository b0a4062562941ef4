"""TODO"""

from schemas.consumer_protocol import ConsumerProtocolAssignment
from schemas.vocabulary import Api, Array, Embedded, Int16, Int32, Nullable, Since, String, Struct

SyncGroup = Api(
    14, "SyncGroup", versions=(0, 5), flexible=4,
    about="TODO",
    changes={},
)

SyncGroupRequestAssignment = Struct(
    "member_id"  / String                               * "TODO",
    "assignment" / Embedded(ConsumerProtocolAssignment) * "TODO",
    about="TODO",
)

SyncGroupRequest = SyncGroup.request(
    "group_id"          / String                                     * "TODO",
    "generation_id"     / Int32                                      * "TODO",
    "member_id"         / String                                     * "TODO",
    "group_instance_id" / Since(3, Nullable(String))                 * "TODO",
    "protocol_type"     / Since(5, Nullable(String), ignorable=True) * "TODO",
    "protocol_name"     / Since(5, Nullable(String), ignorable=True) * "TODO",
    "assignments"       / Array(SyncGroupRequestAssignment)          * "TODO",
)

SyncGroupResponse = SyncGroup.response(
    "throttle_time_ms" / Since(1, Int32, ignorable=True)            * "TODO",
    "error_code"       / Int16                                      * "TODO",
    "protocol_type"    / Since(5, Nullable(String), ignorable=True) * "TODO",
    "protocol_name"    / Since(5, Nullable(String), ignorable=True) * "TODO",
    "assignment"       / Embedded(ConsumerProtocolAssignment)       * "TODO",
)
