"""A group coordinator as a state machine: no socket, no clock, no randomness, equal to Apache Kafka's.

`Shard` is one partition of `__consumer_offsets`; requests and time go in, records to append and answers to
send come out as values. Tests compare it with the coordinators of Kafka 4.3.0, 4.3.1 and 4.4.0, answer by
answer and record by record; `CoordinatorConfig.release` chooses which it equals.
"""

from coordwire.coordinator.apis import GroupApis
from coordwire.coordinator.assignors import (
    Assignor,
    Assignors,
    GroupSpec,
    MemberSpec,
    StreamsAssignor,
    StreamsGroupSpec,
    StreamsMemberSpec,
)
from coordwire.coordinator.config import (
    ConsumerGroupConfig,
    CoordinatorConfig,
    MigrationPolicy,
    ShareGroupConfig,
    StreamsGroupConfig,
)
from coordwire.coordinator.effects import (
    Answer,
    Append,
    Effect,
    InternalTopic,
    RequestContext,
    TransactionCompleted,
)
from coordwire.coordinator.group_coordinator import GroupCoordinator, partition_of
from coordwire.coordinator.listener import GroupListener
from coordwire.coordinator.log_entries import LogEntry, TransactionMarker, log_entries
from coordwire.coordinator.model.assignment import Target
from coordwire.coordinator.model.streams_group import TargetTasks
from coordwire.coordinator.model.streams_topology import ConfiguredSubtopology
from coordwire.coordinator.persister import LatestOffsets, StateRequest
from coordwire.coordinator.requests import REQUESTS
from coordwire.coordinator.shard import Shard, ShardStatus
from coordwire.coordinator.topics import TopicImage, TopicsImage

__all__ = [
    "REQUESTS",
    "Answer",
    "Append",
    "Assignor",
    "Assignors",
    "ConfiguredSubtopology",
    "ConsumerGroupConfig",
    "CoordinatorConfig",
    "Effect",
    "GroupApis",
    "GroupCoordinator",
    "GroupListener",
    "GroupSpec",
    "InternalTopic",
    "LatestOffsets",
    "LogEntry",
    "MemberSpec",
    "MigrationPolicy",
    "RequestContext",
    "Shard",
    "ShardStatus",
    "ShareGroupConfig",
    "StateRequest",
    "StreamsAssignor",
    "StreamsGroupConfig",
    "StreamsGroupSpec",
    "StreamsMemberSpec",
    "Target",
    "TargetTasks",
    "TopicImage",
    "TopicsImage",
    "TransactionCompleted",
    "TransactionMarker",
    "log_entries",
    "partition_of",
]
