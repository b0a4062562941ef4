"""A local S3, by moto: it counts what is asked of it, and denies or replaces what a test says."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import pytest

SECRETS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
DENIED = "denied"
"""A bucket that nobody may use."""

_FORBIDDEN = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


@dataclass(frozen=True, slots=True)
class Request:
    """method, path: as they came; size: bytes of the answer's body."""

    method: str
    path: str
    size: int


class LocalS3:
    """The server. listening: a socket of its own; by default a new one. denied: buckets that nobody may use.
    before: is called with method and path ahead of each request, if it is set."""

    def __init__(self, listening: socket.socket | None = None) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import WSGIRequestHandler, make_server

        class Quiet(WSGIRequestHandler):
            def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
                return

        self.requests: list[Request] = []
        self.denied = {DENIED}
        self.before: Callable[[str, str], None] | None = None
        self._app = DomainDispatcherApplication(create_backend_app)
        listening = listening or socket.create_server(("127.0.0.1", 0))
        self.environment = environment_of(listening)
        self._server = make_server(
            "127.0.0.1", 0, self._answer, threaded=True, request_handler=Quiet, fd=listening.fileno()
        )
        self._listening = listening  # open as long as the server is
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _answer(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"].encode("latin-1").decode()
        if self.before is not None:
            self.before(method, path)
        if path.split("/")[1] in self.denied:
            start("403 Forbidden", [("Content-Type", "application/xml")])
            return [_FORBIDDEN]
        body = list(self._app(environ, start))
        self.requests.append(Request(method, path, sum(map(len, body)) if method == "GET" else 0))
        return body

    @property
    def _backend(self) -> Any:
        from moto.core.models import DEFAULT_ACCOUNT_ID
        from moto.s3.models import s3_backends

        return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]

    def put(self, bucket: str, files: dict[str, bytes]) -> None:
        """A bucket, if there is none, with these objects."""
        if bucket not in self._backend.buckets:
            self._backend.create_bucket(bucket, "us-east-1")
        for key, data in files.items():
            self._backend.put_object(bucket, key, data)

    def keys(self, bucket: str) -> list[str]:
        """All objects of a bucket."""
        return sorted(self._backend.buckets[bucket].keys)

    def remove(self, bucket: str, key: str) -> None:
        self._backend.delete_object(bucket, key)

    @contextmanager
    def counted(self) -> Iterator[list[Request]]:
        """The requests that come meanwhile."""
        first, actual = len(self.requests), list[Request]()
        yield actual
        actual.extend(self.requests[first:])

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def environment_of(listening: socket.socket) -> dict[str, str]:
    """What a process needs to know of the server that listens there, now or later."""
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    return SECRETS | {"AWS_ENDPOINT_URL": url, "AWS_EC2_METADATA_DISABLED": "true"}


@contextmanager
def local_s3(listening: socket.socket | None = None) -> Iterator[LocalS3]:
    """The server, and this process's environment set up for it; without moto the test is skipped."""
    pytest.importorskip("moto", reason="moto isn't installed: pip install 'coordwire[test]'")
    server = LocalS3(listening)
    try:
        with mock.patch.dict("os.environ", server.environment):
            yield server
    finally:
        server.stop()
