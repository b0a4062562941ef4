"""The primitives of compiled code, each at its bounds: what they return, and what they refuse."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID, SafeUUID

import pytest

from coordwire.codec import primitives as p
from coordwire.codec.primitives import Refused

VARINTS = [
    (128, b"\x80\x01"),
    (300, b"\xac\x02"),
    (16_383, b"\xff\x7f"),
    (16_384, b"\x80\x80\x01"),
    (1 << 21, b"\x80\x80\x80\x01"),
    (1 << 28, b"\x80\x80\x80\x80\x01"),
    (0x0F1E_2D3C, b"\xbc\xda\xf8\x78"),
    ((1 << 32) - 1, b"\xff\xff\xff\xff\x0f"),
]
TOO_MUCH = [
    b"\x80\x00",  # over-long
    b"\xff\x80\x00",
    b"\x80\x80\x80\x80\x10",  # 1 << 32
    b"\xff\xff\xff\xff\x1f",
    b"\x80\x80\x80\x80\x80\x00",  # 6 bytes
    b"\x80\x80\x80\x80\x80\x01",
]
CUT = [b"\x80", b"\xff\xff\xff\xff"]


@pytest.mark.parametrize(("value", "wire"), VARINTS)
def test_a_varint_of_several_bytes(value: int, wire: bytes) -> None:
    assert p.uvarint(value) == wire
    for before, after in ((b"", b""), (b"--", b"\x01\x80")):
        at = len(before)
        assert p.long_uvarint(before + wire + after, at + 1, wire[0]) == (value, at + len(wire))


@pytest.mark.parametrize("value", [0, 1, 126, 127])
def test_a_varint_of_one_byte(value: int) -> None:
    assert p.uvarint(value) == bytes([value])


@pytest.mark.parametrize("wire", TOO_MUCH)
def test_an_overlong_or_overflowing_varint_is_refused(wire: bytes) -> None:
    with pytest.raises(Refused):
        p.long_uvarint(wire + bytes(8), 1, wire[0])


@pytest.mark.parametrize("wire", CUT)
def test_a_varint_that_is_cut_is_missed(wire: bytes) -> None:
    with pytest.raises(IndexError):
        p.long_uvarint(wire, 1, wire[0])


def test_a_null_where_none_may_be_is_refused() -> None:
    for read in (p.long_uvarint, p.long_string):
        with pytest.raises(Refused):
            read(b"\x00\x01\x01", 1, 0)


def test_a_string_has_at_most_32767_bytes() -> None:
    longest, more = p.uvarint(32_768), p.uvarint(32_769)
    assert p.long_string(b"-" + longest, 2, longest[0]) == (32_768, 4)
    with pytest.raises(Refused):
        p.long_string(b"-" + more, 2, more[0])
    assert p.string_length(32_768) == longest
    with pytest.raises(Refused):
        p.string_length(32_769)


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 128, 300, 32_767])
def test_a_compact_length_is_one_more(size: int) -> None:
    assert p.LENGTHS[size] == p.STRING_LENGTHS[size] == p.uvarint(size + 1)
    assert (size in p.LENGTHS) is (size < 127)


ROWS = [
    ("b", p.UNPACK_INT8S, p.PACK_INT8S),
    ("h", p.UNPACK_INT16S, p.PACK_INT16S),
    ("i", p.UNPACK_INT32S, p.PACK_INT32S),
    ("q", p.UNPACK_INT64S, p.PACK_INT64S),
    ("H", p.UNPACK_UINT16S, p.PACK_UINT16S),
    ("I", p.UNPACK_UINT32S, p.PACK_UINT32S),
    ("d", p.UNPACK_FLOAT64S, p.PACK_FLOAT64S),
]


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Formats are compiled anew in each test."""
    for _, unpackers, packers in ROWS:
        unpackers.clear()
        packers.clear()
    p.UNPACK_COMPACT_INT32S.clear()


@pytest.mark.parametrize(("code", "unpackers", "packers"), ROWS)
@pytest.mark.parametrize("count", [0, 1, 127, 128, 1000])
def test_numbers_in_a_row(
    code: str,
    unpackers: dict[int, Callable[[bytes, int], tuple[float, ...]]],
    packers: dict[int, Callable[..., bytes]],
    count: int,
) -> None:
    wire = bytes(at % 64 for at in range(count * struct.calcsize(code)))
    numbers = struct.unpack(f">{count}{code}", wire)
    for _ in range(2):
        assert unpackers[count](b"-" + wire, 1) == numbers
        assert packers[count](*numbers) == wire
    assert (count in unpackers) is (count in packers) is (count < 128)
    if count:
        with pytest.raises(struct.error):
            unpackers[count](wire[1:], 0)


def test_a_table_makes_what_it_lacks() -> None:
    made: Any = type(p.LENGTHS)(p.uvarint)
    assert made == p.LENGTHS
    assert max(made) == 126
    assert made[300] == p.uvarint(301)
    wire = struct.pack(">3h", 7, -8, 9)
    unpackers: Any = type(p.UNPACK_INT16S)
    for less in (0, 1):
        table = unpackers("h", less)
        assert table[3 + less](wire, 0) == table[3 + less](wire, 0) == (7, -8, 9)
    assert unpackers("h")[3](wire, 0) == (7, -8, 9)
    packers: Any = type(p.PACK_INT16S)
    assert packers("h")[3](7, -8, 9) == wire


