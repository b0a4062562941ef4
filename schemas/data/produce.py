"""Produce: a producer appends record batches to partitions.

With acks 0 the broker sends no response at all, so a capture holds requests that nothing answers.
"""

from schemas.vocabulary import (
    Api,
    Array,
    BrokerHost,
    BrokerId,
    BrokerPort,
    Default,
    ErrorCode,
    Int16,
    Int32,
    Int64,
    Nullable,
    Records,
    Since,
    String,
    Struct,
    Tagged,
    TopicName,
    TransactionalId,
    Until,
    Uuid,
)

Produce = Api(
    0, "Produce", versions=(0, 13), flexible=9, deprecated=(0, 2),
    partitions="topic_data[].partition_data[].index", modifies=True,
    doc="Appends record batches to partitions and learns their offsets. Goes to the leader of each partition.",
    changes={
        1: "The response reports how long it was throttled (KIP-13).",
        2: "The log append time; records may carry timestamps, as message format 1 (KIP-32).",
        3: "The transactional id; records come as batches of format 2 (KIP-98).",
        4: "Same layout; the client understands KAFKA_STORAGE_ERROR (KIP-112).",
        5: "The log start offset, which distinguishes real gaps in sequences from expired records.",
        6: "Same layout; the broker throttles after it has answered (KIP-219).",
        7: "Same layout; records may be compressed with zstd (KIP-110).",
        8: "Which records were refused, and an error message (KIP-467).",
        9: "Flexible lengths and tagged fields (KIP-482).",
        10: "The current leader and its endpoint, on a wrong-leader error (KIP-951).",
        11: "Same layout; the client understands TRANSACTION_ABORTABLE (KIP-890).",
        12: "Same layout; the broker adds partitions to the transaction by itself (KIP-890).",
        13: "Topics by id instead of by name (KIP-516).",
    },
    errors={
        "CORRUPT_MESSAGE": "The checksum or the length of a batch is wrong.",
        "UNKNOWN_TOPIC_OR_PARTITION": "The topic or partition does not exist.",
        "NOT_LEADER_OR_FOLLOWER": "The broker does not lead the partition.",
        "REQUEST_TIMED_OUT": "acks is -1, and not all replicas in sync had the records within timeout_ms.",
        "MESSAGE_TOO_LARGE": "A batch is larger than max.message.bytes.",
        "INVALID_TOPIC_EXCEPTION": "The topic is internal, and clients may not write to it.",
        "RECORD_LIST_TOO_LARGE": "The records are larger than segment.bytes.",
        "NOT_ENOUGH_REPLICAS": "acks is -1, and fewer replicas than min.insync.replicas are in sync; or the transaction's coordinator could not be asked for its partitions.",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND": "acks is -1, and fewer replicas than min.insync.replicas were in sync after the append.",
        "INVALID_REQUIRED_ACKS": "acks is not -1, 0 or 1.",
        "TOPIC_AUTHORIZATION_FAILED": "The client may not write to the topic.",
        "CLUSTER_AUTHORIZATION_FAILED": "",
        "INVALID_TIMESTAMP": "A timestamp is further from the broker's clock than message.timestamp.before.max.ms or message.timestamp.after.max.ms.",
        "UNSUPPORTED_FOR_MESSAGE_FORMAT": "",
        "OUT_OF_ORDER_SEQUENCE_NUMBER": "The first sequence number does not follow the producer's last one.",
        "DUPLICATE_SEQUENCE_NUMBER": "",
        "INVALID_PRODUCER_EPOCH": "The producer's epoch is older than the partition's latest one.",
        "INVALID_TXN_STATE": "The partition is not in the producer's open transaction (before version 11).",
        "INVALID_PRODUCER_ID_MAPPING": "The transactional id is unknown, or has another producer id.",
        "CONCURRENT_TRANSACTIONS": "The coordinator is still completing the producer's previous transaction (from version 12 on).",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "The client may not write to the transactional id.",
        "KAFKA_STORAGE_ERROR": "The partition's log directory is offline.",
        "UNKNOWN_PRODUCER_ID": "",
        "UNSUPPORTED_COMPRESSION_TYPE": "A batch is compressed with zstd (before version 7).",
        "INVALID_RECORD": "A record or batch is not valid, such as a record without a key for a compacted topic.",
        "UNKNOWN_TOPIC_ID": "No topic has the id (from version 13 on).",
        "TRANSACTION_ABORTABLE": "The partition is not in the producer's open transaction (from version 11 on).",
    },
)

