"""The contents of segments for people: a row a record, under a rule that names the file.

Rules: rows are as wide as the terminal, what is longer ends in "…"; keys and values are shown as text where
they are printable, else in hex, and the meaning of records of brokers' own logs follows whole below them;
nothing from a file moves the cursor; secrets are shown on request only. Rows are written one by one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from coordwire.capture.flows import format_time
from coordwire.capture.printable import Pieces, shown
from coordwire.cli.record_sets import control_form
from coordwire.cli.segment.json_lines import Form, Lines
from coordwire.cli.terminal import rich_console, table_output
from coordwire.errors import DecodeError, counted
from coordwire.records import Record, RecordBatch, UnreadableRange

MILLI = 1_000_000
OFFSET, TIME, SMALL = 12, 24, 12
BELOW = OFFSET + 2
LONGEST = 200
"""Bytes of a key or value that are looked at."""

SECRET = ("(secret, not shown)", "dim")


class SegmentTableFormat:
    """Writes rows to standard output."""

    def __init__(self) -> None:
        self._console = rich_console("the table format", table_output())
        from rich.text import Text

        self._text = Text
        self._width = max(self._console.width, 60)
        self._lines: Lines
        self._columns: list[str] = []

    def begin(self, lines: Lines) -> None:
        self._lines = lines
        self._columns = []
        place = lines.place
        name = shown(str(place["file"]))
        topic = "" if place["topic"] is None else f" {shown(place['topic'])}-{place['partition']}"
        rule = "─" * max(self._width - len(name) - len(topic) - 4, 2)
        self._print([("── ", "dim"), (name, "cyan"), (topic, "bold"), (f" {rule}", "dim")])

    def batch(self, batch: RecordBatch) -> None:
        first = str(batch.base_offset) if batch.magic == 2 else "?"
        offsets = f"{first}…{batch.last_offset}"
        self._print(
            [
                (f"{offsets:>{OFFSET + 4}}  ", "bold"),
                (f"{_time(batch.max_timestamp):<{TIME}}  ", ""),
                (f"{batch.count if batch.count is not None else '?'} records, {batch.size} bytes at ", ""),
                (f"{batch.position}, magic {batch.magic}", ""),
                *_facts(batch),
            ]
        )

    def records(self, batch: RecordBatch, records: Iterator[Record]) -> None:
        room = self._width - OFFSET - TIME - 6
        for record in records:
            meaning: Form | None = None
            row: Pieces = [
                (f"{record.offset:>{OFFSET}}  ", "bold"),
                (f"{_time(record.timestamp):<{TIME}}  ", "dim"),
            ]
            if batch.is_control:
                row.append((_control(record), "magenta"))
            else:
                key = _bytes(record.key)
                meaning, secret = self._lines.opened(record)
                value = SECRET if secret else _bytes(record.value)
                row += [_fit(key, room // 3), ("  ", ""), _fit(value, room - room // 3)]
                if record.headers:
                    names = ", ".join(shown(name) for name, _ in record.headers)
                    row.append((f"  [{names}]", "cyan"))
                if batch.transactional:
                    row.append((f"  txn {batch.producer_id}", "magenta"))
            self._print(row)
            for line in () if meaning is None else _meaning(meaning):
                self._below(line)

    def unreadable(self, unreadable: UnreadableRange, error: DecodeError | None) -> None:
        place = f"{counted(unreadable.length, 'byte')} at {unreadable.position} can't be read: "
        self._print([(place, "bold red"), (shown(unreadable.reason if error is None else str(error)), "red")])

    def entry(self, form: dict[str, Any]) -> None:
        if list(form) != self._columns:
            self._columns = list(form)
            self._print([("  ".join(f"{name:>{SMALL}}" for name in form), "dim")])
        self._print([("  ".join(f"{value!s:>{max(SMALL, len(name))}}" for name, value in form.items()), "")])

    def _below(self, pieces: Pieces) -> None:
        """Write a text whole, over several lines if necessary."""
        from rich.padding import Padding

        text = self._text.assemble(*pieces, overflow="fold")
        self._console.print(Padding(text, (0, 0, 0, BELOW), expand=False))

    def _print(self, pieces: Pieces) -> None:
        text = self._text.assemble(*pieces)
        text.truncate(self._width, overflow="ellipsis")
        self._console.print(text, no_wrap=True, crop=False)


def _facts(batch: RecordBatch) -> Pieces:
    facts = []
    if batch.attributes & 7:
        facts.append(batch.codec if batch.attributes & 7 < 5 else f"codec {batch.attributes & 7}")
    if batch.producer_id >= 0:
        facts.append(f"producer {batch.producer_id}:{batch.producer_epoch}")
    facts += [
        word for word, applies in (("txn", batch.transactional), ("control", batch.is_control)) if applies
    ]
    return [("".join(f", {fact}" for fact in facts), "magenta")]


def _control(record: Record) -> str:
    control = control_form(record)
    if control is None:
        return "a control record that can't be read"
    return control["name"] or f"control type {control['type']}"


def _meaning(log: Form) -> Iterator[Pieces]:
    """What a record of a broker's own log holds: a line for the key, the value, and what else there is."""
    for part, version in (("key", ""), ("value", f" v{log['version']}")):
        content = log[part]
        if isinstance(content, dict):
            form = json.dumps(content["value"], ensure_ascii=False)
            yield [(f"{content['type']}{version} ", "cyan"), (shown(form), "")]
    for path, content in log.get("embedded", {}).items():
        yield [(f"{shown(path)} ", "cyan"), (shown(json.dumps(content, ensure_ascii=False)), "")]
    if "unknown" in log:
        yield [(shown(log["unknown"]), "yellow")]


def _time(stamp: int) -> str:
    return "-" if stamp == -1 else format_time(stamp * MILLI, 3)


def _bytes(data: bytes | None) -> tuple[str, str]:
    """A key or value: text and style."""
    if data is None:
        return "null", "dim"
    start = data[:LONGEST]
    try:
        text = start.decode("utf-8", "strict" if len(data) <= LONGEST else "ignore")
    except UnicodeDecodeError:
        text = ""
    if text.isprintable() and (text or not start):
        return text, "green"
    return f"0x{start.hex()}", "magenta"


def _fit(piece: tuple[str, str], width: int) -> tuple[str, str]:
    text, style = piece
    return (text if len(text) <= width else f"{text[: width - 1]}…").ljust(min(width, SMALL)), style
