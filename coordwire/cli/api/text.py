"""The output of `coordwire api` as text: lists, field tables, differences.

Rules: everything comes from the dicts that `--format json` writes; no line is wider than asked for, as far as
names allow; no description is cut, and no word is broken: where there is no room beside a row, its text is
below it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from coordwire.cli.api.fields import default_note, entity_note

Form = dict[str, Any]
_ARTICLES = {
    "controller": "the controller",
    "leader": "the partitions' leaders",
    "broker of the resource": "the broker that a resource names, else any",
    "broker of the replicas": "the broker of the replicas",
}
LONGEST_TYPE = 26
"""The width of the column of types; the name of a longer one is shown in full, and moves its line's text."""

LEAST_ROOM = 30
"""Columns in which a description is beside its row."""

_TOGETHER = "\xa0"
"""A space at which no line is broken."""


def list_text(forms: list[Form], width: int) -> Iterator[str]:
    longest = max(len(form["name"]) for form in forms)
    head = f"{'key':>3}  {'name':<{longest}}  {'versions':<8}  {'flexible':<8}  {'coordinator':<11}  "
    yield f"{head}about" if len(head) + LEAST_ROOM <= width else head.rstrip()
    for form in forms:
        flexible = "-" if form["flexible"] is None else f"{form['flexible']}+"
        start = (
            f"{form['key']:>3}  {form['name']:<{longest}}  {_span(form):<8}  {flexible:<8}  "
            f"{form['coordinator'] or '-':<11}  "
        )
        yield from wrap(form["about"], len(start), width, start)


def others_text(forms: list[Form], width: int) -> Iterator[str]:
    longest = max((len(form["name"]) for form in forms), default=0)
    for group, members in groupby(forms, key=lambda form: form["group"]):
        yield ""
        yield group
        for form in members:
            number = "" if form["number"] is None else str(form["number"])
            start = f"{number:>6}  {form['name']:<{longest}}  {_span(form):<8}  "
            yield from wrap(form["about"], len(start), width, start)


def _span(form: Form) -> str:
    first, last = form["versions"]
    return f"{first}-{last}" if last > first else str(first)


def describe_text(form: Form, width: int) -> Iterator[str]:
    yield from wrap(", ".join(_title(form)), 2, width, "")
    yield from wrap(form["about"], 2, width)
    if "listeners" in form:
        yield from wrap(" ".join(_service(form)), 2, width)
        yield from wrap(
            " ".join(
                map(_headers, (form["requestHeaders"], form["responseHeaders"]), ("Request", "Response"))
            ),
            2,
            width,
        )
    if form.get("changes"):
        yield ""
        yield "Versions"
        for version, text in sorted(form["changes"].items()):
            yield from wrap(text, 7, width, f"  {f'v{version}':<5}")
    if form.get("errors"):
        yield ""
        yield "Errors"
        yield from _errors(form["errors"], width)
    for message in form["messages"]:
        yield ""
        yield f"{message['name']}, in {message['module']}"
        yield from _fields(message["fields"], width)


def _errors(errors: list[Form], width: int) -> Iterator[str]:
    """One error a line, with its condition; one list where no condition is known."""
    if any(error["condition"] for error in errors):
        for error in errors:
            condition = f": {error['condition']}" if error["condition"] else ""
            yield from wrap(f"{error['name']}{condition}", 7, width, f"  {error['code']:<5}")
        return
    codes = (f"{error['code']}{_TOGETHER}{error['name']}" for error in errors)
    for line in wrap(", ".join(codes), 2, width):
        yield line.replace(_TOGETHER, " ")


def _title(form: Form) -> Iterator[str]:
    yield form["name"]
    if "key" in form:
        yield f"api key {form['key']}"
    elif form["place"]:
        yield form["place"]
    first, last = form["versions"]
    yield f"versions {first}-{last}" if first != last else f"version {first}"
    if form["flexible"] is not None:
        yield f"flexible from {form['flexible']}"
    if form.get("coordinator"):
        yield f"to the {form['coordinator']} coordinator"
    elif "answeredBy" in form:
        yield f"to {_ARTICLES.get(form['answeredBy'], form['answeredBy'])}"


