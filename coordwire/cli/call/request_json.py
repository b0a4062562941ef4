"""Requests from Kafka's JSON form, where what is left out has its default.

Strategy: `coordwire.from_json` reads a complete form of one version. This finds the newest version whose
fields the form has, and completes it. Rules: a field that no version has is refused with the
nearest name; of a line of decode its body and version count.
"""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from typing import Any
from uuid import UUID

from coordwire.cli import Failure
from coordwire.codec import Request
from coordwire.codec.fields import Field
from coordwire.codec.walk import fields_of
from coordwire.errors import EncodeError
from coordwire.jsonform import from_json

__all__ = ["request_of"]


def request_of(
    cls: type[Request[Any]], form: object, version: int | None, switch: str | None = None
) -> Request[Any]:
    """The request of a form. version: None for the newest that has its fields. switch: a field that is false
    where the form lacks it. Raises `Failure`."""
    if isinstance(form, dict) and "body" in form and "apiKey" in form:
        version = form.get("apiVersion") if version is None else version
        form = form["body"]
    if not isinstance(form, dict):
        raise Failure(f"call: --json: expected an object, got {type(form).__name__}")
    request: Any = None
    failure: EncodeError | None = None
    for candidate in reversed(cls.versions) if version is None else [version]:
        try:
            request = from_json(cls, _completed(cls, form, candidate), version=candidate)
            break
        except EncodeError as error:
            failure = failure or error
    else:
        raise Failure(f"call: --json: {failure}")
    if switch is not None and _json_name(cls, switch) not in form:
        setattr(request, switch, False)
    return request  # type: ignore[no-any-return]


def _json_name(cls: Any, name: str) -> str:
    return next(field.json_name for field in fields_of(cls) if field.name == name)


def _completed(cls: Any, form: Any, version: int) -> Any:
    """A struct's form with the defaults of the fields that it lacks."""
    if not isinstance(form, dict):
        return form
    complete = dict(form)
    struct = cls()
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
        return urlsafe_b64encode(value.bytes).decode().rstrip("=")
    if field.struct is not None and value is not None and not field.array:
        return _completed(field.struct, {}, version)
    return value
