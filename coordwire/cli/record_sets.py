"""Record sets opened for `--deep`: whole as JSON, and shortened as lines for people.

Strategy: the batches are read with `on_error="report"`, so that a bad one becomes an entry with its place,
length and reason among the others; a batch that the end of a fetch cuts is not an error. Rules: the bytes of
one frame's records are bounded by `MOST_BYTES`, and an entry reports what is left out; nothing raises,
whatever the bytes or the installed libraries. Keys, values and the values of headers are base64 in JSON, as
Kafka's own form has bytes; records of the brokers' own logs are decoded, too. Of a record set that is hidden
since it holds secrets, only that fact is shown.
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from codecs import utf_8_decode
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from coordwire.capture.flows import format_time
from coordwire.capture.printable import Pieces, quoted, shown
from coordwire.capture.redaction import secret_fields
from coordwire.capture.redaction.secret_fields import METADATA_TOPIC, METADATA_TOPIC_ID
from coordwire.cli.embedded_json import log_record
from coordwire.cli.message_lines import INDENT, Inside, octets
from coordwire.codec import Message
from coordwire.errors import CodecUnavailable, CorruptBatch, LimitExceeded, counted
from coordwire.jsonform import to_json
from coordwire.limits import limits
from coordwire.logs import open_log_record
from coordwire.records import (
    ControlType,
    Record,
    RecordBatch,
    RecordSet,
    UnreadableRange,
    read_control,
    record_sets,
)

MOST_BYTES = 16 << 20
"""What the records of one frame may take, and what a batch may decompress to."""

MOST_LINES = 20
"""Records of one batch that people are shown."""

MOST_TEXT = 120
"""Bytes of a key or value that people are shown."""

MOST_JSON = 300
"""Characters of what a record means that people are shown."""

INCOMPLETE = "the rest of this batch is missing"
"""What is said of a record set's last batch where a fetch was cut in it; no error."""

SetPart = tuple[RecordBatch, list[Record]] | UnreadableRange


class Opener:
    """Opens the record sets of one frame. hidden: the paths of those that aren't shown, on top of those in
    which the message itself has secrets."""

    def __init__(self, message: Message, *, show_secrets: bool, hidden: Iterable[str] = ()) -> None:
        self._hidden = set() if show_secrets else {*secret_fields.find(message), *hidden}
        self._show_secrets = show_secrets
        self._room = MOST_BYTES

    def hides(self, record_set: RecordSet) -> bool:
        """Whether the bytes of a record set must not be shown."""
        return record_set.path in self._hidden

    def meaning(self, record_set: RecordSet, record: Record) -> dict[str, Any] | None:
        """A record of the brokers' own logs, decoded by `embedded_json.log_record`."""
        topic = METADATA_TOPIC if record_set.topic_id == METADATA_TOPIC_ID else record_set.topic
        opened = None if topic is None else open_log_record(topic, record)
        return None if opened is None else log_record(opened, show_secrets=self._show_secrets)

    def parts(self, record_set: RecordSet) -> Iterator[SetPart]:
        """The batches of a record set with their records, and its parts that are unreadable or not shown."""
        reader = record_set.batches(on_error="report", check_records=False)
        while self._room >= 0:
            part = next(reader, None)
            if part is None:
                if reader.remainder:
                    yield UnreadableRange(reader.position, len(reader.remainder), INCOMPLETE)
                return
            try:
                yield part if isinstance(part, UnreadableRange) else self._read(part)
            except CodecUnavailable as error:
                yield UnreadableRange(part.position, len(record_set.data) - part.position, str(error))
                return
        if reader.remainder:
            reason = f"more than {MOST_BYTES:,} bytes of records in one frame: the others are left out"
            yield UnreadableRange(reader.position, len(reader.remainder), reason)

    def _read(self, batch: RecordBatch) -> SetPart:
        """A batch with the records that there is room for. Raises `CodecUnavailable`."""
        records = []
        try:
            with limits(decompressed=MOST_BYTES):
                for record in batch:
                    self._room -= _size(record)
                    if self._room < 0:
                        break
                    records.append(record)
        except (CorruptBatch, LimitExceeded) as error:
            if batch.codec != "none":  # as much may have been decompressed in vain
                self._room -= MOST_BYTES // 4
            return UnreadableRange(batch.position, batch.size, str(error))
        return batch, records


# --- JSON -----------------------------------------------------------------------------------------------


def forms(message: Message, *, show_secrets: bool, hidden: Iterable[str] = ()) -> dict[str, Any]:
    """The record sets in a message by their paths, as `embedded` has what hides in other bytes. hidden: as
    for `Opener`."""
    opener = Opener(message, show_secrets=show_secrets, hidden=hidden)
    return {
        record_set.path: {
            "type": "RecordSet",
            "version": None,
            "value": {"batches": [_part(opener, record_set, part) for part in opener.parts(record_set)]},
        }
        for record_set in record_sets(message)
    }


def _part(opener: Opener, record_set: RecordSet, part: SetPart) -> dict[str, Any]:
    if isinstance(part, UnreadableRange):
        place = {"position": part.position, "length": part.length}
        return (
            {"incomplete": place}
            if part.reason == INCOMPLETE
            else {"error": {**place, "reason": part.reason}}
        )
    batch, records = part
    return {
        **batch_form(batch),
        "records": [_record(opener, record_set, batch, record) for record in records],
    }


def _size(record: Record) -> int:
    """The bytes of a record's own, roughly."""
    headers = sum(16 + len(name) + len(value or b"") for name, value in record.headers)
    return 32 + len(record.key or b"") + len(record.value or b"") + headers


