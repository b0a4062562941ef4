"""The contents of the report: the summary of a run, by the notes of its units, and rows of the tables."""

from __future__ import annotations

__all__ = ["PipelineSummary", "TableRows", "summary_of"]

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from coordwire.tables.readers.files import File
from coordwire.tables.storage.manifest_file import Notes


@dataclass(slots=True)
class PipelineSummary:
    """The results of a run over its inputs.

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
        """How many refused frames and unreadable ranges there are."""
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
        for api, is_refused, count in note["apis"]:
            total, refused = apis.get(api, (0, 0))
            apis[api] = (total + count, refused + count * is_refused)
        for api, code, count in note.get("error_codes", ()):
            codes = summary.error_codes.setdefault(api, {})
            codes[code] = codes.get(code, 0) + count
    summary.records = rows["records"]
    summary.apis = dict(sorted(apis.items()))
    return summary


class TableRows(Protocol):
    """Bounded parts of the tables."""

    def rows(
        self,
        name: str,
        columns: str,
        order: str,
        most: int,
        *,
        known: Sequence[str] = (),
        among: Mapping[str, Sequence[str]] | None = None,
    ) -> list[Any]:
        """The first rows: an attribute for each column, times in microseconds since 1970.

        None where the table isn't written. columns, order: names with spaces between them, null first.
        known: columns that are not null; among: the values that a column has one of.
        """