PartitionProduceData = Struct(
    "index"   / Int32             * "Its number within the topic.",
    "records" / Nullable(Records) * "Record batches; from version 3 on exactly one batch, of format 2.",
    doc="What to append to one partition.",
)

TopicProduceData = Struct(
    "name"           / Until(12, TopicName, ignorable=True) * "Its name, up to version 12.",
    "topic_id"       / Since(13, Uuid, ignorable=True)      * "Its id, in place of the name (KIP-516).",
    "partition_data" / Array(PartitionProduceData)          * "What to append, a partition each.",
    doc="What to append to one topic.",
)

ProduceRequest = Produce.request(
    "transactional_id" / Since(3, Nullable(TransactionalId)) * "Null outside a transaction (KIP-98).",
    "acks"             / Int16                               * "0: no response, 1: once the leader has it, -1: once all in-sync replicas have.",
    "timeout_ms"       / Int32                               * "Longest wait for the acknowledgements, in ms.",
    "topic_data"       / Array(TopicProduceData)             * "What to append, a topic each.",
)

BatchIndexAndErrorMessage = Struct(
    "batch_index"               / Int32            * "The record's place in the batch, from 0.",
    "batch_index_error_message" / Nullable(String) * "What is wrong with it; null if the broker doesn't say.",
    doc="A record that made the broker refuse its batch (KIP-467).",
)

LeaderIdAndEpoch = Struct(
    "leader_id"    / Default(BrokerId, -1) * "The leader's node id; -1 if unknown.",
    "leader_epoch" / Default(Int32, -1)    * "Its epoch; -1 if unknown.",
    doc="The leader that the broker knows, for a producer that came to the wrong one.",
)

PartitionProduceResponse = Struct(
    "index"              / Int32                                                      * "Its number within the topic.",
    "error_code"         / ErrorCode                                                  * "0, or why nothing was appended.",
    "base_offset"        / Int64                                                      * "The offset of the first record appended; -1 after an error.",
    "log_append_time_ms" / Since(2, Default(Int64, -1), ignorable=True)               * "Broker time in ms since 1970; -1 if records keep the producer's (KIP-32).",
    "log_start_offset"   / Since(5, Default(Int64, -1), ignorable=True)               * "The first offset that is still in the log; -1 if unknown.",
    "record_errors"      / Since(8, Array(BatchIndexAndErrorMessage), ignorable=True) * "The records to blame for a refused batch (KIP-467).",
    "error_message"      / Since(8, Nullable(String), ignorable=True)                 * "Sums up the record errors; null if there are none (KIP-467).",
    "current_leader"     / Since(10, Tagged(0, LeaderIdAndEpoch))                     * "Where to go, if this broker doesn't lead the partition (KIP-951).",
    doc="What became of one partition's records.",
)

TopicProduceResponse = Struct(
    "name"                / Until(12, TopicName, ignorable=True) * "Its name, up to version 12.",
    "topic_id"            / Since(13, Uuid, ignorable=True)      * "Its id, in place of the name (KIP-516).",
    "partition_responses" / Array(PartitionProduceResponse)      * "What became of them, a partition each.",
    doc="What became of one topic's records.",
)

NodeEndpoint = Struct(
    "node_id" / BrokerId         * "The broker's id.",
    "host"    / BrokerHost       * "Its host name or address.",
    "port"    / BrokerPort       * "Its TCP port.",
    "rack"    / Nullable(String) * "Its rack; null if it has none.",
    doc="How to reach a broker that current_leader names.",
)

ProduceResponse = Produce.response(
    "responses"        / Array(TopicProduceResponse)               * "What became of the records, a topic each.",
    "throttle_time_ms" / Since(1, Int32, ignorable=True)           * "Throttling in ms: 0, or how long the quota holds this client back.",
    "node_endpoints"   / Since(10, Tagged(0, Array(NodeEndpoint))) * "The leaders that current_leader names (KIP-951).",
)
