"""Whether bytes that could not be read may be a message with a secret that was cut, changed or misattributed.

Strategy: the bytes are read as each message that holds secrets, leniently, and each reading ends where it
must: what counts is whether it came as far as a secret. Where the secret is a field of the message itself,
nearly all bytes read so; there the reading must also account for about all of them. An answer whose request
is unknown is shown only where it is, strictly and whole, an answer without secrets.

Rules: a doubt is a yes. The bytes examined are bounded by the length of the frame, and so is what a reading
builds; a frame that would take more can't be judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from coordwire.capture.partial import steps
from coordwire.capture.redaction import secret_fields
from coordwire.codec import Field, Message
from coordwire.codec.interpreter.decoder import Reader
from coordwire.enums import ErrorCode
from coordwire.errors import DecodeError, Malformed
from coordwire.frames import read_response
from coordwire.limits import limits
from coordwire.messages import find_message
from coordwire.messages.headers import RequestHeader, ResponseHeader
from coordwire.messages.keys import FACTS
from coordwire.versions import header_version

_SCRAM = (b"r=", b"v=", b"e=", b"n,", b"p=", b"y,")
_SLACK = 16
"""So many bytes may be too many, or missing."""

_STRAY = 7
"""So many bytes after a message are not a secret."""

_LEAST = 4
"""Fewer bytes than that aren't a secret that was cut."""

_PASSES = 32
_FIXED_WORK = 1 << 16
"""The bytes examined for a frame: its length times the one, and the other."""


class _Unjudged(Exception):
    """The readings of a frame cost more than they may."""


class _Reading(Reader):
    """A lenient reading. claimed: the length that was claimed for what isn't all there."""

    claimed = 0

    def need(self, count: int, what: str) -> int:
        if count > self.end - self.pos:
            self.claimed = count
        return super().need(count, what)


class _Work:
    """What may be examined of one frame."""

    def __init__(self, body: bytes) -> None:
        self._left = _PASSES * len(body) + _FIXED_WORK

    def spend(self, examined: int) -> None:
        self._left -= examined + 1
        if self._left < 0:
            raise _Unjudged


def answer_may_hide(body: bytes) -> bool:
    """Whether an answer to an unknown request may hold a secret: it does unless it can only be another's."""
    if reads_as_secret(body, "response"):
        return True
    with limits(elements=100_000, memory=16 << 20):
        try:
            return not _reads_as_harmless(body, _Work(body))
        except _Unjudged:
            return True


def reads_as_secret(body: bytes, direction: str, version: int | None = None) -> bool:
    """Whether a frame's bytes read as a message with a secret; version: the only one that it may be of."""
    if body.startswith(_SCRAM):
        return True
    work = _Work(body)
    with limits(elements=100_000, memory=16 << 20):
        try:
            return any(
                _reads_as(body, find_message(key, direction), number, work)
                for key in _keys(direction)
                for number in range(FACTS[key].first, FACTS[key].last + 1)
                if version in (None, number)
            )
        except _Unjudged:
            return True


@cache
def _keys(direction: str) -> tuple[int, ...]:
    """The APIs of which this side may hold a secret."""
    side = direction.capitalize()
    found = [key for key, facts in FACTS.items() if facts.name + side in secret_fields.FIELDS]
    return (*found, secret_fields.FETCH) if direction == "response" else tuple(found)


def is_itself(body: bytes, cls: type[Message], version: int) -> bool:
    """Whether the bytes read leniently as a message of this class, but for a few too many at their end."""
    try:
        reading = Reader(body, _head(body, cls, version), version, strict=False)
    except DecodeError:
        return False
    try:
        found: Any = reading.message(cls, whole=False)
    except Malformed as error:  # as a null is, at the end, in brokers that answer so
        if reading.pos < len(body) or cls.direction == "request":
            return False
        found = error.partial
    except DecodeError:
        return False
    return len(body) - reading.pos <= _STRAY and _is_plausible(found)


