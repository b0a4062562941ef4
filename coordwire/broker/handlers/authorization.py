"""What a client needs for each API, and what it gets without it, as Kafka's brokers and controllers decide.

Strategy: a guard for each API goes around its handler. It refuses the request, or takes the elements that are
refused out of it and puts them in the answer with their error, or takes out of the answer what the client may
not see. Rules: handlers do not ask who the client is; an API without a guard is open to all. The cost is
linear in the request and the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

from coordwire.broker.authorizer import OPERATIONS
from coordwire.broker.handlers.api_call import ApiCall, Handler
from coordwire.broker.log.refused_records import RefusedRecords
from coordwire.broker.log.validation import one_batch
from coordwire.codec import Message
from coordwire.enums import AclOperation, AclResourceType, ConfigResourceType, CoordinatorType, ErrorCode
from coordwire.messages import (
    AddPartitionsToTxnResponse,
    AlterClientQuotasResponse,
    AlterReplicaLogDirsResponse,
    AlterUserScramCredentialsResponse,
    CreateAclsResponse,
    DeleteAclsResponse,
    ElectLeadersResponse,
    FindCoordinatorResponse,
    OffsetCommitResponse,
    OffsetFetchResponse,
    ProduceResponse,
    TxnOffsetCommitResponse,
    WriteTxnMarkersResponse,
    alter_configs,
    incremental_alter_configs,
    offset_delete,
    offset_fetch,
)
from coordwire.messages import add_partitions_to_txn as to_transaction
from coordwire.messages import consumer_group_describe as consumer_groups
from coordwire.messages.alter_client_quotas import (
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
)
from coordwire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirTopicResult,
)
from coordwire.messages.alter_user_scram_credentials import AlterUserScramCredentialsResult
from coordwire.messages.create_acls import AclCreationResult
from coordwire.messages.create_partitions import CreatePartitionsTopicResult
from coordwire.messages.create_topics import CreatableTopicResult
from coordwire.messages.delete_acls import DeleteAclsFilterResult
from coordwire.messages.delete_groups import DeletableGroupResult
from coordwire.messages.delete_topics import DeletableTopicResult, DeleteTopicState
from coordwire.messages.describe_configs import DescribeConfigsResult
from coordwire.messages.describe_groups import DescribedGroup
from coordwire.messages.describe_topic_partitions import DescribeTopicPartitionsResponseTopic
from coordwire.messages.describe_transactions import TransactionState
from coordwire.messages.elect_leaders import PartitionResult, ReplicaElectionResult
from coordwire.messages.find_coordinator import Coordinator
from coordwire.messages.metadata import MetadataResponseTopic
from coordwire.messages.offset_commit import OffsetCommitResponsePartition, OffsetCommitResponseTopic
from coordwire.messages.produce import PartitionProduceResponse, TopicProduceResponse
from coordwire.messages.txn_offset_commit import (
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from coordwire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
)
from coordwire.versions import ApiKey

__all__ = ["authorized"]

Guard = Callable[[ApiCall, Handler], Message | None]
"""Answers as the handler does, as far as the client may."""

_O, _R = AclOperation, AclResourceType
_NOT_ASKED = -(1 << 31)

_ERRORS = {
    _R.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    _R.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    _R.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    _R.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
_TEXTS = {error: f"{kind.name.capitalize()} authorization failed." for kind, error in _ERRORS.items()}


def authorized(call: ApiCall, api_key: int, handler: Handler) -> Message | None:
    """As the handler, for what the client may do."""
    guard = _GUARDS.get(api_key)
    if guard is None or call.cluster.authorizer is None:
        return handler(call)
    return guard(call, handler)


# --- how a guard is made ---


class _Need(NamedTuple):
    """field: of the request, with the resource's name; the cluster where it is empty."""

    operation: AclOperation
    kind: AclResourceType
    field: str = ""

    def refusal(self, call: ApiCall) -> ErrorCode | None:
        """Why the request is refused; None if it is not."""
        name = getattr(call.request, self.field) if self.field else None
        allowed = call.allows(self.operation, self.kind, *(() if name is None else (name,)))
        return None if allowed else _ERRORS[self.kind]


def _cluster(operation: AclOperation) -> _Need:
    return _Need(operation, _R.CLUSTER)


