"""The requests of one connection that wait for their answers, by their correlation ids.

Strategy: of a request as little is kept as its answer needs; what a script or a rule keeps of it is counted.
Rules: there is a bound of requests and one of bytes; of two requests with one number, the later one counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from coordwire.broker.cluster.promise import Promise
from coordwire.codec import Message
from coordwire.tap.script import TappedExchange

__all__ = ["UnansweredRequest", "UnansweredRequests", "memory_cost"]

MOST_REQUESTS = 10_000

MOST_BYTES = 4 << 20
"""Bytes of memory of requests that a script or a rule keeps, unless there is but one."""


def memory_cost(size: int) -> int:
    """The bytes of memory, about, that a message with a frame of this size takes when it is decoded."""
    return 1_000 + 10 * size


@dataclass(slots=True)
class UnansweredRequest:
    """A request that waits for its answer. request: where that is needed then. promise: of the answer, for a
    rule that took the request. size: bytes of memory of what is kept of the request."""

    api_key: int
    version: int
    request: Message | None = None
    exchange: TappedExchange | None = None
    promise: Promise[Message | None] | None = None
    size: int = 0


class UnansweredRequests:
    """The requests of a connection."""

    def __init__(self) -> None:
        self._requests: dict[int, UnansweredRequest] = {}
        self._size = 0

    def __len__(self) -> int:
        return len(self._requests)

    @property
    def is_full(self) -> bool:
        """Whether no other request may wait."""
        return len(self._requests) >= MOST_REQUESTS or self._size >= MOST_BYTES

    def add(self, number: int, request: UnansweredRequest) -> None:
        """Keep a request until its answer comes."""
        self.pop(number)
        self._requests[number] = request
        self._size += request.size

    def get(self, number: int) -> UnansweredRequest | None:
        return self._requests.get(number)

    def pop(self, number: int) -> UnansweredRequest | None:
        """The request that an answer belongs to, which waits no more."""
        request = self._requests.pop(number, None)
        if request is not None:
            self._size -= request.size
        return request

    def clear(self) -> None:
        self._requests.clear()
        self._size = 0
