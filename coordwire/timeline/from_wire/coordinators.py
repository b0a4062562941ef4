"""Which broker coordinates each group, and when it is away: what stops the clocks of all sessions.

Strategy: a group's coordinator is the broker that last accepted a request about it. A broker that ends its
connections all at once is away. The groups that it coordinates are unheard from then on, until a request
about them is accepted again, by it or by another: their members' sessions begin again then, as Kafka's do
once a coordinator has loaded a group. Rules: a single connection that a broker ends may be a client that it
refuses, so that it counts only if nothing is answered for a while; a refusal by a broker that is no longer
the coordinator, or not yet, says nothing of sessions.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Protocol

from coordwire.capture.entries import ConnectionEnd
from coordwire.timeline.events import BrokerAway
from coordwire.timeline.evidence import Seen, is_before, remember
from coordwire.timeline.group import Group, Outage
from coordwire.timeline.stalls import RESUMES_NS, STALL_NS, Stall, Stalls

__all__ = ["BrokerEnds", "Coordinators", "broker_of"]

TOGETHER_NS = 1_000_000_000
"""A broker that ends its connections within so long is away."""

FEW = 3
"""If it ends fewer connections, none may be left."""

SHORTEST_NS = 2_000_000_000
"""A broker that ended fewer is away if nothing is answered for so long."""

MOST_BROKERS = MOST_GROUPS = 10_000
MOST_ADDRESSES = 64
MOST_PACKETS = 8


class BrokerEnds:
    """The connections of brokers that are open, and those that the brokers ended lately."""

    def __init__(self) -> None:
        self._open: dict[str, set[str]] = {}
        self._ended: dict[str, list[ConnectionEnd]] = {}

    def opens(self, flow: str) -> None:
        """A connection was seen."""
        broker = broker_of(flow)
        if broker in self._open or len(self._open) < MOST_BROKERS:
            self._open.setdefault(broker, set()).add(flow)

    def forget(self, flow: str) -> None:
        """A connection is not remembered any longer."""
        self._open.get(broker_of(flow), set()).discard(flow)

    def ends(self, end: ConnectionEnd) -> Outage | None:
        """A connection's first FIN or RST: the outage that it begins or goes on with, if any."""
        broker = broker_of(end.flow)
        still_open = self._open.get(broker, set())
        still_open.discard(end.flow)
        if end.sender != "broker" or broker not in self._open:
            return None
        ended = self._ended.setdefault(broker, [])
        ended.append(end)
        while end.time_ns - ended[0].time_ns > TOGETHER_NS:
            ended.pop(0)
        if still_open and (len(ended) < FEW or len(still_open) * FEW > len(ended)):
            return None
        packets = tuple(known.packet for known in ended[:MOST_PACKETS] if known.packet is not None)
        place = Seen(ended[0].time_ns, ended[0].capture, 0, ended[0].packet)
        return Outage(broker, place, len(ended), packets)


class MemberConnections(Protocol):
    """What is known of the connections of groups' members."""

    def end_on(self, flow: str) -> ConnectionEnd | None:
        """The end of a connection, None if it did not end."""


class Groups(Protocol):
    """All groups."""

    def __iter__(self) -> Iterator[Group]:
        """Each of them."""

    def of_id(self, group_id: str) -> Iterable[Group]:
        """Those of an id, of all kinds."""


