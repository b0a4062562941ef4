"""What a shard knows, and what one operation on it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from coordwire.codec import Message
from coordwire.coordinator.config import CoordinatorConfig
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.committed_offsets import OffsetStore
from coordwire.coordinator.reply import Reply
from coordwire.coordinator.snapshots import SnapshotDict, Snapshots
from coordwire.coordinator.timers import Timers
from coordwire.coordinator.topics import TopicsImage
from coordwire.logs import LogRecord

__all__ = ["NOTHING", "Reply", "Result", "State"]


@dataclass(frozen=True, slots=True)
class Result:
    """What an operation leads to.

    response: the answer, once the records are durable; None where none is due, or a `Reply` is sent instead.
    on_append: called with 0 when the records are durable, with an error code when they could not be appended.
    replay: whether the records change the state, as loading them does; False where the operation did so
    itself.
    """

    records: Sequence[LogRecord] = ()
    response: Message | None = None
    on_append: Callable[[int], None] | None = None
    replay: bool = True


NOTHING = Result()


@dataclass(slots=True)
class State:
    """Groups, offsets and timers of a shard, and the inputs that its operations read."""

    config: CoordinatorConfig
    now: int
    topics: TopicsImage = field(default_factory=TopicsImage)
    snapshots: Snapshots = field(default_factory=Snapshots)
    timers: Timers[Result] = field(default_factory=Timers)
    groups: SnapshotDict[str, ClassicGroupModel] = field(init=False)
    offsets: OffsetStore = field(init=False)

    def __post_init__(self) -> None:
        self.groups = SnapshotDict(self.snapshots)
        self.offsets = OffsetStore(self.snapshots)

    def set_timer(self, key: str, delay_ms: int, action: Callable[[], Result]) -> None:
        self.timers.set(key, self.now + delay_ms, action)
