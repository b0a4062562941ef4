"""The inputs of a run: their files, and the units of work that the files make.

Rules: no file of the output folder is read, also where an input contains that folder; segments that none of
the chosen tables needs are left out.
"""

from __future__ import annotations

__all__ = ["check_inputs", "inputs_of", "plan"]

import os
from collections.abc import Sequence
from functools import cache

from coordwire.errors import CoordwireError
from coordwire.tables.options import Options
from coordwire.tables.pipeline.units import Unit, as_units, printable, story_units
from coordwire.tables.readers.disk_lag import OFFSETS_TOPIC, lag_parts
from coordwire.tables.readers.file_origins import Origins
from coordwire.tables.readers.files import File, find_files
from coordwire.tables.readers.splits import Part, capture_parts, segment_parts
from coordwire.tables.storage.output import Output
from coordwire.tables.stores import canonical, is_uri, local_path

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


def plan(files: dict[str, File], options: Options, tables: Sequence[str]) -> list[Unit]:
    """The units of these files, without those of segments that none of the tables needs."""
    from coordwire.tables.readers.group_rows import STORIES

    kinds: dict[str, list[File]] = {}
    for file in files.values():
        kinds.setdefault(file.kind(), []).append(file)
    segments, captures = kinds.get("segment", []), kinds.get("capture", [])
    origins = Origins(files.values())
    stories = not set(STORIES).isdisjoint(tables)
    read = segments
    if set(OF_SEGMENTS).isdisjoint(tables):  # only what is wrong in those that stories come from
        read = [file for file in segments if stories and origins.of(file).topic == OFFSETS_TOPIC]
    parts: list[Part] = [
        *segment_parts(read, options, origins),
        *capture_parts(captures, options, stories=stories),
    ]
    units = as_units(parts, files, options, tables)
    if {"groups", "offset_commits"} & set(tables):
        units += story_units(segments, files, options, tables)
    if "lag" in tables:
        units += as_units(lag_parts(segments, origins), files, options, tables)
    return units
