"""Records written and read: odd batches, sequences and epochs, sessions of fetches, limits."""

from __future__ import annotations

from typing import Any

from tests.broker.corners.script import Step, ask, case, quiet, raw, topic, write
from tests.broker.corners.values import NO_TOPIC, batch

_HELLO = batch(b"hello")


def _produced(
    *records: bytes | None, version: int = 9, acks: int = -1, name: Any = "$t", index: int = 0, **more: Any
) -> Step:
    where = {"topic_id": name} if version >= 13 else {"name": name}
    data = [{"index": index, "records": record} for record in records]
    return ask(
        "Produce", version, acks=acks, timeout_ms=2000, topic_data=[{**where, "partition_data": data}], **more
    )


for v in (3, 8, 9, 12):
    case(f"produce-v{v}", topic(), _produced(_HELLO, version=v))
case("produce-v13", topic(), _produced(_HELLO, version=13, name="$t#id"))
case("produce-unknown-id", _produced(_HELLO, version=13, name=NO_TOPIC))
case("produce-unknown-topic", _produced(_HELLO))
case("produce-unknown-partition", topic(), _produced(_HELLO, index=7), _produced(_HELLO, index=-1))
case("produce-bad-topic-name", _produced(_HELLO, name="a/b"))
case("produce-acks-2", topic(), _produced(_HELLO, acks=2))
case("produce-acks-minus-2", topic(), _produced(_HELLO, acks=-2))
case("produce-acks-1", topic(), _produced(_HELLO, acks=1))
case(
    "produce-acks-0",
    topic(),
    ask(
        "Produce",
        9,
        acks=0,
        timeout_ms=100,
        waits=True,
        topic_data=[{"name": "$t", "partition_data": [{"index": 0, "records": _HELLO}]}],
    ),
    ask(
        "ListOffsets",
        7,
        replica_id=-1,
        again=(),
        topics=[{"name": "$t", "partitions": [{"partition_index": 0, "timestamp": -1}]}],
    ),
)
case(
    "produce-acks-0-unknown",
    ask(
        "Produce",
        9,
        acks=0,
        timeout_ms=100,
        waits=True,
        topic_data=[{"name": "$t", "partition_data": [{"index": 0, "records": _HELLO}]}],
    ),
    raw(b"", patience=2.0),
)
case("produce-nothing", ask("Produce", 9, acks=-1, timeout_ms=100, topic_data=[]))
case(
    "produce-no-partitions",
    topic(),
    ask("Produce", 9, acks=-1, timeout_ms=100, topic_data=[{"name": "$t", "partition_data": []}]),
)
case("produce-null-records", topic(), _produced(None))
case("produce-no-bytes", topic(), _produced(b""))
case("produce-garbage", topic(), _produced(b"\x01" * 80))
case("produce-cut", topic(), _produced(_HELLO[:-3]))
case("produce-wrong-crc", topic(), _produced(_HELLO[:17] + b"\0\0\0\0" + _HELLO[21:]))
case("produce-two-batches", topic(), _produced(_HELLO + batch(b"more")))
case("produce-partition-twice", topic(), _produced(_HELLO, batch(b"more")))
case("produce-base-offset", topic(), _produced(batch(b"x")[:0] + (5).to_bytes(8, "big") + _HELLO[8:]))
case("produce-magic-1", topic(), _produced(_HELLO[:16] + b"\x01" + _HELLO[17:]))
case("produce-magic-3", topic(), _produced(_HELLO[:16] + b"\x03" + _HELLO[17:]))
case(
    "produce-control",
    topic(),
    _produced(batch(b"x", control=True, producer_id=1, producer_epoch=0, base_sequence=0)),
)
case("produce-append-time-type", topic(), _produced(batch(b"x", timestamp_type="LogAppendTime")))
case(
    "produce-append-time-type-gzip",
    topic(),
    _produced(batch(b"x", timestamp_type="LogAppendTime", codec="gzip")),
)
for kind in ("CreateTime", "LogAppendTime"):
    case(
        f"produce-append-time-type-in-{kind}",
        topic(message_timestamp_type=kind),
        *(
            _produced(batch(b"x", timestamp_type="LogAppendTime", max_timestamp=latest))
            for latest in (-1, 1_700_000_000_000, 1 << 45)
        ),
    )
case("produce-far-future", topic(), _produced(batch(b"x", timestamp=1 << 45)))
case("produce-negative-time", topic(), _produced(batch(b"x", timestamp=-1)))
case("produce-append-time-topic", topic(message_timestamp_type="LogAppendTime"), _produced(_HELLO))
case("produce-too-large", topic(max_message_bytes="100"), _produced(batch(b"x" * 200)))
case("produce-just-fits", topic(max_message_bytes=str(len(_HELLO) - 12)), _produced(_HELLO))
case("produce-no-key-compacted", topic(cleanup_policy="compact"), _produced(batch(b"x", b"y")))
case("produce-key-compacted", topic(cleanup_policy="compact"), _produced(batch(b"x", key=b"k")))
for name, key_type, log in (
    ("produce-internal", 0, "__consumer_offsets"),
    ("produce-transaction-state", 1, "__transaction_state"),
):
    case(
        name,
        quiet("FindCoordinator", 4, again=(15,), key_type=key_type, coordinator_keys=["$x"]),  # makes the log
        _produced(_HELLO, name=log),
    )
