"""OffsetDelete: a group forgets positions that it needs no more (KIP-496)."""

from schemas.vocabulary import Api, Array, Int16, Int32, String, Struct

OffsetDelete = Api(
    47, "OffsetDelete", versions=(0, 0), flexible=None, coordinator="group",
    about="For operators: deletes committed offsets of single partitions. Topics that a live group is subscribed to are refused.",
    changes={},
)

OffsetDeleteRequestPartition = Struct(
    "partition_index" / Int32 * "The partition's number.",
    about="One partition whose position shall go.",
)

OffsetDeleteRequestTopic = Struct(
    "name"       / String                              * "The topic's name.",
    "partitions" / Array(OffsetDeleteRequestPartition) * "Its partitions whose positions shall go.",
    about="The positions to delete of one topic.",
)

OffsetDeleteRequest = OffsetDelete.request(
    "group_id" / String                          * "The group whose positions these are.",
    "topics"   / Array(OffsetDeleteRequestTopic) * "What to delete.",
)

OffsetDeleteResponsePartition = Struct(
    "partition_index" / Int32 * "The partition's number.",
    "error_code"      / Int16 * "0, or why it stays, such as GROUP_SUBSCRIBED_TO_TOPIC.",
    about="What became of one position.",
)

OffsetDeleteResponseTopic = Struct(
    "name"       / String                               * "The topic's name.",
    "partitions" / Array(OffsetDeleteResponsePartition) * "One outcome for each position.",
    about="What became of one topic's positions.",
)

OffsetDeleteResponse = OffsetDelete.response(
    "error_code"       / Int16                            * "0, or why nothing was deleted, such as GROUP_ID_NOT_FOUND.",
    "throttle_time_ms" / Int32                            * "How long a quota holds the client back, in ms; 0 for not at all.",
    "topics"           / Array(OffsetDeleteResponseTopic) * "One outcome for each topic; empty if the whole request failed.",
)
