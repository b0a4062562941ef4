"""The dialect that connections of a capture may have beside any other: ZooKeeper's, by its content.

Strategy: a connection whose beginning was seen is ZooKeeper's by its first frame alone. Of another, a request
shows it; where one may begin, the dialect itself looks at it. Rules: what is here costs a reader of Kafka's
frames nothing but a look at a few bytes of a connection that is not decided yet; everything else of the
dialect is imported when such bytes were seen.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING

from coordwire.connection.dialect import Dialect
from coordwire.dialects.zookeeper_opening import LEAST_XID, is_connect
from coordwire.frames import PREFIX

if TYPE_CHECKING:
    from coordwire.capture.conversation import AnyConversation
    from coordwire.capture.pending_requests import PendingRequests
    from coordwire.connection.dialect import Side
    from coordwire.dialects.connection import ConnectionDialect
    from coordwire.timeline.from_wire.timeline import DialectGroups

__all__ = ["AlternativeDialect", "find_alternative"]

_GREATEST_TYPE, _LEAST_TYPE = 107, -11
_PATHLESS_SIZE = 8
"""The size of the requests without a path that show ZooKeeper: an xid and a type."""

_SLASH = ord("/")
_SLASH_AT = PREFIX + 12
"""Where the path of all others begins, from the beginning of the frame."""

_HEAD = struct.Struct(">iii").unpack_from


def find_alternative(name: Dialect | str) -> AlternativeDialect | None:
    """The dialect that connections of a capture may have beside the one of this name: ZooKeeper's, None
    beside itself. Raises `ValueError` for an unknown name."""
    return None if Dialect(name) is Dialect.ZOOKEEPER else AlternativeDialect()


class AlternativeDialect:
    """ZooKeeper's protocol, as captures and timelines take it.

    >>> from coordwire.dialects import AlternativeDialect
    >>> AlternativeDialect()
    <AlternativeDialect zookeeper>
    """

    name = str(Dialect.ZOOKEEPER)

    def __repr__(self) -> str:
        return f"<AlternativeDialect {self.name}>"

    def conversation(
        self, capture: str, number: Callable[[], int], *, strict: bool, waiting: PendingRequests
    ) -> AnyConversation:
        """A recorded connection's conversation, until that is decided."""
        opened = partial(self._open, capture, number, strict=strict, waiting=waiting)
        return _Undecided(opened)  # type: ignore[return-value]  # only what decides is asked of it

    def _open(
        self, capture: str, number: Callable[[], int], *, strict: bool, waiting: PendingRequests
    ) -> AnyConversation:
        return self._dialect.conversation(capture, number, strict=strict, waiting=waiting)

    @cached_property
    def _dialect(self) -> ConnectionDialect:
        from coordwire.dialects.connection import ConnectionDialect

        return ConnectionDialect(Dialect.ZOOKEEPER)

    def groups(self) -> DialectGroups:
        """The groups of a timeline."""
        from coordwire.dialects.zookeeper_groups import ZooKeeperGroups

        return ZooKeeperGroups()


class _Undecided:
    """A connection that may be ZooKeeper's. opened: makes its conversation."""

    head = PREFIX + 8

    def __init__(self, opened: Callable[[], AnyConversation]) -> None:
        self._opened = opened

    @cached_property
    def _conversation(self) -> AnyConversation:
        return self._opened()

    def resolve(self) -> AnyConversation:
        """The conversation, of which everything else is asked."""
        return self._conversation

    def opens(self, head: bytes) -> bool | None:
        """As `Conversation.opens`."""
        return is_connect(head)

    def claims(self, buffer: bytearray, at: int) -> int:
        """As `Conversation.claims`."""
        size, xid, kind = _HEAD(buffer, at)
        if size < 8 or xid < LEAST_XID or not _LEAST_TYPE <= kind <= _GREATEST_TYPE:
            return -1
        slash = at + _SLASH_AT
        if size != _PATHLESS_SIZE and slash < len(buffer) and buffer[slash] != _SLASH:
            return -1  # it is not a request that shows ZooKeeper (`ZooKeeperConversation.sender`)
        return self._conversation.claims(buffer, at)

    def sender(self, buffer: bytearray, at: int, end: int) -> Side | None:
        """As `Conversation.sender`."""
        return self._conversation.sender(buffer, at, end)