def test_the_compact_count_of_numbers_is_one_more() -> None:
    wire = struct.pack(">3i", 7, -8, 9)
    assert p.UNPACK_COMPACT_INT32S[4](wire, 0) == (7, -8, 9)
    assert p.UNPACK_COMPACT_INT32S[1](b"", 0) == ()
    p.UNPACK_COMPACT_INT32S[500]
    assert max(p.UNPACK_COMPACT_INT32S) < 128


def test_a_uuid_is_as_its_constructor_makes_it() -> None:
    value = p.as_uuid(bytes(range(16)))
    assert value == UUID(bytes=bytes(range(16)))
    assert (value.is_safe, repr(value)) == (SafeUUID.unknown, "UUID('00010203-0405-0607-0809-0a0b0c0d0e0f')")


def test_values_that_serve_as_lists_and_as_bytes() -> None:
    assert p.as_list((1, 2)) == [1, 2]
    assert p.as_list([1, 2]) == [1, 2]
    for kind in (bytes, bytearray, memoryview):
        assert p.as_bytes(kind(b"ab")) == b"ab"
        assert type(p.as_bytes(kind(b"ab"))) is bytes
    for other in ("ab", 2, None, {1: 2}):
        with pytest.raises(Refused):
            p.as_list(other)
        with pytest.raises(Refused):
            p.as_bytes(other)


# --- tagged fields


@pytest.mark.parametrize("tag", [0, 5, 127, 128, 70_000])
@pytest.mark.parametrize("size", [0, 3, 127, 128, 20_000])
def test_a_tagged_field(tag: int, size: int) -> None:
    head = b"-" + p.uvarint(tag) + p.uvarint(size)
    data = head + bytes(size)
    assert p.read_tag(data, 1, tag - 1) == (tag, len(head), len(data))
    assert p.read_tag(data + b"-", 1, -1) == (tag, len(head), len(data))
    with pytest.raises(Refused):
        p.read_tag(data, 1, tag)
    if size:
        with pytest.raises(Refused):
            p.read_tag(data[:-1], 1, tag - 1)


def test_a_count_of_tagged_fields_is_charged_and_fits_the_bytes_left() -> None:
    for count in (0, 1, 127, 128, 300):
        wire = b"-" + p.uvarint(count)
        remaining = bytes(2 * count)
        after = len(wire)
        cost = count * p.ELEMENT_COST
        first = wire[1]
        assert p.tag_count(wire + remaining, 2, first, count, cost) == (count, after, 0, 0)
        assert p.tag_count(wire + remaining, 2, first, count + 4, cost + 9) == (count, after, 4, 9)
        if count:
            for data, elements, memory in (
                (wire + remaining[:-1], count, cost),
                (wire + remaining, count - 1, cost),
                (wire + remaining, count, cost - 1),
            ):
                with pytest.raises(Refused):
                    p.tag_count(data, 2, first, elements, memory)


def test_a_section_of_unknown_tags() -> None:
    tags = {3: b"three", 4: b"", 200: b"x" * 200}
    wire = p.write_tags([], tags)
    assert wire == b"\x03" + b"\x03\x05three" + b"\x04\x00" + b"\xc8\x01" + b"\xc8\x01" + b"x" * 200
    data = b"-" + wire + b"--"
    assert p.unknown_tags(data, 2, data[1], 10, 1000) == (tags, len(data) - 2, 7, 1000 - 3 * p.ELEMENT_COST)
    assert p.unknown_tags(data, 2, data[1], 10, 1000, (5,))[0] == tags
    assert p.unknown_tags(b"\x01\x00\x00", 1, 1, 10, 1000)[0] == {0: b""}
    for reserved in ((3,), (1, 200)):
        with pytest.raises(Refused):
            p.unknown_tags(data, 2, data[1], 10, 1000, reserved)
    for twice in (b"\x02\x03\x00\x03\x00", b"\x02\x03\x00\x02\x00"):
        with pytest.raises(Refused):
            p.unknown_tags(twice, 1, 2, 10, 1000)


def test_unknown_tags_are_written_between_the_known_in_order() -> None:
    known = [(0, b"zero"), (5, b"five")]
    assert p.write_tags(list(known), None) == p.write_tags(list(known), {})
    assert p.write_tags(list(known), None) == b"\x02\x00\x04zero\x05\x04five"
    assert p.write_tags(list(known), {2: b"two"}) == b"\x03\x00\x04zero\x02\x03two\x05\x04five"
    other: Any = bytearray(b"n")
    assert p.write_tags([], {9: other}) == b"\x01\x09\x01n"
    assert p.write_tags([], {(1 << 32) - 1: b""}) == b"\x01\xff\xff\xff\xff\x0f\x00"
    assert p.write_tags([], {0: b""}, (1,)) == b"\x01\x00\x00"


@pytest.mark.parametrize("tag", [-1, 1 << 32, True, 7])
def test_numbers_that_no_unknown_tag_may_have(tag: int) -> None:
    with pytest.raises(Refused):
        p.write_tags([], {tag: b""}, (7,))


def test_the_value_of_an_unknown_tag_is_bytes() -> None:
    with pytest.raises(Refused):
        p.write_tags([], {1: "text"})  # type: ignore[dict-item]
