"""The kinds of groups that a shard knows, by name.

A new kind is a `GroupKind` here, and its requests in `coordinator.requests`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordwire.coordinator.classic.kind import ClassicKind
from coordwire.coordinator.consumer.kind import ConsumerKind
from coordwire.coordinator.share.kind import ShareKind
from coordwire.coordinator.state import GroupKind
from coordwire.coordinator.streams.kind import StreamsKind

__all__ = ["KINDS"]

KINDS: Mapping[str, GroupKind[Any]] = {
    kind.name: kind for kind in (ClassicKind(), ConsumerKind(), ShareKind(), StreamsKind())
}
