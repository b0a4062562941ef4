"""Messages of any version, requests, structs and whole frames; hostile bytes.

Strategy: a value's strategy is put together from the field table of its class and version, once. Rules: a
message always encodes in the version that it was drawn for, and decodes to an equal one. Most values are
small, so that drawing one takes about a millisecond; every part of one shrinks. One message of five is
large: its lengths and counts may need two and three varint bytes. What is long there is one character
repeated, and what is many is one or two tiny elements repeated, so that it costs little.

Hostile bytes: valid encodings, mutated at the lengths, counts, tags and texts, whose positions the reader's
marks give. Some of what comes out is valid all the same, and most is refused deep inside; all of it shrinks.
"""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Generic, Literal, NamedTuple, TypeVar, cast, overload
from uuid import UUID

from coordwire.codec import Field, Message, Request, Struct, VersionLayout
from coordwire.codec.fields import TEXTS
from coordwire.codec.interpreter.decoder import Mark, Reader
from coordwire.codec.primitives import uvarint
from coordwire.codec.walk import fields_of, layout_of
from coordwire.frames import PREFIX, encode_request, encode_response
from coordwire.messages import find_message
from coordwire.testing.hypothesis_import import st
from coordwire.versions import ApiKey

S = TypeVar("S", bound=Struct)
M = TypeVar("M", bound=Message)
R = TypeVar("R", bound=Request[Any])
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

Size = Literal["tiny", "small", "large"]
SIZES: st.SearchStrategy[Size] = st.sampled_from(("small",) * 4 + ("large",))
"""How large what is drawn may be. "tiny", without a long text, is an element of many."""

_MANY = (127, 128, 200)
"""Elements of a large message's array; from 127 on, the count with its null takes two bytes as a varint."""


def versions_of(cls: type[Message]) -> st.SearchStrategy[int]:
    """The versions of a message."""
    return st.sampled_from(cls.versions)


class Versioned(NamedTuple, Generic[M]):
    """A message, and a version that can carry it: `message, version = drawn`."""

    message: M
    version: int


def messages(
    cls: type[M], *, version: int | None = None, nan: bool = False, unknown_tags: bool = True
) -> st.SearchStrategy[M]:
    """Messages that one version can carry: null where it may be, tagged fields at times at their default,
    fields of other versions at theirs.

    version: None for messages of all versions, each of which one version at least can carry; to encode them,
    draw from `versioned`, which gives that version too. nan: whether a float64 may be NaN (no message that
    holds one equals itself). unknown_tags: whether there may be unknown tagged fields, in flexible versions,
    at any depth. One message of five is large: texts and bytes of up to 16,384 bytes, arrays of up to 200
    small elements, up to 128 unknown tags. Raises `ValueError` if the message has no such version.
    """
    if version is None:
        return versioned(cls, nan=nan, unknown_tags=unknown_tags).map(lambda pair: pair.message)
    check_version(cls, version)
    return SIZES.flatmap(lambda size: sized(cls, version, size, nan, unknown_tags))


def sized(
    cls: type[S], version: int, size: Size, nan: bool = False, unknown_tags: bool = True
) -> st.SearchStrategy[S]:
    """Messages or structs of one size."""
    return _structs(cls, version, nan, unknown_tags, size, 0)


def versioned(
    *classes: type[M], nan: bool = False, unknown_tags: bool = True
) -> st.SearchStrategy[Versioned[M]]:
    """Messages of these classes in all versions, each with the version that it was drawn for.

    As `messages` otherwise; it shrinks to the first class and its oldest version. Raises `ValueError` without
    a class.
    """
    if not classes:
        raise ValueError("expected at least one class")

    def of(cls: type[M], version: int) -> st.SearchStrategy[Versioned[M]]:
        strategy = messages(cls, version=version, nan=nan, unknown_tags=unknown_tags)
        return st.builds(Versioned[M], strategy, st.just(version))  # of which a report shows each value

    pairs = st.sampled_from(classes).flatmap(lambda cls: st.tuples(st.just(cls), versions_of(cls)))
    return pairs.flatmap(lambda pair: of(*pair))


@overload
def requests(*, nan: bool = ..., unknown_tags: bool = ...) -> st.SearchStrategy[Request[Any]]: ...
@overload
def requests(
    first: type[R], /, *classes: type[R], nan: bool = ..., unknown_tags: bool = ...
) -> st.SearchStrategy[R]: ...
def requests(*classes: Any, nan: bool = False, unknown_tags: bool = True) -> st.SearchStrategy[Any]:
    """Requests of these classes, by default of all APIs, in all versions; `versioned` gives each with its
    version.

    As `messages` otherwise. Raises `ValueError` for a class that isn't a request's.
    """
    selection = classes or tuple(find_message(key, "request") for key in ApiKey)
    for cls in selection:
        if cls.direction != "request" or cls.api_key is None:
            raise ValueError(f"{cls.__name__} is not a request")
    return versioned(*selection, nan=nan, unknown_tags=unknown_tags).map(lambda pair: pair.message)


def structs(
    cls: type[S], *, version: int, nan: bool = False, unknown_tags: bool = True
) -> st.SearchStrategy[S]:
    """As `messages`, for a struct inside them (`version` is that of the message around it)."""
    return SIZES.flatmap(lambda size: sized(cls, version, size, nan, unknown_tags))


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
        message_class = cls
        return versions_of(cls).flatmap(lambda v: frames(message_class, version=v, unknown_tags=unknown_tags))
    check_version(cls, version)
    return _frames(cls, version, unknown_tags)


