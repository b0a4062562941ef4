"""Control records: each type as its message, there and back, and what isn't known."""

from __future__ import annotations

import pytest

from coordwire.errors import CorruptBatch, WrongType
from coordwire.messages.control_records import (
    EndTxnMarker,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from coordwire.records import ControlRecord, ControlType, Record, batches, control_record, encode_batch

from .data import archived


def read(*records: Record) -> list[ControlRecord]:
    (batch,) = batches(encode_batch(records, control=True))
    return list(batch.control_records())


@pytest.mark.parametrize(
    ("kind", "value", "version"),
    [
        (ControlType.ABORT, EndTxnMarker(coordinator_epoch=3), 0),
        (ControlType.COMMIT, EndTxnMarker(coordinator_epoch=2**31 - 1), 0),
        (ControlType.LEADER_CHANGE, LeaderChangeMessage(leader_id=2, voters=[LeaderChangeMessageVoter()]), 0),
        (ControlType.LEADER_CHANGE, LeaderChangeMessage(version=1, leader_id=2), 1),
        (ControlType.SNAPSHOT_HEADER, SnapshotHeaderRecord(last_contained_log_timestamp=9), 0),
        (ControlType.SNAPSHOT_FOOTER, SnapshotFooterRecord(), 0),
        (ControlType.KRAFT_VERSION, KRaftVersionRecord(k_raft_version=1), 0),
        (ControlType.KRAFT_VOTERS, VotersRecord(), 0),
    ],
)
def test_there_and_back(kind: ControlType, value: EndTxnMarker, version: int) -> None:
    record = control_record(kind, value, version=version, timestamp=5)
    assert read(record) == [ControlRecord(0, 5, kind, 0, value)]


def test_the_pages_markers_byte_by_byte() -> None:
    """Key: version int16 of 0, type int16, 0 to abort and 1 to commit; value: its version, the coordinator's
    epoch."""
    for kind, key in ((ControlType.ABORT, b"\0\0\0\0"), (ControlType.COMMIT, b"\0\0\0\1")):
        record = control_record(kind, EndTxnMarker(coordinator_epoch=0x01020304))
        assert (record.key, record.value) == (key, b"\0\0\1\2\3\4")
        (result,) = read(Record(key=key, value=b"\0\0\0\0\0\x09"))
        assert result == ControlRecord(0, -1, kind, 0, EndTxnMarker(coordinator_epoch=9))


def test_vectors() -> None:
    seen = set()
    for vector in archived("batches"):
        expected_facts = [r for r in vector["records"] if "control_type" in r]
        results = [
            record for batch in batches(bytes.fromhex(vector["hex"])) for record in batch.control_records()
        ]
        for record, facts in zip(results, expected_facts, strict=True):
            assert isinstance(record.type, ControlType)
            assert record.type.name == facts["control_type"]
            assert (record.offset, record.timestamp) == (facts["offset"], facts["timestamp"])
            if isinstance(record.value, EndTxnMarker):
                assert record.value.coordinator_epoch == facts["coordinator_epoch"]
            seen.add(record.type)
    assert {ControlType.ABORT, ControlType.COMMIT} < seen


def test_unknown_types_pass_through() -> None:
    (result,) = read(Record(key=b"\0\0\0\x63", value=b"anything"))
    assert (result.type, result.version, result.value) == (99, 0, b"anything")
    assert not isinstance(result.type, ControlType)
    (result,) = read(Record(key=b"\0\0\0\x01", value=b"\0\x07later"))
    assert result.value == b"\0\x07later"
    (result,) = read(Record(key=b"\0\x05\0\x01more", value=b"\0\0\0\0\0\x07"))
    assert (result.version, result.value) == (5, EndTxnMarker(coordinator_epoch=7))


@pytest.mark.parametrize(
    ("key", "value", "path"),
    [
        (None, b"", "records[0].key"),
        (b"\0\0\0", b"", "records[0].key"),
        (b"\xff\xff\0\0", b"", "records[0].key"),
        (b"\0\0\0\0", None, "records[0].value"),
        (b"\0\0\0\0", b"\0", "records[0].value"),
        (b"\0\0\0\0", b"\xff\xff\0\0\0\0", "records[0].value"),
        (b"\0\0\0\0", b"\0\0\0\0", "records[0].value.coordinator_epoch"),
    ],
)
def test_malformed(key: bytes | None, value: bytes | None, path: str) -> None:
    with pytest.raises(CorruptBatch) as error_info:
        read(Record(key=key, value=value))
    assert error_info.value.path == path


def test_other_batches_have_none() -> None:
    (batch,) = batches(encode_batch([Record(key=b"\0\0\0\0")]))
    assert list(batch.control_records()) == []


def test_wrong_message() -> None:
    with pytest.raises(WrongType):
        control_record(ControlType.ABORT, VotersRecord())
