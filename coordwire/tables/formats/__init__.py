"""The formats that tables are written in: plain Parquet, Delta and Iceberg.

Strategy: in all of them the workers write the same Parquet files to the same places. In plain Parquet the
manifest says which of them are the table; in Delta and Iceberg the table's own log does, to which the driver
commits the files, through the format's own library for Python: `deltalake` or `pyiceberg`. Rules: the library
is imported only for its format; one transaction a run for a table; a file that a table no longer has stays
in its place for those who read an older version, until the format's own cleaning removes it.

delta_table.py      a table in Delta, and how delta-rs uses a store
iceberg_table.py    a table in Iceberg, and the catalog that finds it
table_commits.py    the tables of a folder, each brought up to the last commit that the manifest has, also
                    after a compaction
"""

from __future__ import annotations

__all__ = ["FORMATS", "PARQUET", "Conflict", "VersionedTable", "check_format", "footers", "open_table"]

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Protocol

from coordwire.errors import CoordwireError
from coordwire.tables.stores import canonical, is_uri

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

    from coordwire.tables.storage.folders import Output

PARQUET = "parquet"
FORMATS = (PARQUET, "delta", "iceberg")

DELTA_STORES = ("s3", "gs", "abfss")
"""The schemes of the stores that Delta tables can be in."""

_PACKAGES = {"delta": ("deltalake", (1, 6, 6)), "iceberg": ("pyiceberg", (0, 12, 0))}
"""What each format needs, and since which version it has what is used here."""


class Conflict(CoordwireError):
    """Another writer committed to the table at the same time; the commit may be tried again."""


class VersionedTable(Protocol):
    """A table in a format with a log. Names of files are relative to the output folder, where they are in
    it; of others they are URIs."""

    def committed(self) -> int | None:
        """Read the log: the number of the pipeline's last commit in it; None where there is no table yet.
        Raises `CoordwireError` for a table of anyone else."""

    def files(self) -> list[str]:
        """The files that the table consists of, as `committed` found it. Raises `CoordwireError` where files
        alone don't make the rows: part of their rows is deleted, or columns have other names in them."""

    def commit(self, number: int, adds: Mapping[str, int], removes: Collection[str]) -> None:
        """Add and remove files in one transaction, on top of what `committed` found, and give the table the
        columns that it lacks.

        number: of the commit; adds: files with their sizes. Raises `Conflict`, `CoordwireError`.
        """


def check_format(name: str, place: str = "") -> None:
    """Raises `CoordwireError` for an unknown format, one whose package is missing, and a place for which
    the format has no name."""
    if name not in FORMATS:
        raise CoordwireError(f"no such format of tables: {name}; there are {', '.join(FORMATS)}")
    if name not in _PACKAGES:
        return
    package, least = _PACKAGES[name]
    expected = ".".join(map(str, least))
    try:
        installed = version(package)
    except PackageNotFoundError:
        raise CoordwireError(
            f"tables in the format {name} need the package {package}, {expected} or newer: "
            f"pip install 'coordwire[{name}]'; it writes them with any version of Spark"
        ) from None
    if _numbers(installed) < least:
        raise CoordwireError(
            f"tables in the format {name} need {package} {expected} or newer, and {installed} is installed: "
            f"pip install --upgrade 'coordwire[{name}]'"
        )
    scheme = canonical(place).partition("://")[0] if is_uri(place) else ""
    if name == "delta" and scheme not in ("", *DELTA_STORES):
        raise CoordwireError(
            f"Delta tables can be in {', '.join(DELTA_STORES)} or on the local disk, not in {scheme}: choose "
            f"another --out than {place}, or --format iceberg"
        )
    refused_characters = "#?%" if name == "iceberg" else "%" + bytes((*range(32), 127)).decode()
    if refused := sorted(set(place).intersection(refused_characters)):
        characters = " and ".join(ascii(character)[1:-1] for character in refused)
        raise CoordwireError(
            f"{name.capitalize()}'s readers take {characters} in a path for more than a name: choose another "
            "--out"
        )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(re.sub(r"\D.*", "", part) or 0) for part in text.split(".")[:3])


def open_table(format_name: str, output: Output, table: str, table_id: str) -> VersionedTable:
    """A table of the folder. table_id: what identifies its commits, from the manifest."""
    check_format(format_name)
    if format_name == "delta":
        from coordwire.tables.formats.delta_table import DeltaTableFiles

        return DeltaTableFiles(output, table, table_id)
    from coordwire.tables.formats.iceberg_table import IcebergTableFiles

    return IcebergTableFiles(output, table, table_id)


def lacking(place: str, present: Mapping[str, str], expected: Mapping[str, str]) -> list[str]:
    """The columns that a table lacks, by the types of all that it has and should have. Raises
    `CoordwireError` where one has another type than the pipeline writes."""
    pairs = [(name, present.get(name, kind), kind) for name, kind in expected.items()]
    if wrong := [f"{name} is {actual}, expected {kind}" for name, actual, kind in pairs if actual != kind]:
        raise CoordwireError(f"{place}: {'; '.join(wrong)}: choose another --out")
    return [name for name in expected if name not in present]


READERS = 8
"""Footers that are read at a time, since a store answers slowly."""


def footers(output: Output, names: Iterable[str]) -> Iterator[tuple[str, FileMetaData]]:
    """What the footer of each file says."""
    import pyarrow.parquet

    def read(name: str) -> tuple[str, FileMetaData]:
        with output.open(name) as stream:
            return name, pyarrow.parquet.read_metadata(stream)

    with ThreadPoolExecutor(READERS) as pool:
        yield from pool.map(read, names)
