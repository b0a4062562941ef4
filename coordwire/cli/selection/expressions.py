"""The text of a filter expression to its syntax tree.

    latency > 100ms and not (api == "Fetch" or topic in ("a", "b")) and error

Strategy: one regular expression cuts tokens, and a parser by recursive descent, a method a level of
precedence, builds the tree; each node keeps the place of its text. Written by hand and not by lark or
pyparsing: the grammar has seven rules, `coordwire decode` must run without the `cli` extra, and what a user
needs most, an error that points at the character and says what belongs there, is what a generator would take
the most work to give. Rules: everything that is refused is a `FilterError`; length and depth are bounded.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal, NamedTuple, NoReturn

from coordwire.capture.printable import shown

LONGEST = 10_000
DEEPEST = 100
LONGEST_NUMBER = 40
WINDOW = 100
"""Columns of an expression that are shown beside an error."""

Operator = Literal["==", "!=", "<", "<=", ">", ">=", "contains", "=~"]
_WORDS: dict[str, str] = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "matches": "=~",
    "contains": "contains", "and": "and", "or": "or", "not": "not", "in": "in", "&&": "and", "||": "or",
    "!": "not", "~": "=~",
}  # fmt: skip
_COMPARISONS: tuple[Operator, ...] = ("==", "!=", "<", "<=", ">", ">=", "contains", "=~")
_CLOSING = {"(": ")", "{": "}", "[": "]"}
_PATH = r"[A-Za-z_]\w*(?:\[\d*\])*(?:\.[A-Za-z_]\w*(?:\[\d*\])*)*"
FIELD = re.compile(_PATH, re.ASCII)
"""A field as it is written."""

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>-?(?:0[xX][0-9a-fA-F]+(?![\w.])|\d+(?:\.\d+)?)(?P<unit>[A-Za-zµμ]*))
      | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<name>"""
    + _PATH
    + r""")
      | (?P<sign>==|!=|<=|>=|=~|&&|\|\||\.\.|[<>!~(){}\[\],])
    )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}

NANOSECONDS = {
    "ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 10**6, "s": 10**9, "min": 60 * 10**9,
    "h": 3600 * 10**9,
}  # fmt: skip
BYTES = {
    "B": 1, "kB": 1000, "KB": 1000, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
}  # fmt: skip


class FilterError(Exception):
    """An error in an expression. start, end: the characters that it is about."""

    def __init__(self, reason: str, start: int, end: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.start = start
        self.end = end

    def pointed(self, text: str) -> str:
        """The reason, the expression, and a line of carets under the place."""
        start = min(self.start, len(text))
        end = min(max(self.end, start + 1), len(text) + 1)
        first = max(0, start - WINDOW // 2) if len(text) > WINDOW else 0
        piece = text[first : first + WINDOW]
        before, marked = text[first:start], text[start : min(end, first + WINDOW)]
        prefix, suffix = "…" * (first > 0), "…" * (first + WINDOW < len(text))
        carets = "^" * max(_columns(shown(marked)), 1)
        line = f"  {prefix}{shown(piece)}{suffix}"
        return f"{self.reason}\n{line}\n  {' ' * (len(prefix) + _columns(shown(before)))}{carets}"


def _columns(text: str) -> int:
    """How many columns a text takes on a terminal."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


class Name(NamedTuple):
    """A field as it was written."""

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Constant:
    """A value: text, number, boolean or null; `unit`: "" or what a number is of, "duration" or "size".

    raw: a text as it was written, for a regular expression.
    """

    value: str | int | float | bool | None
    start: int
    end: int
    unit: str = ""
    raw: str = ""


@dataclass(frozen=True, slots=True)
class ConstantRange:
    """From one number to another, both included."""

    low: Constant
    high: Constant


@dataclass(frozen=True, slots=True)
class Present:
    """A field alone."""

    field: Name


@dataclass(frozen=True, slots=True)
class Comparison:
    field: Name
    operator: Operator
    value: Constant


@dataclass(frozen=True, slots=True)
class Membership:
    field: Name
    values: tuple[Constant | ConstantRange, ...]


@dataclass(frozen=True, slots=True)
class Not:
    operand: Node


@dataclass(frozen=True, slots=True)
class Several:
    """All of them, or any of them."""

    word: Literal["and", "or"]
    parts: tuple[Node, ...]


Node = Present | Comparison | Membership | Not | Several


class _Token(NamedTuple):
    sort: str  # "number", "text", "name", "sign", "end"; of words such as "and", and of signs, what they mean
    text: str
    start: int
    end: int
    unit: str = ""


def parse(text: str) -> Node:
    """The syntax tree of an expression. Raises `FilterError`."""
    if len(text) > LONGEST:
        raise FilterError(
            f"an expression of {len(text):,} characters; {LONGEST:,} are allowed", LONGEST, LONGEST
        )
    parser = _Parser(_tokens(text))
    node = parser.either(0)
    token = parser.token
    if token.sort == ")":
        raise FilterError("a closing bracket without an opening one", token.start, token.end)
    if token.sort != "end":
        parser.refuse("expected 'and', 'or' or the end")
    return node


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            start = at + len(text[at:]) - len(text[at:].lstrip())
            raise FilterError(_what_is_wrong(text, start), start, start + 1)
        sort = str(match.lastgroup if match.lastgroup != "unit" else "number")
        word = match[sort]
        start, at = match.start(sort), match.end()
        if sort == "sign" or word in _WORDS:
            sort = _WORDS.get(word, word)
        tokens.append(_Token(sort, word, start, at, match["unit"] or ""))
    return [*tokens, _Token("end", "", end, end + 1)]


