"""The content of opaque bytes in messages: the messages of groups' members to each other, and principals.

Strategy: the field tables name the messages that a field's bytes may hold, by protocol type ("consumer",
"connect"), and inside those by protocol ("sticky", "stream"); the outer message says both somewhere above the
field. Where it doesn't (older versions), the bytes tell: they must decode whole, in a version that is known.
Rules: nothing is changed and nothing raises; what isn't understood, and whatever a foreign protocol type has,
stays bytes. Newer versions of what Kafka prefixes with one only append fields, so that these are read as our
newest, as Kafka's clients do. A consumer's that isn't of the version that it says is read
as far as it goes, with the deviation.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from coordwire.codec import Field, Message, Struct
from coordwire.codec.walk import FieldSelection, fields_of
from coordwire.errors import DecodeError, Deviation
from coordwire.messages import find_message

__all__ = ["Embedded", "open_embedded", "open_field"]

_PROTOCOL = ("protocol_name", "protocol_data", "protocol")
_UNVERSIONED = frozenset({"StickyAssignorUserData", "CooperativeStickyAssignorUserData"})
"""What says no version: the newest that fits is meant, as Kafka tries them."""

_DEVIATING = frozenset({"ConsumerProtocolSubscription", "ConsumerProtocolAssignment"})
"""What clients are known to write otherwise than its version says."""

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


class Embedded(NamedTuple):
    """A message from inside the bytes of another.

    version: the one that its bytes say, which may be newer than our newest; of what says none the one that
    fits.
    """

    message: Message
    version: int

    @property
    def deviation(self) -> Deviation | None:
        """The reason for which its bytes aren't of that version; None if they are."""
        return None


class DeviatingEmbedded(Embedded):
    """A message whose bytes aren't of the version that they say, as far as it could be read: kafka-go and
    others write version 1 of a subscription without the field that it adds."""

    def __new__(cls, message: Message, version: int, deviation: Deviation) -> DeviatingEmbedded:
        embedded = super().__new__(cls, message, version)
        embedded._deviation = deviation
        return embedded

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.message, self.version, self._deviation

    _deviation: Deviation

    @property
    def deviation(self) -> Deviation:
        return self._deviation


_EMBEDDED = FieldSelection(lambda field: field.embedded)


class _Said(NamedTuple):
    """What the outer message says: by what the fields here, and those inside what they hold, are known."""

    kind: str | None = None
    inside: str | None = None


def open_embedded(message: Message) -> dict[str, Embedded]:
    """The messages inside a message's opaque bytes, by their fields' paths ("protocols[0].metadata"), and
    those inside these ("protocols[0].metadata.user_data")."""
    return dict(_opened(message, "", _Said()))


def open_field(cls: type[Struct], name: str, data: Any, kind: str | None) -> Embedded | None:
    """The message in the bytes of one field of such a struct, as `open_embedded` finds it where the messages
    around it say this protocol type."""
    for field in fields_of(cls):
        if field.name == name:
            return _open(field, data, kind)
    return None


def _opened(value: Struct, prefix: str, said: _Said) -> Iterator[tuple[str, Embedded]]:
    cls: Any = type(value)
    fields = _EMBEDDED.fields(cls)
    if not fields:
        return
    said = _hear(value, fields, said)
    for field in fields:
        content = getattr(value, field.name)
        path = f"{prefix}{field.name}"
        if field.embedded:
            embedded = _open(field, content, said.kind)
            if embedded is not None:
                yield path, embedded
                yield from _opened(embedded.message, f"{path}.", _Said(said.inside))
        elif field.array:
            for index, element in enumerate(content or ()):
                yield from _opened(element, f"{path}[{index}].", said)
        elif content is not None:
            yield from _opened(content, f"{path}.", said)


def _hear(value: Struct, fields: tuple[Field, ...], said: _Said) -> _Said:
    """What is said from here on: a protocol's offer names itself, all else is named where the group is."""
    names = ("name", *_PROTOCOL) if any(field.embedded for field in fields) else _PROTOCOL
    protocols = (getattr(value, name, None) for name in names)
    return _Said(
        getattr(value, "protocol_type", None) or said.kind,
        next((protocol for protocol in protocols if protocol), said.inside),
    )


def _open(field: Field, data: Any, kind: str | None) -> Embedded | None:
    """The message in a field's bytes."""
    if not isinstance(data, bytes):
        return None
    for protocol, name in field.embedded:
        known = protocol in ("", kind)
        if known or kind is None:
            embedded = _read(find_message(name), data, known=known)
            if embedded is not None:
                return embedded
    return None


def _read(cls: type[Message], data: bytes, *, known: bool) -> Embedded | None:
    """These bytes as such a message. known: whether it is known to be one; else a newer version, or none,
    isn't evidence."""
    newest = cls.versions[-1]
    deviating = None
    for version, start in _versions(cls, data, known):
        if version < cls.versions[0] or (version > newest and not known):
            continue
        try:
            message = cls.decode(data[start:], version=min(version, newest), strict=version <= newest)
        except DecodeError as error:
            if known and deviating is None and cls.__name__ in _DEVIATING:
                deviating = _as_far_as_it_goes(cls, data, version, start, error)
            continue
        return Embedded(message, version)
    return deviating


def _as_far_as_it_goes(
    cls: type[Message], data: bytes, version: int, start: int, error: DecodeError
) -> Embedded | None:
    """What can be read of bytes that aren't of the version that they say: all, if they are whole in an older
    one, else what comes before the error."""
    deviation = Deviation(error.reason, start + error.position, error.path)
    for older in range(min(version, cls.versions[-1]) - 1, cls.versions[0] - 1, -1):
        try:
            message = cls.decode(data[start:], version=older, strict=True)
            return DeviatingEmbedded(message, version, deviation)
        except DecodeError:
            continue
    partial = error.partial
    if isinstance(partial, cls) and error.position > 0:
        return DeviatingEmbedded(partial, version, deviation)
    return None


def _versions(cls: type[Message], data: bytes, known: bool) -> Iterator[tuple[int, int]]:
    """The versions that these bytes may be of, and where the message begins."""
    if cls.__name__ in _UNVERSIONED:
        if known:
            yield from ((version, 0) for version in reversed(cls.versions))
    elif fields_of(cls)[0].name == "version":  # Streams' own, whose newer ones can't be read
        if len(data) >= _INT32.size and (version := _INT32.unpack_from(data)[0]) in cls.versions:
            yield version, 0
    elif len(data) >= _INT16.size:
        yield _INT16.unpack_from(data)[0], _INT16.size
