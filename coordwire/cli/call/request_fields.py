"""Requests from `FIELD=VALUE` words, and from Kafka's JSON form, where what is left out has its default.

    groups=payments groups=orders                        an array, an element each
    topics.name=orders topics.partitions.partition_index=0 topics.partitions.partition_index=1
    topics[0].partitions[1].timestamp=-1                 an element by its index
    topics=orders                                        structs by what names them
    resources.resource_type=topic                        a number by its name

Rules: names are Kafka's, in snake_case or camelCase. Without an index the last element is meant, or a new one
where it has that field already. A number may have the name of its enum; true and false; a uuid as Kafka
prints it; null where the field may be null. Bytes are UTF-8 text, or a file's with `@FILE`. A field that is a
secret takes only `@FILE`, since others see command lines. What is wrong names the field and the expected
type.

`coordwire.from_json` reads a complete JSON form of one version. This finds the newest version whose fields
the form has, and completes it with the values of request_defaults.py. A field that no version has is refused
with the nearest name; of a line of decode its body and version count.
"""

from __future__ import annotations

import re
from base64 import b64encode
from pathlib import Path
from typing import Any
from uuid import UUID

from coordwire.cli import Failure
from coordwire.cli.call.request_defaults import fresh, switch_of
from coordwire.codec import Message, Request, Struct
from coordwire.codec.fields import Field
from coordwire.codec.names import suggestion
from coordwire.codec.primitives import uuid_text
from coordwire.codec.walk import fields_of
from coordwire.enums import enum_of
from coordwire.errors import EncodeError
from coordwire.jsonform import from_json

_STEP = re.compile(r"(?P<name>\w+)(?:\[(?P<index>\d{1,6})\])?")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_KEYS = ("topic_name", "group_id", "transactional_id", "broker_id")
"""The entities by which a struct of an array may be given as a plain value."""
_LARGEST = 100 << 20


def filled(message: Message, words: list[str]) -> Message:
    """A message with the fields of the words set. Raises `Failure`."""
    assigned: set[tuple[int, str]] = set()
    for word in words:
        path, sign, text = word.partition("=")
        if not sign or not path:
            raise Failure(f"call: expected FIELD=VALUE, got {word!r}")
        _assign(message, path, text, assigned)
    return message


def field_names(cls: type[Struct]) -> list[str]:
    """The fields of a request, those of its structs with the way to them."""
    names: list[str] = []
    for field in fields_of(cls):
        names.append(field.name)
        if field.struct is not None:
            names += [f"{field.name}.{name}" for name in field_names(field.struct)]
    return names


def _assign(message: Message, path: str, text: str, assigned: set[tuple[int, str]]) -> None:
    parts = path.split(".")
    owner: Any = message
    arrays: list[tuple[Any, Field]] = []
    for position, part in enumerate(parts):
        field, index = _step(owner, part, path)
        if position == len(parts) - 1:
            break
        if field.struct is None:
            raise Failure(f"call: {path}: {field.name} has no fields of its own")
        if field.array:
            arrays.append((owner, field))
            owner = _element(owner, field, index)
        else:
            if getattr(owner, field.name) is None:
                setattr(owner, field.name, fresh(field.struct))
            owner = getattr(owner, field.name)
    if field.array:
        _append(owner, field, index, text, path)
        return
    if (id(owner), field.name) in assigned and arrays and "[" not in path:
        holder, array = arrays[-1]
        owner = fresh(_struct(array))
        getattr(holder, array.name).append(owner)
    assigned.add((id(owner), field.name))
    setattr(owner, field.name, _value(owner, field, text, path))


def _step(owner: Struct, part: str, path: str) -> tuple[Field, int | None]:
    match = _STEP.fullmatch(part)
    if match is None:
        raise Failure(f"call: {path}: expected a field, got {part!r}")
    name = _WORDS.sub("_", match["name"]).lower()
    fields = {field.name: field for field in fields_of(owner)}
    if name not in fields:
        raise Failure(f"call: {path}: {type(owner).__name__} has no field {name}{suggestion(name, fields)}")
    return fields[name], None if match["index"] is None else int(match["index"])


def _element(owner: Any, field: Field, index: int | None) -> Any:
    """The element of an array that is meant: made, where it is the first or the next one."""
    elements = getattr(owner, field.name)
    if elements is None:
        elements = []
        setattr(owner, field.name, elements)
    if index is None:
        index = max(len(elements) - 1, 0)
    if index > len(elements):
        raise Failure(f"call: {field.name}[{index}]: expected an index up to {len(elements)}")
    if index == len(elements):
        elements.append(fresh(_struct(field)))
    return elements[index]