def _answer_with(call: ApiCall, handler: Handler, change: Callable[[Any], None]) -> Message | None:
    """As the handler, with a change to the answer, whenever it comes."""
    reply = call.reply

    def changed(response: Message) -> None:
        change(response)
        reply(response)

    call.reply = changed
    response = handler(call)
    if response is not None:
        call.reply = reply
        change(response)
    return response


def _with_code(call: ApiCall, error: ErrorCode) -> Message:
    """An answer with an error and nothing else."""
    response: Message = type(call.request).response_class(error_code=int(error))
    if hasattr(response, "error_message"):
        response.error_message = _TEXTS[error]
    return response


def _whole(*needs: _Need, refused: Callable[[ApiCall, ErrorCode], Message] = _with_code) -> Guard:
    """All needs, or none of the request."""

    def guard(call: ApiCall, handler: Handler) -> Message | None:
        for need in needs:
            error = need.refusal(call)
            if error is not None:
                return refused(call, error)
        return handler(call)

    return guard


def _both(outer: Guard, inner: Guard) -> Guard:
    return lambda call, handler: outer(call, lambda inside: inner(inside, handler))


def _split(
    call: ApiCall,
    handler: Handler,
    field: str,
    allows: Callable[[Any], bool],
    answers: str,
    refused: Callable[[Any], Any],
) -> Message | None:
    """Let the handler work on the elements of a request's field that are allowed; put the others among the
    elements of the answer."""
    elements = getattr(call.request, field)
    decisions = [allows(element) for element in elements]
    if all(decisions):
        return handler(call)
    allowed = [element for element, fine in zip(elements, decisions, strict=True) if fine]
    others = [refused(element) for element, fine in zip(elements, decisions, strict=True) if not fine]

    def add(response: Any) -> None:
        if getattr(response, "error_code", 0):  # the request is refused as a whole
            return
        setattr(response, answers, [*(getattr(response, answers) or ()), *others])

    if not allowed:
        response = type(call.request).response_class()
        add(response)
        return response  # type: ignore[no-any-return]
    call.request = _replaced(call.request, {field: allowed})
    return _answer_with(call, handler, add)


def _replaced(message: Any, changes: dict[str, Any]) -> Any:
    fields = {field.name: getattr(message, field.name) for field in type(message)._layout_.fields}
    return type(message)(**fields | changes)


def _elements(
    field: str,
    operation: AclOperation,
    kind: AclResourceType,
    answers: str,
    refused: Callable[[Any, int], Any],
    name: Callable[[ApiCall, Any], str | None] | None = None,
) -> Guard:
    """Each element of a field names its resource, or is its name."""
    code = int(_ERRORS[kind])

    def guard(call: ApiCall, handler: Handler) -> Message | None:
        decided = cache(partial(call.allows, operation, kind))

        def allows(element: Any) -> bool:
            named = element if name is None else name(call, element)
            return named is None or decided(named)

        return _split(call, handler, field, allows, answers, lambda element: refused(element, code))

    return guard


def _topic_name(call: ApiCall, element: Any) -> str | None:
    """The topic that an element names, by name or id; None for an unknown id."""
    topic_id = getattr(element, "topic_id", None)
    if topic_id is not None and topic_id.int:
        topic = call.cluster.topics_by_id.get(topic_id)
        return None if topic is None else topic.name
    name: str | None = element.name
    return name


def _partitions(operation: AclOperation) -> Guard:
    """The handler refuses the partitions of topics, one by one."""

    def guard(call: ApiCall, handler: Handler) -> Message | None:
        call.forbids = cache(lambda topic: not call.allows(operation, _R.TOPIC, topic))
        return handler(call)

    return guard


def _operations(call: ApiCall, kind: AclResourceType, *name: str) -> int:
    """The bits of what the client may do to a resource."""
    return sum(
        1 << number for number in OPERATIONS[kind.value] if call.allows(AclOperation(number), kind, *name)
    )


# --- records ---


def _produce(call: ApiCall, handler: Handler) -> Message | None:
    request, code = call.request, int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    name = request.transactional_id
    if name is not None and not call.allows(_O.WRITE, _R.TRANSACTIONAL_ID, name) and _in_transaction(call):
        return ProduceResponse(responses=[_refused_produce(topic, code) for topic in request.topic_data])
    return _produce_to_topics(call, handler)


def _in_transaction(call: ApiCall) -> bool:
    """Whether a batch of a Produce request is part of a transaction."""
    for topic in call.request.topic_data:
        for part in topic.partition_data:
            try:
                if one_batch(part.records, call.version).transactional:
                    return True
            except RefusedRecords:
                continue
    return False


