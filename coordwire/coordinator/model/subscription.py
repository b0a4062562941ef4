"""The topics that members subscribe to, read from their protocol metadata in its oldest version.

Version 0's fields come first in every version, so that a coordinator need not know the newest: int16 version,
an array of strings, nullable bytes; all with fixed length encodings.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from coordwire.coordinator.refusal import OperationRefused
from coordwire.enums import ErrorCode

__all__ = ["subscribed_topics"]

_VERSION_BYTES = 2


def subscribed_topics(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """All topics of all members; None if one member's metadata ends early.

    Raises `OperationRefused` where Apache Kafka fails too: for a length that no subscription can have. The
    first member whose metadata can't be read decides.
    """
    found: set[str] = set()
    for data in metadata:
        try:
            found.update(_topics(data))
        except struct.error:
            return None
    return frozenset(found)


def _topics(data: bytes) -> list[str]:
    if len(data) < _VERSION_BYTES:
        raise struct.error
    (count,) = struct.unpack_from(">i", data, _VERSION_BYTES)
    position = _VERSION_BYTES + 4
    if not 0 <= count <= len(data) - position:
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    found = []
    for _ in range(count):
        (size,) = struct.unpack_from(">h", data, position)
        position += 2
        if not 0 <= size <= len(data) - position:
            raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
        found.append(data[position : position + size].decode("utf-8", "replace"))
        position += size
    (size,) = struct.unpack_from(">i", data, position)
    if size > len(data) - position - 4:
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    return found