def _append(owner: Any, field: Field, index: int | None, text: str, path: str) -> None:
    """Add an element to an array, or set it to null or to nothing ("[]")."""
    if text in ("null", "[]") and index is None:
        if text == "null" and field.null > max(_versions(field)):
            raise Failure(f"call: {path}: {field.name} may not be null")
        setattr(owner, field.name, None if text == "null" else [])
        return
    elements = getattr(owner, field.name)
    if elements is None:
        elements = []
        setattr(owner, field.name, elements)
    if field.struct is None:
        value = _value(owner, field, text, path)
    else:
        value = fresh(field.struct)
        key = next((key for key in fields_of(value) if key.entity in _KEYS and not key.array), None)
        if key is None:
            fields = ", ".join(inner.name for inner in fields_of(value))
            raise Failure(f"call: {path}: expected a field of it: {fields}")
        setattr(value, key.name, _value(value, key, text, path))
    if index is None or index == len(elements):
        elements.append(value)
    elif index < len(elements):
        elements[index] = value
    else:
        raise Failure(f"call: {path}: expected an index up to {len(elements)}")


def _struct(field: Field) -> type[Struct]:
    assert field.struct is not None
    return field.struct


def _versions(field: Field) -> range:
    return range(min(field.last, 1_000) + 1)


def _value(owner: Struct, field: Field, text: str, path: str) -> Any:
    if field.secret and field.name != "value" and not text.startswith("@"):
        raise Failure(f"call: {path} is a secret: expected @FILE, since others can see command lines")
    if field.struct is not None:
        raise Failure(f"call: {path} is a struct: expected a field of it")
    if text == "null" and not field.array and field.null <= max(_versions(field)):
        return None
    if text.startswith("@") and field.type in ("string", "bytes", "records"):
        data = _file(Path(text[1:]), path)
        return data.decode("utf-8", "replace") if field.type == "string" else data
    match field.type:
        case "string":
            return text
        case "bytes" | "records":
            return text.encode()
        case "bool" if text in ("true", "false"):
            return text == "true"
        case "bool":
            raise Failure(f"call: {path}: expected true or false, got {text!r}")
        case "uuid":
            return _uuid(text, path)
        case "float64":
            return _number(float, text, path, "a number")
    enum = enum_of(type(owner).__name__, field.name)
    if enum is not None and not text.lstrip("-").isdecimal():
        names = {member.name.lower(): int(member) for member in enum}
        name = text.lower().replace("-", "_")
        if name not in names:
            raise Failure(f"call: {path}: expected one of {', '.join(names)}, got {text!r}")
        return names[name]
    return _number(int, text, path, "a whole number")


def _number(kind: Any, text: str, path: str, expected: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise Failure(f"call: {path}: expected {expected}, got {text!r}") from None


def _uuid(text: str, path: str) -> UUID:
    from base64 import urlsafe_b64decode

    try:
        return UUID(bytes=urlsafe_b64decode(text + "==")) if len(text) == 22 else UUID(text)
    except ValueError:
        raise Failure(f"call: {path}: expected a uuid, got {text!r}") from None


def _file(path: Path, place: str) -> bytes:
    try:
        with path.open("rb") as stream:
            data = stream.read(_LARGEST + 1)
    except OSError as error:
        raise Failure(f"call: {place}: {path}: {error.strerror}") from None
    if len(data) > _LARGEST:
        raise Failure(f"call: {place}: {path}: expected at most {_LARGEST:,} bytes")
    return data


def request_of(
    cls: type[Request[Any]], form: object, version: int | None, timeout_ms: int | None = None
) -> Request[Any]:
    """The request of a form. version: None for the newest that has its fields. timeout_ms: as `fresh` has it.
    Raises `Failure`."""
    if isinstance(form, dict) and "body" in form and "apiKey" in form:
        version = form.get("apiVersion") if version is None else version
        form = form["body"]
    if not isinstance(form, dict):
        raise Failure(f"call: --json: expected an object, got {type(form).__name__}")
    request: Any = None
    failure: EncodeError | None = None
    for candidate in reversed(cls.versions) if version is None else [version]:
        try:
            request = from_json(cls, _completed(cls, form, candidate, timeout_ms), version=candidate)
            break
        except EncodeError as error:
            failure = failure or error
    else:
        raise Failure(f"call: --json: {failure}")
    switch = switch_of(cls)
    if switch is not None and _json_name(cls, switch) not in form:
        setattr(request, switch, False)
    return request  # type: ignore[no-any-return]


def _json_name(cls: Any, name: str) -> str:
    return next(field.json_name for field in fields_of(cls) if field.name == name)


def _completed(cls: Any, form: Any, version: int, timeout_ms: int | None = None) -> Any:
    """A struct's form with the defaults of the fields that it lacks."""
    if not isinstance(form, dict):
        return form
    complete = dict(form)
    struct = fresh(cls, timeout_ms, version)
    for field in fields_of(cls, version):
        name = field.json_name
        if name not in complete:
            if field.tag is None:
                complete[name] = _json_default(field, getattr(struct, field.name), version)
        elif field.struct is not None:
            value = complete[name]
            complete[name] = (
                [_completed(field.struct, element, version) for element in value]
                if isinstance(value, list)
                else _completed(field.struct, value, version)
            )
    return complete


def _json_default(field: Field, value: Any, version: int) -> Any:
    """A field's default in Kafka's form: bytes as base64, uuids as Kafka has them, structs with their own."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, UUID):
        return uuid_text(value)
    if field.struct is not None and value is not None and not field.array:
        return _completed(field.struct, {}, version)
    return value
