"""`coordwire api`: the APIs, their versions and their fields.

Strategy: facts and field tables become plain dicts first, which `--format json` writes as they are; the text
is laid out from the same dicts. Rules: names are found in any case, and by key; messages, headers, data
types, records and requests of other dialects by their own names too; a version shows the wire layout.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from typing import Any

from coordwire.cli import Failure
from coordwire.cli.api import differences
from coordwire.cli.api.contents import API, PageEntry, entries
from coordwire.cli.api.fields import class_doc, possible_errors, rows, versions
from coordwire.cli.api.text import describe_text, diff_text, list_text, others_text
from coordwire.cli.api.wire_layout import layout, layout_text
from coordwire.cli.terminal import columns
from coordwire.codec import Message
from coordwire.codec.names import suggestion
from coordwire.messages.error_conditions import ERROR_CONDITIONS
from coordwire.messages.keys import FACTS

Form = dict[str, Any]
NARROW, WIDE = 60, 120
LONGEST_KEY = 6
"""Digits of an api key."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "A default that is neither shown nor null is 0, false or empty; JSON has all of them."
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME|KEY",
        help="an API, message, header, data type, log record or dialect's request",
    )
    parser.add_argument(
        "layout", nargs="?", type=_version, metavar="VERSION", help="show the wire layout of this version"
    )
    parser.add_argument("--version", type=_version, metavar="N", help="the same as VERSION")
    parser.add_argument(
        "--all",
        action="store_true",
        help="also list records, data types and other dialects, which are not APIs",
    )
    parser.add_argument(
        "--diff", nargs=2, type=int, metavar=("V1", "V2"), help="show what changed between two versions"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")


def _version(text: str) -> int:
    """A version, with or without the v before it."""
    digits = text.removeprefix("v")
    if not (digits.isdecimal() and digits.isascii() and len(digits) <= LONGEST_KEY):
        raise argparse.ArgumentTypeError(f"expected a version, a number, got {text!r}")
    return int(digits)


def run(options: argparse.Namespace) -> int:
    width = min(max(columns(default=100), NARROW), WIDE)
    if options.name is None:
        if options.diff or options.version is not None:
            raise Failure(f"api: {'--diff' if options.diff else '--version'} needs the name of an API")
        apis = [_fact(key) for key in sorted(FACTS)]
        other_entries = (
            [_entry_form(entry) for entry in entries() if entry.group != API] if options.all else []
        )
        lines: Iterable[str] = chain(list_text(apis, width), others_text(other_entries, width))
        form: Any = apis + other_entries
    else:
        entry = _find(options.name)
        version = options.layout if options.version is None else options.version
        if version is not None and options.diff:
            raise Failure("api: --diff names its versions: give no other")
        if options.layout is not None and options.version not in (None, options.layout):
            raise Failure("api: expected one version, got two")
        if version is not None:
            form = _layout(entry, version)
            lines = layout_text(form, width)
        elif options.diff:
            form = _diff(entry, *options.diff)
            lines = diff_text(form, width)
        else:
            form = _describe(entry)
            lines = describe_text(form, width)
    if options.format == "json":
        lines = iter([json.dumps(form, indent=2, ensure_ascii=True)])
    for line in lines:
        sys.stdout.write(line.rstrip() + "\n")
    return 0


def _find(name: str) -> PageEntry:
    """What has this name: an API or a dialect's request with both its messages, or one message."""
    if name.isdecimal() and name.isascii() and len(name) <= LONGEST_KEY:
        matches = [entry for entry in entries() if entry.api_key == int(name)]
        if matches:
            return matches[0]
    by_name = {entry.name.lower(): entry for entry in entries()}
    alone = {word.lower(): (word, entry) for entry in entries() for word in entry.messages}
    if name.lower() in alone:
        word, entry = alone[name.lower()]
        return replace(entry, name=word, messages=(word,))
    if name.lower() in by_name:
        return by_name[name.lower()]
    names = [*(entry.name for entry in by_name.values()), *(word for word, _ in alone.values())]
    raise Failure(f"api: nothing is called {name!r}{suggestion(name, names)}")


# --- as dicts ---


def _fact(key: int) -> Form:
    facts = FACTS[key]
    return {
        "key": key, "name": facts.name, "versions": [facts.first, facts.last], "flexible": facts.flexible,
        "coordinator": facts.coordinator, "answeredBy": facts.answered_by, "partitions": facts.partitions,
        "modifies": facts.modifies, "listeners": list(facts.listeners),
        "deprecated": [facts.deprecated[0], facts.deprecated[-1]] if facts.deprecated else None,
        "unstable": facts.unstable, "requestHeaders": _headers(facts.request_headers, facts.last),
        "responseHeaders": _headers(facts.response_headers, facts.last), "about": facts.description,
    }  # fmt: skip


def _headers(headers: dict[int, int], last: int) -> list[Form]:
    """The header before a message, by its versions."""
    ends = [*(first - 1 for first in list(headers)[1:]), last]
    return [
        {"version": number, "versions": [first, end]}
        for (first, number), end in zip(headers.items(), ends, strict=True)
    ]


def _entry_form(entry: PageEntry) -> Form:
    """What there is to list of what is not an API."""
    cls = entry.classes[-1]
    return {
        "name": entry.name, "group": entry.group, "number": entry.number,
        "versions": [cls.versions[0], cls.versions[-1]],
        "flexible": cls.flexible_versions[0] if cls.flexible_versions else None, "about": class_doc(cls),
    }  # fmt: skip


def _describe(entry: PageEntry) -> Form:
    if entry.api_key is None:
        form = _entry_form(entry) | {"place": entry.place}
    else:
        facts = FACTS[entry.api_key]
        conditions = ERROR_CONDITIONS.get(entry.api_key, {})
        codes = [
            {"code": code.value, "name": code.name, "condition": conditions.get(code.name)}
            for code in possible_errors(facts)
        ]
        form = _fact(entry.api_key) | {"changes": facts.changes, "errors": codes}
    return form | {"messages": [_message(cls) for cls in entry.classes]}


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
                "default": row.default,
                "tag": field.tag, "ignorable": field.ignorable, "embedded": field.embedded_name,
                "enum": row.numbers.__name__ if row.numbers else None, "entity": field.entity,
                "secret": field.secret,
                "doc": row.doc,
            }
        )  # fmt: skip
    return {"name": cls.__name__, "module": cls.__module__, "direction": cls.direction, "fields": fields}


