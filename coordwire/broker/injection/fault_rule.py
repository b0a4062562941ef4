"""`FaultRule`: which requests a fault is for, which of them it takes, and what becomes of these.

Rules: a rule is data, and does nothing by itself. What contradicts itself is refused when it is made, with
what was expected and what came.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from coordwire.broker.injection.subjects import Level, Subject
from coordwire.codec import Message
from coordwire.enums import ErrorCode
from coordwire.errors import CoordwireError
from coordwire.versions import api_name

__all__ = ["FaultRule", "FaultyRule", "Incoming"]

LEVELS = ("request", "group", "transaction", "coordinator", "resource", "topic", "member", "partition")


class FaultyRule(CoordwireError):
    """A rule that means nothing. position: of the word in its text, None for one made in Python."""

    def __init__(self, reason: str, position: int | None = None) -> None:
        super().__init__(reason if position is None else f"{reason}, at character {position + 1}")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRule:
    """One rule. A condition that is None is not asked for.

    apis: the keys of the requests; empty for all. node: the broker that a request comes to. topic, partition,
    group, transactional_id: what it is about. member: the member's id, or the name of a static one. client:
    the client's id. when: a predicate.

    nth: of the requests that match, the first that the rule takes. times: how many it takes, None for all.
    probability: with which it takes each of these, drawn by `seed`.

    error: the code that the answer has, at `at` or where Kafka has it. delay: how long the request waits, in
    seconds; hold: it waits until the fault's `release`. disconnect: the connection is closed. after: first
    the request is carried out; then the answer has the error, waits, or is not sent as the connection is
    closed. lose: the request is carried out, and nothing comes on the connection any more. half: the answer
    breaks off in the middle, with the connection. throttle: seconds that the answer says as its
    throttle time.

    optional: the rule may never fire.
    """

    apis: frozenset[int] = frozenset()
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
    error: ErrorCode | None = None
    at: Level | None = None
    delay: float = 0.0
    hold: bool = False
    disconnect: bool = False
    lose: bool = False
    half: bool = False
    throttle: float = 0.0
    after: bool = False
    optional: bool = False

    def __post_init__(self) -> None:
        for name, least in (("nth", 1), ("times", 1), ("delay", 0), ("throttle", 0), ("partition", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise FaultyRule(f"expected {name} to be at least {least}, got {value}")
        if not 0 < self.probability <= 1:
            raise FaultyRule(f"expected a probability above 0 and up to 1, got {self.probability}")
        if self.error is not None and self.error == ErrorCode.NONE:
            raise FaultyRule("expected an error code, got NONE")
        if self.at is not None and (self.at not in LEVELS or self.error is None):
            raise FaultyRule(f"expected at to be one of {', '.join(LEVELS)}, with an error; got {self.at}")
        ends = [name for name in ("disconnect", "lose", "half") if getattr(self, name)]
        if len(ends) > 1:
            raise FaultyRule(f"expected one end of the connection, got {' and '.join(ends)}")
        if self.disconnect and not self.after and (self.error is not None or self.throttle):
            raise FaultyRule("expected no error or throttle time with a disconnect before the work")
        if not (ends or self.error is not None or self.delay or self.hold or self.throttle):
            raise FaultyRule("expected an error, delay, hold, disconnect, lose, half or throttle, got none")

    def is_for(self, request: Incoming) -> bool:
        """Whether a request matches all conditions but nth, times and probability."""
        if self.apis and request.api_key not in self.apis:
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
        """The innermost thing that it is about."""
        if self.at is not None:
            return self.at
        if self.partition is not None:
            return "partition"
        return "member" if self.member is not None else None

    def __str__(self) -> str:
        words = [",".join(api_name(key) or str(key) for key in sorted(self.apis)) or "*"]
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
        if self.error is not None:
            words.append(f"error={self.error.name}")
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
