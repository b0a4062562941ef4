"""CreateTopics, DeleteTopics, CreatePartitions: what Kafka's controller decides, with its errors.

API keys and versions: CreateTopics 19 v2-7, DeleteTopics 20 v1-6, CreatePartitions 37 v0-3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from coordwire.broker.cluster.cluster_state import ClusterState
from coordwire.broker.cluster.topics import ClusterTopic
from coordwire.broker.handlers.api_call import ApiCall
from coordwire.broker.handlers.settings_api import described_settings
from coordwire.broker.settings.settings import TOPIC_SETTINGS, BadSetting, checked
from coordwire.coordinator import InternalTopic
from coordwire.coordinator.topics import bad_name
from coordwire.enums import ConfigSource, ErrorCode
from coordwire.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from coordwire.messages.create_partitions import CreatePartitionsTopic, CreatePartitionsTopicResult
from coordwire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicConfigs,
    CreatableTopicResult,
)
from coordwire.messages.delete_topics import DeletableTopicResult, DeleteTopicState

_DEFAULT = -1
_MOST_PARTITIONS = 10_000
"""So many partitions may be made by one request, as with Kafka's controller."""

_TOPIC_STATES = 6


class _Refused(Exception):
    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code, self.message = int(code), message


def create_topics(call: ApiCall) -> CreateTopicsResponse:
    request: CreateTopicsRequest = call.request
    response = CreateTopicsResponse(topics=[])
    times = Counter(topic.name for topic in request.topics)
    with call.cluster.topics_changing():
        for creation in {topic.name: topic for topic in request.topics}.values():
            response.topics.append(
                _created(call.cluster, creation, request.validate_only, times[creation.name])
            )
    return response


def create_internal_topics(cluster: ClusterState, topics: Iterable[InternalTopic]) -> dict[str, str]:
    """Create the internal topics of a streams application; returns why some are not, by name."""
    failed = {}
    with cluster.topics_changing():
        for topic in topics:
            creation = CreatableTopic(
                name=topic.name,
                num_partitions=topic.partitions,
                replication_factor=topic.replication_factor or _DEFAULT,
                configs=[
                    CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()
                ],
            )
            result = _created(cluster, creation, False, 1)
            if result.error_code and result.error_code != ErrorCode.TOPIC_ALREADY_EXISTS:
                failed[topic.name] = result.error_message or ErrorCode(result.error_code).name
    return failed


def _created(
    cluster: ClusterState, creation: CreatableTopic, validate_only: bool, times: int
) -> CreatableTopicResult:
    try:
        if times > 1:
            raise _Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        return _create(cluster, creation, validate_only)
    except _Refused as refusal:
        return CreatableTopicResult(
            name=creation.name, error_code=refusal.code, error_message=refusal.message
        )


def _create(cluster: ClusterState, creation: CreatableTopic, validate_only: bool) -> CreatableTopicResult:
    name = creation.name
    reason = bad_name(name)
    if reason is not None:
        raise _Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    if name in cluster.topics:
        raise _Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    alike = cluster.topic_alike(name)
    if alike is not None:
        message = f"Topic '{name}' collides with existing topic: {alike}"
        raise _Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
    count, factor, assignments = _shape(cluster, creation)
    settings: dict[str, str] = {}
    for config in creation.configs:
        try:
            if config.value is None:
                raise BadSetting(f"Null value not supported for topic configs: {config.name}")
            settings[config.name] = checked(TOPIC_SETTINGS, config.name, config.value)
        except BadSetting as refusal:
            raise _Refused(ErrorCode.INVALID_CONFIG, str(refusal)) from None
    if validate_only:
        topic = None
        topic_settings = cluster.topic_settings(settings)
    else:
        try:
            topic = cluster.create_topic(
                name, count, replication_factor=factor, settings=settings, assignments=assignments
            )
        except OSError as error:
            raise _Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from None
        topic_settings = topic.settings
    result = CreatableTopicResult(
        name=name, error_message=None, num_partitions=count, replication_factor=factor
    )
    result.topic_id = cluster.new_uuid() if topic is None else topic.id
    result.configs = [
        CreatableTopicConfigs(
            name=described_setting.name,
            value=described_setting.value,
            read_only=described_setting.read_only,
            config_source=described_setting.config_source,
        )
        for described_setting in described_settings(topic_settings, own_source=ConfigSource.TOPIC_CONFIG)
    ]
    return result


