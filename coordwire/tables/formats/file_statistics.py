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
    from pyarrow.parquet import FileMetaData

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
    bounds: dict[str, tuple[Any, Any]] = {}
    nulls: dict[str, int] = {}
    unknown: set[str] = set()
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for number in range(row_group.num_columns):
            column = row_group.column(number)
            name = column.path_in_schema
            if "." in name:  # of a list or struct
                continue
            statistics = column.statistics
            if statistics is None or not statistics.has_null_count:
                unknown.add(name)
                continue
            nulls[name] = nulls.get(name, 0) + statistics.null_count
            if statistics.null_count == column.num_values and not statistics.has_min_max:
                continue  # only nulls
            if statistics.has_min_max:
                low, high = statistics.min, statistics.max
                old = bounds.get(name, (low, high))
                bounds[name] = min(low, old[0]), max(high, old[1])
            else:
                unknown.add(name)
    least, most = {}, {}
    for name, pair in bounds.items():
        if name not in unknown and (limits := _as_json(*pair)) is not None:
            least[name], most[name] = limits
    counts = {name: count for name, count in nulls.items() if name not in unknown}
    return json.dumps(
        {"numRecords": metadata.num_rows, "minValues": least, "maxValues": most, "nullCount": counts}
    )


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
