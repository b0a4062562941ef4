"""Messages as JSON and back, in Apache Kafka's own JSON form (its request log's and `kafka-dump-log`'s).

    camelCase names       Kafka's, in Kafka's order, of the fields that the version has
    int8 … int64, uint32  numbers, however large (beyond 2^53 too)
    float64               a number, or "NaN", "Infinity", "-Infinity"; a NaN with other bits than the usual
                          7ff8000000000000 is "NaN:" and its 16 hex digits, so that the same bytes come back
    bytes, records        standard base64 with padding
    uuid                  22 characters of base64url without padding, as Kafka prints it
    tagged fields         absent at their default
    unknown tagged fields "_tags": {"7": "<base64>"}, at the depth where they stood

Strategy: one `_Form` for each class and version, made at first use from the field table: for every field its
names and the two functions that convert it (`LEAF_WRITERS`, `LEAF_READERS`), so that nothing is decided again
for each value.

Rules: what the version can't carry is refused as `encode` refuses it; nothing but `EncodeError` leaves,
whatever a form holds. Paths name fields as Python does, as all of coordwire's errors do; a path is put
together only when an error is raised. Each converter of a single value accepts any object and raises
`EncodeError` alone, without a path: `within` adds that where the error passes.
"""

from __future__ import annotations

import math
import struct
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Mapping
from operator import index
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

from coordwire.codec import NEVER, Field, Message, Struct, VersionLayout
from coordwire.codec.message import refused_version
from coordwire.codec.names import suggestion
from coordwire.codec.primitives import as_uuid, new, uuid_text
from coordwire.codec.walk import layout_of
from coordwire.errors import EncodeError, NotInVersion, OutOfRange, WrongType

__all__ = ["Json", "from_json", "to_json"]

RANGES = {
    "int8": (-(1 << 7), (1 << 7) - 1), "int16": (-(1 << 15), (1 << 15) - 1), "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1), "uint32": (0, (1 << 32) - 1), "int64": (-(1 << 63), (1 << 63) - 1),
}  # fmt: skip


Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""What `json.dumps` writes and `json.loads` reads."""

M = TypeVar("M", bound=Message)

_ABSENT: Any = object()
_TAGS = "_tags"
_MAX_TAG = (1 << 32) - 1
_PLAIN: dict[str, type] = {"bool": bool, "string": str, "long_string": str} | dict.fromkeys(RANGES, int)
"""The class of the values that are in JSON as they are."""


def to_json(message: Message, *, version: int) -> dict[str, Json]:
    """The message as it is in one api version, in Apache Kafka's JSON form: what `json.dumps` takes.

    Raises `NotInVersion` if a field is set that the version can't carry (and that isn't ignorable) or the
    message has no such version, `WrongType` if a value isn't of its field's type. Whether numbers and lengths
    fit their types is left to `encode` and `from_json`, but for tags.
    """
    return _form_of(type(message), version).write(message)


def from_json(cls: type[M], form: Mapping[str, object], *, version: int) -> M:
    """The message that a JSON form (as `json.loads` gives it) says, for one api version.

    Every field of the version must be there, but for tagged ones. Raises `WrongType` for a missing or unknown
    field or a value of a wrong JSON type, `OutOfRange` for a number beyond its type or text that isn't base64
    or a uuid, `NotInVersion` for a field or null that only other versions have; each with the field's path.
    """
    message: M = _form_of(cls, version).read(form)
    return message


def _form_of(cls: type[Message], version: int) -> _Form:
    if version not in cls.versions:
        raise refused_version(cls, version)
    return _form(cls, version)


_FORMS: dict[tuple[type[Struct], int], _Form] = {}


def _form(cls: type[Struct], version: int) -> _Form:
    form = _FORMS.get((cls, version))
    if form is None:
        form = _FORMS[cls, version] = _Form(layout_of(cls, version))
    return form


class _Form:
    """One struct in one version: how it is written to JSON and read from it."""

    __slots__ = ("absent", "cls", "layout", "must_rest", "names", "readers", "writers")

    def __init__(self, layout: VersionLayout) -> None:
        self.layout = layout
        self.cls = layout.cls
        self.absent = [(field.name, field.fresh_default) for field in layout.absent]
        self.must_rest = [(field.name, field.is_set) for field in layout.absent if not field.ignorable]
        self.names = {field.json_name: field for field in layout.table.fields}
        present = [field for field in layout.table.fields if field.exists(layout.version)]
        self.writers: list[tuple[str, str, type | None, Convert]] = []
        self.readers: list[tuple[str, str, Convert, Callable[[], Any] | None]] = []
        for field in present:
            tagged = field.tag is not None
            plain = None if tagged or field.array else _PLAIN.get(field.type)
            self.writers.append((field.name, field.json_name, plain, _writer(field, layout.version)))
            default = field.fresh_default if tagged else None
            self.readers.append((field.name, field.json_name, _reader(field, layout.version), default))

    # --- to JSON ---

    def write(self, value: Any) -> dict[str, Json]:
        if not isinstance(value, self.cls):
            raise wrong(self.cls.__name__, value)
        for name, is_set in self.must_rest:
            if is_set(getattr(value, name)):
                raise NotInVersion(f"set, but not in version {self.layout.version}", name)
        out: dict[str, Json] = {}
        name = ""
        try:
            for name, key, plain, convert in self.writers:
                content = getattr(value, name)
                if content.__class__ is not plain:
                    content = convert(content)
                    if content is _ABSENT:
                        continue
                out[key] = content
            if value.tags:
                name = "tags"
                out[_TAGS] = self.write_tags(value.tags)
        except EncodeError as error:
            raise within(name, error) from None
        return out

    def write_tags(self, tags: Any) -> dict[str, Json]:
        if not self.layout.flexible:
            raise NotInVersion(f"version {self.layout.version} has no tagged fields")
        if not isinstance(tags, dict):
            raise wrong("dict", tags)
        out: dict[str, Json] = {}
        for tag, data in tags.items():
            if not isinstance(tag, int) or isinstance(tag, bool):
                raise wrong("int as a tag", tag)
            self.check_tag(tag)
            try:
                out[str(int(tag))] = write_bytes(data)
            except EncodeError as error:
                raise within(int(tag), error) from None
        return out

    def check_tag(self, tag: int) -> None:
        if not 0 <= tag <= _MAX_TAG:
            raise OutOfRange("a tag is beyond uint32")
        if tag in self.layout.tagged:
            raise OutOfRange(f"tag {tag} is the known field {self.layout.tagged[tag].name}")

    # --- from JSON ---

    def read(self, form: Any) -> Any:
        if not isinstance(form, Mapping):
            raise wrong("object", form)
        value: Any = new(self.cls)
        value.tags = None
        known_count = 0
        name = ""
        try:
            for name, key, convert, default in self.readers:
                content = form.get(key, _ABSENT)
                if content is not _ABSENT:
                    known_count += 1
                    setattr(value, name, convert(content))
                elif default is None:
                    missing, name = name, ""
                    self.refuse_unknown(form)  # a misspelt name says more than the one that it leaves out
                    name = missing
                    raise WrongType(f'missing: expected "{key}"')
                else:
                    setattr(value, name, default())
            if known_count != len(form):
                name = "tags"
                value.tags = self.read_tags(form.get(_TAGS, {}))
                if known_count + (_TAGS in form) != len(form):
                    name = ""
                    self.refuse_unknown(form)
        except EncodeError as error:
            raise within(name, error) from None
        for name, fresh_default in self.absent:
            setattr(value, name, fresh_default())
        return value

    def refuse_unknown(self, form: Mapping[Any, Any]) -> None:
        """Raise the error for a name that the version doesn't have."""
        for key in form:
            known = self.names.get(key) if isinstance(key, str) else None
            if known is not None and not known.exists(self.layout.version):
                raise NotInVersion(f"not in version {self.layout.version}", known.name)
            if known is None and key != _TAGS:
                name = key if isinstance(key, str) else type(key).__name__
                hint = suggestion(name, self.names)
                raise WrongType(f"{self.cls.__name__} has no such field{hint}", name[:100])

    def read_tags(self, tags: Any) -> dict[int, bytes] | None:
        if not isinstance(tags, Mapping):
            raise wrong("object", tags)
        if not tags:
            return None
        if not self.layout.flexible:
            raise NotInVersion(f"version {self.layout.version} has no tagged fields")
        result: dict[int, bytes] = {}
        for key, data in tags.items():
            if not isinstance(key, str) or not key.isascii() or not key.isdecimal():
                raise WrongType("expected a tag in decimal digits")
            tag = int(key) if len(key) <= 10 else _MAX_TAG + 1
            self.check_tag(tag)
            if str(tag) != key:
                raise OutOfRange(f"tag {tag} is written with leading zeros")
            try:
                result[tag] = read_bytes(data)
            except EncodeError as error:
                raise within(tag, error) from None
        return result


