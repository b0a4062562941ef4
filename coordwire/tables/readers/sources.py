"""Which reader reads what, by the names of the data sources.

Strategy: a `SourceDefinition` has the parts of a data source: its columns, and the reader for each kind of
file; `plan` lists files and cuts them, `read` runs a reader on one task's parts. Rules: in permissive mode
nothing about a file's content or permissions ends a job. A plugin of remote storage may compress and encrypt
a segment in chunks, and says so in a manifest beside it (`.rsm-manifest`, Aiven's); such a file holds no
batches that can be found, and is quarantined whole, with that reason.
"""

from __future__ import annotations

__all__ = [
    "SOURCES",
    "SourceDefinition",
    "guarded_call",
    "plan",
    "plan_files",
    "read",
    "reason_of",
    "why_unreadable",
]

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coordwire.errors import CoordwireError, CorruptBatch
from coordwire.tables.columns import BATCHES, ERRORS, FRAMES, LAG, OFFSETS, QUARANTINE, RECORDS, Column
from coordwire.tables.options import Options
from coordwire.tables.readers.captures import read_errors, read_frames
from coordwire.tables.readers.coordinator_logs import offset_parts, read_offsets
from coordwire.tables.readers.disk_lag import lag_parts, read_lag
from coordwire.tables.readers.file_origins import Origins
from coordwire.tables.readers.files import File, find_files, open_stream
from coordwire.tables.readers.rows import Bad, quarantine_batch
from coordwire.tables.readers.segment_rows import read_batches, read_records
from coordwire.tables.readers.splits import Part, capture_parts, grouped, segment_parts
from coordwire.tables.stores import StoreError

if TYPE_CHECKING:
    import pyarrow

RowReader = Callable[[Part, Options, Sequence[str]], Iterator["pyarrow.RecordBatch | Bad"]]
"""What makes rows of these columns from a part."""


@dataclass(frozen=True, slots=True)
class SourceDefinition:
    """A data source. readers: by kind of file.

    least: the columns that a reader is asked for where only the bad ranges matter.
    """

    name: str
    columns: tuple[Column, ...]
    readers: Mapping[str, RowReader]
    least: Mapping[str, str] | None = None


SOURCES = {
    source.name: source
    for source in (
        SourceDefinition("kafka-segment", RECORDS, {"segment": read_records}),
        SourceDefinition("kafka-segment-batches", BATCHES, {"segment": read_batches}),
        SourceDefinition("kafka-capture", FRAMES, {"capture": read_frames}),
        SourceDefinition("kafka-errors", ERRORS, {"capture": read_errors}),
        SourceDefinition("kafka-lag", LAG, {"segment": read_lag}),
        SourceDefinition("kafka-offsets", OFFSETS, {"segment": read_offsets}),
        SourceDefinition(
            "kafka-quarantine",
            QUARANTINE,
            {"segment": read_records, "capture": read_frames},
            {"segment": "topic", "capture": "frame"},
        ),
    )
}


def plan(source: SourceDefinition, options: Options) -> list[tuple[Part, ...]]:
    """The parts that each task reads. Raises `FileNotFoundError` for a path that isn't there."""
    if not options.paths:
        raise CoordwireError(f"{source.name} needs a path: load(path) or load([path, …])")
    return plan_files(source, find_files(options.paths, recursive=options.recursive), options)


def plan_files(source: SourceDefinition, files: Iterable[File], options: Options) -> list[tuple[Part, ...]]:
    """As `plan`, for files that were listed before."""
    files = list(files)
    kinds: dict[str, list[File]] = {"segment": [], "capture": []}
    for file in files:
        kind = file.kind()
        if kind in source.readers:
            kinds[kind].append(file)
    if source.name == "kafka-offsets":
        return grouped(offset_parts(kinds["segment"], options, Origins(files)), options)
    if source.name == "kafka-lag":
        return [(part,) for part in lag_parts(kinds["segment"], Origins(files))]
    segments = segment_parts(kinds["segment"], options, Origins(files))
    # What can't be read is in a capture's first share, and the others have none of it.
    captures = capture_parts(kinds["capture"], options, shared=source.least is None)
    return grouped([*segments, *captures], options)


def read(
    source: SourceDefinition, parts: Iterable[Part], options: Options, columns: Sequence[str]
) -> Iterator[pyarrow.RecordBatch]:
    """One task's rows. Raises in failfast mode only: `OSError`, and `DecodeError` for the first bad range."""
    for part in parts:
        names = columns if source.least is None else [source.least[part.kind]]
        for item in guarded_call(source.readers[part.kind], part, options, names):
            if isinstance(item, Bad) == (source.least is None):
                continue
            yield quarantine_batch([item], columns) if isinstance(item, Bad) else item


def guarded_call(
    reader: Callable[..., Iterator[pyarrow.RecordBatch | Bad]],
    part: Part,
    options: Options,
    *arguments: Any,
) -> Iterator[pyarrow.RecordBatch | Bad]:
    """The rows and bad ranges that a reader gives. A file that can't be read is a bad range, unless failfast.

    So is a file on which the reader fails in an unforeseen way: one file must not end a job of a million. A
    store that can't be reached raises `StoreError` in any mode, a lack of memory `MemoryError`: neither says
    anything about the file, and the task may be tried again.
    """
    reason = None
    try:
        if (reason := why_unreadable(part)) is not None:
            raise CorruptBatch(f"{part.path}: {reason}", part.start)
        yield from reader(part, options, *arguments)
    except MemoryError:
        raise
    except Exception as error:
        # A store that doesn't answer says nothing about the file: the task fails, and is tried again.
        if options.failfast or (isinstance(error, StoreError) and not error.lasting):
            raise
        yield Bad(part.path, part.start, part.end, part.trouble or reason or reason_of(error), is_lost=True)


def reason_of(error: Exception) -> str:
    """Why a file can't be read, by what its reader raised."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, CoordwireError):
        return error.reason
    return f"the reader failed: {type(error).__name__}: {error}".encode("utf-8", "replace").decode()[:500]


MANIFEST = ".rsm-manifest"
TRANSFORMS = {"compression": "compressed", "encryption": "encrypted"}
MOST = 16 << 20
"""Bytes of a manifest that are read."""


def why_unreadable(part: Part) -> str | None:
    """Why a part of a segment has no batches as they are; None if it may have."""
    if part.state != "remote" or not part.path.endswith(".log"):
        return None
    try:
        with open_stream(part.path.removesuffix(".log") + MANIFEST) as stream:
            form = json.loads(stream.read(MOST))
    except (OSError, CoordwireError, ValueError, RecursionError):
        return None
    if not isinstance(form, dict):
        return None
    transforms = [word for name, word in TRANSFORMS.items() if form.get(name)]
    if not transforms:
        return None
    return f"the segment is {' and '.join(transforms)} in remote storage, as its {MANIFEST} says"
