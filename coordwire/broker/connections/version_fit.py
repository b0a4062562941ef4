"""An answer that its version can carry: older versions lack fields, and each limits the length of a text.

Kafka's handlers leave out, field by field, what a client of an old version could not read. Here one function
does it for all fields that are not ignorable, by the field tables. An answer whose text is too long, since it
quotes a name of the request, is answered as Kafka does after it failed to write one.
"""

from __future__ import annotations

import logging
from copy import copy
from functools import cache
from typing import Any, TypeVar

from coordwire.codec import Message, Struct
from coordwire.codec.walk import fields_of
from coordwire.connection import Connection
from coordwire.connection.events import RequestReceived
from coordwire.enums import ErrorCode
from coordwire.errors import EncodeError, OutOfRange

log = logging.getLogger("coordwire.broker")


def fitted(connection: Connection, response: Message, request: RequestReceived) -> bytes:
    """The bytes of an answer; those of a changed copy where the request's version cannot carry it. Raises
    `EncodeError` if that does not help."""
    try:
        return connection.send(response, request=request)
    except EncodeError:
        version = request.frame.api_version
    response = _copied(response)  # its handler may keep it
    try:
        fit(response, version)
        return connection.send(response, request=request)
    except OutOfRange as error:
        name = type(request.request).__name__
        log.warning("%s is answered with UNKNOWN_SERVER_ERROR: %s", name, error)
        response = refused(response, version)
        fit(response, version)
        return connection.send(response, request=request)


S = TypeVar("S", bound=Struct)


def _copied(value: S) -> S:
    """A struct with its own structs and lists of them; other values are shared."""
    result = copy(value)
    for field in fields_of(type(value)):
        if field.struct is not None:
            inner = getattr(value, field.name)
            if field.array:
                inner = inner and [_copied(element) for element in inner]
            elif inner is not None:
                inner = _copied(inner)
            setattr(result, field.name, inner)
    return result


def fit(value: Struct, version: int) -> None:
    """Reset the fields that the version does not have, at every depth."""
    cls: Any = type(value)
    fresh: Any = None
    for field in fields_of(cls):
        if not field.first <= version <= field.last:
            if fresh is None:
                fresh = cls()
            setattr(value, field.name, getattr(fresh, field.name))
        elif field.struct is not None:
            inner = getattr(value, field.name)
            for element in (inner or ()) if field.array else (inner,):
                if element is not None:
                    fit(element, version)


def refused(response: Message, version: int) -> Message:
    """The answer in place of one with a text that is too long: UNKNOWN_SERVER_ERROR wherever it has an error
    code, without messages."""
    cls: Any = type(response)
    if not _nested_codes(cls):
        response = cls()
    _refuse(response, version)
    return response


@cache
def _nested_codes(cls: Any) -> frozenset[str]:
    """The fields of a class in whose elements there are error codes."""
    structs: dict[str, Any] = {
        field.name: field.struct for field in fields_of(cls) if field.struct is not None
    }
    return frozenset(
        name
        for name, struct in structs.items()
        if "error_code" in struct.__dataclass_fields__ or _nested_codes(struct)
    )


def _refuse(value: Any, version: int) -> None:
    cls: Any = type(value)
    nested = _nested_codes(cls)
    for field in fields_of(cls):
        if field.name == "error_code":
            value.error_code = int(ErrorCode.UNKNOWN_SERVER_ERROR)
        elif field.name == "error_message":
            value.error_message = None if field.nullable(version) else ""
        elif field.name in nested:
            inner = getattr(value, field.name)
            for element in (inner or ()) if field.array else (inner,):
                if element is not None:
                    _refuse(element, version)
