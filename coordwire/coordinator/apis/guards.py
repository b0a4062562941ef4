"""Guards: what is decided about a request before its handler, and changed in the answer after it.

Strategy: a guard refuses the request with an answer of its own, or takes the refused elements out of it and
puts them in the answer with their error, or takes out of the answer what the client may not see. Rules: a
guard knows no handler, so that it goes around one that answers later. It replaces `call.request`, and changes
no message that the caller has.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple, Protocol, TypeAlias
from uuid import UUID

from coordwire.codec import Message
from coordwire.coordinator.topics import TopicsImage
from coordwire.enums import AclOperation, AclResourceType, ErrorCode

Operation, Resource = AclOperation, AclResourceType

CLUSTER = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""

OPERATIONS = {
    Resource.TOPIC.value: (3, 4, 5, 6, 7, 8, 10, 11),
    Resource.GROUP.value: (3, 6, 8, 10, 11),
    Resource.CLUSTER.value: (5, 7, 8, 9, 10, 11, 12),
}
"""By resource type, the operations that `authorized_operations` fields list."""


NOT_REQUESTED = -(1 << 31)
"""In a field of authorized operations that were not asked for."""


class GuardedCall(Protocol):
    """A request with what is known of its client and of the cluster."""

    request: Any
    version: int

    @property
    def topics(self) -> TopicsImage:
        """The cluster's topics."""

    def allows(self, operation: AclOperation, resource_type: AclResourceType, name: str = CLUSTER) -> bool:
        """Whether the client may do this to a resource."""

    def allows_some(self, operation: AclOperation, resource_type: AclResourceType) -> bool:
        """Whether there may be a resource to which the client may do this."""

    def topic_name(self, topic_id: UUID) -> str | None:
        """The name of the topic with an id; None if there is none."""


Change: TypeAlias = Callable[[Any], None]
"""Changes an answer of the handler."""

Verdict: TypeAlias = Message | Change | None
"""An answer in place of the handler's, or what to change in the handler's; None to leave it as it is."""

Guard: TypeAlias = Callable[[Any], Verdict]
"""Decides about a `GuardedCall`, whose request it may replace."""

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

    def refusal(self, call: GuardedCall) -> ErrorCode | None:
        """The reason for which the request is refused; None if it is not."""
        name = getattr(call.request, self.field) if self.field else None
        allowed = call.allows(self.operation, self.kind, *(() if name is None else (name,)))
        return None if allowed else ERRORS[self.kind]


def cluster_need(operation: AclOperation) -> Need:
    return Need(operation, Resource.CLUSTER)


def error_response(call: GuardedCall, error: ErrorCode) -> Message:
    """An answer with an error and nothing else."""
    response: Message = type(call.request).response_class(error_code=int(error))
    if hasattr(response, "error_message"):
        response.error_message = TEXTS[error]
    return response


def require(*needs: Need, refused: Callable[[Any, ErrorCode], Message] = error_response) -> Guard:
    """Make a guard that refuses the request unless the client has all rights."""

    def guard(call: GuardedCall) -> Verdict:
        for need in needs:
            error = need.refusal(call)
            if error is not None:
                return refused(call, error)
        return None

    return guard


def both_changes(first: Change | None, second: Change | None) -> Change | None:
    """Two changes of an answer, in this order."""
    if first is None or second is None:
        return first or second

    def change(response: Any) -> None:
        first(response)
        second(response)

    return change


def all_guards(*guards: Guard) -> Guard:
    """One guard of several, the outermost first: the first that refuses decides, and changes the answer
    last."""

    def guard(call: GuardedCall) -> Verdict:
        change: Change | None = None
        for inner in guards:
            verdict = inner(call)
            if isinstance(verdict, Message):
                if change is not None:
                    change(verdict)
                return verdict
            change = both_changes(verdict, change)
        return change

    return guard


def split_elements(
    call: GuardedCall, field: str, allows: Callable[[Any], bool], answers: str, refused: Callable[[Any], Any]
) -> Verdict:
    """Leave the elements of a request's field that are allowed; put the others among the elements of the
    answer."""
    elements = getattr(call.request, field)
    decisions = [allows(element) for element in elements]
    if all(decisions):
        return None
    allowed = [element for element, allow in zip(elements, decisions, strict=True) if allow]
    refusals = [refused(element) for element, allow in zip(elements, decisions, strict=True) if not allow]

    def add(response: Any) -> None:
        if getattr(response, "error_code", 0):  # the request is refused as a whole
            return
        setattr(response, answers, [*(getattr(response, answers) or ()), *refusals])

    if not allowed:
        response: Message = type(call.request).response_class()
        add(response)
        return response
    call.request = replaced(call.request, {field: allowed})
    return add


def replaced(message: Any, changes: dict[str, Any]) -> Any:
    return dataclasses.replace(message, **changes)


def element_guard(
    field: str,
    operation: AclOperation,
    kind: AclResourceType,
    answers: str,
    refused: Callable[[Any, int], Any],
    name: Callable[[Any, Any], str | None] | None = None,
) -> Guard:
    """Each element of a field names its resource, or is its name."""
    code = int(ERRORS[kind])

    def guard(call: GuardedCall) -> Verdict:
        decided = cache(partial(call.allows, operation, kind))

        def allows(element: Any) -> bool:
            named = element if name is None else name(call, element)
            return named is None or decided(named)

        return split_elements(call, field, allows, answers, lambda element: refused(element, code))

    return guard


def topic_name(call: GuardedCall, element: Any) -> str | None:
    """The topic that an element names, by name or id; None for an unknown id."""
    topic_id = getattr(element, "topic_id", None)
    if topic_id is not None and topic_id.int:
        return call.topic_name(topic_id)
    name: str | None = element.name
    return name


def operation_bits(call: GuardedCall, kind: AclResourceType, *name: str) -> int:
    """The bits of what the client may do to a resource."""
    return sum(
        1 << number for number in OPERATIONS[kind.value] if call.allows(AclOperation(number), kind, *name)
    )
