"""Trigger a group rebalances: inferred from what its members and its coordinator were seen to do.

Each function gives the cause that one sign speaks for. Rules, of each the first that fits:

- a classic member joins (`of_join`): it is a static member that is back under a new id; the group was empty;
  it is new; it subscribes to other topics; it has given up partitions (KIP-429); it was asked to by a
  coordinator that moved; it is the leader, whose topics' metadata may have changed; it joins again. A
  follower that offers what it did when it joined is answered at once by a steady group: another is the cause
  (`of_joins`).
- a member joins a group whose coordinator assigns (`of_first_heartbeat`): it was in, and is again; it is a
  static member that is back; the group was empty; it is new.
- members are asked to join again (`of_rejoin_demand`): a JoinGroup of another member waits; a member was
  silent for longer than its session timeout; else the cause is unknown.
- a group's epoch rises (`of_epoch`): nothing that was seen explains it, so the coordinator did it: topics
  were created or grew, or a pattern was resolved. That a silent member's session ended is `member_death`'s.
- a coordinator's log has two records of a classic group (`between_records`): the members that came and went,
  then those that changed.

A cause that a sign shows is stated; what merely fits is `inferred`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from coordwire.timeline.consumer_data import changed
from coordwire.timeline.evidence import Seen, Silence
from coordwire.timeline.group import Group
from coordwire.timeline.members import Member
from coordwire.timeline.rebalance import Rebalance, Trigger

FIRST_GENERATION = 1

METADATA = "its metadata may have changed"
"""Why a leader joins again that gives no reason."""

METADATA_AGE_NS = 300_000_000_000
"""A client asks for metadata again after so long at the latest, by its default."""

MOST_LOOKED_AT = 100
"""So many joins that wait are looked at for one that would be the cause of a rebalance."""


def of_join(
    group: Group, member: Member, place: Seen, *, moved_coordinator: bool, known_from_start: bool
) -> Trigger:
    """A JoinGroup. known_from_start: whether the group is known to be empty, if it has no members."""
    trigger = _of_join(group, member, moved_coordinator=moved_coordinator, known_from_start=known_from_start)
    if trigger.detail == METADATA and member.topics:  # of others no topic is known to concern them
        early_ns = (place.time_ns or 0) - METADATA_AGE_NS
        change = group.topic_changes.since(early_ns, place, set(member.topics))
        trigger = trigger._replace(detail=change or METADATA)
    if member.member_id:
        return trigger
    return trigger._replace(member_id=None, client_id=member.client_id, asker=member)


def _of_join(group: Group, member: Member, *, moved_coordinator: bool, known_from_start: bool) -> Trigger:
    old = group.members.get(member.member_id)
    member_id = member.member_id
    static = group.members.of_instance(member.instance_id)
    if old is None and static is not None:
        return Trigger("static_member_returned", member_id, detail=f"as {member.instance_id}")
    if old is None and not group.members:
        detail = "the group was empty" if known_from_start else ""
        return Trigger("first_member", member_id, inferred=not known_from_start, detail=detail)
    if old is None:
        return Trigger("new_member", member_id)
    if old.protocols and member.topics != old.topics:  # else its subscription wasn't seen
        return Trigger("subscription_changed", member_id, detail=changed(old.topics, member.topics))
    if old.owned and not old.owned <= (member.owned or frozenset()):
        return Trigger("partitions_revoked", member_id, detail="it owns less than when it joined before")
    if moved_coordinator:
        return Trigger(
            "coordinator_moved", member_id, inferred=True, detail="it joins again after NOT_COORDINATOR"
        )
    if member_id == group.leader:
        return Trigger("leader_rejoined", member_id, detail=member.reason or METADATA)
    knows = group.leader is not None
    is_unchanged = knows and old.offers is not None and old.offers == member.offers
    return Trigger(
        "member_rejoined", member_id, inferred=not knows, detail=member.reason or "", follows=is_unchanged
    )


def of_joins(triggers: Iterable[Trigger]) -> tuple[int, Trigger]:
    """Which of the JoinGroups that wait is the cause, counted from 0, the first first. If each is a
    follower's that changes nothing, the cause is something else."""
    for number, trigger in enumerate(triggers):
        if not trigger.follows:
            return number, trigger
    detail = "followers that change nothing join again, and nothing seen that would cause it"
    return 0, Trigger("unknown", inferred=True, detail=detail)


