"""Queries that Spark and DuckDB both run, from one text.

Strategy: the text is Spark's SQL as far as DuckDB reads it too; the functions that have another name there
are renamed (`_DUCKDB`), and names in backticks get DuckDB's quotes. Rules: a frame is named in braces;
columns and globs of topics are made texts by `names_of` and `pattern_of` alone, whatever is in them.
"""

from __future__ import annotations

__all__ = ["Frame", "is_spark", "names_of", "pattern_of", "run_query"]

import re
from collections.abc import Iterable
from fnmatch import translate
from string import ascii_letters, digits
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation
    from pyspark.sql import DataFrame

Frame = TypeVar("Frame", "DataFrame", "DuckDBPyRelation")

_DUCKDB = {"regexp_like(": "regexp_matches(", "unix_micros(": "epoch_us(", "array()": "[]"}
"""Words of Spark's SQL, and DuckDB's for the same."""

_NAME = re.compile("`((?:[^`]|``)*)`")
"""A name in Spark's SQL, which has two for a backtick."""


def run_query(text: str, **frames: Frame) -> Frame:
    """The result of a query of these frames, whose names it has in braces."""
    sources: dict[str, Any] = {**frames}
    frame = next(iter(sources.values()))
    result: Frame
    if is_spark(frame):
        result = frame.sparkSession.sql(text, None, **sources)
    else:
        for spelling, translation in _DUCKDB.items():
            text = text.replace(spelling, translation)
        text = _NAME.sub(lambda match: '"' + match[1].replace('"', '""').replace("``", "`") + '"', text)
        texts = {name: f"({source.sql_query()})" for name, source in sources.items()}
        result = frame.query("audited", text.format(**texts))
    return result


def is_spark(frame: Any) -> bool:
    return hasattr(frame, "sparkSession")


def names_of(columns: Iterable[str]) -> str:
    """Columns as a text for `run_query` has them, whatever they are called."""
    doubled = {ord(char): 2 * char for char in "`{}"}
    return ", ".join(f"`{name.translate(doubled)}`" for name in columns)


_NAMES_OF_TOPICS = f"{ascii_letters}{digits}._-"
"""What topics' names are made of; a hyphen is last, where it is itself in a class."""

_CLASS_OR_ESCAPED = re.compile(r"\\(.)|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)


def pattern_of(globs: Iterable[str]) -> str:
    """A regular expression that both engines read, as text in quotes, without a backslash or a brace."""

    def expanded(match: re.Match[str]) -> str:
        """A character, or a class of them, by those that topics have."""
        return f"[{''.join(char for char in _NAMES_OF_TOPICS if re.fullmatch(match[0], char))}]"

    patterns = []
    for glob in globs:
        translated = re.sub(r"\\[zZ]$", "", translate(glob)).replace("(?>", "(?:")
        pattern = _CLASS_OR_ESCAPED.sub(expanded, translated)
        # A glob with what topics' names don't have matches none of them.
        if not re.search(r"\[\]|\(\?!|['\"`\0]", pattern):
            patterns.append(pattern)
    return "^(" + "|".join(patterns) + ")$"
