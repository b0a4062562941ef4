"""One group as a timeline knows it: its members, what they have, and the rebalance that is under way.

Strategy: what is common to all kinds of groups; `classic` and `modern` feed it. Events gather in `told` until
somebody draws them. Rules: what is remembered is bounded, the oldest is forgotten first; nothing here
looks at a message but at what consumers say to each other.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from coordwire.embedded import Embedded
from coordwire.groups.timeline_events import (
    Assignment,
    Cause,
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
)
from coordwire.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription

__all__ = ["MOST_MEMBERS", "Group", "Member", "Rebalance", "Seen", "Why", "remember"]

MOST_MEMBERS = 10_000
"""So many members of one group are remembered."""

MOST_PARTITIONS = 10_000
"""So many partitions of one member are."""

MOST_LISTED = 100
"""So many topics are listed in the text of a cause."""

FOLLOWS = ("unknown", "leader_rejoined", "member_rejoined", "partitions_revoked")
"""What members do who were told to rejoin: it says nothing of why they were."""

Owned = frozenset[TopicPartition]
K = TypeVar("K")
V = TypeVar("V")


def remember(known: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    """Set a key, and forget the oldest beyond so many. A plain dict would step over all that it has lost."""
    known[key] = value
    if len(known) > most:
        del known[next(iter(known))]


class Seen(NamedTuple):
    """When and where something was seen."""

    time_ns: int | None
    source: str
    number: int


class Why(NamedTuple):
    """A cause as far as it is known; see `coordwire.groups.timeline_events.RebalanceBegan`."""

    cause: Cause
    member_id: str | None = None
    inferred: bool = False
    detail: str = ""


@dataclass(slots=True)
class Member:
    """A member as it was last seen. generation: the one it was last in; assigned, owned: None for unknown;
    away: it left for now, and its partitions wait for it; serial: its place among all that ever were in."""

    member_id: str
    client_id: str | None = None
    host: str | None = None
    instance_id: str | None = None
    topics: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    session_timeout_ms: int | None = None
    last_seen_ns: int | None = None
    generation: int | None = None
    assigned: Owned | None = None
    owned: Owned | None = None
    away: bool = False
    serial: int = -1

    @property
    def over_ns(self) -> int | None:
        """When its session is over, if it is silent until then."""
        if self.last_seen_ns is None or not self.session_timeout_ms:
            return None
        return self.last_seen_ns + self.session_timeout_ms * 1_000_000

    def silent_at(self, time_ns: int | None) -> bool:
        """Whether its session must have been over by then."""
        over_ns = self.over_ns
        return time_ns is not None and over_ns is not None and time_ns > over_ns


@dataclass(slots=True)
class Rebalance:
    """One under way. joined: members by the time of their last request to join; synced: those with their
    assignment; unsynced: those who joined and have none, unsynced_named: of `members`; named: `members`, as a
    set; unjoined: those of them who weren't seen joining."""

    began: Seen
    why: Why
    generation_before: int | None
    generation: int | None = None
    protocol: str | None = None
    leader: str | None = None
    members: tuple[str, ...] = ()
    named: frozenset[str] = frozenset()
    joined: dict[str, int | None] = field(default_factory=dict)
    synced: set[str] = field(default_factory=set)
    unsynced: set[str] = field(default_factory=set)
    unsynced_named: set[str] = field(default_factory=set)
    unjoined: set[str] = field(default_factory=set)
    joined_ns: int | None = None

    def join(self, member_id: str, time_ns: int | None) -> None:
        self.joined[member_id] = time_ns
        self.unjoined.discard(member_id)
        if member_id not in self.synced:
            self.unsynced.add(member_id)
            if member_id in self.named:
                self.unsynced_named.add(member_id)

    def sync(self, member_id: str) -> None:
        self.synced.add(member_id)
        self.unsynced.discard(member_id)
        self.unsynced_named.discard(member_id)

    def name(self, members: tuple[str, ...]) -> None:
        """Its generation's members are known."""
        self.members, self.named = members, frozenset(members)
        self.unjoined = {one for one in members if one not in self.joined}
        self.unsynced_named = {one for one in members if one in self.unsynced}


