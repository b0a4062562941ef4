"""Primitives of the wire, as compiled decoders and encoders use them: fast, and only as careful as is safe.

Strategy: compiled code is straight lines of fused `struct` calls; the functions that it can't inline are
here. Rules: no function here has a path or words a refusal. Any suspect input raises (`Refused`, or what
Python itself raises), and `coordwire.codec` walks the same bytes or value again, exactly, to word the error.
Slices never raise on missing bytes; the position then runs past the end, where the caller notices.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable, Mapping
from struct import Struct as Compiled
from typing import Any
from uuid import UUID

from coordwire.limits import MAX_ARRAY_ELEMENTS, MAX_TAGGED_FIELDS

MAX_STRING = 32767
"""Kafka writes and reads no string of more bytes, though a compact length could say more."""

ZERO_UUID = UUID(int=0)
BOOLEANS = (False, True)
"""Indexed by the byte: any other byte raises IndexError."""

ELEMENT_COST = 200
"""What an unknown tagged field counts for in memory: its number, its dict entry, its bytes object."""


class Refused(Exception):
    """A fast path doesn't accept the input; never leaves the package."""


new = object.__new__
_set = object.__setattr__
_from_bytes = int.from_bytes


def long_uvarint(data: bytes, pos: int, first: int) -> tuple[int, int]:
    """Go on after the first byte of an unsigned varint: value and position after it.

    Called for bytes above 127, and for a 0 that says null where null is not allowed.
    """
    if first == 0:
        raise Refused
    value = first & 127
    for shift in (7, 14, 21, 28):
        byte = data[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if byte == 0 or value >> 32:
                raise Refused
            return value, pos
    raise Refused


def long_string(data: bytes, pos: int, first: int) -> tuple[int, int]:
    """`long_uvarint` for a string's compact length, which Kafka bounds."""
    value, pos = long_uvarint(data, pos, first)
    if value > MAX_STRING + 1:
        raise Refused
    return value, pos


def uvarint(value: int) -> bytes:
    """An unsigned varint's bytes."""
    if value < 128:
        return value.to_bytes()
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def string_length(value: int) -> bytes:
    """A string's compact length (its bytes + 1), bounded as Kafka bounds it."""
    if value > MAX_STRING + 1:
        raise Refused
    return uvarint(value)


class _Lengths(dict[int, bytes]):
    """Compact lengths by the size that they tell: a look-up where they take one byte, a call where more."""

    def __init__(self, write: Callable[[int], bytes]) -> None:
        super().__init__((size, write(size + 1)) for size in range(127))
        self.write = write

    def __missing__(self, size: int) -> bytes:
        return self.write(size + 1)


LENGTHS = _Lengths(uvarint)
"""Of bytes and arrays."""
STRING_LENGTHS = _Lengths(string_length)


_KEPT = 128
"""Longer arrays of numbers compile their format each time."""


class _Unpackers(dict[int, Callable[[bytes, int], tuple[Any, ...]]]):
    """`unpack_from` of so many numbers in a row; it finds missing bytes before it makes any number."""

    def __init__(self, code: str, less: int = 0) -> None:
        self.code = code
        self.less = less

    def __missing__(self, count: int) -> Callable[[bytes, int], tuple[Any, ...]]:
        if count - self.less > MAX_ARRAY_ELEMENTS:
            raise Refused
        unpack = Compiled(f">{count - self.less}{self.code}").unpack_from
        if count < _KEPT:
            self[count] = unpack
        return unpack


class _Packers(dict[int, Callable[..., bytes]]):
    """`pack` of so many numbers in a row."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __missing__(self, count: int) -> Callable[..., bytes]:
        pack = Compiled(f">{count}{self.code}").pack
        if count < _KEPT:
            self[count] = pack
        return pack


UNPACK_INT8S, PACK_INT8S = _Unpackers("b"), _Packers("b")
UNPACK_INT16S, PACK_INT16S = _Unpackers("h"), _Packers("h")
UNPACK_INT32S, PACK_INT32S = _Unpackers("i"), _Packers("i")
UNPACK_INT64S, PACK_INT64S = _Unpackers("q"), _Packers("q")
UNPACK_UINT16S, PACK_UINT16S = _Unpackers("H"), _Packers("H")
UNPACK_UINT32S, PACK_UINT32S = _Unpackers("I"), _Packers("I")
UNPACK_FLOAT64S, PACK_FLOAT64S = _Unpackers("d"), _Packers("d")
UNPACK_COMPACT_INT32S = _Unpackers("i", less=1)
"""By the compact count, which is one more."""


def as_uuid(data: bytes) -> UUID:
    """A UUID from its 16 bytes, without the checks of its constructor."""
    value = new(UUID)
    _set(value, "int", _from_bytes(data))
    _set(value, "is_safe", ZERO_UUID.is_safe)
    return value


_TO_URL = str.maketrans("+/", "-_")


def uuid_text(value: UUID) -> str:
    """A UUID as Kafka prints it: 22 characters of base64url, without padding (its class Uuid)."""
    return b2a_base64(value.bytes, newline=False)[:22].decode().translate(_TO_URL)


def as_list(value: Any) -> list[Any]:
    """The elements of a value that isn't a plain list; only tuples and subclasses of both serve."""
    if isinstance(value, (list, tuple)):
        return list(value)
    raise Refused


def as_bytes(value: object) -> bytes:
    """The bytes of a value that isn't plain bytes."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise Refused


def read_tag(data: bytes, pos: int, last: int) -> tuple[int, int, int]:
    """A tagged field's number, the position of its bytes, and the one after them."""
    tag = data[pos]
    pos += 1
    if tag > 127:
        tag, pos = long_uvarint(data, pos, tag)
    size = data[pos]
    pos += 1
    if size > 127:
        size, pos = long_uvarint(data, pos, size)
    if tag <= last or pos + size > len(data):
        raise Refused
    return tag, pos, pos + size


def tag_count(data: bytes, pos: int, first: int, elements: int, memory: int) -> tuple[int, int, int, int]:
    """The count of tagged fields after its first byte, charged: count, position, budgets left."""
    if first > 127:
        first, pos = long_uvarint(data, pos, first)
    elements -= first
    memory -= first * ELEMENT_COST
    if first * 2 > len(data) - pos or first > MAX_TAGGED_FIELDS or elements < 0 or memory < 0:
        raise Refused
    return first, pos, elements, memory


def unknown_tags(
    data: bytes, pos: int, first: int, elements: int, memory: int, reserved: tuple[int, ...] = ()
) -> tuple[dict[int, bytes], int, int, int]:
    """A section of tagged fields that are all unknown, after its count's first byte. `reserved`: numbers
    that
    belong to fields of other versions."""
    count, pos, elements, memory = tag_count(data, pos, first, elements, memory)
    tags: dict[int, bytes] = {}
    last = -1
    for _ in range(count):
        last, pos, end = read_tag(data, pos, last)
        if last in reserved:
            raise Refused
        tags[last] = data[pos:end]
        pos = end
    return tags, pos, elements, memory


def write_tags(
    known: list[tuple[int, bytes]], tags: Mapping[int, bytes] | None, reserved: tuple[int, ...] = ()
) -> bytes:
    """The section of tagged fields after a struct. `reserved`: numbers that an unknown one may not have."""
    if tags:
        for tag, value in tags.items():
            if tag.__class__ is not int or not 0 <= tag < 1 << 32 or tag in reserved:
                raise Refused
            known.append((tag, value if value.__class__ is bytes else as_bytes(value)))
        known.sort()
    parts = [uvarint(len(known))]
    for tag, value in known:
        parts += (uvarint(tag), uvarint(len(value)), value)
    return b"".join(parts)
