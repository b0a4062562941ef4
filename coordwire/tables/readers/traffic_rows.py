"""A capture's traffic by the minute: who sends which requests to what, and how they are answered.

Strategy: frames are counted by minute, client, connection and API, and in rows of their own the partitions of
Produce, Fetch and ShareFetch, whose record batches are counted by their headers. Rules: rows without a topic
have every frame once; rows with a topic have parts of the same frames, and are never added to those. A row
counts the frames whose last byte is in its minute, so that a request and its response may be in two. Rows
leave once their minute is over, or where there are very many of them: where times go back, or in such a
minute, there may be several rows of one key, of which everything but the latencies can be summed.
"""

from __future__ import annotations

__all__ = ["NAMING", "TRAFFIC_SIZE", "TrafficRows", "record_count"]

import struct
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias

from coordwire.capture.body_text import NO_TEXT, body_text, has_no_codes, known_client
from coordwire.capture.entries import FrameEntry
from coordwire.capture.jsonlines import text
from coordwire.capture.redaction.entry_secrets import NOTHING, withheld
from coordwire.codec.program import HAS_CODES
from coordwire.codec.walk import entity_values
from coordwire.connection.dialect import KAFKA
from coordwire.errors import CoordwireError
from coordwire.records import UnreadableRange, batches
from coordwire.records.batch import HEADER
from coordwire.records.legacy import message_count
from coordwire.tables.readers.frame_rows import KnownEnds
from coordwire.tables.readers.rows import microseconds
from coordwire.timeline.consumer_data import id_text
from coordwire.versions import ApiKey

TRAFFIC_SIZE = 300
"""About how many bytes a row has."""

MINUTE_NS = 60_000_000_000
MOST_MINUTES = 3
MOST_ROWS, MOST_LATENCIES = 20_000, 1_000_000
"""So many rows and latencies are kept before all of them leave."""

MOST_RECENT = 10_000
"""Of so many connections the rows are remembered that their frames are counted in."""

MOST_NAMES = 100_000
"""So many connections' software and topics' names are kept."""

SOFTWARE_SINCE = 3
"""The version of ApiVersions since which clients name themselves."""

CONTROL = 0x20
_NUMBER = struct.Struct(">i").unpack_from
_LENGTH_AT, _MAGIC_AT, _ATTRIBUTES_AT, _COUNT_AT = 8, 16, 22, 57

Software: TypeAlias = "tuple[str | None, str | None]"

NAMING = frozenset((ApiKey.API_VERSIONS, ApiKey.METADATA))
"""APIs whose frames name software and topics."""

_OF_TOPICS = frozenset((ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.SHARE_FETCH))
"""APIs whose frames are counted by topic and partition too."""


class _Key(NamedTuple):
    """What the frames of a row have in common, but for the minute."""

    client_id: str | None
    client_address: str | None
    broker_address: str | None
    software: Software
    api_key: int | None
    api: str | None


class _Counts:
    """The numbers of one row. parts: those of the same frames by topic and partition."""

    __slots__ = ("bytes", "errors", "key", "latencies", "parts", "place", "records", "requests", "responses")

    def __init__(self, key: _Key, topic: str | None = None, partition: int | None = None) -> None:
        self.key, self.place = key, (topic, partition)
        self.requests = self.responses = self.records = self.bytes = self.errors = 0
        self.latencies: array[float] = array("d")
        self.parts: dict[tuple[str, int], _Counts] = {}


