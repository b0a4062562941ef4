r"""From a pattern's text to a program, in one pass without recursion.

Strategy: a fragment is a list of instructions whose jumps are relative, so that concatenation is
concatenation of lists, and a counted repetition copies its fragment. Groups that are open are a stack.
Captures and greediness don't matter to the question whether a whole name matches.

Rules: the checks, and their order, are RE2/J's, so that both refuse the same patterns in the same words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from typing import TypeAlias

from coordwire.coordinator.patterns.character_sets import (
    ANY,
    NOT_NEWLINE,
    PERL_CLASSES,
    POSIX_CLASSES,
    CharacterPart,
    CharacterSet,
    unicode_class,
)
from coordwire.coordinator.patterns.invalid_pattern import InvalidPattern

__all__ = ["MAX_DEPTH", "MAX_INSTRUCTIONS", "Assertion", "Fragment", "Split", "parsed"]

MAX_INSTRUCTIONS = 40_000
"""Of a program: more than the longest text has characters, as Kafka takes that. Repetitions have a limit."""

_MAX_REPEATED = 10_000
MAX_DEPTH = 1_000
_MAX_REPEAT = 1_000
_MAX_RUNE = 0x10FFFF

_FOLD, _MANY_LINES, _DOT_IS_ALL, _LAZY = 1, 2, 4, 8
_FLAGS = {"i": _FOLD, "m": _MANY_LINES, "s": _DOT_IS_ALL, "U": _LAZY}


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


Fragment: TypeAlias = list["CharacterSet | Split | Assertion"]


@dataclass(slots=True)
class _Group:
    """A group that is open: its alternatives so far, the last one as its pieces; the flags outside."""

    outer_flags: int
    alternatives: list[Fragment] = field(default_factory=list)
    pieces: list[Fragment] = field(default_factory=list)


def _joined(pieces: list[Fragment]) -> Fragment:
    if len(pieces) == 1:
        return pieces[0]
    if sum(map(len, pieces)) > MAX_INSTRUCTIONS:
        raise InvalidPattern("expression too large")
    return list(chain.from_iterable(pieces))


def _any_of(alternatives: list[Fragment]) -> Fragment:
    if len(alternatives) == 1:
        return alternatives[0]
    size = sum(map(len, alternatives)) + len(alternatives)
    found: Fragment = []
    starts = []
    for fragment in alternatives:
        starts.append(len(found) + 1)
        found += fragment
        found.append(Split((size - len(found),)))
    return _joined([[Split(tuple(starts))], found])


def _repeated(fragment: Fragment, least: int, most: int) -> Fragment:
    """most: -1 for any number."""
    size = len(fragment)
    if (max(least, most) + 1) * (size + 2) > _MAX_REPEATED:
        raise InvalidPattern("invalid repeat count")
    pieces = [fragment] * least
    if most < 0:
        pieces += [[Split((1, size + 2))], fragment, [Split((-size - 1,))]]
    else:
        rest = most - least
        for done in range(rest):
            pieces += [[Split((1, (rest - done) * (size + 1)))], fragment]
    return _joined(pieces)


def parsed(text: str) -> Fragment:
    """The program of a pattern. Raises `InvalidPattern`."""
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._flags = 0
        self._groups = [_Group(0)]
        self._names: set[str] = set()

    # --- the text ---

    @property
    def _more(self) -> bool:
        return self._at < len(self._text)

    def _sees(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _take(self) -> str:
        self._at += 1
        return self._text[self._at - 1]

    # --- expressions ---

    def parse(self) -> Fragment:
        after_repeat = False
        while self._more:
            repeats = False
            character = self._text[self._at]
            if character == "(":
                self._open()
            elif character == "|":
                self._at += 1
                group = self._groups[-1]
                group.alternatives.append(_joined(group.pieces))
                group.pieces = []
            elif character == ")":
                self._at += 1
                self._close()
            elif character in "*+?":
                repeats = True
                self._at += 1
                self._repeat(*{"*": (0, -1), "+": (1, -1), "?": (0, 1)}[character], after_repeat)
            elif character == "{":
                repeats = True
                counts = self._counts()
                if counts is None:
                    self._literal(self._take())
                else:
                    self._repeat(*counts, after_repeat)
            else:
                self._atom(character)
            after_repeat = repeats
        if len(self._groups) != 1:
            raise InvalidPattern("missing closing )")
        return self._ended(self._groups.pop())

    def _atom(self, character: str) -> None:
        if character == "[":
            self._push([self._set()])
        elif character == "\\":
            self._escaped()
        else:
            self._at += 1
            many_lines = self._flags & _MANY_LINES
            if character == "^":
                self._push([Assertion.BEGIN_LINE if many_lines else Assertion.BEGIN])
            elif character == "$":
                self._push([Assertion.END_LINE if many_lines else Assertion.END])
            elif character == ".":
                self._push([ANY if self._flags & _DOT_IS_ALL else NOT_NEWLINE])
            else:
                self._literal(character)

    def _push(self, fragment: Fragment) -> None:
        self._groups[-1].pieces.append(fragment)

    def _literal(self, character: str) -> None:
        part = CharacterPart(((character, character),), fold=bool(self._flags & _FOLD))
        self._push([CharacterSet((part,))])

    @staticmethod
    def _ended(group: _Group) -> Fragment:
        return _any_of([*group.alternatives, _joined(group.pieces)])

    # --- groups ---

    def _open(self) -> None:
        if self._sees("(?"):
            self._open_perl()
            return
        self._at += 1
        self._begin_group()

    def _begin_group(self) -> None:
        if len(self._groups) > MAX_DEPTH:
            raise InvalidPattern("expression nests too deeply")
        self._groups.append(_Group(self._flags))

    def _close(self) -> None:
        if len(self._groups) == 1:
            raise InvalidPattern("regexp/syntax: internal error")
        group = self._groups.pop()
        self._flags = group.outer_flags
        self._push(self._ended(group))

    def _open_perl(self) -> None:
        if self._sees("(?P<") or self._sees("(?<"):
            begin = self._text.index("<", self._at) + 1
            end = self._text.find(">", begin)
            name = self._text[begin : max(end, begin)]
            if end < 0 or re.fullmatch("[0-9A-Za-z_]+", name) is None:
                raise InvalidPattern("invalid named capture")
            if name in self._names:
                raise InvalidPattern("duplicate capture group name")
            self._names.add(name)
            self._at = end + 1
            self._begin_group()
            return
        self._at += 2
        flags, off, saw_flag = self._flags, False, False
        while self._more:
            character = self._take()
            if character in _FLAGS:
                flags = flags & ~_FLAGS[character] if off else flags | _FLAGS[character]
                saw_flag = True
            elif character == "-" and not off:
                off, saw_flag = True, False
            elif character in ":)" and (saw_flag or not off):
                if character == ":":
                    self._begin_group()
                self._flags = flags
                return
            else:
                break
        raise InvalidPattern("invalid or unsupported Perl syntax")

    # --- repetition ---

    def _repeat(self, least: int, most: int, after_repeat: bool) -> None:
        if self._sees("?"):
            self._at += 1
        if after_repeat:
            raise InvalidPattern("invalid nested repetition operator")
        pieces = self._groups[-1].pieces
        if not pieces:
            raise InvalidPattern("missing argument to repetition operator")
        pieces[-1] = _repeated(pieces[-1], least, most)

    def _counts(self) -> tuple[int, int] | None:
        """The counts in braces; None where the brace is a literal one."""
        found = re.compile(r"\{(0|[1-9][0-9]*)(,(0|[1-9][0-9]*)?)?\}").match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        numbers = [
            int(digits) if len(digits) <= 8 else _MAX_REPEAT + 1 for digits in found.group(1, 3) if digits
        ]
        least = numbers[0]
        most = least if found[2] is None else numbers[1] if len(numbers) > 1 else -1
        if least > _MAX_REPEAT or most > _MAX_REPEAT or 0 <= most < least:
            raise InvalidPattern("invalid repeat count")
        return least, most

    # --- escapes and sets ---

    def _escaped(self) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        assertion = {
            "A": Assertion.BEGIN, "z": Assertion.END, "b": Assertion.WORD, "B": Assertion.NOT_WORD
        }.get(following)  # fmt: skip
        if assertion is not None:
            self._at += 2
            self._push([assertion])
        elif following == "C":
            raise InvalidPattern("invalid escape sequence")
        elif following == "Q":
            end = self._text.find("\\E", self._at + 2)
            literal = self._text[self._at + 2 : None if end < 0 else end]
            self._at = len(self._text) if end < 0 else end + 2
            for character in literal:
                self._literal(character)
        else:
            part = self._class_escape()
            if part is not None:
                self._push([CharacterSet((part,))])
            else:
                self._literal(self._escape())

    def _class_escape(self) -> CharacterPart | None:
        """A class of Unicode or Perl, if one is next."""
        fold = bool(self._flags & _FOLD)
        if self._sees("\\p") or self._sees("\\P"):
            return self._unicode_class(fold)
        name = self._text[self._at + 1 : self._at + 2]
        if self._sees("\\") and name.lower() in PERL_CLASSES and name:
            self._at += 2
            return CharacterPart(PERL_CLASSES[name.lower()], negated=name.isupper(), fold=fold)
        return None

    def _unicode_class(self, fold: bool) -> CharacterPart:
        negated = self._text[self._at + 1] == "P"
        found = re.compile(r"\\[pP](?:\{([^}]*)\}|([^{]))", re.DOTALL).match(self._text, self._at)
        if found is None:
            raise InvalidPattern("invalid character class range")
        name = found[2] if found[1] is None else found[1]
        if name.startswith("^"):
            negated, name = not negated, name[1:]
        test = unicode_class(name)
        if test is None:
            raise InvalidPattern("invalid character class range")
        self._at = found.end()
        return CharacterPart(test=test, negated=negated, fold=fold)

    def _escape(self) -> str:
        """One character, after a backslash."""
        self._at += 1
        if not self._more:
            raise InvalidPattern("trailing backslash at end of expression")
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
            raise InvalidPattern("invalid escape sequence")
        return character if named is None else named

    def _set(self) -> CharacterSet:
        self._at += 1
        negated = self._sees("^")
        self._at += negated
        fold = bool(self._flags & _FOLD)
        parts: list[CharacterPart] = []
        first = True
        while first or not self._sees("]"):
            first = False
            part = self._posix_class(fold) or self._class_escape()
            if part is None:
                low = high = self._set_character()
                if self._sees("-") and not self._sees("-]"):
                    self._at += 1
                    high = self._set_character()
                    if high < low:
                        raise InvalidPattern("invalid character class range")
                part = CharacterPart(((low, high),), fold=fold)
            parts.append(part)
        self._at += 1
        return CharacterSet(tuple(parts), negated=negated)

    def _posix_class(self, fold: bool) -> CharacterPart | None:
        end = self._text.find(":]", self._at) if self._sees("[:") else -1
        if end < 0:
            return None
        name = self._text[self._at + 2 : max(end, self._at + 2)]
        negated = name.startswith("^")
        ranges = POSIX_CLASSES.get(name.removeprefix("^"))
        if ranges is None:
            raise InvalidPattern("invalid character class range")
        self._at = end + 2
        return CharacterPart(ranges, negated=negated, fold=fold)

    def _set_character(self) -> str:
        if not self._more:
            raise InvalidPattern("missing closing ]")
        return self._escape() if self._sees("\\") else self._take()
