"""The answers of `call`: as trees for people, as the JSON lines of `decode` for programs; the APIs and
versions of a broker beside coordwire's.

Strategy: an answer becomes the entry that a capture of it would give, so that its lines, its redaction and
its errors are those of `decode`. Rules: a JSON line has the nodes that answered, too; error codes go to
standard error, with their meaning.
"""

from __future__ import annotations

import json
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from typing import Any

from coordwire.capture import jsonlines
from coordwire.capture.answer_errors import answer_errors
from coordwire.capture.entries import FrameEntry
from coordwire.capture.printable import Pieces, shown
from coordwire.capture.redaction.entry_secrets import NOTHING, withheld
from coordwire.cli import message_lines, record_sets
from coordwire.cli.call.answer_tables import Table, is_list, lines, tables
from coordwire.cli.call.verbs import Verb
from coordwire.cli.embedded_json import opened
from coordwire.cli.terminal import columns, line_writer
from coordwire.client.opening import Session
from coordwire.client.requests import NodeAnswer
from coordwire.codec import Message, Response
from coordwire.embedded import open_embedded
from coordwire.enums import ErrorCode
from coordwire.errors import EncodeError
from coordwire.frames import encode_request, encode_response
from coordwire.messages.headers import RequestHeader, ResponseHeader
from coordwire.messages.keys import FACTS
from coordwire.versions import VersionRange, api_name, known_versions

_DIGITS = 3
_TOGETHER = "\xa0"
"""A space at which no line is broken."""

LONGEST_WORD = 11
"""The length of "coordinator", the longest word of a note."""


class AnswerOutput:
    """Writes answers to standard output. style: "table", "tree" or "json", None for a table where the answer
    is a list; deep: open the bytes inside; verb: what the answer was asked with."""

    def __init__(
        self, style: str | None, *, show_secrets: bool, deep: bool, verb: Verb | None = None
    ) -> None:
        self._style = style
        self._verb = verb
        self._show_secrets = show_secrets
        self._deep = deep
        self._number = 0

    def write(self, request: Message, answers: Sequence[NodeAnswer], answer: Response, seconds: float) -> int:
        """One answer, of one node or made of several. seconds: how long it took. The exit status."""
        version = min(part.version for part in answers)
        nodes = sorted(part.node_id for part in answers if part.node_id is not None)
        entry = self._entry(request, answer, version, seconds)
        if self._style == "json":
            form = jsonlines.frame_form(entry, _DIGITS, show_secrets=self._show_secrets)
            form["nodes"] = nodes
            if self._deep and (embedded := opened(entry, show_secrets=self._show_secrets)):
                form["embedded"] = embedded
            sys.stdout.write(jsonlines.encode(form) + "\n")
        elif not self._write_tables(entry, version):
            self._write_tree(entry, nodes, seconds)
        sys.stdout.flush()
        return self._report(entry)

    def _entry(self, request: Message, answer: Response, version: int, seconds: float) -> FrameEntry:
        """The answer as a capture would give it."""
        self._number += 1
        key, number, now = request.api_key, self._number, time.time_ns()
        request_entry = FrameEntry(
            capture="call", number=number * 2 - 1, flow="", time_ns=now - int(seconds * 1e9),
            direction="request", body=_request_body(request, version, number), api_key=key,
            api_version=version, body_version=version, correlation_id=number, message=request,
            header=RequestHeader(
                request_api_key=key or 0, request_api_version=version, correlation_id=number
            ),
        )  # fmt: skip
        return FrameEntry(
            capture="call", number=number * 2, flow="", time_ns=now, direction="response",
            body=encode_response(answer, version=version, correlation_id=number)[4:], api_key=key,
            api_version=version, body_version=version, correlation_id=number, message=answer,
            header=ResponseHeader(correlation_id=number), request=request_entry,
        )  # fmt: skip

    def _write_tables(self, entry: FrameEntry, version: int) -> bool:
        """Write an answer as tables; whether it is to be one, and has lists."""
        message = entry.message
        assert message is not None
        verb = self._verb
        by_default = verb is not None or (not self._deep and is_list(type(message), version))
        if self._style != "table" and (self._style is not None or not by_default):
            return False
        hidden = NOTHING if self._show_secrets else withheld(entry)
        if hidden.body:
            return False
        written = False
        write = line_writer()
        path, selected = (None, ()) if verb is None else (verb.path, verb.columns)
        for place, table in tables(message, version, set(hidden.paths), path, selected):
            if verb is None:
                write([*([[]] if written else []), [(f"{place}: {len(table.rows):,}", "note")]])
            if table.rows:
                write(lines(table, columns()))
            elif verb is not None:
                report_nothing(verb.path.rpartition(".")[2])
            written = True
        return written

    def _write_tree(self, entry: FrameEntry, nodes: Sequence[int], seconds: float) -> None:
        hidden = NOTHING if self._show_secrets else withheld(entry)
        message, version = entry.message, entry.body_version
        assert message is not None
        assert version is not None
        contents: dict[str, message_lines.Inside] = {}
        if self._deep:
            contents |= open_embedded(message)
            contents |= record_sets.layouts(message, show_secrets=self._show_secrets, hidden=hidden.paths)
        place = f"  node {', '.join(map(str, nodes))}" if nodes else ""
        head = [
            ("← ", "response"), (f"{entry.api_name} v{version}", "api"), (place, "plain"),
            (f"  {entry.size:,} B", "note"), (f"  {seconds * 1000:.1f} ms", "plain"),
        ]  # fmt: skip
        write = line_writer()
        write([head])
        if hidden.body:
            write([[("  ", "plain"), message_lines.SECRET]])
            return
        tree = message_lines.MessageLines(
            message, version, set(hidden.paths), max(columns(), 40), None, contents, self._show_secrets
        )
        write(tree.lines())

    def _report(self, entry: FrameEntry) -> int:
        errors = answer_errors(entry)
        for error in errors:
            code = ErrorCode(error.code)
            times = f" ({error.times} times)" if error.times > 1 else ""
            print(f"coordwire: {error.path}: {code.name}{times}: {code.description}", file=sys.stderr)
        return 1 if errors else 0