def of_generation(rebalance: Rebalance) -> Trigger:
    """The cause, once the generation and its members are known: whether the one who came first was the
    first."""
    trigger = rebalance.trigger
    if trigger.cause == "first_member" and trigger.inferred and rebalance.members:
        if rebalance.generation is not None and rebalance.generation <= FIRST_GENERATION:
            detail = f"generation {rebalance.generation}"
            return _led(rebalance, trigger._replace(inferred=False, detail=detail))
        if rebalance.unjoined:
            detail = "others were in, whose joining isn't in the input"
            return trigger._replace(cause="new_member", detail=detail)
    if trigger.cause == "member_rejoined" and trigger.inferred and trigger.member_id == rebalance.leader:
        detail = trigger.detail or METADATA
        return Trigger("leader_rejoined", trigger.member_id, inferred=True, detail=detail)
    if trigger.cause == "first_member" and not trigger.inferred:
        return _led(rebalance, trigger)
    return trigger


def _led(rebalance: Rebalance, trigger: Trigger) -> Trigger:
    """The first member of a group is its leader, whichever request was seen first: if the one that seemed to
    be the first is in the generation, too."""
    leader = rebalance.leader
    is_in = trigger.member_id in (rebalance.named or rebalance.joined)
    if not leader or not (trigger.member_id is None or is_in):
        return trigger
    return trigger._replace(member_id=leader, client_id=None, asker=None)


def of_rejoin_demand(group: Group, waiting: Iterable[Member], dead: Member | None) -> Trigger:
    """REBALANCE_IN_PROGRESS, and no rebalance was known. dead: whose session is over."""
    demand = "REBALANCE_IN_PROGRESS"
    for waiting_member in islice(waiting, MOST_LOOKED_AT):
        if waiting_member.member_id not in group.members:
            detail = f"{demand} while its JoinGroup waits"
            if waiting_member.member_id:
                return Trigger("new_member", waiting_member.member_id, True, detail)
            return Trigger("new_member", None, True, detail, waiting_member.client_id, waiting_member)
    if dead is not None:
        detail = f"{demand}; it was silent for longer than its session timeout"
        return Trigger("session_timeout", dead.member_id, inferred=True, detail=detail)
    return Trigger("unknown", inferred=True, detail=f"{demand}, and nothing seen that would cause it")


def of_first_heartbeat(group: Group, member: Member, old: Member | None, static: Member | None) -> Trigger:
    """A heartbeat that joins. old: the member as it was; static: whom it replaces."""
    name = member.member_id
    if old is not None:
        return Trigger("member_rejoined", name)
    if static is not None:
        return Trigger("static_member_returned", name, detail=f"as {member.instance_id}")
    if not group.members:
        return Trigger("first_member", name, inferred=group.generation is None)
    return Trigger("new_member", name)


def of_epoch(before: int, after: int, change: str = "") -> Trigger:
    """The epoch of a group rose, and nothing that a member did explains it. change: of a topic, shortly
    before, in words."""
    detail = f"the group's epoch rose from {before} to {after}, and no member caused it"
    detail = f"{change}; {detail}" if change else detail
    return Trigger("assignment_changed", inferred=True, detail=detail)


def of_unseen_epoch(before: int, after: int) -> Trigger:
    """As `of_epoch`, of a group that may have members which no frame shows."""
    detail = f"the group's epoch rose from {before} to {after}, and no member that was seen caused it"
    return Trigger("unknown", inferred=True, detail=f"{detail}; others may have been in before the capture")


def of_death(silence: Silence, sign: str) -> Trigger:
    """A session ended, after that silence at least. sign: what speaks for it."""
    detail = f"silent for {silence.length_ns / 1e9:.3g} s"
    detail = f"{sign}; {detail}" if sign else detail
    return Trigger("session_timeout", silence.of.member_id, inferred=True, detail=detail)


def between_records(group: Group, members: dict[str, Member]) -> Trigger:
    """What the difference between two records of a classic group speaks for."""
    before = group.members
    for name, member in members.items():
        if name not in before:
            if group.members.of_instance(member.instance_id) is not None:
                return Trigger("static_member_returned", name, inferred=True)
            return Trigger("new_member" if before else "first_member", name, inferred=True)
    for name in before:
        if name not in members:
            return Trigger("member_left", name, inferred=True)
    for name, member in members.items():
        if member.topics != before[name].topics:
            return Trigger("subscription_changed", name, inferred=True)
        if (before[name].owned or frozenset()) - (member.owned or frozenset()):
            return Trigger("partitions_revoked", name, inferred=True)
    return Trigger("unknown", inferred=True, detail="the same members, as far as the log says")
