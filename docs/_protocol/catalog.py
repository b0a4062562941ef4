"""The pages, and where each name is described.

Strategy: a page an entry of the contents. Each message gets one place (file and anchor), each struct the
first field that has it (by its class: structs of several messages share names). Rules: a name in a text
becomes a link where it is written as Kafka or the package writes it, and nowhere else.
"""

from __future__ import annotations

import re

from _protocol.markup import Html, join, tag
from coordwire.cli.api.contents import API, PageEntry, entries
from coordwire.cli.api.fields import rows
from coordwire.codec import Struct
from coordwire.enums import ErrorCode, OpenEnum, numbers

ENUMS: list[type[OpenEnum]] = sorted(
    (enum for enum in vars(numbers).values() if isinstance(enum, type) and enum.__base__ is OpenEnum),
    key=lambda enum: enum.__name__,
)
"""What small numbers mean, but for error codes, which have a page of their own."""

_LINKABLE = re.compile(r"`([^`]+)`|\b(KIP-\d+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[A-Z]\w*[a-z]\w*[A-Z]\w*)\b")
"""Code, a KIP, an error's name, a name of several words: `x`, KIP-345, NOT_COORDINATOR, JoinGroup."""


def file_of(page: PageEntry) -> str:
    return f"{page.name}.html"


def anchor(cls: type[Struct], path: str = "") -> str:
    """The id of a class or of one of its fields, by its path."""
    return f"{cls.__name__}.{path}" if path else cls.__name__


class Catalog:
    """All pages, in the order of the index, and the places of the names."""

    def __init__(self) -> None:
        self.pages = list(entries())
        self._places = {code.name: f"errors.html#{code.name}" for code in ErrorCode if "_" in code.name}
        self._places["ErrorCode"] = "errors.html"
        self._places |= {enum.__name__: f"enums.html#{enum.__name__}" for enum in ENUMS}
        self._structs: dict[type[Struct], str] = {}
        for page in self.pages:
            self._place(page)
        for page in self.pages:
            if page.group == API and len(re.findall("[A-Z]", page.name)) > 1:
                self._places.setdefault(page.name, file_of(page))

    def _place(self, page: PageEntry) -> None:
        for cls in page.classes:
            self._places[cls.__name__] = f"{file_of(page)}#{anchor(cls)}"
            for row in rows(cls):
                if row.field.struct is not None:
                    self._structs.setdefault(row.field.struct, f"{file_of(page)}#{anchor(cls, row.path)}")

    @property
    def groups(self) -> dict[str, list[PageEntry]]:
        groups: dict[str, list[PageEntry]] = {}
        for page in self.pages:
            groups.setdefault(page.group, []).append(page)
        return groups

    def link(self, name: str) -> Html:
        """A name with a link to its place, if it has one."""
        place = f"kips.html#{name}" if name.startswith("KIP-") else self._places.get(name)
        return tag("a", name, href=place) if place else join([name])

    def struct(self, cls: type[Struct]) -> Html:
        """A struct's name with a link to the first field that holds it."""
        return tag("a", cls.__name__, href=self._structs[cls])

    def word(self, word: str) -> Html:
        """A word of a wire layout, with a link to what it means."""
        return tag("a", word, href=f"types.html#{word}")

    def prose(self, text: str) -> Html:
        """A text with links and code in it."""
        parts: list[str] = []
        at = 0
        for match in _LINKABLE.finditer(text):
            parts.append(text[at : match.start()])
            code, name = match.groups()
            parts.append(tag("code", self.link(code)) if code else self.link(name))
            at = match.end()
        return join([*parts, text[at:]])
