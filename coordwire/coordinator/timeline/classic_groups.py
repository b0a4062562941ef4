"""Events of classic groups: facts that operations note, to events; and the rebalances that are under way in a
shard's groups of any kind, from what began each to its end.

Rules: a fact keeps what the group was like when it was noted, since the group changes in place. A rebalance's
cause is the fact that was noted just before it began; a group has one at a time, and its end compares what
members have with what they had when the group was last steady.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from coordwire.coordinator.model.classic_group import ClassicGroupModel, ClassicMember, Protocols
from coordwire.coordinator.model.consumer_group import ConsumerMember
from coordwire.coordinator.model.embedded_protocol import (
    MalformedProtocol,
    Subscription,
    read_named_assignment,
    read_subscription,
)
from coordwire.coordinator.refusal import OperationRefused
from coordwire.timeline.events import (
    Assignment,
    Cause,
    GroupConverted,
    GroupEvent,
    Kind,
    Leaving,
    MemberJoined,
    MemberLeft,
    Moved,
    Outcome,
    RebalanceBegan,
    RebalanceEnded,
    TopicPartition,
    partitions_moved,
)

_Why = tuple[Cause, str | None, str]

_UNKNOWN: _Why = ("unknown", None, "")
_OF_LEAVING: dict[Leaving, Cause] = {
    "left": "member_left",
    "session_timeout": "session_timeout",
    "fenced": "member_fenced",
}


class ClassicGroups:
    """Of all classic groups. note: holds a fact back until it is durable."""

    def __init__(
        self,
        note: Callable[[ClassicGroupModel | None, Callable[[], None]], None],
        report: Callable[[GroupEvent], None],
        rebalances: Rebalances,
    ) -> None:
        self._note = note
        self._report = report
        self._rebalances = rebalances
        self._triggers: dict[str, _Why] = {}  # of groups whose rebalance has not begun yet

    # --- members ---

    def joined(self, now: int, group: ClassicGroupModel, member: ClassicMember, replaces: str | None) -> None:
        """A member is in. replaces: whose place it takes, as a static one."""
        first = len(group.members) == 1 and replaces is None
        cause: Cause = "static_member_returned" if replaces is not None else "new_member"
        trigger: _Why = ("first_member" if first else cause, member.member_id, "")
        self._note(group, partial(self._tell_joined, now, group.group_id, member, replaces, trigger))

    def _tell_joined(
        self, now: int, group_id: str, member: ClassicMember, replaces: str | None, trigger: _Why
    ) -> None:
        if replaces is not None:
            self._tell_left(now, group_id, replaces, member.client_id, member.instance_id, "fenced", None)
        subscription = _subscription(member.protocols)
        self._report(
            MemberJoined(
                **self._rebalances.place(group_id, now), kind="classic", member_id=member.member_id,
                client_id=member.client_id, host=member.client_host.removeprefix("/"),
                instance_id=member.instance_id,
                topics=() if subscription is None else tuple(sorted(subscription.topics)),
                protocols=tuple(name for name, _ in member.protocols),
                session_timeout_ms=member.session_timeout_ms, rejoined=replaces is not None,
            )
        )  # fmt: skip
        self._triggers[group_id] = trigger

    def departed(
        self,
        now: int,
        group: ClassicGroupModel,
        member: ClassicMember,
        departure: Leaving,
        reason: str | None = None,
    ) -> None:
        """A member is out."""
        tell = partial(
            self._tell_left, now, group.group_id, member.member_id, member.client_id, member.instance_id,
            departure, reason,
        )  # fmt: skip
        self._note(group, tell)

    def _tell_left(
        self,
        now: int,
        group_id: str,
        member_id: str,
        client_id: str,
        instance_id: str | None,
        departure: Leaving,
        reason: str | None,
    ) -> None:
        self._report(
            MemberLeft(
                **self._rebalances.place(group_id, now), member_id=member_id, client_id=client_id,
                instance_id=instance_id, how=departure, reason=reason,
            )
        )  # fmt: skip
        self._triggers[group_id] = _OF_LEAVING.get(departure, "member_removed"), member_id, reason or ""

    def rejoined(self, group: ClassicGroupModel, member: ClassicMember, before: Protocols) -> None:
        """A member joins again. before: the protocols that it had until now."""
        leads = group.is_leader(member.member_id)
        after = member.protocols

        def tell() -> None:
            self._triggers[group.group_id] = _cause_of_rejoin(before, after, leads), member.member_id, ""

        self._note(group, tell)

    # --- rebalances ---

    def began(self, now: int, group: ClassicGroupModel) -> None:
        """Members shall join again; what was noted last is why."""
        self._note(group, partial(self._tell_began, now, group.group_id, group.generation))

    def _tell_began(self, now: int, group_id: str, generation: int) -> None:
        self._rebalances.end(group_id, now, "superseded")
        cause, member_id, detail = self._triggers.pop(group_id, _UNKNOWN)
        self._rebalances.begin(group_id, now, "classic", cause, member_id, generation, detail)

    def formed(self, now: int, group: ClassicGroupModel) -> None:
        """All have joined: there is a new generation, which may be without members."""
        facts = group.generation, group.protocol, group.leader, tuple(group.members)
        self._note(group, partial(self._tell_formed, now, group.group_id, *facts))

    def _tell_formed(
        self,
        now: int,
        group_id: str,
        generation: int,
        protocol: str | None,
        leader: str | None,
        members: tuple[str, ...],
    ) -> None:
        self._triggers.pop(group_id, None)
        rebalance = self._rebalances.get(group_id)
        if rebalance is None:  # it began before the shard had the group
            rebalance = self._rebalances.begin(group_id, now, "classic", *_UNKNOWN[:2], None)
        rebalance.generation, rebalance.joined, rebalance.members = generation, now, members
        rebalance.protocol, rebalance.leader = protocol, leader if members else None
        if not members:
            self._rebalances.end(group_id, now, "empty")

    def steady(self, now: int, group: ClassicGroupModel) -> None:
        """Members have their assignments."""
        assignments = {member.member_id: member.assignment for member in group.members.values()}
        consumer = group.is_consumer

        def tell() -> None:
            assigned = _read(assignments) if consumer else None
            self._rebalances.end(group.group_id, now, "steady", assigned)

        self._note(group, tell)

    def converted(
        self,
        now: int,
        group: ClassicGroupModel,
        member_id: str | None,
        leavers: Sequence[ConsumerMember] = (),
        departure: Leaving = "left",
    ) -> None:
        """A consumer group goes on as this one. leavers: who went with that."""

        def tell() -> None:
            group_id = group.group_id
            self._rebalances.end(group_id, now, "superseded")
            self._report(
                GroupConverted(
                    **self._rebalances.place(group_id, now), kind_before="consumer", kind="classic",
                    member_id=member_id,
                )
            )  # fmt: skip
            for leaver in leavers:
                identity = leaver.member_id, leaver.client_id, leaver.instance_id
                self._tell_left(now, group_id, *identity, departure, None)

        self._note(group, tell)


def _subscription(protocols: Protocols) -> Subscription | None:
    try:
        return read_subscription(protocols[0][1]) if protocols else None
    except (MalformedProtocol, OperationRefused):
        return None


def _cause_of_rejoin(before: Protocols, after: Protocols, leads: bool) -> Cause:
    old, new = _subscription(before), _subscription(after)
    if old is not None and new is not None:
        if sorted(old.topics) != sorted(new.topics):
            return "subscription_changed"
        if _partitions(old.owned) - _partitions(new.owned):
            return "partitions_revoked"
    return "leader_rejoined" if leads else "member_rejoined"


def _partitions(topics: tuple[tuple[str, list[int]], ...]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, number) for topic, numbers in topics for number in numbers)


def _read(assignments: dict[str, bytes]) -> Assigned:
    members = {}
    for member_id, data in assignments.items():
        try:
            members[member_id] = _partitions(read_named_assignment(data)) if data else frozenset()
        except (MalformedProtocol, OperationRefused):
            continue
    return members


# --- rebalances ---


NS = 1_000_000
"""Nanoseconds in a millisecond."""

SOURCE = "coordinator"

Assigned = Mapping[str, frozenset[TopicPartition]]
"""What each member has."""


@dataclass(slots=True)
class UnderWay:
    """One rebalance. began: in milliseconds; generation: the new one, once it is known; joined: when it
    was."""

    kind: Kind
    cause: Cause
    member_id: str | None
    detail: str
    began: int
    generation_before: int | None
    generation: int | None = None
    joined: int | None = None
    protocol: str | None = None
    leader: str | None = None
    members: tuple[str, ...] = ()


class Rebalances:
    """Of all groups. report: takes the events; number: gives what they say of their place."""

    def __init__(self, report: Callable[[GroupEvent], None], number: Callable[[], int]) -> None:
        self._report = report
        self._number = number
        self._of: dict[str, UnderWay] = {}
        self._settled: dict[str, Assigned] = {}

    def get(self, group_id: str) -> UnderWay | None:
        return self._of.get(group_id)

    def place(self, group_id: str, now: int) -> dict[str, Any]:
        """The fields of all events that say where they are from."""
        return {"group": group_id, "time_ns": now * NS, "source": SOURCE, "number": self._number()}

    def begin(
        self,
        group_id: str,
        now: int,
        kind: Kind,
        cause: Cause,
        member_id: str | None,
        generation: int | None,
        detail: str = "",
    ) -> UnderWay:
        """A rebalance begins. generation: the one before it."""
        rebalance = self._of[group_id] = UnderWay(kind, cause, member_id, detail, now, generation)
        self._report(
            RebalanceBegan(
                **self.place(group_id, now), kind=kind, cause=cause, member_id=member_id, inferred=False,
                detail=detail,
            )
        )  # fmt: skip
        return rebalance

    def end(self, group_id: str, now: int, outcome: Outcome, assigned: Assigned | None = None) -> None:
        """The rebalance under way is over, if there is one. assigned: what members have now, if they do."""
        rebalance = self._of.pop(group_id, None)
        if rebalance is None:
            return
        after = assigned or {}
        moved: tuple[Moved, ...] = ()
        if outcome in ("steady", "empty"):
            moved = tuple(partitions_moved(self._settled.get(group_id, {}), after))
            self.settle(group_id, after)
        self._report(
            RebalanceEnded(
                **self.place(group_id, now), kind=rebalance.kind, outcome=outcome, cause=rebalance.cause,
                member_id=rebalance.member_id, inferred=False, detail=rebalance.detail,
                began_ns=rebalance.began * NS,
                joined_ns=None if rebalance.joined is None else rebalance.joined * NS, ended_ns=now * NS,
                length_ns=(now - rebalance.began) * NS, generation_before=rebalance.generation_before,
                generation=rebalance.generation, protocol=rebalance.protocol, leader=rebalance.leader,
                members=rebalance.members, last_to_join=None, moved=moved,
                assignments=tuple(Assignment(name, tuple(sorted(after[name]))) for name in after),
            )
        )  # fmt: skip

    def settle(self, group_id: str, assigned: Assigned) -> None:
        """The group is steady with this."""
        if assigned:
            self._settled[group_id] = assigned
        else:
            self._settled.pop(group_id, None)

    def finish(self, now: int) -> None:
        """The coordinator gives up its groups."""
        for group_id in list(self._of):
            self.end(group_id, now, "unfinished")
