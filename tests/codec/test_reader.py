"""The interpreter's reading, rule by rule: the value, or the refusal in full (kind, reason, position, path);
what a decode that isn't strict makes of the same bytes; and the marks."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest

from coordwire import limits
from coordwire.codec import Field, FieldTable, Message, Struct
from coordwire.codec.fields import LEAF_FACTOR
from coordwire.codec.interpreter.decoder import MOST_DEVIATIONS, Mark, PassingMarks, Reader
from coordwire.codec.primitives import ELEMENT_COST, uvarint
from coordwire.errors import DecodeError, Deviation, LimitExceeded, Malformed, Truncated, counted
from coordwire.limits import current

FIXED, FLEXIBLE = 0, 1
MAX_INT = (1 << 31) - 1
Place = tuple[str, int, str]


def made(base: type[Any], *fields: Field, draft: bool = False) -> Any:
    """A class with these fields, flexible from version 1."""

    def __init__(self: Any) -> None:
        self.tags = None
        for field in fields:
            setattr(self, field.name, field.fresh_default())

    facts = {"api_key": None, "direction": "data", "versions": range(2), "flexible_versions": range(1, 2)}
    cls = type("Made", (base,), {**(facts if base is Message else {}), "__init__": __init__})
    cls._layout_ = FieldTable(cls, *fields, flexible=1, draft=draft)  # type: ignore[attr-defined]
    return cls


def one(type: str, **more: Any) -> Any:
    """A message with the one field `x`."""
    return made(Message, Field("x", type, **more))


def plain(value: Any) -> Any:
    if isinstance(value, Struct):
        inside = {name: plain(inner) for name, inner in vars(value).items()}
        if inside["tags"] is None:
            del inside["tags"]
        return inside
    return [plain(item) for item in value] if isinstance(value, list) else value


def reader(
    data: bytes,
    version: int,
    *,
    start: int = 0,
    tolerant: bool = False,
    deviations: list[Deviation] | None = None,
    marks: list[Mark] | None = None,
) -> Reader:
    return Reader(data, start, version, strict=not tolerant, deviations=deviations, marks=marks)


def strict(cls: Any, version: int, data: bytes) -> Any:
    return plain(reader(data, version).message(cls))


def tolerant(cls: Any, version: int, data: bytes) -> tuple[Any, list[Place]]:
    """The value, and what was tolerated."""
    found: list[Deviation] = []
    value = plain(reader(data, version, tolerant=True, deviations=found).message(cls))
    assert plain(reader(data, version, tolerant=True).message(cls)) == value
    return value, [(one.reason, one.position, one.path) for one in found]


def refused(
    cls: Any, version: int, data: bytes, *, tolerant: bool = False
) -> tuple[type[DecodeError], str, int, str]:
    with pytest.raises(DecodeError) as caught:
        reader(data, version, tolerant=tolerant).message(cls)
    error = caught.value
    assert isinstance(error.partial, cls)
    return type(error), error.reason, error.position, error.path


def refused_always(cls: Any, version: int, data: bytes) -> tuple[type[DecodeError], str, int, str]:
    found = refused(cls, version, data)
    assert refused(cls, version, data, tolerant=True) == found
    return found


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
    assert plain(walk.message(one("int8"), whole=False)) == {"x": 5}
    assert walk.pos == 1


def test_a_message_may_begin_after_a_start() -> None:
    walk = reader(b"--\x05", FIXED, start=2)
    assert plain(walk.message(one("int8"))) == {"x": 5}
    with pytest.raises(Truncated) as caught:
        reader(b"--\x05", FIXED, start=2).message(one("int16"))
    assert (caught.value.position, caught.value.reason) == (2, "int16 needs 2 bytes, 1 left")


def test_a_refusal_carries_what_was_read_before_it() -> None:
    cls = made(Message, Field("a", "int8"), Field("b", "int16"))
    with pytest.raises(Truncated) as caught:
        reader(b"\x05\x01", FIXED).message(cls)
    assert plain(caught.value.partial) == {"a": 5, "b": 0}
    assert caught.value.path == "b"


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


# --- structs

INNER = made(Struct, Field("y", "int8"))
EMPTY = made(Struct)


def test_a_struct() -> None:
    cls = one("struct", struct=INNER)
    assert strict(cls, FIXED, b"\x05") == {"x": {"y": 5}}
    assert refused_always(cls, FIXED, b"") == (Truncated, "int8 needs 1 byte, 0 left", 0, "x.y")


def test_a_struct_that_may_be_null_has_a_marker() -> None:
    cls = one("struct", struct=INNER, null=0, default=None)
    assert strict(cls, FIXED, b"\xff") == {"x": None}
    assert strict(cls, FIXED, b"\x01\x05") == {"x": {"y": 5}}
    for byte, rest, value in ((0, b"\x05", {"y": 5}), (2, b"\x05", {"y": 5}), (-2, b"", None)):
        wire = struct.pack("b", byte) + rest
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
    draft = made(Message, Field("x", "int8", array=True, default=()), draft=True)
    assert strict(draft, FIXED, b"\0\2\1\2") == {"x": [1, 2]}


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
    with pytest.raises(Malformed) as caught:
        reader(b"\0\0\0\3\1\2\1", FIXED).message(cls)
    assert plain(caught.value.partial) == {"x": [{"y": True}, {"y": 0}]}


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


def sized() -> Any:
    return one("struct", array=True, struct=INNER, default=(), unprefixed=True)


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


# --- marks


def everything() -> Any:
    return made(
        Message,
        Field("n", "int16"),
        Field("s", "string", null=0, default=None),
        Field("b", "bytes", default=b""),
        Field("w", "struct", struct=INNER, null=0, default=None),
        Field("a", "struct", array=True, struct=INNER, null=0, default=()),
        Field("t", "int8", 1, tag=0),
    )


def marks_of(cls: Any, version: int, data: bytes) -> list[tuple[object, ...]]:
    marks: list[Mark] = []
    reader(data, version, marks=marks).message(cls)
    return [
        (mark.offset, mark.length, mark.path, mark.value, mark.sort, mark.kind, mark.owner) for mark in marks
    ]


def test_every_part_is_marked() -> None:
    wire = b"\0\7" + b"\0\2hi" + b"\0\0\0\1z" + b"\1\5" + b"\0\0\0\1\6"
    assert marks_of(everything(), FIXED, wire) == [
        (0, 2, "n", 7, "value", "int16", "Made"),
        (2, 2, "s", 2, "length", "string", ""),
        (4, 2, "s", "hi", "value", "string", ""),
        (6, 4, "b", 1, "length", "bytes", ""),
        (10, 1, "b", b"z", "value", "bytes", ""),
        (11, 1, "w", 1, "marker", "struct", ""),
        (12, 1, "w.y", 5, "value", "int8", "Made"),
        (13, 4, "a", 1, "count", "array", ""),
        (17, 1, "a[0].y", 6, "value", "int8", "Made"),
    ]


def test_nulls_and_tags_are_marked() -> None:
    wire = b"\0\7" + b"\0" + b"\1" + b"\xff" + b"\0" + b"\2\0\1\5\x09\2zz"
    assert marks_of(everything(), FLEXIBLE, wire) == [
        (0, 2, "n", 7, "value", "int16", "Made"),
        (2, 1, "s", None, "value", "string", ""),
        (3, 1, "b", 0, "length", "bytes", ""),
        (4, 1, "w", -1, "marker", "struct", ""),
        (5, 1, "a", None, "value", "array", ""),
        (6, 1, "", 2, "tags", "uvarint", ""),
        (7, 2, "", (0, 1), "tags", "t", ""),
        (9, 1, "t", 5, "value", "int8", "Made"),
        (10, 2, "", (9, 2), "tags", "tag", ""),
        (12, 2, "tags[9]", b"zz", "value", "bytes", ""),
    ]


def test_bytes_without_a_length_and_sizes_are_marked() -> None:
    rest = one("bytes", unprefixed=True, default=b"")
    assert marks_of(rest, FIXED, b"rest") == [(0, 4, "x", b"rest", "value", "bytes", "")]
    assert marks_of(sized(), FIXED, b"\0\0\0\1\5") == [
        (0, 4, "x[0]", 1, "length", "int32", ""),
        (4, 1, "x[0].y", 5, "value", "int8", "Made"),
    ]
    assert marks_of(one("bool"), FIXED, b"\1") == [(0, 1, "x", True, "value", "bool", "Made")]


def test_marks_that_pass_are_not_kept_nor_are_elements() -> None:
    taken: list[Mark] = []
    marks = PassingMarks(taken.append)
    cls = one("struct", array=True, struct=INNER, default=())
    value = reader(b"\0\0\0\2\5\6", FIXED, marks=marks).message(cls)
    assert [mark.path for mark in taken] == ["x", "x[0].y", "x[1].y"]
    assert len(marks) == 0
    assert plain(value) == {"x": []}
