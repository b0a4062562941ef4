"""One request on its way through a tap, as faults see it, and its answer.

Strategy: faults are those of `coordwire.broker.injection`; what a broker does with a request is here to send
it on, and to await the answer. Rules: a request without an answer (Produce with acks=0) is answered by an
empty response, which is not sent; partitions of a Fetch that a fault refuses are asked for all the same, so
that its session stays as the client knows it, and refused in the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from coordwire.broker.cluster.fetch_sessions import FetchKey
from coordwire.broker.cluster.promise import Promise
from coordwire.broker.injection.faulted_call import request_subjects
from coordwire.broker.injection.refused_answers import ElementIndex, place_of, refuse_element
from coordwire.codec import Message
from coordwire.enums import ErrorCode
from coordwire.tap.topic_ids import TopicIds

Carry = Callable[[Message], "Promise[Message | None] | None"]
"""Sends a request on, and promises its answer, None if that cannot be read; gives None for no answer."""


class UnreadableResponse(Exception):
    """The broker's answer cannot be read: no fault can be put into it."""


@dataclass(slots=True)
class TappedCall:
    """A request. sessions: gives the partitions of a fetch session. refused: partitions of a Fetch that a
    fault refuses, by topic and index."""

    request: Any
    version: int
    node: int
    client_id: str | None
    topics: TopicIds
    sessions: Callable[[int], Iterable[FetchKey]]
    carry: Carry
    refused: Mapping[tuple[str | None, int | None], ErrorCode] | None = None

    def topic_name(self, topic_id: UUID) -> str | None:
        return self.topics.name(topic_id)

    def session_partitions(self) -> Iterable[tuple[str | None, UUID, int]]:
        return self.sessions(self.request.session_id)


def carried_out(call: TappedCall) -> Coroutine[Any, None, Message | None]:
    """Send a request on, with what faults have left of it; its answer."""

    async def run() -> Message | None:
        response_class: Any = type(call.request).response_class
        promise = call.carry(call.request)
        response: Message | None = response_class() if promise is None else await promise
        if response is None:
            raise UnreadableResponse
        if call.refused:
            _refuse_partitions(call, response)
        return response

    return run()


def _refuse_partitions(call: TappedCall, response: Message) -> None:
    """Put the errors of refused partitions into the answer to a Fetch."""
    place = place_of(type(response), call.version, "partition")
    refused, index = call.refused or {}, ElementIndex()
    for subject in request_subjects(call):
        code = refused.get((subject.topic, subject.partition))
        if code is not None:
            refuse_element(response, call.version, place, subject, code, index)
