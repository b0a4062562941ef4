"""The reports of a shard about its groups, from which a timeline can be made.

Strategy: the records of an append have all changes of consumer groups; `AppendCause` has what the records
lack. A classic group changes in place, so its operations report each change as it is made. A listener holds
reports back until `settle` gives the end of the durable log, and drops the reports that `revert` takes back.
`coordwire.coordinator.timeline` makes events of them.
Rules: `GroupListener` itself does nothing; it is the null object of a shard without a timeline. A listener
does not change its arguments, which may change later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from coordwire._dataclasses import dataclass
from coordwire.coordinator.effects import Append
from coordwire.coordinator.log_entries import LogEntry
from coordwire.coordinator.model.classic_group import ClassicGroupModel, ClassicMember, Protocols
from coordwire.coordinator.model.consumer_group import ConsumerMember
from coordwire.coordinator.topics import TopicsImage

Leaving = Literal["left", "session_timeout", "removed", "fenced", "not_rejoined"]


@dataclass(frozen=True, slots=True)
class AppendCause:
    """The reason for records, as far as they lack it.

    leaving: how the members left whose tombstones are among the records; reason: the one of their request.
    member_id, generation: of the member that commits offsets; transactional_id: of its transaction.
    """

    leaving: Leaving = "left"
    reason: str | None = None
    member_id: str | None = None
    generation: int = -1
    transactional_id: str | None = None


NO_CAUSE = AppendCause()


class GroupsInLog(Protocol):
    """The groups of a shard, and whether the log has them."""

    def get(self, key: str, /) -> object | None: ...

    def is_new(self, key: str, /) -> bool: ...


class GroupListener:
    """A listener that ignores all reports. Times are the shard's, in milliseconds.

    >>> from coordwire.coordinator import GroupListener, Shard
    >>> class Report(GroupListener):
    ...     def loaded(self, now: int) -> None:
    ...         print("loaded at", now)
    >>> shard = Shard(listener=Report())
    >>> shard.load([], now=5)
    loaded at 5
    """

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    # --- the partition and its log ---

    def reset(self, topics: TopicsImage) -> None:
        """The shard has no groups now; a load may follow."""

    def topics_changed(self, topics: TopicsImage) -> None:
        """The cluster's topics are these now."""

    def replayed(self, entry: LogEntry) -> None:
        """An entry was in the log before the shard had it."""

    def loaded(self, now: int) -> None:
        """The whole log was replayed."""

    def appends(self, now: int, append: Append, cause: AppendCause) -> None:
        """The current operation appends this."""

    def settle(self, written: int, committed: int, groups: GroupsInLog) -> None:
        """An operation ended; the log ends at `written` and is durable up to `committed`."""

    def revert(self, base: int, groups: GroupsInLog) -> None:
        """Appends from this offset on failed, and their changes were taken back."""

    def unloaded(self, now: int) -> None:
        """The shard gives up its partition; the next shard decides about what is not durable."""

    # --- classic groups, in the current operation ---

    def member_joined(
        self, now: int, group: ClassicGroupModel, member: ClassicMember, replaces: str | None
    ) -> None:
        """A member joined. replaces: the id of the static member whose place it takes."""

    def member_left(
        self,
        now: int,
        group: ClassicGroupModel,
        member: ClassicMember,
        leaving: Leaving,
        reason: str | None = None,
    ) -> None:
        """A member left or was removed."""

    def member_rejoined(self, group: ClassicGroupModel, member: ClassicMember, previous: Protocols) -> None:
        """A member joined again. previous: its protocols until now."""

    def rebalance_began(self, now: int, group: ClassicGroupModel) -> None:
        """The members have to join again; the last report has the reason."""

    def generation_formed(self, now: int, group: ClassicGroupModel) -> None:
        """All members joined: there is a new generation, which may be without members."""

    def generation_assigned(self, now: int, group: ClassicGroupModel) -> None:
        """The members have their assignments."""

    def became_classic(
        self,
        now: int,
        group: ClassicGroupModel,
        member_id: str | None,
        leavers: Sequence[ConsumerMember] = (),
        leaving: Leaving = "left",
    ) -> None:
        """A consumer group became this one. member_id: of the cause. leavers: members that left with that."""


NO_LISTENER = GroupListener()
