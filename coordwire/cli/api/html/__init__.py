"""The reference as HTML pages in a folder: `coordwire api --html DIR`.

    markup.py        elements whose text is escaped by construction
    catalog.py       which pages there are, and which page explains each name
    fields.py        a message's fields by version, and its wire layouts
    frames.py        frames with the meaning of each byte: real ones (frames.txt), else example values
    pages.py         a page an API, dialect's request, record or type
    index.py         the pages that all others link to: the index with its filter (filter.js), wire types,
                     error codes, enums, KIPs

Data flows one way: catalog → sections → pages → files. Rules: everything comes from the generated classes and
their field tables; the same package writes the same bytes; pages load nothing from elsewhere and need no
server.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from coordwire.cli.api.html.catalog import Catalog, file_of
from coordwire.cli.api.html.index import enum_page, error_page, index_page, kip_page, type_page
from coordwire.cli.api.html.pages import page_of

__all__ = ["pages", "write"]

STYLE = "style.css"


def pages() -> Iterator[tuple[str, str]]:
    """All files of the reference: name, text."""
    catalog = Catalog()
    yield STYLE, (files(__package__) / STYLE).read_text("utf-8")
    yield "index.html", index_page(catalog)
    yield "types.html", type_page(catalog)
    yield "errors.html", error_page(catalog)
    yield "enums.html", enum_page(catalog)
    yield "kips.html", kip_page(catalog)
    for page in catalog.pages:
        yield file_of(page), page_of(page, catalog)


def write(folder: Path) -> int:
    """Write the reference into a folder, which is made where it is missing; how many files that were.

    Other files in the folder are left alone. Raises `OSError`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for name, text in pages():
        (folder / name).write_bytes(text.encode())
        count += 1
    return count
