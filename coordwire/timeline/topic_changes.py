"""Topics that a capture shows to be created, enlarged or deleted: why a coordinator assigns by itself, and a
leader joins again."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from coordwire.timeline.events import TopicDeed
from coordwire.timeline.evidence import Seen, cited, remember
from coordwire.versions import ApiKey

__all__ = ["CHANGES_TOPICS", "TOPIC_DEEDS", "TopicChanges"]

MOST_CHANGES, MOST_DELETED = 100, 10_000
"""The latest are remembered, and the latest topics that were deleted."""

CHANGES_TOPICS: dict[int, TopicDeed] = {
    int(ApiKey.CREATE_TOPICS): "created",
    int(ApiKey.CREATE_PARTITIONS): "grown",
    int(ApiKey.DELETE_TOPICS): "deleted",
}
"""The APIs that change topics, and what has become of one then."""

TOPIC_DEEDS: dict[TopicDeed, str] = {
    "created": "was created",
    "grown": "has more partitions",
    "deleted": "was deleted",
}
"""The same in words."""

_RESULTS = {
    int(ApiKey.CREATE_TOPICS): "topics",
    int(ApiKey.CREATE_PARTITIONS): "results",
    int(ApiKey.DELETE_TOPICS): "responses",
}


@dataclass(slots=True)
class TopicChanges:
    """Of all topics in some captures, the latest last."""

    _latest: deque[tuple[Seen, str, str]] = field(default_factory=lambda: deque(maxlen=MOST_CHANGES))
    _deleted: OrderedDict[str, tuple[int, bool]] = field(default_factory=OrderedDict)
    """When each was deleted last, and whether one of its name was created since."""

    def learn(self, api_key: int, request: Any, message: Any, place: Seen) -> list[tuple[str, TopicDeed]]:
        """A request to change topics, answered: which topics, and what became of each."""
        if getattr(request, "validate_only", False):
            return []
        changed, deed = [], CHANGES_TOPICS[api_key]
        for result in getattr(message, _RESULTS[api_key])[:MOST_CHANGES]:
            if result.name and not result.error_code:
                self._latest.append((place, result.name, TOPIC_DEEDS[deed]))
                changed.append((result.name, deed))
                if deed == "deleted":
                    remember(self._deleted, result.name, (place.time_ns or 0, False), MOST_DELETED)
                elif result.name in self._deleted:
                    self._deleted[result.name] = self._deleted[result.name][0], True
        return changed

    def is_deleted(self, topic: str, since_ns: int) -> bool:
        """Whether the topic that had a name then was deleted, or there is none."""
        deleted_ns, is_anew = self._deleted.get(topic, (-1, True))
        return deleted_ns >= since_ns or not is_anew

    def since(self, early_ns: int, place: Seen, topics: Collection[str]) -> str:
        """In words, the latest change of one of these topics between a time and a place; of any topic, if
        none are given. "" for none."""
        for changed, topic, change in reversed(self._latest):
            if early_ns <= (changed.time_ns or 0) <= (place.time_ns or 0) and (not topics or topic in topics):
                packet = cited(changed, place)
                return f"topic {topic} {change}" + ("" if packet is None else f" (packet {packet})")
        return ""