def _what_is_wrong(text: str, at: int) -> str:
    sign = text[at]
    if sign in "\"'":
        return f"a text without its closing {sign}"
    if sign == "=":
        return "equality is written =="
    if sign in "&|":
        return f"expected {sign}{sign}, or the word {'and' if sign == '&' else 'or'}"
    return f"{shown(sign)!r} has no meaning here; text goes in quotes"


class _Parser:
    """or > and > not > comparison; `depth` counts brackets and negations."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def token(self) -> _Token:
        return self._tokens[self._at]

    def _next(self) -> _Token:
        token = self.token
        self._at += token.sort != "end"
        return token

    def refuse(self, reason: str) -> NoReturn:
        token = self.token
        came = "the expression ends" if token.sort == "end" else f"got {shown(token.text)}"
        raise FilterError(f"{reason}, {came}", token.start, token.end)

    def either(self, depth: int) -> Node:
        return self._joined("or", depth)

    def _joined(self, word: Literal["and", "or"], depth: int) -> Node:
        parts = [self._joined("and", depth) if word == "or" else self._operand(depth)]
        while self.token.sort == word:
            self._next()
            parts.append(self._joined("and", depth) if word == "or" else self._operand(depth))
        return parts[0] if len(parts) == 1 else Several(word, tuple(parts))

    def _operand(self, depth: int) -> Node:
        token = self.token
        if depth > DEEPEST:
            raise FilterError(f"more than {DEEPEST} brackets in each other", token.start, token.end)
        if token.sort == "not":
            self._next()
            return Not(self._operand(depth + 1))
        if token.sort == "(":
            self._next()
            node = self.either(depth + 1)
            if self.token.sort != ")":
                self.refuse(f"expected ) for the ( at character {token.start + 1}")
            self._next()
            return node
        if token.sort in ("number", "text"):
            self.refuse("a comparison begins with a field")
        if token.sort != "name":
            self.refuse("expected a field")
        self._next()
        return self._comparison(Name(token.text, token.start, token.end))

    def _comparison(self, field: Name) -> Node:
        sort = self.token.sort
        if sort == "in":
            self._next()
            return Membership(field, self._members())
        if sort == "not" and self._tokens[self._at + 1].sort == "in":
            self._at += 2
            return Not(Membership(field, self._members()))
        for operator in _COMPARISONS:
            if sort == operator:
                self._next()
                return Comparison(field, operator, self._literal())
        if sort in ("name", "number", "text"):
            self.refuse(f"expected a comparison (== != < <= > >= contains matches in) after {field.path}")
        return Present(field)

    def _members(self) -> tuple[Constant | ConstantRange, ...]:
        closing = _CLOSING.get(self.token.sort)
        if closing is None:
            self.refuse('expected a list after \'in\', such as (1, 2) or ("a", "b")')
        self._next()
        members: list[Constant | ConstantRange] = []
        while True:
            low = self._literal()
            if self.token.sort == "..":
                self._next()
                high = self._literal()
                for end in (low, high):
                    if isinstance(end.value, str | bool | None):
                        raise FilterError("a range goes from a number to a number", end.start, end.end)
                members.append(ConstantRange(low, high))
            else:
                members.append(low)
            if self.token.sort == closing:
                self._next()
                return tuple(members)
            if self.token.sort != ",":
                self.refuse(f"expected , or {closing}")
            self._next()

    def _literal(self) -> Constant:
        token = self.token
        if token.sort == "text":
            self._next()
            raw = token.text[1:-1].replace(f"\\{token.text[0]}", token.text[0])
            plain = _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), token.text[1:-1])
            return Constant(plain, token.start, token.end, raw=raw)
        if token.sort == "number":
            self._next()
            return _number(token)
        if token.sort == "name" and token.text in ("true", "false", "null"):
            self._next()
            return Constant({"true": True, "false": False, "null": None}[token.text], token.start, token.end)
        if token.sort == "name":
            reason = f'expected a value; text goes in quotes: "{token.text}"'
            raise FilterError(reason, token.start, token.end)
        self.refuse("expected a value: a number, a text in quotes, true, false or null")


def _number(token: _Token) -> Constant:
    digits = token.text.removesuffix(token.unit) if token.unit else token.text
    if len(digits) > LONGEST_NUMBER:
        raise FilterError(f"a number of more than {LONGEST_NUMBER} digits", token.start, token.end)
    if digits.lower().lstrip("-").startswith("0x"):
        return Constant(int(digits, 16), token.start, token.end)
    value: int | float = float(digits) if "." in digits else int(digits)
    if not token.unit:
        return Constant(value, token.start, token.end)
    for unit, sizes in (("duration", NANOSECONDS), ("size", BYTES)):
        if token.unit in sizes:
            return Constant(value * sizes[token.unit], token.start, token.end, unit)
    known = ", ".join([*(name for name in NANOSECONDS if name != "μs"), *BYTES])
    start = token.end - len(token.unit)
    raise FilterError(f"{token.unit!r} is not a unit; there are {known}", start, token.end)
