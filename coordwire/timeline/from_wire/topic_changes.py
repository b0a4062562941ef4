"""Topics that a capture shows to be created, enlarged or deleted: why a coordinator assigns by itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from coordwire.timeline.evidence import Seen, cited
from coordwire.versions import ApiKey

__all__ = ["CHANGES_TOPICS", "TopicChanges"]

MOST_CHANGES = 100
"""The latest are remembered."""

CHANGES_TOPICS = {
    int(ApiKey.CREATE_TOPICS): "was created",
    int(ApiKey.CREATE_PARTITIONS): "has more partitions",
    int(ApiKey.DELETE_TOPICS): "was deleted",
}
"""The APIs that change topics, and what has become of one then."""

_RESULTS = {
    int(ApiKey.CREATE_TOPICS): "topics",
    int(ApiKey.CREATE_PARTITIONS): "results",
    int(ApiKey.DELETE_TOPICS): "responses",
}


@dataclass(slots=True)
class TopicChanges:
    """Of all topics in some captures, the latest last."""

    _latest: deque[tuple[Seen, str, str]] = field(default_factory=lambda: deque(maxlen=MOST_CHANGES))

    def learn(self, api_key: int, request: Any, message: Any, place: Seen) -> None:
        """A request to change topics, answered."""
        if getattr(request, "validate_only", False):
            return
        for result in getattr(message, _RESULTS[api_key])[:MOST_CHANGES]:
            if result.name and not result.error_code:
                self._latest.append((place, result.name, CHANGES_TOPICS[api_key]))

    def since(self, early_ns: int, place: Seen, topics: Collection[str]) -> str:
        """In words, the latest change of one of these topics between a time and a place; of any topic, if
        none are given. "" for none."""
        for changed, topic, change in reversed(self._latest):
            if early_ns <= (changed.time_ns or 0) <= (place.time_ns or 0) and (not topics or topic in topics):
                packet = cited(changed, place)
                return f"topic {topic} {change}" + ("" if packet is None else f" (packet {packet})")
        return ""