def batch_form(batch: RecordBatch) -> dict[str, Any]:
    """A batch's header. Raises as its attributes do: `CorruptBatch`, `CodecUnavailable`."""
    return {
        "position": batch.position, "size": batch.size, "magic": batch.magic, "codec": batch.codec,
        "baseOffset": batch.base_offset, "lastOffset": batch.last_offset,
        "timestampType": batch.timestamp_type, "maxTimestamp": batch.max_timestamp,
        "checksum": batch.checksum, "partitionLeaderEpoch": batch.partition_leader_epoch,
        "producerId": batch.producer_id, "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence, "transactional": batch.transactional,
        "control": batch.is_control, "deleteHorizonMs": batch.delete_horizon_ms, "count": batch.count,
    }  # fmt: skip


def _record(opener: Opener, record_set: RecordSet, batch: RecordBatch, record: Record) -> dict[str, Any]:
    form: dict[str, Any] = {"offset": record.offset, "timestamp": record.timestamp}
    if not opener.hides(record_set):
        form["key"], form["value"] = _base64(record.key), _base64(record.value)
        form["headers"] = [[name, _base64(value)] for name, value in record.headers]
    if batch.is_control:
        form["control"] = control_form(record)
    elif (meaning := opener.meaning(record_set, record)) is not None:
        form["log"] = meaning
    return form


def control_form(record: Record) -> dict[str, Any] | None:
    """The content of a control record; None where it can't be read."""
    try:
        control = read_control(record)
    except CorruptBatch:
        return None
    content = control.value
    if isinstance(content, Message):
        value: Any = to_json(content, version=getattr(content, "version", 0))
    else:
        value = _base64(content)
    return {
        "type": int(control.type),
        "name": control.type.name if isinstance(control.type, ControlType) else None,
        "value": value,
    }


def _base64(data: bytes | None) -> str | None:
    return None if data is None else b2a_base64(data, newline=False).decode()


# --- for people -----------------------------------------------------------------------------------------


def layouts(message: Message, *, show_secrets: bool, hidden: Iterable[str] = ()) -> dict[str, Inside]:
    """For each record set in a message what lays out its batches, each with its first records. hidden: as for
    `Opener`."""
    opener = Opener(message, show_secrets=show_secrets, hidden=hidden)
    return {record_set.path: partial(_lines, opener, record_set) for record_set in record_sets(message)}


def _lines(opener: Opener, record_set: RecordSet, depth: int, width: int) -> Iterator[Pieces]:
    for part in opener.parts(record_set):
        if isinstance(part, UnreadableRange):
            style = "note" if part.reason == INCOMPLETE else "error"
            mark = "…" if style == "note" else "✗"
            place = f"{counted(part.length, 'byte', ',')} from byte {part.position:,} on"
            yield [(f"{INDENT * depth}{mark} {place}: {part.reason}", style)]
            continue
        batch, records = part
        yield [(INDENT * depth, "plain"), ("- ", "note"), *_summary(batch, records)]
        for record in records[:MOST_LINES]:
            yield [(INDENT * (depth + 2), "plain"), *_record_pieces(opener, record_set, batch, record, width)]
        if len(records) > MOST_LINES:
            yield [
                (f"{INDENT * (depth + 2)}… {counted(len(records) - MOST_LINES, 'more record', ',')}", "note")
            ]


def _summary(batch: RecordBatch, records: list[Record]) -> Pieces:
    """offsets 3-7  5 records  zstd  producer 7/0 from 12  transactional  1,234 bytes"""
    offsets = f"offset {batch.base_offset}"
    if batch.last_offset != batch.base_offset:
        offsets = f"offsets {batch.base_offset}-{batch.last_offset}"
    facts = [counted(len(records), "record", ",")]
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


def _record_pieces(
    opener: Opener, record_set: RecordSet, batch: RecordBatch, record: Record, width: int
) -> Pieces:
    """3  2026-11-21 07:50:03.578  "key" → "value"  {"trace": "1"}"""
    pieces: Pieces = [(f"{record.offset}  ", "number")]
    if record.timestamp >= 0:
        time = format_time(record.timestamp * 1_000_000, 3)
        pieces.append((f"{time.replace('T', ' ').removesuffix('Z')}  ", "plain"))
    if batch.is_control and (control := control_form(record)) is not None:
        name = control["name"] or f"control type {control['type']}"
        return [*pieces, (name, "api"), (f"  {_compact(control['value'])}", "plain")]
    if (meaning := opener.meaning(record_set, record)) is not None:
        return pieces + _meant(meaning)
    if opener.hides(record_set):
        return [*pieces, ("(secret, not shown)", "odd")]
    pieces += [*_data(record.key, width), (" → ", "note"), *_data(record.value, width)]
    for number, (name, value) in enumerate(record.headers):
        pieces.append(("  {" if not number else ", ", "plain"))
        pieces += [(f"{quoted(name, MOST_TEXT)}: ", "name"), *_data(value, width)]
    if record.headers:
        pieces.append(("}", "plain"))
    return pieces


def _meant(meaning: dict[str, Any]) -> Pieces:
    """A record of the brokers' own logs."""
    pieces: Pieces = []
    for part in ("key", "value"):
        content = meaning[part]
        if isinstance(content, dict):
            pieces += [(f"{content['type']} ", "api"), (f"{_compact(content['value'])}  ", "plain")]
        elif content is not None:
            pieces.append((f"{_compact(content)}  ", "bytes"))
        elif part in meaning.get("redacted", ()):
            pieces.append(("(secret, not shown)  ", "odd"))
        elif part == "value":
            pieces.append(("null", "none"))
    return pieces


def _compact(form: Any) -> str:
    """JSON, shortened."""
    text = shown(json.dumps(form, ensure_ascii=False))
    return text if len(text) <= MOST_JSON else f"{text[:MOST_JSON]}…"


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
