"""A table in Delta, written by delta-rs.

Strategy: the workers' files are added to the table's log, and the files that they replace removed, in one
transaction, which carries the pipeline's number as an application transaction (`txn`): a commit of the same
number cannot be there twice, and two of one folder at the same time conflict: in a store by a conditional
put. delta-rs has clients of its own for stores, which look for credentials in the same places as pyarrow's;
what differs is passed on (`storage_options`). Rules: dates are the partition; columns that a later version
has are added to the table first, in a commit of their own, since delta-rs has no transaction for both; a key
is a key, character by character, which a URL has escaped; errors are one sentence.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from deltalake import DeltaTable, Field, Schema
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import (
    AddAction,
    CommitProperties,
    RemoveAction,
    Transaction,
    create_table_with_add_actions,
)

from coordwire import __version__
from coordwire.errors import CoordwireError
from coordwire.tables.columns import arrow_schema, table_schema
from coordwire.tables.formats import Conflict, footers, lacking
from coordwire.tables.storage.names import partition_date
from coordwire.tables.stores import canonical, endpoint, store_of

if TYPE_CHECKING:
    from pyarrow.parquet import ColumnChunkMetaData, FileMetaData

    from coordwire.tables.storage.folders import Output

__all__ = ["DeltaTableFiles"]

_COLOURS = re.compile(r"\x1b\[[0-9;]*m|\u21b3")
LONGEST = 500


def url(place: str) -> str:
    """A URI whose path is escaped, from one whose path is as it is."""
    scheme, _, location = canonical(place).partition("://")
    authority, slash, path = location.partition("/")
    return f"{scheme}://{authority}{slash}{quote(path)}"


def storage_options(place: str) -> dict[str, str]:
    """delta-rs's options for a URI: the region, an endpoint that may be without TLS, an account key by its
    other name. Raises as `store_of`."""
    scheme = canonical(place).partition("://")[0]
    if scheme == "s3":
        store, _ = store_of(place)
        system: Any = store.system
        options = {"aws_conditional_put": "etag", "aws_region": str(system.region)}
        if server := endpoint():
            options["aws_endpoint"] = server
            options["aws_allow_http"] = str(server.lower().startswith("http:")).lower()
        return options
    if scheme == "abfss" and (key := os.environ.get("AZURE_STORAGE_KEY")):
        return {"azure_storage_account_key": key}
    return {}


def in_one_line(error: BaseException) -> str:
    """What delta-rs says on several lines, in colours, on one."""
    sentence = " ".join(_COLOURS.sub(" ", str(error)).split())
    return sentence if len(sentence) <= LONGEST else f"{sentence[:LONGEST]}\N{HORIZONTAL ELLIPSIS}"


# --- the table ---


LOG = "_delta_log"
PLAIN_READER = 1
"""The version of Delta's protocol in which the files alone make the rows."""


