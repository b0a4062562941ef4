"""The states of a share group's partitions: which are to be initialized or deleted, and what became of that.

Strategy: a group's record lists the topics whose partitions the share coordinator initializes, has
initialized, and deletes. A topic is entered before the share coordinator is asked, so that nothing is
forgotten; what takes too long is asked for again. Rules: the tables are Apache Kafka's, since records list
them in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from coordwire.coordinator.hash_tables import HashMap, HashSet
from coordwire.coordinator.model.share_group import (
    InitializedTopic,
    InitializedTopics,
    ShareGroupModel,
)
from coordwire.coordinator.persister import LatestOffsets
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.share.records import states_record
from coordwire.coordinator.state import NOTHING, Result, State
from coordwire.coordinator.topics import TopicsImage
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import (
    DeleteShareGroupStateRequest,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from coordwire.messages.delete_share_group_state import DeleteStateData
from coordwire.messages.delete_share_group_state import PartitionData as DeletedPartition
from coordwire.messages.initialize_share_group_state import InitializeStateData, PartitionData

_NO_TIME = -1
_UNKNOWN_NAME = "<UNKNOWN>"


def combined(first: InitializedTopics, second: InitializedTopics) -> InitializedTopics:
    """The topics of both, with the partitions of both; name and time are the second's."""
    topics = HashSet.copy_of(first)
    for topic_id in second:
        topics.add(topic_id)
    result: InitializedTopics = HashMap()
    for topic_id in topics:
        known, newer = first.get(topic_id), second.get(topic_id)
        partitions = HashSet.copy_of(() if known is None else known.partitions)
        for partition in () if newer is None else newer.partitions:
            partitions.add(partition)
        latest = newer or known
        assert latest is not None
        result[topic_id] = InitializedTopic(latest.name, partitions, latest.at)
    return result


def named(image: TopicsImage, topics: Iterable[UUID]) -> HashMap[UUID, str]:
    """Topics with their names, as far as they exist."""
    topic_images = ((topic_id, image.find_id(topic_id)) for topic_id in topics)
    return HashMap.of(
        (topic_id, _UNKNOWN_NAME if topic is None else topic.name) for topic_id, topic in topic_images
    )


# --- what is to be initialized ---


def has_unassigned(group: ShareGroupModel, *, joins: bool) -> bool:
    """Whether partitions that the group reads are initialized, and no member's target has them.

    joins: whether a member is being added.
    """
    states = group.states
    if (group.is_empty and not joins) or states is None or not len(states.initialized):
        return False
    if not len(group.topics):
        return False
    assigned: dict[UUID, set[int]] = {}
    for target in group.targets.values():
        for topic_id, partitions in target.items():
            assigned.setdefault(topic_id, set()).update(partitions)
    return any(
        topic.name in group.topics and assigned.get(topic_id) != set(topic.partitions)
        for topic_id, topic in states.initialized.items()
    )


def initialization(
    state: State, group: ShareGroupModel, names: Iterable[str]
) -> tuple[InitializedTopics, int | None]:
    """The topics of these names, of which partitions are to be initialized.

    With that, the time at which an initialization under way is to be tried again; None for never.
    """
    states, retry_ms = group.states, state.config.share_initialize_retry_ms
    known: InitializedTopics = HashMap()
    due = None
    if states is not None:
        fresh = [
            (topic_id, topic)
            for topic_id, topic in states.initializing.items()
            if state.now - topic.at < retry_ms
        ]
        due = min((topic.at + retry_ms for _, topic in fresh), default=None)
        known = combined(states.initialized, HashMap.of(fresh))
    missing: InitializedTopics = HashMap()
    for name in names:
        topic = state.topics.find(name)
        if topic is None:
            continue
        entry = known.get(topic.id)
        partitions = () if entry is None else entry.partitions
        if len(partitions) < topic.partitions or not len(partitions):
            remaining = HashSet.of(range(topic.partitions))
            for partition in partitions:
                remaining.discard(partition)
            added = InitializedTopic(topic.name, remaining, state.now)
            missing.find_or_add(topic.id, lambda added=added: added)  # type: ignore[misc]
    return missing, due


def add_initializing(
    state: State, group: ShareGroupModel, topics: InitializedTopics, records: list[LogRecord]
) -> None:
    """Add the record of these topics as being initialized."""
    if not len(topics):
        return
    states = group.states
    if states is None:
        records.append(states_record(group.group_id, topics, HashMap(), ()))
        return
    initializing = combined(states.initializing, topics)
    deleting = HashSet.copy_of(states.deleting)
    for topic_id in initializing:
        deleting.discard(topic_id)
    records.append(
        states_record(group.group_id, initializing, states.initialized, named(state.topics, deleting).items())
    )


def initialize_request(
    group_id: str, epoch: int, topics: Iterable[tuple[UUID, Iterable[tuple[int, int]]]]
) -> InitializeShareGroupStateRequest:
    """topics: with their partitions, each with its start offset, -1 for what the group's settings say."""
    return InitializeShareGroupStateRequest(
        group_id=group_id,
        topics=[
            InitializeStateData(
                topic_id=topic_id,
                partitions=[
                    PartitionData(partition=partition, state_epoch=epoch, start_offset=offset)
                    for partition, offset in partitions
                ],
            )
            for topic_id, partitions in topics
        ],
    )


# --- what became of it ---


def first_error(topics: Iterable[Any]) -> int:
    """The first error of a share coordinator's answer; 0 without one."""
    return next(
        (partition.error_code for topic in topics for partition in topic.partitions if partition.error_code),
        0,
    )


