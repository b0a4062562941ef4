"""A coordinator's log to its groups' timelines: the same events as from the wire, as far as a log knows.

Strategy: a classic group's record holds the whole group, so two of them tell what changed between; a group of
the coordinator's own making has a record a fact, and is steady when all members are in its epoch. Rules: a
log knows no causes: they are inferred from who came and went; nor when a classic rebalance began, so that it
has no length. Commits of a transaction are reported when it is decided. A record costs no look at all members
of its group, unless it holds them or ends a rebalance.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from coordwire.codec import Message
from coordwire.embedded import open_embedded
from coordwire.timeline.consumer_data import assigned_partitions, id_text, owned, subscribe
from coordwire.timeline.events import (
    GroupConverted,
    GroupDeleted,
    GroupEvent,
    Kind,
    Leaving,
    OffsetCommitted,
    TransactionStep,
)
from coordwire.timeline.evidence import Seen, remember
from coordwire.timeline.from_log.compaction import decide
from coordwire.timeline.from_log.coordinator_log import CoordinatorRecord, LogItem, Marker
from coordwire.timeline.group import Group
from coordwire.timeline.members import MOST_MEMBERS, Member, Owned
from coordwire.timeline.rebalance import Trigger
from coordwire.timeline.rebalance_cause import between_records

MOST_GROUPS = 100_000
MOST_TOPICS = 100_000
MS = 1_000_000
STABLE: dict[Kind, int] = {"consumer": 0, "share": 0, "streams": 1}
"""The state of a member that has all that it shall have and nothing to give up."""

_KINDS: dict[str, Kind] = {"Consumer": "consumer", "Share": "share", "Streams": "streams"}


def log_timeline(
    items: Iterable[LogItem], names: Mapping[str, str] = MappingProxyType({})
) -> Iterator[GroupEvent]:
    """The events of groups in the records of `__consumer_offsets`. Those of a partition come in their order.

    names: of topics by their ids, which groups of the newer protocols go by; see `topic_names`.
    """
    story = _Story(names)
    for item in decide(items):
        if isinstance(item, CoordinatorRecord) and item.refusal is None and isinstance(item.key, Message):
            yield from story.record(item)
        elif isinstance(item, Marker) and item.decided:
            yield from _decided(item)
    yield from story.finish()


def topic_names(items: Iterable[LogItem]) -> dict[str, str]:
    """Names of topics by their ids as Kafka prints them, as `__cluster_metadata` has them."""
    names: OrderedDict[str, str] = OrderedDict()
    for item in items:
        if isinstance(item, CoordinatorRecord) and item.kind == "Topic" and isinstance(item.value, Message):
            value: Any = item.value
            remember(names, id_text(value.topic_id), value.name, MOST_TOPICS)
    return names


def _decided(marker: Marker) -> Iterator[GroupEvent]:
    place = _place(marker)
    for group in dict.fromkeys(record.group or "" for record in marker.decided):
        yield TransactionStep(
            group=group, **place._asdict(), transactional_id="", step=marker.kind,
            producer_id=marker.producer_id, producer_epoch=marker.producer_epoch, error_code=0,
        )  # fmt: skip
    if marker.kind == "commit":
        for record in marker.decided:
            yield from _commit(record, place)


def _commit(record: CoordinatorRecord, place: Seen) -> Iterator[GroupEvent]:
    value: Any = record.value
    if record.group is None or record.topic is None or record.partition is None or isinstance(value, bytes):
        return
    yield OffsetCommitted(
        group=record.group, **place._asdict(), member_id=None, client_id=None, generation=-1,
        topic=record.topic, partition=record.partition, offset=-1 if value is None else value.offset,
        leader_epoch=getattr(value, "leader_epoch", -1), metadata=getattr(value, "metadata", None),
        removed=value is None,
    )  # fmt: skip


class _Story:
    """The groups of some partitions of the log."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._groups: OrderedDict[tuple[str, Kind], _LogGroup] = OrderedDict()
        self._names = names
        self._last = Seen(None, "", 0)
        self._leaving: _LogGroup | None = None  # the group that the last write took members out of
        self._write = -1  # when that was, which all of its records say
        self._cleared: tuple[str | None, int] = "", -1  # whose offset a tombstone took last, and that write
        self._ended: tuple[str, int, Seen] | None = None  # whose tombstone ended such a write

    def record(self, record: CoordinatorRecord) -> Iterator[GroupEvent]:
        kind, place = record.kind or "", _place(record)
        self._last = place
        if self._ended is not None and self._ended[:2] != (record.group, record.timestamp_ms):
            yield from self._delete()
        if kind in ("OffsetCommit", "LegacyOffsetCommit"):
            if record.value is None:
                self._cleared = record.group, record.timestamp_ms
            if not record.transactional:
                yield from _commit(record, place)
            return
        if record.log != "consumer_offsets" or record.group is None or isinstance(record.value, bytes):
            return
        family, _, fact = kind.partition("Group")
        if kind != "GroupMetadata" and family not in _KINDS:
            return
        if fact == "Metadata":
            cleared = self._cleared == (record.group, record.timestamp_ms) or family in ("Share", "Streams")
            ends = record.value is None and cleared
            self._ended = (record.group, record.timestamp_ms, place) if ends else None  # else it converts
        group = self._group(record.group, _KINDS.get(family, "classic"))
        if self._leaving is not None and (self._leaving is not group or self._write != record.timestamp_ms):
            yield from self._settle()
        if kind == "GroupMetadata":
            _classic(group, record.value, place)
        else:
            _modern(group, fact, record, place, self._names)
        if group.leaving:
            self._leaving, self._write = group, record.timestamp_ms
        yield from group.drain()
        if record.value is None and fact == "Metadata" and not group.leaving:
            self._forget(group)

    def _delete(self) -> Iterator[GroupEvent]:
        """A write took a group's offsets, and ended with its tombstone: what converts keeps its offsets."""
        yield from self._settle()
        if self._ended is not None:
            group_id, _, place = self._ended
            yield GroupDeleted(group=group_id, **place._asdict())
            self._ended = None

    def _settle(self) -> Iterator[GroupEvent]:
        """Who was taken out of a group by the last write, and not put in again by it, has left."""
        group, self._leaving = self._leaving, None
        if group is not None:
            group.take_out()
            yield from group.drain()
            if group.kind == "classic":
                self._forget(group)

    def _forget(self, group: _LogGroup) -> None:
        """A tombstone of all of a group, which is gone if no member is left."""
        if not group.members and group.rebalance is None:
            self._groups.pop((group.group, _family(group.kind)), None)

    def finish(self) -> Iterator[GroupEvent]:
        """The events that only the end of the log shows."""
        yield from self._delete()
        for group in self._groups.values():
            if group.rebalance is not None:
                group.rebalance.generation = group.generation
                if group.kind != "classic":
                    group.rebalance.members = tuple(group.members)
            group.end("unfinished", self._last)
            yield from group.drain()

    def _group(self, group_id: str, kind: Kind) -> _LogGroup:
        key = group_id, _family(kind)
        group = self._groups.get(key)
        if group is None:
            group = _LogGroup(group_id, kind, lambda topic: self._names.get(topic, topic))
            remember(self._groups, key, group, MOST_GROUPS)
        return group


