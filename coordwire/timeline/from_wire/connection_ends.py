"""The ends of the connections of members that left without a request.

Strategy: a member's own connection is that of its last request about its group; other connections are its own
too if they come from the same address with the same client id, and no other member does. Once it is taken to
be out, its event reports these connections: whether they were closed or reset by then, by which side and in
which packets, or stayed open; and whether a Fetch came on one of them since the member was in. Rules: an
ending is built from what its `MemberClaim` admits; what is remembered is bounded. Who joins on a connection
that a member spoke on which is out is the same process: also where that asked in vain on a new connection.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from coordwire.capture.entries import ConnectionEnd, FrameEntry
from coordwire.timeline.events import (
    GroupEvent,
    HowEnded,
    Kind,
    MemberEnding,
    MemberJoined,
    MemberLeft,
    RebalanceEnded,
)
from coordwire.timeline.evidence import Evidence, MemberClaim, MemberName, Seen, remember
from coordwire.timeline.from_wire.coordinators import BrokerEnds
from coordwire.timeline.group import Holes, Outage

__all__ = ["ENDED", "ConnectionEnds", "LastRequests"]

MOST_CONNECTIONS = 32_768
MOST_MEMBERS = 100_000
MOST_SPEAKERS = 100
"""So many groups' members that speak on one connection are remembered."""


ENDED = frozenset((MemberJoined, MemberLeft, RebalanceEnded))
"""The events that `ConnectionEnds.see` learns from, or says more of."""

_SILENT = ("session_timeout", "removed", "not_rejoined")
ClientOrigin = tuple[str, str]
"""An address without its port, and a client id."""
GroupKey = tuple[str, Kind]
"""A group's id and the kind that it is kept as."""

WAITS_NS = 500_000_000
"""A request that is not answered for so long was not read, where others are answered at once."""

MANY_BEGUN = 20
"""Where so many connections began and none ended, as far as a capture shows, it does not show ends."""

SILENCE_NS = 1_000_000_000
"""A request after so long is remembered beside the one before it, as it may be of a member that is out."""

LONGEST_SOFTWARE = 100
"""Characters of a client's software and its version."""

_new = tuple.__new__  # a named tuple's own goes through a function


@dataclass(slots=True)
class LastRequests:
    """A member's. flow: the connection of the last one; earlier: the one before the last silence; read: the
    last one that was accepted; unread: the first after that; is_kept: whether they are still those of a
    member that may be in."""

    name: MemberName
    flow: str
    last: Seen
    earlier: Seen
    is_kept: bool = True
    read: Seen | None = None
    unread: Seen | None = None

    def add(self, place: Seen) -> None:
        """Another one on the same connection."""
        before = self.last
        if (place.time_ns or 0) - (before.time_ns or 0) > SILENCE_NS:
            self.earlier = before
        self.last = place
        if self.unread is None:
            self.unread = place


@dataclass(slots=True)
class _Connection:
    """One connection. end: the first of it; fetched_ns: when the last Fetch was sent on it; requests: of the
    member that has asked on it last; software: its client's, with its version."""

    client: ClientOrigin
    end: ConnectionEnd | None = None
    fetched_ns: int = 0
    requests: LastRequests | None = None
    software: str | None = None


@dataclass(slots=True)
class _In:
    """A member that is in. had: whether it was assigned anything."""

    client: ClientOrigin
    joined_ns: int
    instance: tuple[str, str] | None
    had: bool = False


@dataclass(slots=True)
class SharedClients:
    """Which of the members that are in have a client of their own: no other member of any group has had it
    since they joined."""

    _clients: dict[MemberName, ClientOrigin] = field(default_factory=dict)
    _members: dict[ClientOrigin, set[MemberName]] = field(default_factory=dict)
    _alone: set[MemberName] = field(default_factory=set)

    def joins(self, name: MemberName, client: ClientOrigin) -> None:
        """A member that wasn't in is in."""
        names = self._members.setdefault(client, set())
        if not names:
            self._alone.add(name)
        elif len(names) == 1:
            self._alone -= names
        names.add(name)
        self._clients[name] = client

    def leaves(self, name: MemberName) -> None:
        """A member that was in is out."""
        client = self._clients.pop(name)
        self._alone.discard(name)
        names = self._members[client]
        names.discard(name)
        if not names:
            del self._members[client]

    def is_alone(self, name: MemberName) -> bool:
        """Whether a member is in, and has its client to itself."""
        return name in self._alone


