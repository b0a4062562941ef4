"""The contents of segments for people: a row a record, under a rule that names the file.

Rules: keys and values are shown as text where they are printable, else in hex, their first `LONGEST` bytes;
the meaning of records of brokers' own logs follows whole below them; nothing from a file moves the cursor;
secrets are shown on request only. Rows are written one by one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from coordwire.capture.flows import format_time
from coordwire.capture.printable import Pieces, shown
from coordwire.cli.record_sets import control_form
from coordwire.cli.segment.json_lines import Form, Lines
from coordwire.cli.terminal import columns, line_writer
from coordwire.errors import DecodeError, counted
from coordwire.records import Record, RecordBatch, UnreadableRange

MILLI = 1_000_000
OFFSET, TIME, KEY, NUMBER = 12, 24, 12, 13
BELOW = OFFSET + 2
LONGEST = 200
"""Bytes of a key or value that are shown."""

SECRET = ("(secret, not shown)", "note")


class SegmentTableFormat:
    """Writes rows to standard output."""

    def __init__(self) -> None:
        self._write = line_writer()
        self._width = columns()
        self._lines: Lines
        self._columns: list[str] = []

    def begin(self, lines: Lines) -> None:
        self._lines = lines
        self._columns = []
        place = lines.place
        name = shown(str(place["file"]))
        topic = "" if place["topic"] is None else f" {shown(place['topic'])}-{place['partition']}"
        rule = "─" * max(self._width - len(name) - len(topic) - 4, 2)
        self._write([[("── ", "rule"), (name, "name"), (topic, "api"), (f" {rule}", "rule")]])

    def batch(self, batch: RecordBatch) -> None:
        first = str(batch.base_offset) if batch.magic == 2 else "?"
        offsets = f"{first}…{batch.last_offset}"
        records = "? records" if batch.count is None else counted(batch.count, "record")
        row: Pieces = [
            (f"{offsets:>{OFFSET + 4}}  ", "api"),
            (f"{_time(batch.max_timestamp):<{TIME}}  ", "plain"),
            (f"{records}, {counted(batch.size, 'byte')} at {batch.position}, magic {batch.magic}", "plain"),
            *_facts(batch),
        ]
        self._write([row])

    def records(self, batch: RecordBatch, records: Iterator[Record]) -> None:
        for record in records:
            meaning: Form | None = None
            row: Pieces = [
                (f"{record.offset:>{OFFSET}}  ", "api"),
                (f"{_time(record.timestamp):<{TIME}}  ", "note"),
            ]
            if batch.is_control:
                row.append((_control(record), "bytes"))
            else:
                key, style = _bytes(record.key)
                meaning, secret = self._lines.opened(record)
                row += [(f"{key:<{KEY}}  ", style), SECRET if secret else _bytes(record.value)]
                if record.headers:
                    names = ", ".join(shown(name) for name, _ in record.headers)
                    row.append((f"  [{names}]", "name"))
                if batch.transactional:
                    row.append((f"  txn {batch.producer_id}", "bytes"))
            self._write([row])
            for line in () if meaning is None else _meaning(meaning):
                self._write([[(" " * BELOW, "plain"), *line]])

    def unreadable(self, unreadable: UnreadableRange, error: DecodeError | None) -> None:
        place = f"{counted(unreadable.length, 'byte')} at {unreadable.position} can't be read: "
        reason = shown(unreadable.reason if error is None else str(error))
        self._write([[(place, "error"), (reason, "error")]])

    def entry(self, form: dict[str, Any]) -> None:
        if list(form) != self._columns:
            self._columns = list(form)
            self._row([f"{name:>{NUMBER}}" for name in form], "note")
        self._row([f"{value!s:>{max(NUMBER, len(name))}}" for name, value in form.items()], "plain")

    def _row(self, cells: list[str], style: str) -> None:
        """Write cells in a line, or in as many as a terminal has room for, broken after the same columns."""
        width = self._width if sys.stdout.isatty() else sys.maxsize
        line = ""
        for cell in cells:
            if line and len(line) + 2 + len(cell) > width:
                self._write([[(line, style)]])
                line = "  "
            line += f"{'  ' if line else ''}{cell}"
        self._write([[(line, style)]])


def _facts(batch: RecordBatch) -> Pieces:
    facts = []
    if batch.attributes & 7:
        facts.append(batch.codec if batch.attributes & 7 < 5 else f"codec {batch.attributes & 7}")
    if batch.producer_id >= 0:
        facts.append(f"producer {batch.producer_id}:{batch.producer_epoch}")
    facts += [
        word for word, applies in (("txn", batch.transactional), ("control", batch.is_control)) if applies
    ]
    return [("".join(f", {fact}" for fact in facts), "bytes")]


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
            yield [(f"{content['type']}{version} ", "name"), (shown(form), "plain")]
    for path, content in log.get("embedded", {}).items():
        yield [(f"{shown(path)} ", "name"), (shown(json.dumps(content, ensure_ascii=False)), "plain")]
    if "unknown" in log:
        yield [(shown(log["unknown"]), "odd")]


def _time(stamp: int) -> str:
    return "-" if stamp == -1 else format_time(stamp * MILLI, 3)


def _bytes(data: bytes | None) -> tuple[str, str]:
    """A key or value: text and style."""
    if data is None:
        return "null", "none"
    start = data[:LONGEST]
    omission = f"… ({len(data):,} bytes)" if len(data) > LONGEST else ""
    try:
        text = start.decode("utf-8", "ignore" if omission else "strict")
    except UnicodeDecodeError:
        text = ""
    if text.isprintable() and (text or not start):
        return text + omission, "text"
    return f"0x{start.hex()}{omission}", "bytes"
