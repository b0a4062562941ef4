"""The match of a pattern with a text: all ways through its program at once, a character at a time.

Strategy: the instructions that can be next, and the kind of the character before if the program asks for it,
are a state; where each character leads from a state is kept, so that many texts cost little more than their
length. A match can be interrupted after each character.

Rules: a character costs at most `RegularExpression.max_work`, whatever is kept, and the whole text that for
each character and its end. What is kept is bounded in bytes; beyond that it is dropped and computed again.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Final

from coordwire.patterns.character_sets import CharacterSet, case_forms
from coordwire.patterns.syntax import MAX_INSTRUCTIONS, Assertion, Split, parsed

CACHE_BYTES = 1 << 20
"""What a pattern keeps of its states and their transitions."""

_STATE_BYTES = 400
"""Of a state beside its instructions: its entries and its table of transitions."""
_TRANSITION_BYTES = 200
_NUMBER: Final = "H"
"""The type of a number of an instruction; there are fewer than 65,536."""

_REFUSED, _MATCHED = -1, -2
"""In place of a state: the rest of the text makes no difference."""

_BEGINNING, _NEWLINE, _WORD, _OTHER = range(4)


def _kind(character: str) -> int:
    if character == "\n":
        return _NEWLINE
    return _WORD if character == "_" or (character.isascii() and character.isalnum()) else _OTHER


class RegularExpression:
    """A pattern in RE2's syntax, ready to match. Raises `InvalidPattern`.

    anywhere: whether a part of a text may match; else the whole text must. max_work: what one character of a
    text costs at most: visits of instructions and of what they lead to, and look-ups in sets.

    >>> from coordwire.patterns import RegularExpression
    >>> pattern = RegularExpression("orders-[0-9]+")
    >>> pattern
    <RegularExpression 'orders-[0-9]+'>
    >>> pattern.matches("orders-17"), pattern.matches("my-orders-17")
    (True, False)
    """

    def __init__(
        self, text: str, *, anywhere: bool = False, max_instructions: int = MAX_INSTRUCTIONS
    ) -> None:
        self._source = text
        program = self._program = parsed(text, min(max_instructions, MAX_INSTRUCTIONS))
        self._anywhere = anywhere
        sets = {instruction for instruction in program if isinstance(instruction, CharacterSet)}
        self._folds = any(charset.folds for charset in sets)
        self._asserts = any(isinstance(instruction, Assertion) for instruction in program)
        ways = sum(len(instruction.ways) for instruction in program if isinstance(instruction, Split))
        self.max_work = 2 * (len(program) + 1) + ways + sum(charset.work for charset in sets)
        self._start = array(_NUMBER, (_BEGINNING, 0)).tobytes()
        self._drop()

    def __repr__(self) -> str:
        return f"<RegularExpression {self._source!r}>"

    def matches(self, text: str) -> bool:
        match = PatternMatch(self, text)
        match.advance((len(text) + 1) * self.max_work)
        assert match.result is not None
        return match.result

    @property
    def kept_bytes(self) -> int:
        """The size in bytes of the cached states, as far as that is counted."""
        return self._bytes

    # --- what is kept ---

    def _drop(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._states: list[bytes] = []
        self._next: list[dict[str, int]] = []
        self._bytes = 0

    def _number_of(self, state: bytes) -> int:
        number = self._numbers.get(state)
        if number is None:
            number = self._numbers[state] = len(self._states)
            self._states.append(state)
            self._next.append({})
            self._bytes += _STATE_BYTES + len(state)
        return number

    # --- one character ---

    def _step(self, number: int, character: str) -> tuple[int, int]:
        """The state that a character leads to, and the work."""
        state = self._states[number]
        reached, work = self._reached(state, character)
        program = self._program
        end = len(program)
        following = {0} if self._anywhere else set()
        forms = case_forms(character) if self._folds else (character,)
        verdicts: dict[CharacterSet, bool] = {}
        for position in reached:
            if position == end:
                if self._anywhere:
                    return self._keep(state, character, _MATCHED), work
                continue
            instruction = program[position]
            if isinstance(instruction, CharacterSet):
                verdict = verdicts.get(instruction)
                if verdict is None:
                    verdict = verdicts[instruction] = instruction.has(character, forms)
                    work += instruction.work
                if verdict:
                    following.add(position + 1)
        if not following:
            return self._keep(state, character, _REFUSED), work
        before = _kind(character) if self._asserts else _BEGINNING
        new = array(_NUMBER, (before, *sorted(following))).tobytes()
        return self._keep(state, character, new), work + len(following)

    def _keep(self, state: bytes, character: str, following: bytes | int) -> int:
        """Keep a transition; gives the number of the state that it leads to."""
        size = len(following) if isinstance(following, bytes) else 0
        if self._bytes + 2 * _STATE_BYTES + len(state) + size + _TRANSITION_BYTES > CACHE_BYTES:
            self._drop()
        number = following if isinstance(following, int) else self._number_of(following)
        self._next[self._number_of(state)][character] = number
        self._bytes += _TRANSITION_BYTES
        return number

    def _reached(self, state: bytes, after: str) -> tuple[set[int], int]:
        """Every instruction that is reached without a character, and the work; after: empty at the end."""
        program = self._program
        end = len(program)
        before, *waiting = memoryview(state).cast(_NUMBER)
        work = 0
        reached: set[int] = set()
        while waiting:
            position = waiting.pop()
            work += 1
            if position in reached:
                continue
            reached.add(position)
            instruction = program[position] if position < end else None
            if isinstance(instruction, Split):
                waiting += [position + way for way in instruction.ways]
            elif isinstance(instruction, Assertion) and _is_met(instruction, before, after):
                waiting.append(position + 1)
        return reached, work

    def _ends(self, number: int) -> tuple[bool, int]:
        """Whether a text that ends in a state matches, and the work."""
        verdict = self._next[number].get("")
        if verdict is not None:
            return verdict == _MATCHED, 1
        state = self._states[number]
        reached, work = self._reached(state, "")
        matched = len(self._program) in reached
        self._keep(state, "", _MATCHED if matched else _REFUSED)
        return matched, work


class PatternMatch:
    """A text on its way through a pattern. result: None as long as it is not known.

    >>> from coordwire.patterns import PatternMatch, RegularExpression
    >>> match = PatternMatch(RegularExpression("orders-.*"), "orders-eu")
    >>> while match.result is None:
    ...     work = match.advance(100)
    >>> match
    <PatternMatch of 'orders-.*': True>
    """

    __slots__ = ("_pattern", "_position", "_state", "_text", "result")

    def __init__(self, pattern: RegularExpression, text: str) -> None:
        self._pattern = pattern
        self._text = text
        self._position = 0
        self._state = pattern._start
        self.result: bool | None = None

    def __repr__(self) -> str:
        return f"<PatternMatch of {self._pattern._source!r}: {self.result}>"

    def advance(self, amount: int) -> int:
        """Go on until the result is known or so much work is done, which one character may exceed.

        Gives the work that was done: at least 1.
        """
        pattern, text, position = self._pattern, self._text, self._position
        number, work = pattern._number_of(self._state), 0
        while self.result is None and work < amount:
            if position == len(text):
                self.result, cost = pattern._ends(number)
                work += cost
                break
            character = text[position]
            following = pattern._next[number].get(character)
            if following is None:
                following, cost = pattern._step(number, character)
                work += cost
            else:
                work += 1
            position += 1
            if following < 0:
                self.result = following == _MATCHED
            else:
                number = following
        if self.result is None:
            self._position, self._state = position, pattern._states[number]
        return work


class PatternSelection:
    """The names, of many, that a pattern matches: found in turns. is_done: whether `names` are all.

    >>> from coordwire.patterns import PatternSelection, RegularExpression
    >>> selection = PatternSelection(RegularExpression("orders-.*"), ["orders-eu", "bills", "orders-us"])
    >>> while not selection.is_done:
    ...     work = selection.advance(100)
    >>> selection
    <PatternSelection by 'orders-.*': done, matched 2>
    """

    def __init__(self, pattern: RegularExpression, names: Iterable[str]) -> None:
        self._pattern = pattern
        self._waiting = iter(names)
        self._name = ""
        self._match: PatternMatch | None = None
        self.names: list[str] = []
        self.is_done = False

    def __repr__(self) -> str:
        state = "done" if self.is_done else "under way"
        return f"<PatternSelection by {self._pattern._source!r}: {state}, matched {len(self.names)}>"

    def advance(self, amount: int) -> int:
        """Do so much work, which one character may exceed; return the work that was done."""
        work = 0
        while work < amount:
            if self._match is None:
                name = next(self._waiting, None)
                if name is None:
                    self.is_done = True
                    break
                self._name, self._match = name, PatternMatch(self._pattern, name)
            work += self._match.advance(amount - work)
            if self._match.result is not None:
                if self._match.result:
                    self.names.append(self._name)
                self._match = None
        return work


def _is_met(assertion: Assertion, before: int, after: str) -> bool:
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
