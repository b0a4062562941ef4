"""A group coordinator with what a Kafka broker does around it: the same inputs and outputs, and rights.

    apis = GroupApis(coordinator)
    ticket = apis.handle(request, version=9, now=now, context=context, allows=allows)
    for effect in apis.effects(): ...

Strategy: a request's guard decides before the coordinator has it, and changes the answer that comes out.
Rules: all else (partitions, appends, time, topics) is given to the coordinator itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias
from uuid import UUID

from coordwire.codec import Message
from coordwire.coordinator.apis.groups import topics_to_create
from coordwire.coordinator.apis.guards import CLUSTER, Change, Guard
from coordwire.coordinator.apis.table import GUARDS
from coordwire.coordinator.effects import Answer, Effect, RequestContext
from coordwire.coordinator.requests import REQUESTS, refused_request
from coordwire.coordinator.topics import TopicsImage
from coordwire.enums import AclOperation, AclResourceType

__all__ = ["Allows", "GroupApis"]

Allows: TypeAlias = Callable[[AclOperation, AclResourceType, str], bool]
"""Whether a client may do this to the resource of this type and name."""


def _allows_all(operation: AclOperation, resource_type: AclResourceType, name: str) -> bool:
    return True


class _Coordinator(Protocol):
    """What a guarded coordinator does: that of a node, or one shard."""

    @property
    def topics(self) -> TopicsImage: ...

    def handle(self, request: Message, *, version: int, now: int, context: RequestContext) -> int: ...

    def answer(self, response: Message) -> int: ...

    def effects(self) -> Iterator[Effect]: ...


@dataclass(slots=True)
class _Call:
    """A request as guards see it."""

    request: Any
    version: int
    coordinator: _Coordinator
    decide: Allows
    change: Change | None = None

    @property
    def topics(self) -> TopicsImage:
        return self.coordinator.topics

    def allows(self, operation: AclOperation, resource_type: AclResourceType, name: str = CLUSTER) -> bool:
        return self.decide(operation, resource_type, name)

    def allows_some(self, operation: AclOperation, resource_type: AclResourceType) -> bool:
        raise NotImplementedError("no request about groups asks that")

    def topic_name(self, topic_id: UUID) -> str | None:
        topic = self.topics.find_id(topic_id)
        return None if topic is None else topic.name


class GroupApis:
    """A `GroupCoordinator` or a `Shard`, and what a broker does around it."""

    def __init__(self, coordinator: _Coordinator, guards: Mapping[int, Guard] = GUARDS) -> None:
        """guards: by API; `TOPIC_GUARDS` are those that know no rights."""
        self.coordinator = coordinator
        self._guards = guards
        self._calls: dict[int, _Call] = {}

    def handle(
        self,
        request: Message,
        *,
        version: int,
        now: int,
        context: RequestContext,
        allows: Allows | None = None,
    ) -> int:
        """Take a request, and return the ticket that its `Answer` has. Raises as `GroupCoordinator.handle`
        does.

        allows: decides what the client may do, by operation, type and name of a resource; by default it may
        do everything. It is called again when the answer is there.
        """
        coordinator = self.coordinator
        if version not in REQUESTS.get(type(request), ()):
            raise refused_request(type(request), version)
        call = _Call(request, version, coordinator, allows or _allows_all)
        guard = self._guards.get(-1 if request.api_key is None else request.api_key)
        verdict = None if guard is None else guard(call)
        if isinstance(verdict, Message):
            return coordinator.answer(verdict)
        call.change = verdict
        ticket = coordinator.handle(call.request, version=version, now=now, context=context)
        self._calls[ticket] = call
        return ticket

    def effects(self) -> Iterator[Effect]:
        """The coordinator's effects, with answers that show what the client may see."""
        for effect in self.coordinator.effects():
            call = self._calls.pop(effect.ticket, None) if isinstance(effect, Answer) else None
            if call is None or not isinstance(effect, Answer):
                yield effect
                continue
            if call.change is not None:
                call.change(effect.response)
            creatable = topics_to_create(call, effect.response, tuple(effect.topics_to_create))
            yield replace(effect, topics_to_create=creatable) if effect.topics_to_create else effect