class Members(OrderedDict[str, Member]):
    """A group's members by their ids, the oldest first; and by the names of static ones. gone: called with
    the id of each that is taken out."""

    def __init__(self, gone: Callable[[str], None] | None = None) -> None:
        super().__init__()
        self.gone = gone
        self._serial = 0
        self._named: dict[str, dict[str, Member]] = {}

    def of_instance(self, instance_id: str) -> Member | None:
        """The oldest of this name."""
        return next(iter(self._named.get(instance_id, {}).values()), None)

    def __setitem__(self, member_id: str, member: Member) -> None:
        old = self.get(member_id)
        if old is not None and old.instance_id != member.instance_id:
            self._unname(old)
        if old is None:
            member.serial = self._serial
            self._serial += 1
        else:
            member.serial = old.serial
        super().__setitem__(member_id, member)
        if member.instance_id is not None:
            self._named.setdefault(member.instance_id, {})[member_id] = member

    def __delitem__(self, member_id: str) -> None:
        self._unname(self[member_id])
        super().__delitem__(member_id)
        if self.gone is not None:
            self.gone(member_id)

    def drop(self, member_id: str) -> None:
        """Take one out, if it is there."""
        if member_id in self:
            del self[member_id]

    def _unname(self, member: Member) -> None:
        if member.instance_id is not None:
            same = self._named[member.instance_id]
            same.pop(member.member_id, None)
            if not same:
                del self._named[member.instance_id]


class Group:
    """The state of one group. name_of: a topic's name by what the group's messages call it; settled: what
    each member had when the group was last steady; told: events that nobody has drawn yet."""

    def __init__(self, group: str, kind: Kind, name_of: Callable[[str], str] = str) -> None:
        self.group = group
        self.kind = kind
        self.name_of = name_of
        self.members = Members()
        self.generation: int | None = None
        self.leader: str | None = None
        self.protocol: str | None = None
        self.rebalance: Rebalance | None = None
        self.told: list[GroupEvent] = []
        self.settled: dict[str, Owned] = {}
        self._assigned: dict[str, Member] = {}  # all that have something, and perhaps more

    def tell(self, event: type[GroupEvent], place: Seen, **fields: Any) -> None:
        self.told.append(event(group=self.group, **place._asdict(), **fields))

    def drain(self) -> Iterator[GroupEvent]:
        yield from self.told
        self.told.clear()

    # --- members ---

    def add(self, member: Member, place: Seen, *, reason: str | None = None, rejoined: bool = False) -> None:
        """A member that is in."""
        remember(self.members, member.member_id, member, MOST_MEMBERS)
        self.assign(member, member.assigned)
        self.tell(
            MemberJoined, place, kind=self.kind, member_id=member.member_id, client_id=member.client_id,
            host=member.host, instance_id=member.instance_id, topics=member.topics,
            protocols=member.protocols, session_timeout_ms=member.session_timeout_ms, reason=reason,
            rejoined=rejoined,
        )  # fmt: skip

    def remove(
        self,
        member_id: str,
        place: Seen,
        how: Leaving,
        *,
        reason: str | None = None,
        inferred: bool = False,
    ) -> None:
        """A member that is out; one that left for now is still remembered."""
        member = self.members.get(member_id)
        if how != "left_for_now":
            self.members.drop(member_id)
        elif member is not None:
            member.away = True
        client_id = member.client_id if member else None
        instance_id = member.instance_id if member else None
        self.tell(
            MemberLeft, place, member_id=member_id, client_id=client_id, instance_id=instance_id, how=how,
            reason=reason, inferred=inferred,
        )  # fmt: skip

    def assign(self, member: Member, partitions: Owned | None) -> None:
        """A member has these now."""
        member.assigned = partitions
        if partitions is None:
            self._assigned.pop(member.member_id, None)
        else:
            self._assigned[member.member_id] = member

    def unassign(self) -> None:
        """No member is known to have anything."""
        for member in self._assigned.values():
            member.assigned = None
        self._assigned = {}

    def of_instance(self, instance_id: str | None) -> Member | None:
        """The static member of this name."""
        if instance_id is None:
            return None
        return self.members.of_instance(instance_id)

    # --- rebalances ---

    def begin(self, why: Why, place: Seen) -> Rebalance:
        """The rebalance under way; a new one if there is none."""
        if self.rebalance is None:
            self.rebalance = Rebalance(place, why, self.generation)
            self.tell(
                RebalanceBegan, place, kind=self.kind, cause=why.cause, member_id=why.member_id,
                inferred=why.inferred, detail=why.detail,
            )  # fmt: skip
        elif self.rebalance.why.cause == "unknown" and why.cause not in FOLLOWS:
            self.rebalance.why = why
        return self.rebalance

    def end(self, outcome: Outcome, place: Seen) -> None:
        """Close the rebalance under way, if there is one."""
        rebalance, self.rebalance = self.rebalance, None
        if rebalance is None:
            return
        after = self.assigned()
        moved: list[Moved] = []
        if outcome in ("steady", "empty"):
            moved = [one._replace(topic=self.name_of(one.topic)) for one in _moved(self.settled, after)]
            self.settled = after
        began_ns = rebalance.began.time_ns
        members = rebalance.members or tuple(rebalance.joined) or tuple(after)
        length = None if began_ns is None or place.time_ns is None else max(place.time_ns - began_ns, 0)
        self.tell(
            RebalanceEnded, place, kind=self.kind, outcome=outcome, **rebalance.why._asdict(),
            began_ns=began_ns, joined_ns=rebalance.joined_ns, ended_ns=place.time_ns, length_ns=length,
            generation_before=rebalance.generation_before, generation=rebalance.generation,
            protocol=rebalance.protocol, leader=rebalance.leader, members=members,
            last_to_join=_last(rebalance.joined),
            assignments=tuple(Assignment(one, self._named(after[one])) for one in after), moved=tuple(moved),
        )  # fmt: skip

    def assigned(self) -> dict[str, Owned]:
        """What each member has, as far as that is known."""
        known = [one for name, one in self._assigned.items() if self.members.get(name) is one]
        self._assigned = {one.member_id: one for one in sorted(known, key=_serial)}
        return {name: one.assigned for name, one in self._assigned.items() if one.assigned is not None}

    def _named(self, owned: Owned) -> tuple[TopicPartition, ...]:
        return tuple(sorted(TopicPartition(self.name_of(topic), number) for topic, number in owned))


