"""`coordwire offsets --lag`: how far groups are from the ends of the logs on the same disks.

Strategy: commits and ends come from the readers of the table `lag`, which need no Spark. Rules: a partition
whose log is not among the files has no end and no lag; unreadable commits are reported, and the status
is 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

from coordwire.capture.printable import shown
from coordwire.cli import Failure
from coordwire.cli.inputs import failure, note
from coordwire.cli.selection.names import Names
from coordwire.cli.selection.survey import Survey
from coordwire.errors import UnreadableRange, counted
from coordwire.tables.options import Options
from coordwire.tables.readers.disk_lag import lag_inputs, lag_rows
from coordwire.tables.readers.file_origins import Origins
from coordwire.tables.readers.files import find_files

LagRow = dict[str, Any]
HEAD = ("group", "topic", "committed", "end", "lag")


def run(options: argparse.Namespace) -> int:
    """Write the lag of each group in each partition, by group."""
    _check(options)
    unread: list[UnreadableRange] = []
    rows = sorted(
        _rows(options, unread.append), key=lambda row: (row["group_id"], row["topic"], row["partition"])
    )
    selection = _RowSelection(options, rows)
    selected = [row for row in rows if selection(row)]
    if options.format == "json":
        for row in selected:
            sys.stdout.write(json.dumps(_form(row), separators=(",", ":")) + "\n")
    elif selected:
        sys.stdout.writelines(f"{line}\n" for line in _table(selected))
    for item in unread:
        place = f"{counted(item.length, 'byte', ',')} at byte {item.position:,}"
        note(f"{shown(item.file)}: {place} couldn't be read: {item.reason}")
    selection.report(shown(options.paths[0]) if len(options.paths) == 1 else f"{len(options.paths)} inputs")
    return 1 if unread else 0


def _check(options: argparse.Namespace) -> None:
    """Refuse options that don't go together."""
    if options.since is not None or options.until is not None:
        raise Failure("offsets: --lag is that of the last commits on disk: --since and --until do not apply")
    if options.log not in (None, "consumer_offsets"):
        raise Failure(f"offsets: --lag reads consumer_offsets, not {options.log}")


def _rows(options: argparse.Namespace, unread: Callable[[UnreadableRange], None]) -> Iterator[LagRow]:
    try:
        files = find_files(options.paths)
        for file in files:
            if file.trouble:
                raise Failure(f"{shown(file.path)}: {file.trouble}")
        inputs = lag_inputs(files, Origins(files))
        if inputs is None:
            raise Failure("no segments of __consumer_offsets there: name a broker's log directory")
        yield from lag_rows(inputs, Options(mode="failfast"), unread)
    except OSError as error:
        if error.filename is None:
            raise Failure(shown(str(error))) from None
        raise failure(str(error.filename), error) from None


class _RowSelection:
    """The filters of one command line."""

    def __init__(self, options: argparse.Namespace, rows: list[LagRow]) -> None:
        self._groups = Names(options.group, lambda texts: {row["group_id"] for row in rows} & set(texts))
        self._topics = Names(options.topic, lambda texts: {row["topic"] for row in rows} & set(texts))
        kinds = {
            name: texts for name, texts in (("groups", options.group), ("topics", options.topic)) if texts
        }
        values: dict[str, Callable[[LagRow], tuple[str, ...]]] = {
            "groups": lambda row: (row["group_id"],), "topics": lambda row: (row["topic"],)
        }  # fmt: skip
        self._survey = Survey("commits", {name: values[name] for name in kinds}, kinds)

    def __call__(self, row: LagRow) -> bool:
        is_selected = (not self._groups or self._groups(row["group_id"])) and (
            not self._topics or self._topics(row["topic"])
        )
        return self._survey.saw(row, is_selected)

    def report(self, place: str) -> None:
        self._survey.report(place)


def _form(row: LagRow) -> LagRow:
    """A row as JSON."""
    form = {
        "group": row["group_id"], "topic": row["topic"], "partition": row["partition"],
        "committed": row["committed_offset"], "endOffset": row["end_offset"], "lag": row["lag"],
    }  # fmt: skip
    return form | ({"reason": row["reason"]} if row.get("reason") else {})


def _table(rows: list[LagRow]) -> Iterator[str]:
    """A line a partition, with numbers to the right; a group's name is on its first."""
    cells = [HEAD]
    for index, row in enumerate(rows):
        first = not index or rows[index - 1]["group_id"] != row["group_id"]
        place = f"{shown(row['topic'])}-{row['partition']}"
        numbers = (
            "-" if row[name] is None else f"{row[name]:,}"
            for name in ("committed_offset", "end_offset", "lag")
        )
        cells.append((shown(row["group_id"]) if first else "", place, *numbers))  # type: ignore[arg-type]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEAD))]
    for line in cells:
        texts = (f"{text:<{width}}" for text, width in zip(line[:2], widths, strict=False))
        numbers = (f"{text:>{width}}" for text, width in zip(line[2:], widths[2:], strict=True))
        yield "  ".join([*texts, *numbers]).rstrip()
