"""One page: an API, a dialect's request, a record or a type, with all that there is to say of it.

Rules: the order is that of a reader's questions: what it is, what changed, what it holds, how its bytes lie,
and a frame to compare one's own with.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from _protocol.catalog import Catalog, anchor
from _protocol.fields import field_table, layouts
from _protocol.frames import annotated_frame, samples
from _protocol.markup import Html, document, join, table, tag
from _protocol.versions import each_version
from coordwire.cli.api import differences
from coordwire.cli.api.contents import PageEntry
from coordwire.cli.api.fields import class_doc, possible_errors
from coordwire.codec import Message
from coordwire.messages.error_conditions import ERROR_CONDITIONS
from coordwire.messages.keys import FACTS, ApiFacts

_EACH = "The message alone, with something in every field. Versions with the same bytes share a table."


def page_of(page: PageEntry, catalog: Catalog) -> str:
    """The text of one page."""
    facts = None if page.api_key is None else FACTS[page.api_key]
    purpose = facts.description if facts else ""
    sections: list[str] = [
        tag("p", catalog.prose(purpose)) if purpose else "",
        *_changes(page, catalog),
        *(_message(cls, purpose, catalog) for cls in page.classes),
        *(_errors(page, facts, catalog) if facts and facts.errors else ()),
        *_frames(page),
    ]
    return document(page.name, *sections, facts=", ".join(_facts(page)))


def _facts(page: PageEntry) -> Iterator[str]:
    cls = page.classes[-1]
    if page.place:
        yield page.place
    first, last = cls.versions[0], cls.versions[-1]
    yield f"versions {first}-{last}" if last > first else f"version {first}"
    if cls.flexible_versions:
        yield f"flexible from {cls.flexible_versions[0]}"
    if page.api_key is None:
        return
    facts = FACTS[page.api_key]
    if facts.coordinator:
        yield f"answered by the {facts.coordinator} coordinator"
    elif facts.answered_by != "any broker":
        yield f"answered by: {facts.answered_by}"
    yield f"listeners: {', '.join(facts.listeners)}"


# --- versions ---


def _changes(page: PageEntry, catalog: Catalog) -> Iterator[Html]:
    """The changes of each version: in words, and field by field."""
    versions = page.classes[-1].versions
    changes = FACTS[page.api_key].changes if page.api_key is not None else {}
    if len(versions) == 1 and not changes:
        return
    rows = []
    for version in versions:
        words = catalog.prose(changes[version]) if version in changes else ""
        if version == versions[0]:
            cell: Html | str = words or "The first version."
        else:
            cell = join([words, *(_differences(cls, version, catalog) for cls in page.classes)])
        head = tag("th", f"v{version}", *_marks(page, version), scope="row")
        rows.append(tag("tr", head, tag("td", cell), id=f"v{version}"))
    yield tag("h2", "Versions", id="versions")
    yield table(["version", "what changed"], rows)


def _marks(page: PageEntry, version: int) -> Iterator[Html]:
    """Whether a version is one not to rely on."""
    facts = None if page.api_key is None else FACTS[page.api_key]
    if facts and version in facts.deprecated:
        yield tag("span", "deprecated", title="by Kafka", class_="note")
    if facts and version == facts.unstable:
        yield tag("span", "unstable", title="its layout may still change", class_="note")


def _differences(cls: type[Message], version: int, catalog: Catalog) -> Html:
    if version - 1 not in cls.versions or version not in cls.versions:
        return join([])
    lengths = differences.encoding(cls, version - 1, version)
    items = [tag("li", f"~ {lengths}")] if lengths else []
    items += [_difference(cls, change) for change in differences.differences(cls, version - 1, version)]
    if not items:
        return join([])
    return join([tag("div", catalog.link(cls.__name__), class_="soft"), tag("ul", join(items))])


def _difference(cls: type[Message], change: dict[str, Any]) -> Html:
    signs = {"added": "+", "removed": "−"}
    path = tag("code", tag("a", change["path"], href=f"#{anchor(cls, change['path'])}"))
    notes = [change["type"]]
    notes += ["nullable"] if change.get("nullable") else []
    notes += [f"tag {change['tag']}"] if "tag" in change and change["change"] in signs else []
    notes += [f"with {change['fields']} fields"] if "fields" in change else []
    notes += [] if change["change"] in signs else [f"now {change['change']}"]
    return tag("li", f"{signs.get(change['change'], '~')} ", path, f": {', '.join(notes)}")


# --- messages and frames ---


def _message(cls: type[Message], summary: str, catalog: Catalog) -> Html:
    text = class_doc(cls)
    module = cls.__module__
    return tag(
        "section",
        tag("h2", cls.__name__, id=anchor(cls)),
        tag("p", catalog.prose(text)) if text and text != summary else "",
        tag("p", "In Python: ", tag("code", f"from {module} import {cls.__name__}"), class_="soft"),
        tag("h3", "Fields by version"),
        field_table(cls, catalog),
        tag("h3", "Wire layout"),
        layouts(cls, catalog),
    )


def _errors(page: PageEntry, facts: ApiFacts, catalog: Catalog) -> Iterator[Html]:
    """The error codes that a response may carry, with when they come, or else what they mean."""
    conditions = {} if page.api_key is None else ERROR_CONDITIONS.get(page.api_key, {})
    entries = (
        tag(
            "tr",
            tag("td", str(code.value), class_="number"),
            tag("th", tag("code", catalog.link(code.name)), scope="row"),
            tag("td", catalog.prose(conditions.get(code.name) or code.description), class_="doc"),
        )
        for code in possible_errors(facts)
    )
    yield tag("h2", "Errors", id="errors")
    yield table(["code", "name", "when it comes" if conditions else "what it means"], entries)


def _frames(page: PageEntry) -> Iterator[Html]:
    frames = samples(page)
    yield tag("h2", "Annotated bytes", id="bytes")
    for sample in frames:
        yield tag("section", tag("h3", sample.title), annotated_frame(sample))
    tables = [table for cls in page.classes for table in each_version(cls)]
    if tables:
        yield tag("h3", "Each version", id="each-version")
        yield tag("p", _EACH)
        yield from tables
