"""A part of a segment as the headers of its batches, and what couldn't be read."""

from __future__ import annotations

__all__ = ["BatchRows", "read_batches"]

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from coordwire.errors import CorruptBatch, LimitExceeded
from coordwire.records import RecordBatch
from coordwire.tables.columns import BATCHES, arrow_schema
from coordwire.tables.options import Options
from coordwire.tables.readers.rows import Bad, Builder, part_columns
from coordwire.tables.readers.segment_reader import SegmentReader, unwanted
from coordwire.tables.readers.splits import Part

if TYPE_CHECKING:
    import pyarrow


def read_batches(part: Part, options: Options, columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch | Bad]:
    """The headers of the part's batches, and its bad ranges. Raises `OSError` where the
    file can't be read, in failfast mode `CorruptBatch` for the first bad range.

    A header counts if another follows it where its batch ends; bodies are read only where none does, or all
    of them under `checksums`. Records aren't looked at: what is malformed inside a batch of a right checksum
    doesn't show here.
    """
    header = BatchRows(part, columns)
    with closing(SegmentReader(part, options)) as reader:
        for item in reader.items() if options.checksums else reader.heads():
            if isinstance(item, Bad):
                yield item
            elif not unwanted(item, options) and (batch := header.add(item)) is not None:
                reader.file.confirm()
                yield batch
        if (batch := header.builder.take()) is not None:
            reader.file.confirm()
            yield batch


class BatchRows:
    """Batch headers as rows of the batches table."""

    def __init__(self, part: Part, columns: Sequence[str]) -> None:
        schema = arrow_schema([column for name in columns for column in BATCHES if column.name == name])
        same = part_columns(part)
        self.builder = Builder(schema, 8 << 20)
        self._getters = [_getter(name, same) for name in columns]

    def add(self, batch: RecordBatch) -> pyarrow.RecordBatch | None:
        """One more; a batch of rows whenever enough has come together."""
        return self.builder.add([get(batch) for get in self._getters], 200)


def _getter(name: str, constants: dict[str, Any]) -> Callable[[RecordBatch], Any]:
    if name in constants:
        value = constants[name]
        return lambda batch: value
    special: dict[str, Callable[[RecordBatch], Any]] = {
        "position": lambda batch: batch.position,
        "time": _time,
        "base_offset": _base_offset,
        "codec": _codec,
    }
    return special.get(name) or (lambda batch: getattr(batch, name))


def _time(batch: RecordBatch) -> int | None:
    stamp = batch.max_timestamp
    return stamp * 1000 if stamp != -1 and abs(stamp) < (1 << 63) // 1000 else None


def _base_offset(batch: RecordBatch) -> int | None:
    try:
        return batch.base_offset
    except (CorruptBatch, LimitExceeded):  # a compressed message set has it inside
        return None


def _codec(batch: RecordBatch) -> str | None:
    try:
        return batch.codec
    except CorruptBatch:
        return None
