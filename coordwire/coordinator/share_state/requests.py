"""The operations of a share coordinator on one partition: initialize, read, write, delete, summary.

Rules: a request of an older leader, or with an older state epoch, is fenced. The texts of errors are what
Apache Kafka's clients show.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from coordwire._dataclasses import dataclass
from coordwire.codec import Message
from coordwire.coordinator.refusal import OperationRefused, error_text
from coordwire.coordinator.releases import ReleaseRules
from coordwire.coordinator.share_state.model import (
    PartitionKey,
    PersistedState,
    StateBatch,
    snapshot_record,
    tombstone,
)
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from coordwire.messages import delete_share_group_state as delete_messages
from coordwire.messages import initialize_share_group_state as initialize_messages
from coordwire.messages import read_share_group_state as read_messages
from coordwire.messages import read_share_group_state_summary as summary_messages
from coordwire.messages import write_share_group_state as write_messages

if TYPE_CHECKING:  # the shard has the states that operations read
    from coordwire.coordinator.share_state.shard import ShareStateShard

_NO_EPOCH = -1
_UNKNOWN_START = -1
_UNKNOWN_COUNT = -1


@dataclass(frozen=True, slots=True)
class StateOperation:
    """An operation, and the parts of its response.

    run: gives the record to write, if any, and the partition's result. purpose: for the texts of failures.
    allows_empty: whether a topic without partitions is left out, and the others are served.
    """

    response: Callable[..., Message]
    result: Callable[..., Any]
    partition_result: Callable[..., Any]
    run: Callable[[ShareStateShard, PartitionKey, Any], tuple[LogRecord | None, Any]]
    purpose: str
    allows_empty: bool = False

    def failure(self, code: int, rules: ReleaseRules) -> str:
        """The text for an operation that could not be done."""
        return f"Unable to {self.purpose}: {error_text(code, rules) or ''}"


def _check_partition(key: PartitionKey) -> None:
    if key.partition < 0:
        raise OperationRefused(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number.")


def _check_topic(shard: ShareStateShard, key: PartitionKey) -> None:
    topic = shard.topics.find_id(key.topic_id)
    if topic is None or topic.partitions <= key.partition:
        raise OperationRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _initialize(
    shard: ShareStateShard, key: PartitionKey, data: initialize_messages.PartitionData
) -> tuple[LogRecord | None, Any]:
    _check_partition(key)
    known = shard.find(key)
    if (
        data.state_epoch != _NO_EPOCH
        and known is not None
        and known.state_epoch is not None
        and known.state_epoch > data.state_epoch
    ):
        raise OperationRefused(ErrorCode.FENCED_STATE_EPOCH)
    _check_topic(shard, key)
    state = PersistedState(
        snapshot_epoch=0 if known is None else known.state.snapshot_epoch + 1,
        state_epoch=data.state_epoch,
        start_offset=data.start_offset,
        delivery_complete_count=_UNKNOWN_COUNT if data.start_offset == _UNKNOWN_START else 0,
        created_at=shard.now,
        written_at=shard.now,
    )
    return snapshot_record(key, state), initialize_messages.PartitionResult(partition=key.partition)


def _read(
    shard: ShareStateShard, key: PartitionKey, data: read_messages.PartitionData
) -> tuple[LogRecord | None, Any]:
    _check_partition(key)
    known = shard.find(key)
    if known is None:
        raise OperationRefused(
            ErrorCode.INVALID_REQUEST, "Read operation on uninitialized share partition not allowed."
        )
    if known.leader_epoch > data.leader_epoch:
        raise OperationRefused(ErrorCode.FENCED_LEADER_EPOCH)
    _check_topic(shard, key)
    state = known.state
    result = read_messages.PartitionResult(
        partition=key.partition,
        state_epoch=state.state_epoch,
        start_offset=state.start_offset,
        state_batches=[
            read_messages.StateBatch(
                first_offset=batch.first_offset, last_offset=batch.last_offset,
                delivery_state=batch.delivery_state, delivery_count=batch.delivery_count,
            )
            for batch in state.batches
        ],
    )  # fmt: skip
    if data.leader_epoch in (_NO_EPOCH, known.leader_epoch):
        return None, result
    change = PersistedState(
        leader_epoch=data.leader_epoch, start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
    )  # fmt: skip
    return shard.write_record(key, change, leads=True), result


def _write(
    shard: ShareStateShard, key: PartitionKey, data: write_messages.PartitionData
) -> tuple[LogRecord | None, Any]:
    _check_partition(key)
    known = shard.find(key)
    if known is None:
        raise OperationRefused(
            ErrorCode.INVALID_REQUEST, "Write operation on uninitialized share partition not allowed."
        )
    if data.leader_epoch != _NO_EPOCH and known.leader_epoch > data.leader_epoch:
        raise OperationRefused(ErrorCode.FENCED_LEADER_EPOCH)
    if (
        data.state_epoch != _NO_EPOCH
        and known.state_epoch is not None
        and known.state_epoch > data.state_epoch
    ):
        raise OperationRefused(ErrorCode.FENCED_STATE_EPOCH)
    _check_topic(shard, key)
    batches = [
        StateBatch(batch.first_offset, batch.last_offset, batch.delivery_count, batch.delivery_state)
        for batch in data.state_batches
    ]
    change = PersistedState(
        leader_epoch=data.leader_epoch,
        start_offset=data.start_offset,
        delivery_complete_count=data.delivery_complete_count,
        batches=tuple(batches),
    )
    record = shard.write_record(key, change, leads=False)
    return record, write_messages.PartitionResult(partition=key.partition)


def _delete(
    shard: ShareStateShard, key: PartitionKey, data: delete_messages.PartitionData
) -> tuple[LogRecord | None, Any]:
    _check_partition(key)
    _check_topic(shard, key)
    record = None if shard.find(key) is None else tombstone(key)
    return record, delete_messages.PartitionResult(partition=key.partition)


def _summarize(
    shard: ShareStateShard, key: PartitionKey, data: summary_messages.PartitionData
) -> tuple[LogRecord | None, Any]:
    _check_partition(key)
    _check_topic(shard, key)
    known = shard.find(key)
    state = PersistedState() if known is None else known.state
    return None, summary_messages.PartitionResult(
        partition=key.partition,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
    )


OPERATIONS: dict[type[Message], StateOperation] = {
    InitializeShareGroupStateRequest: StateOperation(
        InitializeShareGroupStateResponse,
        initialize_messages.InitializeStateResult,
        initialize_messages.PartitionResult,
        _initialize,
        "initialize share group state",
        allows_empty=True,
    ),
    ReadShareGroupStateRequest: StateOperation(
        ReadShareGroupStateResponse,
        read_messages.ReadStateResult,
        read_messages.PartitionResult,
        _read,
        "read share group state",
    ),
    WriteShareGroupStateRequest: StateOperation(
        WriteShareGroupStateResponse,
        write_messages.WriteStateResult,
        write_messages.PartitionResult,
        _write,
        "write share group state",
    ),
    DeleteShareGroupStateRequest: StateOperation(
        DeleteShareGroupStateResponse,
        delete_messages.DeleteStateResult,
        delete_messages.PartitionResult,
        _delete,
        "delete share group state",
    ),
    ReadShareGroupStateSummaryRequest: StateOperation(
        ReadShareGroupStateSummaryResponse,
        summary_messages.ReadStateSummaryResult,
        summary_messages.PartitionResult,
        _summarize,
        "read share group state summary",
    ),
}
"""The operations by request."""
