"""What a server answers about itself: its versions, its topics, and that it has every group.

Rule: a response has what any version of it says; what the request's lacks is left out when it is encoded.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordwire.broker.server.link import ServerCall
from coordwire.broker.settings.offered_versions import offered_keys, versions_refusal
from coordwire.coordinator import TopicImage, TopicsImage
from coordwire.enums import CoordinatorType, ErrorCode
from coordwire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from coordwire.messages.find_coordinator import Coordinator
from coordwire.messages.metadata import (
    MetadataRequestTopic,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def api_versions(
    request: ApiVersionsRequest, call: ServerCall, offered: Iterable[tuple[int, int, int]]
) -> ApiVersionsResponse:
    """offered: API keys with the first and last version. Which cluster and node it is, only a handler of
    Metadata would know: those that the client means are right."""
    refusal = versions_refusal(request, call.version, request.cluster_id, request.node_id)
    if refusal is not ErrorCode.NONE:
        return ApiVersionsResponse(error_code=int(refusal))
    return ApiVersionsResponse(api_keys=offered_keys(offered))


def find_coordinator(request: FindCoordinatorRequest, call: ServerCall, node: int) -> FindCoordinatorResponse:
    """node: the id of the server's."""
    (host, port), code = call.address, int(ErrorCode.NONE)
    if request.key_type != CoordinatorType.GROUP:
        node, host, port, code = -1, "", -1, int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return FindCoordinatorResponse(
        node_id=node,
        host=host,
        port=port,
        error_code=code,
        coordinators=[
            Coordinator(key=key, node_id=node, host=host, port=port, error_code=code)
            for key in request.coordinator_keys
        ],
    )


def metadata(request: MetadataRequest, call: ServerCall, node: int, topics: TopicsImage) -> MetadataResponse:
    """node: the id of the server's; topics: all that there are."""
    host, port = call.address
    requested: Iterable[tuple[MetadataRequestTopic, TopicImage | None]]
    if request.topics is None or (call.version == 0 and not request.topics):
        requested = [(MetadataRequestTopic(name=name), topics.find(name)) for name in topics.names]
    else:
        elements = {(element.name, element.topic_id): element for element in request.topics}  # each once
        requested = [
            (element, topics.find_id(element.topic_id) if element.name is None else topics.find(element.name))
            for element in elements.values()
        ]
    if call.version in _IDS and any(element.name is None or element.topic_id.int for element, _ in requested):
        refused = int(ErrorCode.INVALID_REQUEST)
        return MetadataResponse(
            topics=[
                MetadataResponseTopic(error_code=refused, name=element.name or "", topic_id=element.topic_id)
                for element, _ in requested
            ]
        )
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=node, host=host, port=port)],
        controller_id=node,
        topics=[_topic(element, topic, node) for element, topic in requested],
    )


_IDS = range(10, 12)
"""The versions of Metadata in which topics have ids that Kafka refuses in a request."""


def _topic(element: MetadataRequestTopic, topic: TopicImage | None, node: int) -> MetadataResponseTopic:
    if topic is None:
        unknown = ErrorCode.UNKNOWN_TOPIC_ID if element.name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return MetadataResponseTopic(error_code=int(unknown), name=element.name, topic_id=element.topic_id)
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        partitions=[
            MetadataResponsePartition(
                partition_index=index, leader_id=node, replica_nodes=[node], isr_nodes=[node]
            )
            for index in range(topic.partitions)
        ],
    )
