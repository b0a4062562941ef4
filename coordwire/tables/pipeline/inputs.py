"""The inputs of a run: their files, the units of work that they make, and the table of files.

Rules: no file of the output folder is read, also where an input contains that folder; segments that none of
the chosen tables needs are left out. The table of files has what each input file is, and how much of it is in
rows, in quarantine, or neither. The driver writes it whole, as one more unit, after the others are complete;
it replaces the one before it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from typing import Any

from coordwire import __version__
from coordwire.capture.jsonlines import text
from coordwire.errors import CoordwireError
from coordwire.tables.columns import TABLES, arrow_schema
from coordwire.tables.options import Options
from coordwire.tables.pipeline.earlier_captures import EarlierCaptures
from coordwire.tables.pipeline.units import Unit, as_units, printable, story_units
from coordwire.tables.readers.disk_lag import OFFSETS_TOPIC, lag_parts
from coordwire.tables.readers.file_origins import FileOrigin, Origins
from coordwire.tables.readers.files import File, find_files
from coordwire.tables.readers.splits import CapturedFile, Part, capture_parts, segment_parts
from coordwire.tables.storage.folders import Output
from coordwire.tables.storage.manifest_file import FORMAT, Notes
from coordwire.tables.storage.parquet_files import UnitFiles
from coordwire.tables.storage.unit_attempt import Attempt
from coordwire.tables.stores import canonical, is_uri, local_path

__all__ = ["FILES", "check_inputs", "inputs_of", "plan", "write_files"]

OF_SEGMENTS = ("files", "batches", "records", "quarantine")
"""The tables that segments of all topics have rows in."""


def inputs_of(output: Output, inputs: Sequence[str], options: Options) -> list[File]:
    """The files to read, without those of the output folder, which may be inside of an input.

    Raises `FileNotFoundError` for an input that isn't there, `CoordwireError` for one inside of the output.
    """
    check_inputs(output, inputs)
    is_output = cache(lambda folder: _is_inside(output, folder))
    files = find_files(inputs, recursive=options.recursive)
    return [file for file in files if not is_output(file.path.rpartition("/")[0])]


def check_inputs(output: Output, inputs: Sequence[str]) -> None:
    """Raises `CoordwireError` for an input inside of the output folder."""
    for path in inputs:
        if _is_inside(output, path):
            raise CoordwireError(
                f"{printable(path)} is inside of {printable(output.place)}, the output folder"
            )


def _is_inside(output: Output, path: str) -> bool:
    """Whether a path is the output folder or below it."""
    if is_uri(path) != is_uri(output.place):
        return False
    if is_uri(path):
        return f"{canonical(path)}/".startswith(f"{canonical(output.place)}/")
    root = os.path.realpath(output.root).rstrip("/")
    return f"{os.path.realpath(local_path(path))}/".startswith(f"{root}/")


def plan(
    files: dict[str, File], options: Options, tables: Sequence[str], earlier: EarlierCaptures | None = None
) -> list[Unit]:
    """The units of these files, without those of segments that none of the tables needs.

    earlier: the captures of which units are complete; by default none.
    """
    from coordwire.tables.readers.group_rows import STORIES

    kinds: dict[str, list[File]] = {}
    for file in files.values():
        kinds.setdefault(file.kind(), []).append(file)
    earlier = earlier or EarlierCaptures({}, files)
    segments, captures = kinds.get("segment", []), kinds.get("capture", [])
    origins = Origins(files.values())
    stories = not set(STORIES).isdisjoint(tables)
    read = segments
    if set(OF_SEGMENTS).isdisjoint(tables):  # only what is wrong in those that stories come from
        read = [file for file in segments if stories and origins.of(file).topic == OFFSETS_TOPIC]
    parts: list[Part] = [
        *segment_parts(read, options, origins),
        *capture_parts(
            captures, options, stories=stories or "traffic" in tables, first=earlier.first, runs=earlier.runs
        ),
    ]
    units = [*earlier.units, *as_units(parts, files, options, tables)]
    if {"groups", "offset_commits"} & set(tables):
        units += story_units(segments, files, options, tables)
    if "lag" in tables:
        units += as_units(lag_parts(segments, origins), files, options, tables)
    return units


# --- the table of files ---


FILES = "files"
"""The table of files, and the kind of unit that it is."""


def write_files(
    output: Output, files: dict[str, File], notes: Notes, complete: Notes, run: str
) -> dict[str, Any]:
    """The note of the table of files, which is written unless there is a note of the same rows.

    notes: of the units of these files; complete: of all complete units.
    """
    import pyarrow as pa

    rows = _file_rows(files, notes)
    facts = json.dumps([FORMAT, __version__, rows])
    unit = sha256(facts.encode()).hexdigest()[:24]
    if unit in complete:
        return complete[unit]
    writing = UnitFiles(Attempt(output, unit, run), unit)
    try:
        for batch in pa.Table.from_pylist(rows, schema=arrow_schema(TABLES[FILES])).to_batches():
            writing.add(FILES, batch)
        writing.close()
        proofs = writing.attempt.place_files()
    except BaseException:
        writing.discard()
        raise
    counts = dict.fromkeys(("units_rows", "read_bytes", "quarantined_bytes", "bad_ranges", "refused"), 0)
    note = counts | {"unit": unit, "kind": FILES, "paths": [FILES], "rows": dict(writing.rows)}
    return note | {"apis": [], "error_codes": [], "files": sorted(proofs), "proofs": proofs}


def _file_rows(files: dict[str, File], notes: Notes) -> list[dict[str, Any]]:
    numbers_of: dict[str, Counter[str]] = {}
    joined: dict[str, str] = {}
    for note in notes.values():
        present = [path for path in note["paths"] if path in files]
        if note["kind"] in ("story", "lag") or not present:
            continue
        first, *further = present  # of a capture that has lost files, of those that are there
        numbers = numbers_of.setdefault(first, Counter())
        numbers.update({key: note[key] for key in ("units_rows", "read_bytes", "quarantined_bytes")})
        captured = [CapturedFile(*file) for file in note.get("captured", ())]
        numbers["others_bytes"] = sum(file.start for file in captured if file.path in present)
        joined.update((path, first) for path in further)
    origins = Origins(files.values())
    return [_file_row(file, origins.of(file), numbers_of, joined, files) for file in files.values()]


def _file_row(
    file: File, origin: FileOrigin, numbers_of: dict[str, Counter[str]], joined: dict[str, str],
    files: dict[str, File],
) -> dict[str, Any]:  # fmt: skip
    kind = file.kind()
    if kind not in ("segment", "index"):
        origin = origin._replace(broker=None, cluster_id=None)
    row: dict[str, Any] = {
        "input_file": text(file.path), "kind": kind,
        "topic": origin.topic, "partition": origin.partition, "broker_id": origin.broker,
        "cluster_id": origin.cluster_id, "file_state": origin.state, "size": file.size,
        "modified": file.modified // 1000 if file.modified else None, "other_bytes": file.size,
    }  # fmt: skip
    numbers = numbers_of.get(file.path)
    if numbers is None:
        return row | {"joined_to": joined[file.path], "other_bytes": 0} if file.path in joined else row
    size = file.size + sum(files[path].size for path, first in joined.items() if first == file.path)
    read, quarantined = numbers["read_bytes"], numbers["quarantined_bytes"]
    return row | {
        "rows": numbers["units_rows"], "read_bytes": read, "quarantined_bytes": quarantined,
        "other_bytes": max(size - read - quarantined - numbers["others_bytes"], 0),
    }  # fmt: skip
