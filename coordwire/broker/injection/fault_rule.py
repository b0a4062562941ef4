"""`FaultRule`: the requests that a fault is for, and what happens to them; in Python, or as text.

    FaultRule("Heartbeat", group="g", nth=3, error="REBALANCE_IN_PROGRESS")
    FaultRule({"Produce", "Fetch"}, topic="my topic", partition=0, times=None, delay=0.2)
    FaultRule("EndTxn", after=True, disconnect=True)

    Heartbeat group=g nth=3 error=REBALANCE_IN_PROGRESS
    Produce,Fetch topic="my topic" partition=0 times=all delay=200ms
    EndTxn after disconnect

    rule        API[,API…] {CONDITION | ACTION}     in any order after the APIs; * for any API
    CONDITION   node=N  topic=NAME  partition=N  group=ID  member=ID  client=ID  transactional_id=ID
                nth=N  times=N|all  probability=0.1  seed=N  optional
    ACTION      error=NAME|NUMBER  at=LEVEL  delay=TIME  throttle=TIME  hold  disconnect  lose  half  after
    TIME        a number with ms or s: 200ms, 1.5s
    a value     as it is, or in "…" or '…' if it has spaces; \\ before a quote or a backslash in "…"

Rules: a rule is data, and does nothing by itself; `str` of one without a predicate is its text. A rule that
contradicts itself is refused when it is made. In a text each word appears once. An error says which word, at
which character, and what was expected.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, field
from typing import Any, NamedTuple

from coordwire._dataclasses import dataclass
from coordwire.broker.injection.subjects import Level, Subject
from coordwire.codec import Message
from coordwire.codec.names import suggestion
from coordwire.enums import ErrorCode
from coordwire.errors import CoordwireError
from coordwire.versions import ApiKey, api_name

AnyApi = str | int | type[Message]
"""An API by its name, its key, or the class of its requests or responses."""

LEVELS = ("request", "group", "transaction", "coordinator", "resource", "topic", "member", "partition")


class FaultyRule(CoordwireError):
    """A rule that contradicts itself or has no meaning. position: of the word in its text, None in Python;
    hint: a `suggestion`, after it."""

    def __init__(self, reason: str, position: int | None = None, hint: str = "") -> None:
        place = "" if position is None else f", at character {position + 1}"
        super().__init__(f"{reason}{place}{hint}")
        self.position = position


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request that a rule may be for. subjects: what it is about; node: the broker that it came to."""

    message: Message
    api_key: int
    version: int
    node: int
    client_id: str | None
    subjects: tuple[Subject, ...]


