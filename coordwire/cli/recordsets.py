"""Record sets laid open for `--deep`: as JSON, whole, and as lines for people, shortened.

Strategy: the batches are read with `on_error="report"`, so that a bad one becomes an entry with its place,
length and reason among the others; the batch that a fetch was cut in is none of these. Rules: what the
records of one frame take is bounded by `MOST_BYTES`, and an entry says what is left out; nothing raises,
whatever the bytes or the libraries at hand. Keys, values and the values of headers are base64 in JSON, as
Kafka's own form has bytes.
"""

from __future__ import annotations

from binascii import b2a_base64
from codecs import utf_8_decode
from collections.abc import Iterator
from typing import Any

from coordwire.budget import limits
from coordwire.capture.model import format_time
from coordwire.cli.body import INDENT, Pieces, octets, quoted
from coordwire.errors import CodecUnavailable, CorruptBatch
from coordwire.jsonform import to_json
from coordwire.layout import Message
from coordwire.records import BadRange, ControlType, Record, RecordBatch, RecordSet, read_control, record_sets

MOST_BYTES = 16 << 20
"""What the records of one frame may take, and what a batch may decompress to."""

MOST_LINES = 20
"""Records of one batch that people are shown."""

MOST_TEXT = 120
"""Bytes of a key or value that people are shown."""

INCOMPLETE = "the rest of this batch isn't there"
"""What is said of a record set's last batch where a fetch was cut in it; no error."""

Part = tuple[RecordBatch, list[Record]] | BadRange


class Opener:
    """Opens the record sets of one frame."""

    def __init__(self) -> None:
        self._room = MOST_BYTES

    def parts(self, found: RecordSet) -> Iterator[Part]:
        """The batches of a record set with their records, and what of it can't be read or isn't shown."""
        reader = found.batches(on_error="report")
        while True:
            try:
                with limits(decompressed=MOST_BYTES):
                    each = next(reader, None)
                    records = [] if each is None or isinstance(each, BadRange) else self._records(each)
            except CodecUnavailable as error:
                yield BadRange(reader.position, len(reader.remainder), str(error))
                return
            if each is None:
                break
            yield each if isinstance(each, BadRange) else (each, records)
            if self._room < 0:
                reason = f"more than {MOST_BYTES:,} bytes of records in one frame: the others are left out"
                yield BadRange(reader.position, len(reader.remainder), reason)
                return
        if reader.remainder:
            yield BadRange(reader.position, len(reader.remainder), INCOMPLETE)

    def _records(self, batch: RecordBatch) -> list[Record]:
        """The records that there is room for."""
        records = []
        for record in batch:
            self._room -= _size(record)
            if self._room < 0:
                break
            records.append(record)
        return records


# --- JSON -----------------------------------------------------------------------------------------------


def forms(message: Message) -> dict[str, Any]:
    """The record sets in a message by their paths, as `embedded` has what hides in other bytes."""
    opener = Opener()
    return {
        found.path: {
            "type": "RecordSet",
            "version": None,
            "value": {"batches": [_part(part) for part in opener.parts(found)]},
        }
        for found in record_sets(message)
    }


def _part(part: Part) -> dict[str, Any]:
    if not isinstance(part, BadRange):
        return _batch(*part)
    place = {"offset": part.offset, "length": part.length}
    return {"incomplete": place} if part.reason == INCOMPLETE else {"error": {**place, "reason": part.reason}}


def _size(record: Record) -> int:
    """The bytes of a record's own, roughly."""
    headers = sum(16 + len(name) + len(value or b"") for name, value in record.headers)
    return 32 + len(record.key or b"") + len(record.value or b"") + headers


def _batch(batch: RecordBatch, records: list[Record]) -> dict[str, Any]:
    return {
        "position": batch.offset, "size": batch.size, "magic": batch.magic, "codec": batch.codec,
        "baseOffset": batch.base_offset, "lastOffset": batch.last_offset,
        "timestampType": batch.timestamp_type, "maxTimestamp": batch.max_timestamp,
        "checksum": batch.checksum, "partitionLeaderEpoch": batch.partition_leader_epoch,
        "producerId": batch.producer_id, "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence, "transactional": batch.transactional,
        "control": batch.is_control, "deleteHorizonMs": batch.delete_horizon_ms, "count": batch.count,
        "records": [_record(batch, record) for record in records],
    }  # fmt: skip


