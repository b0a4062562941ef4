"""AddOffsetsToTxn: a transaction is going to commit offsets of a group."""

from schemas._errors import COORDINATOR
from schemas.vocabulary import Api, ErrorCode, GroupId, Int16, Int32, ProducerId, TransactionalId

AddOffsetsToTxn = Api(
    25, "AddOffsetsToTxn", versions=(0, 4), flexible=3, coordinator="transaction", modifies=True,
    doc="Makes the group's partition of the offsets log part of the transaction, before the first TxnOffsetCommit. Producers whose TxnOffsetCommit has v5 do without it (KIP-890).",
    changes={
        1: "Same layout; the broker throttles after it has answered (KIP-219).",
        2: "Same layout; a fenced producer gets PRODUCER_FENCED (KIP-588).",
        3: "Flexible lengths and tagged fields (KIP-482).",
        4: "Same layout; TRANSACTION_ABORTABLE is a possible error (KIP-890).",
    },
    errors={
        **COORDINATOR,
        "GROUP_AUTHORIZATION_FAILED": "The client may not read the group.",
        "INVALID_REQUEST": "The transactional id is empty.",
        "INVALID_PRODUCER_EPOCH": "The same as PRODUCER_FENCED, in versions before 2.",
        "INVALID_TXN_STATE": "",
        "INVALID_PRODUCER_ID_MAPPING": "The transactional id is unknown, or has another producer id.",
        "CONCURRENT_TRANSACTIONS": "The coordinator is still completing the producer's previous transaction.",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "The client may not write to the transactional id.",
        "PRODUCER_FENCED": "The producer epoch is not the transactional id's current one: a newer producer has it, as a rule.",
        "TRANSACTION_ABORTABLE": "",
    },
)

AddOffsetsToTxnRequest = AddOffsetsToTxn.request(
    "transactional_id" / TransactionalId * "Whose transaction it is.",
    "producer_id"      / ProducerId      * "As InitProducerId gave it.",
    "producer_epoch"   / Int16           * "As InitProducerId or, later, EndTxn gave it.",
    "group_id"         / GroupId         * "The group whose offsets will be committed.",
)

AddOffsetsToTxnResponse = AddOffsetsToTxn.response(
    "throttle_time_ms" / Int32     * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode * "0, or why the offsets may not join the transaction.",
)
