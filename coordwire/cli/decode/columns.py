"""Chosen fields of entries as columns: tab-separated, or CSV.

Rules: a line a frame; no field of a cell breaks it, since what isn't printable is escaped as in the tree. A
value that isn't there is empty; several are joined by commas; structs are JSON. CSV has a line of names at
its top, quotes as RFC 4180 says, and an apostrophe before texts that spreadsheets would take for formulas;
tab-separated text has none of these, for `cut`, `sort` and `awk`.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from typing import Any

from coordwire.capture.answer_errors import AnswerError
from coordwire.capture.entries import Entry
from coordwire.capture.flows import format_time
from coordwire.capture.jsonlines import encode
from coordwire.capture.printable import as_text, shown
from coordwire.cli import Failure
from coordwire.cli.selection.expressions import FIELD, FilterError, Name
from coordwire.cli.selection.fields import EntryFields, FieldPath, Sort, resolve
from coordwire.cli.selection.names import TopicNames

DEFAULT = "time,packet,client,broker,direction,api,apiVersion,group,topic,latency,error,refused"


class ColumnsFormat:
    """Writes one line an entry to standard output. fields: their names with commas between them."""

    def __init__(self, fields: str | None, *, comma: bool, show_secrets: bool, names: TopicNames) -> None:
        self._fields = list(_resolved(DEFAULT if fields is None else fields))
        self._show_secrets = show_secrets
        self._names = names
        self._comma = csv.writer(sys.stdout, lineterminator="\n") if comma else None
        if self._comma is not None:
            self._comma.writerow([field.path for field in self._fields])

    def write(self, entry: Entry, digits: int) -> None:
        fields = EntryFields(entry, digits, show_secrets=self._show_secrets, names=self._names)
        values = [[value for value in field.values(fields) if value is not None] for field in self._fields]
        cells = [
            ",".join(_cell(value, field.sort, digits) for value in row)
            for field, row in zip(self._fields, values, strict=True)
        ]
        if self._comma is not None:
            is_text = (bool(row) and isinstance(row[0], str) for row in values)
            self._comma.writerow(
                as_text(cell) if text else cell for cell, text in zip(cells, is_text, strict=True)
            )
        else:
            sys.stdout.write("\t".join(cells) + "\n")

    def finish(self) -> None:
        """Do nothing: every entry is written at once."""


def _resolved(text: str) -> Iterator[FieldPath]:
    at = 0
    for part in text.split(","):
        path = part.strip()
        start = at + len(part) - len(part.lstrip())
        try:
            if FIELD.fullmatch(path) is None:
                raise FilterError("expected a field's name", start, start + len(path))
            yield resolve(Name(path, start, start + len(path)))
        except FilterError as error:
            raise Failure(f"--fields: {error.pointed(text)}") from None
        at += len(part) + 1


def _cell(value: Any, sort: Sort, digits: int) -> str:
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, AnswerError):
        return value.name
    if sort == "time":
        return format_time(value, digits)
    if sort == "duration":
        return f"{value / 1e6:.6f}".rstrip("0").rstrip(".") + "ms"
    return str(value) if isinstance(value, int) else encode(value)
