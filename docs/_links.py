"""Checks the built site: `python docs/_links.py site`. Every link and anchor inside it leads somewhere.

Strategy: each HTML page is parsed once for its names and for what it refers to, then all references are
looked up, those of the generated pages of the protocol too, which Sphinx doesn't know. Rules: other sites
are not asked; a page that loads a script, a style or an image from one is refused, since the site is read
without a network.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "link": "href", "source": "src", "iframe": "src"}
"""What a page loads by itself, and where it says so."""
NEVER_LOADED = {"canonical", "next", "prev", "search", "index", "license"}
"""Relations of a `link` that a browser doesn't follow by itself."""


class Page(HTMLParser):
    """A page's names, and what it refers to: (address, whether it is loaded)."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.references: set[tuple[str, bool]] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.names.update(values[key] for key in ("id", "name") if key in values)
        loaded = tag in LOADED and values.get("rel", "") not in NEVER_LOADED
        for key in {"href" if tag in ("a", "area") else LOADED.get(tag, "href")} & set(values):
            self.references.add((values[key], loaded))

    handle_startendtag = handle_starttag


def broken(site: Path) -> list[str]:
    """What does not lead anywhere, a line each."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        for address, loaded in sorted(page.references):
            parts = urlsplit(address)
            where = f"{path.relative_to(site)}: {address}"
            if parts.scheme or parts.netloc:
                if loaded and parts.scheme != "data":
                    found.append(f"{where} is loaded from another site")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            if target.is_dir():
                target /= "index.html"
            if not target.is_file() or not target.is_relative_to(site):
                found.append(f"{where} leads nowhere")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
                found.append(f"{where}: no such place in the page")
    return found


def main(site: Path) -> None:
    """Print what is broken; exit with 1 if anything is."""
    if not (site / "index.html").is_file():
        raise SystemExit(f"{site} is not a built site: it has no index.html")
    found = broken(site.resolve())
    print(*found, f"{len(found)} broken links", sep="\n")
    if found:
        sys.exit(1)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))
