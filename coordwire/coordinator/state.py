"""The state of a shard, and the result of an operation on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from coordwire.codec import Message
from coordwire.coordinator.assignors import Assignor
from coordwire.coordinator.config import CoordinatorConfig
from coordwire.coordinator.effects import Reply
from coordwire.coordinator.listener import NO_CAUSE, NO_LISTENER, AppendCause, GroupListener
from coordwire.coordinator.log_entries import TransactionMarker
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.coordinator.model.offsets import OffsetStore, PendingOffsets
from coordwire.coordinator.model.patterns import Resolution
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.snapshots import SnapshotDict, Snapshots
from coordwire.coordinator.timers import TimerKey, Timers
from coordwire.coordinator.topics import TopicsImage
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord

__all__ = ["NOTHING", "NO_PRODUCER", "GroupModel", "Outcome", "Reply", "Result", "State"]

GroupModel: TypeAlias = ClassicGroupModel | ConsumerGroupModel

NO_PRODUCER = (-1, -1)


@dataclass(slots=True)
class Result:
    """The result of an operation. Never changed.

    response: the answer, once the records are durable; None where none is due, or a `Reply` is sent instead.
    on_append: called with 0 when the records are durable, with an error code when they could not be appended.
    replay: whether the records change the state, as loading them does; False where the operation has changed
    it itself.
    message: the reason of a refusal, for responses with a text.
    producer: id and epoch of the transaction that the records are part of, or that the marker ends.
    marker: the end of a transaction, in place of records.
    cause: the reason for the records, for the shard's listener.
    """

    records: Sequence[LogRecord] = ()
    response: Message | None = None
    on_append: Callable[[int], None] | None = None
    replay: bool = True
    message: str | None = None
    producer: tuple[int, int] = NO_PRODUCER
    marker: TransactionMarker | None = None
    cause: AppendCause = NO_CAUSE


NOTHING = Result()

Outcome: TypeAlias = Result | Message
"""The outcome of an operation: a response alone if the operation writes nothing."""

_RETRY_MS = 500
_LEFT_TO_OTHERS = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
"""Errors after which another shard has the partition, or this one loads it again."""


@dataclass(slots=True)
class State:
    """Groups, offsets and timers of a shard, and the inputs that its operations read.

    topics_version, new_topics_version: of the topics' image, and of the last one that had new topics.
    later: operations to run after the current one. assignors: a test's own, by name.
    resolutions: by group, those that have not ended; resolves_in_turns: whether `Shard.work` runs them, and
    not `later`. listener: takes reports about groups.
    """

    config: CoordinatorConfig
    now: int
    topics: TopicsImage = field(default_factory=TopicsImage)
    topics_version: int = -1
    new_topics_version: int = -1
    later: deque[Callable[[], Result]] = field(default_factory=deque)
    resolutions: dict[str, Resolution] = field(default_factory=dict)
    resolves_in_turns: bool = False
    assignors: Mapping[str, Assignor] = field(default_factory=dict)
    listener: GroupListener = NO_LISTENER
    snapshots: Snapshots = field(default_factory=Snapshots)
    timers: Timers[Result] = field(default_factory=Timers)
    groups: SnapshotDict[str, GroupModel] = field(init=False)
    offsets: OffsetStore = field(init=False)
    pending_offsets: PendingOffsets = field(init=False)

    def __post_init__(self) -> None:
        self.groups = SnapshotDict(self.snapshots)
        self.offsets = OffsetStore(self.snapshots)
        self.pending_offsets = PendingOffsets(self.snapshots)

    def set_timer(self, key: TimerKey, delay_ms: int, action: Callable[[], Result]) -> None:
        self.timers.set(key, self.now + delay_ms, action)

    def set_timer_with_retry(self, key: TimerKey, delay_ms: int, action: Callable[[], Result]) -> None:
        """Set a timer whose operation is tried again soon after its records could not be written."""

        def retry(error: int) -> None:
            if error and error not in _LEFT_TO_OTHERS:
                self.set_timer_with_retry(key, _RETRY_MS, action)

        def attempt() -> Result:
            try:
                result = action()
            except OperationRefused as refusal:
                retry(refusal.code)
                return NOTHING

            def appended(error: int) -> None:
                if result.on_append is not None:
                    result.on_append(error)
                retry(error)

            return replace(result, on_append=appended)

        self.set_timer(key, delay_ms, attempt)
