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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from coordwire.capture.entries import ConnectionEnd
from coordwire.timeline.events import BrokerAway, CoordinatorStalled
from coordwire.timeline.evidence import Seen, is_before, remember
from coordwire.timeline.group import Group, Outage
from coordwire.timeline.stalls import STALL_NS, Stall

__all__ = ["BrokerEnds", "Coordinators", "broker_of"]

TOGETHER_NS = 1_000_000_000
"""A broker that ends its connections within so long is away."""

FEW = 3
"""If it ends fewer connections, none may be left."""

SHORTEST_NS = 2_000_000_000
"""A broker that ended fewer is away if nothing is answered for so long."""

MOST_BROKERS = 10_000
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


class Coordinators:
    """Of all groups. flows_of: the connections of a group's members, by their last requests."""

    def __init__(self, groups: Iterable[Group], flows_of: Callable[[Group], Iterable[str]]) -> None:
        self._groups = groups
        self._flows_of = flows_of
        self._returns: OrderedDict[str, Seen] = OrderedDict()  # of brokers that were away: the first answers

    def leaves(self, outage: Outage, number: int) -> None:
        """A broker is away. number: of the frame before."""
        outage.place = outage.place._replace(number=number)
        for group in self._groups:
            if group.outage is not None:
                if group.outage.broker == outage.broker:
                    group.outage = replace(outage, back=group.outage.back)
                continue
            coordinator = group.coordinator or next(map(broker_of, self._flows_of(group)), None)
            if group.members and coordinator == outage.broker:
                group.outage = replace(outage)

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
        outage.back = place

    def _returned(self, outage: Outage, place: Seen) -> Seen:
        """Where the first answer about a group of a broker that was away was seen; `place` if there is none
        before that."""
        first = self._returns.get(outage.broker)
        return first if first is not None and is_before(outage.place, first) else place

    def accepts_answer(self, group: Group, flow: str, place: Seen, *, accepted: bool) -> bool:
        """A request about a group is answered: whether that says anything of the group. Called before the
        answer is applied to it."""
        broker, outage = broker_of(flow), group.outage
        if outage is not None:
            if not accepted or (place.time_ns or 0) < (outage.place.time_ns or 0):
                return True  # else it is an answer from before, after a lost packet
            group.outage = None
            length_ns = (place.time_ns or 0) - (outage.place.time_ns or 0)
            if outage.connections >= FEW or length_ns >= SHORTEST_NS or broker != outage.broker:
                if outage.back is None:
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
        if len(group.brokers) < MOST_ADDRESSES:
            group.brokers.add(broker)
        return True

    def answers_late(self, group: Group, flow: str, request_place: Seen, place: Seen) -> None:
        """A request that its coordinator answers at once has waited for `STALL_NS` or longer."""
        broker = broker_of(flow)
        self.stalled(group, group.clocks.stalls.late(Stall(request_place, place, broker, broker)))

    def _unanswered(self, group: Group, place: Seen, broker: str | None) -> None:
        """Requests that the coordinator never answered. broker: which one answers now instead, None at the
        end of the input."""
        places = [member.unread for member in group.members.values() if member.unread is not None]
        now_ns = place.time_ns or 0
        late = [
            request_place for request_place in places if now_ns - (request_place.time_ns or 0) >= STALL_NS
        ]
        if late and group.coordinator is not None and not group.holes.count:
            first = min(late, key=lambda request_place: request_place.time_ns or 0)
            until = None if broker is None else place
            stall = Stall(first, until, group.coordinator, broker, len(late))
            self.stalled(group, group.clocks.stalls.late(stall))

    @staticmethod
    def stalled(group: Group, stall: Stall | None) -> None:
        """Report a stall that is over."""
        if stall is None:
            return
        places = stall.since, stall.until
        group.report(
            CoordinatorStalled, stall.since, broker=stall.broker, requests=stall.requests,
            until_ns=None if stall.until is None else stall.until.time_ns, answered_by=stall.answered_by,
            packets=tuple(place.packet for place in places if place is not None and place.packet is not None),
        )  # fmt: skip

    def finish(self, place: Seen) -> Iterator[Group]:
        """Report the outages and stalls that the input ends in; the groups that have one."""
        for group in self._groups:
            outage = group.outage
            if outage is None:
                self._unanswered(group, place, None)
            elif outage.connections >= FEW:
                self._report(group, outage, None, None)
                if outage.back is None and (back := self._returned(outage, place)) is not place:
                    self._is_back(group, outage, back)
            self.stalled(group, group.clocks.stalls.take())
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
