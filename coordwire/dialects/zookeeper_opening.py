"""How a ZooKeeper connection begins: each side's first frame connects, and has no header.

Strategy: such a frame is recognised by its layout: a protocol version of 0, and a password that ends where
the frame does, or one byte before that. Rules: this imports nothing of the dialects, so that any reader of
Kafka's frames may ask.
"""

from __future__ import annotations

import struct

from coordwire.frames import PREFIX

CONNECT_SIZE = 28
"""Bytes of a connect request without its password and what is after that."""

CONNECTED_SIZE = 20
"""The same of the answer."""

MOST_PASSWORD = 256
"""Bytes of a session's password; ZooKeeper's have 16."""

LEAST_XID = -8
"""That of setWatches; no request has a lower one."""

_INT = struct.Struct(">i").unpack_from


def connect_version(body: bytes, size: int, *, answer: bool = False) -> int | None:
    """The version of what connects, by its first bytes: 1 with the flag at its end, 0 without; None if it is
    something else. body: as much of it as is there; size: of all of it."""
    at = CONNECTED_SIZE - 4 if answer else CONNECT_SIZE - 4
    if len(body) < at + 4 or _INT(body)[0] != 0:
        return None
    length = max(_INT(body, at)[0], 0)
    version = size - at - 4 - length
    return version if version in (0, 1) and length <= MOST_PASSWORD else None


def is_connect(head: bytes) -> bool | None:
    """Whether a stream begins with a connect request, by its first bytes; None if more of them decide it."""
    if len(head) < PREFIX:
        return None
    (size,) = _INT(head)
    if not CONNECT_SIZE <= size <= CONNECT_SIZE + MOST_PASSWORD + 1 or any(head[PREFIX : 2 * PREFIX]):
        return False
    if len(head) < PREFIX + CONNECT_SIZE:
        return None
    return connect_version(head[PREFIX:], size) is not None