def _refused_produce(topic: Any, code: int) -> TopicProduceResponse:
    return TopicProduceResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=[
            PartitionProduceResponse(index=part.index, error_code=code, base_offset=-1)
            for part in topic.partition_data
        ],
    )


_produce_to_topics = _elements("topic_data", _O.WRITE, _R.TOPIC, "responses", _refused_produce, _topic_name)


def _fetch(call: ApiCall, handler: Handler) -> Message | None:
    request = call.request
    replica = request.replica_id if call.version < _REPLICA_STATE else request.replica_state.replica_id
    if replica < 0:
        return _partitions(_O.READ)(call, handler)
    if not call.allows(_O.CLUSTER_ACTION, _R.CLUSTER):
        call.forbids = lambda topic: True
    return handler(call)


def _epoch_ends(call: ApiCall, handler: Handler) -> Message | None:
    if call.allows(_O.CLUSTER_ACTION, _R.CLUSTER):
        return handler(call)
    return _partitions(_O.DESCRIBE)(call, handler)


_REPLICA_STATE = 15


# --- what there is ---


def _metadata(call: ApiCall, handler: Handler) -> Message | None:
    request = call.request
    describes = cache(partial(call.allows, _O.DESCRIBE, _R.TOPIC))
    everything = request.topics is None or (call.version == 0 and not request.topics)
    refused: list[MetadataResponseTopic] = []
    if not everything and not any(one.name is None and not one.topic_id.int for one in request.topics):
        allowed = []
        for asked in {(one.name, one.topic_id): one for one in request.topics}.values():
            name = _topic_name(call, asked)
            if name is None or (describes(name) and not _may_not_create(call, asked)):
                allowed.append(asked)
            else:
                by_id = bool(asked.topic_id.int)
                refused.append(
                    MetadataResponseTopic(
                        error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
                        name=_null_name(call) if by_id else name,
                        topic_id=asked.topic_id,
                    )
                )
        call.request = _replaced(request, {"topics": allowed})

    def limit(response: Any) -> None:
        if everything:
            response.topics = [one for one in response.topics if describes(one.name)]
        elif not call.request.topics:  # version 0 takes none for all
            response.topics = []
        for one in response.topics:
            if one.topic_authorized_operations != _NOT_ASKED:
                one.topic_authorized_operations = _operations(call, _R.TOPIC, one.name)
        response.topics.extend(refused)
        _limit_cluster(call, response)

    return _answer_with(call, handler, limit)


_NULLABLE_NAME = 12
_ALLOWS_CREATION = 4


def _null_name(call: ApiCall) -> str | None:
    return None if call.version >= _NULLABLE_NAME else ""


def _may_not_create(call: ApiCall, asked: Any) -> bool:
    """Whether Metadata asks for a topic that would be made, and the client may not make it."""
    return (
        not asked.topic_id.int
        and asked.name not in call.cluster.topics
        and call.cluster.config.auto_create_topics
        and (call.version < _ALLOWS_CREATION or call.request.allow_auto_topic_creation)
        and not call.allows(_O.CREATE, _R.CLUSTER)
        and not call.allows(_O.CREATE, _R.TOPIC, asked.name)
    )


def _limit_cluster(call: ApiCall, response: Any) -> None:
    if response.cluster_authorized_operations != _NOT_ASKED:
        allowed = call.allows(_O.DESCRIBE, _R.CLUSTER)
        response.cluster_authorized_operations = _operations(call, _R.CLUSTER) if allowed else 0


def _describe_cluster(call: ApiCall, handler: Handler) -> Message | None:
    return _answer_with(call, handler, partial(_limit_cluster, call))


def _describe_topic_partitions(call: ApiCall, handler: Handler) -> Message | None:
    describes = cache(partial(call.allows, _O.DESCRIBE, _R.TOPIC))
    request = call.request
    refused = []
    if request.topics:
        names = dict.fromkeys(one.name for one in request.topics)
        refused = [name for name in names if name and not describes(name)]
        if refused and len(refused) == len(names):
            call.request = _replaced(request, {"topics": [], "cursor": None, "response_partition_limit": 1})
        elif refused:
            kept = [one for one in request.topics if not one.name or describes(one.name)]
            call.request = _replaced(request, {"topics": kept})

    def limit(response: Any) -> None:
        if request.topics and not call.request.topics:
            response.topics, response.next_cursor = [], None
        response.topics = [one for one in response.topics if describes(one.name)]
        for one in response.topics:
            if one.topic_authorized_operations != _NOT_ASKED:
                one.topic_authorized_operations = _operations(call, _R.TOPIC, one.name)
        response.topics.extend(
            DescribeTopicPartitionsResponseTopic(
                error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED), name=name
            )
            for name in refused
        )

    return _answer_with(call, handler, limit)


