"""The index with its filter, and the pages that all others link to: wire types, error codes, KIPs.

Rules: the filter looks at names, purposes and field names; without JavaScript the whole index is there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from importlib.resources import files

from coordwire.cli.contents import API, Entry
from coordwire.cli.error_names import ERROR_NAMES
from coordwire.cli.html.catalog import Catalog, anchor, file_of
from coordwire.cli.html.markup import Html, document, join, table, tag
from coordwire.cli.html.pages import FOOTER, trail
from coordwire.cli.html.wire import WORDS
from coordwire.cli.reference import about, rows
from coordwire.messages.keys import FACTS

__all__ = ["error_page", "index_page", "kip_page", "type_page"]

_FILTER = "filter.js"


def index_page(catalog: Catalog) -> str:
    """All pages by group, with a filter."""
    search = tag(
        "div",
        tag("label", "Filter", for_="find"),
        tag("input", id="find", type="search", placeholder="a name, a field, a word", autocomplete="off"),
        tag("span", id="found", class_="soft", role="status"),
        id="search", class_="search", hidden="hidden",
    )  # fmt: skip
    purpose = "Every message of the Apache Kafka protocol, in every version: fields, wire layout, bytes."
    groups = (_group(name, pages) for name, pages in catalog.groups.items())
    return document(
        "The Kafka protocol", tag("h1", "The Kafka protocol"), tag("p", purpose), search, *groups,
        trail=trail(catalog), script=(files(__package__) / _FILTER).read_text("utf-8"), footer=FOOTER,
    )  # fmt: skip


def _group(name: str, pages: list[Entry]) -> Html:
    head = ["name", "versions", "flexible", "what it is"]
    if pages[0].number is not None:
        head.insert(0, "api key" if name == API else "type")
    return tag("section", tag("h2", name), table(head, map(_entry, pages)))


def _entry(page: Entry) -> Html:
    cls = page.classes[-1]
    first, last = cls.versions[0], cls.versions[-1]
    text = _purpose(page)
    fields = {row.name for one in page.classes for row in rows(one)}
    find = " ".join([page.name, *(one.__name__ for one in page.classes), text, page.place, *sorted(fields)])
    return tag(
        "tr",
        "" if page.number is None else tag("td", str(page.number), class_="number"),
        tag("th", tag("a", page.name, href=file_of(page)), scope="row"),
        tag("td", f"{first}-{last}" if last > first else str(first)),
        tag("td", f"{cls.flexible_versions[0]}+" if cls.flexible_versions else ""),
        tag("td", text, class_="doc"),
        data_find=find.lower(),
    )


def _purpose(page: Entry) -> str:
    if page.api_key is not None:
        return FACTS[page.api_key].about
    return about(page.classes[-1])


def type_page(catalog: Catalog) -> str:
    """The words of the wire layouts."""
    entries = (
        tag("tr", tag("th", tag("code", word), scope="row"), tag("td", says, class_="doc"), id=word)
        for word, says in WORDS.items()
    )
    return document(
        "Wire types – Kafka protocol", tag("h1", "Wire types"),
        tag("p", "The words of the wire layouts. COMPACT ones are those of flexible versions (KIP-482)."),
        table(["word", "its bytes"], entries), trail=trail(catalog), footer=FOOTER,
    )  # fmt: skip


def error_page(catalog: Catalog) -> str:
    """The error codes by number."""
    entries = (
        tag("tr", tag("td", str(code), class_="number"), tag("th", tag("code", name), scope="row"), id=name)
        for code, name in sorted(ERROR_NAMES.items())
    )
    return document(
        "Error codes – Kafka protocol", tag("h1", "Error codes"), table(["code", "name"], entries),
        trail=trail(catalog), footer=FOOTER,
    )  # fmt: skip


def kip_page(catalog: Catalog) -> str:
    """Every KIP that a text names, with where it does."""
    found: dict[str, dict[Html, None]] = defaultdict(dict)
    for page in catalog.pages:
        for href, text, said in _texts(page):
            for kip in re.findall(r"KIP-\d+", said):
                found[kip][tag("a", text, href=href)] = None
    entries = (
        tag("tr", tag("th", kip, scope="row"), tag("td", join(places, ", "), class_="doc"), id=kip)
        for kip, places in sorted(found.items(), key=lambda item: int(item[0].removeprefix("KIP-")))
    )
    return document(
        "KIPs – Kafka protocol", tag("h1", "KIPs"),
        tag("p", "The Kafka Improvement Proposals behind messages, versions and fields."),
        table(["KIP", "named at"], entries), trail=trail(catalog), footer=FOOTER,
    )  # fmt: skip


def _texts(page: Entry) -> list[tuple[str, str, str]]:
    """The texts of a page: address, name, text."""
    found = [(file_of(page), page.name, _purpose(page))]
    if page.api_key is not None:
        changes = sorted(FACTS[page.api_key].changes.items())
        found += [
            (f"{file_of(page)}#v{version}", f"{page.name} v{version}", text) for version, text in changes
        ]
    for cls in page.classes:
        found.append((f"{file_of(page)}#{anchor(cls)}", cls.__name__, about(cls)))
        found += [
            (f"{file_of(page)}#{anchor(cls, row.path)}", f"{cls.__name__}.{row.path}", row.doc)
            for row in rows(cls)
        ]
    return found