def check_version(cls: type[Message], version: int) -> None:
    """Raises `ValueError` if the message has no such version."""
    if version not in cls.versions:
        raise ValueError(f"{cls.__name__} has no version {version}")


def cached(function: F) -> F:
    """`cache`, with the function's own type."""
    return cast(F, cache(function))


# --- values -------------------------------------------------------------------------------------------------


_SHORT = {"string": st.text(max_size=8), "bytes": st.binary(max_size=8)}
_LONG = {
    "string": st.sampled_from(["x" * 126, "x" * 127, "é" * 64, "\0", "𝔨afka", "x" * 300]),
    "bytes": st.sampled_from([b"\xff" * 126, b"\0" * 127, bytes(300)]),
}
_LONGER = {
    "string": st.sampled_from(["x" * 16_382, "x" * 16_383, "x" * 16_384]),
    "bytes": st.sampled_from([b"x" * 16_382, b"x" * 16_383, b"x" * 16_384]),
}
"""At 16,383 bytes the length with its null takes three bytes as a varint."""

_TEXT = _SHORT["string"] | _LONG["string"]
_UUIDS = st.binary(min_size=16, max_size=16).map(lambda data: UUID(bytes=data)) | st.just(UUID(int=0))
_TAG_NUMBERS = st.integers(0, 40) | st.integers(0, (1 << 32) - 1)
_LONG_TAGS = st.sampled_from([b"x" * 127, b"x" * 128, b"x" * 16_383, b"x" * 16_384])


@cached
def _leaf(kind: str, nan: bool, size: Size) -> st.SearchStrategy[Any]:
    if kind in _INTS:
        bits, signed = _INTS[kind]
        low = -(1 << bits - 1) if signed else 0
        return st.integers(low, low + (1 << bits) - 1)
    if kind == "float64":
        numbers = st.floats(allow_nan=False)
        return numbers | st.sampled_from(_NANS) if nan else numbers
    if kind in ("bool", "uuid"):
        return st.booleans() if kind == "bool" else _UUIDS
    kind = "string" if kind in TEXTS else "bytes"
    if size == "tiny":
        return _SHORT[kind]
    usual = _SHORT[kind] | _LONG[kind]
    return usual | _LONGER[kind] if size == "large" else usual


@cached
def _structs(
    cls: Any, version: int, nan: bool, unknown_tags: bool, size: Size, depth: int
) -> st.SearchStrategy[Any]:
    layout = layout_of(cls, version)
    fields = {field.name: _field(field, version, nan, unknown_tags, size, depth) for field in layout.inline}
    for field in layout.tagged.values():
        value = _field(field, version, nan, unknown_tags, size, depth)
        fields[field.name] = st.builds(field.fresh_default) | value
    if layout.flexible and unknown_tags:
        fields["tags"] = _tags(layout, size)
    return st.builds(cls, **fields)


def _field(
    field: Field, version: int, nan: bool, unknown_tags: bool, size: Size, depth: int
) -> st.SearchStrategy[Any]:
    def values(size: Size) -> st.SearchStrategy[Any]:
        if field.struct is None:
            return _leaf(field.type, nan, size)
        return _structs(field.struct, version, nan, unknown_tags, size, depth + 1)

    value = values(size)
    if field.array:
        value = st.lists(value, max_size=1 if size == "tiny" else max(_ELEMENTS - depth, 1))
        if size == "large":
            value |= _many(values("tiny"))
    return st.none() | value if field.nullable(version) else value


def _many(elements: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Lists of one or two elements that are drawn, repeated."""
    samples = st.lists(elements, min_size=1, max_size=2)
    return st.builds(_repeated, samples, st.sampled_from(_MANY))


def _repeated(samples: list[Any], count: int) -> list[Any]:
    return [_copied(samples[index % len(samples)]) for index in range(count)]


def _copied(value: Any) -> Any:
    """The value, sharing nothing that can be changed; quicker than `copy.deepcopy`."""
    if isinstance(value, list):
        return [_copied(element) for element in value]
    if isinstance(value, Struct):
        duplicate: Any = copy.copy(value)
        for field in fields_of(value):
            setattr(duplicate, field.name, _copied(getattr(value, field.name)))
        duplicate.tags = value.tags and dict(value.tags)
        return duplicate
    return value


def _tags(layout: VersionLayout, size: Size) -> st.SearchStrategy[dict[int, bytes] | None]:
    known = layout.tagged.keys() | layout.reserved.keys()
    numbers = _TAG_NUMBERS.filter(lambda tag: tag not in known)
    short = st.dictionaries(numbers, st.binary(max_size=4), min_size=1, max_size=2)
    if size != "large":
        return st.none() | short
    long = st.dictionaries(numbers, _LONG_TAGS, min_size=1, max_size=1)
    free = [number for number in range(200) if number not in known]
    return st.none() | short | long | st.builds(lambda: dict.fromkeys(free[:128], b""))


# --- frames -------------------------------------------------------------------------------------------------


@cached
def _frames(cls: Any, version: int, unknown_tags: bool) -> st.SearchStrategy[bytes]:
    bodies = messages(cls, version=version, nan=True, unknown_tags=unknown_tags)
    ids, versions = _leaf("int32", False, "small"), st.just(version)
    if cls.direction == "response":
        return st.builds(encode_response, bodies, version=versions, correlation_id=ids)
    return st.builds(
        encode_request, bodies, version=versions, correlation_id=ids, client_id=st.none() | _TEXT
    )


# --- hostile strategies ---


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
