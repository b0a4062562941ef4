"""The state of a shard, the result of an operation on it, and what a shard asks of each kind of groups.

`coordinator.requests` lists the kinds, and their requests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar
from uuid import UUID

from coordwire._dataclasses import dataclass
from coordwire.codec import Message
from coordwire.coordinator.assignors import Assignors
from coordwire.coordinator.config import CoordinatorConfig
from coordwire.coordinator.effects import InternalTopic
from coordwire.coordinator.listener import NO_CAUSE, NO_LISTENER, AppendCause, GroupListener
from coordwire.coordinator.log_entries import TransactionMarker
from coordwire.coordinator.model.group import GroupModel
from coordwire.coordinator.model.offsets import CommittedOffset, OffsetStore, PendingOffsets
from coordwire.coordinator.model.patterns import Resolution
from coordwire.coordinator.persister import Persister
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.releases import ReleaseRules, rules_of
from coordwire.coordinator.snapshots import Snapshots, TimelineHashMap
from coordwire.coordinator.timers import TimerKey, Timers
from coordwire.coordinator.topics import TopicsImage
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages.list_groups import ListedGroup

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
    topics_to_create: the internal topics that a streams group lacks, which go out with the answer.
    """

    records: Sequence[LogRecord] = ()
    response: Message | None = None
    on_append: Callable[[int], None] | None = None
    replay: bool = True
    message: str | None = None
    producer: tuple[int, int] = NO_PRODUCER
    marker: TransactionMarker | None = None
    cause: AppendCause = NO_CAUSE
    topics_to_create: tuple[InternalTopic, ...] = ()


NOTHING = Result()

Outcome: TypeAlias = Result | Message
"""The outcome of an operation: a response alone if the operation writes nothing."""

Submit: TypeAlias = "Callable[[Callable[[State], Outcome], Callable[[int, Result], None]], None]"

_RETRY_MS = 500
_LEFT_TO_OTHERS = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
"""Errors after which another shard has the partition, or this one loads it again."""


@dataclass(slots=True)
class State:
    """Groups, offsets and timers of a shard, and the inputs that its operations read.

    rules: of the configured release.
    kinds: of groups, by name; kind_of_record: by the type of a record's key.
    topics_version, new_topics_version: of the topics' image, and of the last one that had new topics.
    former_topics: by group id, topics of a consumer group that became classic. Apache Kafka takes the id for
    subscribed to each until a group of it subscribes anew, and refreshes that group when one changes.
    later: operations to run after the current one. assignors: an embedder's own.
    resolutions: by group, those that have not ended; resolves_in_turns: whether `Shard.work` runs them, and
    not `later`. listener: takes reports about groups. persister: asks share coordinators. submit: runs an
    operation in the state that there is then, and calls with its error and result when it is durable.
    """

    config: CoordinatorConfig
    now: int
    kinds: Mapping[str, GroupKind[Any]] = field(default_factory=dict)
    topics: TopicsImage = field(default_factory=TopicsImage)
    topics_version: int = -1
    new_topics_version: int = -1
    later: deque[Callable[[], Result]] = field(default_factory=deque)
    resolutions: dict[str, Resolution] = field(default_factory=dict)
    resolves_in_turns: bool = False
    assignors: Assignors = field(default_factory=Assignors)
    listener: GroupListener = NO_LISTENER
    persister: Persister = field(default_factory=lambda: Persister(lambda request: None))
    submit: Submit = field(default=lambda operation, completed: None)
    snapshots: Snapshots = field(default_factory=Snapshots)
    timers: Timers[Result] = field(default_factory=Timers)
    groups: TimelineHashMap[str, GroupModel] = field(init=False)
    offsets: OffsetStore = field(init=False)
    pending_offsets: PendingOffsets = field(init=False)
    former_topics: TimelineHashMap[str, frozenset[str]] = field(init=False)
    kind_of_record: dict[type, GroupKind[Any]] = field(init=False)
    rules: ReleaseRules = field(init=False)

    def __post_init__(self) -> None:
        self.rules = rules_of(self.config.release)
        self.kind_of_record = {key: kind for kind in self.kinds.values() for key in kind.record_keys}
        self.groups = TimelineHashMap(self.snapshots)
        self.offsets = OffsetStore(self.snapshots)
        self.pending_offsets = PendingOffsets(self.snapshots)
        self.former_topics = TimelineHashMap(self.snapshots)

    def kind_of(self, group: GroupModel) -> GroupKind[Any]:
        return self.kinds[group.kind]

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


