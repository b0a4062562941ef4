"""Groups of the draft coordinators in recorded traffic, by the connections of their consumers.

Strategy: a consumer has one connection to its coordinator, and its registration, its join or its pings name
its group; what else comes over that connection, and its end, goes to the group: `started_groups` has those of
drafts 1 and 2, `joined_groups` those of draft 3. Rules: what comes over a connection on which no consumer
registered belongs to no group; the offsets that a consumer reports when it is pinged or stopped count as
committed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from coordwire.capture.entries import ConnectionEnd, FrameEntry
from coordwire.dialects.draft_registrations import DraftRegistration, partition_of
from coordwire.dialects.joined_groups import JoinedGroup, JoiningConnection
from coordwire.dialects.started_groups import StartedGroup
from coordwire.timeline.events import ErrorMet, GroupEvent, OffsetCommitted
from coordwire.timeline.evidence import Seen, remember
from coordwire.timeline.from_wire.group_frames import place_of

MOST_CONNECTIONS = 100_000
ConnectionKey = tuple[str, frozenset[str]]


class DraftGroups:
    """All groups of the drafts in some captures."""

    def __init__(self) -> None:
        self._started: OrderedDict[str, StartedGroup] = OrderedDict()
        self._joined: OrderedDict[str, JoinedGroup] = OrderedDict()
        self._registrations: OrderedDict[ConnectionKey, tuple[StartedGroup, DraftRegistration]] = (
            OrderedDict()
        )
        self._joining: OrderedDict[ConnectionKey, tuple[JoinedGroup, JoiningConnection]] = OrderedDict()
        self._closed: OrderedDict[ConnectionKey, tuple[JoinedGroup, JoiningConnection]] = OrderedDict()

    def feed(self, entry: FrameEntry, place: Seen) -> Iterator[GroupEvent]:
        """What one frame adds."""
        key = entry.capture, frozenset(entry.flow.split(" > "))
        message: Any = entry.message
        match type(message).__name__:
            case "Draft1RegisterRequest" | "Draft2RegisterConsumerRequest":
                self._register(entry, message, key, place)
            case "Draft3JoinGroupRequest" | "Draft3PingRequest":
                self._joins(entry, message.group_id or "", key)
            case "Draft3JoinGroupResponse" if key not in self._joining and entry.request is not None:
                self._joins(entry.request, message.group_id or "", key)
                if (joining := self._joining.get(key)) is not None:
                    joining[0].join_again(joining[1], entry.request.message, place_of(entry.request))
        name: str | None
        if (registered := self._registrations.get(key)) is not None:
            started, registration = registered
            started.feed(registration, entry, message, place)
            group, name = started.group, registration.name
        elif (joining := self._joining.get(key)) is not None:
            joined, connection = joining
            joined.feed(connection, message, place)
            group, name = joined.group, connection.member_id
        else:
            if key in self._closed and type(message).__name__ == "Draft3PingResponse":
                joined, connection = self._closed[key]
                joined.answer_ended(connection, message, place)
                yield from joined.group.drain()
            return
        yield from group.drain()
        yield from _reports(group.group, name, entry, message, place)

    def end(self, end: ConnectionEnd, place: Seen) -> Iterator[GroupEvent]:
        """What the end of a connection adds."""
        key = end.capture, frozenset(end.flow.split(" > "))
        if (registered := self._registrations.pop(key, None)) is not None:
            group, registration = registered
            group.end(registration, end, place)
            yield from group.group.drain()
        elif (joining := self._joining.pop(key, None)) is not None:
            joined_group, connection = joining
            joined_group.end(connection, end, place)
            if end.sender == "client":  # what it has asked may be answered yet
                remember(self._closed, key, joining, MOST_CONNECTIONS)
            yield from joined_group.group.drain()

    def _register(self, entry: FrameEntry, message: Any, key: ConnectionKey, place: Seen) -> None:
        group_id = message.group_id or ""
        group = self._started.get(group_id)
        if group is None:
            group = StartedGroup(group_id)
            remember(self._started, group_id, group, MOST_CONNECTIONS)
        if key not in self._registrations and not group.is_full:  # a connection registers once
            registration = DraftRegistration.of(entry, message, place)
            group.register(registration)
            remember(self._registrations, key, (group, registration), MOST_CONNECTIONS)

    def _joins(self, entry: FrameEntry, group_id: str, key: ConnectionKey) -> None:
        """A consumer speaks of a group. A join may not name it: the draft's page elides its fields."""
        known = self._joining.get(key)
        if not group_id or (known is not None and known[0].group.group == group_id):
            return
        group = self._joined.get(group_id)
        if group is None:
            group = JoinedGroup(group_id)
            remember(self._joined, group_id, group, MOST_CONNECTIONS)
        client, _, broker = entry.flow.partition(" > ")
        if known is not None:
            known[0].forget(known[1])
        self._joining[key] = group, JoiningConnection(client, broker)
        if len(self._joining) > MOST_CONNECTIONS:
            _, (joined, oldest) = self._joining.popitem(last=False)
            joined.forget(oldest)

    def finish(self, place: Seen) -> Iterator[GroupEvent]:
        """The input is at its end."""
        groups: tuple[StartedGroup | JoinedGroup, ...] = (*self._started.values(), *self._joined.values())
        for group in groups:
            group.finish(place)
            yield from group.group.drain()


def _reports(
    group: str, consumer_id: str | None, entry: FrameEntry, message: Any, place: Seen
) -> Iterator[GroupEvent]:
    """The error that an answer carries, and the offsets that a consumer reports."""
    code = getattr(message, "error_code", 0)
    if code:
        yield ErrorMet(
            group=group, **place._asdict(), api=entry.api_name or "", error_code=code, member_id=consumer_id,
            client_id=None,
        )  # fmt: skip
        return
    offsets: Iterable[Any] = getattr(message, "offset_info", ())
    for reported in offsets:
        partition = partition_of(reported)
        yield OffsetCommitted(
            group=group, **place._asdict(), member_id=consumer_id, client_id=None, generation=-1,
            topic=partition.topic, partition=partition.partition, offset=reported.offset, leader_epoch=-1,
            metadata=None,
        )  # fmt: skip
