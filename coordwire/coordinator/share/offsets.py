"""AlterShareGroupOffsets, DeleteShareGroupOffsets and DescribeShareGroupOffsets (KIP-932), and the texts of
errors in answers about share groups, as Apache Kafka words them.

Strategy: what is to change is entered in the group's record, then the share coordinators are asked; what
became of it is answered, and entered too. Only an empty group's offsets may be changed.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from coordwire.codec import Message
from coordwire.coordinator.hash_tables import HashMap, HashSet
from coordwire.coordinator.model.share_group import InitializedTopic, InitializedTopics, ShareGroupModel
from coordwire.coordinator.persister import LatestOffsets
from coordwire.coordinator.refusal import OperationRefused, error_text, translated, writable_refusal
from coordwire.coordinator.releases import ReleaseRules
from coordwire.coordinator.share.heartbeat import find_share_group
from coordwire.coordinator.share.partition_states import (
    add_initializing,
    delete_request,
    first_error,
    initialize_request,
    named,
    work_on_initialization,
)
from coordwire.coordinator.share.records import states_record
from coordwire.coordinator.snapshots import Snapshots
from coordwire.coordinator.state import Result, State
from coordwire.coordinator.topics import NO_TOPIC_ID
from coordwire.coordinator.writes import IncomingRequest, RefusalWording
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from coordwire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from coordwire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsResponseTopic
from coordwire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from coordwire.messages.read_share_group_state_summary import PartitionData as SummarizedPartition
from coordwire.messages.read_share_group_state_summary import ReadStateSummaryData

_UNKNOWN = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_UNKNOWN_OFFSET = -1

# --- refusals ---


def _refusal_in(response: type[Any]) -> RefusalWording:
    """Makes the response to a refused request, with the error's own text where there is no message."""

    def refused(error: int, message: str | None) -> Message:
        error, message = writable_refusal(error, message)
        refusal: Message = response(
            error_code=error, error_message=error_text(error) if message is None else message
        )
        return refusal

    return refused


def _is_refused(call: IncomingRequest, refused: RefusalWording) -> bool:
    """Answer a request that is refused whatever the group is like."""
    error = call.error if call.request.group_id else int(ErrorCode.INVALID_GROUP_ID)
    if error:
        call.reply.send(refused(error, None))
    return bool(error)


# --- altering ---

_alteration_refused = _refusal_in(AlterShareGroupOffsetsResponse)


def alter_offsets(call: IncomingRequest) -> None:
    request: AlterShareGroupOffsetsRequest = call.request
    reply, state = call.reply, call.state
    if _is_refused(call, _alteration_refused):
        return
    partitions_by_topic: list[InitializeShareGroupStateRequest] = []

    def completed(error: int, result: Result) -> None:
        if error:
            reply.send(_alteration_refused(translated(error), result.message))
            return
        response = result.response
        assert isinstance(response, AlterShareGroupOffsetsResponse)
        (initialize,) = partitions_by_topic
        if not initialize.topics:
            reply.send(response)
            return
        note = work_on_initialization(state, initialize)

        def persisted(answer: Any, error: int, offsets: LatestOffsets) -> None:
            if answer is None or first_error(answer.results):
                reply.send(_with_errors(state.rules, response, answer, error))
            else:
                note(answer, error, offsets)
                reply.send(response)

        state.persister.call(initialize, persisted)

    call.writes.run(lambda: _alter(state, request, partitions_by_topic), completed)


