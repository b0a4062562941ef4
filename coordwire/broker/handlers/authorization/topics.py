"""Guards of topics and of settings.

Guards of records: Produce, Fetch, OffsetForLeaderEpoch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from coordwire.broker.handlers.api_call import ApiCall
from coordwire.broker.handlers.produce_api import has_transactional
from coordwire.codec import Message
from coordwire.coordinator.apis.guards import (
    ERRORS,
    TEXTS,
    Guard,
    Operation,
    Resource,
    Verdict,
    both_changes,
    element_guard,
    split_elements,
    topic_name,
)
from coordwire.enums import AclOperation, AclResourceType, ConfigResourceType, ErrorCode
from coordwire.messages import (
    ProduceResponse,
)
from coordwire.messages.create_topics import CreatableTopicResult
from coordwire.messages.delete_topics import DeletableTopicResult, DeleteTopicState
from coordwire.messages.produce import PartitionProduceResponse, TopicProduceResponse


def create_topics_guard(call: ApiCall) -> Verdict:
    every = call.allows(Operation.CREATE, Resource.CLUSTER)
    shows = cache(partial(call.allows, Operation.DESCRIBE_CONFIGS, Resource.TOPIC))

    def limit(response: Any) -> None:
        for result in response.topics:
            if not result.error_code and not shows(result.name):
                result.topic_config_error_code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                result.num_partitions = result.replication_factor = -1
                result.configs = []

    creates = cache(partial(call.allows, Operation.CREATE, Resource.TOPIC))
    code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    verdict = split_elements(
        call,
        "topics",
        lambda topic: every or creates(topic.name),
        "topics",
        lambda topic: CreatableTopicResult(
            name=topic.name, error_code=code, error_message="Authorization failed."
        ),
    )
    return verdict if isinstance(verdict, Message) else both_changes(limit, verdict)


_TOPIC_STATES = 6


def delete_topics_guard(call: ApiCall) -> Verdict:
    deletes = cache(partial(call.allows, Operation.DELETE, Resource.TOPIC))
    describes = cache(partial(call.allows, Operation.DESCRIBE, Resource.TOPIC))
    if call.allows(Operation.DELETE, Resource.CLUSTER):
        return None

    def allows(state: Any) -> bool:
        name = state if isinstance(state, str) else topic_name(call, state)
        return name is None or deletes(name) or (name not in call.cluster.topics and describes(name))

    def refused(state: Any) -> DeletableTopicResult:
        if isinstance(state, str):
            state = DeleteTopicState(name=state)
        name = topic_name(call, state)
        assert name is not None
        return DeletableTopicResult(
            name=None if state.name is None and not describes(name) else name,
            topic_id=state.topic_id,
            error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            error_message=TEXTS[ErrorCode.TOPIC_AUTHORIZATION_FAILED],
        )

    field = "topics" if call.version >= _TOPIC_STATES else "topic_names"
    return split_elements(call, field, allows, "responses", refused)


# --- settings ---

_SETTINGS = {
    ConfigResourceType.TOPIC.value: Resource.TOPIC,
    ConfigResourceType.GROUP.value: Resource.GROUP,
}


def settings_guard(
    operation: AclOperation, field: str, answers: str, refused: Callable[[Any, ErrorCode], Any]
) -> Guard:
    """Settings of topics and groups are theirs, all others the cluster's."""

    def guard(call: ApiCall) -> Verdict:
        decided = cache(partial(call.allows, operation))

        def kind(resource: Any) -> AclResourceType:
            return _SETTINGS.get(resource.resource_type, Resource.CLUSTER)

        def allows(resource: Any) -> bool:
            known = kind(resource)
            return decided(known, *(() if known is Resource.CLUSTER else (resource.resource_name,)))

        return split_elements(
            call, field, allows, answers, lambda resource: refused(resource, ERRORS[kind(resource)])
        )

    return guard


def setting_refusal(result: Any) -> Callable[[Any, ErrorCode], Any]:
    return lambda resource, error: result(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        error_code=int(error),
        error_message=TEXTS[error],
    )


# --- records ---


def partition_guard(operation: AclOperation) -> Guard:
    """The handler refuses the partitions of topics, one by one."""

    def guard(call: ApiCall) -> None:
        call.forbids = cache(lambda topic: not call.allows(operation, Resource.TOPIC, topic))

    return guard


def produce_guard(call: ApiCall) -> Verdict:
    request, code = call.request, int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    name = request.transactional_id
    if (
        name is not None
        and not call.allows(Operation.WRITE, Resource.TRANSACTIONAL_ID, name)
        and has_transactional(call)
    ):
        return ProduceResponse(responses=[_refused_produce(topic, code) for topic in request.topic_data])
    return _produce_to_topics(call)


def _refused_produce(topic: Any, code: int) -> TopicProduceResponse:
    return TopicProduceResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=[
            PartitionProduceResponse(index=part.index, error_code=code, base_offset=-1)
            for part in topic.partition_data
        ],
    )


_produce_to_topics = element_guard(
    "topic_data", Operation.WRITE, Resource.TOPIC, "responses", _refused_produce, topic_name
)


def fetch_guard(call: ApiCall) -> Verdict:
    request = call.request
    replica = request.replica_id if call.version < _REPLICA_STATE else request.replica_state.replica_id
    if replica < 0:
        return partition_guard(Operation.READ)(call)
    if not call.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER):
        call.forbids = lambda topic: True
    return None


def epoch_guard(call: ApiCall) -> Verdict:
    if call.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER):
        return None
    return partition_guard(Operation.DESCRIBE)(call)


_REPLICA_STATE = 15