@dataclass(frozen=True, slots=True)
class FaultRule:
    """One rule. A condition that is None always holds.

    apis: of the requests, by their names with commas between, their keys, the classes of their requests or
    responses, or several of these; "*" or none for all. node: the broker that a request comes to. topic,
    partition, group, transactional_id: what it is about. member: the member's id, or the name of a static
    one. client: the client's id. when: a predicate.

    nth: of the requests that match, the first that the rule takes. times: how many it takes, None for all.
    probability: with which it takes each of these, drawn by `seed`.

    error: the code that the answer has, by its name or number, at `at` or where Kafka has it. delay: how
    long the request waits, in seconds; hold: it waits until the fault's `release`. disconnect: the
    connection is closed. after: first the request is carried out; then the answer has the error, waits,
    or is not sent as the connection is closed. lose: the request is carried out, and nothing comes on the
    connection any more. half: the answer breaks off in the middle, with the connection. throttle: seconds
    that the answer says as its throttle time.

    optional: the rule may never fire.

    keys, code: the APIs' keys, empty for all, and the error's code. Raises `FaultyRule`.
    """

    apis: AnyApi | Iterable[AnyApi] = field(default="*", compare=False)
    _: KW_ONLY
    node: int | None = None
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    member: str | None = None
    client: str | None = None
    transactional_id: str | None = None
    when: Callable[[Incoming], Any] | None = None
    nth: int = 1
    times: int | None = 1
    probability: float = 1.0
    seed: int = 0
    error: ErrorCode | int | str | None = field(default=None, compare=False)
    at: Level | None = None
    delay: float = 0.0
    hold: bool = False
    disconnect: bool = False
    lose: bool = False
    half: bool = False
    throttle: float = 0.0
    after: bool = False
    optional: bool = False
    keys: frozenset[int] = field(init=False)
    code: ErrorCode | None = field(init=False)

    def __post_init__(self) -> None:
        keys = _keys(self.apis)
        object.__setattr__(self, "keys", keys)
        object.__setattr__(self, "apis", keys)  # which an iterator gives once
        object.__setattr__(self, "code", _code(self.error))
        for name, least in (("nth", 1), ("times", 1), ("delay", 0), ("throttle", 0), ("partition", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise FaultyRule(f"expected {name} to be at least {least}, got {value}")
        if not 0 < self.probability <= 1:
            raise FaultyRule(f"expected a probability above 0 and up to 1, got {self.probability}")
        if self.code == ErrorCode.NONE:
            raise FaultyRule("expected an error code, got NONE")
        if self.at is not None and (self.at not in LEVELS or self.code is None):
            raise FaultyRule(f"expected at to be one of {', '.join(LEVELS)}, with an error; got {self.at}")
        ends = [name for name in ("disconnect", "lose", "half") if getattr(self, name)]
        if len(ends) > 1:
            raise FaultyRule(f"expected one end of the connection, got {' and '.join(ends)}")
        if self.disconnect and not self.after and (self.code is not None or self.throttle):
            raise FaultyRule("expected no error or throttle time with a disconnect before the work")
        if not (ends or self.code is not None or self.delay or self.hold or self.throttle):
            raise FaultyRule("expected an error, delay, hold, disconnect, lose, half or throttle, got none")

    def is_for(self, request: Incoming) -> bool:
        """Whether a request matches all conditions but nth, times and probability."""
        if self.keys and request.api_key not in self.keys:
            return False
        if self.node is not None and request.node != self.node:
            return False
        if self.client is not None and request.client_id != self.client:
            return False
        if not any(self.is_about(subject) for subject in request.subjects):
            return False
        return self.when is None or bool(self.when(request))

    def is_about(self, subject: Subject) -> bool:
        """Whether it is about one of the things that a request names."""
        return (
            (self.topic in (None, subject.topic) or "topic" in subject.all_of)
            and (self.partition in (None, subject.partition) or "partition" in subject.all_of)
            and self.group in (None, subject.group)
            and self.transactional_id in (None, subject.transactional_id)
            and (self.member is None or self.member in (subject.member, subject.instance))
        )

    @property
    def condition(self) -> Level | None:
        """The innermost entity that the rule names."""
        if self.at is not None:
            return self.at
        if self.partition is not None:
            return "partition"
        return "member" if self.member is not None else None

    def __str__(self) -> str:
        words = [",".join(api_name(key) or str(key) for key in sorted(self.keys)) or "*"]
        for name in ("node", "topic", "partition", "group", "member", "client", "transactional_id"):
            value = getattr(self, name)
            if value is not None:
                words.append(f"{name}={_quoted(value)}")
        if self.when is not None:
            words.append(f"when={getattr(self.when, '__name__', 'a predicate')}")
        if self.nth != 1:
            words.append(f"nth={self.nth}")
        if self.times != 1:
            words.append(f"times={'all' if self.times is None else self.times}")
        if self.probability < 1:
            words.append(f"probability={self.probability:g} seed={self.seed}")
        if self.code is not None:
            words.append(f"error={self.code.name}")
        if self.at is not None:
            words.append(f"at={self.at}")
        for name in ("delay", "throttle"):
            value = getattr(self, name)
            if value:
                words.append(f"{name}={round(value * 1000)}ms")
        flags = ("hold", "disconnect", "lose", "half", "after", "optional")
        words.extend(name for name in flags if getattr(self, name))
        return " ".join(words)


def _quoted(value: object) -> str:
    text = str(value)
    if text and not any(letter.isspace() or letter in "\"'\\" for letter in text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# --- rules as text ---

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
    parameters: dict[str, Any] = {"apis": _apis(words[0])}
    names: set[str] = set()
    for word in words[1:]:
        name, equals, raw = word.text.partition("=")
        if name in names:
            raise FaultyRule(f"expected {name} once, got it again", word.position)
        names.add(name)
        if name in _FLAGS and not equals:
            parameters[name] = True
            continue
        read = _VALUES.get(name)
        if read is None or not equals:
            hint = "" if name in (*_VALUES, *_FLAGS) else suggestion(name, [*_VALUES, *_FLAGS])
            reason = f"expected {_expected(name)}, got {word.text!r}"
            raise FaultyRule(reason, word.position, hint)
        at = word.position + len(name) + 1
        parameters[name] = read(name, _Word(at, _unquoted(raw)))
    try:
        return FaultRule(**parameters)
    except FaultyRule as error:
        raise FaultyRule(f"{error.reason} in {text!r}") from None


def _words(text: str) -> Iterator[_Word]:
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        match = _WORD.match(text, at)
        end = match.end() if match else at
        if match is None or (end < len(text) and not text[end].isspace()):
            raise FaultyRule(f"expected the quote {text[end]} to be closed", end)
        yield _Word(at, match[0])
        at = end


def _unquoted(raw: str) -> str:
    def unescaped(match: re.Match[str]) -> str:
        double: str | None = match[1]
        return match[2] if double is None else re.sub(r"\\(.)", r"\1", double)

    return _QUOTED.sub(unescaped, raw)


def _expected(name: str) -> str:
    if name in _FLAGS:
        return f"{name} without a value"
    return f"{name}=VALUE" if name in _VALUES else "a condition or an action"


# --- APIs and errors ---

_APIS = {(api_name(key) or "").lower(): int(key) for key in ApiKey}


def _keys(api: AnyApi | Iterable[AnyApi]) -> frozenset[int]:
    if isinstance(api, str):
        return _apis(_Word(0, api))
    if isinstance(api, int):
        return frozenset({int(api)})
    if isinstance(api, type):
        key = api.api_key
        if key is None:
            raise TypeError(f"expected a request or a response, got {api.__name__}")
        return frozenset({key})
    return frozenset(key for element in api for key in _keys(element))


def _apis(word: _Word) -> frozenset[int]:
    if word.text == "*":
        return frozenset()
    keys, at = set(), word.position
    for name in word.text.split(","):
        key = _APIS.get(name.lower().replace("_", "").removesuffix("request"))
        if key is None:
            hint = suggestion(name, [api_name(key) or "" for key in ApiKey])
            raise FaultyRule(f"expected the name of an API, got {name!r}", at, hint)
        keys.add(key)
        at += len(name) + 1
    return frozenset(keys)


def _code(error: ErrorCode | int | str | None) -> ErrorCode | None:
    if isinstance(error, str):
        return _error("error", _Word(0, error))
    return None if error is None else ErrorCode(error)


def _error(name: str, word: _Word) -> ErrorCode:
    text = word.text.upper()
    if re.fullmatch(r"-?\d{1,5}", text) and -(1 << 15) <= int(text) < 1 << 15:
        return ErrorCode(int(text))
    code = ErrorCode.__members__.get(text)
    if code is None:
        hint = suggestion(text, ErrorCode.__members__)
        raise FaultyRule(f"expected Kafka's name of an error, got {word.text!r}", word.position, hint)
    return code


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
    match = _TIME.fullmatch(word.text)
    if match is None:
        raise FaultyRule(f"expected a time such as 200ms or 1.5s, got {word.text!r}", word.position)
    return float(match[1]) / (1000 if match[2] == "ms" else 1)


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
