"""WriteTxnMarkers: the coordinator has the end of transactions written into their partitions."""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    ErrorCode,
    Int8,
    Int16,
    Int32,
    ProducerId,
    Since,
    Struct,
    TopicName,
)

WriteTxnMarkers = Api(
    27, "WriteTxnMarkers", versions=(0, 2), flexible=1,
    partitions="markers[].topics[].partition_indexes[]", modifies=True,
    doc="Between brokers: partition leaders append a control record per partition, and readers of committed records go on. Clients have no use for it.",
    changes={
        1: "Flexible lengths and tagged fields (KIP-482).",
        2: "The transaction version, by which the leader checks epochs more strictly (KIP-1228).",
    },
    errors=(
        "CORRUPT_MESSAGE", "UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT",
        "MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "NOT_ENOUGH_REPLICAS",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "CLUSTER_AUTHORIZATION_FAILED",
        "UNSUPPORTED_FOR_MESSAGE_FORMAT", "INVALID_PRODUCER_EPOCH", "TRANSACTION_COORDINATOR_FENCED",
        "KAFKA_STORAGE_ERROR",
    ),
)

WritableTxnMarkerTopic = Struct(
    "name"              / TopicName    * "The topic's name.",
    "partition_indexes" / Array(Int32) * "Numbers of the partitions that get the marker.",
    doc="Partitions of one topic.",
)

WritableTxnMarker = Struct(
    "producer_id"         / ProducerId                     * "The producer id that the transaction ran under.",
    "producer_epoch"      / Int16                          * "The epoch to write into the marker.",
    "transaction_result"  / Boolean                        * "True for commit, false for abort.",
    "topics"              / Array(WritableTxnMarkerTopic)  * "Where to write it; partitions that this broker leads.",
    "coordinator_epoch"   / Int32                          * "Epoch of the coordinator that sends it; an older one than seen is refused.",
    "transaction_version" / Since(2, Int8, ignorable=True) * "2 for epochs raised at each end (KIP-890), 0 or 1 before that (KIP-1228).",
    doc="The end of one transaction.",
)

WriteTxnMarkersRequest = WriteTxnMarkers.request(
    "markers" / Array(WritableTxnMarker) * "All ends to be written.",
)

WritableTxnMarkerPartitionResult = Struct(
    "partition_index" / Int32     * "The partition's number.",
    "error_code"      / ErrorCode * "0, or why no marker was written.",
    doc="What became of the marker in one partition.",
)

WritableTxnMarkerTopicResult = Struct(
    "name"       / TopicName                               * "The topic's name.",
    "partitions" / Array(WritableTxnMarkerPartitionResult) * "One outcome for each partition.",
    doc="What became of the marker in one topic.",
)

WritableTxnMarkerResult = Struct(
    "producer_id" / ProducerId                          * "As in the request.",
    "topics"      / Array(WritableTxnMarkerTopicResult) * "One outcome for each topic.",
    doc="What became of one marker.",
)

WriteTxnMarkersResponse = WriteTxnMarkers.response(
    "markers" / Array(WritableTxnMarkerResult) * "One outcome for each marker.",
)
