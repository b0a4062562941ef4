"""Producer snapshots, leader epochs, the topic's id: read as Kafka wrote them, refused where it refuses."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire.errors import DecodeError, Malformed, Truncated, UnsupportedVersion
from coordwire.segments import (
    EpochEntry,
    ProducerEntry,
    Segment,
    read_leader_epochs,
    read_metadata,
    read_snapshot,
    write_snapshot,
)

from .build import batch, write

ENTRY = ProducerEntry(
    producer_id=6, epoch=5, last_sequence=4, last_offset=59, offset_delta=1, timestamp=1760003604000,
    coordinator_epoch=0, current_txn_first_offset=55,
)  # fmt: skip


def test_a_snapshot_there_and_back() -> None:
    data = write_snapshot([ENTRY])
    assert len(data) == 10 + 46
    assert read_snapshot(data).producer_entries == [ENTRY]
    assert read_snapshot(write_snapshot([])).producer_entries == []


@given(st.integers(0, 55), st.integers(1, 255))
def test_a_snapshot_with_a_changed_byte(at: int, change: int) -> None:
    data = bytearray(write_snapshot([ENTRY]))
    data[at] ^= change
    with pytest.raises((Malformed, UnsupportedVersion)):
        read_snapshot(bytes(data))


@given(st.integers(0, 55))
def test_a_snapshot_cut_short(size: int) -> None:
    with pytest.raises((Truncated, Malformed)):
        read_snapshot(write_snapshot([ENTRY])[:size])


def test_leader_epochs() -> None:
    assert read_leader_epochs(b"0\n2\n0 0\n2 71\n") == [EpochEntry(0, 0), EpochEntry(2, 71)]
    assert read_leader_epochs(b"0\n0\n") == []
    assert read_leader_epochs(b"") == []


@pytest.mark.parametrize(
    ("data", "offset", "path"),
    [
        (b"1\n0\n", 0, "version"),
        (b"0\n2\n0 0\n", 2, "entries"),
        (b"0\nx\n", 2, "entries"),
        (b"0\n1\n0 0 0\n", 4, "entries[0]"),
        (b"0\n2\n0 0\nzero 1\n", 8, "entries[1]"),
        (b"0\n1\n9999999999 1\n", 4, "entries[0]"),
        (b"0\n1\n1 9999999999999999999\n", 4, "entries[0]"),
    ],
)
def test_leader_epochs_that_are_none(data: bytes, offset: int, path: str) -> None:
    with pytest.raises(Malformed) as error_info:
        read_leader_epochs(data)
    assert (error_info.value.position, error_info.value.path) == (offset, path)


def test_partition_metadata() -> None:
    metadata = read_metadata(b"version: 0\ntopic_id: sFavgQ4QSrCtu69D3jt4Zw")
    assert metadata == (0, UUID("b056af81-0e10-4ab0-adbb-af43de3b7867"))


@pytest.mark.parametrize(
    "data",
    [b"", b"version: 0\n", b"version: 1\ntopic_id: sFavgQ4QSrCtu69D3jt4Zw", b"version: 0\ntopic_id: short",
     b"version: 0\nname: x\n", b"\xff\xfe"],
)  # fmt: skip
def test_partition_metadata_that_is_none(data: bytes) -> None:
    with pytest.raises(Malformed):
        read_metadata(data)


@given(st.binary(max_size=80))
def test_any_bytes(data: bytes) -> None:
    for read in (read_snapshot, read_leader_epochs, read_metadata):
        refusal = None
        try:
            read(data)
        except DecodeError as error:
            refusal = error
        assert refusal is None or 0 <= refusal.position <= len(data)


def test_beside_the_log(tmp_path: Path) -> None:
    path = write(tmp_path, batch(60), base=60)
    with Segment(path) as segment:
        assert segment.producer_snapshot is None
        assert segment.leader_epochs is None
        assert segment.metadata is None
    path.with_suffix(".snapshot").write_bytes(write_snapshot([ENTRY]))
    path.with_name("leader-epoch-checkpoint").write_bytes(b"0\n1\n0 0\n")
    path.with_name("partition.metadata").write_bytes(b"version: 0\ntopic_id: sFavgQ4QSrCtu69D3jt4Zw")
    with Segment(path) as segment:
        assert segment.producer_snapshot is not None
        assert segment.producer_snapshot.producer_entries == [ENTRY]
        assert segment.leader_epochs == [(0, 0)]
        assert segment.metadata is not None
        assert segment.metadata.version == 0
