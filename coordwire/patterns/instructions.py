"""The program of a pattern: instructions whose jumps are relative, built from fragments.

Strategy: a fragment is a rope: it refers to its parts, and a counted repetition refers to one part several
times; it is written out once, when the pattern is whole. So each level of nesting costs what it adds, and
what has no instructions, such as an empty group, costs nothing however often it is repeated.

Rules: a fragment knows its size before it is written out, and one that is too large is refused before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from coordwire.patterns.character_sets import CharacterSet

__all__ = [
    "EMPTY",
    "Assertion",
    "Fragment",
    "Instruction",
    "Split",
    "alternated",
    "concatenated",
    "repeated",
    "written_out",
]


class Assertion(Enum):
    """What must hold between two characters."""

    BEGIN = "beginning of the text"
    END = "end of the text"
    BEGIN_LINE = "beginning of a line"
    END_LINE = "end of a line"
    WORD = "word boundary"
    NOT_WORD = "no word boundary"


@dataclass(frozen=True, slots=True)
class Split:
    """Go on at each of these distances from here."""

    ways: tuple[int, ...]


Instruction: TypeAlias = CharacterSet | Split | Assertion


@dataclass(frozen=True, slots=True, eq=False)
class Fragment:
    """A part of a program. parts: none that is empty; size: the number of their instructions."""

    parts: tuple[Instruction | Fragment, ...]
    size: int


EMPTY = Fragment((), 0)


def concatenated(pieces: Sequence[Fragment]) -> Fragment:
    parts = tuple(piece for piece in pieces if piece.size)
    if len(parts) <= 1:
        return parts[0] if parts else EMPTY
    return Fragment(parts, sum(part.size for part in parts))


def alternated(alternatives: Sequence[Fragment]) -> Fragment:
    if len(alternatives) == 1:
        return alternatives[0]
    size = sum(fragment.size for fragment in alternatives) + len(alternatives)
    parts: list[Instruction | Fragment] = []
    starts = []
    position = 0
    for fragment in alternatives:
        starts.append(position + 1)
        position += fragment.size
        parts += (fragment, Split((size - position,))) if fragment.size else (Split((size - position,)),)
        position += 1
    return Fragment((Split(tuple(starts)), *parts), size + 1)


def repeated(fragment: Fragment, least: int, most: int) -> Fragment:
    """most: -1 for any number."""
    size = fragment.size
    parts: list[Instruction | Fragment] = [fragment] * least if size else []
    if most < 0:
        loop = (fragment,) if size else ()
        parts += (Split((1, size + 2)), *loop, Split((-size - 1,)))
        return Fragment(tuple(parts), size * (least + 1) + 2)
    optional = most - least
    for remaining in range(optional, 0, -1):
        parts.append(Split((1, remaining * (size + 1))))
        if size:
            parts.append(fragment)
    return Fragment(tuple(parts), size * most + optional) if parts else EMPTY


def written_out(fragment: Fragment) -> list[Instruction]:
    """A fragment, written out."""
    program: list[Instruction] = []
    waiting: list[Iterator[Instruction | Fragment]] = [iter(fragment.parts)]
    while waiting:
        for part in waiting[-1]:
            if isinstance(part, Fragment):
                waiting.append(iter(part.parts))
                break
            program.append(part)
        else:
            waiting.pop()
    return program
