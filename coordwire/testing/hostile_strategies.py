"""Hostile bytes: valid encodings, mutated at the lengths, counts, tags and texts, whose positions the
reader's marks give.

Rules: some of what comes out is valid all the same, and most is refused deep inside; all of it shrinks.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from coordwire.codec import Message
from coordwire.codec.fields import TEXTS
from coordwire.codec.interpreter.decoder import Mark, Reader
from coordwire.codec.primitives import uvarint
from coordwire.frames import PREFIX, encode_request, encode_response
from coordwire.testing.hypothesis_import import st
from coordwire.testing.message_strategies import cached, check_version, frames, messages, sized

__all__ = ["hostile_bytes", "hostile_frames"]

_Draw = Callable[[st.SearchStrategy[Any]], Any]

_LENGTHS = ("length", "count")
_BAD_TEXT = [b"\xff", b"\x80", b"\xc0\x80", b"\xed\xa0\x80", b"\xe2\x82", b"\xf5\x80\x80\x80", b"\xf0\x80"]
_SIZES = [-1, 0, 3, 1 << 24, (1 << 31) - 1, -(1 << 31)]
_CLASSIC = [0, -1, -2, 1, 32767, -32768]
_COMPACT = [0, 1, 2, 0x7F, 0x7FFF, 0x8000, 0x8001, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF]
_VARINTS = [b"\x80\x00", b"\x81\x80\x00", b"\xff\xff\xff\xff\x1f", b"\x80\x80\x80\x80\x80\x01", b"\xff" * 12]
_SECTIONS = [
    b"\x02\x29\x00\x29\x00", b"\x02\x2a\x00\x29\x00", b"\x01\x29\x7f", b"\x01\xa9\x00\x00",
    b"\x01\x00\x00", b"\x01\x29\xff\xff\xff\xff\x0f", b"\x02\x00\x00\x00\x00", b"\x7f", b"\x81\x00\x29\x00",
]  # fmt: skip
"""Sections of tagged fields: repeated, unordered, beyond the end, over-long, a known one of no bytes …"""


def hostile_bytes(cls: type[Message], *, version: int) -> st.SearchStrategy[bytes]:
    """Bytes that a decoder of this message shouldn't trust; some are valid all the same.

    Valid encodings cut off or extended, with bytes flipped or spliced, lengths and counts of 0, null or the
    greatest, over-long varints, tags repeated or out of order, invalid UTF-8, odd booleans and struct
    markers; and bytes at random. Raises `ValueError` if the message has no such version.
    """
    check_version(cls, version)
    return _hostile(cls, version)


def hostile_frames(cls: type[Message], *, version: int) -> st.SearchStrategy[bytes]:
    """Whole frames, size prefix and header included, that a connection shouldn't trust; some are valid.

    Hostile bytes after a sound header, headers with bytes flipped, frames cut off, sizes that are wrong.
    Raises `ValueError` if the message is neither a request nor a response, or has no such version.
    """
    valid = frames(cls, version=version)
    body = hostile_bytes(cls, version=version)

    @st.composite
    def hostile(draw: _Draw) -> bytes:
        message: Message = draw(messages(cls, version=version))
        number: int = draw(st.integers(0, 9))
        if cls.direction == "request":
            frame = encode_request(message, version=version, correlation_id=number)
        else:
            frame = encode_response(message, version=version, correlation_id=number)
        data = frame[PREFIX : len(frame) - len(message.encode(version=version))] + bytes(draw(body))
        if draw(st.integers(0, 3)) == 0:
            data = _flip(draw, data, [])
        size = draw(st.sampled_from(_SIZES)) if draw(st.integers(0, 7)) == 0 else len(data)
        return struct.pack(">i", size) + data

    @st.composite
    def cut_off(draw: _Draw) -> bytes:
        return _truncate(draw, draw(valid), [])

    return hostile() | hostile() | cut_off()


@cached
def _hostile(cls: Any, version: int) -> st.SearchStrategy[bytes]:
    valid = messages(cls, version=version, nan=True)
    large = sized(cls, version, "large", nan=True)

    @st.composite
    def mutated(draw: _Draw, valid: st.SearchStrategy[Message], times: st.SearchStrategy[int]) -> bytes:
        data: bytes = draw(valid).encode(version=version)
        marks: list[Mark] = []
        Reader(data, 0, version, marks=marks).message(cls)
        for _ in range(draw(times)):
            data = draw(st.sampled_from(_MUTATIONS))(draw, data, marks)
        return data

    mutations = [mutated(valid, st.integers(1, 2)) for _ in range(3)]
    # Of what is large some is left valid: a reader may refuse it, or misread it and go on.
    return st.one_of(st.binary(max_size=24), *mutations, mutated(large, st.integers(0, 1)))


def _replaced(data: bytes, at: int, length: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + length :]


def _pick_mark(draw: _Draw, marks: list[Mark], condition: Callable[[Mark], bool]) -> Mark | None:
    fitting = [mark for mark in marks if mark.length and condition(mark)]
    return draw(st.sampled_from(fitting)) if fitting else None


def _truncate(draw: _Draw, data: bytes, marks: list[Mark]) -> bytes:
    end: int = draw(st.integers(0, max(len(data) - 1, 0)))
    return data[:end]


def _extend(draw: _Draw, data: bytes, marks: list[Mark]) -> bytes:
    extra: bytes = draw(st.binary(min_size=1, max_size=8))
    return data + extra


def _flip(draw: _Draw, data: bytes, marks: list[Mark]) -> bytes:
    if not data:
        return data
    at = draw(st.integers(0, len(data) - 1))
    return _replaced(data, at, 1, bytes([data[at] ^ draw(st.integers(1, 255))]))


def _splice(draw: _Draw, data: bytes, marks: list[Mark]) -> bytes:
    at: int = draw(st.integers(0, len(data)))
    return _replaced(data, at, draw(st.integers(0, 4)), draw(st.binary(max_size=4)))


def _length(draw: _Draw, data: bytes, marks: list[Mark]) -> bytes:
    mark = _pick_mark(draw, marks, lambda mark: mark.sort in _LENGTHS or mark.value is None)
    if mark is None:
        return data
    if draw(st.booleans()):
        return _replaced(data, mark.offset, mark.length, uvarint(draw(st.sampled_from(_COMPACT))))
    form = {2: ">h", 4: ">i"}.get(mark.length, ">b")
    value = draw(st.sampled_from(_CLASSIC)) if form != ">b" else draw(st.integers(-128, 127))
    return _replaced(data, mark.offset, mark.length, struct.pack(form, value))


def _varint(draw: _Draw, data: bytes, marks: list[Mark]) -> bytes:
    mark = _pick_mark(draw, marks, lambda mark: mark.sort in (*_LENGTHS, "tags"))
    if mark is None:
        return data
    return _replaced(data, mark.offset, mark.length, draw(st.sampled_from(_VARINTS)))


def _section(draw: _Draw, data: bytes, marks: list[Mark]) -> bytes:
    mark = _pick_mark(draw, marks, lambda mark: mark.sort == "tags" and mark.kind == "uvarint")
    if mark is None:
        return data
    return _replaced(data, mark.offset, mark.length, draw(st.sampled_from(_SECTIONS)))


def _text(draw: _Draw, data: bytes, marks: list[Mark]) -> bytes:
    mark = _pick_mark(draw, marks, lambda mark: mark.sort == "value" and mark.kind in TEXTS)
    if mark is None:
        return data
    invalid: bytes = draw(st.sampled_from(_BAD_TEXT))[: mark.length]
    return _replaced(data, mark.offset, len(invalid), invalid)


def _byte(draw: _Draw, data: bytes, marks: list[Mark]) -> bytes:
    mark = _pick_mark(draw, marks, lambda mark: mark.sort == "marker" or mark.kind == "bool")
    if mark is None:
        return data
    return _replaced(data, mark.offset, 1, bytes([draw(st.integers(0, 255))]))


_MUTATIONS = [_length, _truncate, _section, _varint, _flip, _text, _byte, _extend, _splice]
