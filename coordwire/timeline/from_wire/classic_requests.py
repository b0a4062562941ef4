"""The requests of classic members: who joins as what, whom a LeaveGroup removes, unanswered JoinGroups.

Strategy: `PendingJoins` is a dict in the order of arrival, with heaps by time for the questions about all
requests; a heap may name requests that are answered, which are dropped when they come up. Rules: a question
costs a logarithm; a missing time counts as 0; the oldest are forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from hashlib import blake2b
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from coordwire.capture.entries import FrameEntry
from coordwire.timeline.consumer_data import subscribe_by_offer
from coordwire.timeline.events import Leaving
from coordwire.timeline.evidence import MemberName, Seen, remember
from coordwire.timeline.group import Group
from coordwire.timeline.members import Member

__all__ = ["PendingJoins", "is_heir", "joining_member", "leavers"]

SPARE = 64
"""So many may be in a heap that wait no longer, on top of as many as wait."""


class PendingJoins:
    """All of one group. most: so many are remembered."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._all: OrderedDict[Seen, Member] = OrderedDict()
        self._first: list[tuple[int, str, int, Seen]] = []
        self._nameless: list[tuple[int, str, int, Seen]] = []  # those without a member id, the latest first

    def __len__(self) -> int:
        return len(self._all)

    def members(self) -> Iterable[Member]:
        """All that wait, the first first."""
        return self._all.values()

    def items(self) -> Iterable[tuple[Seen, Member]]:
        """The same, and where each was seen."""
        return self._all.items()

    def get(self, place: Seen) -> Member | None:
        """The one that was seen there."""
        return self._all.get(place)

    def add(self, place: Seen, member: Member) -> None:
        remember(self._all, place, member, self.most)
        time_ns = place.time_ns or 0
        heappush(self._first, (time_ns, place.source, place.number, place))
        if not member.member_id:
            heappush(self._nameless, (-time_ns, place.source, place.number, place))
        for heap in (self._first, self._nameless):
            if len(heap) > 2 * len(self._all) + SPARE:
                heap[:] = [entry for entry in heap if entry[3] in self._all]
                heapify(heap)

    def pop(self, place: Seen) -> Member | None:
        """The one that was seen there, which waits no longer."""
        return self._all.pop(place, None)

    def forget_before(self, time_ns: int) -> None:
        """The members that asked before a generation was formed, and isn't in it, waits no more."""
        while self._first and self._first[0][0] < time_ns:
            self.pop(heappop(self._first)[3])

    def has_nameless(self, since_ns: int) -> bool:
        """Whether one without a member id has asked since then."""
        heap = self._nameless
        while heap and heap[0][3] not in self._all:
            heappop(heap)
        return bool(heap) and -heap[0][0] >= since_ns


def _digest(offers: Iterable[Any]) -> bytes:
    """A short text for protocols and their metadata, the same in any process."""
    text = repr([(offer.name, bytes(offer.metadata or b"")) for offer in offers])
    return blake2b(text.encode(), digest_size=16).digest()


def joining_member(entry: FrameEntry, message: Any, host: str | None) -> Member:
    """A member as its JoinGroup describes it."""
    member = Member(
        message.member_id, entry.client_id, host, message.group_instance_id,
        protocols=tuple(protocol.name for protocol in message.protocols),
        session_timeout_ms=message.session_timeout_ms, classic=True,
        rebalance_timeout_ms=max(message.rebalance_timeout_ms, 0) or message.session_timeout_ms,
        reason=message.reason or None,
        offers=_digest(message.protocols),
    )  # fmt: skip
    for offer in message.protocols[:1]:
        subscribe_by_offer(member, offer, message.protocol_type)
    return member


BY_ADMIN = "member was removed by an admin"
"""How the reason begins that Kafka's admin client gives."""


class Leaver(NamedTuple):
    """A member that a LeaveGroup takes out. departure: "removed", if it is not its own LeaveGroup."""

    member_id: str
    reason: str | None
    departure: Leaving


def leavers(group: Group, asking: FrameEntry, request: Any, message: Any = None) -> list[Leaver]:
    """The members that a LeaveGroup takes out, by its answer, with their reasons. asking: the frame of the
    request; message: None before the answer."""
    answered = () if message is None else message.members
    refused = {(answer.member_id, answer.group_instance_id) for answer in answered if answer.error_code}
    departing = []
    for answer in [request, *request.members]:
        instance_id = getattr(answer, "group_instance_id", None)
        static = group.members.of_instance(instance_id)
        name = answer.member_id or (static.member_id if static else "")
        if name and (answer.member_id, instance_id) not in refused:
            reason = getattr(answer, "reason", None)
            member = group.members.get(name)
            is_own = member is None or (
                member.client_id in (None, asking.client_id)
                and _may_be_of(group, name, asking.flow, alone=len(request.members) < 2)
            )
            is_removed = not is_own or (reason or "").startswith(BY_ADMIN)
            departing.append(Leaver(name, reason, "removed" if is_removed else "left"))
    return departing


def _may_be_of(group: Group, member_id: str, flow: str, *, alone: bool) -> bool:
    """Whether a LeaveGroup of its client's id may be a member's own, by the connection: some clients have a
    new one for it. alone: whether it lists no other member."""
    own = group.connections.flow_of(MemberName(group.group, member_id))
    if own in (None, flow):
        return True
    speaker = group.connections.speaker_on(flow, group.group)
    is_others = speaker is not None and speaker != member_id and speaker in group.members
    return alone and not is_others and _address(own) == _address(flow)


def _address(flow: str | None) -> str:
    """The client's, without its port."""
    return (flow or "").partition(" > ")[0].rpartition(":")[0]


def is_heir(joining: Member, place: Seen, static: Member) -> bool:
    """Whether a JoinGroup takes a static member's place, which was let in before."""
    is_same_instance = joining.instance_id is not None and joining.instance_id == static.instance_id
    return is_same_instance and not joining.member_id and (place.time_ns or 0) > (static.answered_ns or 0)
