"""A segment of a coordinator's log: its records by name, and what couldn't be read.

Strategy: `coordwire.timeline.from_log` reads and names; here its values become rows. Segments of these logs
are small and are read whole. Rules: an unknown or refused record is a row with its bytes and the
reason; a transaction's end is a row with `marker`; key and value have the form of `coordwire offsets`, which
withholds secrets.
"""

from __future__ import annotations

__all__ = ["offset_parts", "read_offsets", "record_values", "time_of"]

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from coordwire.capture.jsonlines import encode, text
from coordwire.capture.redaction import secret_fields
from coordwire.capture.redaction.secret_fields import redact
from coordwire.codec import Message
from coordwire.errors import CorruptBatch, UnreadableRange
from coordwire.jsonform import to_json
from coordwire.logs import TOPICS, Log
from coordwire.tables.columns import OFFSETS, arrow_schema
from coordwire.tables.options import Options
from coordwire.tables.readers.file_origins import Origins
from coordwire.tables.readers.files import File, open_bytes
from coordwire.tables.readers.rows import KEPT, Bad, Builder
from coordwire.tables.readers.splits import Part, segment_parts
from coordwire.timeline.from_log.coordinator_log import (
    CoordinatorRecord,
    LogItem,
    Marker,
    guess_log,
    read_records,
)

if TYPE_CHECKING:
    import pyarrow

_LOGS: dict[str | None, Log] = {topic: log for log, topic in TOPICS.items() if log != "metadata"}
_MICROSECONDS = (1 << 63) // 1000


def offset_parts(files: Iterable[File], options: Options, origins: Origins) -> list[Part]:
    """Whole segments: those in a coordinator's folder, those that the user named, all if `log` is given.

    origins: of all files that were listed.
    """
    selected = [
        file for file in files if options.log or file.topic in _LOGS or (file.named and file.topic is None)
    ]
    return [
        replace(part, end=part.size)
        for part in segment_parts(selected, replace(options, split_size=1 << 62), origins)
    ]


def read_offsets(part: Part, options: Options, columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch | Bad]:
    """The log's records in batches of these columns of the offsets table, and what couldn't be read.

    Raises `OSError` where the file can't be read, in failfast mode `CorruptBatch` for the first bad range.
    """
    schema = arrow_schema([column for name in columns for column in OFFSETS if column.name == name])
    builder = Builder(schema, options.batch_size)
    data = open_bytes(part.path)[part.start : part.size]
    origin = {"broker_id": part.broker, "cluster_id": part.cluster_id, "file_state": part.state}
    for item in _items(part, options, data):
        if isinstance(item, UnreadableRange):
            start, end = part.start + item.position, part.start + item.position + item.length
            bad_range = Bad(
                part.path, start, end, item.reason, bytes(data[item.position :][: item.length][:KEPT])
            )
            if options.failfast:
                raise CorruptBatch(str(bad_range), bad_range.start)
            yield bad_range
        elif _in_ranges(item, options):
            row = _row(item, options) | origin
            if (batch := builder.add([row.get(name) for name in columns], 500)) is not None:
                yield batch
    if (batch := builder.take()) is not None:
        yield batch


def _items(part: Part, options: Options, data: memoryview) -> Iterator[LogItem]:
    log: Any = options.log or _LOGS.get(part.topic) or guess_log(data)
    return read_records(data, log=log, file=part.path, log_partition=part.partition)


def _in_ranges(item: CoordinatorRecord | Marker, options: Options) -> bool:
    limits = (
        (item.log_offset, options.starting_offset, options.ending_offset),
        (item.timestamp_ms, options.starting_timestamp, options.ending_timestamp),
    )
    return all(
        (low is None or value >= low) and (high is None or value < high) for value, low, high in limits
    )


def _row(item: CoordinatorRecord | Marker, options: Options) -> dict[str, Any]:
    row: dict[str, Any] = {
        "log": item.log, "log_partition": item.log_partition, "log_offset": item.log_offset,
        "time": time_of(item.timestamp_ms), "input_file": text(item.file), "tombstone": False,
    }  # fmt: skip
    if isinstance(item, Marker):
        return row | {"marker": item.kind, "producer_id": item.producer_id}
    return row | record_values(item, show_secrets=options.show_secrets) | {
        "producer_id": item.producer_id if item.transactional else None,
        "raw_key": item.key if isinstance(item.key, bytes) else None,
        "raw_value": item.value if isinstance(item.value, bytes) else None,
    }  # fmt: skip


def record_values(item: CoordinatorRecord, *, show_secrets: bool) -> dict[str, Any]:
    """The values of a record, wherever it is, by the columns' names."""
    value = item.value
    row: dict[str, Any] = {
        "type": item.type, "version": item.version, "kind": item.kind, "group_id": item.group,
        "topic": item.topic, "partition": item.partition, "tombstone": item.tombstone,
        "unknown": item.unknown,
        "error_reason": None if item.refusal is None else str(item.refusal.reason),
        "key": encode(to_json(item.key, version=0)) if isinstance(item.key, Message) else None,
    }  # fmt: skip
    if isinstance(value, Message):
        assert item.version is not None
        form = to_json(value, version=item.version)
        if not show_secrets:
            redact(form, secret_fields.find(value))
        row["value"] = encode(form)
        if item.log == "consumer_offsets" and item.partition is not None:
            row |= _commit(value)
    return row


def _commit(value: Any) -> dict[str, Any]:
    return {
        "committed_offset": value.offset, "leader_epoch": getattr(value, "leader_epoch", -1),
        "metadata": value.metadata, "commit_time": time_of(value.commit_timestamp),
    }  # fmt: skip


def time_of(milliseconds: int) -> int | None:
    """Microseconds; None for -1, and for what does not fit."""
    return milliseconds * 1000 if milliseconds != -1 and abs(milliseconds) < _MICROSECONDS else None
