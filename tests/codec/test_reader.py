"""The interpreter's reading, rule by rule: numbers, varints and lengths, and deviations."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest

from coordwire.codec import Field, Message
from coordwire.codec.interpreter.decoder import MOST_DEVIATIONS, Reader
from coordwire.codec.primitives import uvarint
from coordwire.errors import Malformed, Truncated, counted
from tests.codec.reading import (
    FIXED,
    FLEXIBLE,
    MAX_INT,
    made,
    one,
    plain,
    reader,
    refused,
    refused_always,
    strict,
    tolerant,
)

# --- numbers


@pytest.mark.parametrize(
    ("kind", "wire", "value"),
    [
        ("int8", b"\xfe", -2),
        ("int16", b"\x01\x02", 258),
        ("int32", b"\xff\xff\xff\xfe", -2),
        ("int64", b"\0\0\0\0\0\0\1\2", 258),
        ("uint16", b"\xff\xfe", 65_534),
        ("uint32", b"\xff\xff\xff\xfe", (1 << 32) - 2),
        ("float64", struct.pack(">d", 0.1), 0.1),
        ("uuid", bytes(range(16)), UUID(bytes=bytes(range(16)))),
        ("bool", b"\x00", False),
        ("bool", b"\x01", True),
    ],
)
def test_a_number(kind: str, wire: bytes, value: object) -> None:
    assert strict(one(kind), FIXED, wire) == {"x": value}
    assert type(strict(one(kind), FIXED, wire)["x"]) is type(value)
    size = len(wire)
    assert refused_always(one(kind), FIXED, wire[1:]) == (
        Truncated,
        f"{kind} needs {counted(size, 'byte')}, {size - 1} left",
        0,
        "x",
    )


def test_a_boolean_is_0_or_1() -> None:
    assert refused(one("bool"), FIXED, b"\x02") == (Malformed, "a boolean is 2", 0, "x")
    assert tolerant(one("bool"), FIXED, b"\x02") == ({"x": True}, [("a boolean is 2", 0, "x")])


def test_a_decode_is_strict_unless_asked_otherwise() -> None:
    with pytest.raises(Malformed, match="trailing"):
        Reader(b"\x05ab", 0, FIXED).message(one("int8"))


def test_what_follows_a_message() -> None:
    data = b"\x05ab"
    assert refused(one("int8"), FIXED, data) == (Malformed, "2 trailing bytes", 1, "")
    assert tolerant(one("int8"), FIXED, data) == ({"x": 5}, [("2 trailing bytes", 1, "")])
    walk = reader(data, FIXED)
    assert plain(walk.message(one("int8"), to_end=False)) == {"x": 5}
    assert walk.pos == 1


def test_a_message_may_begin_after_a_start() -> None:
    walk = reader(b"--\x05", FIXED, start=2)
    assert plain(walk.message(one("int8"))) == {"x": 5}
    with pytest.raises(Truncated) as error_info:
        reader(b"--\x05", FIXED, start=2).message(one("int16"))
    assert (error_info.value.position, error_info.value.reason) == (2, "int16 needs 2 bytes, 1 left")


def test_a_refusal_carries_what_was_read_before_it() -> None:
    cls = made(Message, Field("a", "int8"), Field("b", "int16"))
    with pytest.raises(Truncated) as error_info:
        reader(b"\x05\x01", FIXED).message(cls)
    assert plain(error_info.value.partial) == {"a": 5, "b": 0}
    assert error_info.value.path == "b"


# --- varints and lengths


def test_a_varint_has_at_most_5_bytes() -> None:
    long = b"\x80\x80\x80\x80\x80\x00"
    assert refused_always(one("bytes"), FLEXIBLE, long) == (
        Malformed,
        "the varint of the length of a bytes has more than 5 bytes",
        0,
        "x",
    )
    assert refused_always(one("bytes"), FLEXIBLE, b"\x80\x80") == (
        Truncated,
        "the length of a bytes needs 1 byte, 0 left",
        2,
        "x",
    )


def test_a_varint_has_no_more_bytes_than_it_needs() -> None:
    reason = "the varint of the length of a bytes is over-long"
    assert refused(one("bytes"), FLEXIBLE, b"\x82\x00z\x00") == (Malformed, reason, 0, "x")
    assert tolerant(one("bytes"), FLEXIBLE, b"\x82\x00z\x00") == ({"x": b"z"}, [(reason, 0, "x")])
    assert strict(one("bytes"), FLEXIBLE, b"\x01\x00") == {"x": b""}
    assert strict(one("bytes"), FLEXIBLE, b"\x81\x01" + bytes(128) + b"\x00") == {"x": bytes(128)}


def test_a_varint_is_within_32_bits() -> None:
    reason = "the varint of the length of a bytes overflows 32 bits"
    wire = b"\x82\x80\x80\x80\x10z\x00"
    assert refused(one("bytes"), FLEXIBLE, wire) == (Malformed, reason, 0, "x")
    assert tolerant(one("bytes"), FLEXIBLE, wire) == ({"x": b"z"}, [(reason, 0, "x")])
    most = (Truncated, f"bytes needs {(1 << 32) - 2} bytes, 1 left", 5, "x")
    assert refused(one("bytes"), FLEXIBLE, b"\xff\xff\xff\xff\x0f\x00") == most


def test_java_reads_a_varint_as_a_signed_number() -> None:
    null = one("bytes", null=0)
    for value, length in (((1 << 32) - 1, -2), ((1 << 31) + 1, -MAX_INT - 1)):
        assert tolerant(null, FLEXIBLE, uvarint(value) + b"\x00") == (
            {"x": None},
            [(f"the length of a bytes is {length}", 0, "x")],
        )
    wraps = refused(null, FLEXIBLE, uvarint(1 << 31) + b"\x00", tolerant=True)
    assert wraps == (Truncated, f"bytes needs {MAX_INT} bytes, 1 left", 5, "x")


@pytest.mark.parametrize(
    ("kind", "minus_two", "minus_one"),
    [("string", b"\xff\xfe", b"\xff\xff"), ("bytes", b"\xff\xff\xff\xfe", b"\xff\xff\xff\xff")],
)
def test_null(kind: str, minus_two: bytes, minus_one: bytes) -> None:
    never, always = one(kind, default=""), one(kind, null=0, default="")
    odd = (f"the length of a {kind} is -2", 0, "x")
    assert strict(always, FIXED, minus_one) == strict(always, FLEXIBLE, b"\x00\x00") == {"x": None}
    null = (Malformed, f"a {kind} that can't be null is null", 0, "x")
    assert refused_always(never, FIXED, minus_one) == refused_always(never, FLEXIBLE, b"\x00\x00") == null
    assert refused(always, FIXED, minus_two) == (Malformed, *odd)
    assert tolerant(always, FIXED, minus_two) == ({"x": None}, [odd])
    assert refused(never, FIXED, minus_two, tolerant=True) == null


def test_a_string_has_at_most_32767_bytes() -> None:
    text = b"a" * 32_767
    assert strict(one("string"), FIXED, b"\x7f\xff" + text) == {"x": text.decode()}
    assert strict(one("string"), FLEXIBLE, uvarint(32_768) + text + b"\x00") == {"x": text.decode()}
    assert refused_always(one("string"), FLEXIBLE, uvarint(32_769) + text + b"a\x00") == (
        Malformed,
        "a string of 32768 bytes is longer than 32767",
        0,
        "x",
    )
    more = bytes(32_768)
    assert strict(one("bytes"), FLEXIBLE, uvarint(32_769) + more + b"\x00") == {"x": more}
    assert strict(one("bytes"), FIXED, b"\x00\x00\x80\x00" + more) == {"x": more}


def test_a_length_is_within_the_bytes_left() -> None:
    assert refused_always(one("string"), FIXED, b"\x00\x03ab") == (
        Truncated,
        "string needs 3 bytes, 2 left",
        2,
        "x",
    )
    assert refused_always(one("string"), FIXED, b"\x00") == (
        Truncated,
        "the length of a string needs 2 bytes, 1 left",
        0,
        "x",
    )
    assert refused_always(one("bytes"), FIXED, b"\x00\x00\x00") == (
        Truncated,
        "the length of a bytes needs 4 bytes, 3 left",
        0,
        "x",
    )


def test_a_field_may_keep_fixed_lengths() -> None:
    assert strict(one("string", fixed=True), FLEXIBLE, b"\x00\x01z\x00") == {"x": "z"}


@pytest.mark.parametrize(
    ("raw", "reason", "start", "text"),
    [
        (b"a\xff", "invalid start byte", 1, "a\ufffd"),
        (b"ab\xc3", "unexpected end of data", 2, "ab\ufffd"),
        (b"\xed\xa0\x80z", "invalid continuation byte", 0, "\ufffdz"),
    ],
)
def test_text_is_utf_8(raw: bytes, reason: str, start: int, text: str) -> None:
    wire = struct.pack(">h", len(raw)) + raw
    odd = (f"invalid UTF-8: {reason}", 2 + start, "x")
    assert refused(one("string"), FIXED, wire) == (Malformed, *odd)
    assert tolerant(one("string"), FIXED, wire) == ({"x": text}, [odd])


def test_bytes_without_a_length_go_to_the_end() -> None:
    cls = made(Message, Field("a", "int8"), Field("x", "bytes", unprefixed=True, default=b""))
    assert strict(cls, FIXED, b"\x05rest") == {"a": 5, "x": b"rest"}
    assert strict(cls, FIXED, b"\x05") == {"a": 5, "x": b""}


# --- deviations


def test_no_more_than_1000_deviations_are_listed() -> None:
    cls = one("bool", array=True, default=())
    for count, listed in ((999, 999), (1000, 1000), (1001, 1001), (1005, 1001)):
        _, odds = tolerant(cls, FIXED, struct.pack(">i", count) + b"\2" * count)
        assert len(odds) == listed
        assert odds[:1000] == [("a boolean is 2", 4 + at, f"x[{at}]") for at in range(min(count, 1000))]
        others = "more than 1,000 deviations: the rest are not listed"
        assert odds[1000:] == [(others, 1004, "x[1000]")][: listed - 1000]
    assert MOST_DEVIATIONS == 1000