class TrafficRows:
    """Frames as rows of the traffic table, in the order of its columns."""

    def __init__(self, *, show_secrets: bool) -> None:
        self._show_secrets = show_secrets
        self._keys: dict[int | None, dict[_Key, _Counts]] = {}
        self._minutes: dict[int | None, list[_Counts]] = {}
        self._minute_ns = 0, 0
        self._recent: dict[int | None, dict[tuple[int | None, str | None], _Counts]] = {}
        self._rows = self._latencies = 0
        self._ends = KnownEnds()
        self._software: dict[int, Software] = {}
        self._topics: dict[Any, str] = {}
        self._capture = ""

    def __getstate__(self) -> dict[str, Any]:
        """What goes on in another process, where connections have other ids."""
        return vars(self) | {"_recent": {}, "_ends": KnownEnds()}

    def feed(
        self, entries: Sequence[FrameEntry], plain: Iterable[bool], counted: Iterable[bool] | None = None
    ) -> list[tuple[Any, ...]]:
        """Count frames; the rows that are complete. plain: `is_plain` of each; counted: False for those that
        only names are learned from."""
        rows: list[tuple[Any, ...]] = []
        began, ends = self._minute_ns
        for entry, is_plain, is_counted in zip(entries, plain, counted or repeat(True), strict=False):
            api_key, time_ns, connection = entry.api_key, entry.time_ns, entry.connection
            names, is_open = api_key in NAMING, is_plain
            if not (is_counted or names):
                continue
            if is_plain:
                client, errors = known_client(entry), (entry.text or NO_TEXT)[1] & HAS_CODES
            else:
                client, is_open, errors = self._examine(entry)
            if names and is_open:
                self._learn(entry)
            if not is_counted:
                continue
            counts = None
            if is_plain and time_ns is not None and began <= time_ns < ends:
                places = self._recent.get(None if connection is None else connection.stream)
                counts = None if places is None else places.get((api_key, client))
            if counts is None:
                minute = None if time_ns is None else time_ns // MINUTE_NS
                rows += self._over(minute)
                counts = self._of(minute, entry, client)
                if is_plain and minute is not None:
                    began, ends = self._remember_place(entry, minute, client, counts)
            self._count(counts, entry, errors, len(entry.body) + entry.released)
            if api_key in _OF_TOPICS and is_open:
                self._count_partitions(counts, entry)
            if self._latencies > MOST_LATENCIES or self._rows > MOST_ROWS:
                rows += self.finish()
        return rows

    def _examine(self, entry: FrameEntry) -> tuple[str | None, bool, bool]:
        """Of a frame that isn't plain: its client id, if that is shown; whether its message may be looked
        into; whether it has errors."""
        is_readable = body_text(entry)[0] is not None or (entry.message is not None and entry.error is None)
        hidden = NOTHING if self._show_secrets else withheld(entry)
        is_open = is_readable and not hidden.body and entry.dialect == KAFKA
        return None if hidden.client else entry.client_id, is_open, not hidden.body and _has_errors(entry)

    def _of(self, minute: int | None, entry: FrameEntry, client: str | None) -> _Counts:
        """The row of a frame. client: the client id that is shown."""
        self._capture, connection = entry.capture, entry.connection
        _, client_address, broker_address = self._ends.known.get(id(connection)) or self._ends(connection)
        software = (None if connection is None else self._software.get(connection.stream)) or (None, None)
        key = _Key(client, client_address, broker_address, software, entry.api_key, entry.api_name)
        keys = self._keys.setdefault(minute, {})
        counts = keys.get(key)
        if counts is None:
            counts = keys[key] = self._add(minute, _Counts(key))
        return counts

    def _add(self, minute: int | None, counts: _Counts) -> _Counts:
        """Add a row."""
        self._minutes.setdefault(minute, []).append(counts)
        self._rows += 1
        return counts

    def _remember_place(
        self, entry: FrameEntry, minute: int, client: str | None, counts: _Counts
    ) -> tuple[int, int]:
        """Remember the row of a connection's plain frames of one API and client; the minute for which it
        is."""
        began = minute * MINUTE_NS
        stream = None if entry.connection is None else entry.connection.stream
        if began != self._minute_ns[0] or (stream not in self._recent and len(self._recent) >= MOST_RECENT):
            self._recent.clear()
        self._minute_ns = began, began + MINUTE_NS
        self._recent.setdefault(stream, {})[entry.api_key, client] = counts
        return self._minute_ns

    def finish(self) -> list[tuple[Any, ...]]:
        """The remaining rows."""
        return [row for minute in list(self._minutes) for row in self._take(minute)]

    def _learn(self, entry: FrameEntry) -> None:
        """Learn a connection's software, or topics' names."""
        message: Any = entry.message
        if entry.direction == "request":
            is_named = entry.api_key == ApiKey.API_VERSIONS and (entry.body_version or 0) >= SOFTWARE_SINCE
            if is_named and entry.connection is not None:
                software = message.client_software_name, message.client_software_version
                _remember(self._software, entry.connection.stream, software)
                self._recent.pop(entry.connection.stream, None)
        elif entry.api_key == ApiKey.METADATA:
            for topic in message.topics or ():
                if topic.name and topic.topic_id.int:
                    _remember(self._topics, topic.topic_id, topic.name)

    def _count(self, counts: _Counts, entry: FrameEntry, errors: object, size: int) -> None:
        """Count a frame, or its part of so many bytes, as one that has errors, or not."""
        counts.bytes += size
        if entry.direction == "request":
            counts.requests += 1
            return
        counts.responses += 1
        if errors:
            counts.errors += 1
        time_ns, request = entry.time_ns, entry.request
        if time_ns is not None and request is not None and request.time_ns is not None:
            counts.latencies.append((time_ns - request.time_ns) / 1e6)
            self._latencies += 1

    def _count_partitions(self, frame_counts: _Counts, entry: FrameEntry) -> None:
        """Count the parts of the partitions that a frame has records of, or answers. frame_counts: of the
        frame's row."""
        is_request = entry.direction == "request"
        produces = entry.api_key == ApiKey.PRODUCE
        body, flags = entry.text or NO_TEXT
        if not produces and (is_request or (body and not flags & HAS_CODES and '"records":"' not in body)):
            return
        minute = None if entry.time_ns is None else entry.time_ns // MINUTE_NS
        for topic, partition, code, data in _partitions(entry.message, is_request=is_request):
            if not produces and not data and not code:
                continue  # a Fetch that waited in vain
            name = topic if isinstance(topic, str) else self._topics.get(topic) or id_text(topic)
            counts = frame_counts.parts.get((name, partition))
            if counts is None:
                counts = _Counts(frame_counts.key, name, partition)
                frame_counts.parts[name, partition] = self._add(minute, counts)
            counts.records += record_count(data)
            self._count(counts, entry, code, len(data or b""))
            if not produces:  # which partitions a session's requests are about is not in each
                counts.requests += 1

    def _over(self, minute: int | None) -> list[tuple[Any, ...]]:
        """The rows of the minutes that are over once this one has begun."""
        if minute in self._minutes:
            return []
        rows: list[tuple[Any, ...]] = []
        open_minutes = sorted(number for number in self._minutes if number is not None)
        for index, number in enumerate(open_minutes):
            if minute is not None and (number < minute - 1 or index <= len(open_minutes) - MOST_MINUTES):
                rows += self._take(number)
        return rows

    def _take(self, minute: int | None) -> Iterator[tuple[Any, ...]]:
        time = None if minute is None else microseconds(minute * MINUTE_NS)
        minute_rows = self._minutes.pop(minute)
        del self._keys[minute]
        self._recent.clear()
        self._rows -= len(minute_rows)
        for counts in minute_rows:
            self._latencies -= len(counts.latencies)
            key, (topic, partition) = counts.key, counts.place
            yield (
                time, key.client_id, key.client_address, key.broker_address, *key.software, key.api_key,
                key.api, topic, partition, counts.requests, counts.responses,
                None if topic is None else counts.records, counts.bytes, counts.errors,
                *_quantiles(counts.latencies), text(self._capture),
            )  # fmt: skip