case("produce-zstd-v6", topic(), _produced(batch(b"x", codec="zstd"), version=6))
case("produce-zstd-v7", topic(), _produced(batch(b"x", codec="zstd"), version=7))
case("produce-gzip", topic(), _produced(batch(b"x", codec="gzip")))

# --- idempotence ---

_ID = quiet(
    "InitProducerId", 4, transactional_id=None, transaction_timeout_ms=1000, keep={"p": "producer_id"}
)


def _idempotent(sequence: int, epoch: int = 0, producer: int | None = None, count: int = 1) -> Step:
    def data(names: Any) -> bytes:
        number = names["$p"] if producer is None else producer
        values = [b"v"] * count
        return batch(*values, producer_id=number, producer_epoch=epoch, base_sequence=sequence)

    return ask(
        "Produce",
        9,
        acks=-1,
        timeout_ms=2000,
        topic_data=[{"name": "$t", "partition_data": [{"index": 0, "records": data}]}],
    )


case("idempotent-in-order", topic(), _ID, _idempotent(0), _idempotent(1), _idempotent(2))
case("idempotent-twice", topic(), _ID, _idempotent(0), _idempotent(0), _idempotent(1), _idempotent(0))
case("idempotent-gap", topic(), _ID, _idempotent(0), _idempotent(2))
case("idempotent-starts-late", topic(), _ID, _idempotent(5))
case("idempotent-old-duplicate", topic(), _ID, *(_idempotent(number) for number in range(7)), _idempotent(0))
case(
    "idempotent-overlap",
    topic(),
    _ID,
    _idempotent(0, count=3),
    _idempotent(1, count=1),
    _idempotent(0, count=2),
)
case(
    "idempotent-wrong-epoch",
    topic(),
    _ID,
    _idempotent(0, epoch=1),
    _idempotent(1, epoch=0),
    _idempotent(0, epoch=3),
)
case("idempotent-new-epoch-late", topic(), _ID, _idempotent(0), _idempotent(5, epoch=1))
case("idempotent-negative-epoch", topic(), _ID, _idempotent(0, epoch=-1))
case("idempotent-negative-sequence", topic(), _ID, _idempotent(-1))
case(
    "idempotent-unknown-producer",
    topic(),
    _idempotent(0, producer=123_456_789),
    _idempotent(3, producer=123_456_790),
)
case("idempotent-wraps", topic(), _ID, _idempotent((1 << 31) - 1), _idempotent(0))

# --- fetch ---

_WRITTEN = [*topic("$t", 2), write("$t", 0, batch(b"a", b"b")), write("$t", 0, batch(b"c"))]


def _fetched(
    offset: int = 0,
    *,
    version: int = 12,
    index: int = 0,
    name: Any = "$t",
    most: int = 1 << 20,
    fields: dict[str, Any] | None = None,
    **part: Any,
) -> dict[str, Any]:
    where = {"topic_id": name} if version >= 13 else {"topic": name}
    partition = {"partition": index, "fetch_offset": offset, "partition_max_bytes": most, **part}
    return {
        "max_wait_ms": 0,
        "min_bytes": 1,
        "topics": [{**where, "partitions": [partition]}],
        "session_epoch": -1,
        **(fields or {}),
    }


def _fetch(offset: int = 0, *, version: int = 12, keep: dict[str, str] | None = None, **more: Any) -> Step:
    made = _fetched(offset, version=version, **more)
    if version < 7:
        del made["session_epoch"]
    return ask("Fetch", version, keep=keep, **made)


for v in (4, 7, 11, 12):
    case(f"fetch-v{v}", _WRITTEN, _fetch(0, version=v))
for v in (13, 16, 17, 18):
    case(f"fetch-v{v}", _WRITTEN, _fetch(0, version=v, name="$t#id"))
for offset in (-1, -5, 1, 2, 3, 4, 1 << 60):
    case(f"fetch-from-{offset}", _WRITTEN, _fetch(offset))
