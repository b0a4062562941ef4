"""OffsetDelete: removes committed offsets that a group no longer needs (KIP-496)."""

from schemas._errors import COORDINATOR
from schemas.vocabulary import Api, Array, ErrorCode, GroupId, Int32, Struct, TopicName

OffsetDelete = Api(
    47, "OffsetDelete", versions=(0, 1), flexible=1, unreleased=1, coordinator="group", modifies=True,
    doc="For operators: deletes committed offsets of single partitions. Topics that a live group is subscribed to are refused.",
    request_headers={0: 1, 1: 3},
    changes={
        1: "The flexible versions. The client is named once a connection, in header version 3 (KIP-1313).",
    },
    errors={
        **COORDINATOR,
        "UNKNOWN_TOPIC_OR_PARTITION": "The topic or partition does not exist.",
        "INVALID_GROUP_ID": "The group id is empty.",
        "TOPIC_AUTHORIZATION_FAILED": "The client may not read the topic.",
        "GROUP_AUTHORIZATION_FAILED": "The client may not delete the group.",
        "NON_EMPTY_GROUP": "The classic group has members, and its protocol type is not \"consumer\".",
        "GROUP_ID_NOT_FOUND": "The group does not exist.",
        "GROUP_SUBSCRIBED_TO_TOPIC": "A member of the group subscribes to the topic.",
    },
)

OffsetDeleteRequestPartition = Struct(
    "partition_index" / Int32 * "The partition's number.",
    doc="One partition whose position shall go.",
)

OffsetDeleteRequestTopic = Struct(
    "name"       / TopicName                           * "The topic's name.",
    "partitions" / Array(OffsetDeleteRequestPartition) * "Its partitions whose positions shall go.",
    doc="The positions to delete of one topic.",
)

OffsetDeleteRequest = OffsetDelete.request(
    "group_id" / GroupId                         * "The group whose positions these are.",
    "topics"   / Array(OffsetDeleteRequestTopic) * "What to delete.",
)

OffsetDeleteResponsePartition = Struct(
    "partition_index" / Int32     * "The partition's number.",
    "error_code"      / ErrorCode * "0, or why it stays, such as GROUP_SUBSCRIBED_TO_TOPIC.",
    doc="What became of one position.",
)

OffsetDeleteResponseTopic = Struct(
    "name"       / TopicName                            * "The topic's name.",
    "partitions" / Array(OffsetDeleteResponsePartition) * "One outcome for each position.",
    doc="What became of one topic's positions.",
)

OffsetDeleteResponse = OffsetDelete.response(
    "error_code"       / ErrorCode                        * "0, or why nothing was deleted, such as GROUP_ID_NOT_FOUND.",
    "throttle_time_ms" / Int32                            * "How long a quota holds the client back, in ms; 0 for not at all.",
    "topics"           / Array(OffsetDeleteResponseTopic) * "One outcome for each topic; empty if the whole request failed.",
)
