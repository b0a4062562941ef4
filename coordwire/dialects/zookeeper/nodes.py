"""The nodes: their paths, their texts, and their values; `topic_count`: the topics that a consumer
reads and with how many threads, and what each thread gets.

Strategy: nodes of JSON are rows of keys, each with its check; the others are plain texts. Rules: partitions
are texts in paths, a number or the oldest form's broker-partition; keys that the documents don't have are
kept in `other_fields` and written back after the others. A `topic_count` that begins with * or ! is a
wildcard, anything else is JSON. Regular expressions are Java's and aren't run here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from coordwire.dialects.zookeeper.checks import (
    INT32,
    Check,
    built,
    checked,
    count,
    encoded,
    int32,
    integer,
    json_object,
    list_of,
    map_of,
    number,
    partition_key,
    string,
    text_of,
    time_ms,
)
from coordwire.errors import Malformed, OutOfRange

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


# --- nodes ---


_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_CLUSTER_ID = re.compile(r"[a-zA-Z0-9_-]{1,22}")


@dataclass(slots=True, kw_only=True)
class _JsonNode:
    """What nodes of JSON have in common. `_keys_`: the documents' keys in order, how each is checked, and
    whether it must be there; those that need not are None where they are absent."""

    _keys_: ClassVar[dict[str, tuple[Check, bool]]]
    other_fields: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, data: bytes | str) -> Self:
        """The node that this text is. Raises `DecodeError`."""
        form = json_object(data, f"a {cls.__name__} node")
        values: dict[str, Any] = {}
        for key, (check, needed) in cls._keys_.items():
            if form.get(key) is not None:
                values[key] = check(form.pop(key), key)
            elif needed:
                raise Malformed("null" if key in form else "missing", 0, key)
            else:
                form.pop(key, None)
        return cls(**values, other_fields=form)

    def build(self) -> bytes:
        """The node's text, as Kafka writes it but for spaces. Raises `EncodeError`."""
        form = {}
        for key, (check, needed) in self._keys_.items():
            value = getattr(self, key)
            if value is not None or needed:
                value = checked(check, _as_json(value), key)
                form[key] = str(value) if check is time_ms else value
        if twice := next((key for key in self.other_fields if key in self._keys_), None):
            raise OutOfRange("a field of its own", f"other_fields.{twice}")
        return built(form | self.other_fields)


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key) if isinstance(key, int) else key: item for key, item in value.items()}
    return value


@dataclass(slots=True, kw_only=True)
class Broker(_JsonNode):
    """`/brokers/ids/[id]`, ephemeral: where a broker is. timestamp: ms since the epoch."""

    _keys_: ClassVar[dict[str, tuple[Check, bool]]] = {
        "jmx_port": (int32, False), "timestamp": (time_ms, False), "endpoints": (list_of(string), False),
        "host": (string, False), "version": (int32, True), "port": (int32, True),
    }  # fmt: skip
    version: int = 1
    host: str | None = None
    port: int = -1
    jmx_port: int | None = None
    timestamp: int | None = None
    endpoints: list[str] | None = None

    @staticmethod
    def path(broker_id: int) -> str:
        return f"/brokers/ids/{broker_id}"


@dataclass(slots=True, kw_only=True)
class OldBroker(_JsonNode):
    """`/brokers/ids/[id]` in the oldest form. host: "host:port"; topics: the partitions that it has, by
    topic, each as the text or number that the node has."""

    _keys_: ClassVar[dict[str, tuple[Check, bool]]] = {
        "host": (string, True),
        "topics": (map_of(string, list_of(lambda value, path: _old_partition(value, path))), True),
    }
    host: str
    topics: dict[str, list[str | int]] = field(default_factory=dict)

    @staticmethod
    def path(broker_id: int) -> str:
        return Broker.path(broker_id)


def _old_partition(value: Any, path: str) -> str | int:
    return value if isinstance(value, str) else count(value, path)


@dataclass(slots=True, kw_only=True)
class Topic(_JsonNode):
    """`/brokers/topics/[topic]`: the replicas (broker ids) of each partition, the preferred leader first."""

    _keys_: ClassVar[dict[str, tuple[Check, bool]]] = {
        "version": (int32, True), "partitions": (map_of(partition_key, list_of(int32)), True),
    }  # fmt: skip
    version: int = 1
    partitions: dict[int, list[int]] = field(default_factory=dict)

    @staticmethod
    def path(topic: str) -> str:
        return f"/brokers/topics/{name_in_path(topic, 'topic')}"


