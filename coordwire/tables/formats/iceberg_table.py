"""A table in Iceberg, written by pyiceberg.

Strategy: the workers' files are added to the table, and the files that they replace deleted from it, in one
snapshot; columns that a later version has come in the same commit, which also carries the pipeline's number,
as a property of the table. Rules: dates are an identity partition, whose values are not in the files; columns
are found in the files by their names (`schema.name-mapping.default`); the format's version is 2.
"""

from __future__ import annotations

__all__ = ["IcebergTableFiles"]

from collections.abc import Collection, Iterator, Mapping
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import IcebergType, ListType, StructType

from coordwire import __version__
from coordwire.errors import CoordwireError
from coordwire.tables.columns import arrow_schema, table_schema
from coordwire.tables.formats import Conflict, differing
from coordwire.tables.formats.file_statistics import footers
from coordwire.tables.formats.path_catalog import METADATA, PathCatalog
from coordwire.tables.storage.names import partition_date

if TYPE_CHECKING:
    from coordwire.tables.storage.folders import Output

OWNER, NUMBER = "coordwire.table-id", "coordwire.commit"
_PARTITION_ID = 1000
"""The first id of a partition's field, by Iceberg's convention."""


class IcebergTableFiles:
    """`VersionedTable` in Iceberg."""

    def __init__(self, output: Output, table: str, table_id: str) -> None:
        self._output = output
        self._table = table
        self._id = table_id
        self._number: int | None = None
        self._iceberg: Table | None = None
        self._catalog = PathCatalog(output, self._check)

    def committed(self) -> int | None:
        self._number = self._iceberg = None
        if METADATA in self._output.entries(self._table):
            self._output.check(f"{self._table}/{METADATA}")
            self._iceberg = self._catalog.find_table(self._table)
        if self._iceberg is not None:
            self._number = self._number_of(self._iceberg.metadata)
        return self._number

    def _number_of(self, metadata: TableMetadata) -> int:
        if metadata.properties.get(OWNER) != self._id:
            raise CoordwireError(
                f"{self._output.path(self._table)} is an Iceberg table that was not written with this "
                "folder's manifest: choose another --out"
            )
        return int(metadata.properties[NUMBER])

    def _check(self, metadata: TableMetadata) -> None:
        if self._number_of(metadata) != self._number:
            raise Conflict(f"another run committed to {self._output.path(self._table)}")

    def files(self) -> list[str]:
        return sorted(self._name(task.file) for task in self._tasks())

    def _tasks(self) -> Iterator[FileScanTask]:
        if self._iceberg is None:
            return
        for task in self._iceberg.scan().plan_files():
            if task.delete_files:
                raise CoordwireError(
                    f"{self._output.path(self._table)} has files of deleted rows, which only Iceberg's own "
                    "readers know: read it in a session with the Iceberg package, or compact it"
                )
            yield task

    def _name(self, file: DataFile) -> str:
        return self._catalog.files.name(file.file_path) or file.file_path

    def commit(self, number: int, adds: Mapping[str, int], removes: Collection[str]) -> None:
        stamp = {OWNER: self._id, NUMBER: str(number)}
        try:
            transaction: Transaction = (self._iceberg or self._new()).transaction()
            self._add_columns(transaction)
            transaction.set_properties(stamp)
            self._change(transaction, number, adds, removes)
            transaction.commit_transaction()
        except (CommitFailedException, ValidationException) as error:
            raise Conflict(f"{self._output.path(self._table)}: {error}") from None

    def _new(self) -> Table:
        schema = self._schema
        partition = [field for field in schema.fields if field.name == "date"]
        spec = (
            PartitionSpec(PartitionField(partition[0].field_id, _PARTITION_ID, IdentityTransform(), "date"))
            if partition
            else UNPARTITIONED_PARTITION_SPEC
        )
        mapping = {"schema.name-mapping.default": schema.name_mapping.model_dump_json()}
        return self._catalog.new_table(self._table, schema, spec, mapping)

    @cached_property
    def _schema(self) -> Schema:
        """The columns, as pyiceberg adds them to a table without any, with the ids of a new table."""

        def new_table(schema: Schema) -> Table:
            return self._catalog.new_table(self._table, schema, UNPARTITIONED_PARTITION_SPEC, {})

        transaction = new_table(Schema()).transaction()
        with transaction.update_schema() as update:
            update.union_by_name(arrow_schema(table_schema(self._table)))
        return new_table(transaction.table_metadata.schema()).schema()

    def _add_columns(self, transaction: Transaction) -> None:
        present = {
            field.name: _type_name(field.field_type) for field in transaction.table_metadata.schema().fields
        }
        expected = {field.name: _type_name(field.field_type) for field in self._schema.fields}
        if wrong := differing(present, expected):
            raise CoordwireError(
                f"{self._output.path(self._table)}: {'; '.join(wrong)}: choose another --out"
            )
        if set(expected) - set(present):
            with transaction.update_schema() as update:
                update.union_by_name(self._schema)

    def _change(
        self, transaction: Transaction, number: int, adds: Mapping[str, int], removes: Collection[str]
    ) -> None:
        if not adds and not removes:
            return
        properties = {"coordwire.version": __version__, NUMBER: str(number)}
        update = transaction.update_snapshot(snapshot_properties=properties)
        change: Any = update.overwrite() if removes else update.fast_append()
        with change:
            for file in self._data_files(transaction.table_metadata, adds):
                change.append_data_file(file)
            for task in self._tasks() if removes else ():
                if self._name(task.file) in removes:
                    change.delete_data_file(task.file)

    def _data_files(self, metadata: TableMetadata, adds: Mapping[str, int]) -> Iterator[DataFile]:
        schema, spec = metadata.schema(), metadata.spec()
        plan = compute_statistics_plan(schema, metadata.properties)
        columns = parquet_path_to_id_mapping(schema)
        for name, footer in footers(self._output, sorted(adds)):
            statistics = data_file_statistics_from_parquet_metadata(footer, plan, columns)
            yield DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=self._catalog.files.location(name),
                file_format=FileFormat.PARQUET,
                partition=Record(*([] if spec.is_unpartitioned() else [_days(partition_date(name))])),
                file_size_in_bytes=adds[name],
                sort_order_id=None,
                spec_id=spec.spec_id,
                equality_ids=None,
                key_metadata=None,
                **statistics.to_serialized_dict(),
            )


def _days(day: str | None) -> int | None:
    return None if day is None else (date.fromisoformat(day) - date(1970, 1, 1)).days


def _type_name(kind: IcebergType) -> str:
    """A type without the ids of its fields."""
    if isinstance(kind, ListType):
        return f"list<{_type_name(kind.element_type)}>"
    if isinstance(kind, StructType):
        return (
            f"struct<{', '.join(f'{field.name}: {_type_name(field.field_type)}' for field in kind.fields)}>"
        )
    return str(kind)
