"""One request over HTTP and the body of its answer, for token endpoints.

Strategy: urllib, whose time limit is for each read; a timer ends the sockets of an exchange whose time is
over. Rules: a redirection is an error, since the request has the client's secret; the body's size is bounded.
"""

from __future__ import annotations

import socket
import ssl
import time
from contextlib import suppress
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from threading import Timer
from typing import Any
from urllib.request import (
    AbstractHTTPHandler,
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    OpenerDirector,
    ProxyHandler,
    Request,
)

LARGEST_BODY = 1 << 20


def http_answer(request: Request, tls: ssl.SSLContext | None, seconds: float) -> bytes:
    """The body of the answer; this blocks. seconds: for the whole exchange.

    Raises `OSError`, `HTTPException`, and `ValueError` for a body that is too large.
    """
    exchange = _Exchange(tls, seconds)
    opener = OpenerDirector()
    for handler in (ProxyHandler(), exchange, HTTPDefaultErrorHandler(), HTTPErrorProcessor()):
        opener.add_handler(handler)
    timer = Timer(seconds, exchange.end)
    timer.daemon = True
    timer.start()
    try:
        with opener.open(request, timeout=seconds) as response:
            body: bytes = response.read(LARGEST_BODY + 1)
    finally:
        timer.cancel()
    if len(body) > LARGEST_BODY:
        raise ValueError(f"expected at most {LARGEST_BODY:,} bytes")
    return body


class _Exchange(AbstractHTTPHandler):
    """Opens connections, and ends them."""

    def __init__(self, tls: ssl.SSLContext | None, seconds: float) -> None:
        super().__init__()
        self._tls = tls
        self._end = time.monotonic() + seconds
        self._sockets: list[socket.socket] = []

    http_request = https_request = AbstractHTTPHandler.do_request_

    def http_open(self, request: Request) -> HTTPResponse:
        return self.do_open(self._connection_class(HTTPConnection), request)

    def https_open(self, request: Request) -> HTTPResponse:
        return self.do_open(self._connection_class(HTTPSConnection), request, context=self._tls)

    def _connection_class(self, kind: Any) -> Any:
        exchange = self

        class Kept(kind):  # type: ignore[misc]
            def connect(self) -> None:
                super().connect()
                exchange._sockets.append(self.sock)
                if time.monotonic() >= exchange._end:
                    exchange.end()

        return Kept

    def end(self) -> None:
        """End what is sent and received."""
        for connected in self._sockets:
            with suppress(OSError):  # of a thread that may be in the middle of TLS: not by its own method
                socket.socket.shutdown(connected, socket.SHUT_RDWR)
