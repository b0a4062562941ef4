"""The guard of each API of a coordinator: the rights that a client needs, and the errors without them;
`GroupApis`: a group coordinator with what a Kafka broker does around it: the same inputs and outputs, and
rights.

    apis = GroupApis(coordinator)
    ticket = apis.handle(request, version=9, now=now, context=context, allows=allows)
    for effect in apis.effects(): ...

Strategy: a request's guard decides before the coordinator has it, and changes the answer that comes out.
Rules: all else (partitions, appends, time, topics) is given to the coordinator itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeAlias
from uuid import UUID

from coordwire._dataclasses import dataclass
from coordwire.codec import Message
from coordwire.coordinator.apis.groups import (
    describe_groups_guard,
    find_coordinator_guard,
    heartbeat_guard,
    join_refusal,
    list_groups_guard,
    share_member_guard,
    state_refusal,
    streams_heartbeat_guard,
    topics_to_create,
)
from coordwire.coordinator.apis.guards import (
    CLUSTER,
    Change,
    Guard,
    Need,
    Operation,
    Resource,
    all_guards,
    cluster_need,
    element_guard,
    require,
    topic_name,
)
from coordwire.coordinator.apis.offsets import (
    alter_share_offsets_guard,
    commit_refusal,
    commit_topic_refusal,
    delete_topic_refusal,
    offset_fetch_guard,
    share_deletion_refusal,
    share_offsets_guard,
    transactional_commit_refusal,
    transactional_commit_topic_refusal,
)
from coordwire.coordinator.apis.topics import TOPIC_GUARDS
from coordwire.coordinator.apis.transactions import (
    add_partitions_guard,
    describe_transactions_guard,
    init_producer_id_guard,
    list_transactions_guard,
    write_markers_guard,
)
from coordwire.coordinator.effects import Answer, Effect, RequestContext
from coordwire.coordinator.requests import REQUESTS, refused_request
from coordwire.coordinator.topics import TopicsImage
from coordwire.enums import AclOperation, AclResourceType
from coordwire.messages import consumer_group_describe as consumer_groups
from coordwire.messages import share_group_describe as share_groups
from coordwire.messages import streams_group_describe as streams_groups
from coordwire.messages.delete_groups import DeletableGroupResult
from coordwire.messages.describe_groups import DescribedGroup
from coordwire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsResponseGroup
from coordwire.messages.describe_transactions import TransactionState
from coordwire.versions import ApiKey

_READS_GROUP = Need(Operation.READ, Resource.GROUP, "group_id")
_DELETES_GROUP = Need(Operation.DELETE, Resource.GROUP, "group_id")
_WRITES_TRANSACTION = Need(Operation.WRITE, Resource.TRANSACTIONAL_ID, "transactional_id")
_STATE_GUARD = require(cluster_need(Operation.CLUSTER_ACTION), refused=state_refusal)


def _describe(field: str, described: Callable[..., Any]) -> Guard:
    """That of a request which describes groups. field: with their ids; described: makes a group's answer."""
    return all_guards(
        element_guard(
            field,
            Operation.DESCRIBE,
            Resource.GROUP,
            "groups",
            lambda name, code: described(group_id=name, error_code=code),
        ),
        describe_groups_guard,
    )