case(
    "fetch-below-start",
    _WRITTEN,
    quiet(
        "DeleteRecords",
        2,
        topics=[{"name": "$t", "partitions": [{"partition_index": 0, "offset": 2}]}],
        timeout_ms=2000,
    ),
    _fetch(0),
    _fetch(1),
    _fetch(2),
)
case("fetch-unknown", topic(), _fetch(index=7), _fetch(index=-1), _fetch(name="$t2"), _fetch(name=""))
case("fetch-unknown-id", _fetch(version=13, name=NO_TOPIC))
case("fetch-nothing", ask("Fetch", 12, max_wait_ms=0, min_bytes=1, session_epoch=-1, topics=[]))
case(
    "fetch-zero-bytes",
    _WRITTEN,
    _fetch(most=0),
    _fetch(most=1),
    _fetch(fields={"max_bytes": 0}),
    _fetch(fields={"max_bytes": 1}),
)
case("fetch-negative-bytes", _WRITTEN, _fetch(most=-1), _fetch(fields={"max_bytes": -1}))
case(
    "fetch-negative-wait",
    _WRITTEN,
    _fetch(3, fields={"max_wait_ms": -1}),
    _fetch(3, fields={"min_bytes": -1}),
)
case("fetch-min-bytes-zero", _WRITTEN, _fetch(3, fields={"max_wait_ms": 500, "min_bytes": 0}))
case("fetch-epochs", _WRITTEN, *(_fetch(current_leader_epoch=epoch) for epoch in (-1, 0, 5)))
for v in (12, 16):
    case(
        f"fetch-negative-epoch-v{v}",
        _WRITTEN,
        _fetch(current_leader_epoch=-7, version=v, name="$t" if v < 13 else "$t#id"),
        _fetch(current_leader_epoch=5, version=v, name="$t" if v < 13 else "$t#id"),
    )
case("fetch-last-fetched-epoch", _WRITTEN, *(_fetch(last_fetched_epoch=epoch) for epoch in (-1, 0, 5)))
case("fetch-diverging-offset", _WRITTEN, _fetch(99, last_fetched_epoch=0))
case("fetch-committed", _WRITTEN, _fetch(fields={"isolation_level": 1}))
case("fetch-isolation-9", _WRITTEN, _fetch(fields={"isolation_level": 9}))
case(
    "fetch-partition-twice",
    _WRITTEN,
    ask(
        "Fetch",
        12,
        max_wait_ms=0,
        min_bytes=1,
        session_epoch=-1,
        topics=[
            {
                "topic": "$t",
                "partitions": [
                    {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000},
                    {"partition": 0, "fetch_offset": 2, "partition_max_bytes": 1000},
                ],
            }
        ],
    ),
)
case("fetch-as-replica", _WRITTEN, _fetch(version=12, fields={"replica_id": 7}))
case("fetch-as-debugger", _WRITTEN, _fetch(version=12, fields={"replica_id": -2}))
case("fetch-other-cluster", _WRITTEN, _fetch(version=12, fields={"cluster_id": "another"}))

_SESSION = {"session_epoch": 0}
_BEGIN = _fetch(fields=_SESSION, keep={"s": "session_id"})


def _in_session(epoch: int, session: Any = "$s", **more: Any) -> Step:
    return ask(
        "Fetch",
        12,
        max_wait_ms=0,
        min_bytes=1,
        session_id=session,
        session_epoch=epoch,
        **({"topics": []} | more),
    )


case(
    "session-of-nobody",
    _WRITTEN,
    _in_session(1, 12345),
    _in_session(0, 12345),
    _in_session(-1, 12345),
    _in_session(5, 0),
)
case(
    "session-epochs",
    _WRITTEN,
    _BEGIN,
    _in_session(1),
    _in_session(1),
    _in_session(3),
    _in_session(2),
    _in_session(-5),
)
case("session-epoch-minus-2", _WRITTEN, _BEGIN, _in_session(-2))
case(
    "session-forgets-all",
    _WRITTEN,
    _BEGIN,
    _in_session(1, forgotten_topics_data=[{"topic": "$t", "partitions": [0]}]),
    _in_session(2),
)
case(
    "session-forgets-unknown",
    _WRITTEN,
    _BEGIN,
    _in_session(1, forgotten_topics_data=[{"topic": "$t2", "partitions": [0, 7]}]),
    _in_session(2),
)
case("session-ends", _WRITTEN, _BEGIN, _in_session(-1), _in_session(1))
case(
    "session-begins-anew",
    _WRITTEN,
    _BEGIN,
    _in_session(
        0,
        topics=[
            {"topic": "$t", "partitions": [{"partition": 1, "fetch_offset": 0, "partition_max_bytes": 100}]}
        ],
    ),
    _in_session(1),
)
case(
    "session-adds",
    _WRITTEN,
    _BEGIN,
    _in_session(
        1,
        topics=[
            {"topic": "$t", "partitions": [{"partition": 1, "fetch_offset": 0, "partition_max_bytes": 100}]}
        ],
    ),
    _in_session(
        2,
        topics=[
            {"topic": "$t", "partitions": [{"partition": 9, "fetch_offset": 0, "partition_max_bytes": 100}]}
        ],
    ),
    _in_session(3),
)
case(
    "session-with-names-then-ids",
    _WRITTEN,
    _BEGIN,
    ask("Fetch", 13, max_wait_ms=0, min_bytes=1, session_id="$s", session_epoch=1, topics=[]),
    _in_session(1),
    _in_session(2),
)
case("session-of-nothing", ask("Fetch", 12, max_wait_ms=0, min_bytes=1, session_epoch=0, topics=[]))
