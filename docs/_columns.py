"""docs/reference/columns.md, from the code that has columns and options: `python docs/_columns.py` writes it.

Rule: the page is kept in the repository, so that it can be read on a forge; `tests/test_docs.py` compares it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from coordwire.tables import options
from coordwire.tables.columns import PARTITIONS, TABLES, Column
from coordwire.tables.readers.sources import SOURCES

PAGE = Path(__file__).parent / "reference" / "columns.md"


def page() -> str:
    """The text of the page."""
    sources = {f"`{name}`": source.columns for name, source in sorted(SOURCES.items())}
    described: dict[Column, str] = {}
    same = {tuple(columns): f"`{name}`" for name, columns in TABLES.items()}
    lines = [
        "# Columns and options",
        "",
        "Types are Spark's; every column may be null. Times are UTC. A column marked * is there only when "
        "`.schema()` asks a data source for it, and never in the pipeline's tables. The page is made by "
        "`python docs/_columns.py`; [a timeline as JSON](timeline-json.md) has every event and cause.",
        "",
        "## Tables of the pipeline",
        "",
    ]
    for name, columns in TABLES.items():
        lines += [f"### Table {name}", ""]
        time, topic = PARTITIONS.get(name, (None, None))
        if time:
            folders = f"`date=` of `{time}`" + (f", then by `{topic}`" if topic else "")
            lines += [f"In folders by {folders}.", ""]
        lines += [*_table(name, columns, described), ""]
    lines += ["## Data sources", ""]
    for name, columns in sources.items():
        lines += [f"### {name.strip('`')}", ""]
        if tuple(columns) in same:
            lines += [f"The columns of the table {same[tuple(columns)]}.", ""]
        else:
            lines += [*_table(name.strip("`"), columns, described), ""]
    lines += ["## Options", "", "Of the data sources, for `.option(NAME, VALUE)`.", "", "```text"]
    return "\n".join([*lines, *_options(), "```", ""])


def _table(table: str, columns: tuple[Column, ...], described: dict[Column, str]) -> Iterator[str]:
    """described: the columns of the tables above, each with its table; of these only the names come again."""
    yield "| column | type | what it is |"
    yield "|---|---|---|"
    again: dict[str, list[str]] = {}
    for column in columns:
        if (above := described.setdefault(column, table)) != table:
            again.setdefault(above, []).append(_name(column))
        else:
            yield f"| {_name(column)} | `{column.type}` | {column.meaning} |"
    if again:
        yield from (
            "",
            "; ".join(f"As in `{above}`: {', '.join(names)}" for above, names in again.items()) + ".",
        )


def _name(column: Column) -> str:
    return f"`{column.name}`" + (" *" if column.on_request else "")


def _options() -> list[str]:
    """The table in the module's docstring."""
    text = options.__doc__ or ""
    lines = text.split("takes.\n\n")[1].split("\n\nRules:")[0].splitlines()
    return [line.removeprefix("    ") for line in lines]


if __name__ == "__main__":
    PAGE.write_text(page())
