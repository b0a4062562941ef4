"""Reading every attribute of a decoded message, as straight code for each library's names.

Strategy: the text of a function is made from our message, whose fields say where lists and structs are, and
from the library's own object, which says what it calls them. Rule: nothing is looked up by name at run time,
so that the time is that of the attributes alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coordwire.codec import Struct


def reader(
    like: Struct, value: Any, version: int, name_of: Callable[[Any, str], str]
) -> Callable[[Any], None]:
    """A function that reads what `version` has of an object like `value`, whose names `name_of` gives."""
    lines = ["def read(message):", *_lines(like, value, version, "message", name_of)]
    made: dict[str, Any] = {}
    exec("\n".join(lines), made)
    result: Callable[[Any], None] = made["read"]
    return result


def _lines(
    like: Struct,
    value: Any,
    version: int,
    source: str,
    name_of: Callable[[Any, str], str],
    indent: str = "    ",
) -> list[str]:
    shape = like._layout_.at(version)
    lines = []
    for field in (*shape.inline, *shape.tagged.values()):
        name = name_of(value, field.name)
        content, theirs = getattr(like, field.name), getattr(value, name)
        if field.array and field.struct is not None and content:
            item = f"{source}_{name}".replace(".", "_")
            lines.append(f"{indent}for {item} in {source}.{name}:")
            lines += _lines(content[0], theirs[0], version, item, name_of, indent + "    ")
        else:
            lines.append(f"{indent}{source}.{name}")
    return lines
