"""The body of draft 3's JoinGroupRequest, which the document elides: our own, so that consumers can join.

Rules: the fields are those that the coordinator needs for what the document lets it do: the group, the
consumer's id (empty at first: the coordinator assigns it), the session timeout, and the topics; strings and
arrays are written as in 0.8. It is the `rest` of `Draft3JoinGroupRequest`, where other bodies are as good.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from coordwire.errors import Malformed, OutOfRange

__all__ = ["JoinGroupBody"]

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class JoinGroupBody:
    """What a consumer joins with."""

    group_id: str
    consumer_id: str
    session_timeout_ms: int
    topics: tuple[str, ...]

    def encode(self) -> bytes:
        """The bytes. Raises `OutOfRange`."""
        if not 0 <= self.session_timeout_ms <= 0x7FFF_FFFF:
            raise OutOfRange("expected an int32 from 0", "session_timeout_ms")
        parts = [_text(self.group_id), _text(self.consumer_id), _INT32.pack(self.session_timeout_ms)]
        parts.append(_INT32.pack(len(self.topics)))
        return b"".join([*parts, *map(_text, self.topics)])

    @classmethod
    def decode(cls, data: bytes) -> JoinGroupBody:
        """What the bytes say. Raises `Malformed`."""
        group_id, at = _read_text(data, 0)
        consumer_id, at = _read_text(data, at)
        session, at = _read_int(data, at)
        count, at = _read_int(data, at)
        if not 0 <= count <= (len(data) - at) // 2:
            raise Malformed(f"expected at most {(len(data) - at) // 2} topics, got {count}", at - 4)
        topics = []
        for _ in range(count):
            topic, at = _read_text(data, at)
            topics.append(topic)
        if at != len(data):
            raise Malformed(f"{len(data) - at} bytes after the end", at)
        return cls(group_id, consumer_id, session, tuple(topics))


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > 0x7FFF:
        raise OutOfRange(f"a string of {len(data)} bytes is too long")
    return _INT16.pack(len(data)) + data


def _read_int(data: bytes, at: int) -> tuple[int, int]:
    if at + 4 > len(data):
        raise Malformed(f"expected 4 bytes, got {len(data) - at}", at)
    return _INT32.unpack_from(data, at)[0], at + 4


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    if at + 2 > len(data):
        raise Malformed(f"expected the length of a string, got {len(data) - at} bytes", at)
    size = _INT16.unpack_from(data, at)[0]
    if not 0 <= size <= len(data) - at - 2:
        raise Malformed(f"a string of {size} bytes, {len(data) - at - 2} given", at)
    try:
        return data[at + 2 : at + 2 + size].decode(), at + 2 + size
    except UnicodeDecodeError as error:
        raise Malformed(f"a string is not UTF-8: {error.reason}", at + 2 + error.start) from None
