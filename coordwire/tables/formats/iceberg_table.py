"""A table in Iceberg, written by pyiceberg, and the catalog that finds it by its folder.

Strategy: the workers' files are added to the table, and the files that they replace deleted from it, in one
snapshot; columns that a later version has come in the same commit, which also carries the pipeline's number,
as a property of the table. A commit creates `metadata/vN.metadata.json`, N being the next number, which only
one writer can do; `version-hint.text` names the newest for readers. Spark finds such tables by their path, or
by a catalog of type `hadoop` whose warehouse is the output folder, and any catalog can register them. The
catalog here is one by the public interfaces `Catalog` and `FileIO`: pyiceberg makes the metadata, and tries a
commit again on top of another's. Rules: dates are an identity partition, whose values are not in the files;
columns are found in the files by their names (`schema.name-mapping.default`); the format's version is 2.
Files are read and written through the folder of the pipeline, below its root only, whatever URIs the metadata
has.
"""

from __future__ import annotations

__all__ = ["IcebergTableFiles", "PathCatalog"]

import io
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, ValidationException
from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream
from pyiceberg.io.pyarrow import (
    MetricModeTypes,
    MetricsMode,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, FileScanTask, Table, Transaction
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import IcebergType, ListType, StructType

from coordwire import __version__
from coordwire.errors import CoordwireError
from coordwire.tables.columns import arrow_schema, table_schema
from coordwire.tables.formats import Conflict, footers, lacking
from coordwire.tables.storage.names import partition_date
from coordwire.tables.stores import canonical, is_uri

if TYPE_CHECKING:
    from coordwire.tables.storage.folders import Output

# --- the catalog ---

METADATA = "metadata"
_VERSION = re.compile(r"v(\d+)\.(?:gz\.)?metadata\.json")


class _NewFile(io.BytesIO):
    """A file of metadata, which is written when it is closed, and replaces none."""

    def __init__(self, output: Output, name: str) -> None:
        super().__init__()
        self._output = output
        self._name = name

    def close(self) -> None:
        if self.closed:
            return
        data = self.getvalue()
        super().close()
        if not self._output.create(self._name, data):
            raise FileExistsError(f"there is a file {self._output.path(self._name)}")


class _FolderFile(InputFile, OutputFile):
    """A file of the folder, for pyiceberg."""

    def __init__(self, output: Output, name: str, location: str) -> None:
        super().__init__(location)
        self._output = output
        self._name = name

    def __len__(self) -> int:
        status = self._output.stat(self._name)
        if status is None:
            raise FileNotFoundError(self.location)
        return status.size

    def exists(self) -> bool:
        return self._output.stat(self._name) is not None

    def open(self, seekable: bool = True) -> InputStream:
        return cast(InputStream, self._output.open(self._name))

    def create(self, overwrite: bool = False) -> OutputStream:
        return cast(OutputStream, _NewFile(self._output, self._name))

    def to_input_file(self) -> InputFile:
        return self


class FolderFiles(FileIO):
    """The files of the output folder, by their URIs."""

    def __init__(self, output: Output) -> None:
        super().__init__({})
        self._output = output
        if output.local:
            self.root = f"file://{output.root.rstrip('/')}"
        else:
            scheme, _, path = output.place.rstrip("/").partition("://")
            self.root = f"{scheme.lower()}://{path}"

    def location(self, name: str) -> str:
        """The URI of a file."""
        return f"{self.root}/{name}"

    def name(self, location: str) -> str | None:
        """The name of a file below the root; None for others."""
        if is_uri(location):  # s3a:// is s3://
            location, roots = canonical(location), {canonical(self.root)}
        else:
            roots = {self.root, self.root.replace("file://", "file:", 1), self._output.root}
        for root in roots:
            if location.startswith(f"{root}/"):
                return location[len(root) + 1 :]
        return None

    def _file(self, location: str) -> _FolderFile:
        name = self.name(location)
        if name is None:
            raise CoordwireError(f"expected a file below {self.root}, got {location}")
        return _FolderFile(self._output, name, location)

    def new_input(self, location: str) -> InputFile:
        return self._file(location)

    def new_output(self, location: str) -> OutputFile:
        return self._file(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        name = self.name(location if isinstance(location, str) else location.location)
        if name is not None:
            self._output.delete(name)


class PathCatalog(NoopCatalog):
    """The tables of one output folder, each by the name of its own folder.

    check: is called with a table's metadata right before a commit on top of it, and raises where the commit
    was made for another state of the table.
    """

    def __init__(self, output: Output, check: Callable[[TableMetadata], None]) -> None:
        super().__init__("coordwire")
        self._output = output
        self._check = check
        self.files = FolderFiles(output)

    def find_table(self, name: str) -> Table | None:
        """A table as it is now; None where there is none."""
        _, file = self._newest(name)
        if file is None:
            return None
        location = self.files.location(f"{name}/{METADATA}/{file}")
        metadata = FromInputFile.table_metadata(self.files.new_input(location))
        return Table((name,), metadata, location, self.files, self)

    def load_table(self, identifier: str | tuple[str, ...]) -> Table:
        name = identifier if isinstance(identifier, str) else identifier[-1]
        table = self.find_table(name)
        if table is None:
            raise NoSuchTableError(f"{self._output.path(name)} is not an Iceberg table")
        return table

    def _newest(self, name: str) -> tuple[int, str | None]:
        versions = [
            (int(match[1]), entry)
            for entry in self._output.entries(f"{name}/{METADATA}")
            if (match := _VERSION.fullmatch(entry)) is not None
        ]
        return max(versions, default=(0, None))

    def new_table(self, name: str, schema: Schema, spec: PartitionSpec, properties: dict[str, str]) -> Table:
        """A table that is there with the first commit on top of it."""
        place = self.files.location(name)
        metadata = new_table_metadata(schema, spec, UNSORTED_SORT_ORDER, place, properties)
        return Table((name,), metadata, f"{place}/{METADATA}/v0.metadata.json", self.files, self)

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        name = table.name()[-1]
        version, _ = self._newest(name)
        current = self.find_table(name)
        if current is not None:
            self._check(current.metadata)
        base = current or table
        for requirement in requirements:
            requirement.validate(base.metadata)
        metadata = update_table_metadata(
            base.metadata, updates, metadata_location=current.metadata_location if current else None
        )
        new_name = f"{name}/{METADATA}/v{version + 1}.metadata.json"
        if not self._output.create(new_name, metadata.model_dump_json(exclude_none=True).encode()):
            raise CommitFailedException(f"another writer committed version {version + 1} of {name}")
        self._output.write(f"{name}/{METADATA}/version-hint.text", str(version + 1).encode())
        return CommitTableResponse(
            metadata=metadata.model_dump(), metadata_location=self.files.location(new_name)
        )


# --- the table ---

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
        if lacking(self._output.path(self._table), present, expected):
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
            try:
                statistics = data_file_statistics_from_parquet_metadata(footer, plan, columns)
            except OverflowError:  # times that no calendar has: no bounds
                counts = MetricsMode(MetricModeTypes.COUNTS)
                counted = {number: replace(collector, mode=counts) for number, collector in plan.items()}
                statistics = data_file_statistics_from_parquet_metadata(footer, counted, columns)
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
        fields = ", ".join(f"{field.name}: {_type_name(field.field_type)}" for field in kind.fields)
        return f"struct<{fields}>"
    return str(kind)
