"""The contents of a segment's files as JSON, one object a line.

Strategy: the part that all records of a batch share is encoded once. Rules:
batches, control records and records of brokers' own logs look as in `coordwire decode --deep`; bytes are
base64, or with `text`, where they are UTF-8, a string, and else {"base64": …}; lines are ASCII; bytes that
can't be read have a line too.
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from collections.abc import Iterator
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

from coordwire.capture.redaction.secret_fields import METADATA_TOPIC
from coordwire.cli.embedded_json import log_record
from coordwire.cli.record_sets import control_form
from coordwire.errors import DecodeError
from coordwire.logs import TOPICS, open_log_record
from coordwire.records import Record, RecordBatch, UnreadableRange

encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
Form = dict[str, Any]


class Lines:
    """The lines of one segment.

    file: its name, as it was given. snapshot: it is one of KRaft's, in any folder. text: bytes as text
    where they are UTF-8. deep: say what the records of brokers' own logs mean. show_secrets: else a record
    that holds a secret has no value.
    """

    def __init__(
        self,
        file: str,
        topic: str | None,
        partition: int | None,
        *,
        snapshot: bool = False,
        text: bool,
        deep: bool,
        show_secrets: bool,
    ) -> None:
        self.place: Form = {"file": file, "topic": topic, "partition": partition}
        self._start = encode(self.place)[:-1]
        self._text = text
        own = METADATA_TOPIC if snapshot else topic
        self._topic = own if own in TOPICS.values() else None
        self._deep = deep and self._topic is not None
        self._show_secrets = show_secrets
        self._opens = self._deep or (self._topic == METADATA_TOPIC and not show_secrets)
        """Whether records are opened: to say what they mean, or for their secrets."""

    def batch(self, batch: RecordBatch) -> str:
        """A batch without its records."""
        return f'{self._start},"batch":{batch_text(batch)},"error":null}}\n'

    def records(self, batch: RecordBatch, records: Iterator[Record]) -> Iterator[str]:
        """These records of a batch. Names and numbers need no escape, so that texts are put together."""
        if batch.is_control or self._opens or self._text:
            return self._any_records(batch, records)
        return self._plain_records(batch, records)

    def _plain_records(self, batch: RecordBatch, records: Iterator[Record]) -> Iterator[str]:
        """The lines of `_any_records`, of records in base64 that are not opened: without a call for each."""
        end = f',"batch":{batch_text(batch)},"error":null}}\n'
        base, sequence = batch.base_offset if batch.magic == 2 else 0, batch.base_sequence
        start = self._start
        for record in records:
            offset, key, value = record.offset, record.key, record.value
            number = -1 if sequence < 0 else sequence + offset - base & 0x7FFFFFFF
            headers = record.headers and ",".join(
                f"[{quoted(name)},{self._bytes(content)}]" for name, content in record.headers
            )
            key_text = "null" if key is None else f'"{b2a_base64(key, newline=False).decode()}"'
            value_text = "null" if value is None else f'"{b2a_base64(value, newline=False).decode()}"'
            yield (
                f'{start},"offset":{offset},"timestamp":{record.timestamp},"sequence":{number},'
                f'"key":{key_text},"value":{value_text},"headers":[{headers or ""}]{end}'
            )

    def _any_records(self, batch: RecordBatch, records: Iterator[Record]) -> Iterator[str]:
        """The lines of any records."""
        end = f',"batch":{batch_text(batch)},"error":null}}\n'
        base, sequence = batch.base_offset if batch.magic == 2 else 0, batch.base_sequence
        start, text = self._start, self._bytes
        opens = not batch.is_control and self._opens
        for record in records:
            offset, value = record.offset, text(record.value)
            number = -1 if sequence < 0 else sequence + offset - base & 0x7FFFFFFF
            headers = record.headers and ",".join(
                f"[{quoted(name)},{text(content)}]" for name, content in record.headers
            )
            extra_fields = ""
            if batch.is_control:
                extra_fields = f',"control":{encode(control_form(record))}'
            elif opens:
                meaning, secret = self.opened(record)
                if secret:
                    value, extra_fields = "null", ',"redacted":["value"]'
                if meaning is not None:
                    extra_fields += f',"log":{encode(meaning)}'
            yield (
                f'{start},"offset":{offset},"timestamp":{record.timestamp},"sequence":{number},'
                f'"key":{text(record.key)},"value":{value},"headers":[{headers or ""}]{extra_fields}{end}'
            )

    def unreadable(self, unreadable: UnreadableRange, error: DecodeError | None = None) -> str:
        """Bytes without a batch, or a batch with an unreadable part."""
        error_fields = (
            {"reason": unreadable.reason, "position": unreadable.position, "path": ""}
            if error is None
            else error_form(error)
        )
        form = {"position": unreadable.position, "length": unreadable.length, "error": error_fields}
        return f"{self._start},{encode(form)[1:]}\n"

    def entry(self, form: Form) -> str:
        """An entry of another file than the log."""
        return f"{self._start},{encode(form)[1:]}\n"

    def opened(self, record: Record) -> tuple[Form | None, bool]:
        """A record of a broker's own log, decoded where `deep` is set; and whether its value must not be
        shown."""
        opened = open_log_record(self._topic, record) if self._opens and self._topic is not None else None
        if opened is None:
            return None, False
        meaning = log_record(opened, show_secrets=self._show_secrets)
        secret = any(path.startswith("value") for path in meaning.get("redacted", ()))
        return meaning if self._deep else None, secret

    def _bytes(self, data: bytes | None) -> str:
        """Bytes as JSON."""
        if data is None:
            return "null"
        if self._text:
            try:
                return quoted(data.decode())
            except UnicodeDecodeError:
                return f'{{"base64":"{b2a_base64(data, newline=False).decode()}"}}'
        return f'"{b2a_base64(data, newline=False).decode()}"'


def batch_text(batch: RecordBatch) -> str:
    """The JSON text of `batch_form`: its names and values need no escape. Raises as that does."""
    horizon, count = batch.delete_horizon_ms, batch.count
    return (
        f'{{"position":{batch.position},"size":{batch.size},"magic":{batch.magic},"codec":"{batch.codec}",'
        f'"baseOffset":{batch.base_offset},"lastOffset":{batch.last_offset},'
        f'"timestampType":"{batch.timestamp_type}","maxTimestamp":{batch.max_timestamp},'
        f'"checksum":{batch.checksum},"partitionLeaderEpoch":{batch.partition_leader_epoch},'
        f'"producerId":{batch.producer_id},"producerEpoch":{batch.producer_epoch},'
        f'"baseSequence":{batch.base_sequence},"transactional":{"true" if batch.transactional else "false"},'
        f'"control":{"true" if batch.is_control else "false"},'
        f'"deleteHorizonMs":{"null" if horizon is None else horizon},'
        f'"count":{"null" if count is None else count}}}'
    )


def error_form(error: DecodeError) -> Form:
    """The fields of a refusal."""
    return {"reason": error.reason, "position": error.position, "path": error.path}