def _request_body(request: Message, version: int, number: int) -> bytes:
    try:
        return encode_request(request, version=version, correlation_id=number, client_id=None)[4:]
    except EncodeError:  # a part of it went in an older version
        return b""


def report_nothing(names: str) -> None:
    """Say that there are none of what was asked for, where people look and programs do not."""
    print(f"coordwire: no {names}", file=sys.stderr)


def write_table(table: Table, forms: Sequence[dict[str, Any]], style: str) -> None:
    """Write a table, or with style "json" its rows as objects, one a line."""
    if style == "json":
        for form in forms:
            sys.stdout.write(json.dumps(form, separators=(",", ":")) + "\n")
    else:
        line_writer()(lines(table, columns()))


def write_versions(session: Session, style: str) -> None:
    """Write a broker's APIs: "table" or "tree" for a table, "json" for an object a line."""
    if style == "json":
        for key, had in sorted(session.versions.items()):
            known = known_versions(key) if key in FACTS else None
            form = {
                "apiKey": key, "api": api_name(key), "versions": [had.first, had.last],
                "known": None if known is None else [known.first, known.last],
            }  # fmt: skip
            sys.stdout.write(json.dumps(form, separators=(",", ":")) + "\n")
        return
    line_writer()(_lines(session))


def _lines(session: Session) -> Iterator[Pieces]:
    width = max((len(facts.name) for facts in FACTS.values()), default=0)
    yield [(f"{'key':>3}  {'api':<{width}}  {'broker':<8}  {'coordwire':<9}  answered by", "note")]
    for key, had in sorted(session.versions.items()):
        facts = FACTS.get(key)
        known = known_versions(key) if facts else VersionRange(0, -1)
        common = had & known
        note = "-" if facts is None else facts.answered_by
        if facts is not None and facts.coordinator:
            note = f"{facts.coordinator} coordinator"
        if not common:
            note = "no common version" if facts else "unknown to coordwire"
        row: Pieces = [
            (f"{key:>3}  ", "plain"), (f"{api_name(key) or '?':<{width}}", "api"),
            (f"  {had!s:<8}", "plain"), (f"  {str(known) if facts else '-':<9}  ", "plain"),
        ]  # fmt: skip
        indent = sum(len(text) for text, _ in row)
        first, *further = wrapped(note, max(columns() - indent, LONGEST_WORD))
        yield [*row, (first, "note")]
        for text in further:
            yield [(f"{'':{indent}}{text}", "note")]
    features = [
        f"{shown(feature.name)}{_TOGETHER}{feature.max_version_level}"
        for feature in session.response.finalized_features
    ]
    for number, text in enumerate(wrapped(", ".join(features), max(columns() - 10, LONGEST_WORD))):
        yield [("" if number else "features: ", "note"), (f"{'':{10 if number else 0}}{text}", "plain")]


def wrapped(text: str, room: int) -> list[str]:
    """The lines of a text, whose words stay whole."""
    lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
    return [line.replace(_TOGETHER, " ") for line in lines]
