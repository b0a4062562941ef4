"""What opaque bytes of messages hold: consumers' subscriptions and assignments.

Strategy: the field tables name the message inside a field's bytes; the message itself says, in a
`protocol_type` near them, whether it is a consumer's. Where it says nothing (older versions), the bytes tell:
they must decode whole. Rules: nothing is changed and nothing raises; what isn't understood stays bytes. Newer
versions only append fields, so that one newer than ours is read as our newest, as Kafka's clients do.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from coordwire.errors import DecodeError
from coordwire.layout import Field, Message, Struct
from coordwire.messages import find_message

__all__ = ["Embedded", "open_embedded"]

CONSUMER = "consumer"
_VERSION = struct.Struct(">h").unpack_from
_PREFIX = 2


class Embedded(NamedTuple):
    """A message from inside the bytes of another. version: the one that its int16 prefix says."""

    message: Message
    version: int


def open_embedded(message: Message) -> dict[str, Embedded]:
    """The messages inside a message's opaque bytes, by their fields' paths ("protocols[0].metadata")."""
    return dict(_opened(message, "", None))


def _opened(value: Struct, prefix: str, kind: str | None) -> Iterator[tuple[str, Embedded]]:
    kind = getattr(value, "protocol_type", None) or kind
    if kind not in (None, CONSUMER):
        return
    cls: Any = type(value)
    for field in _ways(cls):
        inside = getattr(value, field.name)
        path = f"{prefix}{field.name}"
        if field.embedded is not None:
            found = _open(field.embedded, inside, told=kind is not None)
            if found is not None:
                yield path, found
        elif field.array:
            for index, element in enumerate(inside or ()):
                yield from _opened(element, f"{path}[{index}].", kind)
        elif inside is not None:
            yield from _opened(inside, f"{path}.", kind)


@cache
def _ways(cls: Any) -> tuple[Field, ...]:
    """The fields that hold such bytes, or lead to them."""
    return tuple(
        field
        for field in cls._layout_.fields
        if field.embedded is not None or (field.struct is not None and _ways(field.struct))
    )


def _open(name: str, data: Any, *, told: bool) -> Embedded | None:
    """The message in these bytes. told: whether its protocol type is known; else a newer version is no
    evidence."""
    if not isinstance(data, bytes) or len(data) < _PREFIX:
        return None
    (version,) = _VERSION(data)
    cls = find_message(name)
    newest = cls.versions[-1]
    if version < 0 or (version > newest and not told):
        return None
    try:
        inside = cls.decode(data[_PREFIX:], version=min(version, newest), lenient=version > newest)
    except DecodeError:
        return None
    return Embedded(inside, version)
