"""What stands in a segment's files as JSON, one object a line.

Strategy: what all records of a batch share is turned into text once, and each record's own beside it. Rules:
names are those of `kafka-dump-log` and of Kafka's JSON form; bytes are base64, or with `text`, where they are
UTF-8, a string, and else {"base64": …}; lines are ASCII; bytes that can't be read have a line too.
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from collections.abc import Iterator
from typing import Any

from coordwire.capture import secrets
from coordwire.errors import CoordwireError, DecodeError, EncodeError
from coordwire.jsonform import to_json
from coordwire.layout import Message
from coordwire.logs import TOPICS, Log, LogRecord, decode_log_record
from coordwire.records import BadRange, ControlRecord, Record, RecordBatch, read_control

encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
Form = dict[str, Any]
LOGS: dict[str, Log] = {topic: log for log, topic in TOPICS.items()}


class Lines:
    """The lines of one segment.

    file: its name, as it was given. text: bytes as text where they are UTF-8. deep: open the records of
    brokers' own logs. show_secrets: else a record that holds a secret has neither key nor value.
    """

    def __init__(
        self,
        file: str,
        topic: str | None,
        partition: int | None,
        *,
        text: bool,
        deep: bool,
        show_secrets: bool,
    ) -> None:
        self.place: Form = {"file": file, "topic": topic, "partition": partition}
        self._start = encode(self.place)[:-1]
        self._text = text
        self._log = LOGS.get(topic or "")
        self._deep = deep
        self._show_secrets = show_secrets

    def batch(self, batch: RecordBatch) -> str:
        """A batch without its records."""
        return f'{self._start},"batch":{encode(batch_form(batch))},"error":null}}\n'

    def records(self, batch: RecordBatch, records: Iterator[Record]) -> Iterator[str]:
        """These records of a batch."""
        shared = encode(batch_form(batch))
        base, sequence = batch.base_offset if batch.magic == 2 else 0, batch.base_sequence
        for record in records:
            form = {
                "offset": record.offset, "timestamp": record.timestamp,
                "sequence": -1 if sequence < 0 else sequence + record.offset - base & 0x7FFFFFFF,
                "key": self._bytes(record.key), "value": self._bytes(record.value),
                "headers": [{"key": key, "value": self._bytes(value)} for key, value in record.headers],
            }  # fmt: skip
            if batch.is_control:
                form["control"] = control_form(record)
            elif self._log is not None:
                self._open(self._log, record, form)
            yield f'{self._start},{encode(form)[1:-1]},"batch":{shared},"error":null}}\n'

    def bad(self, bad: BadRange, error: DecodeError | None = None) -> str:
        """Bytes that hold no batch, or a batch of which something couldn't be read."""
        reason, offset, path = bad.reason, bad.offset, ""
        if error is not None:
            reason, offset, path = error.reason, error.offset, error.path
        form = {
            "position": bad.offset, "length": bad.length,
            "error": {"reason": reason, "offset": offset, "path": path},
        }  # fmt: skip
        return f"{self._start},{encode(form)[1:]}\n"

    def entry(self, form: Form) -> str:
        """What stands in another file than the log."""
        return f"{self._start},{encode(form)[1:]}\n"

    def _bytes(self, data: bytes | None) -> str | dict[str, str] | None:
        if data is None:
            return None
        if not self._text:
            return b2a_base64(data, newline=False).decode()
        try:
            return data.decode()
        except UnicodeDecodeError:
            return {"base64": b2a_base64(data, newline=False).decode()}

    def _open(self, log: Log, record: Record, form: Form) -> None:
        """Add what a record of a broker's own log says; take out its secrets."""
        if not self._deep and (self._show_secrets or log != "metadata"):
            return
        try:
            opened = decode_log_record(log, record.key, record.value)
        except DecodeError as error:
            if self._deep:
                form["record"] = {
                    "error": {"reason": error.reason, "offset": error.offset, "path": error.path}
                }
            return
        hidden = [] if self._show_secrets else _hidden(opened)
        if hidden:
            form["value"] = None
            form["redacted"] = ["value", *(f"record.{path}" for path in hidden if self._deep)]
        if self._deep:
            form["record"] = record_form(opened, hidden)


def batch_form(batch: RecordBatch) -> Form:
    """A batch's header."""
    try:
        codec: str | None = batch.codec
    except CoordwireError:
        codec = None
    return {
        "position": batch.offset, "size": batch.size, "magic": batch.magic,
        "baseOffset": batch.base_offset if batch.magic == 2 else None, "lastOffset": batch.last_offset,
        "count": batch.count, "codec": codec, "timestampType": batch.timestamp_type,
        "maxTimestamp": batch.max_timestamp, "crc": batch.checksum,
        "partitionLeaderEpoch": batch.partition_leader_epoch, "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch, "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence, "isTransactional": batch.transactional,
        "isControl": batch.is_control, "deleteHorizonMs": batch.delete_horizon_ms,
    }  # fmt: skip


def error_form(error: DecodeError) -> Form:
    """What stands in the place of something that can't be read."""
    return {"error": {"reason": error.reason, "offset": error.offset, "path": error.path}}


def control_form(record: Record) -> Form:
    """What a control record says."""
    try:
        control: ControlRecord = read_control(record)
    except DecodeError as error:
        return error_form(error)
    name = getattr(control.type, "name", None)
    value = control.value
    return {
        "type": name if name is not None else int(control.type),
        "value": to_json(value, version=_version(value, record)) if isinstance(value, Message) else None,
    }


def _version(value: Message, record: Record) -> int:
    """The version that a control record's value is written in: its first two bytes."""
    version = int.from_bytes((record.value or b"\0\0")[:2], signed=True)
    return min(max(version, value.versions[0]), value.versions[-1])


def record_form(opened: LogRecord, hidden: list[str]) -> Form:
    """A record of a broker's own log."""
    form: Form = {"type": opened.type, "version": opened.version}
    for name, part in (("key", opened.key), ("value", opened.value)):
        if isinstance(part, Message):
            form[name] = {"name": type(part).__name__, "data": _message(part, opened, name, hidden)}
        else:
            form[name] = None if part is None else b2a_base64(part, newline=False).decode()
    if opened.unknown:
        form["unknown"] = opened.unknown
    return form


def _message(part: Message, opened: LogRecord, name: str, hidden: list[str]) -> Any:
    version = opened.version if name == "value" and opened.version is not None else part.versions[0]
    try:
        data = to_json(part, version=version)
    except EncodeError as error:
        return {"error": {"reason": error.reason, "offset": 0, "path": error.path}}
    for path in hidden if name == "value" else ():
        words = path.removeprefix("value.").split("_")
        data[words[0] + "".join(word.capitalize() for word in words[1:])] = None
    return data


def _hidden(opened: LogRecord) -> list[str]:
    if not isinstance(opened.value, Message):
        return []
    return [f"value.{path}" for path in secrets.find(opened.value)]
