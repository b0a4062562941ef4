"""A request on its way to an operation, and the outcome's way to the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from coordwire.codec import Message
from coordwire.coordinator.effects import Reply, RequestContext
from coordwire.coordinator.refusal import OperationRefused, translated
from coordwire.coordinator.state import Outcome, Result, State
from coordwire.coordinator.writes import Writes

__all__ = [
    "VISIBLE",
    "Handler",
    "ImmediateRequest",
    "IncomingRequest",
    "RefusalWording",
    "SteadyAnswer",
    "is_blank",
]

_JAVA_SPACES = "".join(map(chr, range(33)))
VISIBLE = "!"
"""The first character after Java's spaces: a greater text does not begin with one of them."""


def is_blank(text: str) -> bool:
    """Whether a text has nothing but what Java counts as spaces."""
    return not text.strip(_JAVA_SPACES)


RefusalWording: TypeAlias = Callable[[int, str | None], Message]
"""Makes the response to a refused request from an error code and a message."""


@dataclass(slots=True)
class IncomingRequest:
    """A request on its way. error: 0, or the code of a shard that has no service now."""

    state: State
    writes: Writes
    error: int
    request: Any
    version: int
    context: RequestContext
    reply: Reply

    def write(
        self,
        operation: Callable[[], Outcome],
        on_error: Callable[[int], Message],
        translate: Callable[[int], int] = translated,
    ) -> None:
        """Run an operation and answer when it is durable; `on_error` makes the answer of an error."""
        if self.error:
            self.reply.send(on_error(self.error))
        else:
            self.writes.run(operation, self.completed(lambda error, _: on_error(error), translate))

    def completed(
        self, refused: RefusalWording, translate: Callable[[int], int] = translated
    ) -> Callable[[int, Result], None]:
        """The callback that answers when an operation is durable, or failed."""

        def completed(error: int, result: Result) -> None:
            if error:
                self.reply.send(refused(translate(error), result.message))
            elif result.response is not None:
                self.reply.topics_to_create = result.topics_to_create
                self.reply.send(result.response)

        return completed


Handler: TypeAlias = Callable[[IncomingRequest], None]
"""Handles the requests of one type: checks what needs no group, and runs an operation."""


SteadyAnswer: TypeAlias = Callable[[State, Any, RequestContext], Message | None]


@dataclass(frozen=True, slots=True)
class ImmediateRequest:
    """A request that seldom writes: without records it is answered at once, unless appends are pending.

    validate: refuses a request that is invalid whatever the group is like. steady: a fast path that does
    both for a request that changes nothing but the end of a session, or does nothing and returns None.
    """

    validate: Callable[[State, Any, int], None]
    operation: Callable[[State, Any, RequestContext], Outcome]
    refused: RefusalWording
    steady: SteadyAnswer | None = None

    def route(self, call: IncomingRequest) -> None:
        """Handle the request while appends are pending, or without service."""
        try:
            self.validate(call.state, call.request, call.version)
        except OperationRefused as refusal:
            call.reply.send(self.refused(refusal.code, refusal.message))
            return
        if call.error:
            call.reply.send(self.refused(call.error, None))
            return
        call.writes.run(
            lambda: self.operation(call.state, call.request, call.context), call.completed(self.refused)
        )
