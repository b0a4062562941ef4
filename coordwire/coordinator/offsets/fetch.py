"""OffsetFetch: the offsets of one group, or from version 8 of several; all of them where no topics are named.

Reads see durable commits only; with `require_stable` the answer waits until the newest are durable (KIP-447).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from uuid import UUID

from coordwire.coordinator.model.offsets import CommittedOffset, CommittedOffsets
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import State
from coordwire.coordinator.topics import NO_TOPIC_ID
from coordwire.enums import ErrorCode
from coordwire.messages import OffsetFetchRequest, OffsetFetchResponse
from coordwire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

_GROUPS = 8
_TOP_LEVEL_ERROR = 2


def requested_groups(request: OffsetFetchRequest, version: int) -> list[OffsetFetchRequestGroup]:
    if version >= _GROUPS:
        return request.groups
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return [OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)]


def fetch(
    state: State, request: OffsetFetchRequestGroup, version: int, *, stable: bool
) -> OffsetFetchResponseGroup:
    """One group's offsets; with `stable` the newest, which the caller sends once they are durable."""
    groups, offsets = state.groups, state.offsets.groups
    group = groups.get(request.group_id) if stable else groups.committed(request.group_id)
    of_group: CommittedOffsets | None = None
    if group is not None:
        try:
            kind = state.kind_of(group)
            kind.validate_fetch(group, request.member_id, request.member_epoch, stable=stable)
            of_group = offsets.get(request.group_id) if stable else offsets.committed(request.group_id)
        except OperationRefused as refusal:
            if refusal.code != ErrorCode.GROUP_ID_NOT_FOUND:  # a missing group has no offsets
                return refused_fetch(request, refusal.code, version)

    def is_unstable(topic: str, partition: int) -> bool:
        return stable and state.pending_offsets.is_open(request.group_id, topic, partition)

    if request.topics is not None:
        topics = _requested(request.topics, _find(of_group, stable=stable), is_unstable)
    elif of_group is None:
        topics = []
    else:
        topics = _all(of_group.items() if stable else of_group.committed_items(), is_unstable)
    return OffsetFetchResponseGroup(group_id=request.group_id, topics=topics)


def _find(
    offsets: CommittedOffsets | None, *, stable: bool
) -> Callable[[tuple[str, int]], CommittedOffset | None]:
    if offsets is None:
        return lambda partition: None
    return offsets.get if stable else offsets.committed


def _all(
    offsets: list[tuple[tuple[str, int], CommittedOffset]], is_unstable: Callable[[str, int], bool]
) -> list[OffsetFetchResponseTopics]:
    topics: dict[str, OffsetFetchResponseTopics] = {}
    for (name, partition), committed in sorted(offsets, key=itemgetter(0)):
        if name not in topics:
            topics[name] = OffsetFetchResponseTopics(name=name)
        of_topic = topics[name].partitions
        of_topic.append(_partition(partition, committed, unstable=is_unstable(name, partition)))
    return list(topics.values())


def _requested(
    topics: Iterable[OffsetFetchRequestTopics],
    find: Callable[[tuple[str, int]], CommittedOffset | None],
    is_unstable: Callable[[str, int], bool],
) -> list[OffsetFetchResponseTopics]:
    answered = []
    for requested in topics:
        name, topic_id = requested.name, requested.topic_id
        partitions = [
            _partition(index, _of_topic(find((name, index)), topic_id), unstable=is_unstable(name, index))
            for index in requested.partition_indexes
        ]
        answered.append(OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=partitions))
    return answered


def _of_topic(committed: CommittedOffset | None, topic_id: UUID) -> CommittedOffset | None:
    """A commit, unless it was made for another topic of the same name."""
    if committed is None or NO_TOPIC_ID in (committed.topic_id, topic_id):
        return committed
    return committed if committed.topic_id == topic_id else None


def _partition(
    index: int, committed: CommittedOffset | None, *, unstable: bool
) -> OffsetFetchResponsePartitions:
    """unstable: a transaction that has not ended commits an offset of this partition (KIP-447)."""
    if unstable:
        error = int(ErrorCode.UNSTABLE_OFFSET_COMMIT)
        return OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1, error_code=error)
    if committed is None:
        return OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1)
    return OffsetFetchResponsePartitions(
        partition_index=index, committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch, metadata=committed.metadata,
    )  # fmt: skip


def refused_fetch(request: OffsetFetchRequestGroup, error: int, version: int) -> OffsetFetchResponseGroup:
    """One group's error; before version 2 only partitions have a field for it."""
    if version >= _TOP_LEVEL_ERROR:
        return OffsetFetchResponseGroup(group_id=request.group_id, error_code=error)
    topics = [
        OffsetFetchResponseTopics(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1, error_code=error)
                for index in topic.partition_indexes
            ],
        )
        for topic in request.topics or ()
    ]
    return OffsetFetchResponseGroup(group_id=request.group_id, topics=topics)


def fetch_response(groups: list[OffsetFetchResponseGroup], version: int) -> OffsetFetchResponse:
    if version >= _GROUPS:
        return OffsetFetchResponse(groups=groups)
    (group,) = groups
    response = OffsetFetchResponse(error_code=group.error_code)
    for topic in group.topics:
        partitions = [
            OffsetFetchResponsePartition(
                partition_index=partition.partition_index, committed_offset=partition.committed_offset,
                committed_leader_epoch=partition.committed_leader_epoch, metadata=partition.metadata,
                error_code=partition.error_code,
            )
            for partition in topic.partitions
        ]  # fmt: skip
        response.topics.append(OffsetFetchResponseTopic(name=topic.name, partitions=partitions))
    return response
