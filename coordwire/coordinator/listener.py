"""What a shard reports of its groups while it works, from which a timeline can be made.

Strategy: consumer groups' changes are all in the records of an append; with it comes what the records don't
have (`AppendCause`). A classic group changes in place, so its operations report each change as it is made. A
listener holds reports back until `settle` gives the end of the durable log, and drops what `revert` takes
back. `coordwire.timeline.from_shard` makes events of them.
Rules: `GroupListener` itself does nothing; a shard has it where no timeline is wanted. A listener changes
nothing of what it is given, which may change later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from coordwire.coordinator.effects import Append
from coordwire.coordinator.log_entries import LogEntry
from coordwire.coordinator.model.classic_group import ClassicGroupModel, ClassicMember, Protocols
from coordwire.coordinator.model.consumer_member import ConsumerMember
from coordwire.coordinator.topics import TopicsImage

__all__ = ["NO_CAUSE", "NO_LISTENER", "AppendCause", "GroupListener", "GroupsInLog", "Leaving"]

Leaving = Literal["left", "session_timeout", "removed", "fenced", "not_rejoined"]


@dataclass(frozen=True, slots=True)
class AppendCause:
    """What records don't have of why they were written.

    leaving: how the members left whose tombstones are among the records; reason: the one that they gave.
    member_id, generation: who commits offsets, and in which; transactional_id: in which transaction.
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
    """Takes a shard's reports, and does nothing with them. Times are the shard's, in milliseconds."""

    # --- the partition and its log ---

    def reset(self, topics: TopicsImage) -> None:
        """The shard has no groups; a load may follow."""

    def topics_changed(self, topics: TopicsImage) -> None:
        """The cluster's topics are these now."""

    def replayed(self, entry: LogEntry) -> None:
        """An entry was in the log before the shard had it."""

    def loaded(self, now: int) -> None:
        """The whole log was replayed."""

    def appends(self, now: int, append: Append, cause: AppendCause) -> None:
        """The operation that is running appends this."""

    def settle(self, written: int, committed: int, groups: GroupsInLog) -> None:
        """An operation is over, the log ends at `written` and is durable up to `committed`."""

    def revert(self, base: int, groups: GroupsInLog) -> None:
        """Appends from this offset on failed, and what they changed was taken back."""

    def unloaded(self, now: int) -> None:
        """The shard gives up its partition; what is not durable is another's to decide."""

    # --- classic groups, in the operation that is running ---

    def member_joined(
        self, now: int, group: ClassicGroupModel, member: ClassicMember, replaces: str | None
    ) -> None:
        """A member is in. replaces: whose place it takes, as a static member."""

    def member_left(
        self,
        now: int,
        group: ClassicGroupModel,
        member: ClassicMember,
        leaving: Leaving,
        reason: str | None = None,
    ) -> None:
        """A member is out."""

    def member_rejoined(self, group: ClassicGroupModel, member: ClassicMember, before: Protocols) -> None:
        """A member joined again. before: the protocols that it had until now."""

    def rebalance_began(self, now: int, group: ClassicGroupModel) -> None:
        """The members are to join again; what was reported last is why."""

    def generation_formed(self, now: int, group: ClassicGroupModel) -> None:
        """All have joined: there is a new generation, which may be without members."""

    def generation_assigned(self, now: int, group: ClassicGroupModel) -> None:
        """The members have their assignments."""

    def became_classic(
        self,
        now: int,
        group: ClassicGroupModel,
        member_id: str | None,
        left: Sequence[ConsumerMember] = (),
        leaving: Leaving = "left",
    ) -> None:
        """A consumer group goes on as this one. member_id: whose doing it is. left: who left with that."""


NO_LISTENER = GroupListener()