def _alter(
    state: State,
    request: AlterShareGroupOffsetsRequest,
    partitions_by_topic: list[InitializeShareGroupStateRequest],
) -> Result:
    group_id = request.group_id
    known = state.groups.get(group_id)
    group = ShareGroupModel(group_id, Snapshots()) if known is None else find_share_group(state, group_id)
    if not group.is_empty:
        raise OperationRefused(ErrorCode.NON_EMPTY_GROUP)
    response = AlterShareGroupOffsetsResponse()
    initializing: InitializedTopics = HashMap()
    offsets: HashMap[UUID, HashMap[int, int]] = HashMap()
    for topic in request.topics:
        image = state.topics.find(topic.topic_name)
        answer = AlterShareGroupOffsetsResponseTopic(topic_name=topic.topic_name)
        response.responses.append(answer)
        if image is not None:
            answer.topic_id = image.id
        start_offsets: HashSet[int] = HashSet()
        for partition in topic.partitions:
            index = partition.partition_index
            exists = image is not None and index < image.partitions
            answer.partitions.append(
                AlterShareGroupOffsetsResponsePartition(
                    partition_index=index,
                    error_code=0 if exists else _UNKNOWN,
                    error_message=None if exists else error_text(_UNKNOWN),
                )
            )
            if exists and image is not None:
                start_offsets.add(index)
                places: HashMap[int, int] = offsets.find_or_add(image.id, HashMap)
                places[index] = partition.start_offset
        if image is not None:
            initializing[image.id] = InitializedTopic(topic.topic_name, start_offsets, state.now)
    records: list[LogRecord] = []
    add_initializing(state, group, initializing, records)
    partitions_by_topic.append(
        initialize_request(
            group_id, group.epoch, ((topic_id, own.items()) for topic_id, own in offsets.items())
        )
    )
    return Result(records, response)


def _with_errors(
    rules: ReleaseRules, response: AlterShareGroupOffsetsResponse, answer: Any, error: int
) -> AlterShareGroupOffsetsResponse:
    """The response after the share coordinators failed: for all, or for single partitions."""
    if answer is None:
        text = error_text(error, rules)
        failed = AlterShareGroupOffsetsResponse(error_code=error, error_message=text)
        failed.responses = [
            AlterShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name,
                topic_id=topic.topic_id,
                partitions=[
                    AlterShareGroupOffsetsResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=error,
                        error_message=text,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in response.responses
        ]
        return failed
    errors = {
        (topic.topic_id, partition.partition): (partition.error_code, partition.error_message)
        for topic in answer.results
        for partition in topic.partitions
        if partition.error_code
    }
    for topic in response.responses:
        for partition in topic.partitions:
            failure = errors.get((topic.topic_id, partition.partition_index))
            if not partition.error_code and failure is not None:
                partition.error_code, partition.error_message = failure
    return response


# --- deleting ---

_deletion_refused = _refusal_in(DeleteShareGroupOffsetsResponse)


def delete_offsets(call: IncomingRequest) -> None:
    request: DeleteShareGroupOffsetsRequest = call.request
    reply, state = call.reply, call.state
    if _is_refused(call, _deletion_refused):
        return
    refusals: list[DeleteShareGroupOffsetsResponseTopic] = []
    partitions_by_topic: list[tuple[UUID, list[int]]] = []

    def completed(error: int, result: Result) -> None:
        if error:
            reply.send(_deletion_refused(translated(error), None))
        elif result.response is not None:
            reply.send(result.response)
        elif not partitions_by_topic:
            reply.send(DeleteShareGroupOffsetsResponse(responses=refusals))
        else:
            state.persister.call(delete_request(request.group_id, partitions_by_topic), persisted)

    def send(response: Any) -> None:
        """Answer; with an error if a topic was deleted meanwhile: Kafka can't write an answer without its
        name."""
        if any(topic.topic_id.int and not topic.topic_name for topic in response.responses):
            reply.send(_deletion_refused(ErrorCode.UNKNOWN_SERVER_ERROR, None))
        else:
            reply.send(response)

    def persisted(answer: Any, error: int, offsets: LatestOffsets) -> None:
        if answer is None:
            reply.send(_deletion_refused(error, error_text(error, state.rules)))
            return
        deleted: HashMap[UUID, str | None] = HashMap()
        for topic in answer.results:
            image = state.persister.topics.find_id(topic.topic_id)
            name = None if image is None else image.name
            failure = first_error([topic])
            if failure:
                refusals.append(
                    DeleteShareGroupOffsetsResponseTopic(
                        topic_id=topic.topic_id, topic_name=name or "", error_code=failure,
                        error_message=error_text(failure, state.rules),
                    )
                )  # fmt: skip
            else:
                deleted[topic.topic_id] = name
        if not len(deleted):
            send(DeleteShareGroupOffsetsResponse(responses=refusals))
            return

        def deletion_noted(error: int, result: Result) -> None:
            if error:
                reply.send(_deletion_refused(translated(error), None))
            else:
                send(result.response)

        state.submit(lambda current: _deleted(current, request.group_id, deleted, refusals), deletion_noted)

    call.writes.run(lambda: _delete(state, request, refusals, partitions_by_topic), completed)


def _delete(
    state: State,
    request: DeleteShareGroupOffsetsRequest,
    refusals: list[DeleteShareGroupOffsetsResponseTopic],
    partitions_by_topic: list[tuple[UUID, list[int]]],
) -> Result:
    try:
        group = find_share_group(state, request.group_id)
    except OperationRefused as refusal:
        return Result(response=_deletion_refused(refusal.code, refusal.message))
    if not group.is_empty:
        return Result(response=_deletion_refused(ErrorCode.NON_EMPTY_GROUP, None))
    states = group.states
    if states is None:
        return Result()
    initialized: InitializedTopics = HashMap.of(states.initialized.items())
    deleting = HashSet.copy_of(states.deleting)
    for topic in request.topics:
        image = state.topics.find(topic.topic_name)
        if image is None:
            text = error_text(_UNKNOWN)
        elif image.id in initialized:
            partitions_by_topic.append((image.id, list(initialized[image.id].partitions)))
            initialized.discard(image.id)
            deleting.add(image.id)
            continue
        elif image.id in deleting:
            partitions_by_topic.append((image.id, list(range(image.partitions))))
            continue
        else:
            text = "There is no offset information to delete."
        refusals.append(
            DeleteShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name, error_code=_UNKNOWN, error_message=text
            )
        )
    names = named(state.topics, deleting).items()
    return Result([states_record(group.group_id, states.initializing, initialized, names)])


