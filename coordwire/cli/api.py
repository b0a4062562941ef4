"""`coordwire api`: the APIs, their versions and their fields.

Strategy: facts and field tables become plain dicts first, which `--format json` writes as they are; the text
is laid out from the same dicts. Rules: names are found in any case, and by key; messages, headers and data
types by their own names too.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import textwrap
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from coordwire import messages
from coordwire.cli import Failure, diff
from coordwire.cli.reference import about, rows, versions
from coordwire.layout import Message
from coordwire.messages import find_message
from coordwire.messages.keys import FACTS

Form = dict[str, Any]
LONGEST_TYPE = 26
NARROW, WIDE = 60, 120


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", nargs="?", metavar="NAME|KEY", help="an API, or a message, header or data type"
    )
    parser.add_argument("--diff", nargs=2, type=int, metavar=("V1", "V2"), help="what V2 has that V1 has not")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(options: argparse.Namespace) -> int:
    width = min(max(shutil.get_terminal_size((100, 24)).columns, NARROW), WIDE)
    if options.name is None:
        if options.diff:
            raise Failure("api: --diff needs the name of an API")
        form: Any = [_fact(key) for key in sorted(FACTS)]
        lines = _list_text(form, width)
    else:
        key, classes = _find(options.name)
        if options.diff:
            form = _diff(key, classes, *options.diff)
            lines = _diff_text(form, width)
        else:
            form = _describe(key, classes)
            lines = _text(form, width)
    if options.format == "json":
        lines = iter([json.dumps(form, indent=2, ensure_ascii=True)])
    for line in lines:
        sys.stdout.write(line.rstrip() + "\n")
    return 0


def _find(name: str) -> tuple[int | None, list[type[Message]]]:
    """An API's key and both its messages; or one message, with its API's key if it has one."""
    apis = {facts.name.lower(): key for key, facts in FACTS.items()}
    key = int(name) if name.isdecimal() and name.isascii() else apis.get(name.lower())
    if key in FACTS:
        return key, [find_message(key, "request"), find_message(key, "response")]
    types = {word.lower(): word for word in messages.__all__ if word not in ("find_message",)}
    if name.lower() in types:
        try:
            cls = find_message(types[name.lower()])
        except KeyError:
            pass
        else:
            return cls.api_key, [cls]
    near = get_close_matches(name.lower(), [*apis, *types], 1)
    hint = f"; {FACTS[apis[near[0]]].name if near[0] in apis else types[near[0]]} meant?" if near else ""
    raise Failure(f"api: nothing is called {name!r}{hint}")


# --- as dicts ---


def _fact(key: int) -> Form:
    facts = FACTS[key]
    return {
        "key": key, "name": facts.name, "versions": [facts.first, facts.last], "flexible": facts.flexible,
        "coordinator": facts.coordinator, "about": facts.about,
    }  # fmt: skip


def _describe(key: int | None, classes: list[type[Message]]) -> Form:
    if key is None:
        cls = classes[0]
        flexible = cls.flexible_versions[0] if cls.flexible_versions else None
        form: Form = {
            "name": cls.__name__, "versions": [cls.versions[0], cls.versions[-1]], "flexible": flexible,
            "about": " ".join(about(cls).split()),
        }  # fmt: skip
    else:
        form = _fact(key) | {"changes": FACTS[key].changes}
    return form | {"messages": [_message(cls) for cls in classes]}


def _message(cls: type[Message]) -> Form:
    newest = cls.versions[-1]
    fields = []
    for row in rows(cls):
        field = row.field
        fields.append(
            {
                "path": row.path, "name": row.name, "type": row.type,
                "versions": versions(row.first, row.last, newest),
                "nullable": None if row.null is None else versions(row.null[0], row.null[-1], newest),
                "default": row.default.hex() if isinstance(row.default, bytes) else row.default,
                "tag": field.tag, "embedded": field.embedded, "doc": row.doc,
            }
        )  # fmt: skip
    return {"name": cls.__name__, "direction": cls.direction, "fields": fields}


def _diff(key: int | None, classes: list[type[Message]], old: int, new: int) -> Form:
    for version in (old, new):
        if version not in classes[0].versions:
            known = classes[0].versions
            raise Failure(f"api: there is no version {version}: there are {known[0]} to {known[-1]}")
    facts = FACTS[key] if key is not None else None
    sides = []
    for cls in classes:
        side: Form = {"name": cls.__name__, "fields": diff.differences(cls, old, new)}
        if (lengths := diff.encoding(cls, old, new)) is not None:
            side["encoding"] = lengths
        if (headers := diff.header(cls, old, new)) is not None:
            side["header"] = list(headers)
        sides.append(side)
    name = classes[0].__name__ if facts is None or len(classes) == 1 else facts.name
    said = diff.changes(facts, old, new) if facts else {}
    return {"name": name, "from": old, "to": new, "changes": said, "messages": sides}


# --- as text ---


def _list_text(forms: list[Form], width: int) -> Iterator[str]:
    longest = max(len(form["name"]) for form in forms)
    head = f"{'key':>3}  {'name':<{longest}}  {'versions':<8}  {'flexible':<8}  {'coordinator':<11}  "
    yield head + "about"
    for form in forms:
        first, last = form["versions"]
        flexible = "-" if form["flexible"] is None else f"{form['flexible']}+"
        start = (
            f"{form['key']:>3}  {form['name']:<{longest}}  {f'{first}-{last}':<8}  {flexible:<8}  "
            f"{form['coordinator'] or '-':<11}  "
        )
        yield start + textwrap.shorten(form["about"], max(width - len(start), 20), placeholder="…")


def _text(form: Form, width: int) -> Iterator[str]:
    yield ", ".join(_title(form))
    yield from _wrap(form["about"], 2, width)
    if form.get("changes"):
        yield ""
        yield "Versions"
        for version, text in sorted(form["changes"].items()):
            yield from _wrap(text, 7, width, f"  {f'v{version}':<5}")
    for message in form["messages"]:
        yield ""
        yield message["name"]
        yield from _fields(message["fields"], width)


def _title(form: Form) -> Iterator[str]:
    yield form["name"]
    if "key" in form:
        yield f"api key {form['key']}"
    first, last = form["versions"]
    yield f"versions {first}-{last}" if first != last else f"version {first}"
    if form["flexible"] is not None:
        yield f"flexible from {form['flexible']}"
    if form.get("coordinator"):
        yield f"to the {form['coordinator']} coordinator"


def _fields(fields: list[Form], width: int) -> Iterator[str]:
    if not fields:
        yield "  (no fields)"
        return
    names = [f"{'  ' * (field['path'].count('.') + 1)}{field['name']}" for field in fields]
    column = min(max(map(len, names)), 40)
    types = [_short(field["type"]) for field in fields]
    type_column = max(map(len, types))
    for name, kind, field in zip(names, types, fields, strict=True):
        start = f"{name:<{column}}  {kind:<{type_column}}  {field['versions']:<5}  "
        yield from _wrap(" ".join([*_notes(field), field["doc"]]).strip(), len(start), width, start)


def _short(kind: str) -> str:
    return kind if len(kind) <= LONGEST_TYPE else f"{kind[: LONGEST_TYPE - 1]}…"


def _notes(field: Form) -> Iterator[str]:
    if field["nullable"] is not None:
        since = "" if field["nullable"] == field["versions"] else f" {field['nullable']}"
        yield f"[nullable{since}]"
    if field["default"] is not None:
        yield f"[default {json.dumps(field['default'])}]"
    if field["tag"] is not None:
        yield f"[tag {field['tag']}]"
    if field["embedded"] is not None:
        yield f"[holds {field['embedded']}]"


def _wrap(text: str, indent: int, width: int, start: str | None = None) -> Iterator[str]:
    """A text in lines, all indented but for what the first begins with."""
    first = " " * indent if start is None else start
    if not text:
        yield first
        return
    room = max(width, indent + 30)
    yield from textwrap.wrap(
        text, room, initial_indent=first, subsequent_indent=" " * indent, break_on_hyphens=False
    )


def _diff_text(form: Form, width: int) -> Iterator[str]:
    yield f"{form['name']}, from version {form['from']} to {form['to']}"
    for version, text in form["changes"].items():
        yield from _wrap(text, 7, width, f"  {f'v{version}':<5}")
    for side in form["messages"]:
        yield ""
        yield side["name"]
        if "header" in side:
            yield f"  ~ header {side['header'][0]} becomes header {side['header'][1]}"
        if "encoding" in side:
            yield f"  ~ {side['encoding']}"
        for change in side["fields"]:
            yield from _wrap(change["doc"], 6, width, f"  {_change_text(change)}")
        if not side["fields"] and "encoding" not in side:
            yield "  = the same layout"


def _change_text(change: Form) -> str:
    path, kind = change["path"], change["type"]
    notes = [f"tag {change['tag']}"] if "tag" in change else []
    notes += ["nullable"] if change.get("nullable") else []
    notes += [f"with {change['fields']} fields"] if "fields" in change else []
    more = f" ({', '.join(notes)})" if notes else ""
    match change["change"]:
        case "added":
            return f"+ {path}: {kind}{more}  "
        case "removed":
            return f"- {path}: {kind}{more}  "
        case "tag":
            return f"~ {path}: tag {change['from']} becomes {change['to']}  "
        case other:
            return f"~ {path}: now {other}  "