# --- a field's converters -----------------------------------------------------------------------------------


def _writer(field: Field, version: int) -> Convert:
    """To JSON: `_ABSENT` for a tagged field at its default."""
    convert_element: Convert = (
        _form(field.struct, version).write if field.struct else LEAF_WRITERS[field.type]
    )
    plain = None if field.struct else _PLAIN.get(field.type)
    convert = _elementwise(convert_element, plain, "list") if field.array else convert_element
    nullable = _or_null(convert, field, version)
    if field.tag is None:
        return nullable
    is_set = field.is_set
    return lambda value: nullable(value) if is_set(value) else _ABSENT


def _reader(field: Field, version: int) -> Convert:
    """From JSON."""
    convert_element: Convert = _form(field.struct, version).read if field.struct else LEAF_READERS[field.type]
    return _or_null(
        _elementwise(convert_element, None, "array") if field.array else convert_element, field, version
    )


def _or_null(convert: Convert, field: Field, version: int) -> Convert:
    if field.nullable(version):
        return lambda value: None if value is None else convert(value)

    if field.null == NEVER:
        return convert  # which refuses null as any other wrong type

    def refusing(value: Any) -> Any:
        if value is None:
            raise NotInVersion(f"can't be null in version {version}")
        return convert(value)

    return refusing


def _elementwise(convert_element: Convert, plain: type | None, expected: str) -> Convert:
    """Element by element; `plain`: the class of those that need no conversion."""
    unchanged = {plain}

    def convert(value: Any) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            raise wrong(expected, value)
        if unchanged.issuperset(map(type, value)):
            return list(value)
        out: list[Any] = []
        try:
            for element in value:
                out.append(convert_element(element))
        except EncodeError as error:
            raise within(len(out), error) from None
        return out

    return convert


# --- values ---


Convert = Callable[[Any], Any]

_NAN = bytes.fromhex("7ff8000000000000")
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
    return uuid_text(value)


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
