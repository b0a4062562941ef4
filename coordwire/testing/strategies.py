"""Hypothesis strategies: messages of any version, whole frames, and bytes that mean harm.

    from hypothesis import given
    from coordwire.messages import JoinGroupRequest
    from coordwire.testing import strategies

    @given(strategies.messages(JoinGroupRequest, version=9))
    def test_my_coordinator_answers(request): ...

Strategy: a value's strategy is put together from the field table of its class and version, once. Hostile
bytes are valid ones, mutated where the reader's marks say that lengths, counts, tags and texts are.

Rules: what `messages` gives always encodes, and decodes to an equal message. Values are small, so that
drawing one takes about a millisecond; every part of one shrinks.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast
from uuid import UUID

try:
    from hypothesis import strategies as st
except ImportError as missing:
    raise ImportError(
        "coordwire.testing.strategies needs hypothesis: pip install 'coordwire[test]'"
    ) from missing

from coordwire.codec import Field, Message, Struct, VersionLayout
from coordwire.codec.interpreter.decoder import Mark, Reader
from coordwire.codec.primitives import uvarint
from coordwire.frames import encode_request, encode_response
from coordwire.messages import find_message
from coordwire.versions import ApiKey

__all__ = ["frames", "hostile_bytes", "messages", "structs", "versions_of"]

S = TypeVar("S", bound=Struct)
M = TypeVar("M", bound=Message)
F = TypeVar("F", bound=Callable[..., Any])

_INTS = {
    "int8": (8, True), "int16": (16, True), "int32": (32, True), "int64": (64, True),
    "uint16": (16, False), "uint32": (32, False),
}  # fmt: skip
_NANS = [struct.unpack(">d", bytes.fromhex(bits))[0] for bits in (
    "7ff8000000000000", "fff8000000000000", "7ff0000000000001", "7fffffffffffffff",
)]  # fmt: skip
_ELEMENTS = 3
"""Elements of an array at most; nested ones have fewer."""


def versions_of(cls: type[Message]) -> st.SearchStrategy[int]:
    """The versions that a message has."""
    return st.sampled_from(cls.versions)


def messages(
    cls: type[M], *, version: int, nan: bool = False, unknown_tags: bool = True
) -> st.SearchStrategy[M]:
    """Messages that one version can carry: null where it may be, tagged fields at times at their default,
    fields of other versions at theirs.

    nan: whether a float64 may be NaN (no message that holds one equals itself). unknown_tags: whether there
    may be unknown tagged fields, in flexible versions, at any depth. Raises `ValueError` if the message has
    no such version.
    """
    _check(cls, version)
    return _structs(cls, version, nan, unknown_tags, 0)


def structs(
    cls: type[S], *, version: int, nan: bool = False, unknown_tags: bool = True
) -> st.SearchStrategy[S]:
    """As `messages`, for a struct inside them (`version` is that of the message around it)."""
    return _structs(cls, version, nan, unknown_tags, 0)


def frames(
    cls: type[Message] | None = None, *, version: int | None = None, unknown_tags: bool = True
) -> st.SearchStrategy[bytes]:
    """Whole frames, size prefix and header included.

    cls: which request or response, by default any of all APIs; version: which of its versions, by default
    any. Raises `ValueError` for a class that is neither, or without that version.
    """
    if cls is None:
        if version is not None:
            raise ValueError("a version alone says nothing: give the class too")
        kinds = [find_message(key, direction) for key in ApiKey for direction in ("request", "response")]
        return st.sampled_from(kinds).flatmap(lambda kind: frames(kind, unknown_tags=unknown_tags))
    if cls.direction not in ("request", "response") or cls.api_key is None:
        raise ValueError(f"{cls.__name__} is neither a request nor a response")
    if version is None:
        chosen = cls
        return versions_of(cls).flatmap(lambda v: frames(chosen, version=v, unknown_tags=unknown_tags))
    _check(cls, version)
    return _frames(cls, version, unknown_tags)


def hostile_bytes(cls: type[Message], *, version: int) -> st.SearchStrategy[bytes]:
    """Bytes that a decoder of this message shouldn't trust; some are valid all the same.

    Valid encodings cut off or extended, with bytes flipped or spliced, lengths and counts of 0, null or the
    greatest, over-long varints, tags repeated or out of order, invalid UTF-8, odd booleans and struct
    markers; and bytes at random. Raises `ValueError` if the message has no such version.
    """
    _check(cls, version)
    return _hostile(cls, version)


def _check(cls: type[Message], version: int) -> None:
    if version not in cls.versions:
        raise ValueError(f"{cls.__name__} has no version {version}")


def _cached(function: F) -> F:
    return cast(F, cache(function))


# --- values -------------------------------------------------------------------------------------------------


_TEXT = st.text(max_size=8) | st.sampled_from(["x" * 126, "x" * 127, "é" * 64, "\0", "𝔨afka", "x" * 300])
_BYTES = st.binary(max_size=8) | st.sampled_from([b"\xff" * 126, b"\0" * 127, bytes(300)])
_UUIDS = st.binary(min_size=16, max_size=16).map(lambda data: UUID(bytes=data)) | st.just(UUID(int=0))


@_cached
def _leaf(kind: str, nan: bool) -> st.SearchStrategy[Any]:
    if kind in _INTS:
        bits, signed = _INTS[kind]
        low = -(1 << bits - 1) if signed else 0
        return st.integers(low, low + (1 << bits) - 1)
    if kind == "float64":
        numbers = st.floats(allow_nan=False)
        return numbers | st.sampled_from(_NANS) if nan else numbers
    return {"bool": st.booleans(), "uuid": _UUIDS, "string": _TEXT}.get(kind, _BYTES)


@_cached
def _structs(cls: Any, version: int, nan: bool, unknown_tags: bool, depth: int) -> st.SearchStrategy[Any]:
    layout: VersionLayout = cls._layout_.at(version)
    fields = {field.name: _field(field, version, nan, unknown_tags, depth) for field in layout.inline}
    for field in layout.tagged.values():
        value = _field(field, version, nan, unknown_tags, depth)
        fields[field.name] = st.builds(field.fresh_default) | value
    if layout.flexible and unknown_tags:
        fields["tags"] = _tags(layout)
    return st.builds(cls, **fields)


def _field(field: Field, version: int, nan: bool, unknown_tags: bool, depth: int) -> st.SearchStrategy[Any]:
    value = (
        _structs(field.struct, version, nan, unknown_tags, depth + 1)
        if field.struct is not None
        else _leaf(field.type, nan)
    )
    if field.array:
        value = st.lists(value, max_size=max(_ELEMENTS - depth, 1))
    return st.none() | value if field.nullable(version) else value


def _tags(layout: VersionLayout) -> st.SearchStrategy[dict[int, bytes] | None]:
    known = layout.tagged.keys() | layout.reserved.keys()
    numbers = (st.integers(0, 40) | st.integers(0, (1 << 32) - 1)).filter(lambda tag: tag not in known)
    some = st.dictionaries(numbers, st.binary(max_size=4), min_size=1, max_size=2)
    return st.one_of(st.none(), st.none(), st.none(), some)


# --- frames -------------------------------------------------------------------------------------------------


@_cached
def _frames(cls: Any, version: int, unknown_tags: bool) -> st.SearchStrategy[bytes]:
    bodies = messages(cls, version=version, nan=True, unknown_tags=unknown_tags)
    ids = _leaf("int32", False)
    if cls.direction == "response":
        return st.builds(
            lambda body, number: encode_response(body, version=version, correlation_id=number), bodies, ids
        )
    return st.builds(
        lambda body, number, client: encode_request(
            body, version=version, correlation_id=number, client_id=client
        ),
        bodies,
        ids,
        st.none() | _TEXT,
    )


# --- hostile bytes ------------------------------------------------------------------------------------------

_Draw = Callable[[st.SearchStrategy[Any]], Any]

_LENGTHS = ("length", "count")
_BAD_TEXT = [b"\xff", b"\x80", b"\xc0\x80", b"\xed\xa0\x80", b"\xe2\x82", b"\xf5\x80\x80\x80", b"\xf0\x80"]
_CLASSIC = [0, -1, -2, 1, 32767, -32768]
_COMPACT = [0, 1, 2, 0x7F, 0x7FFF, 0x8000, 0x8001, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF]
_VARINTS = [b"\x80\x00", b"\x81\x80\x00", b"\xff\xff\xff\xff\x1f", b"\x80\x80\x80\x80\x80\x01", b"\xff" * 12]
_SECTIONS = [
    b"\x02\x29\x00\x29\x00", b"\x02\x2a\x00\x29\x00", b"\x01\x29\x7f", b"\x01\xa9\x00\x00",
    b"\x01\x00\x00", b"\x01\x29\xff\xff\xff\xff\x0f", b"\x02\x00\x00\x00\x00", b"\x7f", b"\x81\x00\x29\x00",
]  # fmt: skip
"""Sections of tagged fields: repeated, unordered, beyond the end, over-long, a known one of no bytes …"""


@_cached
def _hostile(cls: Any, version: int) -> st.SearchStrategy[bytes]:
    valid = messages(cls, version=version, nan=True)

    @st.composite
    def mutated(draw: _Draw) -> bytes:
        data: bytes = draw(valid).encode(version=version)
        marks: list[Mark] = []
        Reader(data, 0, version, marks=marks).message(cls)
        for _ in range(draw(st.integers(1, 2))):
            data = draw(st.sampled_from(_MUTATIONS))(draw, data, marks)
        return data

    return st.binary(max_size=24) | mutated() | mutated() | mutated()


def _replaced(data: bytes, at: int, length: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + length :]


def _chosen(draw: _Draw, marks: list[Mark], wanted: Callable[[Mark], bool]) -> Mark | None:
    fitting = [mark for mark in marks if mark.length and wanted(mark)]
    return draw(st.sampled_from(fitting)) if fitting else None


def _truncate(draw: _Draw, data: bytes, marks: list[Mark]) -> bytes:
    end: int = draw(st.integers(0, max(len(data) - 1, 0)))
    return data[:end]


def _extend(draw: _Draw, data: bytes, marks: list[Mark]) -> bytes:
    more: bytes = draw(st.binary(min_size=1, max_size=8))
    return data + more


def _flip(draw: _Draw, data: bytes, marks: list[Mark]) -> bytes:
    if not data:
        return data
    at = draw(st.integers(0, len(data) - 1))
    return _replaced(data, at, 1, bytes([data[at] ^ draw(st.integers(1, 255))]))


def _splice(draw: _Draw, data: bytes, marks: list[Mark]) -> bytes:
    at: int = draw(st.integers(0, len(data)))
    return _replaced(data, at, draw(st.integers(0, 4)), draw(st.binary(max_size=4)))


def _length(draw: _Draw, data: bytes, marks: list[Mark]) -> bytes:
    mark = _chosen(draw, marks, lambda mark: mark.sort in _LENGTHS or mark.value is None)
    if mark is None:
        return data
    if draw(st.booleans()):
        return _replaced(data, mark.offset, mark.length, uvarint(draw(st.sampled_from(_COMPACT))))
    form = {2: ">h", 4: ">i"}.get(mark.length, ">b")
    value = draw(st.sampled_from(_CLASSIC)) if form != ">b" else draw(st.integers(-128, 127))
    return _replaced(data, mark.offset, mark.length, struct.pack(form, value))


def _varint(draw: _Draw, data: bytes, marks: list[Mark]) -> bytes:
    mark = _chosen(draw, marks, lambda mark: mark.sort in (*_LENGTHS, "tags"))
    if mark is None:
        return data
    return _replaced(data, mark.offset, mark.length, draw(st.sampled_from(_VARINTS)))


def _section(draw: _Draw, data: bytes, marks: list[Mark]) -> bytes:
    mark = _chosen(draw, marks, lambda mark: mark.sort == "tags" and mark.kind == "uvarint")
    if mark is None:
        return data
    return _replaced(data, mark.offset, mark.length, draw(st.sampled_from(_SECTIONS)))


def _text(draw: _Draw, data: bytes, marks: list[Mark]) -> bytes:
    mark = _chosen(draw, marks, lambda mark: mark.sort == "value" and mark.kind == "string")
    if mark is None:
        return data
    bad: bytes = draw(st.sampled_from(_BAD_TEXT))[: mark.length]
    return _replaced(data, mark.offset, len(bad), bad)


def _byte(draw: _Draw, data: bytes, marks: list[Mark]) -> bytes:
    mark = _chosen(draw, marks, lambda mark: mark.sort == "marker" or mark.kind == "bool")
    if mark is None:
        return data
    return _replaced(data, mark.offset, 1, bytes([draw(st.integers(0, 255))]))


_MUTATIONS = [_length, _truncate, _section, _varint, _flip, _text, _byte, _extend, _splice]
