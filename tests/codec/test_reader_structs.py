"""The interpreter's reading, rule by rule: structs, arrays and tagged fields."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from coordwire import limits
from coordwire.codec import Field, Message, Struct
from coordwire.codec.fields import LEAF_FACTOR
from coordwire.codec.primitives import ELEMENT_COST, uvarint
from coordwire.errors import LimitExceeded, Malformed, Truncated
from coordwire.limits import current
from tests.codec.reading import (
    EMPTY,
    FIXED,
    FLEXIBLE,
    INNER,
    MAX_INT,
    made,
    one,
    plain,
    reader,
    refused,
    refused_always,
    sized,
    strict,
    tolerant,
)

# --- structs


def test_a_struct() -> None:
    cls = one("struct", struct=INNER)
    assert strict(cls, FIXED, b"\x05") == {"x": {"y": 5}}
    assert refused_always(cls, FIXED, b"") == (Truncated, "int8 needs 1 byte, 0 left", 0, "x.y")


def test_a_struct_that_may_be_null_has_a_marker() -> None:
    cls = one("struct", struct=INNER, null=0, default=None)
    assert strict(cls, FIXED, b"\xff") == {"x": None}
    assert strict(cls, FIXED, b"\x01\x05") == {"x": {"y": 5}}
    for byte, remaining, value in ((0, b"\x05", {"y": 5}), (2, b"\x05", {"y": 5}), (-2, b"", None)):
        wire = struct.pack("b", byte) + remaining
        odd = (f"a struct's marker is {byte}", 0, "x")
        assert refused(cls, FIXED, wire) == (Malformed, *odd)
        assert tolerant(cls, FIXED, wire) == ({"x": value}, [odd])
    missing = (Truncated, "a struct's marker needs 1 byte, 0 left", 0, "x")
    assert refused_always(cls, FIXED, b"") == missing


def test_the_marker_of_a_tagged_struct_is_a_varint() -> None:
    cls = one("struct", struct=INNER, null=0, default=None, tag=0, first=1)
    assert strict(cls, FLEXIBLE, b"\x01\x00\x01\x00") == {"x": None}
    assert strict(cls, FLEXIBLE, b"\x01\x00\x03\x01\x05\x00") == {"x": {"y": 5}}
    odd = ("a struct's marker is 2", 3, "x")
    assert refused(cls, FLEXIBLE, b"\x01\x00\x03\x02\x05\x00") == (Malformed, *odd)
    assert tolerant(cls, FLEXIBLE, b"\x01\x00\x03\x02\x05\x00") == ({"x": {"y": 5}}, [odd])
    minus = uvarint((1 << 32) - 1)
    odd = ("a struct's marker is -1", 3, "x")
    assert tolerant(cls, FLEXIBLE, b"\x01\x00\x05" + minus) == ({"x": None}, [odd])
    cut = refused_always(cls, FLEXIBLE, b"\x01\x00\x00")
    assert cut == (Truncated, "a struct's marker needs 1 byte, 0 left", 3, "x")
    long = refused_always(cls, FLEXIBLE, b"\x01\x00\x06\x80\x80\x80\x80\x80\x01")
    assert long == (Malformed, "the varint of a struct's marker has more than 5 bytes", 3, "x")


# --- arrays


def test_an_array() -> None:
    cls = one("int16", array=True, default=())
    assert strict(cls, FIXED, b"\0\0\0\2\0\1\0\2") == {"x": [1, 2]}
    assert strict(cls, FLEXIBLE, b"\3\0\1\0\2\0") == {"x": [1, 2]}
    assert strict(cls, FIXED, b"\0\0\0\0") == strict(cls, FLEXIBLE, b"\1\0") == {"x": []}
    short_counts = made(Message, Field("x", "int8", array=True, default=()), short_counts=True)
    assert strict(short_counts, FIXED, b"\0\2\1\2") == {"x": [1, 2]}


def test_an_array_that_is_null() -> None:
    never, always = one("int8", array=True, default=()), one("int8", array=True, default=(), null=0)
    assert strict(always, FIXED, b"\xff" * 4) == strict(always, FLEXIBLE, b"\0\0") == {"x": None}
    null = (Malformed, "an array that can't be null is null", 0, "x")
    assert refused_always(never, FIXED, b"\xff" * 4) == refused_always(never, FLEXIBLE, b"\0\0") == null
    odd = ("the count of an array is -2", 0, "x")
    assert refused(always, FIXED, b"\xff\xff\xff\xfe") == (Malformed, *odd)
    assert tolerant(always, FIXED, b"\xff\xff\xff\xfe") == ({"x": None}, [odd])


def test_a_count_is_within_the_bytes_left() -> None:
    cls = one("int16", array=True, default=())
    for count, data in ((2, b"\0\1\0"), (MAX_INT, b"\0\1\0\2")):
        reason = f"{count} elements of at least 2 bytes claimed, {len(data)} bytes left"
        wire = struct.pack(">i", count) + data
        assert refused_always(cls, FIXED, wire) == (Truncated, reason, 0, "x")
    assert refused_always(cls, FIXED, b"\0\0\0") == (
        Truncated,
        "the count of an array needs 4 bytes, 3 left",
        0,
        "x",
    )


def test_elements_without_bytes_are_no_more_than_the_bytes_left() -> None:
    cls = made(Message, Field("x", "struct", array=True, struct=EMPTY, default=()), Field("z", "int16"))
    assert strict(cls, FIXED, b"\0\0\0\2\0\1") == {"x": [{}, {}], "z": 1}
    reason = "3 elements of at least 0 bytes claimed, 2 bytes left"
    assert refused_always(cls, FIXED, b"\0\0\0\3\0\1") == (Truncated, reason, 0, "x")


def test_an_element_has_its_index_in_the_path() -> None:
    cls = one("struct", array=True, struct=INNER, default=())
    assert strict(cls, FIXED, b"\0\0\0\2\5\6") == {"x": [{"y": 5}, {"y": 6}]}
    deep = one("struct", array=True, struct=made(Struct, Field("y", "string", array=True)), default=())
    wire = b"\0\0\0\2" + b"\0\0\0\0" + b"\0\0\0\2\0\0\xff\xff"
    null = (Malformed, "a string that can't be null is null", 14, "x[1].y[1]")
    assert refused_always(deep, FIXED, wire) == null
    never = one("string", array=True, default=(), null=0)
    null = (Malformed, "a string that can't be null is null", 4, "x[0]")
    assert refused_always(never, FIXED, b"\0\0\0\1\xff\xff") == null


def test_the_elements_before_a_refusal_are_kept() -> None:
    cls = one("struct", array=True, struct=made(Struct, Field("y", "bool")), default=())
    with pytest.raises(Malformed) as error_info:
        reader(b"\0\0\0\3\1\2\1", FIXED).message(cls)
    assert plain(error_info.value.partial) == {"x": [{"y": True}, {"y": 0}]}


def test_what_a_decode_may_take() -> None:
    walk = reader(b"-" * 5, FIXED, start=2)
    assert walk.elements == current().elements
    assert walk.memory == current().memory_for(3) - LEAF_FACTOR * 3
    walk.charge(3, 7, 0)
    assert (current().elements - walk.elements, current().memory_for(3) - walk.memory) == (3, 51)


def test_elements_are_charged_before_they_exist() -> None:
    cls = one("bool", array=True, default=())
    wire = b"\0\0\0\2\1\1"
    with limits(elements=2):
        assert strict(cls, FIXED, wire) == {"x": [True, True]}
    with limits(elements=1):
        reason = "2 more elements would exceed the budget of elements"
        assert refused_always(cls, FIXED, wire) == (LimitExceeded, reason, 0, "x")
    cost = 2 * cls._layout_.at(FIXED).element_memory_cost(cls._layout_.fields[0])
    with limits(memory=cost, memory_factor=LEAF_FACTOR):
        assert strict(cls, FIXED, wire) == {"x": [True, True]}
    with limits(memory=cost - 1, memory_factor=LEAF_FACTOR):
        reason = "2 more elements would exceed the budget of memory"
        assert refused_always(cls, FIXED, wire) == (LimitExceeded, reason, 0, "x")


# --- structs up to the end, each after its size


def test_structs_after_their_sizes() -> None:
    assert strict(sized(), FIXED, b"") == {"x": []}
    assert strict(sized(), FIXED, b"\0\0\0\1\5\0\0\0\1\6") == {"x": [{"y": 5}, {"y": 6}]}
    for wire, error in (
        (b"\0\0\0\1\5\0\0\0", (Truncated, "a size needs 4 bytes, 3 left", 5, "x[1]")),
        (b"\0\0\0\1\5\0\0\0\1", (Truncated, "1 byte claimed, 0 left", 5, "x[1]")),
        (b"\0\0\0\1\5\xff\xff\xff\xff", (Malformed, "a size is -1", 5, "x[1]")),
        (b"\0\0\0\0\5\0", (Truncated, "int8 needs 1 byte, 0 left", 4, "x[0].y")),
    ):
        assert refused_always(sized(), FIXED, wire) == error


def test_a_struct_fills_its_size() -> None:
    wire = b"\0\0\0\3\5ab\0\0\0\1\6"
    odd = ("2 bytes too many", 5, "x[0]")
    assert refused(sized(), FIXED, wire) == (Malformed, *odd)
    assert tolerant(sized(), FIXED, wire) == ({"x": [{"y": 5}, {"y": 6}]}, [odd])


def test_structs_after_their_sizes_are_charged_one_by_one() -> None:
    wire = b"\0\0\0\1\5" * 3
    with limits(elements=3):
        assert len(strict(sized(), FIXED, wire)["x"]) == 3
    with limits(elements=2):
        reason = "1 more element would exceed the budget of elements"
        assert refused_always(sized(), FIXED, wire) == (LimitExceeded, reason, 10, "x[2]")
    layout = sized()._layout_.at(FIXED)
    cost = layout.element_memory_cost(sized()._layout_.fields[0])
    with limits(memory=3 * cost, memory_factor=LEAF_FACTOR):
        assert len(strict(sized(), FIXED, wire)["x"]) == 3
    with limits(memory=3 * cost - 1, memory_factor=LEAF_FACTOR):
        reason = "1 more element would exceed the budget of memory"
        assert refused_always(sized(), FIXED, wire) == (LimitExceeded, reason, 10, "x[2]")


# --- tagged fields


def tagged() -> Any:
    return made(
        Message,
        Field("a", "int8", 1, tag=2),
        Field("b", "bytes", 1, default=b"", tag=4),
        Field("gone", "int8", 0, 0, tag=6),
    )


def test_tagged_fields() -> None:
    nothing = {"a": 0, "b": b"", "gone": 0}
    assert strict(tagged(), FLEXIBLE, b"\0") == nothing
    assert strict(tagged(), FLEXIBLE, b"\2\2\1\5\4\2\2z") == nothing | {"a": 5, "b": b"z"}
    assert strict(tagged(), FLEXIBLE, b"\3\0\2zz\2\1\5\7\0") == nothing | {"a": 5, "tags": {0: b"zz", 7: b""}}


def test_a_count_of_tagged_fields_is_within_the_bytes_left() -> None:
    reason = "2 tagged fields claimed, 3 bytes left"
    assert refused_always(tagged(), FLEXIBLE, b"\2\0\0\1") == (Truncated, reason, 0, "")
    assert strict(tagged(), FLEXIBLE, b"\2\0\0\1\0")["tags"] == {0: b"", 1: b""}
    cut = (Truncated, "the count of tagged fields needs 1 byte, 0 left", 0, "")
    assert refused_always(tagged(), FLEXIBLE, b"") == cut


def test_tagged_fields_are_charged() -> None:
    wire = b"\2\0\0\1\0"
    with limits(elements=2, memory=2 * ELEMENT_COST, memory_factor=LEAF_FACTOR):
        strict(tagged(), FLEXIBLE, wire)
    reason = "2 more elements would exceed the budget of"
    with limits(elements=1):
        assert refused_always(tagged(), FLEXIBLE, wire) == (LimitExceeded, f"{reason} elements", 0, "")
    with limits(memory=2 * ELEMENT_COST - 1, memory_factor=LEAF_FACTOR):
        assert refused_always(tagged(), FLEXIBLE, wire) == (LimitExceeded, f"{reason} memory", 0, "")


def test_a_negative_count_of_tagged_fields_is_none_to_java() -> None:
    wire = uvarint((1 << 32) - 1)
    with limits(elements=0):
        assert tolerant(tagged(), FLEXIBLE, wire)[0] == {"a": 0, "b": b"", "gone": 0}
    assert refused(tagged(), FLEXIBLE, wire)[0] is Truncated


@pytest.mark.parametrize("tag", [0, 1])
def test_tags_ascend(tag: int) -> None:
    wire = b"\2\1\0" + bytes([tag]) + b"\1z"
    odd = (f"tag {tag} comes after tag 1", 3, "")
    assert refused(tagged(), FLEXIBLE, wire) == (Malformed, *odd)
    assert tolerant(tagged(), FLEXIBLE, wire)[1] == [odd]


def test_the_greatest_tag() -> None:
    greatest = (1 << 32) - 1
    wire = b"\2\7\0" + uvarint(greatest) + b"\1z"
    assert strict(tagged(), FLEXIBLE, wire)["tags"] == {7: b"", greatest: b"z"}
    assert tolerant(tagged(), FLEXIBLE, wire) == (strict(tagged(), FLEXIBLE, wire), [])


def test_a_tag_of_another_version_is_refused() -> None:
    reason = "tag 6 is gone, which version 1 lacks"
    assert refused_always(tagged(), FLEXIBLE, b"\2\1\0\6\0") == (Malformed, reason, 3, "")


def test_the_size_of_an_unknown_tag() -> None:
    cut = (Truncated, "tag 9 needs 3 bytes, 2 left", 3, "")
    assert refused_always(tagged(), FLEXIBLE, b"\1\x09\3zz") == cut
    for wire, what, at in ((b"\1\x80\x80", "a tag", 3), (b"\1\x09\x80", "the size of tag 9", 3)):
        assert refused_always(tagged(), FLEXIBLE, wire) == (
            Truncated,
            f"{what} needs 1 byte, 0 left",
            at,
            "",
        )
    minus = b"\2\1\0\x09" + uvarint((1 << 32) - 1)
    negative = (Malformed, "tag 9 has a size of -1", 3, "")
    assert refused(tagged(), FLEXIBLE, minus, tolerant=True) == negative


def test_a_known_tag_has_its_size() -> None:
    cut = (Truncated, "tag 2 needs 3 bytes, 1 left", 3, "a")
    assert refused(tagged(), FLEXIBLE, b"\1\2\3\5") == cut
    odd = ("tag 2 claims 3 bytes and has 1", 3, "a")
    assert refused(tagged(), FLEXIBLE, b"\1\2\3\5zz") == (Malformed, *odd)
    assert tolerant(tagged(), FLEXIBLE, b"\1\2\3\5")[1] == [odd]
    assert refused(tagged(), FLEXIBLE, b"\2\2\0\5\7\0") == (
        Truncated,
        "int8 needs 1 byte, 0 left",
        3,
        "a",
    )
    value, odds = tolerant(tagged(), FLEXIBLE, b"\2\2\0\5\7\0")
    assert (value["a"], value["tags"]) == (5, {7: b""})
    assert odds == [("tag 2 claims 0 bytes and has 1", 3, "a")]


def test_what_follows_a_known_tag_has_the_bytes_left_again() -> None:
    wire = b"\2\2\1\5\4\4\3zz"
    assert refused(tagged(), FLEXIBLE, wire) == (Truncated, "tag 4 needs 4 bytes, 3 left", 6, "b")
    assert strict(tagged(), FLEXIBLE, b"\2\2\1\5\4\3\3zz")["b"] == b"zz"
