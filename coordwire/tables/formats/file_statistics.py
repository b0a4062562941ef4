"""What the footers of the tables' files say, for the logs of table formats.

Strategy: the driver reads the footers of new files, several at a time, since a store answers slowly. Rules:
bounds are an aid to readers, which leave out files by them: where a bound might be inexact (long texts, times
that no calendar has) there is none.
"""

from __future__ import annotations

__all__ = ["delta_statistics", "footers"]

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyarrow.parquet import ColumnChunkMetaData, FileMetaData

    from coordwire.tables.storage.folders import Output

READERS = 8
LONGEST = 64
"""Characters of a text that is a bound; Parquet's writer cuts none."""

LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def footers(output: Output, names: Iterable[str]) -> Iterator[tuple[str, FileMetaData]]:
    """The metadata of each file."""
    import pyarrow.parquet

    def read(name: str) -> tuple[str, FileMetaData]:
        with output.open(name) as stream:
            return name, pyarrow.parquet.read_metadata(stream)

    with ThreadPoolExecutor(READERS) as pool:
        yield from pool.map(read, names)


def delta_statistics(metadata: FileMetaData) -> str:
    """The statistics of a file as Delta has them: its rows, and the bounds and nulls of its flat columns."""
    columns: dict[str, list[ColumnChunkMetaData]] = {}
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for number in range(row_group.num_columns):
            column = row_group.column(number)
            if "." not in column.path_in_schema:  # else it is in a list or struct
                columns.setdefault(column.path_in_schema, []).append(column)
    least, most, counts = {}, {}, {}
    for name, chunks in columns.items():
        if not all(map(_has_statistics, chunks)):
            continue
        statistics = [chunk.statistics for chunk in chunks]
        counts[name] = sum(part.null_count for part in statistics)
        bounded = [part for part in statistics if part.has_min_max]
        low = min((part.min for part in bounded), default=None)
        high = max((part.max for part in bounded), default=None)
        if (limits := _as_json(low, high)) is not None:
            least[name], most[name] = limits
    return json.dumps(
        {"numRecords": metadata.num_rows, "minValues": least, "maxValues": most, "nullCount": counts}
    )


def _has_statistics(chunk: ColumnChunkMetaData) -> bool:
    """Whether the nulls of a column are counted, and its bounds are there if it has any other value."""
    known = chunk.statistics
    if known is None or not known.has_null_count:
        return False
    return bool(known.has_min_max or known.null_count == chunk.num_values)


def _as_json(low: Any, high: Any) -> tuple[Any, Any] | None:
    """Bounds as Delta writes them, times in whole milliseconds; None for what has none."""
    if isinstance(low, bool | bytes):
        return None
    if isinstance(low, int):
        return low, high
    if isinstance(low, str):
        return (low, high) if max(len(low), len(high)) <= LONGEST else None
    if isinstance(low, datetime):
        if high > LAST:
            return None
        return _milliseconds(low), _milliseconds(high + timedelta(milliseconds=1))
    return None


def _milliseconds(time: datetime) -> str:
    time = time.astimezone(UTC)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03}Z".rjust(24, "0")
