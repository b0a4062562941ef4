"""Single values in Apache Kafka's JSON form and back: numbers, texts, bytes, uuids, float64.

Rules: each converter accepts any object and raises `EncodeError` alone, without a path: `within` adds that
where the error passes.
"""

from __future__ import annotations

__all__ = [
    "LEAF_READERS",
    "LEAF_WRITERS",
    "RANGES",
    "Convert",
    "read_bytes",
    "within",
    "write_bytes",
    "wrong",
]

import math
import struct
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from operator import index
from typing import Any
from uuid import UUID

from coordwire.codec.primitives import as_uuid
from coordwire.errors import EncodeError, OutOfRange, WrongType

Convert = Callable[[Any], Any]

_NAN = bytes.fromhex("7ff8000000000000")
RANGES = {
    "int8": (-(1 << 7), (1 << 7) - 1), "int16": (-(1 << 15), (1 << 15) - 1), "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1), "uint32": (0, (1 << 32) - 1), "int64": (-(1 << 63), (1 << 63) - 1),
}  # fmt: skip
_TO_URL = str.maketrans("+/", "-_")
_FROM_URL = str.maketrans("-_+/", "+/!!")  # what isn't base64url must not pass as base64


def wrong(expected: str, value: object) -> WrongType:
    """The error for a value of another type."""
    return WrongType(f"expected {expected}, got {type(value).__name__}")


def within(step: str | int, error: EncodeError) -> EncodeError:
    """The error with one more step of its path."""
    place = f"[{step}]" if isinstance(step, int) else step
    dot = "." if place and error.path and not error.path.startswith("[") else ""
    error.path = f"{place}{dot}{error.path}"
    return error


def _int_reader(kind: str) -> Convert:
    low, high = RANGES[kind]

    def read(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise wrong("int", value)
        if not low <= value <= high:
            raise OutOfRange(f"beyond {kind}")
        return int(value)

    return read


def _write_int(value: Any) -> int:
    try:
        return int(index(value))  # as `encode`, that takes True and whatever else has an index
    except TypeError:
        raise wrong("int", value) from None


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise wrong("bool", value)
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise wrong("str", value)
    return str(value)


def write_bytes(value: Any) -> str:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise wrong("bytes", value)
    return b2a_base64(value, newline=False).decode()


def read_bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise wrong("base64", value)
    try:
        return a2b_base64(value, strict_mode=True)
    except ValueError as error:
        raise OutOfRange(f"not base64: {error}") from None


def _write_uuid(value: Any) -> str:
    if not isinstance(value, UUID):
        raise wrong("UUID", value)
    return b2a_base64(value.bytes, newline=False)[:22].decode().translate(_TO_URL)


def _read_uuid(value: Any) -> UUID:
    if not isinstance(value, str):
        raise wrong("uuid", value)
    try:
        data = a2b_base64(value.translate(_FROM_URL) + "==", strict_mode=True) if len(value) == 22 else b""
    except ValueError:
        data = b""
    if len(data) != 16 or data[15:] != _last_byte(value):
        raise OutOfRange("not a uuid: expected 22 characters of base64url")
    return as_uuid(data)


def _last_byte(text: str) -> bytes:
    """What the last two of 22 characters say, if no bit is left over (so that one uuid has one text)."""
    return a2b_base64(text[-2:].translate(_FROM_URL) + "==") if text[-1] in "AQgw" else b""


def _write_float(value: Any) -> float | str:
    try:
        bits = _FLOAT.pack(value)
    except (struct.error, TypeError, ValueError, OverflowError):
        raise OutOfRange("beyond float64") if isinstance(value, int) else wrong("float", value) from None
    number: float = _FLOAT.unpack(bits)[0]
    if math.isfinite(number):
        return number
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return "NaN" if bits == _NAN else f"NaN:{bits.hex()}"


_FLOAT = struct.Struct(">d")
_FLOATS = {"NaN": _FLOAT.unpack(_NAN)[0], "Infinity": math.inf, "-Infinity": -math.inf}


def _read_float(value: Any) -> float:
    if isinstance(value, str):
        if value in _FLOATS:
            return float(_FLOATS[value])
        if len(value) == 20 and value.startswith("NaN:"):
            return _read_nan(value[4:])
        raise OutOfRange('not a float: expected a number, "NaN", "Infinity" or "-Infinity"')
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong("number", value)
    try:
        return float(value)
    except OverflowError:
        raise OutOfRange("beyond float64") from None


def _read_nan(digits: str) -> float:
    try:
        (number,) = _FLOAT.unpack(bytes.fromhex(digits))
    except (ValueError, struct.error):
        number = 0.0
    if not math.isnan(number):
        raise OutOfRange("not the bits of a NaN")
    return float(number)


LEAF_WRITERS: dict[str, Convert] = {
    "bool": _bool, "string": _text, "long_string": _text, "bytes": write_bytes, "records": write_bytes,
    "uuid": _write_uuid,
    "float64": _write_float,
} | dict.fromkeys(RANGES, _write_int)  # fmt: skip
LEAF_READERS: dict[str, Convert] = {
    "bool": _bool, "string": _text, "long_string": _text, "bytes": read_bytes, "records": read_bytes,
    "uuid": _read_uuid,
    "float64": _read_float,
} | {kind: _int_reader(kind) for kind in RANGES}  # fmt: skip