# --- topics ---


def _create_topics(call: ApiCall, handler: Handler) -> Message | None:
    every = call.allows(_O.CREATE, _R.CLUSTER)
    shows = cache(partial(call.allows, _O.DESCRIBE_CONFIGS, _R.TOPIC))

    def limit(response: Any) -> None:
        for result in response.topics:
            if not result.error_code and not shows(result.name):
                result.topic_config_error_code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                result.num_partitions = result.replication_factor = -1
                result.configs = []

    creates = cache(partial(call.allows, _O.CREATE, _R.TOPIC))
    code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return _split(
        call,
        lambda inside: _answer_with(inside, handler, limit),
        "topics",
        lambda wanted: every or creates(wanted.name),
        "topics",
        lambda wanted: CreatableTopicResult(
            name=wanted.name, error_code=code, error_message="Authorization failed."
        ),
    )


_TOPIC_STATES = 6


def _delete_topics(call: ApiCall, handler: Handler) -> Message | None:
    deletes = cache(partial(call.allows, _O.DELETE, _R.TOPIC))
    describes = cache(partial(call.allows, _O.DESCRIBE, _R.TOPIC))
    if call.allows(_O.DELETE, _R.CLUSTER):
        return handler(call)

    def allows(state: Any) -> bool:
        name = state if isinstance(state, str) else _topic_name(call, state)
        return name is None or deletes(name) or (name not in call.cluster.topics and describes(name))

    def refused(state: Any) -> DeletableTopicResult:
        if isinstance(state, str):
            state = DeleteTopicState(name=state)
        name = _topic_name(call, state)
        assert name is not None
        return DeletableTopicResult(
            name=None if state.name is None and not describes(name) else name,
            topic_id=state.topic_id,
            error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            error_message=_TEXTS[ErrorCode.TOPIC_AUTHORIZATION_FAILED],
        )

    field = "topics" if call.version >= _TOPIC_STATES else "topic_names"
    return _split(call, handler, field, allows, "responses", refused)


# --- settings ---

_SETTINGS = {
    ConfigResourceType.TOPIC.value: _R.TOPIC,
    ConfigResourceType.GROUP.value: _R.GROUP,
}


def _settings(
    operation: AclOperation, field: str, answers: str, refused: Callable[[Any, ErrorCode], Any]
) -> Guard:
    """Settings of topics and groups are theirs, all others the cluster's."""

    def guard(call: ApiCall, handler: Handler) -> Message | None:
        decided = cache(partial(call.allows, operation))

        def kind(resource: Any) -> AclResourceType:
            return _SETTINGS.get(resource.resource_type, _R.CLUSTER)

        def allows(resource: Any) -> bool:
            known = kind(resource)
            return decided(known, *(() if known is _R.CLUSTER else (resource.resource_name,)))

        return _split(call, handler, field, allows, answers, lambda one: refused(one, _ERRORS[kind(one)]))

    return guard


def _refused_setting(result: Any) -> Callable[[Any, ErrorCode], Any]:
    return lambda resource, error: result(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        error_code=int(error),
        error_message=_TEXTS[error],
    )


# --- groups ---


def _each_partition(response: Any, topic_type: Any, partition_type: Any) -> Any:
    """For requests with topics of partitions: an answer in which each has an error, and one topic's."""

    def topic(asked: Any, code: int) -> Any:
        named = {"topic_id": asked.topic_id} if hasattr(asked, "topic_id") else {}
        parts = [
            partition_type(partition_index=one.partition_index, error_code=code) for one in asked.partitions
        ]
        return topic_type(name=asked.name, partitions=parts, **named)

    def whole(call: ApiCall, error: ErrorCode) -> Message:
        made: Message = response(topics=[topic(one, int(error)) for one in call.request.topics])
        return made

    return whole, topic


_committed, _committed_topic = _each_partition(
    OffsetCommitResponse, OffsetCommitResponseTopic, OffsetCommitResponsePartition
)
_added, _added_topic = _each_partition(
    TxnOffsetCommitResponse, TxnOffsetCommitResponseTopic, TxnOffsetCommitResponsePartition
)
_, _deleted_topic = _each_partition(
    None, offset_delete.OffsetDeleteResponseTopic, offset_delete.OffsetDeleteResponsePartition
)