def _remember(names: dict[Any, Any], key: Any, value: Any) -> None:
    """Keep a name, and let the oldest one go where there are too many."""
    if key not in names and len(names) >= MOST_NAMES:
        del names[next(iter(names))]
    names[key] = value


def _has_errors(entry: FrameEntry) -> bool:
    """Whether a response has an error code other than 0."""
    if entry.direction != "response" or has_no_codes(entry):
        return False
    return any(entity_values(entry.message, "error_code"))


def _quantiles(latencies: Iterable[float]) -> tuple[float | None, ...]:
    """The least latencies that 50, 95, 99 and 100 % of all do not exceed."""
    ordered = sorted(latencies)
    if len(ordered) < 2:
        return (*ordered, None)[:1] * 4
    size = len(ordered)
    return ordered[(size - 1) // 2], ordered[-(size // 20) - 1], ordered[-(size // 100) - 1], ordered[-1]


def _partitions(message: Any, *, is_request: bool) -> Iterator[tuple[Any, int, int, Any]]:
    """The topic (its name or id), number, error code and records of each partition of a message."""
    for topic in (message.topic_data if is_request else message.responses) or ():
        name = getattr(topic, "name", None) or getattr(topic, "topic", None) or topic.topic_id
        if is_request:
            for part in topic.partition_data or ():
                yield name, part.index, 0, part.records
        elif hasattr(topic, "partition_responses"):
            for part in topic.partition_responses or ():
                yield name, part.index, part.error_code, None
        else:
            for part in topic.partitions or ():
                yield name, part.partition_index, part.error_code, part.records


def record_count(data: Any) -> int:
    """How many records the whole batches in `data` have by their headers, without control records."""
    if not data:
        return 0
    at = count = 0
    while len(data) - at > _MAGIC_AT:
        size, magic = _LENGTH_AT + 4 + _NUMBER(data, at + _LENGTH_AT)[0], data[at + _MAGIC_AT]
        if magic == 2 and size >= HEADER.size:
            if at + size > len(data):  # an answer may end inside of a batch
                break
            if not data[at + _ATTRIBUTES_AT] & CONTROL:
                count += max(_NUMBER(data, at + _COUNT_AT)[0], 0)
        else:
            is_whole = size <= len(data) - at
            known = message_count(memoryview(data)[at : at + size]) if is_whole else None
            if known is None:
                return count + _slow_record_count(memoryview(data)[at:])
            count += known
        at += size
    return count


def _slow_record_count(data: memoryview) -> int:
    """The same of batches of any format; messages inside of others are read to be counted."""
    count = 0
    reader = batches(data, on_error="skip")
    for batch in reader.heads(len(data)):
        if isinstance(batch, UnreadableRange) or batch.is_control:
            continue
        try:
            known = batch.count
            count += sum(1 for _ in batch) if known is None else max(known, 0)
        except CoordwireError:
            continue
    return count
