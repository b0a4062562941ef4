"""Requests and answers about groups: each goes to its group's state, and what it says to whom it concerns.

Strategy: a request waits for its answer (`_waiting`), and shows its member alive; an answer counts if it is
its coordinator's (`coordinators`), and then changes its group (`group_table`) or what is committed
(`commits`). Rules: what can't be read whole answers its request, whatever it says; a group's events are given
with what they cost (`completed`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from coordwire.capture.body_text import has_no_codes
from coordwire.capture.entries import FrameEntry
from coordwire.enums import ErrorCode
from coordwire.errors import UnreadableRange
from coordwire.timeline.events import CaptureHole, ErrorMet, GroupDeleted, GroupEvent, Kind
from coordwire.timeline.evidence import MemberName, Seen, remember
from coordwire.timeline.from_wire.classic_group import ClassicGroup
from coordwire.timeline.from_wire.commits import Commits
from coordwire.timeline.from_wire.connection_ends import ENDED, ConnectionEnds
from coordwire.timeline.from_wire.coordinators import Coordinators, broker_of
from coordwire.timeline.from_wire.group_frames import (
    ABOUT_A_GROUP,
    CLASSIC,
    COMMITS,
    JOINING,
    MODERN,
    Asked,
    errors_of,
    host_of,
    message_of,
    place_of,
    unanswered,
    was_read,
)  # fmt: skip
from coordwire.timeline.from_wire.group_table import AnyGroup, GroupTable, kept_as
from coordwire.timeline.from_wire.migrating_group import ConsumerGroup
from coordwire.timeline.from_wire.modern_group import ModernGroup
from coordwire.timeline.from_wire.rebalance_cost import COSTLY
from coordwire.timeline.group import UNAVAILABLE, Group
from coordwire.timeline.stalls import RESUMES_NS, STALL_NS
from coordwire.versions import ApiKey

__all__ = ["GroupConversations"]

MOST_UNANSWERED = 10_000

_HEARTBEAT = int(ApiKey.HEARTBEAT)
_LOADS = int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
_JOIN, _SYNC, _LEAVE = int(ApiKey.JOIN_GROUP), int(ApiKey.SYNC_GROUP), int(ApiKey.LEAVE_GROUP)
_KEPT_AS: dict[int, Kind] = {key: kept_as(MODERN.get(key, "classic")) for key in ABOUT_A_GROUP}
"""By an API, the kind that its groups are kept as."""

NOT_READ = frozenset(map(int, (*UNAVAILABLE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)))
"""Errors of answers to a request that restarted no session."""


class GroupConversations:
    """All in the entries of one cluster. ends: of members' connections, where these are known."""

    def __init__(
        self,
        groups: GroupTable,
        coordinators: Coordinators,
        commits: Commits,
        ends: ConnectionEnds | None,
    ) -> None:
        self._groups, self._coordinators, self._commits, self._ends = groups, coordinators, commits, ends
        self._waiting: OrderedDict[Seen, Asked] = OrderedDict()

    # --- requests ---

    def request(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        """A request about a group."""
        message = message_of(entry)
        if message is None:
            return self.completed(self.unreadable(entry))
        place = _new(Seen, (entry.time_ns, entry.capture, entry.number, entry.packet))
        key: Any = entry.api_key
        self._asks(entry, key, message, place)
        if key not in JOINING:
            return ()
        group = self._groups.of_classic(message.group_id, place if key == _JOIN else None)
        if group.coordinator is None:
            self._coordinators.asks(group, broker_of(entry.flow))
        if key == _LEAVE:
            group.leave_request(message, entry, place)
            return ()
        if key == _JOIN:
            group.join_request(entry, message, place, host_of(entry))
        else:
            group.sync_request(message, place)
        return self.completed(group.drain()) if group.pending else ()

    def _asks(self, entry: FrameEntry, key: int, message: Any, place: Seen) -> None:
        """A member's request waits for its answer."""
        group_id, member_id = message.group_id, message.member_id
        if self._ends is not None:
            speaker = "" if key == _LEAVE else member_id  # another client may send it
            self._ends.asks(entry, group_id, speaker, _KEPT_AS[key], place)
        remember(self._waiting, place, (group_id, key, member_id or None, entry.client_id), MOST_UNANSWERED)
        if key in JOINING:
            return  # their members' sessions stop, or go on as they were
        epoch = message.member_epoch if key in MODERN else 0
        group: AnyGroup | None
        if key in COMMITS:
            group = self._groups.of_commit(group_id, member_id)
        else:
            group = self._groups.at((group_id, _KEPT_AS[key]))
        if group is None:
            return
        if epoch < 0 and isinstance(group, ModernGroup):
            group.asks_to_leave(member_id, epoch, place)
        if group.coordinator is None:
            self._coordinators.asks(group, broker_of(entry.flow))
        group.waits(place, entry.flow)
        if member_id:
            group.asks(member_id, place, renews=key not in COMMITS and epoch >= 0)

    # --- answers ---

    def answer(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        """An answer about a group."""
        message: Any = message_of(entry)
        request_entry: Any = entry.request
        if message is None:
            return self.completed(self.unreadable(entry))
        request: Any = request_entry.message
        if request is None or request_entry.error is not None:
            return self.completed(self.unreadable(entry)) if request_entry.released else ()
        key: Any = entry.api_key
        place = _new(Seen, (entry.time_ns, entry.capture, entry.number, entry.packet))
        at = request_entry
        asked_place = _new(Seen, (at.time_ns, at.capture, at.number, at.packet))
        self._waiting.pop(asked_place, None)
        if self._ends is not None and not request.member_id and getattr(message, "member_id", None):
            name = _new(MemberName, (request.group_id, message.member_id))  # which the answer gives it
            self._ends.speaks(name, _KEPT_AS[key], request_entry.flow, asked_place)
        events: list[GroupEvent] = []
        group: AnyGroup | None
        if key in COMMITS:
            codes = (part.error_code for topic in message.topics for part in topic.partitions)
            code = next(filter(None, codes), 0)
            events += errors_of(entry, request, message, place)
            commit_events, group = self._commit(entry, request_entry, place, message.topics, code)
            events += commit_events
        else:
            if message.error_code or key == _LEAVE:
                events += errors_of(entry, request, message, place)
            if key in JOINING:
                group = self._of_classic(entry, request_entry, request, message, place, asked_place)
            else:
                group = self._beat(entry, request_entry, message, place, asked_place)
        if group is not None and group.pending:
            events += group.drain()
        return self.completed(events) if events else ()

    def commit_answer(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        """A commit's answer, which isn't read where it is known to have no error code."""
        request_entry: Any = entry.request
        if request_entry.message is None or request_entry.error is not None or not has_no_codes(entry):
            return self.answer(entry)
        place = place_of(entry)
        self._waiting.pop(place_of(request_entry), None)
        events, group = self._commit(entry, request_entry, place, (), 0)
        if group is not None and group.pending:
            events += self.completed(group.drain())
        return events

    def _commit(
        self, entry: FrameEntry, request_entry: FrameEntry, place: Seen, topics: Iterable[Any], code: int
    ) -> tuple[list[GroupEvent], AnyGroup | None]:
        """A commit, answered: what was committed, and its group as it goes on, if that is known. topics: the
        answer's, if it has error codes; code: the first of them."""
        request: Any = request_entry.message
        events = self._commits.commit(entry, request, topics, place)
        known = self._groups.of_commit(request.group_id, request.member_id)
        if known is None or not self._hears(known, request_entry, code, place, place_of(request_entry)):
            return events, None
        waited_ns = (place.time_ns or 0) - (request_entry.time_ns or 0)
        member = known.members.get(request.member_id) if waited_ns >= STALL_NS and not code else None
        if member is not None:
            member.sent_ns = place.time_ns or 0  # it consumed until it was answered
        if known.kind == "streams":
            if code == ErrorCode.UNKNOWN_MEMBER_ID:
                known.is_told_unknown(request.member_id, place)
            elif not code and request.member_id not in known.members:
                known.is_accepted_late(request.member_id, place)
            return events, known  # whose members' sessions are those of heartbeats
        assert isinstance(known, ClassicGroup | ConsumerGroup)
        generation = getattr(request, "generation_id_or_member_epoch", -1)
        known.alive(request, code, generation, request_entry, place, host_of(request_entry))
        return events, self._groups.current(known, None, place)

    def _hears(
        self, group: Group, request_entry: FrameEntry, code: int, place: Seen, asked_place: Seen
    ) -> bool:
        """Whether an answer about a group is its coordinator's."""
        group.unanswered.pop(asked_place, None)
        broker, asked_ns = broker_of(request_entry.flow), asked_place.time_ns or 0
        is_coordinators = group.coordinator == broker
        waited_ns = (place.time_ns or 0) - asked_ns
        if waited_ns < RESUMES_NS:
            stalls = group.clocks.stalls if is_coordinators else self._coordinators.stalls_of(broker)
            if asked_ns > stalls.prompt_ns:
                stalls.prompt(asked_ns)
        elif code in UNAVAILABLE:
            pass
        elif request_entry.api_key in JOINING:
            self._coordinators.resumes(group, broker, place)
        elif waited_ns >= STALL_NS:
            self._coordinators.answers_late(group, broker, asked_place, place)
        if group.clocks.stall is not None and group.clocks.stall.is_over:
            group.report_stall()
        if self._ends is not None and code not in NOT_READ:
            self._ends.reads(request_entry, asked_place)
        if not code and group.outage is None and is_coordinators:
            return True
        if code == _LOADS and request_entry.api_key == _JOIN and group.outage is None:
            group.clocks.unavailable(place)  # it will be the coordinator, where sessions begin again
        return self._coordinators.accepts_answer(group, broker, place, accepted=code not in UNAVAILABLE)

    def _beat(
        self, entry: FrameEntry, request_entry: FrameEntry, message: Any, place: Seen, asked_place: Seen
    ) -> AnyGroup | None:
        """A heartbeat, answered: the group that it is about as it goes on, if it is of this kind."""
        request: Any = request_entry.message
        group: AnyGroup | None
        code = message.error_code
        if entry.api_key == _HEARTBEAT:
            group = self._groups.of_classic(request.group_id)
            if not self._hears(group, request_entry, code, place, asked_place):
                return None
            group.alive(
                request,
                message.error_code,
                request.generation_id,
                request_entry,
                place,
                host_of(request_entry),
            )
        else:
            kind = MODERN[entry.api_key or 0]
            group = self._groups.of_heartbeat(kind, request, message, place, asked_place)
            if group is None:
                return None
            if not self._hears(group, request_entry, code, place, asked_place):
                if request.member_epoch < 0:
                    group.stays(request.member_id)
                return None
            group.heartbeat(entry, request, message, place, asked_place, host_of(request_entry))
        return self._groups.current(group, request.member_id or None, place)

    def _of_classic(
        self,
        entry: FrameEntry,
        request_entry: FrameEntry,
        request: Any,
        message: Any,
        place: Seen,
        asked_place: Seen,
    ) -> AnyGroup:
        """JoinGroup, SyncGroup or LeaveGroup, answered: the group as it goes on."""
        group: ClassicGroup | ConsumerGroup
        if entry.api_key == _JOIN:
            group = self._groups.of_join_answer(request.group_id, message, place, asked_place)
        else:
            group = self._groups.of_classic(request.group_id)
        if not self._hears(group, request_entry, message.error_code, place, asked_place):
            group.refused_elsewhere(asked_place, request.member_id)
        elif entry.api_key == _JOIN:
            group.join_response(request, message, request_entry, place, host_of(request_entry))
        elif entry.api_key == _SYNC:
            group.sync_response(request, message, request_entry, place, host_of(request_entry))
        else:
            group.leave_response(request, request_entry, message, place, asked_place)
        return self._groups.current(group, request.member_id or None, place)

    def deletion_answer(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        """The answer to DeleteGroups."""
        request_entry: Any = entry.request
        message = message_of(entry)
        if message is None or not was_read(request_entry):
            return ()
        self.opens(request_entry)
        place = place_of(entry)
        events: list[GroupEvent] = []
        for result in message.results:
            if not result.error_code:
                group = self._groups.deleted(result.group_id, entry.client_id, place, place_of(request_entry))
                events += self.completed(group.drain())
        return events

    # --- what is missing or can't be read ---

    def unreadable(self, entry: FrameEntry) -> Iterator[GroupEvent]:
        """A frame that wasn't decoded whole: it answers its request, whatever it says."""
        request_place = None if entry.request is None else place_of(entry.request)
        request = None if request_place is None else self._waiting.pop(request_place, None)
        if request_place is None or request is None:
            return
        waiting = unanswered(request_place, request, unreadable=True)
        yield waiting
        code = getattr(entry.message, "error_code", 0)
        place = place_of(entry)
        if code:
            yield ErrorMet(
                group=waiting.group, **place._asdict(), api=waiting.api, error_code=code,
                member_id=waiting.member_id, client_id=waiting.client_id,
            )  # fmt: skip
        known = self._groups.known(waiting.group)
        if known is not None and entry.api_key in CLASSIC:
            known.unreadable(request_place, code, waiting.member_id or "", place)
            yield from known.drain()

    def hole(self, entry: UnreadableRange, place: Seen) -> Iterable[GroupEvent]:
        """The events of bytes that the capture lacks: one for each group that the connection is about."""
        source, _, target = entry.flow.partition(" > ")
        for flow in (entry.flow, f"{target} > {source}"):
            for group_key, name in self._ends.speakers_of(flow) if self._ends is not None else ():
                if (group := self._groups.at(group_key)) is not None and name.member_id in group.members:
                    group.report(
                        CaptureHole, place, member_id=name.member_id, flow=entry.flow, size=entry.length
                    )
                    yield from self.completed(group.drain())

    def asked_unseen(self, flow: str, place: Seen) -> None:
        """A request on a connection, which the capture lacks, was answered."""
        for group_key, name in self._ends.speakers_of(flow) if self._ends is not None else ():
            if (group := self._groups.at(group_key)) is not None:
                group.record_unseen_request(name.member_id, place)

    def finish(self) -> Iterator[GroupEvent]:
        """The requests that were never answered."""
        for place, request in self._waiting.items():
            yield unanswered(place, request)
        self._waiting.clear()

    # --- what all have in common ---

    def opens(self, request_entry: FrameEntry) -> None:
        """Note the connection of a request that was answered."""
        if self._ends is not None and request_entry.flow:
            self._ends.opens(request_entry)

    def completed(self, events: Iterable[GroupEvent]) -> list[GroupEvent]:
        """The events, and what they cost."""
        completed: list[GroupEvent] = []
        ends = self._ends
        for event in events:
            kind = type(event)
            if ends is not None and kind in ENDED:
                event = ends.see(event)
            if kind in COSTLY:
                completed += self._commits.costs.see(event)
            else:
                if kind is GroupDeleted:
                    self._commits.lag.group_deleted(event.group)
                completed.append(event)
        return completed


_new = tuple.__new__
