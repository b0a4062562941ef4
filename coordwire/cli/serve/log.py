"""The log of `coordwire serve` on standard error: refused connections and their reasons, in few lines.

Rules: a line a message, and no traceback unless it is a fault of the broker; of messages of one kind a few
are shown at once, and how many were left out with the next one of that kind. A kind is a message with the
beginning of its reason.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable

__all__ = ["PERIOD", "SHOWN", "Repeats", "configure", "remove"]

SHOWN, PERIOD = 3, 10.0
"""As many messages of one kind are shown in so many seconds."""

_KINDS, _REASON = 1_000, 24

_LEVELS = {-1: logging.ERROR, 0: logging.INFO}


class Repeats(logging.Filter):
    """A filter that passes some messages of each kind. clock: in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._kinds: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.INFO:  # at DEBUG every connection is printed
            return True
        now = self._clock()
        reason = str(record.args[-1])[:_REASON] if isinstance(record.args, tuple) and record.args else ""
        kind = str(record.msg), reason
        if len(self._kinds) > _KINDS:
            self._kinds.clear()
        began, count = self._kinds.get(kind, (now, 0))
        if now - began >= PERIOD:
            record.left_out = max(0, count - SHOWN)
            began, count = now, 0
        self._kinds[kind] = began, count + 1
        return count < SHOWN


class _Lines(logging.Formatter):
    """`coordwire: ` and the message."""

    def format(self, record: logging.LogRecord) -> str:
        text = f"coordwire: {super().format(record)}"
        left_out = getattr(record, "left_out", 0)
        return f"coordwire: {left_out} more like the next line\n{text}" if left_out else text


def configure(verbosity: int) -> logging.Handler:
    """Show the broker's messages and asyncio's. verbosity: -1 for errors alone, 0 for refused connections
    too, 1 for all connections."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    handler.addFilter(Repeats())
    level = _LEVELS.get(verbosity, logging.DEBUG)
    for name, least in (("coordwire.broker", level), ("asyncio", max(level, logging.WARNING))):
        logger = logging.getLogger(name)
        logger.setLevel(least)
        logger.addHandler(handler)
        logger.propagate = False
    return handler


def remove(handler: logging.Handler) -> None:
    """Remove the handler of `configure`."""
    for name in ("coordwire.broker", "asyncio"):
        logger = logging.getLogger(name)
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
        logger.propagate = True
