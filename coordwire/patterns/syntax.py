"""From a pattern's text to a program, in one pass without recursion.

Strategy: instructions have relative jumps; groups that are open are a stack; each has the fragments of the
program that it has so far. Captures and greediness don't matter to the question whether a text matches.

Rules: the checks, and their order, are RE2/J's, so that both refuse the same patterns in the same words.

A fragment is a rope: it refers to its parts, and a counted repetition refers to one part several
times; it is written out once, when the pattern is whole. So each level of nesting costs what it adds, and
what has no instructions, such as an empty group, costs nothing however often it is repeated.

Rules: a fragment knows its size before it is written out, and one that is too large is refused before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from enum import Enum
from typing import TypeAlias

from coordwire._dataclasses import dataclass
from coordwire.patterns.character_sets import (
    ANY,
    NOT_NEWLINE,
    PERL_CLASSES,
    POSIX_CLASSES,
    CharacterPart,
    CharacterSet,
    has_unicode_class,
)

MAX_INSTRUCTIONS = 40_000
"""Of a program: more than the longest text has characters, as Kafka takes that."""

MAX_DEPTH = 1_000
"""Groups in each other."""

_MAX_REPEAT = 1_000
_MAX_RUNE = 0x10FFFF

_FOLD, _MANY_LINES, _DOT_IS_ALL, _LAZY = 1, 2, 4, 8
_FLAGS = {"i": _FOLD, "m": _MANY_LINES, "s": _DOT_IS_ALL, "U": _LAZY}


class InvalidPattern(Exception):
    """A text is not a pattern, or exceeds a bound.

    description: what is wrong, as RE2/J describes it. position: the index in the text. reason: the same in
    words that need no knowledge of RE2/J.
    """

    def __init__(self, description: str, position: int, reason: str | None = None) -> None:
        super().__init__(description)
        self.description = description
        self.position = position
        self.reason = reason or description


@dataclass(slots=True)
class _Group:
    """A group that is open: its alternatives so far, the last one as its pieces; the flags outside."""

    position: int
    outer_flags: int
    alternatives: list[Fragment] = field(default_factory=list)
    pieces: list[Fragment] = field(default_factory=list)


def parsed(text: str, max_instructions: int = MAX_INSTRUCTIONS) -> list[Instruction]:
    """The program of a pattern. Raises `InvalidPattern`."""
    return written_out(_Parser(text, max_instructions).parse())


class _Parser:
    def __init__(self, text: str, max_instructions: int) -> None:
        self._text = text
        self._max = max_instructions
        self._at = 0
        self._flags = 0
        self._groups = [_Group(0, 0)]
        self._names: set[str] = set()
        self._literals: dict[tuple[str, bool], CharacterSet] = {}
        self._last_class_end = text.rfind(":]")

    def _refused(
        self, description: str, position: int | None = None, reason: str | None = None
    ) -> InvalidPattern:
        return InvalidPattern(description, self._at if position is None else position, reason)

    # --- the text ---

    @property
    def _has_more(self) -> bool:
        return self._at < len(self._text)

    def _sees(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _take(self) -> str:
        self._at += 1
        return self._text[self._at - 1]

    # --- expressions ---

    def parse(self) -> Fragment:
        after_repeat = False
        while self._has_more:
            repeats = False
            character = self._text[self._at]
            if character == "(":
                self._open()
            elif character == "|":
                self._at += 1
                group = self._groups[-1]
                group.alternatives.append(self._bounded(concatenated(group.pieces)))
                group.pieces = []
            elif character == ")":
                self._at += 1
                self._close()
            elif character in "*+?":
                repeats, start = True, self._at
                self._at += 1
                self._repeat(start, *{"*": (0, -1), "+": (1, -1), "?": (0, 1)}[character], after_repeat)
            elif character == "{":
                repeats, start = True, self._at
                counts = self._counts()
                if counts is None:
                    self._literal(self._take())
                else:
                    self._repeat(start, *counts, after_repeat)
            else:
                self._atom(character)
            after_repeat = repeats
        if len(self._groups) != 1:
            raise self._refused("missing closing )", self._groups[-1].position, "a ( without its )")
        return self._ended(self._groups.pop())

    def _atom(self, character: str) -> None:
        if character == "[":
            self._push(self._set())
        elif character == "\\":
            self._escaped()
        else:
            self._at += 1
            many_lines = self._flags & _MANY_LINES
            if character == "^":
                self._push(Assertion.BEGIN_LINE if many_lines else Assertion.BEGIN)
            elif character == "$":
                self._push(Assertion.END_LINE if many_lines else Assertion.END)
            elif character == ".":
                self._push(ANY if self._flags & _DOT_IS_ALL else NOT_NEWLINE)
            else:
                self._literal(character)

    def _push(self, instruction: Instruction) -> None:
        self._groups[-1].pieces.append(Fragment((instruction,), 1))

    @property
    def _folds(self) -> bool:
        return bool(self._flags & _FOLD)

    def _literal(self, character: str) -> None:
        key = character, self._folds
        literal = self._literals.get(key)
        if literal is None:
            part = CharacterPart(((character, character),))
            literal = self._literals[key] = CharacterSet.of([part], folds=self._folds)
        self._push(literal)

    def _ended(self, group: _Group) -> Fragment:
        last = self._bounded(concatenated(group.pieces))
        return self._bounded(alternated([*group.alternatives, last]))

    def _bounded(self, fragment: Fragment, position: int | None = None) -> Fragment:
        if fragment.size > self._max:
            raise self._refused("expression too large", position)
        return fragment

    # --- groups ---

    def _open(self) -> None:
        if self._sees("(?"):
            self._open_perl()
            return
        self._at += 1
        self._begin_group(self._at - 1)

    def _begin_group(self, position: int) -> None:
        if len(self._groups) > MAX_DEPTH:
            raise self._refused("expression nests too deeply", position)
        self._groups.append(_Group(position, self._flags))

    def _close(self) -> None:
        if len(self._groups) == 1:
            raise self._refused("regexp/syntax: internal error", self._at - 1, "a ) without its (")
        group = self._groups.pop()
        self._flags = group.outer_flags
        self._groups[-1].pieces.append(self._ended(group))

    def _open_perl(self) -> None:
        start = self._at
        if self._sees("(?P<") or self._sees("(?<"):
            begin = self._text.index("<", self._at) + 1
            end = self._text.find(">", begin)
            name = self._text[begin : max(end, begin)]
            if end < 0 or re.fullmatch("[0-9A-Za-z_]+", name) is None:
                raise self._refused("invalid named capture")
            if name in self._names:
                raise self._refused("duplicate capture group name")
            self._names.add(name)
            self._at = end + 1
            self._begin_group(start)
            return
        self._at += 2
        flags, off, saw_flag = self._flags, False, False
        while self._has_more:
            character = self._take()
            if character in _FLAGS:
                flags = flags & ~_FLAGS[character] if off else flags | _FLAGS[character]
                saw_flag = True
            elif character == "-" and not off:
                off, saw_flag = True, False
            elif character in ":)" and (saw_flag or not off):
                if character == ":":
                    self._begin_group(start)
                self._flags = flags
                return
            else:
                break
        raise self._refused("invalid or unsupported Perl syntax", start)

    # --- repetition ---

    def _repeat(self, start: int, least: int, most: int, after_repeat: bool) -> None:
        if self._sees("?"):
            self._at += 1
        if after_repeat:
            raise self._refused("invalid nested repetition operator", start)
        pieces = self._groups[-1].pieces
        if not pieces:
            raise self._refused("missing argument to repetition operator", start, "nothing to repeat")
        pieces[-1] = self._bounded(repeated(pieces[-1], least, most), start)

    def _counts(self) -> tuple[int, int] | None:
        """The counts in braces; None where the brace is a literal one."""
        match = re.compile(r"\{(0|[1-9][0-9]*)(,(0|[1-9][0-9]*)?)?\}").match(self._text, self._at)
        if match is None:
            return None
        numbers = [
            int(digits) if len(digits) <= 8 else _MAX_REPEAT + 1 for digits in match.group(1, 3) if digits
        ]
        least = numbers[0]
        most = least if match[2] is None else numbers[1] if len(numbers) > 1 else -1
        if least > _MAX_REPEAT or most > _MAX_REPEAT or 0 <= most < least:
            raise self._refused("invalid repeat count")
        self._at = match.end()
        return least, most

    # --- escapes and sets ---

    def _escaped(self) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        assertion = {
            "A": Assertion.BEGIN, "z": Assertion.END, "b": Assertion.WORD, "B": Assertion.NOT_WORD
        }.get(following)  # fmt: skip
        if assertion is not None:
            self._at += 2
            self._push(assertion)
        elif following == "C":
            raise self._refused("invalid escape sequence")
        elif following == "Q":
            end = self._text.find("\\E", self._at + 2)
            literal = self._text[self._at + 2 : None if end < 0 else end]
            self._at = len(self._text) if end < 0 else end + 2
            for character in literal:
                self._literal(character)
        else:
            part = self._class_escape()
            if part is not None:
                self._push(CharacterSet.of([part], folds=self._folds))
            else:
                self._literal(self._escape())

    def _class_escape(self) -> CharacterPart | None:
        """A class of Unicode or Perl, if one is next."""
        if self._sees("\\p") or self._sees("\\P"):
            return self._unicode_class()
        name = self._text[self._at + 1 : self._at + 2]
        if self._sees("\\") and name.lower() in PERL_CLASSES and name:
            self._at += 2
            return CharacterPart(PERL_CLASSES[name.lower()], negated=name.isupper())
        return None

    def _unicode_class(self) -> CharacterPart:
        negated = self._text[self._at + 1] == "P"
        match = re.compile(r"\\[pP](?:\{([^}]*)\}|([^{]))", re.DOTALL).match(self._text, self._at)
        if match is None:
            raise self._refused("invalid character class range")
        name = match[2] if match[1] is None else match[1]
        if name.startswith("^"):
            negated, name = not negated, name[1:]
        if not has_unicode_class(name):
            raise self._refused("invalid character class range")
        self._at = match.end()
        return CharacterPart(unicode_class=name, negated=negated)

    def _escape(self) -> str:
        """One character, after a backslash."""
        start = self._at
        self._at += 1
        if not self._has_more:
            raise self._refused("trailing backslash at end of expression", start)
        octal = re.compile("0[0-7]{0,2}|[1-7][0-7]{1,2}").match(self._text, self._at)
        if octal is not None:
            self._at = octal.end()
            return chr(int(octal[0], 8))
        hexadecimal = re.compile(r"x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))").match(self._text, self._at)
        if hexadecimal is not None:
            digits = (hexadecimal[1] or hexadecimal[2]).lstrip("0") or "0"
            if len(digits) <= 6 and int(digits, 16) <= _MAX_RUNE:
                self._at = hexadecimal.end()
                return chr(int(digits, 16))
        character = self._take()
        named = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}.get(character)
        if named is None and character.isascii() and character.isalnum():
            raise self._refused("invalid escape sequence", start)
        return character if named is None else named

    def _set(self) -> CharacterSet:
        start = self._at
        self._at += 1
        negated = self._sees("^")
        self._at += negated
        parts: list[CharacterPart] = []
        first = True
        while first or not self._sees("]"):
            first = False
            part = self._posix_class() or self._class_escape()
            if part is None:
                position = self._at
                low = high = self._set_character(start)
                if self._sees("-") and not self._sees("-]"):
                    self._at += 1
                    high = self._set_character(start)
                    if high < low:
                        raise self._refused("invalid character class range", position)
                part = CharacterPart(((low, high),))
            parts.append(part)
        self._at += 1
        return CharacterSet.of(parts, folds=self._folds, negated=negated)

    def _posix_class(self) -> CharacterPart | None:
        if self._at > self._last_class_end or not self._sees("[:"):
            return None
        end = self._text.index(":]", self._at)
        name = self._text[self._at + 2 : max(end, self._at + 2)]
        negated = name.startswith("^")
        ranges = POSIX_CLASSES.get(name.removeprefix("^"))
        if ranges is None:
            raise self._refused("invalid character class range")
        self._at = end + 2
        return CharacterPart(ranges, negated=negated)

    def _set_character(self, start: int) -> str:
        """start: where the set begins."""
        if not self._has_more:
            raise self._refused("missing closing ]", start, "a [ without its ]")
        return self._escape() if self._sees("\\") else self._take()


# --- instructions ---


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
