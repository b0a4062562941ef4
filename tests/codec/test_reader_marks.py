"""The interpreter's marks: where each part of a message was read."""

from __future__ import annotations

from typing import Any

from coordwire.codec import Field, Message
from coordwire.codec.interpreter.decoder import Mark, PassingMarks
from tests.codec.reading import (
    FIXED,
    FLEXIBLE,
    INNER,
    made,
    one,
    plain,
    reader,
    sized,
)


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
    remaining = one("bytes", unprefixed=True, default=b"")
    assert marks_of(remaining, FIXED, b"rest") == [(0, 4, "x", b"rest", "value", "bytes", "")]
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
