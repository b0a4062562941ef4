"""Faults as text, for `coordwire serve --fault` and wherever a rule is not Python.

    Heartbeat group=g nth=3 error=REBALANCE_IN_PROGRESS
    Produce,Fetch topic="my topic" partition=0 times=all delay=200ms
    EndTxn after disconnect

    rule        API[,API…] {CONDITION | ACTION}     in any order after the APIs; * for any API
    CONDITION   node=N  topic=NAME  partition=N  group=ID  member=ID  client=ID  transactional_id=ID
                nth=N  times=N|all  probability=0.1  seed=N  optional
    ACTION      error=NAME|NUMBER  at=LEVEL  delay=TIME  throttle=TIME  hold  disconnect  lose  half  after
    TIME        a number with ms or s: 200ms, 1.5s
    a value     as it is, or in "…" or '…' if it has spaces; \\ before a quote or a backslash in "…"

Rules: each word is there once. An error says which word, at which character, and what was expected.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import Any, NamedTuple

from coordwire.broker.injection.fault_rule import LEVELS, FaultRule, FaultyRule
from coordwire.enums import ErrorCode
from coordwire.versions import ApiKey, api_name

__all__ = ["api_keys", "error_of", "parse_fault"]

_WORD = re.compile(r"""(?:[^\s"']|"(?:[^"\\]|\\.)*"|'[^']*')+""")
_QUOTED = re.compile(r""""((?:[^"\\]|\\.)*)"|'([^']*)\'""")
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ms|s)")
_FLAGS = ("hold", "disconnect", "lose", "half", "after", "optional")


class _Word(NamedTuple):
    position: int
    text: str


def parse_fault(text: str) -> FaultRule:
    """The rule that a text means. Raises `FaultyRule`."""
    words = list(_words(text))
    if not words:
        raise FaultyRule("expected an API and what becomes of its requests, got an empty text")
    found: dict[str, Any] = {"apis": _apis(words[0])}
    seen: set[str] = set()
    for word in words[1:]:
        name, equals, raw = word.text.partition("=")
        if name in seen:
            raise FaultyRule(f"expected {name} once, got it again", word.position)
        seen.add(name)
        if name in _FLAGS and not equals:
            found[name] = True
            continue
        read = _VALUES.get(name)
        if read is None or not equals:
            raise FaultyRule(f"expected {_expected(name, bool(equals))}, got {word.text!r}", word.position)
        at = word.position + len(name) + 1
        found[name] = read(name, _Word(at, _unquoted(raw)))
    try:
        return FaultRule(**found)
    except FaultyRule as error:
        raise FaultyRule(f"{error.reason} in {text!r}") from None


def _words(text: str) -> Iterator[_Word]:
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        found = _WORD.match(text, at)
        end = found.end() if found else at
        if found is None or (end < len(text) and not text[end].isspace()):
            raise FaultyRule(f"expected the quote {text[end]} to be closed", end)
        yield _Word(at, found[0])
        at = end


def _unquoted(raw: str) -> str:
    def inside(found: re.Match[str]) -> str:
        double: str | None = found[1]
        return found[2] if double is None else re.sub(r"\\(.)", r"\1", double)

    return _QUOTED.sub(inside, raw)


def _expected(name: str, has_value: bool) -> str:
    if name in _FLAGS:
        return f"{name} without a value"
    if name in _VALUES:
        return f"{name}=VALUE"
    close = get_close_matches(name, [*_VALUES, *_FLAGS], 1)
    meant = f", as {close[0]}" if close else ""
    return f"a condition or an action{meant}"


# --- APIs and errors ---

_APIS = {(api_name(key) or "").lower(): int(key) for key in ApiKey}


def api_keys(name: str) -> frozenset[int]:
    """The keys of APIs by their names with commas between; * for any. Raises `FaultyRule`."""
    return _apis(_Word(0, name))


def _apis(word: _Word) -> frozenset[int]:
    if word.text == "*":
        return frozenset()
    found, at = set(), word.position
    for name in word.text.split(","):
        key = _APIS.get(name.lower().replace("_", "").removesuffix("request"))
        if key is None:
            close = get_close_matches(name.lower(), _APIS, 1)
            meant = f", as {api_name(_APIS[close[0]])}" if close else ""
            raise FaultyRule(f"expected the name of an API{meant}, got {name!r}", at)
        found.add(key)
        at += len(name) + 1
    return frozenset(found)


def error_of(text: str) -> ErrorCode:
    """An error code by its name or number. Raises `FaultyRule`."""
    return _error("error", _Word(0, text))


def _error(name: str, word: _Word) -> ErrorCode:
    text = word.text.upper()
    if re.fullmatch(r"-?\d{1,5}", text) and -(1 << 15) <= int(text) < 1 << 15:
        return ErrorCode(int(text))
    found = ErrorCode.__members__.get(text)
    if found is None:
        close = get_close_matches(text, ErrorCode.__members__, 1)
        meant = f", as {close[0]}" if close else ""
        raise FaultyRule(f"expected Kafka's name of an error{meant}, got {word.text!r}", word.position)
    return found


# --- values ---


def _text(name: str, word: _Word) -> str:
    return word.text


def _number(name: str, word: _Word) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", word.text):
        raise FaultyRule(f"expected a number for {name}, got {word.text!r}", word.position)
    return int(word.text)


def _times(name: str, word: _Word) -> int | None:
    return None if word.text == "all" else _number(name, word)


def _probability(name: str, word: _Word) -> float:
    try:
        value = float(word.text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 1:
        raise FaultyRule(f"expected a probability above 0 and up to 1, got {word.text!r}", word.position)
    return value


def _time(name: str, word: _Word) -> float:
    found = _TIME.fullmatch(word.text)
    if found is None:
        raise FaultyRule(f"expected a time such as 200ms or 1.5s, got {word.text!r}", word.position)
    return float(found[1]) / (1000 if found[2] == "ms" else 1)


def _level(name: str, word: _Word) -> str:
    if word.text not in LEVELS:
        raise FaultyRule(f"expected one of {', '.join(LEVELS)}, got {word.text!r}", word.position)
    return word.text


_VALUES: dict[str, Callable[[str, _Word], Any]] = {
    "node": _number, "topic": _text, "partition": _number, "group": _text, "member": _text,
    "client": _text, "transactional_id": _text, "nth": _number, "times": _times,
    "probability": _probability, "seed": _number, "error": _error, "at": _level, "delay": _time,
    "throttle": _time,
}  # fmt: skip