def work_on_initialization(
    state: State, request: InitializeShareGroupStateRequest
) -> Callable[[Any, int, LatestOffsets], None]:
    """Takes the share coordinators' answer: notes what is initialized, or is not being initialized any
    more."""
    group_id = request.group_id

    def persisted(
        response: InitializeShareGroupStateResponse | None, error: int, offsets: LatestOffsets
    ) -> None:
        topics = request.topics if response is None else response.results
        partitions: HashMap[UUID, HashSet[int]] = HashMap()
        for topic in topics:
            partitions[topic.topic_id] = HashSet.of(partition.partition for partition in topic.partitions)
        if response is None or first_error(response.results):
            _submit_failure(state, group_id, partitions)
        elif len(partitions):

            def completed(error: int, result: Result) -> None:
                if error:
                    _submit_failure(state, group_id, partitions)

            state.submit(lambda current: _initialized(current, group_id, partitions), completed)

    return persisted


def _submit_failure(state: State, group_id: str, partitions: HashMap[UUID, HashSet[int]]) -> None:
    state.submit(lambda current: _not_initialized(current, group_id, partitions), lambda error, result: None)


def _initialized(state: State, group_id: str, partitions: HashMap[UUID, HashSet[int]]) -> Result:
    group = state.groups.get(group_id)
    if not isinstance(group, ShareGroupModel):
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    names = named(state.topics, partitions)
    new: InitializedTopics = HashMap.of(
        (topic_id, InitializedTopic(names[topic_id], own, state.now)) for topic_id, own in partitions.items()
    )
    states = group.states
    if states is None:
        return Result([states_record(group_id, HashMap(), new, ())])
    initializing: InitializedTopics = HashMap.of(
        (topic_id, topic._replace(partitions=HashSet.copy_of(topic.partitions)))
        for topic_id, topic in states.initializing.items()
    )
    _remove(initializing, partitions)
    return Result(
        [
            states_record(
                group_id,
                initializing,
                combined(states.initialized, new),
                named(state.topics, states.deleting).items(),
            )
        ]
    )


def _remove(topics: InitializedTopics, partitions: HashMap[UUID, HashSet[int]]) -> None:
    """Remove partitions from topics that are a copy."""
    for topic_id, own in partitions.items():
        topic = topics.get(topic_id)
        if topic is None:
            continue
        for partition in own:
            topic.partitions.discard(partition)
        if not len(topic.partitions):
            topics.discard(topic_id)


def _not_initialized(state: State, group_id: str, partitions: HashMap[UUID, HashSet[int]]) -> Result:
    group = state.groups.get(group_id)
    states = group.states if isinstance(group, ShareGroupModel) else None
    if states is None or not len(states.initializing) or not len(partitions):
        return NOTHING
    initializing: InitializedTopics = HashMap()
    for topic_id, topic in states.initializing.items():
        failed = partitions.get(topic_id)
        if failed is None:
            initializing[topic_id] = topic
            continue
        remaining = HashSet.copy_of(topic.partitions)
        for partition in failed:
            remaining.discard(partition)
        if len(remaining):
            initializing[topic_id] = topic._replace(partitions=remaining)
    deleting = named(state.topics, states.deleting).items()
    return Result([states_record(group_id, initializing, states.initialized, deleting)])


# --- deletion ---


def deletion_of_group(
    state: State, group: ShareGroupModel, records: list[LogRecord]
) -> DeleteShareGroupStateRequest | None:
    """The request that deletes all states of a group, whose record this adds; None without states."""
    states = group.states
    if states is None:
        return None
    topics = combined(states.initialized, states.initializing)
    retried: InitializedTopics = HashMap()
    for topic_id in states.deleting:
        topic = state.topics.find_id(topic_id)
        if topic is not None:
            partitions = HashSet.of(range(topic.partitions))
            retried[topic_id] = InitializedTopic(topic.name, partitions, _NO_TIME)
    if len(retried):
        topics = combined(topics, retried)
    deleting = HashMap.of((topic_id, topic.name) for topic_id, topic in topics.items())
    records.append(states_record(group.group_id, HashMap(), HashMap(), deleting.items()))
    if not len(topics):
        return None
    return delete_request(
        group.group_id, ((topic_id, topic.partitions) for topic_id, topic in topics.items())
    )


def delete_request(
    group_id: str, topics: Iterable[tuple[UUID, Iterable[int]]]
) -> DeleteShareGroupStateRequest:
    return DeleteShareGroupStateRequest(
        group_id=group_id,
        topics=[
            DeleteStateData(
                topic_id=topic_id,
                partitions=[DeletedPartition(partition=partition) for partition in partitions],
            )
            for topic_id, partitions in topics
        ],
    )


def without_topics(state: State, group: ShareGroupModel, deleted: set[UUID]) -> LogRecord | None:
    """The record of a group's states without deleted topics; None if it has none of them."""
    states = group.states
    if states is None:
        return None
    parts = (states.initializing, states.initialized)
    if not any(topic_id in deleted for part in (*parts, states.deleting) for topic_id in part):
        return None
    remaining_topics = []
    for part in parts:
        copy: InitializedTopics = HashMap.copy_of(part)
        for topic_id in deleted:
            copy.discard(topic_id)
        remaining_topics.append(copy)
    deleting = HashSet.copy_of(states.deleting)
    for topic_id in deleted:
        deleting.discard(topic_id)
    return states_record(
        group.group_id, remaining_topics[0], remaining_topics[1], named(state.topics, deleting).items()
    )