@dataclass(slots=True, kw_only=True)
class PartitionState(_JsonNode):
    """`/brokers/topics/[topic]/partitions/[p]/state`: who leads a partition, and who is in sync."""

    _keys_: ClassVar[dict[str, tuple[Check, bool]]] = {
        "controller_epoch": (int32, True), "leader": (int32, True), "version": (int32, True),
        "leader_epoch": (int32, True), "isr": (list_of(int32), True),
    }  # fmt: skip
    controller_epoch: int = 0
    leader: int = -1
    version: int = 1
    leader_epoch: int = 0
    isr: list[int] = field(default_factory=list)

    @staticmethod
    def path(topic: str, partition: int) -> str:
        return f"{Topic.path(topic)}/partitions/{partition}/state"


@dataclass(slots=True, kw_only=True)
class Registration(_JsonNode):
    """`/consumers/[group]/ids/[consumer]`, ephemeral: what a consumer reads.

    subscription: streams by topic, or by the regular expression where `pattern` is "white_list" or
    "black_list" (else "static"). timestamp: ms since the epoch. version: None for the oldest form,
    `topic1,topic2`, whose topics have one stream each and which has no other field.
    """

    _keys_: ClassVar[dict[str, tuple[Check, bool]]] = {
        "version": (int32, True), "subscription": (map_of(string, stream_count), True),
        "pattern": (string, False), "timestamp": (time_ms, False),
    }  # fmt: skip
    version: int | None = 1
    subscription: dict[str, int] = field(default_factory=dict)
    pattern: str | None = "static"
    timestamp: int | None = None

    @classmethod
    def parse(cls, data: bytes | str) -> Registration:
        text = text_of(data, "a Registration node")
        if text.lstrip()[:1] == "{":
            return super(Registration, cls).parse(text)
        names = text.split(",")
        if wrong := next((name for name in names if not _TOPIC_NAME.fullmatch(name)), None):
            raise Malformed(f"expected a JSON object or topics, got {wrong[:100]!r}", 0, "subscription")
        if not all(names) or len(set(names)) < len(names):
            raise Malformed("expected each topic once", 0, "subscription")
        return cls(version=None, subscription=dict.fromkeys(names, 1), pattern=None)

    def build(self) -> bytes:
        if self.version is not None:
            return super(Registration, self).build()
        if self.pattern is not None or self.timestamp is not None or self.other_fields:
            raise OutOfRange("a node without a version has topics alone", "version")
        if not self.subscription or set(self.subscription.values()) != {1}:
            raise OutOfRange("a node without a version has topics of one stream", "subscription")
        if not all(isinstance(name, str) and _TOPIC_NAME.fullmatch(name) for name in self.subscription):
            raise OutOfRange("expected names of topics", "subscription")
        return ",".join(self.subscription).encode()

    @staticmethod
    def path(group: str, consumer: str) -> str:
        return f"{_group(group)}/ids/{name_in_path(consumer, 'consumer')}"

    @property
    def topic_count(self) -> TopicCount:
        """The same as a `topic_count`. Raises `DecodeError` for a wildcard that isn't one expression."""
        if self.pattern not in ("white_list", "black_list"):
            return StaticTopics(dict(self.subscription))
        if len(self.subscription) != 1:
            raise Malformed(f"{len(self.subscription)} expressions in a wildcard", 0, "subscription")
        ((pattern, streams),) = self.subscription.items()
        return WildcardTopics(pattern, streams, blacklist=self.pattern == "black_list")


@dataclass(frozen=True, slots=True)
class Owner:
    """`/consumers/[group]/owners/[topic]/[partition]`: the consumer thread that owns a partition. Ephemeral;
    persistent in the drafts."""

    thread_id: str

    @classmethod
    def parse(cls, data: bytes | str) -> Owner:
        return cls(_owner(text_of(data, "an Owner node"), ""))

    def build(self) -> bytes:
        return encoded(checked(_owner, self.thread_id, "thread_id"), "thread_id")

    @staticmethod
    def path(group: str, topic: str, partition: int | str, *, old: bool = False) -> str:
        """old: the singular `owner` of the oldest form, where a partition is "broker-partition"."""
        folder = "owner" if old else "owners"
        return f"{_group(group)}/{folder}/{_place(topic, partition)}"


