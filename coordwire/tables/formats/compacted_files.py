"""Files that a compaction made of the pipeline's, written again without the rows that a commit replaces.

Strategy: after a compaction a table no longer has the files that the manifest names, and a commit that
replaces an input's rows can't remove them by file. Then the files that the manifest doesn't name are read,
and each that has rows of such inputs is replaced, in the same commit, by one without them. Rules: an input is
known by the column with its path; where a unit that stays has rows of the same path, the commit is refused.
"""

from __future__ import annotations

__all__ = ["without_replaced"]

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from coordwire.capture.jsonlines import text
from coordwire.errors import CoordwireError
from coordwire.tables.columns import TABLES, arrow_schema
from coordwire.tables.readers.files import is_uri
from coordwire.tables.storage.manifest_file import Manifest
from coordwire.tables.storage.output import Output
from coordwire.tables.storage.parquet_files import UnitFiles

if TYPE_CHECKING:
    import pyarrow

UNIT = sha256(b"rows that stay of compacted files").hexdigest()[:24]
"""What these files have in the place of a unit's name."""

_INPUTS = ("capture", "source", "path")
"""The columns that name a row's input, by which a table is asked first: in `errors` a path is a field's."""


def without_replaced(
    output: Output, manifest: Manifest, table: str, files: Sequence[str], run: str
) -> tuple[dict[str, int], set[str]]:
    """The files to add, with their sizes, and those to remove.

    files: those of the table; run: the current one. Raises `CoordwireError` where rows can't be
    separated.
    """
    named = {name for note in manifest.units.values() for name in note["proofs"]}
    named.update(manifest.files, manifest.log.retired)
    unnamed = [name for name in files if name not in named]
    paths = _replaced(output, manifest, table)
    writing = UnitFiles(output, UNIT, run)
    removes = set()
    try:
        for name in unnamed:
            rows = _read(output, table, name)
            staying = _staying(rows, table, paths)
            if staying.num_rows < rows.num_rows:
                removes.add(name)
                for batch in staying.to_batches():
                    writing.add(table, batch)
        writing.close()
        proofs = writing.attempt.place_files() if writing.names else {}
    finally:
        writing.discard()  # what is placed stays: the table's log is about to name it, or it is cleaned by it
    return {name: proof[0] for name, proof in proofs.items()}, removes


def _replaced(output: Output, manifest: Manifest, table: str) -> set[str] | None:
    """The inputs whose rows are removed; None for all."""
    if table == "files":
        return None
    paths = set(manifest.log.replaced.get(table, ()))
    for note in manifest.units.values():
        if note.get("commit", 0) < manifest.log.commit and any(
            name.startswith(f"{table}/") for name in note["proofs"]
        ):
            shared = sorted(paths.intersection(note["paths"]))
            if shared:
                raise CoordwireError(
                    f"{output.path(table)} was compacted, and only some of its rows of {text(shared[0])} are "
                    "to be replaced: choose another --out"
                )
    return {text(path) for path in paths}


def _read(output: Output, table: str, name: str) -> pyarrow.Table:
    import pyarrow as pa
    import pyarrow.parquet

    if is_uri(name):
        raise CoordwireError(f"{output.path(table)} has files outside of its folder, as {name}")
    with output.folder.open(name) as stream:
        rows = pyarrow.parquet.ParquetFile(stream, coerce_int96_timestamp_unit="us").read()
    schema = arrow_schema(TABLES[table])
    return pa.table(
        [
            rows.column(field.name).cast(field.type)
            if field.name in rows.column_names
            else pa.nulls(rows.num_rows, field.type)
            for field in schema
        ],
        schema=schema,
    )


def _staying(rows: pyarrow.Table, table: str, paths: set[str] | None) -> pyarrow.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    if paths is None:
        return rows.slice(0, 0)
    column = next(name for name in _INPUTS if name in rows.column_names)
    going = pc.is_in(rows.column(column), value_set=pa.array(sorted(paths), pa.string()))
    return rows.filter(pc.invert(going))
