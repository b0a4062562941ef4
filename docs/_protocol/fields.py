"""The content of a message: its fields by version, and its wire layout in each.

Rules: versions with the same layout share a column; a field occurs once, at its place in the tree, and has
its own anchor, which everything else links to.
"""

from __future__ import annotations

from collections.abc import Iterator

from _protocol.catalog import Catalog, anchor
from _protocol.markup import Html, join, table, tag
from coordwire.cli.api import wire_layout
from coordwire.cli.api.fields import Row, default_note, entity_note, rows
from coordwire.codec import Message
from coordwire.codec.walk import layout_of
from coordwire.versions import header_version

PRESENT, NULLABLE = "●", "○"
SEEN, SEEN_NULL = "on the wire", "on the wire, may be null"
UNSET = "A field that is not set has its default; where no default is shown: 0, false or empty"


def runs(cls: type[Message]) -> list[range]:
    """A message's versions, those with the same layout together."""
    ranges: list[range] = []
    before: list[wire_layout.LayoutLine] | None = None
    for version in cls.versions:
        now = wire_layout.lines(cls, version)
        if ranges and now == before:
            ranges[-1] = range(ranges[-1].start, version + 1)
        else:
            ranges.append(range(version, version + 1))
        before = now
    return ranges


def span(versions: range) -> str:
    """A run of versions: "v3" or "v3-5"."""
    last = versions[-1]
    return f"v{versions[0]}" if len(versions) == 1 else f"v{versions[0]}-{last}"


def field_table(cls: type[Message], catalog: Catalog) -> Html:
    """A row a field, a column each run of versions."""
    fields = rows(cls)
    if not fields:
        return tag("p", "No fields.", class_="soft")
    columns = runs(cls)
    heads = [tag("th", span(run), scope="col", class_="v") for run in columns]
    return join(
        [
            table(
                ["field", "type", *heads, "what it is"],
                (_row(cls, row, columns, catalog) for row in fields),
                class_="fields",
            ),
            tag("p", f"{PRESENT} {SEEN}; {NULLABLE} {SEEN_NULL}. {UNSET}.", class_="soft"),
        ]
    )


def _row(cls: type[Message], row: Row, columns: list[range], catalog: Catalog) -> Html:
    name = tag("code", "  " * row.depth + row.name)
    kind = catalog.struct(row.field.struct) if row.field.struct else row.field.type
    type_words = join(["[]" if row.field.array else "", kind])
    return tag(
        "tr",
        tag("th", name, scope="row"),
        tag("td", tag("code", type_words)),
        *(_cell(row, run) for run in columns),
        tag("td", join([*_notes(row, catalog), catalog.prose(row.doc)], " "), class_="doc"),
        id=anchor(cls, row.path),
    )


def _cell(row: Row, run: range) -> Html:
    if not row.first <= run[0] <= row.last:
        return tag("td", class_="v")
    null = row.null is not None and run[0] in row.null
    return tag(
        "td",
        NULLABLE if null else PRESENT,
        class_="v null" if null else "v",
        title=SEEN_NULL if null else SEEN,
    )


def _notes(row: Row, catalog: Catalog) -> Iterator[Html]:
    field = row.field
    if (default := default_note(row.default, row.null is not None)) is not None:
        yield tag("span", default, class_="note")
    if field.tag is not None:
        yield tag("span", f"tag {field.tag}", class_="note")
    if field.ignorable:
        yield tag("span", "ignorable", title="dropped in versions without it, not refused", class_="note")
    if field.fixed:
        yield tag("span", "fixed length", title="even in flexible versions", class_="note")
    if row.numbers is not None:
        yield tag("span", catalog.link(row.numbers.__name__), class_="note")
    if (entity := entity_note(field.name, field.entity)) is not None:
        yield tag("span", entity, title="what its value identifies", class_="note")
    if field.secret:
        yield tag("span", "secret", title="not shown unless asked for", class_="note")
    if field.embedded:
        yield tag("span", "holds ", _embedded_types(field.embedded, catalog), class_="note")


def _embedded_types(embedded: tuple[tuple[str, str], ...], catalog: Catalog) -> Html:
    """What bytes may hold, each with the protocol for which they do."""
    return join((join([catalog.link(name), f" ({kind})" if kind else ""]) for kind, name in embedded), " or ")


def layouts(cls: type[Message], catalog: Catalog) -> Html:
    """A message's bytes in each version, in order; the newest open."""
    columns = runs(cls)
    return join(_layout(cls, run, run is columns[-1], catalog) for run in reversed(columns))


def _layout(cls: type[Message], run: range, newest: bool, catalog: Catalog) -> Html:
    min_size = layout_of(cls, run[0]).min_size
    title = f"{span(run)}: {min_size} bytes or more" if min_size else f"{span(run)}: no bytes"
    text = join(
        [*_header(cls, run, catalog), *(_line(cls, line, catalog) for line in wire_layout.lines(cls, run[0]))]
    )
    return tag(
        "details", tag("summary", title), tag("pre", text or "(nothing)"), open="open" if newest else None
    )


def _header(cls: type[Message], run: range, catalog: Catalog) -> Iterator[Html]:
    if cls.api_key is None:
        return
    name = f"{cls.direction.capitalize()}Header"
    version = header_version(cls.api_key, run[0], cls.direction)
    yield join(["(before it: ", catalog.word("INT32"), " size, ", catalog.link(name), f" v{version})\n"])


def _line(cls: type[Message], line: wire_layout.LayoutLine, catalog: Catalog) -> Html:
    start = "  " * line.depth + (f"tag {line.tag}: " if line.tag is not None else "")
    name = tag("a", line.name, href=f"#{anchor(cls, line.path)}") if line.path else line.name
    words = join((catalog.word(word) for word in line.words), " of ")
    contents = join([" holding ", _embedded_types(line.embedded, catalog)]) if line.embedded else ""
    return join([start, name, ": ", words, contents, "\n"])