@dataclass(slots=True)
class ConnectionEnds:
    """Of all members in some captures. holes: those of the captures, in which answers may be missing;
    begun_count, ended_count: of the connections that began and ended in them."""

    holes: Holes = field(default_factory=Holes)
    begun_count: int = 0
    ended_count: int = 0

    _last_requests: OrderedDict[MemberName, LastRequests] = field(default_factory=OrderedDict)
    _known: OrderedDict[str, _Connection] = field(default_factory=OrderedDict)
    _of: dict[ClientOrigin, dict[str, _Connection]] = field(default_factory=dict)
    _in: OrderedDict[MemberName, _In] = field(default_factory=OrderedDict)
    _shared: SharedClients = field(default_factory=SharedClients)
    _instances: dict[tuple[str, str], MemberName] = field(default_factory=dict)
    _brokers: BrokerEnds = field(default_factory=BrokerEnds)
    _speakers: dict[str, dict[GroupKey, MemberName]] = field(default_factory=dict)
    _formers: OrderedDict[MemberName, MemberName] = field(default_factory=OrderedDict)

    def asks(self, entry: FrameEntry, group: str, member_id: str, kept_as: Kind, place: Seen) -> None:
        """A request about a group was sent: `opens` and, if it is a member's, `speaks`."""
        flow = entry.flow
        connection = self._known.get(flow)
        if connection is None or connection.end is not None:
            connection = self.opens(entry)
        if not member_id:
            return
        requests = connection.requests  # most connections are one member's
        if requests is not None and requests.flow is flow and requests.is_kept:
            name = requests.name
            if name[1] == member_id and name[0] == group:
                requests.add(place)
                return
        name = _new(MemberName, (group, member_id))
        connection.requests = self.speaks(name, kept_as, flow, place)

    def speaks(self, name: MemberName, kept_as: Kind, flow: str, place: Seen) -> LastRequests:
        """A member sent a request about its group, which is kept as one of a kind."""
        known = self._last_requests
        requests = known.get(name)
        if requests is None:
            requests = known[name] = LastRequests(name, flow, place, place)
            former = self._speakers.get(flow, {}).get((name.group, kept_as))
            if former is not None and former != name:
                remember(self._formers, name, former, MOST_MEMBERS)
            self._speaks_on(flow, name, kept_as)
            if len(known) > MOST_MEMBERS:
                known.popitem(last=False)[1].is_kept = False
            return requests
        if requests.flow is not flow:
            requests.flow = flow
            self._speaks_on(flow, name, kept_as)
        requests.add(place)
        return requests

    def reads(self, request_entry: FrameEntry, place: Seen) -> None:
        """A request about a group was accepted. place: where it was seen."""
        message: Any = request_entry.message
        connection = self._known.get(request_entry.flow)
        requests = None if connection is None else connection.requests
        name = _new(MemberName, (message.group_id, message.member_id))
        if requests is None or requests.name != name:
            requests = self._last_requests.get(name)
        if requests is not None:
            requests.read = place
            requests.unread = None if requests.last == place else requests.last  # which is not answered yet

    def _speaks_on(self, flow: str, name: MemberName, kept_as: Kind) -> None:
        speakers = self._speakers.setdefault(flow, {})
        if len(speakers) < MOST_SPEAKERS or (name.group, kept_as) in speakers:
            speakers[name.group, kept_as] = name

    def knows(self, entry: FrameEntry) -> _Connection | None:
        """The connection of a request, if it is known. A request from before its end may be looked at after
        that, with its answer."""
        connection = self._known.get(entry.flow)
        if connection is None or connection.end is None or (entry.time_ns or 0) <= connection.end.time_ns:
            return connection
        return None

    def opens(self, entry: FrameEntry) -> _Connection:
        """The connection of a request, which is known from then on."""
        connection = self.knows(entry)
        if connection is not None:
            return connection
        client = _address(entry.flow.partition(" > ")[0]), entry.client_id or ""
        if entry.flow in self._known:
            self._forget(entry.flow)
        elif len(self._known) >= MOST_CONNECTIONS:
            self._forget(next(iter(self._known)))
        connection = self._known[entry.flow] = self._of.setdefault(client, {})[entry.flow] = _Connection(
            client
        )
        self._brokers.opens(entry.flow)
        return connection

    def _forget(self, flow: str) -> None:
        client = self._known.pop(flow).client
        self._brokers.forget(flow)
        self._speakers.pop(flow, None)
        connections = self._of[client]
        del connections[flow]
        if not connections:
            del self._of[client]

    def fetches(self, entry: FrameEntry) -> None:
        """A Fetch was sent."""
        connection = self._known.get(entry.flow)
        if connection is None or connection.end is not None:
            connection = self.opens(entry)
        connection.fetched_ns = entry.time_ns or 0

    def ends(self, end: ConnectionEnd) -> Outage | None:
        """A FIN or an RST: its broker's outage, if that is one."""
        self.ended_count += 1
        connection = self._known.get(end.flow)
        if connection is None or connection.end is not None:
            return None
        connection.end = end
        return self._brokers.ends(end)

    def flow_of(self, name: MemberName) -> str | None:
        """The connection of a member's last request."""
        requests = self._last_requests.get(name)
        return None if requests is None else requests.flow

    def asked_ns(self, name: MemberName, until_ns: int) -> int:
        """When a member sent its last request until then, as far as that is known, else 0."""
        requests = self._last_requests.get(name)
        times = () if requests is None else (requests.earlier.time_ns or 0, requests.last.time_ns or 0)
        return max((time_ns for time_ns in times if time_ns <= until_ns), default=0)

    def end_of(self, name: MemberName) -> ConnectionEnd | None:
        """The end of the connection of a member's last request, None if it didn't end."""
        requests = self._last_requests.get(name)
        own = None if requests is None else self._known.get(requests.flow)
        return None if own is None else own.end

    def names_software(self, request_entry: FrameEntry, name: str, version: str) -> None:
        """A client said on its connection what it is."""
        connection = self.knows(request_entry)
        if connection is not None and name and len(name) + len(version) <= LONGEST_SOFTWARE:
            connection.software = f"{name} {version}".rstrip()

    def end_on(self, flow: str) -> ConnectionEnd | None:
        """The end of a connection, None if it did not end."""
        connection = self._known.get(flow)
        return None if connection is None else connection.end

    def speaker_on(self, flow: str, group: str) -> str | None:
        """The member of a classic group that asked last on a connection."""
        name = self._speakers.get(flow, {}).get((group, "classic"))
        return None if name is None else name.member_id

    def speakers_of(self, flow: str) -> Iterable[tuple[GroupKey, MemberName]]:
        """The members whose requests came on a connection, by their groups."""
        return self._speakers.get(flow, {}).items()

    def see(self, event: GroupEvent) -> GroupEvent:
        """The event, with the ends of its member's connections, if that member left without a request."""
        if isinstance(event, MemberJoined):
            name = MemberName(event.group, event.member_id)
            former = self._formers.get(name)
            comes_back = event.rejoined and not event.was_in
            if former is not None and former not in self._in and not comes_back:
                event = replace(event, former_id=former.member_id)
            self._joins(event)
            flow = self.flow_of(name)
            connection = None if flow is None else self._known.get(flow)
            if connection is not None and connection.software is not None:
                event = replace(event, software=connection.software)
        elif isinstance(event, RebalanceEnded):
            group = event.group
            for member_id, partitions in event.assignments:
                name = _new(MemberName, (group, member_id))
                if partitions and (member := self._in.get(name)) is not None:
                    member.had = True
        elif isinstance(event, MemberLeft) and event.how != "left_for_now":
            name = MemberName(event.group, event.member_id)
            if event.inferred and event.how in _SILENT and event.ending is None:
                event = replace(event, ending=self._ending(event, name))
            self._leaves(name)
            if (requests := self._last_requests.pop(name, None)) is not None:
                requests.is_kept = False
        return event

    def _joins(self, event: MemberJoined) -> None:
        name = MemberName(event.group, event.member_id)
        self._leaves(name)
        if event.host is None:
            return
        instance = None if event.instance_id is None else (event.group, event.instance_id)
        if instance in self._instances:
            self._leaves(self._instances[instance])
        client = _address(event.host), event.client_id or ""
        self._shared.joins(name, client)
        self._in[name] = _In(client, event.time_ns or 0, instance)
        if instance is not None:
            self._instances[instance] = name
        if len(self._in) > MOST_MEMBERS:
            self._leaves(next(iter(self._in)))

    def _leaves(self, name: MemberName) -> None:
        member = self._in.pop(name, None)
        if member is None:
            return
        self._shared.leaves(name)
        if member.instance is not None and self._instances.get(member.instance) == name:
            del self._instances[member.instance]

    def _ending(self, event: MemberLeft, name: MemberName) -> MemberEnding | None:
        """How the connections ended of a member that left without a request."""
        requests = self._last_requests.get(name)
        own = None if requests is None else self._known.get(requests.flow)
        if own is None or requests is None:
            return None
        claim = MemberClaim(name, Seen(event.time_ns, event.source, event.number, event.packet))
        last = claim.latest(Evidence(name, requests.last), Evidence(name, requests.earlier))
        if last is None:
            return None  # it is out since before what is known of it
        all_of_it: list[_Connection] = [own]
        fetched = None
        member = self._in.get(name) if self._shared.is_alone(name) else None
        if member is not None and member.client == own.client:
            all_of_it = list(self._of[own.client].values())
            if member.had:
                fetched = any(connection.fetched_ns >= member.joined_ns for connection in all_of_it)
        unanswered: tuple[int | None, int | None] = None, None
        first, read = requests.unread, requests.read
        if (
            first is not None
            and read is not None
            and not self.holes.count
            and _waits(claim, Evidence(name, first))
        ):
            unanswered = claim.time_ns(Evidence(name, first)), claim.packet(Evidence(name, first))
            last = Evidence(name, read)
        last_sent = claim.time_ns(last), claim.packet(last)
        if own.end is None or not claim.admits(_evidence(name, own.end)):
            if unanswered == (None, None) and not self.ended_count and self.begun_count >= MANY_BEGUN:
                return None  # written by something that leaves FINs and RSTs out
            return MemberEnding("open", None, (), *last_sent, fetched, *unanswered)
        ends = [connection.end for connection in all_of_it if connection.end is not None]
        heard_ns = last.place.time_ns or 0
        ends = [end for end in ends if heard_ns <= end.time_ns and claim.admits(_evidence(name, end))]
        ends = sorted(ends, key=lambda end: end.time_ns) or [own.end]
        ending: HowEnded = "closed" if own.end.sender == "client" else "closed_by_broker"
        if any(end.kind == "rst" for end in ends):
            ending = "reset"
        packets = filter(None, (claim.packet(_evidence(name, end)) for end in ends))
        return MemberEnding(
            ending, claim.time_ns(_evidence(name, ends[-1])), tuple(packets), *last_sent, fetched, *unanswered
        )


def _waits(claim: MemberClaim, request: Evidence) -> bool:
    """Whether a request without an answer had waited for one: it isn't the one that shows the claim."""
    waited_ns = (claim.at.time_ns or 0) - (request.place.time_ns or 0)
    return claim.admits(request) and waited_ns >= WAITS_NS


def _evidence(name: MemberName, end: ConnectionEnd) -> Evidence:
    """The end of a connection that is a member's own."""
    return Evidence(name, Seen(end.time_ns, end.capture, 0, end.packet))


def _address(host: str) -> str:
    return host.rpartition(":")[0]
