"""What one line of a story takes from other events: a rebalance's client, how a silent member's connections
ended, that a new client was expelled before, and which static member took another's place.

Strategy: one pass over a group's events, before any line is written. Rules: a client is the one that was
expelled if it has the same client id and address; each is linked once.
"""

from __future__ import annotations

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

__all__ = ["StoryLinks", "ending_text"]

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
    the other way."""

    causers: dict[tuple[str, int], str] = field(default_factory=dict)
    endings: dict[tuple[str, int | None], MemberEnding] = field(default_factory=dict)
    expelled: dict[str, MemberLeft] = field(default_factory=dict)
    heirs: dict[str, MemberJoined] = field(default_factory=dict)
    forebears: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Iterable[GroupEvent], members: Iterable[GroupEvent]) -> StoryLinks:
        """members: the events of who was in, of all times."""
        links = cls()
        nameless: list[RebalanceBegan] = []
        for event in events:
            if isinstance(event, RebalanceBegan) and event.member_id is None and event.client_id is not None:
                nameless.append(event)
            elif isinstance(event, RebalanceEnded):
                for rebalance in nameless:
                    if event.member_id is not None and event.began_ns == rebalance.time_ns:
                        links.causers[rebalance.source, rebalance.number] = event.member_id
                nameless.clear()
        hosts: dict[str, str | None] = {}
        departed: dict[tuple[str | None, str], MemberLeft] = {}
        instances: dict[tuple[str, str], str] = {}
        for event in members:
            if isinstance(event, MemberJoined):
                hosts[event.member_id] = event.host
                if event.instance_id is not None:
                    before = instances.get((event.group, event.instance_id))
                    instances[event.group, event.instance_id] = event.member_id
                    if before is not None and before != event.member_id and event.rejoined:
                        links.heirs[before] = event
                        links.forebears[event.member_id] = before
                departure = departed.pop(_client(event.client_id, event.host), None)
                if departure is not None and departure.member_id != event.member_id and event.client_id:
                    links.expelled[event.member_id] = departure
            elif isinstance(event, MemberLeft):
                if event.ending is not None:
                    links.endings[event.member_id, event.time_ns] = event.ending
                if event.how in EXPELLED:
                    departed[_client(event.client_id, hosts.get(event.member_id))] = event
        return links

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
