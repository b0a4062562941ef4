"""Share partitions (KIP-932): the records of one partition in flight in one share group."""

from coordwire.coordinator.share_partition.acquisition import OffsetRange
from coordwire.coordinator.share_partition.effects import (
    AcknowledgementBatch,
    AcknowledgementOutcome,
    AcquiredRecords,
    DeadLetters,
    ShareEffect,
    SharePartitionConfig,
    StateWrite,
    translated_error,
)
from coordwire.coordinator.share_partition.in_flight import AcquisitionFailed, RecordState
from coordwire.coordinator.share_partition.partition import SharePartition
from coordwire.coordinator.share_state.model import StateBatch

__all__ = [
    "AcknowledgementBatch",
    "AcknowledgementOutcome",
    "AcquiredRecords",
    "AcquisitionFailed",
    "DeadLetters",
    "OffsetRange",
    "RecordState",
    "ShareEffect",
    "SharePartition",
    "SharePartitionConfig",
    "StateBatch",
    "StateWrite",
    "translated_error",
]
