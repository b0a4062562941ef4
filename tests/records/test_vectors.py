"""Batches that Apache Kafka wrote: read to the same records, and written again to the same bytes."""

from __future__ import annotations

import base64
import io
import json
import re
from collections import Counter
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from coordwire.capture.entries import FrameEntry
from coordwire.capture.reader import Capture
from coordwire.errors import CoordwireError, CorruptBatch
from coordwire.records import RecordBatch, batches, record_sets

from .data import again, archived, lines

VECTORS = list(archived("batches"))
HOSTILE = list(archived("hostile-batches"))
CAPTURED = list(lines("captured"))
ADDRESS = itemgetter("id")
CAPTURES = Path(__file__).parent.parent / "data" / "captures"


def b64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


@pytest.mark.parametrize("vector", VECTORS, ids=ADDRESS)
def test_records_and_headers(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    reader = batches(data)
    results = list(reader)
    records = [
        [r.offset, r.timestamp, b64(r.key), b64(r.value), [[k, b64(v)] for k, v in r.headers]]
        for batch in results
        for r in batch
    ]
    fields = ("offset", "timestamp", "key_b64", "value_b64", "headers")
    assert records == [[r[field] for field in fields] for r in vector["records"]]
    assert bytes(reader.remainder) == data[vector["valid_bytes"] :]
    assert len(results) == len(vector["batches"])
    at = 0
    for batch, facts in zip(results, vector["batches"], strict=True):
        check_facts(batch, facts)
        assert batch.position == at
        at += batch.size


def check_facts(batch: RecordBatch, facts: dict[str, Any]) -> None:
    for name in set(facts) - {"valid", "n_records", "control"}:
        assert getattr(batch, name) == facts[name], name
    assert batch.is_control == facts.get("control", False)
    if batch.magic == 2:
        assert batch.count == facts["n_records"]


@pytest.mark.parametrize("vector", VECTORS, ids=ADDRESS)
def test_written_again(vector: dict[str, Any]) -> None:
    for batch in batches(bytes.fromhex(vector["hex"])):
        data = again(batch)
        if batch.codec in ("none", "gzip", "lz4"):  # Java's bytes, the others' only mean the same
            assert data == batch.raw
        else:
            (copy,) = batches(data)
            assert list(copy) == list(batch)
            assert copy.max_timestamp == batch.max_timestamp


@pytest.mark.parametrize("vector", HOSTILE, ids=ADDRESS)
def test_hostile(vector: dict[str, Any]) -> None:
    verdicts = vector["batches"]
    sound = all(b["ensure_valid"] == "OK" and b["iterate"] == "OK" for b in verdicts)
    error = None
    try:
        count = sum(1 for batch in batches(bytes.fromhex(vector["hex"])) for _ in batch)
    except CorruptBatch as refusal:
        error = refusal
    if error is not None:
        assert error.reason
        assert 0 <= error.position <= len(vector["hex"]) // 2
        assert not vector["id"].endswith("/valid")
        return
    assert all(b["ensure_valid"] == "OK" for b in verdicts)
    if vector["kafka"] == "OK" and sound:
        assert count == sum(len(b.get("records") or []) for b in verdicts)


@pytest.mark.parametrize("frame", CAPTURED, ids=lambda frame: f"{frame['file']}-{frame['frame']}")
def test_captured(frame: dict[str, Any]) -> None:
    results = [batch for hexed in frame["sets"] for batch in batches(bytes.fromhex(hexed))]
    assert len(results) == len(frame["batches"])
    for batch, told in zip(results, frame["batches"], strict=True):
        match = re.fullmatch(r"([^!:]*)(!crc)?:(\d+)", told)
        assert match is not None
        assert kind(batch) == match[1]
        if match[2]:
            with pytest.raises(CorruptBatch, match="CRC"):
                list(batch)
        else:
            assert len(list(batch)) == int(match[3])
            assert batch.codec != "none" or bytes(batch.raw) == again(batch)


def kind(batch: RecordBatch) -> str:
    """In the words of the data's README."""
    flags = {"/control": batch.is_control, "/txn": batch.transactional, "/pid": batch.producer_id != -1}
    return f"m{batch.magic}/{batch.codec}" + "".join(word for word, flag in flags.items() if flag)


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.pcap")), ids=lambda path: path.name)
def test_captures(path: Path) -> None:
    """The batches of real traffic are those that Apache Kafka's classes found there."""
    told = json.loads((CAPTURES / "batches.json").read_text()).get(path.name, {})
    counts = Counter(
        f"{kind(batch)}:{len(list(batch))}"
        for entry in Capture(io.BytesIO(path.read_bytes()), path.name).entries()
        if isinstance(entry, FrameEntry) and entry.message is not None
        for records in record_sets(entry.message)
        for batch in records.batches()
    )
    assert counts == told


def test_only_our_errors() -> None:
    for vector in HOSTILE + VECTORS:
        data = bytes.fromhex(vector["hex"])
        for at in range(0, min(len(data), 200), 7):
            with suppress(CoordwireError):
                for batch in batches(data[:at] + b"\xff" + data[at + 1 :]):
                    list(batch)