_NULLABLE_PROTOCOL = 7


def _joined(call: ApiCall, error: ErrorCode) -> Message:
    response: Any = _with_code(call, error)
    response.protocol_name = None if call.version >= _NULLABLE_PROTOCOL else ""
    return response  # type: ignore[no-any-return]


def _group_heartbeat(call: ApiCall, handler: Handler) -> Message | None:
    names = call.request.subscribed_topic_names
    if names and not all(call.allows(_O.DESCRIBE, _R.TOPIC, name) for name in dict.fromkeys(names)):
        return _with_code(call, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return handler(call)


def _list_groups(call: ApiCall, handler: Handler) -> Message | None:
    if call.allows(_O.DESCRIBE, _R.CLUSTER):
        return handler(call)

    def limit(response: Any) -> None:
        response.groups = [one for one in response.groups if call.allows(_O.DESCRIBE, _R.GROUP, one.group_id)]

    return _answer_with(call, handler, limit)


def _describe_groups(call: ApiCall, handler: Handler) -> Message | None:
    def limit(response: Any) -> None:
        for group in response.groups:
            _hide_topics(call, group)
            if group.authorized_operations != _NOT_ASKED and not group.error_code:
                group.authorized_operations = _operations(call, _R.GROUP, group.group_id)

    return _answer_with(call, handler, limit)


def _hide_topics(call: ApiCall, group: Any) -> None:
    """A consumer group is not described to a client that may not describe its topics."""
    if not isinstance(group, consumer_groups.DescribedGroup):
        return
    names = {
        name
        for member in group.members
        for name in (
            *member.subscribed_topic_names,
            *(one.topic_name for one in member.assignment.topic_partitions),
            *(one.topic_name for one in member.target_assignment.topic_partitions),
        )
    }
    if not all(call.allows(_O.DESCRIBE, _R.TOPIC, name) for name in names):
        group.error_code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        group.error_message = (
            "The group has described topic(s) that the client is not authorized to describe."
        )
        group.members = []


_MANY_GROUPS = 8


def _offset_fetch(call: ApiCall, handler: Handler) -> Message | None:
    request = call.request
    describes = cache(partial(call.allows, _O.DESCRIBE, _R.TOPIC))
    if call.version < _MANY_GROUPS:
        if not call.allows(_O.DESCRIBE, _R.GROUP, request.group_id):
            return _no_offsets(call, request)
        refused = _refused_offsets(call, request, describes)
        call.request = _allowed_offsets(call, request, describes)

        def limit(response: Any) -> None:
            _limit_offsets(request, response, refused, describes)

        return _answer_with(call, handler, limit)
    groups, later, hidden = [], [], {}
    for group in request.groups:
        if not call.allows(_O.DESCRIBE, _R.GROUP, group.group_id):
            error = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
            later.append(
                offset_fetch.OffsetFetchResponseGroup(group_id=group.group_id, error_code=error, topics=[])
            )
        else:
            hidden[group.group_id] = group, _refused_offsets(call, group, describes)
            groups.append(_allowed_offsets(call, group, describes))
    if not groups:
        return OffsetFetchResponse(groups=later)
    call.request = _replaced(request, {"groups": groups})

    def limit_groups(response: Any) -> None:
        for answer in response.groups:
            if answer.group_id in hidden:
                group, refused = hidden[answer.group_id]
                _limit_offsets(group, answer, refused, describes)
        response.groups = [*response.groups, *later]

    return _answer_with(call, handler, limit_groups)


def _no_offsets(call: ApiCall, request: Any) -> Message:
    """A version without groups refuses one: in version 1 by its partitions."""
    code = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if call.version > 1:
        return OffsetFetchResponse(error_code=code)
    return OffsetFetchResponse(
        topics=[
            offset_fetch.OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    offset_fetch.OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=-1, metadata="", error_code=code
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ]
    )


def _allowed_offsets(call: ApiCall, asked: Any, describes: Callable[[str], bool]) -> Any:
    """A request, or a group of one, without the topics that are refused."""
    if asked.topics is None:
        return asked
    return _replaced(asked, {"topics": [one for one in asked.topics if _is_described(call, one, describes)]})


def _is_described(call: ApiCall, topic: Any, describes: Callable[[str], bool]) -> bool:
    name = _topic_name(call, topic)
    return name is None or describes(name)


def _refused_offsets(call: ApiCall, asked: Any, describes: Callable[[str], bool]) -> list[Any]:
    """What is answered for the topics that are refused."""
    named = call.version >= _MANY_GROUPS
    topic_type: Any = (
        offset_fetch.OffsetFetchResponseTopics if named else offset_fetch.OffsetFetchResponseTopic
    )
    part_type: Any = (
        offset_fetch.OffsetFetchResponsePartitions if named else offset_fetch.OffsetFetchResponsePartition
    )
    return [
        topic_type(
            name=topic.name,
            **({"topic_id": topic.topic_id} if named else {}),
            partitions=[
                part_type(
                    partition_index=index,
                    committed_offset=-1,
                    metadata="",
                    error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
                )
                for index in topic.partition_indexes
            ],
        )
        for topic in asked.topics or ()
        if not _is_described(call, topic, describes)
    ]


def _limit_offsets(asked: Any, answer: Any, refused: list[Any], describes: Callable[[str], bool]) -> None:
    if answer.error_code:
        return
    if asked.topics is None:
        answer.topics = [one for one in answer.topics if describes(one.name)]
    else:
        answer.topics = [*answer.topics, *refused]


def _find_coordinator(call: ApiCall, handler: Handler) -> Message | None:
    request = call.request
    kinds = {CoordinatorType.GROUP.value: _R.GROUP, CoordinatorType.TRANSACTION.value: _R.TRANSACTIONAL_ID}
    kind = kinds.get(request.key_type)
    if kind is None:
        return handler(call)
    code = int(_ERRORS[kind])
    if call.version < _KEYS:
        if call.allows(_O.DESCRIBE, kind, request.key):
            return handler(call)
        text = _TEXTS[_ERRORS[kind]]
        return FindCoordinatorResponse(error_code=code, error_message=text, node_id=-1, host="", port=-1)
    return _split(
        call,
        handler,
        "coordinator_keys",
        partial(call.allows, _O.DESCRIBE, kind),
        "coordinators",
        lambda key: Coordinator(
            key=key, node_id=-1, host="", port=-1, error_code=code, error_message=_TEXTS[ErrorCode(code)]
        ),
    )


_KEYS = 4


# --- transactions ---


def _init_producer_id(call: ApiCall, handler: Handler) -> Message | None:
    request = call.request
    name, error = request.transactional_id, None
    if name is not None:
        if not call.allows(_O.WRITE, _R.TRANSACTIONAL_ID, name) or (
            request.enable2_pc and not call.allows(_O.TWO_PHASE_COMMIT, _R.TRANSACTIONAL_ID, name)
        ):
            error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif not call.allows(_O.IDEMPOTENT_WRITE, _R.CLUSTER) and not call.allows_some(_O.WRITE, _R.TOPIC):
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if error is None:
        return handler(call)
    response: Any = _with_code(call, error)
    response.producer_id = response.producer_epoch = -1
    return response  # type: ignore[no-any-return]


_BY_BROKERS = 4


def _add_partitions(call: ApiCall, handler: Handler) -> Message | None:
    request = call.request
    if call.version >= _BY_BROKERS:
        need = _cluster(_O.CLUSTER_ACTION)
        error = need.refusal(call)
        return handler(call) if error is None else AddPartitionsToTxnResponse(error_code=int(error))
    topics = request.v3_and_below_topics
    codes = dict.fromkeys((topic.name for topic in topics), 0)
    if not call.allows(_O.WRITE, _R.TRANSACTIONAL_ID, request.v3_and_below_transactional_id):
        codes = dict.fromkeys(codes, int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    else:
        for name in codes:
            if not call.allows(_O.WRITE, _R.TOPIC, name):
                codes[name] = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if not any(codes.values()):
        return handler(call)

    def code(name: str, index: int) -> int:
        missing = call.cluster.partition(name, index) is None
        other = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if missing else ErrorCode.OPERATION_NOT_ATTEMPTED
        return codes[name] or int(other)

    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            to_transaction.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    to_transaction.AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=code(topic.name, index)
                    )
                    for index in topic.partitions
                ],
            )
            for topic in topics
        ]
    )


