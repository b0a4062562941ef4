"""A group whose coordinator assigns (KIP-848, share groups, streams groups), told by its heartbeats.

Strategy: a heartbeat with epoch 0 joins, one below 0 leaves; an answer may bring a new assignment, which the
member has taken up when it says that it owns just that. A rebalance lasts from the first such change until
all members seen have taken up theirs in one new epoch. Rules: a null field means "as before"; members of a
share group don't say what they own, so that theirs counts as taken up at once. Tasks of a streams group stand
for partitions; only its active ones are told. Topics go by their ids, which are named when they are told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from coordwire.capture.entries import FrameEntry
from coordwire.enums import ErrorCode
from coordwire.groups.group import Group, Member, Members, Owned, Seen, Why, changed, id_text, owned
from coordwire.groups.timeline_events import Kind, Outcome, TopicPartition

__all__ = ["ModernGroup"]

GONE = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.FENCED_MEMBER_EPOCH}
JOIN, LEAVE_FOR_NOW = 0, -2


class ModernGroup(Group):
    """One such group. name_of: a topic's name by its id's text."""

    def __init__(self, group: str, kind: Kind, name_of: Callable[[str], str]) -> None:
        super().__init__(group, kind, name_of)
        self.members = Members(self._out)
        self._behind: set[str] = set()  # who haven't, those that are away apart
        self._epochs: Counter[int | None] = Counter()
        self._epoch_of: dict[str, int | None] = {}
        self._held: dict[str, Owned] = {}  # what each member has
        self._holders: Counter[TopicPartition] = Counter()
        self._before: set[TopicPartition] | None = None  # what members had before the rebalance
        self._lost: set[TopicPartition] = set()  # partitions of it without an owner

    def _gone(self, member_id: str) -> None:
        """A member is out, or away: it counts no more."""
        if member_id in self._epoch_of:
            epoch = self._epoch_of.pop(member_id)
            self._epochs[epoch] -= 1
            if not self._epochs[epoch]:
                del self._epochs[epoch]
        self._behind.discard(member_id)

    def _out(self, member_id: str) -> None:
        self._gone(member_id)
        self._hold(member_id, None)

    def _note(self, member: Member) -> None:
        """Count a member as it is now."""
        self._gone(member.member_id)
        if member.away or self.members.get(member.member_id) is not member:
            return
        self._epoch_of[member.member_id] = member.generation
        self._epochs[member.generation] += 1
        if member.assigned is None or member.owned is not member.assigned:
            self._behind.add(member.member_id)

    def heartbeat(
        self, entry: FrameEntry, request: Any, message: Any, place: Seen, asked: Seen, host: str | None
    ) -> None:
        """A heartbeat's answer with its request."""
        member_id = request.member_id or message.member_id or ""
        if message.error_code:
            self._refused(message.error_code, member_id, place)
            return
        if request.member_epoch < JOIN:
            self._leaves(request, member_id, place, asked)
            return
        member = self.members.get(member_id)
        if member is None or (request.member_epoch == JOIN and member.generation != JOIN):
            member = self._joins(member, member_id, entry, request, place, asked, host)
        topics = _topics(request)
        if topics is not None and topics != member.topics:
            why = Why("subscription_changed", member_id, detail=changed(member.topics, topics))
            member.topics = topics
            self.begin(why, asked)
        member.away = False
        self._reconcile(member, request, message, place)

    def _joins(
        self, old: Member | None, member_id: str, entry: FrameEntry, request: Any,
        place: Seen, asked: Seen, host: str | None,
    ) -> Member:  # fmt: skip
        static = self.of_instance(request.instance_id) if self.kind != "share" else None
        empty = not self.members
        member = Member(
            member_id, entry.client_id, host, getattr(request, "instance_id", None), _topics(request) or ()
        )
        if old is None and request.member_epoch != JOIN:
            # It was in before the input began.
            member.generation = request.member_epoch
            self.add(member, place, rejoined=True)
            return member
        if static is not None:
            self.members.drop(static.member_id)
            member.assigned = static.assigned
        if old is not None:
            why = Why("member_rejoined", member_id)
        elif static is not None:
            why = Why("static_member_returned", member_id, detail=f"as {request.instance_id}")
        elif empty:
            why = Why("first_member", member_id, inferred=self.generation is None)
        else:
            why = Why("new_member", member_id)
        rebalance = self.begin(why, asked)
        rebalance.join(member_id, asked.time_ns)
        self.add(member, place, rejoined=old is not None or static is not None)
        return member

    def _leaves(self, request: Any, member_id: str, place: Seen, asked: Seen) -> None:
        if request.member_epoch == LEAVE_FOR_NOW:
            self.remove(member_id, asked, "left_for_now")  # its partitions wait for it: no rebalance
            self._gone(member_id)
            return
        self.remove(member_id, asked, "left")
        if self.members:
            self.begin(Why("member_left", member_id), asked)
            self._settle(place)
        else:
            self._close("empty", place)

    def _refused(self, error_code: int, member_id: str, place: Seen) -> None:
        member = self.members.get(member_id)
        if error_code not in GONE or member is None:
            return
        if error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            silent = member.silent_at(place.time_ns)
            self.remove(member_id, place, "session_timeout" if silent else "removed", inferred=True)
            why = Why("member_removed", member_id, inferred=True, detail="UNKNOWN_MEMBER_ID")
        else:
            self.remove(member_id, place, "fenced")
            why = Why("member_fenced", member_id)
        if self.members:
            self.begin(why, place)
        else:
            self._close("empty", place)

    # --- reconciliation ---

    def _reconcile(self, member: Member, request: Any, message: Any, place: Seen) -> None:
        member.last_seen_ns = place.time_ns
        member.generation = message.member_epoch
        if message.member_epoch > (self.generation or 0):
            self.generation = message.member_epoch
            if self.rebalance is not None and self.rebalance.joined_ns is None:
                self.rebalance.joined_ns = place.time_ns
        reported = self._partitions(request)
        if reported is not None:
            member.owned = reported
        given = self._partitions(message)
        if given is not None and given != member.assigned:
            detail = "its coordinator gave it another assignment"
            self.begin(Why("assignment_changed", member.member_id, inferred=True, detail=detail), place)
            self.assign(member, given)
        if (reported is not None or given is not None) and member.owned == member.assigned:
            member.owned = member.assigned  # so that they need not be compared again
        if self.kind == "share":
            member.owned = member.assigned
        self._note(member)
        self._settle(place)

    def _settle(self, place: Seen) -> None:
        """Close the rebalance if all have taken up what they were given."""
        rebalance = self.rebalance
        if rebalance is None:
            return
        if not self._epoch_of:
            self._close("empty", place)
            return
        renewed = rebalance.why.cause == "static_member_returned" or (
            (self.generation or 0) > (rebalance.generation_before or 0)
        )
        if not self._behind and renewed and len(self._epochs) == 1 and not self._orphans():
            self._close("steady", place)

    def _orphans(self) -> bool:
        """Whether partitions that a new member shall get have been given up, and it hasn't got them yet."""
        if self.rebalance is None or self.rebalance.why.cause != "new_member":
            return False
        if self._before is None:
            self._before = set[TopicPartition]().union(*self.settled.values())
            self._lost = {one for one in self._before if one not in self._holders}
        return bool(self._lost)

    def assign(self, member: Member, partitions: Owned | None) -> None:
        super().assign(member, partitions)
        self._hold(member.member_id, partitions)

    def _hold(self, member_id: str, partitions: Owned | None) -> None:
        """A member has these and no others."""
        before, holders = self._before or (), self._holders
        for one in self._held.pop(member_id, ()):
            holders[one] -= 1
            if not holders[one]:
                del holders[one]
                if one in before:
                    self._lost.add(one)
        if partitions:
            self._held[member_id] = partitions
            holders.update(partitions)
            self._lost -= partitions

    def _partitions(self, message: Any) -> Owned | None:
        """What a heartbeat says that its member owns, or its answer that it shall own; None for no change."""
        if self.kind == "streams":
            tasks = message.active_tasks
            return None if tasks is None else owned((one.subtopology_id, one.partitions) for one in tasks)
        inside = getattr(message, "assignment", message)
        topics = None if inside is None else getattr(inside, "topic_partitions", None)
        if topics is None:
            return None
        return owned((id_text(one.topic_id), one.partitions) for one in topics)

    def _close(self, outcome: Outcome, place: Seen) -> None:
        if self.rebalance is not None:
            self.rebalance.generation = self.generation
            self.rebalance.members = tuple(self.members)
        self.end(outcome, place)
        self._before, self._lost = None, set()

    def finish(self, place: Seen) -> None:
        """The input is at its end."""
        self._close("unfinished", place)


def _topics(request: Any) -> tuple[str, ...] | None:
    """The topics that a heartbeat subscribes to, patterns in slashes; None for no change."""
    if hasattr(request, "topology"):
        topology = request.topology
        if topology is None:
            return None
        return tuple(sorted({topic for part in topology.subtopologies for topic in part.source_topics}))
    names, regex = request.subscribed_topic_names, getattr(request, "subscribed_topic_regex", None)
    if names is None and not regex:
        return None
    return (*sorted(names or ()), *([f"/{regex}/"] if regex else ()))