class DeltaTableFiles:
    """`VersionedTable` in Delta."""

    def __init__(self, output: Output, table: str, table_id: str) -> None:
        self._output = output
        self._table = table
        self._app = f"coordwire-{table_id}"
        self._place = output.path(table) if output.local else f"{output.place.rstrip('/')}/{table}"
        self._url = self._place if output.local else url(self._place)
        self._storage = None if output.local else storage_options(output.place)
        self._schema = Schema.from_arrow(arrow_schema(table_schema(table)))
        self._partitions = ["date"] if any(field.name == "date" for field in self._schema.fields) else []
        self._delta: DeltaTable | None = None

    def committed(self) -> int | None:
        self._delta = None
        if LOG not in self._output.entries(self._table):
            return None
        self._output.check(f"{self._table}/{LOG}")
        with self._explained("read as a Delta table"):
            self._delta = DeltaTable(self._url, storage_options=self._storage)
        number: int | None = self._delta.transaction_version(self._app)
        if number is None:
            raise CoordwireError(
                f"{self._place} is a Delta table that was not written with this folder's manifest: "
                "choose another --out"
            )
        return number

    def files(self) -> list[str]:
        if self._delta is None:
            return []
        protocol = self._delta.protocol()
        if protocol.min_reader_version > PLAIN_READER:
            raise CoordwireError(
                f"{self._place} uses features of Delta that only its own readers know "
                f"({', '.join(protocol.reader_features or ()) or 'column mapping'}): read it in a session "
                "with the Delta package"
            )
        names = []
        for path in self._delta.get_add_actions(flatten=True).column("path").to_pylist():
            names.append(path if "://" in path else f"{self._table}/{unquote(path)}")
        return sorted(names)

    def commit(self, number: int, adds: Mapping[str, int], removes: Collection[str]) -> None:
        new_files = footers(self._output, sorted(adds))
        actions = [self._added(name, adds[name], delta_statistics(footer)) for name, footer in new_files]
        properties = CommitProperties(
            app_transactions=[Transaction(self._app, number)],
            custom_metadata={"coordwire": __version__, "coordwireCommit": str(number)},
            max_commit_retries=0,
        )
        with self._explained("written"):
            if self._delta is None:
                create_table_with_add_actions(
                    self._url, self._schema, actions, storage_options=self._storage,
                    partition_by=self._partitions, commit_properties=properties,
                )  # fmt: skip
                return
            self._add_columns(self._delta)
            removed = [self._removed(name) for name in sorted(removes)]
            self._delta.create_write_transaction(
                [*actions, *removed], "append", self._delta.schema(), self._partitions,
                commit_properties=properties,
            )  # fmt: skip

    @contextmanager
    def _explained(self, action: str) -> Iterator[None]:
        """delta-rs's errors as ours."""
        try:
            yield
        except CommitFailedError as error:
            raise Conflict(f"{self._place}: {in_one_line(error)}") from None
        except DeltaError as error:
            if action == "written" and self._delta is None and LOG in self._output.entries(self._table):
                raise Conflict(f"{self._place}: {in_one_line(error)}") from None
            raise CoordwireError(f"{self._place} can't be {action}: {in_one_line(error)}") from None
        except OSError as error:
            raise CoordwireError(f"{self._place} can't be {action}: {in_one_line(error)}") from None

    def _added(self, name: str, size: int, stats: str) -> AddAction:
        return AddAction(name.removeprefix(f"{self._table}/"), size, self._values(name), _now(), True, stats)

    def _removed(self, name: str) -> RemoveAction:
        return RemoveAction(
            name.removeprefix(f"{self._table}/"), True, _now(), partition_values=self._values(name)
        )

    def _values(self, name: str) -> dict[str, str | None]:
        return {"date": partition_date(name)} if self._partitions else {}

    def _add_columns(self, delta: DeltaTable) -> None:
        present = {field.name: field.type.to_json() for field in delta.schema().fields}
        expected = {field.name: field.type.to_json() for field in self._schema.fields}
        if names := lacking(self._place, present, expected):
            new = [Field(field.name, field.type) for field in self._schema.fields if field.name in names]
            delta.alter.add_columns(new)
            delta.update_incremental()


def _now() -> int:
    return int(time.time() * 1000)


# --- what footers say, for the log ---


LONGEST_BOUND = 64
"""Characters of a text that is a bound; Parquet's writer cuts none."""

LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def delta_statistics(metadata: FileMetaData) -> str:
    """The statistics of a file as Delta has them: its rows, and the bounds and nulls of its flat columns.

    Bounds are an aid to readers, which leave out files by them: where one might be inexact (long texts, times
    that no calendar has) there is none.
    """
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
        try:
            low = min((part.min for part in bounded), default=None)
            high = max((part.max for part in bounded), default=None)
        except OverflowError:
            continue
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
        return (low, high) if max(len(low), len(high)) <= LONGEST_BOUND else None
    if isinstance(low, datetime):
        if high > LAST:
            return None
        return _milliseconds(low), _milliseconds(high + timedelta(milliseconds=1))
    return None


def _milliseconds(time: datetime) -> str:
    time = time.astimezone(UTC)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03}Z".rjust(24, "0")