def _describe_transactions(call: ApiCall, handler: Handler) -> Message | None:
    def limit(response: Any) -> None:
        for one in response.transaction_states:
            one.topics = [topic for topic in one.topics if call.allows(_O.DESCRIBE, _R.TOPIC, topic.topic)]

    return _answer_with(call, handler, limit)


def _list_transactions(call: ApiCall, handler: Handler) -> Message | None:
    def limit(response: Any) -> None:
        response.transaction_states = [
            one
            for one in response.transaction_states
            if call.allows(_O.DESCRIBE, _R.TRANSACTIONAL_ID, one.transactional_id)
        ]

    return _answer_with(call, handler, limit)


def _write_markers(call: ApiCall, handler: Handler) -> Message | None:
    if call.allows(_O.CLUSTER_ACTION, _R.CLUSTER) or call.allows(_O.ALTER, _R.CLUSTER):
        return handler(call)
    code = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in call.request.markers
        ]
    )


# --- the cluster ---


def _no_creations(call: ApiCall, error: ErrorCode) -> Message:
    result = AclCreationResult(error_code=int(error), error_message=_TEXTS[error])
    return CreateAclsResponse(results=[result for _ in call.request.creations])


def _no_deletions(call: ApiCall, error: ErrorCode) -> Message:
    result = DeleteAclsFilterResult(error_code=int(error), error_message=_TEXTS[error], matching_acls=[])
    return DeleteAclsResponse(filter_results=[result for _ in call.request.filters])


