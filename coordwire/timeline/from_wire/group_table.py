"""All groups in some captures, each under the protocol that it speaks at the time.

Rules: a classic group and a consumer group of the same id are one, which converts (`migrating_group`); a
share or streams group is one of its own. A coordinator has one group of an id: one that has another kind than
the one before, which has no members left, shows that that was deleted; as DeleteGroups does. A classic
request about a consumer group is one of its classic members', unless it has no members: then JoinGroup makes
it a classic group. A heartbeat that the coordinator refuses converts nothing. Beyond a limit groups that were
deleted are forgotten first, then the oldest.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from coordwire.timeline.consumer_data import id_text
from coordwire.timeline.events import GroupDeleted, GroupEvent, Kind
from coordwire.timeline.evidence import Seen, remember
from coordwire.timeline.from_wire.classic_group import ClassicGroup
from coordwire.timeline.from_wire.connection_ends import ConnectionEnds
from coordwire.timeline.from_wire.member_death import KnownTimeouts
from coordwire.timeline.from_wire.migrating_group import (
    ConsumerGroup,
    to_classic,
    to_classic_unseen,
    to_consumer,
)
from coordwire.timeline.from_wire.modern_group import ModernGroup
from coordwire.timeline.group import UNAVAILABLE, Holes
from coordwire.timeline.topic_changes import TopicChanges

__all__ = ["AnyGroup", "GroupTable", "TopicsById", "kept_as"]

MOST_GROUPS = 10_000
MOST_TOPICS = 100_000

MOST_CONCERNED, MOST_ASKED, MOST_TOPICS_OF_ONE = 1_000, 20, 1_000
"""A topic's change is reported of so many groups, by so many members and their partitions each; by so many
topics of a member."""

_FAMILIES: tuple[Kind, ...] = ("classic", "share", "streams")
"""The kinds that groups are kept as."""

AnyGroup = ClassicGroup | ModernGroup
G = TypeVar("G", ClassicGroup, ConsumerGroup)


class TopicsById:
    """Topics by their ids and by their names, as far as something said both. changes: how many so far."""

    def __init__(self) -> None:
        self._names: OrderedDict[str, str] = OrderedDict()
        self._ids: OrderedDict[str, str] = OrderedDict()
        self.changes = 0

    def learn(self, message: Any) -> list[str]:
        """Metadata, or CreateTopics, answered. Gives the names under which there are other topics now."""
        anew = []
        for topic in message.topics:
            if topic.name and topic.topic_id.int:
                topic_id = id_text(topic.topic_id)
                if self._names.get(topic_id) == topic.name and self._ids.get(topic.name) == topic_id:
                    continue
                self.changes += 1
                if topic.name in self._ids:
                    anew.append(topic.name)
                remember(self._names, topic_id, topic.name, MOST_TOPICS)
                remember(self._ids, topic.name, topic_id, MOST_TOPICS)
        return anew

    def delete(self, name: str) -> None:
        """The topic of this name was deleted: the one that comes after it has another id."""
        if self._ids.get(name):
            self._ids[name] = ""
            self.changes += 1

    def is_known(self, name: str) -> bool:
        """Whether the id of the topic of a name is known."""
        return bool(self._ids.get(name))

    def is_past(self, topic_id: str) -> bool:
        """Whether the topic of an id was deleted, or another one has its name now."""
        name = self._names.get(topic_id)
        return name is not None and self._ids.get(name) != topic_id

    def name_of(self, topic: str) -> str:
        """A topic's name by its id; the id where the name isn't known."""
        return self._names.get(topic, topic)

    def id_of(self, topic: str) -> str:
        """A topic's id by its name; the name where the id isn't known."""
        return self._ids.get(topic) or topic


def kept_as(kind: Kind) -> Kind:
    """The kind that a group of a kind is kept as: a classic group and a consumer group are one."""
    return "classic" if kind == "consumer" else kind


class GroupTable:
    """The groups by their ids. names: of topics; known: of session timeouts; ends: of members' connections,
    where these are known."""

    def __init__(self, names: TopicsById, known: KnownTimeouts, ends: ConnectionEnds | None = None) -> None:
        self._names, self._known = names, known
        self._ends = ends
        self.holes = Holes() if ends is None else ends.holes
        self.topic_changes = TopicChanges()
        self.every: OrderedDict[tuple[str, Kind], AnyGroup] = OrderedDict()
        self._deleted: OrderedDict[str, None] = OrderedDict()  # ids; some may be those of new groups by now
        self.at: Callable[[tuple[str, Kind]], AnyGroup | None] = self.every.get
        """The group of an id that is kept as one of a kind (`kept_as`)."""

    def __iter__(self) -> Iterator[AnyGroup]:
        return iter(self.every.values())

    def of_id(self, group_id: str) -> Iterator[AnyGroup]:
        """The groups of this id, of all kinds."""
        groups = (self.every.get((group_id, family)) for family in _FAMILIES)
        return (group for group in groups if group is not None)

    def known(self, group_id: str) -> ClassicGroup | ConsumerGroup | None:
        """The classic or consumer group of this id, if one was seen."""
        group: ClassicGroup | ConsumerGroup | None = self.every.get((group_id, "classic"))  # type: ignore[assignment]
        return group

    def of_commit(self, group_id: str, member_id: str) -> AnyGroup | None:
        """The group that a commit is about: a streams group that its member is or was in, else as `known`."""
        streams = self.every.get((group_id, "streams"))
        if streams is not None and (member_id in streams.members or streams.has_gone(member_id)):
            return streams
        return self.known(group_id)

    def deleted(self, group_id: str, client_id: str | None, place: Seen, request_place: Seen) -> AnyGroup:
        """DeleteGroups was answered: there is no group of this id, until a new one begins; the one that is,
        if a new one began before the answer."""
        for family in _FAMILIES:
            group = self.every.get((group_id, family))
            newest = None if group is None else next(reversed(group.members.values()), None)
            seen_ns = 0 if newest is None else newest.last_seen_ns or 0
            if group is not None and seen_ns > (request_place.time_ns or 0):
                group.report(GroupDeleted, place.at(request_place.time_ns), client_id=client_id)
                return group
        events = self._end(group_id, _FAMILIES, place)
        new = self._keep(ClassicGroup(group_id))
        self._deleted[group_id] = None
        new.begin_anew()
        new.pending = events
        new.report(GroupDeleted, place, client_id=client_id)
        return new

    def _end(self, group_id: str, families: Iterable[Kind], place: Seen) -> list[GroupEvent]:
        """The events of the end of the groups of an id that are kept as these kinds."""
        events: list[GroupEvent] = []
        for family in families:
            group = self.every.pop((group_id, family), None)
            if group is not None:
                group.report_stall()
                group.empty_by(place)
                events += group.drain()
        return events

    def _succeeds(self, group: AnyGroup, place: Seen) -> None:
        """A member is in a group: those of this id of other kinds, if they have no members by now, were
        deleted before."""
        living = kept_as(group.kind)
        for family in _FAMILIES:
            before = None if family == living else self.every.get((group.group, family))
            if before is None or before.is_unused:
                continue
            is_silent = before.unmoved_if_silent(place)  # one that was deleted didn't move
            if isinstance(before, ClassicGroup):
                before.expire_all(place)
            else:
                before.expire(place)
            if before.members and not is_silent:
                continue  # these are captures of several clusters
            events = self._end(group.group, (family,), place)
            before.report(GroupDeleted, place, inferred=True)
            group.pending[:0] = events + before.drain()

    def concerned(self, topics: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
        """The ids of groups, of the first ones, whose first members ask for some of these topics, among the
        first, or have partitions of them; and which topics."""
        for group in islice(self, MOST_CONCERNED):
            own: set[str] = set()
            for member in islice(group.members.values(), MOST_ASKED):
                own.update(topics.intersection(member.topics[:MOST_TOPICS_OF_ONE]))
                names = {partition.topic for partition in islice(member.assigned or (), MOST_ASKED)}
                own.update(topics.intersection(map(group.name_of, names)))
            if own:
                yield group.group, frozenset(own)

    def asks_offsets(self, client_id: str | None, request: Any) -> None:
        """OffsetFetch was answered, for all or for some partitions of groups."""
        for query in request.groups or [request]:
            group = self.known(query.group_id)
            if isinstance(group, ConsumerGroup) and group.causes.unseen is not None:
                group.asks_offsets(client_id, query.topics or ())

    def of_classic(self, group_id: str, joins: Seen | None = None) -> ClassicGroup | ConsumerGroup:
        """The group that a classic request is about. joins: where it was seen, if it is a JoinGroup."""
        group = self.known(group_id)
        if group is None:
            return self._keep(ClassicGroup(group_id))
        if joins is None or isinstance(group, ClassicGroup):
            return group
        group.expire(joins)
        if not group.members or group.converts is not None:
            return self._keep(to_classic(group, None, joins))
        return group

    def of_join_answer(
        self, group_id: str, message: Any, place: Seen, request_place: Seen
    ) -> ClassicGroup | ConsumerGroup:
        """The group that a JoinGroup's answer is about: of a consumer group no member is the leader."""
        group = self.of_classic(group_id)
        if not message.error_code:
            self._succeeds(group, request_place)
        if not isinstance(group, ConsumerGroup) or group.is_older(place):
            return group
        if message.leader and not message.error_code:
            return self._keep(to_classic_unseen(group, request_place))
        return group

    def of_heartbeat(
        self, kind: Kind, request: Any, message: Any, place: Seen, request_place: Seen
    ) -> ModernGroup | None:
        """The group that a heartbeat is about, if it is of this kind."""
        group = self._of_heartbeat(kind, request, message, place, request_place)
        if group is not None and request.member_epoch == 0 and not message.error_code:
            self._succeeds(group, request_place)
        return group

    def _of_heartbeat(
        self, kind: Kind, request: Any, message: Any, place: Seen, request_place: Seen
    ) -> ModernGroup | None:
        group_id = request.group_id
        if kind == "consumer":
            group = self.known(group_id)
            if isinstance(group, ConsumerGroup):
                if request.member_epoch != 0 or message.error_code:
                    return group
                group.expire_before(request, message, request_place, place)
                if group.converts is None:
                    return group
                group = self._keep(to_classic(group, None, request_place))
            if message.error_code and group is not None:
                if message.error_code in UNAVAILABLE:
                    group.refused(message.error_code, "", request_place)
                return None
            names = self._names.name_of, self._names.id_of
            if group is not None:
                group.still_in_by(request, message, request_place)
                group.let_in_waiting(request_place)
            if group is None or group.is_unused:
                return self._keep(ConsumerGroup(group_id, *names, self._known))
            new = to_consumer(group, *names, self._known, request.member_id, request_place, place)
            return self._keep(new)
        modern = self.every.get((group_id, kind))
        if modern is None:
            modern = ModernGroup(group_id, kind, self._names.name_of, self._known)
            modern.holes, modern.topic_changes = self.holes, self.topic_changes
            if self._ends is not None:
                modern.connections = self._ends
            self._put((group_id, kind), modern)
        assert isinstance(modern, ModernGroup)
        return modern

    def current(self, group: AnyGroup, member_id: str | None, place: Seen) -> AnyGroup:
        """The group as it goes on: a consumer group without a member of that protocol is a classic one."""
        if isinstance(group, ConsumerGroup) and group.is_classic:
            return self._keep(to_classic(group, member_id, place))
        return group

    def _keep(self, group: G) -> G:
        group.holes, group.topic_changes = self.holes, self.topic_changes
        if self._ends is not None:
            group.connections = self._ends
        self._put((group.group, "classic"), group)
        return group

    def _put(self, key: tuple[str, Kind], group: AnyGroup) -> None:
        """Remember a group; beyond the limit one is forgotten that was deleted, else the oldest."""
        self.every[key] = group
        if len(self.every) <= MOST_GROUPS:
            return
        while self._deleted:
            deleted_key: tuple[str, Kind] = (self._deleted.popitem(last=False)[0], "classic")
            deleted = self.every.get(deleted_key)
            if deleted is not None and deleted_key != key and _is_unused(deleted):
                del self.every[deleted_key]
                return
        self.every.popitem(last=False)


def _is_unused(group: AnyGroup) -> bool:
    """Whether nothing has been seen of a group since one of its id was deleted."""
    is_asked = isinstance(group, ClassicGroup) and len(group.waiting) > 0
    return group.is_unused and group.rebalance is None and not is_asked
