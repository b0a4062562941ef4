"""Docstrings are plain text, with `code` in backticks: this makes reStructuredText of it, for the site.

Strategy: paragraph by paragraph. One that is indented, or that has lines which are, is a table or an example
and is shown as it is; in any other, what reStructuredText would take for markup is escaped. A package's list
of its own files is for who reads them, and left out.
"""

from __future__ import annotations

import re
from itertools import groupby

_CODE = re.compile(r"(`[^`]+`)")
_CODE_AND_LETTER = re.compile(r"(`[^`]+`)(?=\w)")
_MARKUP = re.compile(r"([*_|`\\])")
_ITEM = re.compile(r"- ")
_FILE = re.compile(r"    [\w/]+\.py  ")


def as_restructured_text(lines: list[str]) -> list[str]:
    made: list[str] = []
    for blank, paragraph in groupby(lines, lambda line: not line.strip()):
        found = list(paragraph)
        if not blank and not any(map(_FILE.match, found)):
            made += [*_paragraph(found), ""]
    return made


def _paragraph(lines: list[str]) -> list[str]:
    is_example = lines[0].startswith(">>> ")
    if is_example or (not _ITEM.match(lines[0]) and any(line.startswith(" ") for line in lines)):
        begins = lines[0].endswith(":") and not lines[0].startswith(" ")
        head, rest = ([*_escaped(lines[:1]), ""], lines[1:]) if begins else ([], lines)
        return [*head, "::", "", *(f"    {line}" for line in rest)]
    return _escaped(lines)


def _escaped(lines: list[str]) -> list[str]:
    parts = _CODE.split("\n".join(lines))
    escaped = (part if part.startswith("`") else _MARKUP.sub(r"\\\1", part) for part in parts)
    # What follows code directly, as the s of a plural, needs a mark between.
    return _CODE_AND_LETTER.sub(r"\1\\ ", "".join(escaped)).split("\n")
