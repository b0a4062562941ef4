"""WriteTxnMarkers: the coordinator has the end of transactions written into their partitions."""

from schemas.vocabulary import Api, Array, Boolean, Int8, Int16, Int32, Int64, Since, String, Struct

WriteTxnMarkers = Api(
    27, "WriteTxnMarkers", versions=(0, 2), flexible=1,
    about="Between brokers: partition leaders append a control record per partition, and readers of committed records go on. Clients have no use for it.",
    changes={
        1: "Flexible lengths and tagged fields (KIP-482).",
        2: "The transaction version, by which the leader checks epochs more strictly (KIP-1228).",
    },
)

WritableTxnMarkerTopic = Struct(
    "name"              / String       * "The topic's name.",
    "partition_indexes" / Array(Int32) * "Numbers of the partitions that get the marker.",
    about="Partitions of one topic.",
)

WritableTxnMarker = Struct(
    "producer_id"         / Int64                          * "The producer id that the transaction ran under.",
    "producer_epoch"      / Int16                          * "The epoch to write into the marker.",
    "transaction_result"  / Boolean                        * "True for commit, false for abort.",
    "topics"              / Array(WritableTxnMarkerTopic)  * "Where to write it; partitions that this broker leads.",
    "coordinator_epoch"   / Int32                          * "Epoch of the coordinator that sends it; an older one than seen is refused.",
    "transaction_version" / Since(2, Int8, ignorable=True) * "2 for epochs raised at each end (KIP-890), 0 or 1 before that (KIP-1228).",
    about="The end of one transaction.",
)

WriteTxnMarkersRequest = WriteTxnMarkers.request(
    "markers" / Array(WritableTxnMarker) * "All ends to be written.",
)

WritableTxnMarkerPartitionResult = Struct(
    "partition_index" / Int32 * "The partition's number.",
    "error_code"      / Int16 * "0, or why no marker was written.",
    about="What became of the marker in one partition.",
)

WritableTxnMarkerTopicResult = Struct(
    "name"       / String                                  * "The topic's name.",
    "partitions" / Array(WritableTxnMarkerPartitionResult) * "One outcome for each partition.",
    about="What became of the marker in one topic.",
)

WritableTxnMarkerResult = Struct(
    "producer_id" / Int64                               * "As in the request.",
    "topics"      / Array(WritableTxnMarkerTopicResult) * "One outcome for each topic.",
    about="What became of one marker.",
)

WriteTxnMarkersResponse = WriteTxnMarkers.response(
    "markers" / Array(WritableTxnMarkerResult) * "One outcome for each marker.",
)