class Coordinators:
    """Of all groups. ends: of their members' connections, where these are known.

    _of: by broker, the ids of the groups that it has or may have, and that are not away.
    """

    def __init__(self, groups: Groups, ends: MemberConnections | None) -> None:
        self._groups = groups
        self._ends = ends
        self._of: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()
        self._outages: OrderedDict[str, Outage] = OrderedDict()  # by broker, the last
        self._stalls: OrderedDict[str, Stalls] = OrderedDict()
        self._returns: OrderedDict[str, Seen] = OrderedDict()  # of brokers that were away: the first answers

    def leaves(self, outage: Outage, number: int) -> None:
        """A broker is away. number: of the frame before."""
        outage.place = outage.place._replace(number=number)
        known = self._outages.get(outage.broker)
        if known is None:
            known = outage
            remember(self._outages, outage.broker, outage, MOST_BROKERS)
        known.place, known.connections, known.packets = outage.place, outage.connections, outage.packets
        for group_id in self._of.pop(outage.broker, ()):
            for group in self._groups.of_id(group_id):
                if group.outage is not None or (group.coordinator or group.asked_broker) != outage.broker:
                    continue
                if group.members:
                    group.outage, group.back = known, None
                else:
                    group.coordinator = group.asked_broker = None  # it is known again with its next frame

    def asks(self, group: Group, broker: str) -> None:
        """A request about a group, of which no broker has accepted any."""
        if group.asked_broker != broker:
            group.asked_broker = broker
            self._serves(broker, group)

    def _serves(self, broker: str, group: Group) -> None:
        groups = self._of.get(broker)
        if groups is None:
            groups = OrderedDict()
            remember(self._of, broker, groups, MOST_BROKERS)
        remember(groups, group.group, None, MOST_GROUPS)

    def moves(self, groups: Iterable[Group], place: Seen) -> None:
        """Another broker is named as the coordinator of these: it has loaded them, or does so now, and their
        sessions begin again."""
        for group in groups:
            if not group.is_away:
                group.restart(None, place)
            elif group.outage is not None:
                self._is_back(group, group.outage, self._returned(group.outage, place))

    @staticmethod
    def _is_back(group: Group, outage: Outage, place: Seen) -> None:
        """Some broker has a group again."""
        group.restart(outage.place, place)
        group.back = place

    def _returned(self, outage: Outage, place: Seen) -> Seen:
        """Where the first answer about a group of a broker that was away was seen; `place` if there is none
        before that."""
        first = self._returns.get(outage.broker)
        return first if first is not None and is_before(outage.place, first) else place

    def accepts_answer(self, group: Group, broker: str, place: Seen, *, accepted: bool) -> bool:
        """A request about a group is answered: whether that says anything of the group. Called before the
        answer is applied to it."""
        outage = group.outage
        if outage is not None:
            if not accepted or (place.time_ns or 0) < (outage.place.time_ns or 0):
                return True  # else it is an answer from before, after a lost packet
            group.outage = None
            length_ns = (place.time_ns or 0) - (outage.place.time_ns or 0)
            if outage.connections >= FEW or length_ns >= SHORTEST_NS or broker != outage.broker:
                if group.back is None:
                    group.restart(outage.place, self._returned(outage, place))
                if self._returned(outage, place) is place:
                    remember(self._returns, outage.broker, place, MOST_BROKERS)
                self._report(group, outage, place, broker)
        elif group.coordinator == broker:
            return True
        elif not accepted:
            return group.coordinator is None
        elif group.coordinator is not None and broker not in group.brokers:
            self._unanswered(group, place, broker)
            group.restart(None, place)  # else one broker has two addresses
        group.coordinator = broker
        self._serves(broker, group)
        group.clocks.stalls = self.stalls_of(broker)
        if len(group.brokers) < MOST_ADDRESSES:
            group.brokers.add(broker)
        return True

    def stalls_of(self, broker: str) -> Stalls:
        """When a broker answered nothing."""
        stalls = self._stalls.get(broker)
        if stalls is None:
            stalls = Stalls()
            remember(self._stalls, broker, stalls, MOST_BROKERS)
        return stalls

    def answers_late(self, group: Group, broker: str, request_place: Seen, place: Seen) -> None:
        """A request that its coordinator answers at once has waited for `STALL_NS` or longer; others may have
        waited for longer, and are not answered yet."""
        first, over_ns = group.first_waiting, self.stalls_of(broker).latest_ns + RESUMES_NS
        if first is None or group.coordinator != broker or is_before(request_place, first):
            first = request_place
        elif (first.time_ns or 0) < over_ns <= (request_place.time_ns or 0):
            first = request_place  # what waited before was read with the last stall's end
        self._waited(group, Stall(first, place, place.time_ns or 0, broker, broker))

    def resumes(self, group: Group, broker: str, place: Seen) -> None:
        """A coordinator answers what may wait for long, while requests that it answers at once have waited
        for seconds: it has gone on, and their answers will say whether it stalled."""
        first = group.first_waiting
        if first is None or group.coordinator != broker or group.holes.count or not group.may_stall(place):
            return
        if self._ends is None or self._ends.end_on(group.unanswered[first]) is None:
            self.stalls_of(broker).late(Stall(first, place, place.time_ns or 0, broker, broker, 0))

    def _unanswered(self, group: Group, place: Seen, broker: str | None) -> None:
        """Requests that the coordinator never answered. broker: which one answers now instead, None at the
        end of the input."""
        stalled = group.coordinator
        late = list(self._waiting(group, place.time_ns or 0, at_end=broker is None))
        if not late or stalled is None or group.holes.count:
            return
        until = None if broker is None else place
        self._waited(group, Stall(late[0], until, place.time_ns or 0, stalled, broker, len(late)))

    def _waiting(self, group: Group, now_ns: int, *, at_end: bool) -> Iterator[Seen]:
        """Take the requests that wait for the coordinator for so long, and since its last answer in time; at
        the input's end, since its last answer: not those that their clients gave up before, or long ago."""
        stalls = self.stalls_of(group.coordinator or "")
        prompt_ns = max(stalls.prompt_ns, stalls.latest_ns) if at_end else stalls.prompt_ns
        while group.unanswered:
            place, flow = next(iter(group.unanswered.items()))
            asked_ns = place.time_ns or 0
            if now_ns - asked_ns < STALL_NS:
                return
            del group.unanswered[place]
            end = None if self._ends is None else self._ends.end_on(flow)
            given_up = end is not None and (
                at_end or end.time_ns - asked_ns < STALL_NS or now_ns - end.time_ns >= STALL_NS
            )
            if not given_up and asked_ns >= prompt_ns and broker_of(flow) == group.coordinator:
                yield place

    def _waited(self, group: Group, waits: Stall) -> None:
        """Requests about a group waited for so long."""
        clocks = group.clocks
        stall = self.stalls_of(waits.broker).late(waits)
        if stall is None or stall is clocks.stall or stall is clocks.reported:
            return
        group.report_stall()
        clocks.stall = stall

    def finish(self, place: Seen) -> Iterator[Group]:
        """Report the outages and stalls that the input ends in; the groups that have one."""
        for group in self._groups:
            outage = group.outage
            if outage is None:
                self._unanswered(group, place, None)
            elif outage.connections >= FEW:
                self._report(group, outage, None, None)
                if group.back is None and (back := self._returned(outage, place)) is not place:
                    self._is_back(group, outage, back)
        for group in self._groups:
            group.report_stall()
            if group.pending:
                yield group

    @staticmethod
    def _report(group: Group, outage: Outage, until: Seen | None, broker: str | None) -> None:
        group.report(
            BrokerAway, outage.place, broker=outage.broker, until_ns=None if until is None else until.time_ns,
            answered_by=broker, connections=outage.connections, packets=outage.packets,
        )  # fmt: skip


@lru_cache(4096)
def broker_of(flow: str) -> str:
    """The broker's address, by the flow of a connection's requests."""
    return flow.partition(" > ")[2]