def _serial(member: Member) -> int:
    return member.serial


def _last(joined: dict[str, int | None]) -> str | None:
    """Who joined last; nobody waits for a member that is alone."""
    if len(joined) < 2:
        return None
    return max(joined, key=lambda one: joined[one] or 0)


def _moved(before: dict[str, Owned], after: dict[str, Owned]) -> Iterator[Moved]:
    owners, heirs = _owners(before), _owners(after)
    for one in sorted({*owners, *heirs}):
        giver, taker = owners.get(one), heirs.get(one)
        if giver != taker:
            yield Moved(one.topic, one.partition, giver, taker)


def _owners(assigned: dict[str, Owned]) -> dict[TopicPartition, str]:
    return {one: member for member, partitions in assigned.items() for one in partitions}


def owned(topics: Iterable[tuple[str, Iterable[int]]]) -> Owned:
    """The partitions of some topics, as far as they are remembered."""
    every = (TopicPartition(topic, number) for topic, numbers in topics for number in numbers)
    return frozenset(islice(every, MOST_PARTITIONS))


def partitions_of(topics: Iterable[Any]) -> Owned:
    """The partitions in a message's list of topics with `topic` and `partitions`."""
    return owned((part.topic, part.partitions) for part in topics)


def given(inside: Embedded | None) -> Owned | None:
    """The partitions of a consumer's assignment; None for what is not a consumer's."""
    message = None if inside is None else inside.message
    if not isinstance(message, ConsumerProtocolAssignment):
        return None
    return partitions_of(message.assigned_partitions)


def subscribe(member: Member, inside: Embedded | None) -> None:
    """Take over what a consumer's subscription says."""
    message = None if inside is None else inside.message
    if isinstance(message, ConsumerProtocolSubscription):
        member.topics = tuple(sorted(message.topics))
        member.owned = partitions_of(message.owned_partitions)


def changed(before: tuple[str, ...], after: tuple[str, ...]) -> str:
    """How a subscription changed, in words."""
    return f"{_listed(before)} → {_listed(after)}"


def _listed(topics: tuple[str, ...]) -> str:
    more = len(topics) - MOST_LISTED
    text = ", ".join(topics[:MOST_LISTED]) or "nothing"
    return f"{text} and {more} more" if more > 0 else text


def id_text(topic_id: UUID) -> str:
    """A topic's id as Kafka prints it."""
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