def _no_moves(call: ApiCall, error: ErrorCode) -> Message:
    topics: dict[str, list[int]] = {}
    for place in call.request.dirs:
        for topic in place.topics:
            topics.setdefault(topic.name, []).extend(topic.partitions)
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=int(error))
                    for index in indexes
                ],
            )
            for name, indexes in topics.items()
        ]
    )


def _no_elections(call: ApiCall, error: ErrorCode) -> Message:
    results = [
        ReplicaElectionResult(
            topic=topic.topic,
            partition_result=[
                PartitionResult(partition_id=index, error_code=int(error), error_message=_TEXTS[error])
                for index in topic.partitions
            ],
        )
        for topic in call.request.topic_partitions or ()
    ]
    return ElectLeadersResponse(
        error_code=int(error) if call.version else 0, replica_election_results=results
    )


def _no_quotas_described(call: ApiCall, error: ErrorCode) -> Message:
    response: Any = _with_code(call, error)
    response.entries = None
    return response  # type: ignore[no-any-return]


def _no_quotas(call: ApiCall, error: ErrorCode) -> Message:
    return AlterClientQuotasResponse(
        entries=[
            AlterClientQuotasResponseEntryData(
                error_code=int(error),
                error_message=_TEXTS[error],
                entity=[
                    AlterClientQuotasResponseEntityData(
                        entity_type=one.entity_type, entity_name=one.entity_name
                    )
                    for one in entry.entity
                ],
            )
            for entry in call.request.entries
        ]
    )


def _no_users(call: ApiCall, error: ErrorCode) -> Message:
    request = call.request
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(user=name, error_code=int(error), error_message=_TEXTS[error])
            for name in dict.fromkeys(one.name for one in (*request.deletions, *request.upsertions))
        ]
    )


# --- the table ---


def _group(operation: AclOperation) -> _Need:
    return _Need(operation, _R.GROUP, "group_id")


_WRITES_TRANSACTION = _Need(_O.WRITE, _R.TRANSACTIONAL_ID, "transactional_id")