def _record(batch: RecordBatch, record: Record) -> dict[str, Any]:
    form: dict[str, Any] = {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _base64(record.key),
        "value": _base64(record.value),
        "headers": [[name, _base64(value)] for name, value in record.headers],
    }
    if batch.is_control:
        form["control"] = _control(record)
    return form


def _control(record: Record) -> dict[str, Any] | None:
    """What a control record says; None where it can't be read."""
    try:
        told = read_control(record)
    except CorruptBatch:
        return None
    inside = told.value
    if isinstance(inside, Message):
        value: Any = to_json(inside, version=getattr(inside, "version", 0))
    else:
        value = _base64(inside)
    return {
        "type": int(told.type),
        "name": told.type.name if isinstance(told.type, ControlType) else None,
        "value": value,
    }


def _base64(data: bytes | None) -> str | None:
    return None if data is None else b2a_base64(data, newline=False).decode()


# --- for people -----------------------------------------------------------------------------------------


def lines(opener: Opener, found: RecordSet, depth: int, width: int) -> Iterator[Pieces]:
    """The batches of a record set, each with its first records."""
    for part in opener.parts(found):
        if isinstance(part, BadRange):
            style = "note" if part.reason == INCOMPLETE else "error"
            mark = "…" if style == "note" else "✗"
            where = f"{part.length:,} bytes from byte {part.offset:,} on"
            yield [(f"{INDENT * depth}{mark} {where}: {part.reason}", style)]
            continue
        batch, records = part
        yield [(INDENT * depth, "plain"), ("- ", "note"), *_summary(batch, records)]
        for record in records[:MOST_LINES]:
            yield [(INDENT * (depth + 2), "plain"), *_shown(batch, record, width)]
        if len(records) > MOST_LINES:
            yield [(f"{INDENT * (depth + 2)}… {len(records) - MOST_LINES:,} more records", "note")]


def _summary(batch: RecordBatch, records: list[Record]) -> Pieces:
    """offsets 3-7  5 records  zstd  producer 7/0 from 12  transactional  1,234 bytes"""
    offsets = f"offset {batch.base_offset}"
    if batch.last_offset != batch.base_offset:
        offsets = f"offsets {batch.base_offset}-{batch.last_offset}"
    facts = [f"{len(records):,} record{'' if len(records) == 1 else 's'}"]
    if batch.codec != "none":
        facts.append(batch.codec)
    if batch.magic != 2:
        facts.append(f"magic {batch.magic}")
    if batch.producer_id != -1:
        facts.append(f"producer {batch.producer_id}/{batch.producer_epoch}")
    if batch.base_sequence != -1:
        facts.append(f"sequence {batch.base_sequence}")
    flags = {"transactional": batch.transactional, "control": batch.is_control}
    facts += [name for name, flag in flags.items() if flag]
    if batch.timestamp_type == "LogAppendTime":
        facts.append("log-append time")
    facts.append(f"{batch.size:,} bytes")
    return [(offsets, "number"), (f"  {', '.join(facts)}", "note")]


def _shown(batch: RecordBatch, record: Record, width: int) -> Pieces:
    """3  2026-11-21 07:50:03.578  "key" → "value"  {"trace": "1"}"""
    pieces: Pieces = [(f"{record.offset}  ", "number")]
    if record.timestamp >= 0:
        time = format_time(record.timestamp * 1_000_000, 3)
        pieces.append((f"{time.replace('T', ' ').removesuffix('Z')}  ", "plain"))
    told = _control(record) if batch.is_control else None
    if told is not None:
        return [
            *pieces,
            (told["name"] or f"control type {told['type']}", "api"),
            (f"  {told['value']}", "plain"),
        ]
    pieces += [*_data(record.key, width), (" → ", "note"), *_data(record.value, width)]
    for number, (name, value) in enumerate(record.headers):
        pieces.append(("  {" if not number else ", ", "plain"))
        pieces += [(f"{quoted(name, MOST_TEXT)}: ", "name"), *_data(value, width)]
    if record.headers:
        pieces.append(("}", "plain"))
    return pieces


def _data(data: bytes | None, width: int) -> Pieces:
    """Bytes, as text where they are one."""
    if data is None:
        return [("null", "none")]
    cut = len(data) > MOST_TEXT
    try:
        text, _ = utf_8_decode(data[:MOST_TEXT], "strict", not cut)
    except UnicodeDecodeError:
        text = "\0"
    if not text.isprintable():
        return octets(data, max(width // 4, 8))
    return [(f'"{text}…" ({len(data):,} bytes)' if cut else f'"{text}"', "text")]
