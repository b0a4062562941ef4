"""A small HTTP server for Prometheus: GET /metrics gives the text that was set last."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["MetricsServer"]

_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_TIMEOUT = 10.0


class MetricsServer:
    """Serves on a thread of its own, until it is closed. Raises `OSError` where it cannot listen."""

    def __init__(self, host: str, port: int) -> None:
        self.text = ""
        owner = self

        class Handler(BaseHTTPRequestHandler):
            timeout = _TIMEOUT

            def do_GET(self) -> None:
                is_known = self.path.partition("?")[0] in ("/metrics", "/")
                body = owner.text.encode() if is_known else b"not found\n"
                self.send_response(200 if is_known else 404)
                self.send_header("Content-Type", _TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: object) -> None:
                """Print nothing: standard error is the command's."""

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the server and its thread."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
