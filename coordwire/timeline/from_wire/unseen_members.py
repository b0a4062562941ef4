"""Members that were in before the input began and of which no frame shows anything: what the others get shows
whether there was one.

Strategy: the epoch rises, and no member that was seen caused it. A member's first assignment in the new epoch
is new to it in part: a consumer asks for the committed offsets of just that part, or reports what it had
before. If it had other partitions of the same topic, the new ones had another owner, whose session is over:
its leaving would have been seen. If the members had nothing, and are given more partitions of one topic than
sessions can have ended, they had no owner: the coordinator has new topics for its members.

Rules: a session that ends raises the epoch by one; an assignor shares a topic's partitions among all that
subscribe to it; a member that is given something of which it may have had all, or more, concludes nothing;
nor does a rise with a change of topics in the capture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from coordwire.timeline.events import TopicPartition
from coordwire.timeline.members import Owned
from coordwire.timeline.rebalance import Trigger
from coordwire.timeline.rebalance_cause import of_epoch

__all__ = ["UnseenMembers"]


@dataclass(slots=True)
class UnseenMembers:
    """One rise of the epoch. assigned: the first assignments that were seen; new: what of each is new to its
    member, as far as that is known."""

    before: int
    after: int
    assigned: dict[str, Owned] = field(default_factory=dict)
    new: dict[str, Owned] = field(default_factory=dict)

    def gives(self, member_id: str, partitions: Owned) -> None:
        """A member's first assignment."""
        self.assigned.setdefault(member_id, partitions)

    def reports(self, member_id: str, owned: Owned) -> None:
        """A member reports to own this, perhaps what it had before."""
        assigned = self.assigned.get(member_id)
        if assigned is not None and owned < assigned:
            self.new.setdefault(member_id, assigned - owned)

    def asks_offsets(self, member_id: str, partitions: Iterable[TopicPartition]) -> None:
        """A member asks for committed offsets. A topic that has another name here is the only one given."""
        assigned = self.assigned.get(member_id, frozenset())
        topics = {partition.topic for partition in assigned}
        topic = next(iter(topics)) if len(topics) == 1 else ""
        asked_about = {
            partition if partition.topic in topics else TopicPartition(topic, partition.partition)
            for partition in partitions
        }
        if asked_about and asked_about <= assigned:
            self.new.setdefault(member_id, frozenset(asked_about))

    def cause(self) -> Trigger | None:
        """Why the epoch rose, if the assignments show it."""
        rise = f"the group's epoch rose from {self.before} to {self.after}"
        for member_id, new in self.new.items() if self.new.keys() == self.assigned.keys() else ():
            had = {partition.topic for partition in self.assigned[member_id] - new}
            parts = sum(partition.topic in had for partition in new)
            if parts:
                share = f"{parts} more partition{'s' if parts > 1 else ''} of topics that it shared"
                detail = f"{rise}, and a member is given {share}: their owner was in before the capture"
                return Trigger("session_timeout", inferred=True, detail=detail)
        if self.new == {name: partitions for name, partitions in self.assigned.items() if partitions}:
            of_topics = Counter(partition.topic for new in self.new.values() for partition in new)
            if max(of_topics.values(), default=0) > self.after - self.before:
                return of_epoch(self.before, self.after, "its members had nothing before")
        return None
