"""The calls of a group coordinator to the share coordinators, and the way of their answers to operations.

Strategy: a call is an effect, `StateRequest`; the server around the shard sends it to the share coordinators
of the partitions that it names, and gives the answer to `Shard.persisted`. Rules: a call outlives the term of
the shard that made it; an operation that follows its answer runs in the term that there is then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from coordwire._dataclasses import dataclass
from coordwire.codec import Message
from coordwire.coordinator.topics import TopicsImage

LatestOffsets: TypeAlias = Mapping[tuple[str, int], tuple[int, int]]
"""By topic and partition an error code, and the offset after the last record."""


PERSISTER_TIMER = "persister-"
"""The prefix of the keys of timers after which share coordinators are asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRequest:
    """A request to the share coordinators: answer it with `Shard.persisted`.

    request: an InitializeShareGroupState, DeleteShareGroupState or ReadShareGroupStateSummary request.
    partition: the number of the shard's.
    """

    number: int
    request: Message
    partition: int = 0

    @property
    def version(self) -> int:
        """The version in which to encode the request: the newest, whose answer has all that is read of it."""
        return self.request.versions[-1]


Persisted: TypeAlias = Callable[[Any, int, LatestOffsets], None]
"""Takes the response, or None and the code of an error for all of the request; and the ends of logs."""


class Persister:
    """The calls of one shard that wait for an answer. send: takes the effects. topics: the cluster's now,
    which the state of a term that has ended does not know."""

    def __init__(self, send: Callable[[StateRequest], None], partition: int = 0) -> None:
        self._send = send
        self._partition = partition
        self._number = self._delayed = 0
        self._waiting: dict[int, Persisted] = {}
        self.topics = TopicsImage()

    def next_key(self) -> str:
        """The key of a timer after which a request is sent."""
        self._delayed += 1
        return f"{PERSISTER_TIMER}{self._delayed}"

    def call(self, request: Message, persisted: Persisted) -> None:
        """Send a request."""
        self._number += 1
        self._waiting[self._number] = persisted
        self._send(StateRequest(number=self._number, request=request, partition=self._partition))

    def answer(
        self, number: int, response: Message | None, error_code: int, latest_offsets: LatestOffsets
    ) -> None:
        """Give an answer to what waits for it; a second one is ignored."""
        persisted = self._waiting.pop(number, None)
        if persisted is not None:
            persisted(response, error_code, latest_offsets)
