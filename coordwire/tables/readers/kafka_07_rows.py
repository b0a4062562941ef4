"""A log of Kafka 0.7 as rows, of its messages or of its records, and what couldn't be read.

Strategy: a log is one part, since nothing beside it says where its messages begin. A record's offset is the
byte of the partition's log at which its message begins, so that all records of a compressed message have the
same one. Rules: what the format lacks is null or -1, as for batches of magic 0; a record without a time is in
no range of times.
"""

from __future__ import annotations

__all__ = ["end_of_whole_messages", "is_kafka_07", "read_messages", "read_values"]

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from coordwire.errors import CorruptBatch
from coordwire.records import RecordBatch, UnreadableRange, kafka_07
from coordwire.records.kafka_07 import Kafka07Batch
from coordwire.segments.names import kafka_07_offset
from coordwire.tables.columns import RECORDS, arrow_schema
from coordwire.tables.options import Options
from coordwire.tables.readers.files import open_bytes
from coordwire.tables.readers.rows import KEPT, Bad, Builder, part_columns
from coordwire.tables.readers.splits import Part

if TYPE_CHECKING:
    import pyarrow

CUT_SHORT = "the file ends inside a message"
_SIZE = 100
"""About how many bytes a row has without its value."""

_CONSTANTS: dict[str, Any] = {
    "time": None, "timestamp_ms": -1, "key": None, "key_size": None, "headers": [], "sequence": -1,
    "is_control": False,
    "transactional": False,
}  # fmt: skip


def is_kafka_07(path: str) -> bool:
    """Whether a file's name is that of a log of Kafka 0.7."""
    return kafka_07_offset(path.rpartition("/")[2]) is not None


def read_messages(part: Part, options: Options) -> Iterator[Kafka07Batch | Bad]:
    """The part's messages, whose contents were checked too, and its bad ranges.

    Raises `OSError` where the file can't be read, in failfast mode `CorruptBatch` for the first bad range.
    """
    view = open_bytes(part.path)[: part.end]

    def quarantined(item: UnreadableRange) -> Bad:
        start, end = item.position, item.position + item.length
        bad_range = Bad(part.path, start, end, item.reason, bytes(view[start : min(end, start + KEPT)]))
        if options.failfast:
            raise CorruptBatch(str(bad_range), start)
        return bad_range

    reader = kafka_07.batches(view, position=_base(part.path), on_error="report")
    reader.position = part.start
    for item in reader:
        if isinstance(item, UnreadableRange):
            yield quarantined(item)
        elif _is_wanted(item, options):
            yield item
    if len(reader.remainder):
        yield quarantined(UnreadableRange(reader.position, len(reader.remainder), CUT_SHORT))


def read_values(
    part: Part,
    options: Options,
    columns: Sequence[str],
    see: Callable[[RecordBatch, int | None], None] | None = None,
) -> Iterator[pyarrow.RecordBatch | Bad]:
    """As `read_records`."""
    schema = arrow_schema([column for name in columns for column in RECORDS if column.name == name])
    builder = Builder(schema, options.batch_size)
    constants = _CONSTANTS | part_columns(part)
    for item in read_messages(part, options):
        if isinstance(item, Bad):
            yield item
            continue
        values = constants | _columns(item)
        for record in item:
            values["value"] = record.value
            values["value_size"] = None if record.value is None else len(record.value)
            size = _SIZE + len(record.value or b"")
            if (batch := builder.add([values[name] for name in columns], size)) is not None:
                yield batch
        if see is not None:
            see(item, None if item.codec == "none" else len(item.payload()))
    if (batch := builder.take()) is not None:
        yield batch


def end_of_whole_messages(path: str, size: int) -> int:
    """Where the first message begins that is not all there in so many bytes of a file. Raises `OSError`."""
    walk = kafka_07.batches(open_bytes(path)[:size], on_error="report", check_records=False)
    for _ in walk:
        pass
    return walk.position


def _base(path: str) -> int:
    return kafka_07_offset(path.rpartition("/")[2]) or 0


def _columns(batch: Kafka07Batch) -> dict[str, Any]:
    """What all records of a message have."""
    return {
        "log_offset": batch.base_offset, "batch_position": batch.position, "batch_size": batch.size,
        "magic": batch.magic, "codec": batch.codec, "timestamp_type": batch.timestamp_type,
        "producer_id": batch.producer_id, "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "partition_leader_epoch": batch.partition_leader_epoch,
    }  # fmt: skip


def _is_wanted(batch: Kafka07Batch, options: Options) -> bool:
    if options.starting_timestamp is not None or options.ending_timestamp is not None:
        return False
    low, high = options.starting_offset, options.ending_offset
    return (low is None or batch.base_offset >= low) and (high is None or batch.base_offset < high)
