"""What one line of a story takes from other events: a rebalance's client, how a silent member's connections
ended, that a new member's process or client was expelled before, and which static member took another's
place.

Strategy: one pass over a group's events, those of a line before it is written. Rules: a process is the one
that was expelled if its connection shows that, a client if it has the same client id and address; each is
linked once; of an endless input only the latest rebalances have their client.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from coordwire.timeline.events import (
    GroupEvent,
    HowEnded,
    MemberEnding,
    MemberJoined,
    MemberLeft,
    RebalanceBegan,
    RebalanceEnded,
)
from coordwire.timeline.evidence import remember

__all__ = ["StoryLinks", "ending_text"]

MOST_CAUSERS, MOST_NAMELESS = 100_000, 1_000
"""Rebalances whose client is known, and that have begun without a name and not ended."""

EXPELLED = ("session_timeout", "removed", "fenced", "not_rejoined")

_ENDED: dict[HowEnded, tuple[str, str]] = {
    "closed": ("it closed its connection", "it closed its {} connections"),
    "closed_by_broker": ("the broker closed its connection", "the broker closed its {} connections"),
    "reset": ("its connection was reset", "its {} connections were reset"),
}


@dataclass(slots=True)
class StoryLinks:
    """causers: the members that began rebalances before they had an id, by those events' places; endings: how
    the connections of silent members ended, by their ids and by when they went; expelled: by its new id, how
    the client's member went before; heirs: by static members' ids, those that took their places; forebears:
    the other way; processes: the new ids whose processes are known to be those of the expelled."""

    causers: OrderedDict[tuple[str, int], str] = field(default_factory=OrderedDict)
    endings: dict[tuple[str, int | None], MemberEnding] = field(default_factory=dict)
    expelled: dict[str, MemberLeft] = field(default_factory=dict)
    heirs: dict[str, MemberJoined] = field(default_factory=dict)
    forebears: dict[str, str] = field(default_factory=dict)
    processes: set[str] = field(default_factory=set)
    _nameless: deque[RebalanceBegan] = field(default_factory=lambda: deque(maxlen=MOST_NAMELESS))
    _hosts: dict[str, str | None] = field(default_factory=dict)
    _departed: dict[tuple[str | None, str], MemberLeft] = field(default_factory=dict)
    _expelled: dict[str, MemberLeft] = field(default_factory=dict)
    _instances: dict[tuple[str, str], str] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Iterable[GroupEvent], members: Iterable[GroupEvent]) -> StoryLinks:
        """members: the events of who was in, of all times."""
        links = cls()
        links.add(events)
        links.add_members(members)
        return links

    def add(self, events: Iterable[GroupEvent]) -> None:
        """Take in further events, for who caused rebalances."""
        for event in events:
            if isinstance(event, RebalanceBegan) and event.member_id is None and event.client_id is not None:
                self._nameless.append(event)
            elif isinstance(event, RebalanceEnded):
                for began in self._nameless:
                    if event.member_id is not None and event.began_ns == began.time_ns:
                        remember(self.causers, (began.source, began.number), event.member_id, MOST_CAUSERS)
                self._nameless.clear()

    def add_members(self, members: Iterable[GroupEvent]) -> None:
        """Take in further events of who was in."""
        for event in members:
            if isinstance(event, MemberJoined):
                self._joins(event)
            elif isinstance(event, MemberLeft):
                if event.ending is not None:
                    self.endings[event.member_id, event.time_ns] = event.ending
                if event.how in EXPELLED:
                    self._expelled[event.member_id] = event
                    self._departed[_client(event.client_id, self._hosts.get(event.member_id))] = event

    def _joins(self, event: MemberJoined) -> None:
        self._hosts[event.member_id] = event.host
        if event.instance_id is not None:
            before = self._instances.get((event.group, event.instance_id))
            self._instances[event.group, event.instance_id] = event.member_id
            if before is not None and before != event.member_id and event.rejoined:
                self.heirs[before] = event
                self.forebears[event.member_id] = before
        client = _client(event.client_id, event.host)
        departure = self._expelled.pop(event.former_id or "", None)
        if departure is not None:
            self.processes.add(event.member_id)
        if departure is None or self._departed.get(client) is departure:
            departure = self._departed.pop(client, departure)
        if departure is not None and departure.member_id != event.member_id and event.client_id:
            self.expelled[event.member_id] = departure

    def causer(self, event: RebalanceBegan | RebalanceEnded) -> str | None:
        """The cause of a rebalance, as far as it is known: a member's id, else a client's."""
        return event.member_id or self.causers.get((event.source, event.number)) or event.client_id


def _client(client_id: str | None, host: str | None) -> tuple[str | None, str]:
    return client_id, (host or "").rpartition(":")[0]


def ending_text(ending: MemberEnding, clock: Callable[[int], str]) -> str:
    """How a silent member's connections ended, in words. clock: a time's text."""
    if ending.how == "open":
        text = "its connection to the coordinator stayed open"
        if ending.unanswered_ns is not None:
            text += f", its requests since {clock(ending.unanswered_ns)} were not answered"
            text += _packets((ending.unanswered_packet,))
        elif ending.heard_ns is not None:
            text += f", nothing sent since {clock(ending.heard_ns)}{_packets((ending.heard_packet,))}"
    else:
        singular, plural = _ENDED[ending.how]
        text = plural.format(len(ending.packets)) if len(ending.packets) > 1 else singular
        if ending.ended_ns is not None:
            text += f" at {clock(ending.ended_ns)}{_packets(ending.packets)}"
    return f"{text}; no Fetch of it is captured" if ending.fetched is False else text


def _packets(packets: Iterable[int | None]) -> str:
    known = [str(packet) for packet in packets if packet is not None]
    return f" (packet{'s' if len(known) > 1 else ''} {', '.join(known)})" if known else ""
