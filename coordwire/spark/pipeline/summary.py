"""What became of the inputs: a run's summary, and the table of files, from the notes of complete units."""

from __future__ import annotations

__all__ = ["PipelineSummary", "summary_of", "write_files"]

from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from coordwire.capture.jsonlines import text
from coordwire.spark.columns import TABLES, arrow_schema
from coordwire.spark.pipeline.notes import Manifest, Notes, Proof, load
from coordwire.spark.pipeline.output import Output, UnitFiles
from coordwire.spark.readers.files import File
from coordwire.spark.readers.origins import FileOrigin, Origins

FILES_UNIT = sha256(b"the table of files").hexdigest()[:24]
"""What the table of files has in the place of a unit's name."""


@dataclass(slots=True)
class PipelineSummary:
    """What is in the tables of this run's inputs.

    bytes: of the input files; read_bytes: in rows; quarantined_bytes, bad_ranges: in quarantine; refused:
    frames that were not decoded whole; units, reused: of work, and those that were complete before. pruned:
    the files whose rows were removed since the files are gone. notices: sentences for the user: on a run
    before this one that was killed, on files that aren't the pipeline's. apis: by API name, frames and
    refused frames; error_codes: by API name, how many responses carry each code but 0.
    """

    files: int = 0
    bytes: int = 0
    frames: int = 0
    records: int = 0
    batches: int = 0
    refused: int = 0
    bad_ranges: int = 0
    read_bytes: int = 0
    quarantined_bytes: int = 0
    units: int = 0
    reused: int = 0
    seconds: float = 0.0
    pruned: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    apis: dict[str, tuple[int, int]] = field(default_factory=dict)
    error_codes: dict[str, dict[int, int]] = field(default_factory=dict)

    @property
    def unread(self) -> int:
        """What could not be read: frames that were refused, and ranges of bytes."""
        return self.refused + self.bad_ranges


def summary_of(files: dict[str, File], notes: Notes) -> PipelineSummary:
    """The summary of a run over these files, by the notes of its units."""
    rows: Counter[str] = Counter()
    apis: dict[str, tuple[int, int]] = {}
    summary = PipelineSummary(
        files=len(files), bytes=sum(file.size for file in files.values()), units=len(notes)
    )
    for note in notes.values():
        rows.update(note["rows"])
        if note["kind"] == "capture":
            summary.frames += note["units_rows"]
        elif note["kind"] == "segment":
            summary.batches += note["units_rows"]
        summary.read_bytes += note["read_bytes"]
        summary.quarantined_bytes += note["quarantined_bytes"]
        summary.bad_ranges += note["bad_ranges"]
        summary.refused += note["refused"]
        for api, bad, count in note["apis"]:
            good, refused = apis.get(api, (0, 0))
            apis[api] = (good + count, refused + count * bad)
        for api, code, count in note.get("error_codes", ()):
            codes = summary.error_codes.setdefault(api, {})
            codes[code] = codes.get(code, 0) + count
    summary.records = rows["records"]
    summary.apis = dict(sorted(apis.items()))
    return summary


def write_files(
    output: Output, files: dict[str, File], notes: Notes, run: str
) -> tuple[dict[str, Proof], dict[str, Proof]]:
    """The table of files: what each is, and what became of its bytes. Its new files, and those to remove."""
    import pyarrow as pa

    found: dict[str, Counter[str]] = {}
    joined: dict[str, str] = {}
    for note in notes.values():
        first, *rest = note["paths"]
        if note["kind"] in ("story", "lag"):
            continue
        numbers = found.setdefault(first, Counter())
        numbers.update({key: note[key] for key in ("units_rows", "read_bytes", "quarantined_bytes")})
        joined.update((path, first) for path in rest)
    origins = Origins(files.values())
    rows = [_file_row(file, origins.of(file), found, joined, files) for file in files.values()]
    writing = UnitFiles(output, FILES_UNIT, run)
    try:
        for batch in pa.Table.from_pylist(rows, schema=arrow_schema(TABLES["files"])).to_batches():
            writing.add("files", batch)
        writing.close()
        return writing.attempt.place_files(), (load(output) or Manifest()).files
    except BaseException:
        writing.discard()
        raise


def _file_row(
    file: File,
    origin: FileOrigin,
    found: dict[str, Counter[str]],
    joined: dict[str, str],
    files: dict[str, File],
) -> dict[str, Any]:
    kind = file.kind()
    if kind not in ("segment", "index"):
        origin = origin._replace(broker=None, cluster_id=None)
    row: dict[str, Any] = {
        "path": text(file.path), "kind": kind,
        "topic": origin.topic, "partition": origin.partition, "broker": origin.broker,
        "cluster_id": origin.cluster_id, "file_state": origin.state, "size": file.size,
        "modified": file.modified // 1000 if file.modified else None, "other_bytes": file.size,
    }  # fmt: skip
    if file.path in joined:
        return row | {"joined_to": joined[file.path], "other_bytes": 0}
    numbers = found.get(file.path)
    if numbers is None:
        return row
    size = file.size + sum(files[path].size for path, first in joined.items() if first == file.path)
    read, bad = numbers["read_bytes"], numbers["quarantined_bytes"]
    return row | {
        "rows": numbers["units_rows"], "read_bytes": read, "quarantined_bytes": bad,
        "other_bytes": max(size - read - bad, 0),
    }  # fmt: skip
