"""What coordwire reads in a log, in the words of `kafka-dump-log --print-data-log --deep-iteration` (4.3).

Every fact that the tool prints comes from coordwire's own reading, so that equal texts are equal readings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from coordwire.codec import Message
from coordwire.jsonform import to_json
from coordwire.records import ControlRecord, ControlType, Record, RecordBatch, batches

_KRAFT = {
    ControlType.LEADER_CHANGE: "LeaderChange:",
    ControlType.SNAPSHOT_HEADER: "SnapshotHeader",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooter",
    ControlType.KRAFT_VERSION: "KRaftVersion",
    ControlType.KRAFT_VOTERS: "KRaftVoters",
}
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def dump(name: str, data: bytes) -> str:
    """The tool's text about the file of this name with these bytes."""
    return "".join(f"{line}\n" for line in _lines(name, data))


def _lines(name: str, data: bytes) -> Iterator[str]:
    stem, _, suffix = name.rpartition(".")
    if suffix == "checkpoint":
        end, epoch = map(int, stem.split("-"))
        yield f"Snapshot end offset: {end}, epoch: {epoch}"
    else:
        yield f"Log starting offset: {int(stem)}"
    for batch in batches(data):
        yield _batch(batch)
        control = iter(list(batch.control_records()))
        for index, record in enumerate(batch):
            told = _control(next(control)) if batch.is_control else _content(record)
            yield _record(batch, record, index) + told


def _batch(batch: RecordBatch) -> str:
    horizon = batch.delete_horizon_ms
    facts: dict[str, object] = {
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "count": batch.count,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "isTransactional": str(batch.transactional).lower(),
        "isControl": str(batch.is_control).lower(),
        "deleteHorizonMs": "OptionalLong.empty" if horizon is None else f"OptionalLong[{horizon}]",
        "position": batch.position,
        batch.timestamp_type: batch.max_timestamp,
        "size": batch.size,
        "magic": batch.magic,
        "compresscodec": batch.codec,
        "crc": batch.checksum,
        "isvalid": "true",
    }
    if batch.magic < 2:
        told = ("position", batch.timestamp_type, "size", "magic", "compresscodec", "crc", "isvalid")
        facts = {"offset": batch.last_offset} | {name: facts[name] for name in told}
    return _told(facts)


def _record(batch: RecordBatch, record: Record, index: int) -> str:
    sequence = -1 if batch.base_sequence == -1 else batch.base_sequence + record.offset - batch.base_offset
    facts: dict[str, object] = {
        "offset": record.offset,
        batch.timestamp_type: record.timestamp,
        "keySize": _size(record.key),
        "valueSize": _size(record.value),
    }
    if batch.magic == 2:
        facts |= {
            "sequence": sequence,
            "headerKeys": f"[{','.join(name for name, _ in record.headers)}]",
        }
    return f"| {_told(facts)}"


def _told(facts: Mapping[str, object]) -> str:
    return " ".join(f"{name}: {value}" for name, value in facts.items())


def _java_text(data: bytes) -> str:
    """As Java decodes UTF-8: it replaces an encoded surrogate as a whole, Python each of its bytes."""
    return _SURROGATE.sub(b"\xef\xbf\xbd", data).decode("utf-8", "replace")


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _content(record: Record) -> str:
    parts = {"key": record.key, "payload": record.value}
    return "".join(f" {name}: {_java_text(data)}" for name, data in parts.items() if data is not None)


def _control(record: ControlRecord) -> str:
    message = record.value
    assert isinstance(message, Message)
    if record.type in _KRAFT:
        version = getattr(message, "version", 0)
        form = json.dumps(to_json(message, version=version), separators=(",", ":"), ensure_ascii=False)
        return f" {_KRAFT[ControlType(record.type)]} {form}"
    epoch = getattr(message, "coordinator_epoch")  # noqa: B009 (of `EndTxnMarker` alone)
    return f" endTxnMarker: {ControlType(record.type).name} coordinatorEpoch: {epoch}"
