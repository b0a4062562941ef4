"""The pages that all others link to: the index with its filter, wire types, error codes, enums, KIPs.

Rules: everything here comes from data that the package has anyway. The filter looks at names, purposes and
field names; without JavaScript the whole index is shown. A KIP is listed with every place that names it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from _protocol.catalog import ENUMS, Catalog, anchor, file_of
from _protocol.markup import Html, document, join, table, tag
from coordwire.cli.api.contents import API, PageEntry
from coordwire.cli.api.fields import class_doc, rows
from coordwire.cli.api.wire_layout import WORDS
from coordwire.enums import ErrorCode, OpenEnum
from coordwire.messages.keys import FACTS

_FILTER = Path(__file__).with_name("filter.js")


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
        "The Kafka protocol", tag("p", about_all), search, *groups, script=_FILTER.read_text("utf-8")
    )


def _group(name: str, pages: list[PageEntry]) -> Html:
    head = ["name", "versions", "flexible", "what it is"]
    if pages[0].number is not None:
        head.insert(0, "api key" if name == API else "type")
    return tag("section", tag("h2", name), table(head, map(_entry, pages)))


def _entry(page: PageEntry) -> Html:
    cls = page.classes[-1]
    first, last = cls.versions[0], cls.versions[-1]
    text = purpose(page)
    fields = {row.name for message in page.classes for row in rows(message)}
    find = " ".join(
        [page.name, *(message.__name__ for message in page.classes), text, page.place, *sorted(fields)]
    )
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
    """The purpose of a page, in a sentence or two."""
    if page.api_key is not None:
        return FACTS[page.api_key].description
    return class_doc(page.classes[-1])


def type_page() -> str:
    """The words of the wire layouts."""
    entries = (
        tag("tr", tag("th", tag("code", word), scope="row"), tag("td", says, class_="doc"), id=word)
        for word, says in WORDS.items()
    )
    return document(
        "Wire types",
        tag("p", "The words of the wire layouts. COMPACT ones are those of flexible versions (KIP-482)."),
        table(["word", "its bytes"], entries),
    )


def error_page(catalog: Catalog) -> str:
    """The error codes by number."""
    carriers: dict[str, list[Html]] = defaultdict(list)
    for facts in FACTS.values():
        for name in facts.errors:
            carriers[name].append(tag("a", facts.name, href=f"{facts.name}.html#errors"))
    entries = (
        tag(
            "tr",
            tag("td", str(code.value), class_="number"),
            tag("th", tag("code", code.name), scope="row"),
            tag("td", "yes" if code.retriable else ""),
            tag("td", catalog.prose(code.description), class_="doc"),
            tag("td", join(carriers[code.name], ", "), class_="doc"),
            id=code.name,
        )
        for code in sorted(ErrorCode)
    )
    head = ["code", "name", "may be retried", "what it means", "carried by"]
    return document("Error codes", table(head, entries))


def enum_page(catalog: Catalog) -> str:
    """The meanings of the other small numbers."""
    about_all = "What small numbers mean; newer Kafkas may know more of them."
    return document("Enums", tag("p", about_all), *(_enum(enum, catalog) for enum in ENUMS))


def _enum(enum: type[OpenEnum], catalog: Catalog) -> Html:
    entries = (
        tag(
            "tr",
            tag("td", str(member.value), class_="number"),
            tag("th", tag("code", member.name), scope="row"),
        )
        for member in sorted(enum)
    )
    class_doc = catalog.prose(" ".join((enum.__doc__ or "").split()))
    return tag(
        "section",
        tag("h2", enum.__name__, id=enum.__name__),
        tag("p", class_doc),
        table(["number", "name"], entries),
    )


def kip_page(catalog: Catalog) -> str:
    """Every KIP that a text names, with where it does."""
    mentions: dict[str, dict[Html, None]] = defaultdict(dict)
    texts = [(f"errors.html#{code.name}", code.name, code.description) for code in ErrorCode]
    texts += [(f"enums.html#{enum.__name__}", enum.__name__, enum.__doc__ or "") for enum in ENUMS]
    for page in catalog.pages:
        texts += _texts(page)
    for href, text, doc in texts:
        for kip in re.findall(r"KIP-\d+", doc):
            mentions[kip][tag("a", text, href=href)] = None
    entries = (
        tag("tr", tag("th", kip, scope="row"), tag("td", join(places, ", "), class_="doc"), id=kip)
        for kip, places in sorted(mentions.items(), key=lambda item: int(item[0].removeprefix("KIP-")))
    )
    about_all = "The Kafka Improvement Proposals that messages, versions and fields come from."
    return document("KIPs", tag("p", about_all), table(["KIP", "named at"], entries))


def _texts(page: PageEntry) -> list[tuple[str, str, str]]:
    """The texts of a page: address, name, text."""
    texts = [(file_of(page), page.name, purpose(page))]
    if page.api_key is not None:
        changes = sorted(FACTS[page.api_key].changes.items())
        texts += [
            (f"{file_of(page)}#v{version}", f"{page.name} v{version}", text) for version, text in changes
        ]
    for cls in page.classes:
        texts.append((f"{file_of(page)}#{anchor(cls)}", cls.__name__, class_doc(cls)))
        texts += [
            (f"{file_of(page)}#{anchor(cls, row.path)}", f"{cls.__name__}.{row.path}", row.doc)
            for row in rows(cls)
        ]
    return texts
