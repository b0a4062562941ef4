"""Connections on the slow path."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch


@contextmanager
def in_python() -> Iterator[None]:
    """Meanwhile no frame is native: neither those of connections nor any other."""
    with (
        patch.multiple("coordwire.frames", _requests=None, _responses=None),
        patch.multiple("coordwire.connection.kafka", _exchange=None, request_framer=None),
    ):
        yield