def _layout(entry: PageEntry, version: int) -> Form:
    _check(entry, version)
    return {
        "name": entry.name, "version": version,
        "messages": [layout(cls, version) for cls in entry.classes if version in cls.versions],
    }  # fmt: skip


def _check(entry: PageEntry, version: int) -> None:
    """Refuse a version that there is none of."""
    known = entry.classes[-1].versions
    if version not in known:
        span = f"a version from {known[0]} to {known[-1]}" if len(known) > 1 else f"version {known[0]}"
        raise Failure(f"api: {entry.name}: expected {span}, got {version}")


def _diff(entry: PageEntry, old: int, new: int) -> Form:
    classes = entry.classes
    for version in (old, new):
        _check(entry, version)
    facts = None if entry.api_key is None else FACTS[entry.api_key]
    sides = []
    for cls in classes:
        side: Form = {"name": cls.__name__, "fields": differences.differences(cls, old, new)}
        if (lengths := differences.encoding(cls, old, new)) is not None:
            side["encoding"] = lengths
        if (headers := differences.header(cls, old, new)) is not None:
            side["header"] = list(headers)
        sides.append(side)
    changes = differences.changes(facts, old, new) if facts else {}
    return {"name": entry.name, "from": old, "to": new, "changes": changes, "messages": sides}
