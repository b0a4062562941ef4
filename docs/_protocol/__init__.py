"""The protocol's reference as pages of the site, made when the site is built.

    markup.py        elements whose text is escaped by construction, and the page around them
    catalog.py       which pages there are, and which page explains each name
    fields.py        a message's fields by version, and its wire layouts
    frames.py        frames with the meaning of each byte: real ones (frames.txt), else example values
    versions.py      the bytes of each version, from the vectors of the conformance archive
    pages.py         a page an API, dialect's request, record or type
    index.py         the pages that all others link to: the index with its filter (filter.js), wire types,
                     error codes, enums, KIPs

Data flows one way: catalog → sections → pages. Rules: everything comes from the generated classes and their
field tables; the same package makes the same text; pages load nothing from elsewhere and need no server.
`static/protocol.css` is their style.
"""

from __future__ import annotations

from collections.abc import Iterator

from _protocol.catalog import Catalog
from _protocol.index import enum_page, error_page, index_page, kip_page, type_page
from _protocol.pages import page_of

__all__ = ["pages"]


def pages() -> Iterator[tuple[str, str]]:
    """All pages: name, Markdown; the first is the index, which has the others in its navigation."""
    catalog = Catalog()
    texts = {
        "types": type_page(),
        "errors": error_page(catalog),
        "enums": enum_page(catalog),
        "kips": kip_page(catalog),
        **{page.name: page_of(page, catalog) for page in catalog.pages},
    }
    yield "index", "\n".join([index_page(catalog), "```{toctree}", ":hidden:", "", *texts, "```", ""])
    yield from texts.items()
