"""EndTxn: a producer commits or aborts its transaction."""

from schemas._errors import COORDINATOR
from schemas.vocabulary import (
    Api,
    Boolean,
    Default,
    ErrorCode,
    Int16,
    Int32,
    ProducerId,
    Since,
    TransactionalId,
)

EndTxn = Api(
    26, "EndTxn", versions=(0, 5), flexible=3, coordinator="transaction", modifies=True,
    doc="The coordinator logs the decision and answers; the markers then go to all partitions by WriteTxnMarkers.",
    changes={
        1: "Same layout; the broker throttles after it has answered (KIP-219).",
        2: "Same layout; a fenced producer gets PRODUCER_FENCED (KIP-588).",
        3: "Flexible lengths and tagged fields (KIP-482).",
        4: "Same layout; TRANSACTION_ABORTABLE is a possible error (KIP-890).",
        5: "Each end raises the epoch; the response has the producer's new identity (KIP-890).",
    },
    errors={
        **COORDINATOR,
        "INVALID_REQUEST": "The transactional id is empty.",
        "INVALID_PRODUCER_EPOCH": "The same as PRODUCER_FENCED, in versions before 2.",
        "INVALID_TXN_STATE": "The producer has no open transaction, or it ends or has ended with the other result. From version 5 on an abort without a transaction succeeds.",
        "INVALID_PRODUCER_ID_MAPPING": "The transactional id is unknown, or has another producer id.",
        "CONCURRENT_TRANSACTIONS": "The coordinator is still completing the transaction.",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "The client may not write to the transactional id.",
        "PRODUCER_FENCED": "The producer epoch is not the transactional id's current one: a newer producer has it, as a rule.",
        "TRANSACTION_ABORTABLE": "",
    },
)

EndTxnRequest = EndTxn.request(
    "transactional_id" / TransactionalId * "Whose transaction it is.",
    "producer_id"      / ProducerId      * "The producer id that the transaction runs under.",
    "producer_epoch"   / Int16           * "The epoch that the transaction runs under.",
    "committed"        / Boolean         * "True to commit, false to abort.",
)

EndTxnResponse = EndTxn.response(
    "throttle_time_ms" / Int32                                             * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode                                         * "0, or why the transaction did not end.",
    "producer_id"      / Since(5, Default(ProducerId, -1), ignorable=True) * "To go on with; another one if the epochs ran out, -1 on an error (KIP-890).",
    "producer_epoch"   / Since(5, Default(Int16, -1), ignorable=True)      * "To go on with; -1 on an error (KIP-890).",
)
