"""The index of all pages, with its filter.

Rules: the filter looks at names, purposes and field names; without JavaScript the whole index is there.
"""

from __future__ import annotations

from importlib.resources import files

from coordwire.cli.api.contents import API, PageEntry
from coordwire.cli.api.field_docs import about, rows
from coordwire.cli.api.html.catalog import Catalog, file_of
from coordwire.cli.api.html.markup import Html, document, table, tag
from coordwire.cli.api.html.pages import FOOTER, trail
from coordwire.messages.keys import FACTS

__all__ = ["index_page", "purpose"]

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
    about_all = "Every message of the Apache Kafka protocol, in every version: fields, wire layout, bytes."
    groups = (_group(name, pages) for name, pages in catalog.groups.items())
    return document(
        "The Kafka protocol", tag("h1", "The Kafka protocol"), tag("p", about_all), search, *groups,
        trail=trail(catalog), script=(files(__package__) / _FILTER).read_text("utf-8"), footer=FOOTER,
    )  # fmt: skip


def _group(name: str, pages: list[PageEntry]) -> Html:
    head = ["name", "versions", "flexible", "what it is"]
    if pages[0].number is not None:
        head.insert(0, "api key" if name == API else "type")
    return tag("section", tag("h2", name), table(head, map(_entry, pages)))


def _entry(page: PageEntry) -> Html:
    cls = page.classes[-1]
    first, last = cls.versions[0], cls.versions[-1]
    text = purpose(page)
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


def purpose(page: PageEntry) -> str:
    """What a page is about, in a sentence or two."""
    if page.api_key is not None:
        return FACTS[page.api_key].about
    return about(page.classes[-1])
