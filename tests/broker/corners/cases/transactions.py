"""Transactions: producers that nobody knows, requests out of order, wrong epochs, markers of nothing."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tests.broker.corners.script import Step, ask, case, quiet, topic
from tests.broker.corners.values import batch


def _init(version: int = 4, **changes: Any) -> Step:
    fields: dict[str, Any] = {"transactional_id": "$x", "transaction_timeout_ms": 60_000} | changes
    return ask("InitProducerId", version, again=(51,), **fields)


_BEGUN = [
    *topic(),
    quiet(
        "InitProducerId",
        4,
        transactional_id="$x",
        transaction_timeout_ms=60_000,
        again=(51,),
        keep={"p": "producer_id", "e": "producer_epoch"},
    ),
]


def _added(
    version: int = 3, producer: Any = "$p", epoch: Any = "$e", name: str = "$x", topics: Any = None
) -> Step:
    return ask(
        "AddPartitionsToTxn",
        version,
        again=(51,),
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=[{"name": "$t", "partitions": [0]}] if topics is None else topics,
    )


def _ended(
    version: int = 3, producer: Any = "$p", epoch: Any = "$e", name: str = "$x", committed: bool = True
) -> Step:
    return ask(
        "EndTxn",
        version,
        again=(51,),
        transactional_id=name,
        producer_id=producer,
        producer_epoch=epoch,
        committed=committed,
    )


for v in range(6):
    case(f"init-producer-v{v}", _init(v))
case("init-producer-idempotent", ask("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=1000))
case("init-producer-empty-id", _init(transactional_id=""))
for timeout in (0, -1, 1 << 30):
    case(f"init-producer-timeout-{timeout}", _init(transaction_timeout_ms=timeout))
case("init-producer-id-without-epoch", _init(producer_id=5), _init(producer_epoch=5))
case("init-producer-unknown-id", _init(producer_id=123_456_789, producer_epoch=0))
case("init-producer-again", _init(), _init())
case(
    "init-producer-with-own-id",
    _BEGUN,
    _init(producer_id="$p", producer_epoch="$e"),
    _init(producer_id="$p", producer_epoch=9),
)
case("init-producer-negative-id", _init(producer_id=-2, producer_epoch=-2))

case("end-unknown", *(_ended(v, 5, 0) for v in (0, 2, 3, 5)))
case("end-without-begin", _BEGUN, _ended(), _ended(committed=False))
case("end-without-begin-v5", _BEGUN, _ended(5), _ended(5, committed=False))
case("end-empty-id", _ended(name="", producer=5, epoch=0))
case("end-wrong-producer", _BEGUN, _ended(producer=123_456_789), _ended(epoch=9), _ended(epoch=-1))
case("end-wrong-epoch-v1", _BEGUN, _ended(1, epoch=9))
case("end-twice", _BEGUN, _added(), _ended(), _ended(), _ended(committed=False))
case("end-twice-v5", _BEGUN, _added(), _ended(5), _ended(5))
case("add-unknown", topic(), _added(producer=5, epoch=0), _added(0, producer=5, epoch=0))
case("add-twice", _BEGUN, _added(), _added(), _ended(committed=False))
case("add-partition-twice", _BEGUN, _added(topics=[{"name": "$t", "partitions": [0, 0]}]))
case(
    "add-unknown-partitions",
    _BEGUN,
    _added(topics=[{"name": "$t", "partitions": [0, 7]}, {"name": "$t2", "partitions": [0]}]),
)
case("add-nothing", _BEGUN, _added(topics=[]))
case("add-internal", _BEGUN, _added(topics=[{"name": "__consumer_offsets", "partitions": [0]}]))
case("add-wrong-epoch", _BEGUN, _added(epoch=9), _added(1, epoch=9), _added(producer=123_456_789))
case("add-empty-id", _BEGUN, _added(name=""))
case(
    "add-v4",
    _BEGUN,
    ask(
        "AddPartitionsToTxn",
        4,
        transactions=[
            {
                "transactional_id": "$x",
                "producer_id": "$p",
                "producer_epoch": "$e",
                "verify_only": True,
                "topics": [{"name": "$t", "partitions": [0]}],
            }
        ],
    ),
)
case("add-v5-none", ask("AddPartitionsToTxn", 5, transactions=[]))


def _offsets(
    version: int = 3, name: str = "$x", producer: Any = "$p", epoch: Any = "$e", group: str = "$g"
) -> Step:
    return ask(
        "AddOffsetsToTxn",
        version,
        again=(51,),
        transactional_id=name,
        producer_id=producer,
        producer_epoch=epoch,
        group_id=group,
    )


case("add-offsets-unknown", _offsets(producer=5, epoch=0), _offsets(0, producer=5, epoch=0))
case("add-offsets-wrong-epoch", _BEGUN, _offsets(epoch=9), _offsets(1, epoch=9))
case("add-offsets-without-group", _BEGUN, _offsets(group=""))
case("add-offsets-without-id", _BEGUN, _offsets(name=""))


def _committed(version: int = 3, **changes: Any) -> Step:
    fields: dict[str, Any] = {
        "transactional_id": "$x",
        "group_id": "$g",
        "producer_id": "$p",
        "producer_epoch": "$e",
        "topics": [{"name": "$t", "partitions": [{"partition_index": 0, "committed_offset": 5}]}],
    } | changes
    return ask("TxnOffsetCommit", version, again=(51,), **fields)


for v in (0, 3, 4, 5):
    case(f"txn-commit-without-begin-v{v}", _BEGUN, _committed(v))
_BY_ID = [{"topic_id": "$t#id", "partitions": [{"partition_index": 0, "committed_offset": 5}]}]
_UNKNOWN_ID = [
    {
        "topic_id": UUID(int=42),
        "partitions": [{"partition_index": 0, "committed_offset": 5}],
    }
]
case("txn-commit-without-begin-v6", _BEGUN, _committed(6, topics=_BY_ID))
case(
    "txn-commit-v6",
    _BEGUN,
    _committed(6, topics=_BY_ID),
    _committed(6, topics=_UNKNOWN_ID),
    _committed(6, topics=[{"partitions": [{"partition_index": 0, "committed_offset": 5}]}]),
    _committed(6, topics=[*_UNKNOWN_ID, *_BY_ID]),
    _committed(6, topics=_BY_ID, member_id="m", generation_id_or_member_epoch=1),
    _committed(6, topics=_BY_ID, generation_id_or_member_epoch=5),
    _committed(6, topics=_BY_ID, producer_epoch=9),
    _committed(6, topics=_BY_ID, group_id=""),
    _committed(6, topics=_BY_ID, transactional_id=""),
)
case("txn-commit-unknown", topic(), _committed(producer_id=5, producer_epoch=0))
case(
    "txn-commit-of-nobody",
    _BEGUN,
    _offsets(),
    _committed(member_id="m", generation_id_or_member_epoch=1),
    _committed(generation_id_or_member_epoch=5),
)
case("txn-commit-without-group", _BEGUN, _committed(group_id=""))
case(
    "txn-commit-odd-partitions",
    _BEGUN,
    _offsets(),
    _committed(
        topics=[
            {"name": "$t", "partitions": [{"partition_index": 7, "committed_offset": 5}]},
            {"name": "$t2", "partitions": [{"partition_index": 0, "committed_offset": 5}]},
        ]
    ),
)
case(
    "txn-commit-and-fetch",
    _BEGUN,
    _offsets(),
    _committed(),
    *(
        ask(
            "OffsetFetch",
            7,
            group_id="$g",
            require_stable=stable,
            topics=[{"name": "$t", "partition_indexes": [0]}],
        )
        for stable in (False, True)
    ),
    _ended(committed=False),
    ask(
        "OffsetFetch",
        7,
        group_id="$g",
        require_stable=True,
        again=(88,),
        topics=[{"name": "$t", "partition_indexes": [0]}],
    ),
)


def _produced(
    version: int = 9,
    sequence: int = 0,
    epoch: int | None = None,
    name: Any = "$x",
    producer: int | None = None,
) -> Step:
    def data(names: Any) -> bytes:
        return batch(
            b"v",
            producer_id=names["$p"] if producer is None else producer,
            producer_epoch=names["$e"] if epoch is None else epoch,
            base_sequence=sequence,
            transactional=True,
        )

    return ask(
        "Produce",
        version,
        acks=-1,
        timeout_ms=2000,
        transactional_id=name,
        again=(51,),
        topic_data=[{"name": "$t", "partition_data": [{"index": 0, "records": data}]}],
    )


case("txn-produce-not-added", _BEGUN, _produced())
case("txn-produce-not-added-v11", _BEGUN, _produced(11))
case("txn-produce-v12", _BEGUN, _produced(12), _ended(5))
case("txn-produce-v12-late-sequence", _BEGUN, _produced(12, 5))
case("txn-produce-without-id", _BEGUN, _added(), _produced(name=None))
case(
    "txn-produce-unknown-producer",
    _BEGUN,
    _produced(producer=123_456_789),
    _produced(12, producer=123_456_789),
)
case("txn-produce-wrong-epoch", _BEGUN, _added(), _produced(epoch=9), _produced(12, epoch=9))
case("txn-produce-other-id", _BEGUN, _added(), _produced(name="$x2"))
case(
    "txn-produce-and-fetch",
    _BEGUN,
    _added(),
    _produced(),
    *(
        ask(
            "Fetch",
            12,
            max_wait_ms=0,
            min_bytes=1,
            session_epoch=-1,
            isolation_level=level,
            topics=[
                {
                    "topic": "$t",
                    "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}],
                }
            ],
        )
        for level in (0, 1)
    ),
    ask(
        "ListOffsets",
        7,
        replica_id=-1,
        isolation_level=1,
        topics=[{"name": "$t", "partitions": [{"partition_index": 0, "timestamp": -1}]}],
    ),
)

# --- views ---

case(
    "describe-transactions-unknown",
    ask("DescribeTransactions", 0, transactional_ids=["$x", ""]),
    ask("DescribeTransactions", 0, transactional_ids=[]),
)
case(
    "describe-transaction",
    _BEGUN,
    ask("DescribeTransactions", 0, transactional_ids=["$x"]),
    _added(),
    ask("DescribeTransactions", 0, transactional_ids=["$x", "$x"]),
)
case(
    "list-transactions-odd-filters",
    ask("ListTransactions", 0, state_filters=["Nonsense"]),
    ask("ListTransactions", 0, producer_id_filters=[-5]),
    ask("ListTransactions", 1, producer_id_filters=[-5], duration_filter=-7),
    ask("ListTransactions", 2, transactional_id_pattern="a("),
    ask("ListTransactions", 2, transactional_id_pattern="no-such-id"),
)
case(
    "list-transactions-one",
    _BEGUN,
    ask("ListTransactions", 2, transactional_id_pattern="list-transactions-one-x"),
    ask("ListTransactions", 2, transactional_id_pattern="list-transactions-on"),
    ask("ListTransactions", 0, state_filters=["Dead", "PrepareEpochFence"]),
)
case(
    "describe-producers-unknown",
    topic(),
    ask(
        "DescribeProducers",
        0,
        topics=[
            {"name": "$t", "partition_indexes": [0, 7, -1]},
            {"name": "$t2", "partition_indexes": [0]},
            {"name": "a/b", "partition_indexes": [0]},
            {"name": "", "partition_indexes": [0]},
        ],
    ),
)
case(
    "describe-producers",
    _BEGUN,
    _added(),
    _produced(),
    ask("DescribeProducers", 0, topics=[{"name": "$t", "partition_indexes": [0]}]),
)


def _marker(
    version: int = 1,
    producer: Any = 123_456_789,
    epoch: Any = 0,
    coordinator: int = 0,
    index: int = 0,
    **more: Any,
) -> Step:
    return ask(
        "WriteTxnMarkers",
        version,
        markers=[
            {
                "producer_id": producer,
                "producer_epoch": epoch,
                "transaction_result": True,
                "coordinator_epoch": coordinator,
                "topics": [{"name": "$t", "partition_indexes": [index]}],
                **more,
            }
        ],
    )


case("marker-of-nobody", topic(), _marker(), _marker(coordinator=-5), _marker(epoch=-1))
case("marker-unknown-partition", topic(), _marker(index=7))
case("marker-unknown-topic", _marker())
case("marker-none", ask("WriteTxnMarkers", 1, markers=[]))
case("marker-v2", topic(), _marker(2, transaction_version=2), _marker(2, transaction_version=9))
