"""Segments of coordinators' logs for the tests: Kafka's own records, and small ones put together here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coordwire.logs import LogRecord, encode_log_record
from coordwire.messages import EndTxnMarker, OffsetCommitKey, OffsetCommitValue
from coordwire.records import ControlType, Record, control_record, encode_batch

KAFKAS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "data" / "logs" / "records.jsonl").read_text().splitlines()
]
"""One record of each type and version, as Apache Kafka wrote it, with what it says."""

TIME = 1_700_000_000_000


def kafkas_segment(log: str) -> bytes:
    """Kafka's own records of one log, a batch each, a second apart."""
    return b"".join(
        encode_batch(
            [
                Record(
                    timestamp=TIME + 1000 * offset, key=_bytes(one["key_hex"]), value=_bytes(one["value_hex"])
                )
            ],
            base_offset=offset,
        )
        for offset, one in enumerate(of_log(log))
    )


def of_log(log: str) -> list[dict[str, Any]]:
    return [one for one in KAFKAS if one["log"] == log]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def commit(group: str, offset: int | None, topic: str = "orders", partition: int = 0) -> Record:
    """A commit, or with an offset of None a tombstone."""
    key = OffsetCommitKey(group=group, topic=topic, partition=partition)
    value = None
    if offset is not None:
        value = OffsetCommitValue(offset=offset, leader_epoch=4, metadata="", commit_timestamp=TIME)
    version = None if value is None else 3
    pair = encode_log_record(LogRecord(log="consumer_offsets", type=1, key=key, value=value, version=version))
    return Record(timestamp=TIME, key=pair[0], value=pair[1])


def plain(base_offset: int, *records: Record) -> bytes:
    return encode_batch(records, base_offset=base_offset)


def in_transaction(base_offset: int, records: Sequence[Record], producer_id: int = 9) -> bytes:
    return encode_batch(
        records, base_offset=base_offset, producer_id=producer_id, producer_epoch=2, base_sequence=0,
        transactional=True,
    )  # fmt: skip


def marker(base_offset: int, kind: ControlType, producer_id: int = 9) -> bytes:
    record = control_record(kind, EndTxnMarker(coordinator_epoch=5), timestamp=TIME)
    return encode_batch(
        [record], base_offset=base_offset, producer_id=producer_id, producer_epoch=2, transactional=True,
        control=True,
    )  # fmt: skip
