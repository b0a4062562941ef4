"""TODO"""

from schemas.vocabulary import Api, Array, Boolean, Int8, Int16, Int32, Int64, Since, String, Struct

WriteTxnMarkers = Api(
    27, "WriteTxnMarkers", versions=(0, 2), flexible=1,
    about="TODO",
    changes={},
)

WritableTxnMarkerTopic = Struct(
    "name"              / String       * "TODO",
    "partition_indexes" / Array(Int32) * "TODO",
    about="TODO",
)

WritableTxnMarker = Struct(
    "producer_id"         / Int64                          * "TODO",
    "producer_epoch"      / Int16                          * "TODO",
    "transaction_result"  / Boolean                        * "TODO",
    "topics"              / Array(WritableTxnMarkerTopic)  * "TODO",
    "coordinator_epoch"   / Int32                          * "TODO",
    "transaction_version" / Since(2, Int8, ignorable=True) * "TODO",
    about="TODO",
)

WriteTxnMarkersRequest = WriteTxnMarkers.request(
    "markers" / Array(WritableTxnMarker) * "TODO",
)

WritableTxnMarkerPartitionResult = Struct(
    "partition_index" / Int32 * "TODO",
    "error_code"      / Int16 * "TODO",
    about="TODO",
)

WritableTxnMarkerTopicResult = Struct(
    "name"       / String                                  * "TODO",
    "partitions" / Array(WritableTxnMarkerPartitionResult) * "TODO",
    about="TODO",
)

WritableTxnMarkerResult = Struct(
    "producer_id" / Int64                               * "TODO",
    "topics"      / Array(WritableTxnMarkerTopicResult) * "TODO",
    about="TODO",
)

WriteTxnMarkersResponse = WriteTxnMarkers.response(
    "markers" / Array(WritableTxnMarkerResult) * "TODO",
)
