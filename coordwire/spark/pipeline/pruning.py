"""Rows of files that are gone, removed on request, without reading anything.

    pipeline.prune(["/backup", "caps"], "tables")  # the files whose rows went

Strategy: as a run, under its lock: the manifest says which units read which files, and only rows that it
knows are removed. Rules: nothing goes where it isn't certain that a file is gone (`gone`); the manifest has
what is to go before it goes, so that a run after a kill finishes it.
"""

from __future__ import annotations

__all__ = ["prune"]

from collections.abc import Collection, Sequence

from coordwire.capture.jsonlines import text
from coordwire.errors import CoordwireError
from coordwire.spark.options import Options
from coordwire.spark.pipeline.attempts import remove_ours
from coordwire.spark.pipeline.gone import gone_units, paths_of
from coordwire.spark.pipeline.job import clear_attempts, inputs_of
from coordwire.spark.pipeline.locks import Lock
from coordwire.spark.pipeline.manifest import check_folder, commit, complete_units, remove_orphans
from coordwire.spark.pipeline.notes import Manifest, load
from coordwire.spark.pipeline.output import Output, UnitFiles
from coordwire.spark.pipeline.summary import FILES_UNIT
from coordwire.spark.pipeline.table_formats import PARQUET


def prune(inputs: Sequence[str], out: str, *, options: Options | None = None) -> list[str]:
    """Remove the rows of files that were below these inputs and are gone; the files' paths.

    Raises `FileNotFoundError` for an input that isn't there, and `CoordwireError` where it isn't certain that
    files are gone: a folder that can't be listed, is empty, or was on a disk that isn't mounted. Nothing is
    removed then.
    """
    output = Output(out)
    files = {file.path: file for file in inputs_of(output, inputs, options or Options())}
    check_folder(output)
    lock = Lock(output)
    lock.acquire()
    try:
        if (load(output) or Manifest()).log.format != PARQUET:
            raise CoordwireError(
                f"{output.shown} has tables in another format than Parquet: prune them with a run, by --prune"
            )
        notes = complete_units(output)
        clear_attempts(output, notes)
        gone = gone_units(output, notes, (), files, inputs)
        paths = paths_of(notes, gone)
        held = remove_orphans(output, notes, notes.keys() - gone, (), gone)
        if paths:
            _forget(output, set(map(text, paths)), lock.run)
        clear_attempts(output, held)
    finally:
        lock.release()
    return paths


def _forget(output: Output, paths: Collection[str], run: str) -> None:
    """Take files out of the table of files."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet

    before = load(output) or Manifest()
    writing = UnitFiles(output, FILES_UNIT, run)
    try:
        for name in before.files:
            with output.folder.open(name) as stream:
                rows = pyarrow.parquet.read_table(stream)
            kept = rows.filter(pc.invert(pc.is_in(rows.column("path"), pa.array(paths, pa.string()))))
            for batch in kept.to_batches():
                writing.add("files", batch)
        writing.close()
        files = writing.attempt.place_files()
    except BaseException:
        writing.discard()
        raise
    commit(output, before.units, files=files, removing=before.files | before.removing)
    for name, proof in before.files.items():
        remove_ours(output, name, proof)
