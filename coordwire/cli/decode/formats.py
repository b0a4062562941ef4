"""How `coordwire decode` shows entries: the formats, and the options that choose one.

Rules: the format does not depend on where standard output goes, so that `| less` and `> file` show what the
terminal does; a format's module is imported when it is chosen.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any, Protocol

from coordwire.capture.entries import Entry, FrameEntry
from coordwire.cli import Failure
from coordwire.cli.decode import tables
from coordwire.cli.selection.names import TopicNames

NAMING = ("line", "tsv", "csv")
"""Formats that have the names of topics."""


class DecodeFormat(Protocol):
    """Writes the entries of captures. One with `plain` lines (`coordwire.capture.plain_lines`) writes only
    entries that have none. One whose output depends on the entries before has a `state`, for pickle."""

    def write(self, entry: Entry, digits: int) -> None:
        """One entry; `digits`: decimals of a second that its time has."""

    def finish(self) -> None:
        """Write what waits, at the end of a capture."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        choices=("tree", "line", "json", "hex", "tsv", *tables.FORMATS),
        help="tree (default); line: a line a frame; json: an object a line; hex: annotated bytes; tsv "
        "(default with --fields) and csv: columns; with --out, csv and parquet: tables",
    )
    parser.add_argument(
        "--fields",
        metavar="A,B.C,…",
        help="columns of tsv and csv; --help-all lists them",
    )


def choose_format(options: argparse.Namespace, topics: TopicNames) -> DecodeFormat:
    """The format for standard output. Raises `Failure` for options that don't go together."""
    name = name_of(options)
    if name in ("tsv", "csv"):
        from coordwire.cli.decode.columns import ColumnsFormat

        comma = name == "csv"
        return ColumnsFormat(options.fields, comma=comma, show_secrets=options.show_secrets, names=topics)
    if options.fields is not None:
        raise Failure(f"--fields chooses the columns of --format tsv or csv, not of {name}")
    if name == "line":
        from coordwire.cli.decode.line import LineFormat

        return LineFormat(show_secrets=options.show_secrets, names=topics)
    if name == "tree":
        from coordwire.cli.decode.tree import TreeFormat

        return TreeFormat(show_secrets=options.show_secrets, deep=options.deep)
    if name == "hex":
        from coordwire.cli.annotated_hex import HexFormat

        return HexFormat(show_secrets=options.show_secrets, strict=options.strict)
    return DecodeJsonFormat(show_secrets=options.show_secrets, deep=options.deep)


def name_of(options: argparse.Namespace) -> str:
    """The format's name, where none is given too."""
    name: str = options.format or ("tree" if options.fields is None else "tsv")
    return name


class DecodeJsonFormat:
    """One JSON object a line. deep: with the contents of opaque bytes."""

    def __init__(self, *, show_secrets: bool, deep: bool) -> None:
        from coordwire.capture.jsonlines import line
        from coordwire.capture.plain_lines import PlainJsonLines

        self._line = line
        self.plain = None if deep else PlainJsonLines(show_secrets=show_secrets)
        self._show_secrets = show_secrets
        self._opened = _opened if deep else None
        self._write = sys.stdout.write

    def write(self, entry: Entry, digits: int) -> None:
        self._write(self._line(entry, digits, show_secrets=self._show_secrets, opened=self._opened))

    def finish(self) -> None:
        """Do nothing: every entry is written at once."""


def _opened(entry: FrameEntry, show_secrets: bool) -> dict[str, Any]:
    """The contents of a frame's opaque bytes and of its record sets."""
    from coordwire.capture.redaction.entry_secrets import withheld
    from coordwire.cli import embedded_json, record_sets, telemetry

    forms = embedded_json.opened(entry, show_secrets=show_secrets)
    if entry.message is not None:
        hidden = () if show_secrets else withheld(entry).paths
        forms |= record_sets.forms(entry.message, show_secrets=show_secrets, hidden=hidden)
        forms |= telemetry.forms(entry.message)
    return forms