def _owner(value: Any, path: str) -> str:
    if not string(value, path):
        raise Malformed("an Owner node is empty", 0, path)
    return str(value)


@dataclass(frozen=True, slots=True)
class Offset:
    """`/consumers/[group]/offsets/[topic]/[partition]`: how far a group has consumed a partition."""

    offset: int

    @classmethod
    def parse(cls, data: bytes | str) -> Offset:
        return cls(number(data, "an Offset node", time_ms))

    def build(self) -> bytes:
        return str(checked(time_ms, self.offset, "offset")).encode()

    @staticmethod
    def path(group: str, topic: str, partition: int | str) -> str:
        return f"{_group(group)}/offsets/{_place(topic, partition)}"


@dataclass(frozen=True, slots=True)
class Coordinator:
    """`/consumers/coordinator`, ephemeral: the broker that coordinates all groups (drafts)."""

    broker_id: int

    @classmethod
    def parse(cls, data: bytes | str) -> Coordinator:
        return cls(number(data, "a Coordinator node", int32))

    def build(self) -> bytes:
        return str(checked(int32, self.broker_id, "broker_id")).encode()

    @staticmethod
    def path() -> str:
        return "/consumers/coordinator"


@dataclass(slots=True, kw_only=True)
class ClusterId(_JsonNode):
    """`/cluster/id`: 1 to 22 characters of [a-zA-Z0-9_-], since Kafka 0.10.1. version: a text, as Kafka
    writes it; None for a node that is the bare id."""

    _keys_: ClassVar[dict[str, tuple[Check, bool]]] = {
        "version": (string, False), "id": (lambda value, path: _cluster_id(value, path), True),
    }  # fmt: skip
    version: str | None = "1"
    id: str

    @classmethod
    def parse(cls, data: bytes | str) -> ClusterId:
        text = text_of(data, "a ClusterId node")
        if text[:1] != "{":
            return cls(version=None, id=_cluster_id(text, "id"))
        return super(ClusterId, cls).parse(text)

    def build(self) -> bytes:
        if self.version is None and not self.other_fields:
            cluster_id: str = checked(_cluster_id, self.id, "id")
            return cluster_id.encode()
        return super(ClusterId, self).build()

    @staticmethod
    def path() -> str:
        return "/cluster/id"


def _cluster_id(value: Any, path: str) -> str:
    if not _CLUSTER_ID.fullmatch(string(value, path)):
        raise Malformed("a cluster id is 1 to 22 characters of [a-zA-Z0-9_-]", 0, path)
    return str(value)


def name_in_path(name: Any, subject: str) -> str:
    """A part of a path."""
    if not isinstance(name, str) or not name or "/" in name or "\0" in name or name in (".", ".."):
        raise OutOfRange(f"{name!r} can't be in a path", subject)
    return name


def _place(topic: str, partition: int | str) -> str:
    return f"{name_in_path(topic, 'topic')}/{name_in_path(str(partition), 'partition')}"


def _group(group: str) -> str:
    return f"/consumers/{name_in_path(group, 'group')}"


# --- by path ---


Node = Broker | OldBroker | Topic | PartitionState | Registration | Owner | Offset | Coordinator | ClusterId

_PATHS: list[tuple[re.Pattern[str], Any]] = [
    (re.compile(pattern), node)
    for pattern, node in (
        (r"/brokers/ids/[0-9]+", Broker),
        (r"/brokers/topics/[^/]+", Topic),
        (r"/brokers/topics/[^/]+/partitions/[0-9]+/state", PartitionState),
        (r"/consumers/[^/]+/ids/[^/]+", Registration),
        (r"/consumers/[^/]+/owners?/[^/]+/[^/]+", Owner),
        (r"/consumers/[^/]+/offsets/[^/]+/[^/]+", Offset),
        (r"/consumers/coordinator", Coordinator),
        (r"/cluster/id", ClusterId),
    )
]


def parse_node(path: str, data: bytes | str) -> Node:
    """The node at a path. Raises `DecodeError` if the text isn't what belongs there, `KeyError` for a path
    that none of these nodes has."""
    for pattern, cls in _PATHS:
        if pattern.fullmatch(path):
            if cls is Broker and "topics" in json_object(data, "a Broker node"):
                cls = OldBroker
            node: Node = cls.parse(data)
            return node
    raise KeyError(path)
