"""Iceberg tables that are found by their folder, without a catalog's server, as Spark's Hadoop tables are.

Strategy: a commit creates `metadata/vN.metadata.json`, N being the next number, which only one writer can do;
`version-hint.text` names the newest for readers. Spark finds such tables by their path, or by a catalog of
type `hadoop` whose warehouse is the output folder, and any catalog can register them. It is a catalog of its
own by the public interfaces `Catalog` and `FileIO`: pyiceberg makes the metadata, and tries a commit again on
top of another's. Rules: files are read and written through the folder of the pipeline, below its root only,
whatever URIs the metadata has.
"""

from __future__ import annotations

__all__ = ["FolderFiles", "PathCatalog"]

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata

from coordwire.errors import CoordwireError
from coordwire.tables.stores import canonical, is_uri

if TYPE_CHECKING:
    from coordwire.tables.storage.folders import Output

METADATA = "metadata"
_VERSION = re.compile(r"v(\d+)\.(?:gz\.)?metadata\.json")


class _NewFile(io.BytesIO):
    """A file of metadata, which is written when it is closed."""

    def __init__(self, output: Output, name: str) -> None:
        super().__init__()
        self._output = output
        self._name = name

    def close(self) -> None:
        if not self.closed:
            self._output.write(self._name, self.getvalue())
        super().close()


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