# --- kinds of groups ---

G = TypeVar("G", bound=GroupModel)

PartitionCheck: TypeAlias = Callable[[str, UUID, int], None]
"""Refuses the commit of one partition, by the topic's name and id and the partition's number."""


@dataclass(frozen=True, slots=True)
class GroupCommit:
    """A commit of offsets as a group checks it.

    version: of OffsetCommit or, in a transaction, of TxnOffsetCommit.
    """

    member_id: str
    instance_id: str | None
    generation: int
    version: int
    transactional: bool = False


class GroupKind(ABC, Generic[G]):
    """The operations of a kind of groups; G is their model.

    name: the kind's, as ListGroups has it. record_keys: the types of the keys of its records.
    expires: whether an empty group without offsets ends by itself.

    Rules: a method that refuses raises `OperationRefused`.
    """

    name: ClassVar[str]
    record_keys: ClassVar[Sequence[type[Message]]]
    expires: ClassVar[bool] = True

    @abstractmethod
    def replay(self, state: State, key: Any, value: Any) -> None:
        """Replay a record with one of `record_keys`; a value of None is a tombstone.

        Refuses a record that contradicts the state.
        """

    @abstractmethod
    def resume(self, state: State, group: G) -> None:
        """Begin the members' sessions, and other times, after a load."""

    def give_up(self, state: State, group: G) -> None:
        """Answer parked requests: the shard gives up the partition."""

    @abstractmethod
    def list_entry(self, group: G) -> ListedGroup:
        """List the group as of the last durable write."""

    def state_filter(self, state: str) -> str:
        """The word by which a request of ListGroups selects groups in this state."""
        return state.lower()

    def deletion_error(self, group: G) -> int:
        """The error of a deletion that writes nothing for the group, whatever becomes of others; else 0."""
        return 0

    def deletion_request(self, state: State, group: G, records: list[LogRecord]) -> Message | None:
        """Add records, and return the request to the share coordinators, that precede a deletion."""
        return None

    @abstractmethod
    def tombstones(self, state: State, group: G) -> list[LogRecord]:
        """The records by which an empty group ends; its own timers end too."""

    @abstractmethod
    def validate_commit(self, state: State, group: G, commit: GroupCommit) -> PartitionCheck | None:
        """Refuse a commit, or return what decides for each partition."""

    @abstractmethod
    def validate_fetch(self, group: G, member_id: str | None, epoch: int, *, stable: bool) -> None:
        """Refuse a fetch of offsets. stable: whether changes count that are not durable yet."""

    def validate_deletion_of_offsets(self, group: G) -> None:
        """Refuse an operator's deletion of offsets, whatever the partitions are."""

    @abstractmethod
    def retention_start(self, group: G, committed: CommittedOffset) -> int | None:
        """The start of an offset's retention, in milliseconds; None while the offset can't expire."""

    def subscribes_to_any(self, group: G, names: Iterable[str]) -> bool:
        """Whether the coordinator assigns one of these topics to the group, or would."""
        return False

    def refresh(self, group: G) -> None:
        """Let the next heartbeat look at the topics."""

    def without_topics(self, state: State, group: G, topics: set[UUID]) -> LogRecord | None:
        """The record by which a group drops topics that were deleted; None if it knows none of them."""
        return None