GUARDS: Mapping[int, Guard] = {
    ApiKey.JOIN_GROUP: require(_READS_GROUP, refused=join_refusal),
    ApiKey.SYNC_GROUP: require(_READS_GROUP),
    ApiKey.HEARTBEAT: require(_READS_GROUP),
    ApiKey.LEAVE_GROUP: require(_READS_GROUP),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: all_guards(require(_READS_GROUP), heartbeat_guard),
    ApiKey.STREAMS_GROUP_HEARTBEAT: all_guards(require(_READS_GROUP), streams_heartbeat_guard),
    ApiKey.OFFSET_COMMIT: all_guards(
        require(_READS_GROUP, refused=commit_refusal),
        element_guard("topics", Operation.READ, Resource.TOPIC, "topics", commit_topic_refusal, topic_name),
        TOPIC_GUARDS[ApiKey.OFFSET_COMMIT],
    ),
    ApiKey.OFFSET_FETCH: all_guards(offset_fetch_guard, TOPIC_GUARDS[ApiKey.OFFSET_FETCH]),
    ApiKey.OFFSET_DELETE: all_guards(
        require(_DELETES_GROUP),
        element_guard("topics", Operation.READ, Resource.TOPIC, "topics", delete_topic_refusal, topic_name),
        TOPIC_GUARDS[ApiKey.OFFSET_DELETE],
    ),
    ApiKey.LIST_GROUPS: list_groups_guard,
    ApiKey.DESCRIBE_GROUPS: _describe("groups", DescribedGroup),
    ApiKey.CONSUMER_GROUP_DESCRIBE: _describe("group_ids", consumer_groups.DescribedGroup),
    ApiKey.STREAMS_GROUP_DESCRIBE: _describe("group_ids", streams_groups.DescribedGroup),
    ApiKey.DELETE_GROUPS: element_guard(
        "groups_names",
        Operation.DELETE,
        Resource.GROUP,
        "results",
        lambda name, code: DeletableGroupResult(group_id=name, error_code=code),
    ),
    ApiKey.FIND_COORDINATOR: find_coordinator_guard,
    ApiKey.INIT_PRODUCER_ID: init_producer_id_guard,
    ApiKey.ADD_PARTITIONS_TO_TXN: add_partitions_guard,
    ApiKey.ADD_OFFSETS_TO_TXN: require(_WRITES_TRANSACTION, _READS_GROUP),
    ApiKey.END_TXN: require(_WRITES_TRANSACTION),
    ApiKey.TXN_OFFSET_COMMIT: all_guards(
        require(_WRITES_TRANSACTION, _READS_GROUP, refused=transactional_commit_refusal),
        element_guard(
            "topics", Operation.READ, Resource.TOPIC, "topics", transactional_commit_topic_refusal, topic_name
        ),
        TOPIC_GUARDS[ApiKey.TXN_OFFSET_COMMIT],
    ),
    ApiKey.WRITE_TXN_MARKERS: write_markers_guard,
    ApiKey.DESCRIBE_TRANSACTIONS: all_guards(
        element_guard(
            "transactional_ids",
            Operation.DESCRIBE,
            Resource.TRANSACTIONAL_ID,
            "transaction_states",
            lambda name, code: TransactionState(transactional_id=name, error_code=code),
        ),
        describe_transactions_guard,
    ),
    ApiKey.LIST_TRANSACTIONS: list_transactions_guard,
    ApiKey.SHARE_GROUP_HEARTBEAT: all_guards(require(_READS_GROUP), heartbeat_guard, share_member_guard),
    ApiKey.SHARE_GROUP_DESCRIBE: _describe("group_ids", share_groups.DescribedGroup),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: all_guards(
        element_guard(
            "groups",
            Operation.DESCRIBE,
            Resource.GROUP,
            "groups",
            lambda group, code: DescribeShareGroupOffsetsResponseGroup(
                group_id=group.group_id, error_code=code
            ),
            lambda call, group: group.group_id,
        ),
        share_offsets_guard,
    ),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: all_guards(require(_READS_GROUP), alter_share_offsets_guard),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: all_guards(
        require(_DELETES_GROUP),
        element_guard(
            "topics",
            Operation.READ,
            Resource.TOPIC,
            "responses",
            share_deletion_refusal,
            lambda call, topic: topic.topic_name,
        ),
    ),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _STATE_GUARD,
    ApiKey.READ_SHARE_GROUP_STATE: _STATE_GUARD,
    ApiKey.WRITE_SHARE_GROUP_STATE: _STATE_GUARD,
    ApiKey.DELETE_SHARE_GROUP_STATE: _STATE_GUARD,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _STATE_GUARD,
}

ALWAYS = frozenset(
    {
        *TOPIC_GUARDS,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS, ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_HEARTBEAT,
        ApiKey.DESCRIBE_GROUPS, ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.SHARE_GROUP_DESCRIBE,
        ApiKey.STREAMS_GROUP_DESCRIBE,
    }
)  # fmt: skip
"""APIs whose guard has something to do where everybody may do everything, too."""


# --- group apis ---


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
    """A `GroupCoordinator` or a `Shard`, and what a broker does around it.

    >>> from coordwire.coordinator import Answer, GroupApis, GroupCoordinator, RequestContext
    >>> from coordwire.messages import HeartbeatRequest
    >>> coordinator = GroupCoordinator(partitions=1)
    >>> coordinator.load(0, [], now=0)
    >>> apis = GroupApis(coordinator)
    >>> context = RequestContext(client_id="till-3", client_host="/192.0.2.7", new_id=lambda: "1")
    >>> heartbeat = HeartbeatRequest(group_id="orders")
    >>> ticket = apis.handle(heartbeat, version=4, now=0, context=context, allows=lambda *_: False)
    >>> [effect.response.error_code for effect in apis.effects() if isinstance(effect, Answer)]
    [30]
    >>> apis
    <GroupApis of <GroupCoordinator: 1 of 1 partition, 0 groups>>
    """

    def __init__(self, coordinator: _Coordinator, guards: Mapping[int, Guard] = GUARDS) -> None:
        """guards: by API; `TOPIC_GUARDS` are those that know no rights."""
        self.coordinator = coordinator
        self._guards = guards
        self._calls: dict[int, _Call] = {}

    def __repr__(self) -> str:
        return f"<GroupApis of {self.coordinator!r}>"

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
