"""`RecordedConnection`: one connection's bytes, as a recording gets them.

Strategy: a frame is recorded as it passes, with its secrets blanked unless they are asked for. Rules: what
cannot be read and may have secrets is blanked after its header's beginning; a bare token is blanked so that
it still cannot be read as one of the requests that may follow.
"""

from __future__ import annotations

from typing import Any

from coordwire.broker.connections.client_link import Recording
from coordwire.frames import PREFIX, RequestFrame, ResponseFrame
from coordwire.tap.recorded_secrets import blanked, blanked_frame, may_hide

__all__ = ["RecordedConnection"]


class RecordedConnection:
    """A connection, of which nothing is recorded before `open`."""

    def __init__(self, *, show_secrets: bool) -> None:
        self._traffic: Recording | None = None
        self._show_secrets = show_secrets
        self._number = -1

    def open(self, traffic: Recording, client: tuple[str, int], broker: tuple[str, int]) -> None:
        """Record the connection from now on."""
        self._traffic = traffic
        self._number = traffic.opened(client, broker)

    def hides(self, api_key: int, *, to_client: bool) -> bool:
        """Whether messages of an API are recorded without their secrets."""
        direction = "response" if to_client else "request"
        return self._traffic is not None and not self._show_secrets and may_hide(api_key, direction)

    def add(self, data: bytes, *, to_client: bool) -> None:
        """Record bytes as they are."""
        if self._traffic is not None:
            self._traffic.add(self._number, data, to_client=to_client)

    def add_frame(
        self,
        wire: bytes,
        frame: RequestFrame | ResponseFrame[Any] | None,
        api_key: int,
        *,
        to_client: bool,
    ) -> None:
        """Record a frame. wire: its bytes. frame: what was read of them, if it was."""
        if self._traffic is None:
            return
        if frame is not None and not self._show_secrets:
            wire = blanked_frame(frame, wire)
        elif self.hides(api_key, to_client=to_client):
            wire = blanked(wire)
        self.add(wire, to_client=to_client)

    def add_unmatched(self, wire: bytes) -> None:
        """Record a response that belongs to no request."""
        self.add(wire if self._show_secrets else blanked(wire), to_client=True)

    def add_token(self, wire: bytes, *, to_client: bool) -> None:
        """Record a bare token."""
        if not self._show_secrets:
            wire = wire[:PREFIX] + b"\xff" * (len(wire) - PREFIX)
        self.add(wire, to_client=to_client)