def _family(kind: Kind) -> Kind:
    """The kind that a group is kept by: a classic and a consumer group are one, which converts."""
    return "classic" if kind == "consumer" else kind


class _LogGroup(Group):
    """A group that knows at any time whether all of its members are ready. leaving: members that tombstones
    took out, and where: a conversion puts them in again with its next records."""

    def __init__(self, group: str, kind: Kind, name_of: Callable[[str], str] = str) -> None:
        super().__init__(group, kind, name_of)
        self.leaving: dict[str, Seen] = {}
        self.before_renewal: Trigger | None = None  # what a record showed that kept the generation
        self._ready: dict[int | None, set[str]] = {}  # members that have all they shall, by generation

    def add(self, member: Member, place: Seen, *, rejoined: bool = False, was_in: bool = False) -> None:
        if len(self.members) >= MOST_MEMBERS and member.member_id not in self.members:
            self.drop(next(iter(self.members)))  # the oldest will be forgotten
        self.renew(member)
        super().add(member, place, rejoined=rejoined, was_in=was_in)

    def renew(self, member: Member) -> None:
        """A member as it is now; its place among the members stays."""
        known = self.members.get(member.member_id)
        if known is not None:
            self.moves(known)
            self.members[member.member_id] = member
            self.assign(member, member.assigned)
        self.moved(member)

    def take_out(self) -> None:
        """Members that tombstones took out have left."""
        leaving, self.leaving = self.leaving, {}
        for name, place in leaving.items():
            self.remove(name, place, "left", inferred=True)
            if self.kind != "classic":
                self.begin(Trigger("member_left", name, inferred=True), place)

    def converts(self, kind: Kind, place: Seen) -> None:
        """A record is of a group of this kind."""
        before, self.kind = self.kind, kind
        if before != kind and self.members:
            self.report(GroupConverted, place, kind_before=before, kind=kind, member_id=None)

    def moved(self, member: Member) -> None:
        """A member has other partitions, or is in another generation."""
        if member.owned is not None:
            self._ready.setdefault(member.generation, set()).add(member.member_id)

    def moves(self, member: Member) -> None:
        """A member will have other partitions."""
        ready = self._ready.get(member.generation)
        if ready is not None:
            ready.discard(member.member_id)
            if not ready:
                del self._ready[member.generation]

    def drop(self, member_id: str) -> None:
        """Take a member out without an event."""
        member = self.members.get(member_id)
        if member is not None:
            self.moves(member)
            self.members.drop(member_id)

    def remove(
        self,
        member_id: str,
        place: Seen,
        departure: Leaving,
        *,
        reason: str | None = None,
        inferred: bool = False,
    ) -> None:
        member = self.members.get(member_id)
        super().remove(member_id, place, departure, reason=reason, inferred=inferred)
        if member is not None:
            self.moves(member)

    @property
    def is_ready(self) -> bool:
        """Whether each member has what it shall have in this generation."""
        return len(self._ready.get(self.generation, ())) == len(self.members)


