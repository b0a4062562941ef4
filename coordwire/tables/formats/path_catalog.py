"""Iceberg tables that are found by their folder, without a catalog's server, as Spark's Hadoop tables are.

Strategy: a commit creates `metadata/vN.metadata.json`, N being the next number, which only one writer can do;
`version-hint.text` names the newest for readers. Spark finds such tables by their path, or by a catalog of
type `hadoop` whose warehouse is the output folder, and any catalog can register them. Rules: files are read
and written through the pipeline's folder, below its root only, whatever URIs the metadata has.
"""

from __future__ import annotations

__all__ = ["FolderFiles", "PathCatalog"]

import io
import re
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableResponse, CreateTableTransaction, StagedTable, Table
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil, TableMetadataV1, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import AssertCreate, TableRequirement, TableUpdate, update_table_metadata

from coordwire.errors import CoordwireError
from coordwire.tables.stores import canonical, is_uri

if TYPE_CHECKING:
    from coordwire.tables.storage.folders import Output

METADATA = "metadata"
_VERSION = re.compile(r"v(\d+)\.(gz\.)?metadata\.json")
_LARGEST = 1 << 30
"""Bytes that a compressed metadata file may have, uncompressed."""

_NOTHING = TableMetadataV1.model_construct(last_column_id=-1, schema=Schema())
"""What the updates of a transaction that creates a table are applied to."""


class _FolderFile(InputFile, OutputFile):
    """A file of the folder, for pyiceberg."""

    def __init__(self, output: Output, name: str, location: str) -> None:
        super().__init__(location)
        self._output = output
        self._name = name

    def __len__(self) -> int:
        status = self._output.folder.stat(self._name)
        if status is None:
            raise FileNotFoundError(self.location)
        return status.size

    def exists(self) -> bool:
        return self._output.folder.stat(self._name) is not None

    def open(self, seekable: bool = True) -> InputStream:
        return cast(InputStream, self._output.folder.open(self._name))

    def create(self, overwrite: bool = False) -> OutputStream:
        stream = self._output.folder.open_new(self._name)
        if isinstance(stream, io.RawIOBase):
            stream = io.BufferedWriter(stream)
        return cast(OutputStream, stream)

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
        location = f"{name}/{METADATA}/{file}"
        data = self._output.read(location) or b""
        if file.endswith(".gz.metadata.json"):
            data = zlib.decompressobj(31).decompress(data, _LARGEST)
        metadata = TableMetadataUtil.parse_raw(data.decode())
        return Table((name,), metadata, self.files.location(location), self.files, self)

    def _newest(self, name: str) -> tuple[int, str | None]:
        versions = [
            (int(match[1]), entry)
            for entry in self._output.folder.entries(f"{name}/{METADATA}")
            if (match := _VERSION.fullmatch(entry)) is not None
        ]
        return max(versions, default=(0, None))

    def create_transaction(
        self, name: str, schema: Schema, spec: PartitionSpec, properties: dict[str, str]
    ) -> CreateTableTransaction:
        """A transaction that creates a table and may add files to it."""
        metadata = new_table_metadata(
            schema, spec, UNSORTED_SORT_ORDER, self.files.location(name), properties
        )
        location = self.files.location(f"{name}/{METADATA}/v1.metadata.json")
        return CreateTableTransaction(StagedTable((name,), metadata, location, self.files, self))

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        name = table.name()[-1]
        current = self.find_table(name)
        if current is not None:
            self._check(current.metadata)
        for requirement in requirements:
            requirement.validate(current.metadata if current else None)
        creating = any(isinstance(requirement, AssertCreate) for requirement in requirements)
        base = current.metadata if current is not None else _NOTHING
        metadata = update_table_metadata(
            base, updates, enforce_validation=creating,
            metadata_location=current.metadata_location if current is not None else None,
        )  # fmt: skip
        version, _ = self._newest(name)
        new_name = f"{name}/{METADATA}/v{version + 1}.metadata.json"
        data = metadata.model_dump_json(exclude_none=True).encode()
        if not self._output.create(new_name, data):
            raise CommitFailedException(f"another writer committed version {version + 1} of {name}")
        self._output.write(f"{name}/{METADATA}/version-hint.text", str(version + 1).encode())
        return CommitTableResponse(
            metadata=metadata.model_dump(), metadata_location=self.files.location(new_name)
        )
