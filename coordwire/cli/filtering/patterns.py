r"""Regular expressions that take time in proportion to the text, whatever the text and the expression are.

Strategy: Python's `re` goes back and tries again, which takes exponential time for expressions such as
`(a+)+$`, and what they search here comes from the network. So an expression becomes a Thompson automaton, and
a search walks the text once with the set of states it may be in; sets that were met are kept with where they
lead (a lazy deterministic automaton), which makes it one look-up a character for most texts.

Rules: the syntax is that of `re`, as far as one pass can decide it: literals, `.`, classes with `\d \w \s`,
groups, `|`, `* + ? {m,n}`, `^ $`, and `(?i)` at the beginning. Lazy quantifiers match the same texts. What
needs more (`\b`, look-around, back references) is refused with its position. States, kept sets and their
transitions are bounded. Search only: a text matches or not.
"""

from __future__ import annotations

__all__ = ["Pattern", "PatternError"]

from collections.abc import Callable

MOST_STATES = 2_000
MOST_KEPT = 200_000
"""States in the sets that are kept, and their transitions; beyond, all are dropped and found anew."""

MOST_REPEATS = 1_000
DEEPEST = 50

Test = Callable[[str], bool]
_SPLIT, _START, _END, _MATCH = -1, -2, -3, -4
_CLASSES: dict[str, Test] = {
    "d": str.isdecimal,
    "w": lambda char: char.isalnum() or char == "_",
    "s": str.isspace,
}
_SIGNS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}


class PatternError(Exception):
    """What is wrong with an expression, and the index in it."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position


class Pattern:
    """A regular expression; `search` says whether it matches anywhere in a text."""

    def __init__(self, text: str) -> None:
        ignore_case = text.startswith("(?i)")
        build = _Builder(text, 4 if ignore_case else 0, ignore_case)
        self._kinds, self._tests, self._next = build.kinds, build.tests, build.next
        self._fold = ignore_case
        self._first = build.whole()
        self._begin = self._closure([self._first], at_start=True)
        self._middle = self._closure([self._first], at_start=False)
        self._kept: dict[tuple[frozenset[int], str], frozenset[int]] = {}
        self._size = 0

    def search(self, text: str) -> bool:
        """Whether the expression matches anywhere in the text."""
        if self._fold:
            text = text.casefold()
        states, kept = self._begin, self._kept
        for char in text:
            if self._first_match in states:
                return True
            key = states, char
            following = kept.get(key)
            if following is None:
                if self._size > MOST_KEPT:
                    kept.clear()
                    self._size = 0
                following = kept[key] = self._step(states, char)
                self._size += len(following) + 1
            states = following
        return self._first_match in states or self._ends(states)

    _first_match = 0  # the state that matches is the first that is made

    def _step(self, states: frozenset[int], char: str) -> frozenset[int]:
        reached = [
            self._next[state][0]
            for state in states
            if self._kinds[state] >= 0 and self._tests[self._kinds[state]](char)
        ]
        return self._closure(reached, at_start=False) | self._middle

    def _closure(self, states: list[int], *, at_start: bool, at_end: bool = False) -> frozenset[int]:
        """The states that are reached without a character."""
        found: set[int] = set()
        todo = list(states)
        while todo:
            state = todo.pop()
            if state in found:
                continue
            found.add(state)
            kind = self._kinds[state]
            if kind == _SPLIT or (kind == _START and at_start) or (kind == _END and at_end):
                todo.extend(self._next[state])
        return frozenset(found)

    def _ends(self, states: frozenset[int]) -> bool:
        """Whether the expression matches at the text's end."""
        anchors = [state for state in states if self._kinds[state] == _END]
        at_start = states is self._begin
        return self._first_match in self._closure(
            [following for state in anchors for following in self._next[state]],
            at_start=at_start,
            at_end=True,
        )


