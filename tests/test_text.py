"""The text that users meet is plain technical English: errors, help, docstrings, the schemas' descriptions.

Strategy: every string literal of the hand-written modules is searched for words that this project once used
in a meaning of its own. Rule: what a word list can't decide is not in it ("sound" is fine of a batch).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TO_FOLLOW = ("coordwire/groups", "coordwire/cli/timeline")
GENERATED = "coordwire/messages"

WORDS = {
    r"behind": 'of places: "after"',
    r"told|tells|hears?": 'code doesn\'t talk: "given", "reports", "gets"',
    r"stands?": '"is", "means"',
    r"nobody(?:'s)?|whoever|strangers?": 'name what is meant: "untrusted bytes", "the caller"',
    r"dislikes?|forgets|gossips?": "code has no moods",
    r"says that": '"means that", "reports that"',
    r"(?<!there )(?<!here )is no (?!longer\b|more\b)[a-z]+": '"is not a"; in errors "expected X, got Y"',
    r"wanted, not": '"expected X, got Y"',
    r"1 (?:bytes|records|elements)": '"1 byte": see `coordwire.errors.counted`',
}
"""Patterns of whole words, each with what to write instead."""


def literals(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of all string literals, those of f-strings in parts."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def complaints(text: str) -> list[str]:
    joined = " ".join(text.split())
    return [
        f"{found[0]!r}: {instead}"
        for word, instead in WORDS.items()
        if (found := re.search(rf"\b(?:{word})\b", joined, re.IGNORECASE))
    ]


@pytest.mark.parametrize(
    "text",
    [
        "3 bytes behind the frame", "what it is told", "where it stands", "bytes from strangers",
        "x is no port", "a number wanted, not str", "needs 1 bytes", "A marker says that the group is gone.",
    ],
)  # fmt: skip
def test_the_words_are_found(text: str) -> None:
    assert complaints(text)


@pytest.mark.parametrize("text", ["There is no response.", "is no longer", "told_of", "21 bytes", "standard"])
def test_other_words_are_not(text: str) -> None:
    assert complaints(text) == []


def test_string_literals_are_plain() -> None:
    wrong = {}
    paths = [path for name in ("coordwire", "schemas") for path in sorted((ROOT / name).rglob("*.py"))]
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        if name.startswith((GENERATED, *TO_FOLLOW)):
            continue
        for line, text in literals(path.read_text()):
            if found := complaints(text):
                wrong[f"{name}:{line}"] = found
    assert len(paths) > 400
    assert wrong == {}