def _deleted(
    state: State,
    group_id: str,
    topics: HashMap[UUID, str | None],
    refusals: list[DeleteShareGroupOffsetsResponseTopic],
) -> Result:
    """Note that the states of these topics are deleted."""
    group = state.groups.get(group_id)
    states = group.states if isinstance(group, ShareGroupModel) else None
    if states is None:
        return Result(response=DeleteShareGroupOffsetsResponse(responses=refusals))
    deleting = HashSet.copy_of(states.deleting)
    for topic_id in topics:
        deleting.discard(topic_id)
    record = states_record(
        group_id, states.initializing, states.initialized, named(state.topics, deleting).items()
    )
    answers = [
        DeleteShareGroupOffsetsResponseTopic(topic_id=topic_id, topic_name=name or "")
        for topic_id, name in topics.items()
    ]
    return Result([record], DeleteShareGroupOffsetsResponse(responses=[*answers, *refusals]))


# --- describing ---


def describe_offsets(call: IncomingRequest) -> None:
    """Answer with the start offsets of the groups that a request names; each group is asked for by itself."""
    request: DescribeShareGroupOffsetsRequest = call.request
    groups = request.groups
    described: dict[int, DescribeShareGroupOffsetsResponseGroup] = {}

    def take(number: int, group: DescribeShareGroupOffsetsResponseGroup) -> None:
        described[number] = group
        if len(described) == len(groups):
            answers = [described[number] for number in range(len(groups))]
            call.reply.send(DescribeShareGroupOffsetsResponse(groups=answers))

    if not groups:
        call.reply.send(DescribeShareGroupOffsetsResponse())
    for number, group in enumerate(groups):
        _describe(call, group, lambda answer, number=number: take(number, answer))


