"""Whose a server's connection is, where later requests leave out their client (KIP-1313).

Rule: a request that names its client names the connection's; one whose header may leave it out has that.
`coordwire.capture.conversation` does the same with what was recorded.
"""

from __future__ import annotations

from coordwire.frames import RequestFrame
from coordwire.versions import INSTANCE_ID, omits_client


class LastingClient:
    """The client of one connection, as its requests name it."""

    __slots__ = ("_client_id",)

    def __init__(self) -> None:
        self._client_id: str | None = None

    def of(self, frame: RequestFrame) -> str | None:
        """The client id of a request, None if nothing names it."""
        header = frame.header
        if header.client_id is not None:
            self._client_id = header.client_id
        elif not omits_client(header.request_api_key, header.request_api_version):
            return None
        elif INSTANCE_ID in (header.tags or ()):  # the connection's first
            self._client_id = ""
        return self._client_id
