"""AddPartitionsToTxn: a transaction is going to write to these partitions.

Up to v3 a producer sends one transaction, in fields named after these versions. From v4 on brokers send
several; Java producers stay with v3.
"""

from schemas._errors import COORDINATOR
from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    ErrorCode,
    Int16,
    Int32,
    ProducerId,
    Since,
    Struct,
    TopicName,
    TransactionalId,
    Until,
)

AddPartitionsToTxn = Api(
    24, "AddPartitionsToTxn", versions=(0, 5), flexible=3, coordinator="transaction", modifies=True,
    doc="The coordinator must know each partition before the first record arrives, to end the transaction there. Partition leaders use v4+ to check or to add on behalf of producers (KIP-890).",
    changes={
        1: "Same layout; the broker throttles after it has answered (KIP-219).",
        2: "Same layout; a fenced producer gets PRODUCER_FENCED (KIP-588).",
        3: "Flexible lengths and tagged fields (KIP-482).",
        4: "Many transactions at once, and checking without adding, for brokers (KIP-890).",
        5: "Same layout; TRANSACTION_ABORTABLE is a possible error (KIP-890).",
    },
    errors={
        **COORDINATOR,
        "UNKNOWN_TOPIC_OR_PARTITION": "The topic or partition does not exist.",
        "TOPIC_AUTHORIZATION_FAILED": "The client may not write to the topic.",
        "CLUSTER_AUTHORIZATION_FAILED": "The client may not act as a broker (from version 4 on).",
        "INVALID_REQUEST": "The transactional id is empty.",
        "INVALID_PRODUCER_EPOCH": "The same as PRODUCER_FENCED, in versions before 2.",
        "INVALID_TXN_STATE": "",
        "INVALID_PRODUCER_ID_MAPPING": "The transactional id is unknown, or has another producer id.",
        "CONCURRENT_TRANSACTIONS": "The coordinator is still completing the producer's previous transaction.",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "The client may not write to the transactional id.",
        "OPERATION_NOT_ATTEMPTED": "Another partition of the request was refused.",
        "PRODUCER_FENCED": "The producer epoch is not the transactional id's current one: a newer producer has it, as a rule.",
        "TRANSACTION_ABORTABLE": "A broker asks whether the partition is in the transaction, and it is not.",
    },
)

AddPartitionsToTxnTopic = Struct(
    "name"       / TopicName    * "The topic's name.",
    "partitions" / Array(Int32) * "Numbers of the partitions to be written to.",
    doc="Partitions of one topic.",
)

AddPartitionsToTxnTransaction = Struct(
    "transactional_id" / TransactionalId                * "Whose transaction it is.",
    "producer_id"      / ProducerId                     * "The producer id that the transaction runs under.",
    "producer_epoch"   / Int16                          * "The epoch that the transaction runs under.",
    "verify_only"      / Boolean                        * "True: only check that the partitions are part of it, add none (KIP-890).",
    "topics"           / Array(AddPartitionsToTxnTopic) * "The partitions to add or to check.",
    doc="One transaction, as a broker requests it.",
)

AddPartitionsToTxnRequest = AddPartitionsToTxn.request(
    "transactions"                  / Since(4, Array(AddPartitionsToTxnTransaction)) * "All transactions that are asked for (KIP-890).",
    "v3_and_below_transactional_id" / Until(3, TransactionalId)                      * "Whose transaction it is.",
    "v3_and_below_producer_id"      / Until(3, ProducerId)                           * "As InitProducerId gave it.",
    "v3_and_below_producer_epoch"   / Until(3, Int16)                                * "As InitProducerId gave it.",
    "v3_and_below_topics"           / Until(3, Array(AddPartitionsToTxnTopic))       * "The partitions to add.",
)

AddPartitionsToTxnPartitionResult = Struct(
    "partition_index"      / Int32     * "The partition's number.",
    "partition_error_code" / ErrorCode * "0, or why it was not added; OPERATION_NOT_ATTEMPTED if another one failed.",
    doc="What became of one partition.",
)

AddPartitionsToTxnTopicResult = Struct(
    "name"                 / TopicName                                * "The topic's name.",
    "results_by_partition" / Array(AddPartitionsToTxnPartitionResult) * "One outcome for each partition.",
    doc="What became of one topic's partitions.",
)

AddPartitionsToTxnResult = Struct(
    "transactional_id" / TransactionalId                      * "Whose transaction it is.",
    "topic_results"    / Array(AddPartitionsToTxnTopicResult) * "One outcome for each topic.",
    doc="What became of one transaction's partitions.",
)

AddPartitionsToTxnResponse = AddPartitionsToTxn.response(
    "throttle_time_ms"              / Int32                                          * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"                    / Since(4, ErrorCode, ignorable=True)            * "0, or why the whole request was refused (KIP-890).",
    "results_by_transaction"        / Since(4, Array(AddPartitionsToTxnResult))      * "One outcome for each transaction (KIP-890).",
    "results_by_topic_v3_and_below" / Until(3, Array(AddPartitionsToTxnTopicResult)) * "One outcome for each topic of the one transaction.",
)
