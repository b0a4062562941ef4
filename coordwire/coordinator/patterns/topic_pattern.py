"""Whether a pattern matches a whole name: all ways through its program at once, a character at a time.

Strategy: the set of instructions that can be next is a state; what follows from a state, the kind of the
character before and the character after it is kept, so that many names cost little more than their length.
Rules: a name costs at most its length times the program's; what is kept is bounded.
"""

from __future__ import annotations

from coordwire.coordinator.patterns.character_sets import CharacterSet
from coordwire.coordinator.patterns.syntax import Assertion, Split, parsed

__all__ = ["TopicPattern"]

_MAX_KEPT = 4_096
_BEGINNING, _NEWLINE, _WORD, _OTHER = range(4)

Positions = frozenset[int]


def _kind(character: str) -> int:
    if character == "\n":
        return _NEWLINE
    return _WORD if character == "_" or (character.isascii() and character.isalnum()) else _OTHER


class TopicPattern:
    """A pattern, ready to match. Raises `InvalidPattern`."""

    def __init__(self, text: str) -> None:
        self._program = parsed(text)
        self._kept: dict[tuple[Positions, int, str], Positions] = {}

    def matches(self, name: str) -> bool:
        state: Positions = frozenset((0,))
        before = _BEGINNING
        for character in name:
            key = (state, before, character)
            following = self._kept.get(key)
            if following is None:
                following = self._step(state, before, character)
                if len(self._kept) >= _MAX_KEPT:
                    self._kept.clear()
                self._kept[key] = following
            if not following:
                return False
            state, before = following, _kind(character)
        return len(self._program) in self._reached(state, before, "")

    def _step(self, state: Positions, before: int, character: str) -> Positions:
        program = self._program
        following = set()
        for at in self._reached(state, before, character):
            instruction = program[at] if at < len(program) else None
            if isinstance(instruction, CharacterSet) and instruction.has(character):
                following.add(at + 1)
        return frozenset(following)

    def _reached(self, state: Positions, before: int, after: str) -> set[int]:
        """Every instruction that is reached without a character; `after` is empty at the end."""
        program = self._program
        found: set[int] = set()
        waiting = list(state)
        while waiting:
            at = waiting.pop()
            if at in found:
                continue
            found.add(at)
            instruction = program[at] if at < len(program) else None
            if isinstance(instruction, Split):
                waiting += [at + way for way in instruction.ways]
            elif isinstance(instruction, Assertion) and _holds(instruction, before, after):
                waiting.append(at + 1)
        return found


def _holds(assertion: Assertion, before: int, after: str) -> bool:
    match assertion:
        case Assertion.BEGIN:
            return before == _BEGINNING
        case Assertion.END:
            return not after
        case Assertion.BEGIN_LINE:
            return before in (_BEGINNING, _NEWLINE)
        case Assertion.END_LINE:
            return after in ("", "\n")
    boundary = (before == _WORD) is not (after != "" and _kind(after) == _WORD)
    return boundary is (assertion is Assertion.WORD)