def _shape(cluster: ClusterState, creation: CreatableTopic) -> tuple[int, int, list[Sequence[int]] | None]:
    """How many partitions and replicas, and where they are to be if the client says so."""
    if creation.assignments:
        if creation.num_partitions != _DEFAULT:
            message = "A manual partition assignment was specified, but numPartitions was not set to -1."
            raise _Refused(ErrorCode.INVALID_REQUEST, message)
        if creation.replication_factor != _DEFAULT:
            message = "A manual partition assignment was specified, but replication factor was not set to -1."
            raise _Refused(ErrorCode.INVALID_REQUEST, message)
        placed: dict[int, list[int]] = {}
        for assignment in creation.assignments:
            if assignment.partition_index in placed:
                message = (
                    f"Found multiple manual partition assignments for partition {assignment.partition_index}"
                )
                raise _Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
            placed[assignment.partition_index] = list(assignment.broker_ids)
        if sorted(placed) != list(range(len(creation.assignments))):
            message = "partitions should be a consecutive 0-based integer sequence"
            raise _Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        assignments: list[Sequence[int]] = [placed[index] for index in range(len(placed))]
        for replicas in assignments:
            _check_placed(cluster, replicas, len(assignments[0]))
        return len(assignments), len(assignments[0]), assignments
    count = cluster.config.num_partitions if creation.num_partitions == _DEFAULT else creation.num_partitions
    factor = creation.replication_factor
    if factor == _DEFAULT:
        factor = min(cluster.config.default_replication_factor, len(cluster.nodes))
    if factor <= 0:
        raise _Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if count <= 0:
        raise _Refused(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    if count > _MOST_PARTITIONS:
        raise _Refused(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    if factor > len(cluster.nodes):
        raise _Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor}"
            f" cannot be reached because only {len(cluster.nodes)} broker(s) are registered or some brokers"
            " have all their log directories cordoned.",
        )
    return count, factor, None


def check_replicas(cluster: ClusterState, replicas: Sequence[int]) -> str | None:
    """The reason for which a partition cannot be placed on these nodes; None if it can."""
    if not replicas:
        return "The manual partition assignment includes an empty replica list."
    indexes: set[int] = set()
    for replica in replicas:
        if replica in indexes:
            return f"The manual partition assignment includes the broker {replica} more than once."
        indexes.add(replica)
    for replica in replicas:
        if replica not in cluster.nodes:
            return (
                f"The manual partition assignment includes broker {replica},"
                " but no such broker is registered."
            )
    return None


def _check_placed(cluster: ClusterState, replicas: Sequence[int], expected: int) -> None:
    reason = check_replicas(cluster, replicas)
    if reason is None and len(replicas) != expected:
        reason = "The manual partition assignment includes partitions with different numbers of replicas."
    if reason is not None:
        raise _Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)


