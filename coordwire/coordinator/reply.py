"""An answer that may be sent later: JoinGroup and SyncGroup are parked until the group goes on."""

from __future__ import annotations

from collections.abc import Callable

from coordwire.codec import Message

__all__ = ["Reply"]


class Reply:
    """The one answer to a request; the first that is sent counts."""

    __slots__ = ("_send", "sent")

    def __init__(self, send: Callable[[Message], None]) -> None:
        self._send = send
        self.sent = False

    def send(self, response: Message) -> None:
        if not self.sent:
            self.sent = True
            self._send(response)
