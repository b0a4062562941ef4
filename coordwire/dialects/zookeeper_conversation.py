"""One ZooKeeper connection's conversation, and how a connection shows that it speaks ZooKeeper.

Strategy: as `conversation`; `zookeeper_opening` has how a connection begins. Where that was not seen, a whole
request shows ZooKeeper that names a path, or one whose every byte is fixed. Rules: Kafka's frames have
neither: a path begins with a slash after four bytes of its length, and the xid and the type are four bytes
each.
"""

from __future__ import annotations

import struct

from coordwire.capture.entries import FrameEntry
from coordwire.capture.framing import FrameBody, part_of
from coordwire.connection.dialect import Side
from coordwire.dialects.conversation import DraftConversation
from coordwire.dialects.matching import Reading
from coordwire.dialects.zookeeper_matching import REPLY_HEADER, ZooKeeperMatching
from coordwire.dialects.zookeeper_opening import CONNECT_SIZE, LEAST_XID, is_connect
from coordwire.frames import PREFIX
from coordwire.limits import current

_SIZE = struct.Struct(">i").unpack_from
_XIDS = {"Ping": -2, "CloseSession": None}
"""Requests without a path that show a client, with the xid that they must have."""


class ZooKeeperConversation(DraftConversation):
    """As `DraftConversation`."""

    head = PREFIX + 8
    matching: ZooKeeperMatching

    def either(self, body: FrameBody) -> FrameEntry:
        """The entry of a frame whose sender is unknown: an awaited answer, a request or an event."""
        sides: tuple[Side, ...] = ("server", "client")
        for side in sides:
            readings = self.matching.readings(body.data, side)
            if any(self._decodes(body.data, reading) for reading in readings):
                return self._entry(body, "", side)
        return self._entry(body, "", "server" if len(self.matching.waiting["client"]) else "client")

    def opens(self, head: bytes) -> bool | None:
        """As `Conversation.opens`; None until the whole head of a connect request is there."""
        return is_connect(head)

    def sender(self, buffer: bytearray, at: int, end: int) -> Side | None:
        body = part_of(buffer, at + PREFIX, end)
        return (
            "client"
            if any(self._shows(body, reading) for reading in self.matching.readings(body, "client"))
            else None
        )

    def claims(self, buffer: bytearray, at: int) -> int:
        if not self._may_begin(buffer, at, "client"):
            return -1
        return at + PREFIX + int(_SIZE(buffer, at)[0])

    def _shows(self, body: bytes, reading: Reading) -> bool:
        """Whether a request can be of no protocol but this."""
        name = reading.call.name
        if name in _XIDS:
            return len(body) == 8 and _XIDS[name] in (None, _SIZE(body)[0])
        path_length = _SIZE(body, 8)[0] if len(body) > 12 else 0
        return 0 < path_length <= len(body) - 12 and body[12:13] == b"/" and self._decodes(body, reading)

    def _may_begin(self, buffer: bytearray, at: int, sender: Side) -> list[Reading]:
        if len(buffer) - at < self.head:
            return []
        (size,) = _SIZE(buffer, at)
        if not (8 if sender == "client" else REPLY_HEADER) <= size <= current().frame:
            return []
        start = at + PREFIX
        if sender == "client" and _SIZE(buffer, start)[0] < LEAST_XID:
            return []
        body = bytes(buffer[start : start + min(size, CONNECT_SIZE)])
        return list(self.matching.readings_of(body, size, sender))
