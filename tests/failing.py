"""Allocations that fail, by CPython's own `_testcapi`; tests that need them are skipped where it has none."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from operator import length_hint
from typing import Any

import pytest

memory = pytest.importorskip("_testcapi", reason="this CPython has no means to let allocations fail")

MANY = 200_000
"""More allocations than any call makes that is counted."""


def allocations(call: Callable[[], Any]) -> int:
    """How many allocations a call makes."""
    left = repeat(None, MANY)
    memory.set_nomemory(MANY, MANY + 1)
    try:
        call()
        for _ in left:
            object()
    except MemoryError:
        pass
    finally:
        memory.remove_mem_hooks()
    return length_hint(left)


def failing(call: Callable[[], Any], first: int, count: int) -> Any:
    """What a call gives of whose allocations some fail, MemoryError if it raises that."""
    memory.set_nomemory(first, first + count)
    try:
        return call()
    except MemoryError:
        return MemoryError
    finally:
        memory.remove_mem_hooks()
