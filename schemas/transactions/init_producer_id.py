"""InitProducerId: a producer gets its identity and, if transactional, fences its predecessors.

Without a transactional id any broker answers, with one its transaction coordinator does.
"""

from schemas._errors import COORDINATOR
from schemas.vocabulary import (
    Api,
    Boolean,
    Default,
    ErrorCode,
    Int16,
    Int32,
    Nullable,
    ProducerId,
    Since,
    TransactionalId,
)

InitProducerId = Api(
    22, "InitProducerId", versions=(0, 6), flexible=2, coordinator="transaction", unstable=6, modifies=True,
    doc="Gives out the producer id and epoch by which brokers drop duplicates and fence zombies (KIP-98). With a transactional id, an unfinished transaction of that id is ended first.",
    changes={
        1: "Same layout; the broker throttles after it has answered (KIP-219).",
        2: "Flexible lengths and tagged fields (KIP-482).",
        3: "A producer may keep its id and only have its epoch raised (KIP-360).",
        4: "Same layout; a fenced producer gets PRODUCER_FENCED (KIP-588).",
        5: "Same layout; TRANSACTION_ABORTABLE is a possible error (KIP-890).",
        6: "Two-phase commit: a prepared transaction may be kept (KIP-939).",
    },
    errors={
        **COORDINATOR,
        "CLUSTER_AUTHORIZATION_FAILED": "The request has no transactional id, and the client may not write to any topic.",
        "INVALID_REQUEST": "The transactional id is empty, or only one of producer id and epoch is set.",
        "INVALID_PRODUCER_EPOCH": "The same as PRODUCER_FENCED, in versions before 4.",
        "INVALID_TRANSACTION_TIMEOUT": "The timeout is below 1 ms or above transaction.max.timeout.ms.",
        "CONCURRENT_TRANSACTIONS": "The coordinator is still completing the producer's previous transaction.",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "The client may not write to the transactional id, or asks for two-phase commits and may not, or the broker does not allow them.",
        "PRODUCER_FENCED": "The producer id or epoch of the request is not the transactional id's current one: a newer producer has it, as a rule.",
        "TRANSACTION_ABORTABLE": "",
    },
)

InitProducerIdRequest = InitProducerId.request(
    "transactional_id"       / Default(Nullable(TransactionalId), "") * "The producer's lasting name; null for a merely idempotent producer.",
    "transaction_timeout_ms" / Int32                                  * "Age at which its transactions are aborted, in ms; unused without a name.",
    "producer_id"            / Since(3, Default(ProducerId, -1))      * "The id so far, to raise its epoch; -1 for a new one (KIP-360).",
    "producer_epoch"         / Since(3, Default(Int16, -1))           * "The epoch so far, checked; -1 for a new start (KIP-360).",
    "enable2_pc"             / Since(6, Boolean)                      * "True: an outside coordinator decides, so transactions never time out (KIP-939).",
    "keep_prepared_txn"      / Since(6, Boolean)                      * "True: leave an open transaction as it is, to be decided later (KIP-939).",
)

InitProducerIdResponse = InitProducerId.response(
    "throttle_time_ms"           / Int32                             * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"                 / ErrorCode                         * "0, or why there is no identity.",
    "producer_id"                / Default(ProducerId, -1)           * "The id to write with; -1 on an error.",
    "producer_epoch"             / Int16                             * "The epoch to write with.",
    "ongoing_txn_producer_id"    / Since(6, Default(ProducerId, -1)) * "Producer id of the transaction that was kept; -1 for none (KIP-939).",
    "ongoing_txn_producer_epoch" / Since(6, Default(Int16, -1))      * "Epoch of the transaction that was kept; -1 for none (KIP-939).",
)