class _Builder:
    """Parses an expression and makes the states: of each its kind (an index of a test, or what it is without
    a character) and those that follow. A part is made by a function of the state that follows it."""

    def __init__(self, text: str, at: int, ignore_case: bool) -> None:
        self.text = text
        self.at = at
        self.ignore_case = ignore_case
        self.kinds: list[int] = [_MATCH]
        self.next: list[tuple[int, ...]] = [()]
        self.tests: list[Test] = []

    def whole(self) -> int:
        part = self._either(0)
        if self.at < len(self.text):
            raise PatternError("a ) without its (", self.at)
        return part(0)

    def _state(self, kind: int, *following: int) -> int:
        if len(self.kinds) >= MOST_STATES:
            raise PatternError("the expression is too large: its repetitions multiply", 0)
        self.kinds.append(kind)
        self.next.append(following)
        return len(self.kinds) - 1

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _take(self) -> str:
        char = self._peek()
        self.at += 1
        return char

    def _either(self, depth: int) -> Callable[[int], int]:
        if depth > DEEPEST:
            raise PatternError(f"more than {DEEPEST} groups in each other", self.at)
        options = [self._sequence(depth)]
        while self._peek() == "|":
            self.at += 1
            options.append(self._sequence(depth))
        if len(options) == 1:
            return options[0]
        return lambda after: self._state(_SPLIT, *[option(after) for option in options])

    def _sequence(self, depth: int) -> Callable[[int], int]:
        parts: list[Callable[[int], int]] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeated(self._atom(depth)))

        def build(after: int) -> int:
            for part in reversed(parts):
                after = part(after)
            return after

        return build

    def _repeated(self, part: Callable[[int], int]) -> Callable[[int], int]:
        start = self.at
        sign = self._peek()
        if sign == "{":
            bounds = self._bounds()
            if bounds is None:
                return part
            low, high = bounds
        elif sign in ("*", "+", "?"):
            self.at += 1
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
        else:
            return part
        if self._peek() == "?":
            self.at += 1
        if self._peek() in ("*", "+", "?"):
            raise PatternError("nothing to repeat", self.at)
        if max(low, high or 0) > MOST_REPEATS:
            raise PatternError(f"more than {MOST_REPEATS} repetitions", start)
        return lambda after: self._times(part, low, high, after)

    def _times(self, part: Callable[[int], int], low: int, high: int | None, after: int) -> int:
        if high is None:
            loop = self._state(_SPLIT, after)
            self.next[loop] = (part(loop), after)
            after = loop
        else:
            for _ in range(high - low):
                after = self._state(_SPLIT, part(after), after)
        for _ in range(low):
            after = part(after)
        return after

    def _bounds(self) -> tuple[int, int | None] | None:
        """{m}, {m,}, {,n} or {m,n}; anything else is text."""
        end = self.text.find("}", self.at)
        low, comma, high = self.text[self.at + 1 : end].partition(",") if end > 0 else ("", "", "")
        if any(part and not (part.isascii() and part.isdigit() and len(part) < 6) for part in (low, high)):
            return None
        if not low and not high and not comma:
            return None
        start, self.at = self.at, end + 1
        least = int(low or 0)
        most = (int(high) if high else None) if comma else least
        if most is not None and most < least:
            raise PatternError("the bounds of a repetition are in the wrong order", start)
        return least, most

    def _atom(self, depth: int) -> Callable[[int], int]:
        start = self.at
        char = self._take()
        if char == "(":
            return self._group(start, depth)
        if char in ("*", "+", "?"):
            raise PatternError("nothing to repeat", start)
        if char == "^":
            return lambda after: self._state(_START, after)
        if char == "$":
            return lambda after: self._state(_END, after)
        if char == ".":
            return self._test(lambda char: char != "\n")
        if char == "[":
            return self._test(self._class(start))
        if char == "\\":
            return self._test(self._escape(start))
        return self._test(self._same(char))

    def _group(self, start: int, depth: int) -> Callable[[int], int]:
        if self._peek() == "?":
            if self.text[self.at : self.at + 2] != "?:":
                raise PatternError("only (?:…) and, at the beginning, (?i) are supported", start)
            self.at += 2
        part = self._either(depth + 1)
        if self._take() != ")":
            raise PatternError("a ( without its )", start)
        return part

    def _test(self, test: Test) -> Callable[[int], int]:
        self.tests.append(test)
        kind = len(self.tests) - 1
        return lambda after: self._state(kind, after)

    def _same(self, char: str) -> Test:
        if self.ignore_case:
            folded = char.casefold()
            return lambda one: one in folded
        return lambda one: one == char

    def _escape(self, start: int) -> Test:
        char = self._take()
        if char.lower() in _CLASSES and char:
            test = _CLASSES[char.lower()]
            return test if char.islower() else lambda one: not test(one)
        return self._same(self._sign(char, start))

    def _sign(self, char: str, start: int) -> str:
        """What an escape stands for that is one character."""
        if char == "x":
            digits = self.text[self.at : self.at + 2]
            try:
                found = chr(int(digits, 16))
            except ValueError:
                raise PatternError(r"\x is followed by 2 hex digits", start) from None
            self.at += 2
            return found
        if char in _SIGNS:
            return _SIGNS[char]
        if not char or char.isalnum():
            raise PatternError(f"\\{char} is not supported", start)
        return char

    def _class(self, start: int) -> Test:
        """[abc], [^a-z\\d]"""
        negated = self._peek() == "^"
        self.at += negated
        singles: set[str] = set()
        ranges: list[tuple[str, str]] = []
        tests: list[Test] = []
        first = True
        while first or self._peek() != "]":
            first = False
            at = self.at
            char = self._take()
            if not char:
                raise PatternError("a [ without its ]", start)
            if char == "\\":
                if self._peek() in ("d", "w", "s", "D", "W", "S"):
                    tests.append(self._escape(at))
                    continue
                char = self._sign(self._take(), at)
            if self._peek() == "-" and self.text[self.at + 1 : self.at + 2] not in ("", "]"):
                self.at += 1
                last = self._take()
                if last == "\\":
                    last = self._sign(self._take(), at)
                if last < char:
                    raise PatternError("a range of characters in the wrong order", at)
                ranges.append((char, last))
            else:
                singles.add(char)
        self.at += 1
        fold = self.ignore_case

        def test(one: str) -> bool:
            forms = (one, one.upper()) if fold else (one,)
            found = any(
                form in singles
                or any(low <= form <= high for low, high in ranges)
                or any(inside(form) for inside in tests)
                for form in forms
            )
            return found != negated

        return test