def delete_topics(call: ApiCall) -> DeleteTopicsResponse:
    request: DeleteTopicsRequest = call.request
    cluster = call.cluster
    if call.version >= _TOPIC_STATES:
        states = list(request.topics)
    else:
        states = [DeleteTopicState(name=name) for name in request.topic_names]
    names = Counter(state.name for state in states if state.name is not None)
    ids = Counter(state.topic_id for state in states if state.name is None)
    by_id = {topic.name for topic in map(cluster.topics_by_id.get, ids) if topic is not None}
    responses: list[DeletableTopicResult] = []
    deleted: set[object] = set()
    with cluster.topics_changing():
        for state in states:
            known = cluster.topics.get(state.name) if state.name is not None else None
            key = state.topic_id if state.name is None else state.name
            if key in deleted:
                continue
            deleted.add(key)
            if state.name is None and not state.topic_id.int:
                reason = "Neither topic name nor id were specified."
            elif state.name is not None and state.topic_id.int:
                reason = "You may not specify both topic name and topic id."
            elif state.name is not None and names[state.name] > 1:
                reason = "Duplicate topic name."
            elif state.name is None and ids[state.topic_id] > 1:
                reason = "Duplicate topic id."
            elif state.name in by_id:
                reason = "The provided topic name maps to an ID that was already supplied."
            else:
                topic = known or (cluster.topics_by_id.get(state.topic_id) if state.name is None else None)
                if topic is None or topic.name not in names or topic is known:
                    responses.append(_delete(cluster, state, topic))
                continue  # a topic that is named too is refused by its name
            response = DeletableTopicResult(name=state.name, topic_id=state.topic_id)
            if known is not None and state.name in by_id:
                response.topic_id = known.id
            response.error_code, response.error_message = int(ErrorCode.INVALID_REQUEST), reason
            responses.append(response)
    return DeleteTopicsResponse(responses=responses)


def _delete(
    cluster: ClusterState, state: DeleteTopicState, topic: ClusterTopic | None
) -> DeletableTopicResult:
    result = DeletableTopicResult(name=state.name, topic_id=state.topic_id)
    if topic is None and state.name is None:
        result.error_code = int(ErrorCode.UNKNOWN_TOPIC_ID)
        result.error_message = "This server does not host this topic ID."
    elif topic is None:
        result.error_code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        result.error_message = "This server does not host this topic-partition."
    else:
        result.name, result.topic_id = topic.name, topic.id
        try:
            cluster.delete_topic(topic)
        except OSError as error:
            result.error_code, result.error_message = int(ErrorCode.KAFKA_STORAGE_ERROR), str(error)
    return result


def create_partitions(call: ApiCall) -> CreatePartitionsResponse:
    request: CreatePartitionsRequest = call.request
    response = CreatePartitionsResponse(results=[])
    times = Counter(topic.name for topic in request.topics)
    with call.cluster.topics_changing():
        for creation in {topic.name: topic for topic in request.topics}.values():
            result = CreatePartitionsTopicResult(name=creation.name)
            try:
                if times[creation.name] > 1:
                    raise _Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
                _add_partitions(call.cluster, creation, request.validate_only)
            except _Refused as refusal:
                result.error_code, result.error_message = refusal.code, refusal.message
            response.results.append(result)
    return response


def _add_partitions(cluster: ClusterState, creation: CreatePartitionsTopic, validate_only: bool) -> None:
    topic = cluster.topics.get(creation.name)
    if topic is None:
        raise _Refused(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
        )
    if topic.is_internal:
        raise _Refused(ErrorCode.INVALID_REQUEST, f"the internal topic {topic.name} cannot grow")
    now = len(topic.partitions)
    if creation.count == now:
        raise _Refused(ErrorCode.INVALID_PARTITIONS, f"Topic already has {now} partition(s).")
    if creation.count < now:
        message = (
            f"The topic {topic.name} currently has {now} partition(s);"
            f" {creation.count} would not be an increase."
        )
        raise _Refused(ErrorCode.INVALID_PARTITIONS, message)
    if creation.count - now > _MOST_PARTITIONS:
        message = "Excessively large number of additional partitions per request."
        raise _Refused(ErrorCode.POLICY_VIOLATION, message)
    assignments = None
    if creation.assignments is not None:
        assignments = [list(assignment.broker_ids) for assignment in creation.assignments]
        if len(assignments) != creation.count - now:
            message = (
                f"Attempted to add {creation.count - now} additional partition(s), but only"
                f" {len(assignments)} assignment(s) were specified."
            )
            raise _Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        for replicas in assignments:
            _check_placed(cluster, replicas, len(topic.partitions[0].replicas))
    if not validate_only:
        try:
            cluster.add_partitions(topic, creation.count, assignments)
        except OSError as error:
            raise _Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from None
