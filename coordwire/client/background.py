"""Calls that may block or compute for long, in threads of their own.

Rule: the thread is a daemon, so that a call that is given up holds up neither its event loop nor the end of
the program.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


def start_call(function: Callable[[], T]) -> Future[T]:
    """Begin a call in a thread, with the caller's context; its result."""
    result: Future[T] = Future()
    result.set_running_or_notify_cancel()
    context = copy_context()

    def run() -> None:
        try:
            result.set_result(context.run(function))
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, name="coordwire-call", daemon=True).start()
    return result