def _head(body: bytes, cls: type[Message], version: int) -> int:
    """Where the message begins. Raises `DecodeError`."""
    assert cls.api_key is not None
    header: Any = RequestHeader if cls.direction == "request" else ResponseHeader
    reader = Reader(body, 0, header_version(cls.api_key, version, cls.direction), strict=False)
    reader.message(header, whole=False)
    return reader.pos


def _reads_as(body: bytes, cls: Any, version: int, work: _Work) -> bool:
    """Whether the bytes read as this message, as far as a secret in it."""
    try:
        start = _head(body, cls, version)
    except DecodeError as error:
        work.spend(error.position)
        return False
    reading = _Reading(body, start, version, strict=False)
    path: str | None = None
    try:
        found: Any = reading.message(cls, whole=False)
    except DecodeError as error:
        found, path = error.partial, error.path
    work.spend(reading.pos)
    left = len(body) - reading.pos
    if left and not _is_known(found):
        return False
    if cls.__name__ == "FetchResponse":
        return any(map(secret_fields.is_metadata, found.responses or ()))
    if path is not None and _is_secret(cls, path):
        return (
            left >= _LEAST
            and reading.claimed > 0
            and (not _early(cls) or reading.claimed <= 2 * left + _SLACK)
        )
    places = secret_fields.find(found)
    if not _early(cls) or not places:
        return bool(places)
    longest = max((len(getattr(found, place, b"")) for place in places), default=0)
    return longest >= _LEAST and left <= max(_SLACK, (reading.pos - start) // 2)


def _is_secret(cls: Any, path: str) -> bool:
    """Whether a refusal's path is that of a secret."""
    plain = "".join("[]" if isinstance(step, int) else f".{step}" for step in steps(path)).removeprefix(".")
    return plain in secret_fields.FIELDS[cls.__name__]


@cache
def _early(cls: Any) -> bool:
    """Whether the secret is a field of the message itself, which the reading of nearly anything reaches."""
    return any("." not in path for path in secret_fields.FIELDS[cls.__name__])


# --- answers without secrets ---


def _reads_as_harmless(body: bytes, work: _Work) -> bool:
    """Whether the bytes are, strictly and whole, an answer without secrets."""
    for key, version in _harmless():
        try:
            frame = read_response(body, key, version)
        except DecodeError as error:
            work.spend(error.position)
            continue
        work.spend(len(body))
        if _is_plausible(frame.header) and _is_plausible(frame.message) and not _holds_secret(frame.message):
            return True
    return False


def _holds_secret(message: Any) -> bool:
    if type(message).__name__ != "FetchResponse":
        return bool(secret_fields.find(message))
    topics = message.responses or ()
    return any(map(secret_fields.is_metadata, topics)) or any(
        secret_fields.records_hide(partition.records, foreign=True)
        for topic in topics
        for partition in topic.partitions
        if partition.records
    )


def _is_plausible(value: Any) -> bool:
    """Whether nothing in a message is unknown: neither tagged fields nor errors."""
    return not value.tags and all(map(_is_known, _structs(value)))


def _is_known(value: Any) -> bool:
    code = getattr(value, "error_code", 0)
    return not value.tags and ErrorCode(code).known


def _structs(value: Any) -> Iterator[Any]:
    """A struct and those inside it."""
    yield value
    kind: Any = type(value)
    for field in _ways(kind):
        inside = getattr(value, field.name)
        if inside is not None:
            for element in inside if field.array else (inside,):
                yield from _structs(element)


@cache
def _ways(cls: Any) -> tuple[Field, ...]:
    return tuple(field for field in cls._layout_.fields if field.struct is not None)


@cache
def _harmless() -> tuple[tuple[int, int], ...]:
    """The versions of all answers that hold no secret as such; the newest first."""
    bearing = set(_keys("response")) - {secret_fields.FETCH}
    return tuple(
        (key, version)
        for key, facts in FACTS.items()
        if key not in bearing
        for version in range(facts.last, facts.first - 1, -1)
    )
