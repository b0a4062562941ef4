"""The groups, members and clients that a filter asks for: an exact value, the beginning of one, or a glob.

Rules: a text with `*`, `?` or `[` is a glob; a value that equals it matches as well. Any other text means the
value that equals it; where the input has none, all values that begin with it. A text that ends in `…` or
`...`, as ids are shortened in a timeline, is always a beginning. Case counts.

Strategy: a value may be met long before the one that equals the text. So the first value that only begins
with a text makes its owner look through the whole input for one that equals it (`find`), once; where the
input can be read only once, beginnings match until an equal value comes.
"""

from __future__ import annotations

__all__ = ["HELP", "Find", "Names"]

from collections.abc import Callable, Collection, Iterable
from fnmatch import translate
from re import compile as compile_pattern

HELP = "an exact value, the beginning of one where none equals it, or a glob as 'pay*'"
"""How an option's help says it."""

ELLIPSES = ("…", "...")
Find = Callable[[Collection[str]], Iterable[str]]
"""Which of these texts some value of the input equals."""


class Names:
    """What an option asks for; false if it asks for nothing. find: see above; None where there is no second
    reading."""

    def __init__(self, texts: Iterable[str] | None, find: Find | None = None) -> None:
        self.texts = tuple(dict.fromkeys(texts or ()))
        self._find = find
        self._exact = frozenset(self.texts)
        globs = [text for text in self.texts if any(char in text for char in "*?[")]
        plain = [text for text in self.texts if text not in globs]
        self._globs = [compile_pattern(translate(text)).match for text in globs]
        shortened = [text for text in plain if text.endswith(ELLIPSES)]
        self._beginnings = {text: _beginning(text) for text in shortened}
        self._open = {text: text for text in plain if text and text not in shortened}

    def __bool__(self) -> bool:
        return bool(self.texts)

    def __call__(self, value: object) -> bool:
        """Whether a value is asked for."""
        if not isinstance(value, str):
            return False
        if value in self._exact:
            self._open.pop(value, None)
            return True
        if any(match(value) for match in self._globs) or value.startswith(tuple(self._beginnings.values())):
            return True
        if not self._open or not value.startswith(tuple(self._open)):
            return False
        if self._find is not None:
            for text in {*self._find(tuple(self._open))} & set(self._open):
                del self._open[text]
            self._beginnings |= self._open
            self._open = {}
            self._find = None
            return value.startswith(tuple(self._beginnings.values()))
        return True

    def any(self, values: Iterable[object]) -> bool:
        """Whether one of the values is asked for; each is looked at, as a later one may equal a text."""
        found = False
        for value in values:
            found |= self(value)
        return found


def _beginning(text: str) -> str:
    return next(text.removesuffix(end) for end in ELLIPSES if text.endswith(end))
