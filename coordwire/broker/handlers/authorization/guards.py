"""Guards: what goes around a handler, and how a guard is made.

Strategy: a guard refuses the request, or takes the refused elements out of it and puts them in the answer
with their error, or takes out of the answer what the client may not see.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

from coordwire.broker.handlers.api_call import ApiCall, Handler, HandlerResult, result_of
from coordwire.broker.security.authorizer import OPERATIONS
from coordwire.codec import Message
from coordwire.enums import AclOperation, AclResourceType, ErrorCode

__all__ = [
    "ERRORS",
    "NOT_REQUESTED",
    "TEXTS",
    "Guard",
    "Need",
    "Operation",
    "Resource",
    "both_guards",
    "change_answer",
    "cluster_need",
    "element_guard",
    "error_response",
    "operation_bits",
    "partition_guard",
    "replaced",
    "require",
    "split_elements",
    "topic_name",
]

Guard = Callable[[ApiCall, Handler], HandlerResult]
"""Answers as the handler does, as far as the client may."""

Operation, Resource = AclOperation, AclResourceType
NOT_REQUESTED = -(1 << 31)

ERRORS = {
    Resource.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    Resource.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    Resource.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    Resource.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
TEXTS = {error: f"{kind.name.capitalize()} authorization failed." for kind, error in ERRORS.items()}


class Need(NamedTuple):
    """field: of the request, with the resource's name; the cluster where it is empty."""

    operation: AclOperation
    kind: AclResourceType
    field: str = ""

    def refusal(self, call: ApiCall) -> ErrorCode | None:
        """The reason for which the request is refused; None if it is not."""
        name = getattr(call.request, self.field) if self.field else None
        allowed = call.allows(self.operation, self.kind, *(() if name is None else (name,)))
        return None if allowed else ERRORS[self.kind]


def cluster_need(operation: AclOperation) -> Need:
    return Need(operation, Resource.CLUSTER)


async def change_answer(call: ApiCall, handler: Handler, change: Callable[[Any], None]) -> Message | None:
    """Answer as the handler does, and change the answer."""
    response = await result_of(handler(call))
    if response is not None:
        change(response)
    return response


def error_response(call: ApiCall, error: ErrorCode) -> Message:
    """An answer with an error and nothing else."""
    response: Message = type(call.request).response_class(error_code=int(error))
    if hasattr(response, "error_message"):
        response.error_message = TEXTS[error]
    return response


def require(*needs: Need, refused: Callable[[ApiCall, ErrorCode], Message] = error_response) -> Guard:
    """Make a guard that refuses the request unless the client has all rights."""

    def guard(call: ApiCall, handler: Handler) -> HandlerResult:
        for need in needs:
            error = need.refusal(call)
            if error is not None:
                return refused(call, error)
        return handler(call)

    return guard


def both_guards(outer: Guard, inner: Guard) -> Guard:
    return lambda call, handler: outer(call, lambda inner_call: inner(inner_call, handler))


def split_elements(
    call: ApiCall,
    handler: Handler,
    field: str,
    allows: Callable[[Any], bool],
    answers: str,
    refused: Callable[[Any], Any],
) -> HandlerResult:
    """Let the handler work on the elements of a request's field that are allowed; put the others among the
    elements of the answer."""
    elements = getattr(call.request, field)
    decisions = [allows(element) for element in elements]
    if all(decisions):
        return handler(call)
    allowed = [element for element, allow in zip(elements, decisions, strict=True) if allow]
    refusals = [refused(element) for element, allow in zip(elements, decisions, strict=True) if not allow]

    def add(response: Any) -> None:
        if getattr(response, "error_code", 0):  # the request is refused as a whole
            return
        setattr(response, answers, [*(getattr(response, answers) or ()), *refusals])

    if not allowed:
        response = type(call.request).response_class()
        add(response)
        return response  # type: ignore[no-any-return]
    call.request = replaced(call.request, {field: allowed})
    return change_answer(call, handler, add)


def replaced(message: Any, changes: dict[str, Any]) -> Any:
    return dataclasses.replace(message, **changes)


def element_guard(
    field: str,
    operation: AclOperation,
    kind: AclResourceType,
    answers: str,
    refused: Callable[[Any, int], Any],
    name: Callable[[ApiCall, Any], str | None] | None = None,
) -> Guard:
    """Each element of a field names its resource, or is its name."""
    code = int(ERRORS[kind])

    def guard(call: ApiCall, handler: Handler) -> HandlerResult:
        decided = cache(partial(call.allows, operation, kind))

        def allows(element: Any) -> bool:
            named = element if name is None else name(call, element)
            return named is None or decided(named)

        return split_elements(call, handler, field, allows, answers, lambda element: refused(element, code))

    return guard


def topic_name(call: ApiCall, element: Any) -> str | None:
    """The topic that an element names, by name or id; None for an unknown id."""
    topic_id = getattr(element, "topic_id", None)
    if topic_id is not None and topic_id.int:
        topic = call.cluster.topics_by_id.get(topic_id)
        return None if topic is None else topic.name
    name: str | None = element.name
    return name


def partition_guard(operation: AclOperation) -> Guard:
    """The handler refuses the partitions of topics, one by one."""

    def guard(call: ApiCall, handler: Handler) -> HandlerResult:
        call.forbids = cache(lambda topic: not call.allows(operation, Resource.TOPIC, topic))
        return handler(call)

    return guard


def operation_bits(call: ApiCall, kind: AclResourceType, *name: str) -> int:
    """The bits of what the client may do to a resource."""
    return sum(
        1 << number for number in OPERATIONS[kind.value] if call.allows(AclOperation(number), kind, *name)
    )