def _describe(call: IncomingRequest, request: DescribeShareGroupOffsetsRequestGroup, take: Any) -> None:
    state, group_id = call.state, request.group_id
    names: dict[UUID, str] = {}
    partitions_by_topic: list[tuple[UUID, list[int]]] = []
    unknown: list[DescribeShareGroupOffsetsResponseTopic] = []
    if request.topics is None:
        if call.error:
            take(_undescribed(state.rules, group_id, call.error))
            return
        group = state.groups.get(group_id)
        states = group.states if isinstance(group, ShareGroupModel) else None
        initialized: InitializedTopics = HashMap() if states is None else states.initialized
        for topic_id, topic in HashMap.of(initialized.items()).items():
            image = state.topics.find_id(topic_id)
            if image is not None:
                names[topic_id] = image.name
                partitions_by_topic.append((topic_id, list(HashSet.copy_of(topic.partitions))))
    else:
        for topic_request in request.topics:
            image = state.topics.find(topic_request.topic_name)
            if image is not None:
                names[image.id] = topic_request.topic_name
                partitions_by_topic.append((image.id, topic_request.partitions))
            else:
                unknown.append(_unknown_topic(topic_request.topic_name, topic_request.partitions))
    if not partitions_by_topic:
        take(DescribeShareGroupOffsetsResponseGroup(group_id=group_id, topics=unknown))
        return

    def persisted(
        answer: ReadShareGroupStateSummaryResponse | None, error: int, offsets: LatestOffsets
    ) -> None:
        if answer is None:
            take(_undescribed(state.rules, group_id, error))
        else:
            topics = [_described_topic(state.rules, topic, names, offsets) for topic in answer.results]
            take(DescribeShareGroupOffsetsResponseGroup(group_id=group_id, topics=[*topics, *unknown]))

    summary = ReadShareGroupStateSummaryRequest(
        group_id=group_id,
        topics=[
            ReadStateSummaryData(
                topic_id=topic_id,
                partitions=[SummarizedPartition(partition=partition) for partition in partitions],
            )
            for topic_id, partitions in partitions_by_topic
        ],
    )
    state.persister.call(summary, persisted)


def _undescribed(rules: ReleaseRules, group_id: str, error: int) -> DescribeShareGroupOffsetsResponseGroup:
    return DescribeShareGroupOffsetsResponseGroup(
        group_id=group_id, error_code=int(error), error_message=error_text(error, rules)
    )


def _unknown_topic(name: str, partitions: list[int]) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=name,
        topic_id=NO_TOPIC_ID,
        partitions=[
            DescribeShareGroupOffsetsResponsePartition(partition_index=index, start_offset=_UNKNOWN_OFFSET)
            for index in partitions
        ],
    )


def _described_topic(
    rules: ReleaseRules, topic: Any, names: dict[UUID, str], offsets: LatestOffsets
) -> DescribeShareGroupOffsetsResponseTopic:
    name = names.get(topic.topic_id, "")
    partitions = []
    for partition in topic.partitions:
        described = DescribeShareGroupOffsetsResponsePartition(
            partition_index=partition.partition, start_offset=_UNKNOWN_OFFSET
        )
        partitions.append(described)
        if not partition.error_code:
            described.start_offset = partition.start_offset
            described.leader_epoch = partition.leader_epoch
        counted = partition.start_offset != _UNKNOWN_OFFSET and partition.delivery_complete_count != -1
        if partition.error_code or not counted:
            continue
        error, end = offsets.get((name, partition.partition), (_UNKNOWN, -1))
        if error:
            described.start_offset = described.leader_epoch = 0
            described.error_code, described.error_message = error, error_text(error, rules)
        else:
            described.lag = end - partition.start_offset - partition.delivery_complete_count
    return DescribeShareGroupOffsetsResponseTopic(
        topic_id=topic.topic_id, topic_name=name, partitions=partitions
    )
