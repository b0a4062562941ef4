"""Small readers with a varint that ends too early: the strategies find each of them.

Rule: a reader without its flaw agrees with this package on all that is drawn; with it, within a stated number
of examples it doesn't. The draws are the same each time, for one Hypothesis and one set of imported modules;
for others the number has a margin.
"""

from __future__ import annotations

import contextlib
import struct
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st

from coordwire import DecodeError, decode_request
from coordwire.messages import DescribeGroupsRequest, DescribeGroupsResponse
from coordwire.records import Record, batches, encode_batch
from coordwire.testing import strategies

from .test_strategies import drawn, least

Flaw = tuple[str, int]
"""Which varint, and after how many bytes the reader takes it for complete."""

NONE: Flaw = ("none", 9)


class RefusedError(Exception):
    """What the small readers raise."""


class Reader:
    def __init__(self, data: bytes, flaw: Flaw, canonical: bool = True) -> None:
        self.data, self.flaw, self.canonical, self.at = data, flaw, canonical, 0

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self.data) - self.at:
            raise RefusedError(self.at)
        self.at += size
        return self.data[self.at - size : self.at]

    def varint(self, name: str, most: int = 5) -> int:
        end = min(self.flaw[1], most) if name == self.flaw[0] else most
        value = 0
        for index in range(end):
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                if self.canonical and ((index and not byte) or value >> 32):
                    raise RefusedError(self.at)  # over-long, or too large
                return value
        if end == most:
            raise RefusedError(self.at)
        return value

    def zigzag(self, name: str, most: int = 5) -> int:
        value = self.varint(name, most)
        return value >> 1 ^ -(value & 1)

    def nullable(self, name: str) -> bytes | None:
        size = self.zigzag(name)
        return None if size == -1 else self.take(size)


def describe_groups(data: bytes, flaw: Flaw) -> tuple[Any, ...]:
    """A DescribeGroupsRequest of version 5 or 6."""
    reader = Reader(data, flaw)
    groups = []
    for _ in range(reader.varint("count") - 1):
        try:
            groups.append(reader.take(reader.varint("length") - 1).decode())
        except UnicodeDecodeError:
            raise RefusedError(reader.at) from None
    (flag,) = reader.take(1)
    tags: dict[int, bytes] = {}
    for _ in range(reader.varint("tags")):
        number = reader.varint("tag number")
        if number <= max(tags, default=-1):
            raise RefusedError(reader.at)
        tags[number] = reader.take(reader.varint("tag size"))
    if flag > 1 or reader.at != len(data) or data[0] == 0:
        raise RefusedError(reader.at)
    return groups, bool(flag), tags or None


def read_batch(data: bytes, flaw: Flaw) -> list[tuple[Any, ...]]:
    """Offset, key, value and headers of each record of one batch of magic 2 that isn't compressed."""
    (base,) = struct.unpack_from(">q", data)
    reader, results = Reader(data[61:], flaw, canonical=False), []
    for _ in range(int.from_bytes(data[57:61], "big")):
        length = reader.zigzag("record")
        end = reader.at + length
        reader.take(1)
        reader.zigzag("timestamp", 10)
        offset = base + reader.zigzag("offset")
        key, value = reader.nullable("key"), reader.nullable("value")
        headers = [
            (
                reader.take(reader.zigzag("header key")).decode("utf-8", "surrogateescape"),
                reader.nullable("header value"),
            )
            for _ in range(reader.zigzag("headers"))
        ]
        if reader.at != end:
            raise RefusedError(reader.at)
        results.append((offset, key, value, headers))
    if reader.at != len(reader.data):
        raise RefusedError(reader.at)
    return results


def describes(data: bytes, flaw: Flaw) -> bool:
    """Whether the small reader and this package agree."""
    try:
        message = DescribeGroupsRequest.decode(data, version=5)
        expected: Any = (message.groups, message.include_authorized_operations, message.tags)
    except DecodeError:
        expected = None
    try:
        return bool(describe_groups(data, flaw) == expected)
    except RefusedError:
        return expected is None


def reads(data: bytes, flaw: Flaw) -> bool:
    """Whether the small reader reads each batch that this package accepts, and that is for it."""
    at = 0
    try:
        results = [(batch, list(batch)) for batch in batches(data)]
    except DecodeError:
        return True
    for batch, records in results:
        whole = data[at : at + batch.size]
        at += batch.size
        if batch.magic != 2 or batch.codec != "none":
            continue
        expected = [(record.offset, record.key, record.value, list(record.headers)) for record in records]
        try:
            if read_batch(whole, flaw) != expected:
                return False
        except RefusedError:
            return False
    return True


