"""Groups of the draft coordinators, from Register, Stop, Start and Ping (and draft-3's JoinGroup).

Strategy: a consumer has one connection, and its registration names its group; from the coordinator's Stop to
the answer of the last Start the group rebalances. Rules: what comes over a connection on which no consumer
registered belongs to no group; the offsets that a consumer reports when it is pinged or stopped count as
committed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from coordwire.capture.entries import FrameEntry
from coordwire.timeline.consumer_data import owned
from coordwire.timeline.events import ErrorMet, GroupEvent, OffsetCommitted, TopicPartition
from coordwire.timeline.evidence import Seen, remember
from coordwire.timeline.group import Group
from coordwire.timeline.members import Member, Owned
from coordwire.timeline.rebalance import Trigger

__all__ = ["DraftGroups"]

MOST_CONNECTIONS = 100_000
ConnectionKey = tuple[str, frozenset[str]]


class DraftGroups:
    """All groups of the drafts in some captures."""

    def __init__(self) -> None:
        self._groups: OrderedDict[str, Group] = OrderedDict()
        self._consumers: OrderedDict[ConnectionKey, tuple[Group, str]] = OrderedDict()
        self._joining: OrderedDict[ConnectionKey, Seen] = OrderedDict()

    def feed(self, entry: FrameEntry, place: Seen) -> Iterator[GroupEvent]:
        """What one frame adds."""
        connection = entry.capture, frozenset(entry.flow.split(" > "))
        message: Any = entry.message
        match type(message).__name__:
            case "Draft1RegisterRequest" | "Draft2RegisterConsumerRequest":
                self._register(entry, message, connection, place)
            case "Draft3JoinGroupRequest":
                remember(self._joining, connection, place, MOST_CONNECTIONS)
            case "Draft3JoinGroupResponse" if message.error_code == 0:
                self._join(entry, message, connection, place)
        known = self._consumers.get(connection)
        if known is None:
            return
        group, consumer_id = known
        self._rebalance(group, consumer_id, message, place)
        yield from group.drain()
        yield from _reports(group.group, consumer_id, entry, message, place)

    def _group(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            group = Group(group_id, "draft")
            remember(self._groups, group_id, group, MOST_CONNECTIONS)
        return group

    def _register(self, entry: FrameEntry, message: Any, connection: ConnectionKey, place: Seen) -> None:
        group = self._group(message.group_id or "")
        name = message.consumer_id or ""
        cause = Trigger("new_member" if group.members else "first_member", name, inferred=not group.members)
        host = entry.flow.partition(" > ")[0] or None
        timeout = getattr(message, "session_timeout_ms", None)
        member = Member(name, host=host, topics=(message.topic_count or "",), session_timeout_ms=timeout)
        rejoined = name in group.members
        group.begin(Trigger("member_rejoined", name) if rejoined else cause, place)
        group.add(member, place, rejoined=rejoined)
        remember(self._consumers, connection, (group, name), MOST_CONNECTIONS)

    def _join(self, entry: FrameEntry, message: Any, connection: ConnectionKey, place: Seen) -> None:
        """Draft-3: the answer has all that there is."""
        group = self._group(message.group_id or "")
        name = message.consumer_id or ""
        old = group.members.get(name)
        cause = Trigger("member_rejoined" if old else "new_member" if group.members else "first_member", name)
        rebalance = group.begin(cause, self._joining.pop(connection, place))
        rebalance.generation = group.generation = message.generation
        if old is None:
            group.add(Member(name, host=entry.flow.partition(" > ")[2] or None), place)
        parts = owned(
            (partition.topic or "", [partition.partition]) for partition in message.partitions_to_own
        )
        self._assign(group, name, parts)
        remember(self._consumers, connection, (group, name), MOST_CONNECTIONS)
        group.end("steady", place)

    def _rebalance(self, group: Group, consumer_id: str, message: Any, place: Seen) -> None:
        match type(message).__name__:
            case "Draft1StopRequest" | "Draft2StopFetcherRequest":
                cause = Trigger("unknown", inferred=True, detail="the coordinator stops its consumers")
                group.begin(cause, place).join(consumer_id, place.time_ns)
            case "Draft1StartRequest":
                self._assign(group, consumer_id, _owned(message.assigned_parts))
            case "Draft2StartFetcherRequest":
                parts = [part for thread in message.ownership_info for part in thread.assigned_parts]
                self._assign(group, consumer_id, _owned(parts))
            case "Draft1StartResponse" | "Draft2StartFetcherResponse":
                rebalance = group.rebalance
                if rebalance is not None:
                    rebalance.sync(consumer_id)
                    if not rebalance.unsynced:
                        group.end("steady", place)

    def _assign(self, group: Group, consumer_id: str, parts: Owned) -> None:
        member = group.members.get(consumer_id)
        if member is not None:
            group.assign(member, parts)

    def finish(self, place: Seen) -> Iterator[GroupEvent]:
        """The input is at its end."""
        for group in self._groups.values():
            group.end("unfinished", place)
            yield from group.drain()


def _reports(
    group: str, consumer_id: str, entry: FrameEntry, message: Any, place: Seen
) -> Iterator[GroupEvent]:
    """The error that an answer carries, and the offsets that a consumer reports."""
    code = getattr(message, "error_code", 0)
    if code:
        yield ErrorMet(
            group=group, **place._asdict(), api=entry.api_name or "", error_code=code, member_id=consumer_id,
            client_id=None,
        )  # fmt: skip
        return
    for reported in getattr(message, "offset_info", ()):
        partition = _partition_of(reported)
        yield OffsetCommitted(
            group=group, **place._asdict(), member_id=consumer_id, client_id=None, generation=-1,
            topic=partition.topic, partition=partition.partition, offset=reported.offset, leader_epoch=-1,
            metadata=None,
        )  # fmt: skip


def _owned(parts: Iterable[Any]) -> Owned:
    return owned((partition.topic, [partition.partition]) for partition in map(_partition_of, parts))


def _partition_of(reported: Any) -> TopicPartition:
    """A partition that the drafts call "broker-partition", as text."""
    broker, _, number = (reported.partition or "").rpartition("-")
    if number.isascii() and number.isdecimal() and len(number) < 10:
        return TopicPartition(
            f"{reported.topic or ''}/{broker}" if broker else reported.topic or "", int(number)
        )
    return TopicPartition(f"{reported.topic or ''}/{reported.partition or ''}", -1)
