"""Coroutines that nothing awaited: calls without their `await`.

Strategy: Python warns of such a coroutine when it is collected, and says where it was made if it keeps that.
Rule: a run is judged by them at its end, as the collector follows no clock.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["noted_coroutines"]

_WARNING = r"coroutine '(?P<name>.+)' was never awaited"
_PLACE = re.compile(r'File "(?P<file>.+)", line (?P<line>\d+), in ')


@contextmanager
def noted_coroutines() -> Iterator[list[str]]:
    """A list that gets a text for each coroutine that was never awaited: its name, and where it was made."""
    texts: list[str] = []
    depth = sys.get_coroutine_origin_tracking_depth()
    with warnings.catch_warnings():
        warnings.filterwarnings("always", _WARNING, RuntimeWarning)
        show = warnings.showwarning

        def note(message: Warning | str, *arguments: object, **options: object) -> None:
            warned = re.match(_WARNING, str(message))
            if warned is None:
                show(message, *arguments, **options)  # type: ignore[arg-type]
                return
            place = _PLACE.search(str(message))
            suffix = "" if place is None else f", made at {place['file']}:{place['line']}"
            texts.append(f"{warned['name']}{suffix}")

        warnings.showwarning = note
        sys.set_coroutine_origin_tracking_depth(1)
        try:
            yield texts
        finally:
            sys.set_coroutine_origin_tracking_depth(depth)
