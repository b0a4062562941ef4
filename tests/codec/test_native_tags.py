"""The bounds of tagged fields in the native engine: of a known field's size, of numbers, of counts. Every
size and number around a bound has the outcome of Python, and no byte after the message is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from coordwire import DecodeError, EncodeError
from coordwire._speedups import native
from coordwire.codec import Message
from coordwire.codec.program import message_program
from fuzz._guard import Guard
from tests.conformance.engines import MESSAGES

pytestmark = pytest.mark.skipif(native is None, reason="the native engine isn't built, or Python is forced")

GUARD = Guard()
ROOM = 1 << 20, 1 << 26


def tagged() -> Iterator[tuple[type[Message], int, int]]:
    """Each message with known tagged fields, its last version and a known number."""
    for cls in MESSAGES:
        version = cls.versions[-1]
        for field in cls._layout_.fields:
            if field.tag is not None and field.first <= version <= field.last:
                yield cls, version, field.tag


TAGGED = list(tagged())


def default(cls: type[Message], version: int) -> bytes:
    """A message of defaults, up to its count of tagged fields, which is the last byte."""
    wire: bytes = cls().encode(version=version)
    assert wire[-1] == 0
    return wire[:-1]


def same(cls: type[Message], version: int, data: bytes) -> bool:
    """Whether the message is accepted, by both halves alike."""
    program: Any = message_program(cls, version)
    message = program.decode(GUARD.place(data), 0, *ROOM)
    try:
        expected = vars(Message)["decode"].__func__(cls, data, version=version)
    except DecodeError:
        assert message is None or message[1] != len(data)
        return False
    assert message == (expected, len(data))
    return True


@pytest.mark.parametrize(("cls", "version", "tag"), TAGGED)
def test_the_size_of_a_known_field(cls: type[Message], version: int, tag: int) -> None:
    """The last field of a message may be one byte too short for its type, and memory ends there."""
    for byte in (0, 1, 2):
        accepted = [
            size
            for size in range(60)
            if same(cls, version, default(cls, version) + bytes([1, tag, size]) + bytes([byte]) * size)
        ]
        assert 0 not in accepted
    for size in range(20):
        for number in range(4):
            body = bytes([1] + [0] * (size - 1))[:size]
            same(
                cls,
                version,
                default(cls, version) + bytes([2, tag, size]) + body + bytes([99, number]) + bytes(number),
            )


def test_some_fields_are_accepted_at_their_least_size_alone() -> None:
    """So that the bound isn't one too high: the native half accepts what Python does."""
    assert len(TAGGED) > 40
    sizes = {}
    for cls, version, tag in TAGGED:
        sizes[cls.__name__, tag] = [
            size
            for size in range(60)
            if same(cls, version, default(cls, version) + bytes([1, tag, size]) + bytes(size))
        ]
    assert sizes["ApiVersionsResponse", 1] == [8]
    assert sizes["ApiVersionsResponse", 3] == [1]
    assert sizes["TransactionLogValue", 3] == [2]
    assert sizes["OffsetCommitValue", 0] == [16]


@pytest.mark.parametrize(("cls", "version", "tag"), TAGGED)
def test_an_unknown_number_that_is_known(cls: Any, version: int, tag: int) -> None:
    """It can't be written: a reader would take it for the field, set or not."""
    program: Any = message_program(cls, version)
    message: Any = cls(tags={tag: b"x"})
    assert program.encode(message) is None
    with pytest.raises(EncodeError, match="tag"):
        message.encode(version=version)
    beside = {max(field.tag or 0 for field in cls._layout_.fields) + 1: b"x"}
    assert program.encode(cls(tags=beside)) == vars(Message)["encode"](cls(tags=beside), version=version)


def test_numbers_and_counts() -> None:
    """Numbers rise; a field takes 2 bytes at least; a size is of bytes that are there."""
    for cls, version, _ in TAGGED[:3]:
        start = default(cls, version)
        unknown = [bytes([tag, 1, 7]) for tag in (90, 91, 92)]
        assert same(cls, version, start + b"\x03" + b"".join(unknown))
        assert same(cls, version, start + b"\x03" + b"".join(bytes([tag, 0]) for tag in (90, 91, 92)))
        for order in ([0, 0], [1, 0], [0, 2, 1]):
            data = start + bytes([len(order)]) + b"".join(unknown[at] for at in order)
            assert not same(cls, version, data)
        for size in range(5):
            assert same(cls, version, start + bytes([1, 90, size]) + bytes(size))
            assert not same(cls, version, start + bytes([1, 90, size + 1]) + bytes(size))
            assert not same(cls, version, start + bytes([size + 1]) + bytes(2 * size + 1))
            assert not same(cls, version, start + bytes([1, 90, size]) + bytes(size + 1))