def encoded(message: DescribeGroupsRequest) -> bytes:
    return message.encode(version=5)


def body(frame: bytes) -> bytes:
    """The request in a frame, without the header."""
    return decode_request(frame).message.encode(version=5)


MESSAGE_FLAWS = [("count", 1), ("length", 1), ("length", 2), ("tags", 1), ("tag size", 1), ("tag size", 2)]
RECORD_FLAWS = [
    (name, size) for name in ("record", "key", "value", "header key", "header value") for size in (1, 2)
] + [("headers", 1)]
BATCH_FLAWS = [*RECORD_FLAWS, ("offset", 1), ("offset", 2)]
RECORDS = st.lists(strategies.records(), min_size=1, max_size=3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "right", "flaws"),
    [
        (strategies.messages(DescribeGroupsRequest, version=5).map(encoded), describes, MESSAGE_FLAWS),
        (strategies.hostile_bytes(DescribeGroupsRequest, version=5), describes, MESSAGE_FLAWS),
        (strategies.frames(DescribeGroupsRequest, version=5).map(body), describes, MESSAGE_FLAWS),
        (RECORDS.map(encode_batch), reads, RECORD_FLAWS),
        (strategies.record_batches(codecs=["none"]), reads, BATCH_FLAWS),
        (strategies.record_sets(codecs=["none"]), reads, BATCH_FLAWS),
        (strategies.hostile_record_sets(codecs=["none"]), reads, BATCH_FLAWS),
    ],
    ids=["messages", "hostile_bytes", "frames", "records", "batches", "sets", "hostile_record_sets"],
)
def test_each_short_varint_is_found(
    strategy: st.SearchStrategy[bytes], right: Callable[[bytes, Flaw], bool], flaws: list[Flaw]
) -> None:
    """Within 1,000 examples, in hostile messages within 2,000."""
    values = drawn(strategy, 2000 if right is describes else 1000)
    assert all(right(data, NONE) for data in values)
    missed = [flaw for flaw in flaws if all(right(data, flaw) for data in values)]
    assert missed == []


@pytest.mark.slow
def test_hostile_frames_are_large_too() -> None:
    """Some that are large are accepted: more than a few that chance makes so."""
    counts: Counter[tuple[str, bool]] = Counter()
    for frame in drawn(strategies.hostile_frames(DescribeGroupsRequest, version=5), 6000):
        with contextlib.suppress(DecodeError):
            message = decode_request(frame).message
            if not isinstance(message, DescribeGroupsRequest):  # its API key was changed
                continue
            counts["count", len(message.groups) > 126] += 1
            counts["length", any(len(group.encode()) > 16_382 for group in message.groups)] += 1
            counts["tag", any(len(data) > 127 for data in (message.tags or {}).values())] += 1
    for what, least_large in (("count", 30), ("length", 1), ("tag", 8)):
        assert counts[what, True] >= least_large, what
        assert counts[what, False] >= 1, what


@pytest.mark.slow
def test_nested_arrays_are_large_too() -> None:
    result = drawn(strategies.messages(DescribeGroupsResponse, version=6), 600)
    assert any(len(message.groups) > 126 for message in result)
    assert any(len(group.members) > 126 for message in result for group in message.groups)
    members = [member for message in result for group in message.groups for member in group.members]
    assert any(len(group.protocol_data.encode()) > 16_000 for message in result for group in message.groups)
    assert len({id(member) for member in members}) == len(members)  # none shares what can be changed
    sizes = sorted(len(message.encode(version=6)) for message in result)
    assert sizes[len(sizes) // 2] < 5000
    assert sizes[-1] < 1 << 20


def test_what_is_large_shrinks() -> None:
    requests = strategies.messages(DescribeGroupsRequest, version=5)
    assert least(requests, lambda found: len(found.groups) > 9, 1000).groups == [""] * 127
    tags = least(requests, lambda found: len(found.tags or ()) > 9, 1000).tags
    assert tags == dict.fromkeys(range(128), b"")
    keyed = least(strategies.records(), lambda record: len(record.key or b"") > 8191, 1000)
    assert keyed == Record(timestamp=0, key=b"x" * 8192)
    plain = strategies.record_batches(codecs=["none"])
    data = least(plain, lambda data: len(list(next(batches(data)))) > 64, 1000)
    assert data == encode_batch([Record(timestamp=0) for _ in range(65)], base_offset=0)


@pytest.mark.slow
def test_a_bound_of_records_holds() -> None:
    for most in (2, 5, 65):
        counts = {
            next(batches(data)).count or 0
            for data in drawn(strategies.record_batches(codecs=["none"], max_records=most), 200)
        }
        assert max(counts) == most