_GUARDS: Mapping[int, Guard] = {
    ApiKey.PRODUCE: _produce,
    ApiKey.FETCH: _fetch,
    ApiKey.LIST_OFFSETS: _partitions(_O.DESCRIBE),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _epoch_ends,
    ApiKey.DELETE_RECORDS: _partitions(_O.DELETE),
    ApiKey.DESCRIBE_PRODUCERS: _partitions(_O.READ),
    ApiKey.METADATA: _metadata,
    ApiKey.DESCRIBE_CLUSTER: _describe_cluster,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _describe_topic_partitions,
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.CREATE_PARTITIONS: _elements(
        "topics",
        _O.ALTER,
        _R.TOPIC,
        "results",
        lambda topic, code: CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=None),
        _topic_name,
    ),
    ApiKey.DESCRIBE_CONFIGS: _settings(
        _O.DESCRIBE_CONFIGS, "resources", "results", _refused_setting(DescribeConfigsResult)
    ),
    ApiKey.ALTER_CONFIGS: _settings(
        _O.ALTER_CONFIGS,
        "resources",
        "responses",
        _refused_setting(alter_configs.AlterConfigsResourceResponse),
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _settings(
        _O.ALTER_CONFIGS,
        "resources",
        "responses",
        _refused_setting(incremental_alter_configs.AlterConfigsResourceResponse),
    ),
    ApiKey.LIST_CONFIG_RESOURCES: _whole(_cluster(_O.DESCRIBE_CONFIGS)),
    ApiKey.JOIN_GROUP: _whole(_group(_O.READ), refused=_joined),
    ApiKey.SYNC_GROUP: _whole(_group(_O.READ)),
    ApiKey.HEARTBEAT: _whole(_group(_O.READ)),
    ApiKey.LEAVE_GROUP: _whole(_group(_O.READ)),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _both(_whole(_group(_O.READ)), _group_heartbeat),
    ApiKey.OFFSET_COMMIT: _both(
        _whole(_group(_O.READ), refused=_committed),
        _elements("topics", _O.READ, _R.TOPIC, "topics", _committed_topic, _topic_name),
    ),
    ApiKey.OFFSET_FETCH: _offset_fetch,
    ApiKey.OFFSET_DELETE: _both(
        _whole(_group(_O.DELETE)),
        _elements("topics", _O.READ, _R.TOPIC, "topics", _deleted_topic, _topic_name),
    ),
    ApiKey.LIST_GROUPS: _list_groups,
    ApiKey.DESCRIBE_GROUPS: _both(
        _elements(
            "groups",
            _O.DESCRIBE,
            _R.GROUP,
            "groups",
            lambda name, code: DescribedGroup(group_id=name, error_code=code),
        ),
        _describe_groups,
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: _both(
        _elements(
            "group_ids",
            _O.DESCRIBE,
            _R.GROUP,
            "groups",
            lambda name, code: consumer_groups.DescribedGroup(group_id=name, error_code=code),
        ),
        _describe_groups,
    ),
    ApiKey.DELETE_GROUPS: _elements(
        "groups_names",
        _O.DELETE,
        _R.GROUP,
        "results",
        lambda name, code: DeletableGroupResult(group_id=name, error_code=code),
    ),
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.INIT_PRODUCER_ID: _init_producer_id,
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions,
    ApiKey.ADD_OFFSETS_TO_TXN: _whole(_WRITES_TRANSACTION, _group(_O.READ)),
    ApiKey.END_TXN: _whole(_WRITES_TRANSACTION),
    ApiKey.TXN_OFFSET_COMMIT: _both(
        _whole(_WRITES_TRANSACTION, _group(_O.READ), refused=_added),
        _elements("topics", _O.READ, _R.TOPIC, "topics", _added_topic, _topic_name),
    ),
    ApiKey.WRITE_TXN_MARKERS: _write_markers,
    ApiKey.DESCRIBE_TRANSACTIONS: _both(
        _elements(
            "transactional_ids",
            _O.DESCRIBE,
            _R.TRANSACTIONAL_ID,
            "transaction_states",
            lambda name, code: TransactionState(transactional_id=name, error_code=code),
        ),
        _describe_transactions,
    ),
    ApiKey.LIST_TRANSACTIONS: _list_transactions,
    ApiKey.DESCRIBE_ACLS: _whole(_cluster(_O.DESCRIBE)),
    ApiKey.CREATE_ACLS: _whole(_cluster(_O.ALTER), refused=_no_creations),
    ApiKey.DELETE_ACLS: _whole(_cluster(_O.ALTER), refused=_no_deletions),
    ApiKey.ALTER_REPLICA_LOG_DIRS: _whole(_cluster(_O.ALTER), refused=_no_moves),
    ApiKey.DESCRIBE_LOG_DIRS: _whole(_cluster(_O.DESCRIBE)),
    ApiKey.ELECT_LEADERS: _whole(_cluster(_O.ALTER), refused=_no_elections),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _whole(_cluster(_O.ALTER)),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _whole(_cluster(_O.DESCRIBE)),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _whole(_cluster(_O.DESCRIBE_CONFIGS), refused=_no_quotas_described),
    ApiKey.ALTER_CLIENT_QUOTAS: _whole(_cluster(_O.ALTER_CONFIGS), refused=_no_quotas),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _whole(_cluster(_O.DESCRIBE)),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _whole(_cluster(_O.ALTER), refused=_no_users),
    ApiKey.DESCRIBE_QUORUM: _whole(_cluster(_O.DESCRIBE)),
    ApiKey.UPDATE_FEATURES: _whole(_cluster(_O.ALTER)),
}
