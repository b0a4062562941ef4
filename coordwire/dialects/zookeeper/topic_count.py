"""`topic_count`: the topics that a consumer reads and with how many threads, and what each thread gets.

Rules: a text that begins with * or ! is a wildcard, anything else is JSON. Regular expressions are Java's and
aren't run here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from coordwire.dialects.zookeeper.checks import (
    INT32,
    built,
    checked,
    integer,
    json_object,
    map_of,
    string,
    text_of,
)
from coordwire.errors import Malformed

_WILDCARD = re.compile(r"([*!])([0-9]{1,10})\1(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class StaticTopics:
    """The topics that a consumer reads, by name, with the number of streams (threads) for each."""

    streams: dict[str, int]

    def build(self) -> str:
        """The text for `topic_count`: a JSON object. Raises `EncodeError`."""
        return built(checked(map_of(string, stream_count), self.streams, "streams")).decode()


@dataclass(frozen=True, slots=True)
class WildcardTopics:
    """The topics whose names match a regular expression, or, as a blacklist, those whose names don't.

    pattern: in Java's syntax; streams: threads for all of them together.
    """

    pattern: str
    streams: int
    blacklist: bool = False

    def build(self) -> str:
        """The text for `topic_count`: `*streams*pattern` or `!streams!pattern`. Raises `EncodeError`."""
        checked(string, self.pattern, "pattern")
        marker = "!" if self.blacklist else "*"
        return f"{marker}{checked(stream_count, self.streams, 'streams')}{marker}{self.pattern}"


TopicCount = StaticTopics | WildcardTopics


def stream_count(value: Any, path: str) -> int:
    return integer(value, path, 1, INT32[1])


def parse_topic_count(text: str | bytes) -> TopicCount:
    """The content of a `topic_count`: JSON of topic to streams, or a wildcard. Raises `DecodeError`."""
    text = text_of(text, "topic_count")
    if text[:1] in ("*", "!"):
        match = _WILDCARD.fullmatch(text)
        if match is None:
            raise Malformed(f"a wildcard is {text[0]}streams{text[0]}regex", 1)
        return WildcardTopics(match[3], stream_count(int(match[2]), "streams"), blacklist=text[0] == "!")
    if not text:
        raise Malformed("topic_count is empty", 0)
    return StaticTopics(map_of(string, stream_count)(json_object(text, "topic_count"), ""))


# --- expressions ---


def topic_filter(expression: str) -> str:
    """A wildcard's expression as Kafka's TopicFilter reads what an application gave: commas are "or", blanks
    go, and quotes around it go."""
    return expression.strip(_BLANKS).replace(",", "|").replace(" ", "").lstrip("\"'").rstrip("\"'")


_BLANKS = "".join(map(chr, range(33)))  # those of Java's trim
_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "/": "\\/",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}


def escaped_twice(expression: str) -> str:
    """An expression as Kafka 1.1 registers it: escaped for JSON before it is written as JSON, which escapes
    it again. So a registration has two backslashes where the application gave one."""
    return "".join(
        _ESCAPES.get(char) or (f"\\u{ord(char):04x}" if char <= "\x1f" or "\x7f" <= char <= "\x9f" else char)
        for char in expression
    )


def java_hash(text: str) -> int:
    """`String.hashCode` of Java."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


# --- who owns what ---


def thread_ids(consumer: str, streams: int) -> list[str]:
    """The ids of a consumer's threads for a topic: "consumer-0" and on."""
    return [f"{consumer}-{number}" for number in range(streams)]


def range_assignment(partitions: Iterable[int], threads: Sequence[str]) -> dict[str, list[int]]:
    """Which partitions of a topic each thread owns: sorted partitions in ranges to sorted threads, the first
    (partitions mod threads) of them one more. Raises `ValueError` without threads, or for one twice."""
    if not threads:
        raise ValueError("expected at least one thread")
    if len(set(threads)) < len(threads):
        raise ValueError("a thread occurs twice")
    ordered = sorted(partitions)
    share, extra = divmod(len(ordered), len(threads))
    owned = {}
    at = 0
    for index, thread in enumerate(sorted(threads)):
        size = share + (index < extra)
        owned[thread] = ordered[at : at + size]
        at += size
    return owned