# --- classic groups: one record holds it all ---


def _classic(group: _LogGroup, value: Any, place: Seen) -> None:
    if value is None:
        if group.kind == "classic" and not group.leaving:
            group.leaving = dict.fromkeys(group.members, place)
        return
    group.converts("classic", place)
    group.leaving = {}
    members = {member.member_id: member for member in _members(value)}
    trigger = between_records(group, members)
    renewed = value.generation != group.generation and (members or group.members)
    for member_id in [member_id for member_id in group.members if member_id not in members]:
        group.remove(member_id, place, "left", inferred=True)
    if not renewed:
        group.before_renewal = trigger if trigger.cause == "member_left" else None
    elif trigger.cause == "unknown" and group.before_renewal is not None:
        trigger = group.before_renewal  # whose leaving converted the group
    if renewed:
        # A log doesn't say when it began.
        group.begin(trigger, place).began = Seen(None, place.source, place.number)
    for name, member in members.items():
        known = group.members.get(name)
        if known is None:
            group.add(member, place, rejoined=group.members.of_instance(member.instance_id) is not None)
        else:
            group.renew(member)
    group.generation = value.generation
    rebalance = group.rebalance
    if rebalance is not None:
        rebalance.generation, rebalance.protocol, rebalance.leader = (
            value.generation, value.protocol, value.leader,
        )  # fmt: skip
        rebalance.members = tuple(members)
        group.end("steady" if members else "empty", place)


def _members(value: Any) -> Iterator[Member]:
    opened = open_embedded(value)
    for index, entry in enumerate(value.members):
        member = Member(
            entry.member_id, entry.client_id, entry.client_host, entry.group_instance_id,
            session_timeout_ms=entry.session_timeout, generation=value.generation,
        )  # fmt: skip
        subscribe(member, opened.get(f"members[{index}].subscription"))
        member.assigned = assigned_partitions(opened.get(f"members[{index}].assignment"))
        yield member


# --- groups of the coordinator's own making: a record a fact ---


def _modern(
    group: _LogGroup, fact: str, record: CoordinatorRecord, place: Seen, names: Mapping[str, str]
) -> None:
    value: Any = record.value
    name = record.member_id or ""
    if value is not None:
        group.converts(_KINDS[(record.kind or "").partition("Group")[0]], place)
    match fact:
        case "MemberMetadata" if value is None:
            if name in group.members:
                group.leaving[name] = place
        case "MemberMetadata":
            group.leaving.pop(name, None)
            _described(group, name, value, place)
        case "Metadata" if value is not None:
            group.take_out()
            before, group.generation = group.generation, value.epoch
            if group.members and value.epoch != before:
                group.begin(
                    Trigger("assignment_changed", inferred=True, detail=f"epoch {value.epoch}"), place
                )
        case "CurrentMemberAssignment" if value is not None and name in group.members:
            member = group.members[name]
            group.moves(member)
            member.generation = value.member_epoch
            group.assign(member, _assigned(value, names))
            member.owned = member.assigned if value.state == STABLE[group.kind] else None
            group.moved(member)
    if fact in ("CurrentMemberAssignment", "Metadata"):
        _settle(group, place)


def _described(group: _LogGroup, name: str, value: Any, place: Seen) -> None:
    topics = tuple(sorted(getattr(value, "subscribed_topic_names", ())))
    if regex := getattr(value, "subscribed_topic_regex", None):
        topics = (*topics, f"/{regex}/")
    old = group.members.get(name)
    if old is not None:
        if old.topics != topics:
            old.topics = topics
            group.begin(Trigger("subscription_changed", name, inferred=True), place)
        return
    instance_id = getattr(value, "instance_id", None)
    static = group.members.of_instance(instance_id)
    member = Member(name, value.client_id, value.client_host, instance_id, topics)
    cause = Trigger("new_member" if group.members else "first_member", name, inferred=True)
    if static is not None:
        cause = Trigger("static_member_returned", name, inferred=True)
        group.drop(static.member_id)
    group.begin(cause, place).join(name, place.time_ns)
    group.add(member, place, rejoined=static is not None)


def _settle(group: _LogGroup, place: Seen) -> None:
    rebalance = group.rebalance
    if rebalance is None:
        return
    rebalance.generation = group.generation
    if group.is_ready:
        rebalance.members = tuple(group.members)
        group.end("steady" if group.members else "empty", place)


def _assigned(value: Any, names: Mapping[str, str]) -> Owned:
    tasks = getattr(value, "active_tasks", None)
    parts = (
        [
            (names.get(id_text(part.topic_id), id_text(part.topic_id)), part.partitions)
            for part in value.assigned_partitions
        ]
        if tasks is None
        else [(part.subtopology_id, part.partitions) for part in tasks]
    )
    return owned(parts)


def _place(item: CoordinatorRecord | Marker) -> Seen:
    time_ns = None if item.timestamp_ms < 0 else item.timestamp_ms * MS
    return Seen(time_ns, item.file, item.log_offset)
