"""What records don't say of why they were written: noted with an operation's result, for its events."""

from __future__ import annotations

from dataclasses import dataclass

from coordwire.group_events import Leaving

__all__ = ["BY_ITSELF", "Because"]


@dataclass(frozen=True, slots=True)
class Because:
    """how: how the members went whose tombstones are among the records, and reason: what they said of it.
    member_id, generation: who commits offsets, and in which; transactional_id: in which transaction.
    """

    how: Leaving = "left"
    reason: str | None = None
    member_id: str | None = None
    generation: int = -1
    transactional_id: str | None = None


BY_ITSELF = Because()
