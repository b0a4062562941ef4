"""The groups that messages name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from coordwire.codec.message import Struct
from coordwire.codec.walk import entity_values


def groups(message: Struct | None) -> Iterator[Any]:
    """The groups that a message names."""
    yield from entity_values(message, "group_id")
    # The key of FindCoordinator is a group's only for one of its types.
    if type(message).__name__ == "FindCoordinatorRequest" and getattr(message, "key_type", 0) == 0:
        yield getattr(message, "key", None)
        yield from getattr(message, "coordinator_keys", None) or ()
