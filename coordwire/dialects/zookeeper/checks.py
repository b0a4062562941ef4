"""Texts and JSON from ZooKeeper, checked value by value.

Strategy: a check takes a value and its path and gives the value back, as its type, or raises; checks for
lists and objects are put together from those of their elements. Rules: what is read raises `DecodeError`;
`checked` turns the same refusals into `EncodeError`s for what is to be written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from coordwire.errors import DecodeError, Malformed, OutOfRange, WrongType

V = TypeVar("V")
Check = Callable[[Any, str], Any]

INTEGER = re.compile(r"-?[0-9]{1,19}")
INT32 = (-(1 << 31), (1 << 31) - 1)
INT64 = (-(1 << 63), (1 << 63) - 1)


def text_of(data: bytes | str, subject: str) -> str:
    if isinstance(data, str):
        return data
    try:
        return bytes(data).decode()
    except UnicodeDecodeError as error:
        raise Malformed(f"{subject} isn't UTF-8: {error.reason}", error.start) from None


def json_object(data: bytes | str, subject: str) -> dict[str, Any]:
    """A JSON object whose keys are unique."""
    text = text_of(data, subject)
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        at = len(text[: error.pos].encode("utf-8", "surrogatepass"))
        raise Malformed(f"{subject} isn't JSON: {error.msg}", at) from None
    except (ValueError, RecursionError) as error:  # too many digits, or too deep
        raise Malformed(f"{subject} isn't JSON: {type(error).__name__}", 0) from None
    if not isinstance(value, dict):
        raise Malformed(f"{subject} is not a JSON object", 0)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value_by_key: dict[str, Any] = {}
    for key, value in pairs:
        if key in value_by_key:
            raise Malformed("a key occurs twice", 0, key)
        value_by_key[key] = value
    return value_by_key


def _no_constant(name: str) -> Any:
    raise Malformed(f"{name} is not a JSON number", 0)


def integer(value: Any, path: str, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise Malformed(f"expected a number, got {_kind(value)}", 0, path)
    if not low <= value <= high:
        raise Malformed(f"{_short(value)} is beyond {low} to {high}", 0, path)
    return value


def _short(number: int) -> str:
    return str(number) if number.bit_length() <= 256 else f"a number of {number.bit_length()} bits"


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a fraction" if isinstance(value, float) else type(value).__name__)


def int32(value: Any, path: str) -> int:
    return integer(value, path, *INT32)


def count(value: Any, path: str) -> int:
    return integer(value, path, 0, INT32[1])


def time_ms(value: Any, path: str) -> int:
    """Milliseconds; Kafka writes them as a text."""
    if isinstance(value, str) and INTEGER.fullmatch(value):
        value = int(value)
    return integer(value, path, *INT64)


def string(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise Malformed(f"expected a string, got {_kind(value)}", 0, path)
    return value


def list_of(check: Callable[[Any, str], V]) -> Callable[[Any, str], list[V]]:
    def run(value: Any, path: str) -> list[V]:
        if not isinstance(value, list):
            raise Malformed(f"expected a list, got {_kind(value)}", 0, path)
        return [check(element, f"{path}[{index}]") for index, element in enumerate(value)]

    return run


def map_of(key: Callable[[str, str], Any], check: Check) -> Check:
    def run(value: Any, path: str) -> dict[Any, Any]:
        if not isinstance(value, dict):
            raise Malformed(f"expected an object, got {_kind(value)}", 0, path)
        return {key(name, join(path, name)): check(item, join(path, name)) for name, item in value.items()}

    return run


def join(path: str, name: Any) -> str:
    return f"{path}.{name}" if path else str(name)


def partition_key(name: str, path: str) -> int:
    if not INTEGER.fullmatch(name) or str(int(name)) != name:
        raise Malformed(f"expected a partition, got {name!r}", 0, path)
    return count(int(name), path)


def built(form: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(form, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise WrongType(f"not JSON: {error}") from None


def checked(check: Check, value: Any, path: str) -> Any:
    """A check on a value to be written."""
    try:
        return check(value, path)
    except DecodeError as error:
        raise WrongType(error.reason, error.path) from None


def encoded(text: str, path: str) -> bytes:
    """A text's bytes."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise OutOfRange(f"not encodable as UTF-8: {error.reason}", path) from None


def number(data: bytes | str, subject: str, check: Check) -> int:
    """A node that is a number in decimal digits."""
    digits = text_of(data, subject)
    if not INTEGER.fullmatch(digits):
        raise Malformed(f"{subject} is not a number", 0)
    return int(check(int(digits), ""))
