"""SIGTERM ends a command in order, as an interrupt does: what it is writing is removed.

Rules: the status is that of a process which the signal ended; the handler that was there before comes back.
"""

from __future__ import annotations

__all__ = ["terminable"]

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def terminable() -> Iterator[None]:
    """Raise `SystemExit` where the process is, once SIGTERM comes; only the main thread can ask for that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
