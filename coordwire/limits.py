"""The budgets of one decode: how much untrusted bytes may cost.

Strategy: a context variable holds one frozen `Limits`; `limits(…)` overrides it for a block. Decoders read it
once, at their start. Rules: elements and memory are charged *before* anything is allocated, from sizes known
to the layout; nothing here measures the interpreter.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from coordwire._dataclasses import dataclass

MEBI = 1 << 20

# Kafka's own limits, since 4.4 (`MessageUtil`): no budgets, and nothing sets them. C has them in engine.h.
MAX_ARRAY_ELEMENTS = 1_000_000
"""Elements of one array."""
MAX_TAGGED_FIELDS = 10_000
"""Tagged fields after one struct, known ones too."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one decode may cost.

    elements: array elements and tagged fields in one message; Kafka has no such budget.
    memory: bytes of decoded values in one message, on top of `memory_factor` × the frame's size.
    memory_factor: see `memory`.
    decompressed: bytes that one record batch may decompress to.
    frame: bytes of one frame after its size prefix.
    """

    elements: int = 2_000_000
    memory: int = 64 * MEBI
    memory_factor: int = 32
    decompressed: int = 256 * MEBI
    frame: int = 100 * MEBI

    def memory_for(self, size: int) -> int:
        """The bytes that decoding `size` bytes may take in memory."""
        return self.memory + self.memory_factor * size


DEFAULT = Limits()
context: ContextVar[Limits] = ContextVar("coordwire_limits", default=DEFAULT)
current = context.get


@contextmanager
def limits(
    *,
    elements: int | None = None,
    memory: int | None = None,
    memory_factor: int | None = None,
    decompressed: int | None = None,
    frame: int | None = None,
) -> Iterator[Limits]:
    """Set the budgets of every decode inside the block; what isn't given stays as it is outside.

    Budgets are per context (thread or asyncio task) and nest. See `Limits` for their units. Raises
    `ValueError` for a negative one.
    """
    outer = current()
    given = (elements, memory, memory_factor, decompressed, frame)
    if any(value is not None and value < 0 for value in given):
        raise ValueError("a budget can't be negative")
    inner = Limits(
        elements=outer.elements if elements is None else elements,
        memory=outer.memory if memory is None else memory,
        memory_factor=outer.memory_factor if memory_factor is None else memory_factor,
        decompressed=outer.decompressed if decompressed is None else decompressed,
        frame=outer.frame if frame is None else frame,
    )
    token = context.set(inner)
    try:
        yield inner
    finally:
        context.reset(token)
