"""Guards of descriptions: Metadata, DescribeCluster, DescribeTopicPartitions."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from coordwire.broker.handlers.api_call import ApiCall
from coordwire.coordinator.apis.guards import (
    NOT_REQUESTED,
    Operation,
    Resource,
    Verdict,
    operation_bits,
    replaced,
    topic_name,
)
from coordwire.enums import ErrorCode
from coordwire.messages.describe_topic_partitions import DescribeTopicPartitionsResponseTopic
from coordwire.messages.metadata import MetadataResponseTopic


def metadata_guard(call: ApiCall) -> Verdict:
    request = call.request
    describes = cache(partial(call.allows, Operation.DESCRIBE, Resource.TOPIC))
    is_for_all = request.topics is None or (call.version == 0 and not request.topics)
    refused: list[MetadataResponseTopic] = []
    if not is_for_all and not any(topic.name is None and not topic.topic_id.int for topic in request.topics):
        allowed = []
        for element in {(topic.name, topic.topic_id): topic for topic in request.topics}.values():
            name = topic_name(call, element)
            if name is None or (describes(name) and not _may_not_create(call, element)):
                allowed.append(element)
            else:
                by_id = bool(element.topic_id.int)
                refused.append(
                    MetadataResponseTopic(
                        error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
                        name=_null_name(call) if by_id else name,
                        topic_id=element.topic_id,
                    )
                )
        call.request = replaced(request, {"topics": allowed})

    def limit(response: Any) -> None:
        if is_for_all:
            response.topics = [topic for topic in response.topics if describes(topic.name)]
        elif not call.request.topics:  # version 0 takes none for all
            response.topics = []
        for topic in response.topics:
            if topic.topic_authorized_operations != NOT_REQUESTED:
                topic.topic_authorized_operations = operation_bits(call, Resource.TOPIC, topic.name)
        response.topics.extend(refused)
        _limit_cluster(call, response)

    return limit


_NULLABLE_NAME = 12
_ALLOWS_CREATION = 4


def _null_name(call: ApiCall) -> str | None:
    return None if call.version >= _NULLABLE_NAME else ""


def _may_not_create(call: ApiCall, element: Any) -> bool:
    """Whether Metadata asks for a topic that would be made, and the client may not make it."""
    return (
        not element.topic_id.int
        and element.name not in call.cluster.topics
        and call.cluster.config.auto_create_topics
        and (call.version < _ALLOWS_CREATION or call.request.allow_auto_topic_creation)
        and not call.allows(Operation.CREATE, Resource.CLUSTER)
        and not call.allows(Operation.CREATE, Resource.TOPIC, element.name)
    )


def _limit_cluster(call: ApiCall, response: Any) -> None:
    if response.cluster_authorized_operations != NOT_REQUESTED:
        allowed = call.allows(Operation.DESCRIBE, Resource.CLUSTER)
        response.cluster_authorized_operations = operation_bits(call, Resource.CLUSTER) if allowed else 0


def describe_cluster_guard(call: ApiCall) -> Verdict:
    return partial(_limit_cluster, call)


def describe_topic_partitions_guard(call: ApiCall) -> Verdict:
    describes = cache(partial(call.allows, Operation.DESCRIBE, Resource.TOPIC))
    request = call.request
    refused = []
    if request.topics:
        names = dict.fromkeys(topic.name for topic in request.topics)
        refused = [name for name in names if name and not describes(name)]
        if refused and len(refused) == len(names):
            call.request = replaced(request, {"topics": [], "cursor": None, "response_partition_limit": 1})
        elif refused:
            described = [topic for topic in request.topics if not topic.name or describes(topic.name)]
            call.request = replaced(request, {"topics": described})

    def limit(response: Any) -> None:
        if request.topics and not call.request.topics:
            response.topics, response.next_cursor = [], None
        response.topics = [topic for topic in response.topics if describes(topic.name)]
        for topic in response.topics:
            if topic.topic_authorized_operations != NOT_REQUESTED:
                topic.topic_authorized_operations = operation_bits(call, Resource.TOPIC, topic.name)
        response.topics.extend(
            DescribeTopicPartitionsResponseTopic(
                error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED), name=name
            )
            for name in refused
        )

    return limit