def _service(form: Form) -> Iterator[str]:
    """Where an API is served, and which versions not to rely on."""
    yield f"Listeners: {', '.join(form['listeners'])}."
    if form["deprecated"]:
        first, last = form["deprecated"]
        yield f"Deprecated: versions {first}-{last}." if last > first else f"Deprecated: version {first}."
    if form["unstable"] is not None:
        yield f"Unstable: version {form['unstable']}."


def _headers(headers: list[Form], subject: str) -> str:
    """Which header precedes which versions."""
    if len(headers) == 1:
        return f"{subject} header: v{headers[0]['version']}."
    parts = [f"v{header['version']} in {_span(header)}" for header in headers]
    return f"{subject} header: {', '.join(parts)}."


def _fields(fields: list[Form], width: int) -> Iterator[str]:
    if not fields:
        yield "  (no fields)"
        return
    names = [f"{'  ' * (field['path'].count('.') + 1)}{field['name']}" for field in fields]
    column = min(max(map(len, names)), 40)
    type_column = min(max(len(field["type"]) for field in fields), LONGEST_TYPE)
    indent = column + type_column + 11
    for name, field in zip(names, fields, strict=True):
        start = f"{name:<{column}}  {field['type']:<{type_column}}  {field['versions']:<5}  "
        yield from wrap(" ".join([*_notes(field), field["doc"]]).strip(), indent, width, start)


def _notes(field: Form) -> Iterator[str]:
    if field["nullable"] is not None:
        since = "" if field["nullable"] == field["versions"] else f" {field['nullable']}"
        yield f"[nullable{since}]"
    if (default := default_note(field["default"], field["nullable"] is not None)) is not None:
        yield f"[{default}]"
    if field["tag"] is not None:
        yield f"[tag {field['tag']}]"
    if field["ignorable"]:
        yield "[ignorable]"
    if field["enum"] is not None:
        yield f"[{field['enum']}]"
    if (entity := entity_note(field["name"], field["entity"])) is not None:
        yield f"[{entity}]"
    if field["secret"]:
        yield "[secret]"
    if field["embedded"] is not None:
        yield f"[holds {field['embedded']}]"


def wrap(text: str, indent: int, width: int, start: str | None = None) -> Iterator[str]:
    """A text in lines, all indented but for what the first begins with; below that, where there is no room
    beside it."""
    first = " " * indent if start is None else start
    if not text:
        yield first
        return
    if indent + LEAST_ROOM > width:
        yield first.rstrip()
        indent = len(first) - len(first.lstrip(" 0123456789")) + 4
        first = " " * indent
    elif len(first) + len(text.split(maxsplit=1)[0]) > width:
        yield first.rstrip()
        first = " " * indent
    yield from textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=" " * indent, break_on_hyphens=False,
        break_long_words=False,
    )  # fmt: skip


def diff_text(form: Form, width: int) -> Iterator[str]:
    yield f"{form['name']}, from version {form['from']} to {form['to']}"
    for version, text in form["changes"].items():
        yield from wrap(text, 7, width, f"  {f'v{version}':<5}")
    for side in form["messages"]:
        yield ""
        yield side["name"]
        if "header" in side:
            yield f"  ~ header {side['header'][0]} becomes header {side['header'][1]}"
        if "encoding" in side:
            yield f"  ~ {side['encoding']}"
        for change in side["fields"]:
            yield from wrap(f"{_change_text(change)}{change['doc']}", 6, width, "  ")
        if not side["fields"] and "encoding" not in side:
            yield "  = the same layout"


def _change_text(change: Form) -> str:
    path, kind = change["path"], change["type"]
    notes = [f"tag {change['tag']}"] if "tag" in change else []
    notes += ["nullable"] if change.get("nullable") else []
    if "default" in change:
        notes += filter(None, [default_note(change["default"], change.get("nullable", False))])
    notes += ["ignorable"] if change.get("ignorable") else []
    notes += [f"with {change['fields']} fields"] if "fields" in change else []
    suffix = f" ({', '.join(notes)})" if notes else ""
    match change["change"]:
        case "added":
            return f"+ {path}: {kind}{suffix}  "
        case "removed":
            return f"- {path}: {kind}{suffix}  "
        case "tag":
            return f"~ {path}: tag {change['from']} becomes {change['to']}  "
        case other:
            return f"~ {path}: now {other}  "
