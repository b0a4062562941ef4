"""Recorded traffic to the timelines of groups: `timeline` reads entries and yields what happened.

Strategy: each frame goes where it belongs: to its group's state (`group_table`), to commits
and lag (`commits`), or to what else is known (`other_answers`: coordinators, topics, session timeouts); error
codes and requests without an answer are found here. Rules: only messages that were decoded whole count, and
an answer only with its request; nothing raises, whatever their order; memory is bounded by the limits that
the modules name, the oldest is forgotten. What is inferred comes when it is inferred, with the time at which
it must have happened.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from coordwire.capture.body_text import body_text, has_no_codes
from coordwire.capture.entries import ConnectionEnd, Entry, FrameEntry
from coordwire.capture.lazy_entries import LazyEntry
from coordwire.capture.redaction.entry_secrets import is_accounted_for
from coordwire.connection.dialect import KAFKA
from coordwire.timeline.events import ErrorMet, GroupEvent
from coordwire.timeline.from_wire.classic_group import ClassicGroup
from coordwire.timeline.from_wire.cluster_answers import OTHER_APIS, OtherAnswers
from coordwire.timeline.from_wire.commits import Commits
from coordwire.timeline.from_wire.connection_ends import ENDED, ConnectionEnds
from coordwire.timeline.from_wire.group_frames import (
    ABOUT_A_GROUP,
    BEATS,
    CLASSIC,
    COMMITS,
    JOINING,
    MODERN,
    Asked,
    errors_of,
    host_of,
    place_of,
    unanswered,
)  # fmt: skip
from coordwire.timeline.from_wire.group_table import AnyGroup, GroupTable, TopicsById, kept_as
from coordwire.timeline.from_wire.member_death import KnownTimeouts
from coordwire.timeline.from_wire.migrating_group import ConsumerGroup
from coordwire.timeline.from_wire.modern_group import ModernGroup
from coordwire.timeline.from_wire.rebalance_cost import COSTLY
from coordwire.timeline.from_wire.steady_beats import Beat, SteadyBeats
from coordwire.timeline.sightings import Seen, remember
from coordwire.versions import ApiKey

__all__ = ["USED_APIS", "DialectGroups", "Timeline", "TimelineDialect", "timeline"]

MOST_UNANSWERED = 10_000

_HEARTBEAT, _FETCH = int(ApiKey.HEARTBEAT), int(ApiKey.FETCH)
_JOIN, _SYNC, _LEAVE = int(ApiKey.JOIN_GROUP), int(ApiKey.SYNC_GROUP), int(ApiKey.LEAVE_GROUP)
_GROUPS: dict[int, type[AnyGroup]] = {
    _HEARTBEAT: ClassicGroup,
    **dict.fromkeys(map(int, MODERN), ModernGroup),
    int(ApiKey.CONSUMER_GROUP_HEARTBEAT): ConsumerGroup,
}
"""By a heartbeat's API, the class of a group that is about."""

LONG = 4096
"""A longer body is decoded rather than made into text, if nothing but whether it is whole is asked."""

USED_APIS: frozenset[int] = ABOUT_A_GROUP | OTHER_APIS - {ApiKey.API_VERSIONS}
"""The APIs that a timeline draws on; what can't be read of others takes nothing from it."""


class DialectGroups(Protocol):
    """The groups in frames of a protocol other than Kafka's."""

    def feed(self, entry: FrameEntry, place: Seen) -> Iterable[GroupEvent]:
        """The events that one frame adds."""

    def finish(self, place: Seen) -> Iterable[GroupEvent]:
        """The events at the end of the input."""


class TimelineDialect(Protocol):
    """A protocol other than Kafka's that has groups."""

    def groups(self) -> DialectGroups:
        """No groups yet, for one timeline."""


def timeline(
    entries: Iterable[Entry | ConnectionEnd], *, ends: bool = False, dialect: TimelineDialect | None = None
) -> Iterator[GroupEvent]:
    """What the entries of one or several captures say of groups, in their order.

    Entries come in the order of time; those of several captures may be mixed. ends: whether they have the
    ends of connections among them (`Capture.entries_and_ends`), for `MemberLeft.ending`. dialect: the
    captures', if it is not Kafka's; frames of any other dialect add nothing.
    """
    story = Timeline(ends=ends, dialect=dialect)
    for entry in entries:
        yield from story.feed(entry)
    yield from story.finish()


class Timeline:
    """As `timeline`, entry by entry."""

    def __init__(self, *, ends: bool = False, dialect: TimelineDialect | None = None) -> None:
        self._ends = ConnectionEnds() if ends else None
        self._completed = COSTLY | ENDED if ends else COSTLY
        self._names = TopicsById()
        self._timeouts = KnownTimeouts()
        self._groups = GroupTable(self._names, self._timeouts, self._ends.end_of if self._ends else None)
        self._commits = Commits(self._names.name_of)
        self._dialect_groups = None if dialect is None else dialect.groups()
        self._others = OtherAnswers(self._names, self._timeouts, self._groups, self._commits)
        self._waiting: OrderedDict[Seen, Asked | Beat] = OrderedDict()
        self._last = Seen(None, "", 0)
        self._beats = SteadyBeats()

    def feed(self, entry: Entry | ConnectionEnd) -> Iterable[GroupEvent]:
        """What one entry adds. It must be drawn before the next entry is fed.

        Most frames are heartbeats of groups that nothing happens to, and requests; they take the short way.
        """
        if not isinstance(entry, FrameEntry):
            if self._ends is not None and isinstance(entry, ConnectionEnd):
                self._ends.ends(entry)
            return ()
        key = entry.api_key
        events: Iterable[GroupEvent] | None = None
        if key in BEATS:
            events = self._steady(entry) if entry.dialect == KAFKA else None
        elif key in COMMITS:
            events = self._stored(entry)
        elif key not in ABOUT_A_GROUP:
            events = self._of_no_group(entry)
        if events is not None:
            return events
        if isinstance(entry, LazyEntry):
            entry.decode()
        if entry.dialect != KAFKA or entry.error is not None:
            return self._events(self._read(entry))
        if not is_accounted_for(entry):  # its names may be a secret
            return self._events(self._unreadable(entry))
        message: Any = entry.message
        if message is None or key in JOINING:
            return self._events(self._read(entry))
        if entry.direction == "request":
            place = self._last = place_of(entry)
            if key in ABOUT_A_GROUP:
                if key in BEATS:
                    kind = kept_as(MODERN.get(key or 0, "classic"))
                    self._beats.learn_request(entry, message, kind)
                self._asks(entry, message, place)
            return ()
        asked = entry.request
        if key not in BEATS or asked is None or asked.message is None or asked.error or message.error_code:
            return self._events(self._read(entry))
        self._beats.learn_answer(asked, entry, message)
        place = self._last = place_of(entry)
        asked_place = place_of(asked)
        self._waiting.pop(asked_place, None)
        group = self._beat(entry, asked, message, place, asked_place)
        return self._events(group.drain()) if group is not None and group.pending else ()

    def _steady(self, entry: FrameEntry) -> Iterable[GroupEvent] | None:
        """The events of a heartbeat, or of its answer, whose bytes are known; None where it must be read."""
        asked = entry.request
        if asked is None:
            if entry.direction == "response" or (beat := self._beats.find(entry)) is None:
                return None
            place = self._last = _new(Seen, (entry.time_ns, entry.capture, entry.number, entry.packet))
            waiting = self._waiting
            waiting[place] = beat
            if len(waiting) > MOST_UNANSWERED:
                remember(waiting, place, beat, MOST_UNANSWERED)
            if (group := self._groups.at(beat.kept)) is not None:
                group.asks(beat.member_id, place)
            if self._ends is not None:
                self._ends.speaks(beat.member_id, entry.flow, place)
            return ()
        asked_at: Any = asked.time_ns, asked.capture, asked.number, asked.packet  # equal to its place
        waits = self._waiting.get(asked_at)
        beat = waits if type(waits) is Beat and asked.body else self._beats.find(asked)
        if beat is None or beat.answer is None or beat.answer != entry.body[4:]:
            return None
        group = self._groups.at(beat.kept)
        if type(group) is not _GROUPS[beat.key] or (member := group.members.get(beat.member_id)) is None:
            return None
        place = self._last = _new(Seen, (entry.time_ns, entry.capture, entry.number, entry.packet))
        self._waiting.pop(asked_at, None)
        if isinstance(group, ClassicGroup):
            group.stays(member, beat.epoch, place)
        else:
            group.goes_on(member, beat.answered_epoch, beat.interval_ms, place, _new(Seen, asked_at))
            group = self._groups.current(group, beat.member_id, place)
        return self._events(group.drain()) if group.pending else ()

    def _stored(self, entry: FrameEntry) -> list[GroupEvent] | None:
        """The events of a commit's answer without any error code; None for all else."""
        asked = entry.request
        if asked is None or asked.error is not None or asked.message is None or not has_no_codes(entry):
            return None
        place = self._last = place_of(entry)
        self._waiting.pop(place_of(asked), None)
        events, group = self._commit(entry, asked, place, (), 0)
        if group is not None and group.pending:
            events += self._events(group.drain())
        return events

    def _of_no_group(self, entry: FrameEntry) -> Iterable[GroupEvent] | None:
        """The events of a frame that is about no group, where few of its kind need be decoded for them; None
        where it must be read."""
        key, asked = entry.api_key, entry.request
        if entry.dialect != KAFKA:
            return None
        if entry.direction == "request":
            if key == _FETCH and self._ends is not None:
                self._ends.fetches(entry)
            if not _is_sound(entry):
                return None
            self._last = place_of(entry)
            return ()
        if asked is None or not _is_sound(asked):
            return None
        if key == _FETCH and entry.error is None and entry.message is not None:
            self._opens(asked)
            place = self._last = place_of(entry)
            return self._commits.ends(entry.message, place)
        if key in OTHER_APIS or not _is_sound(entry):
            return None
        self._opens(asked)
        self._last = place_of(entry)
        return ()

    def _opens(self, asked: FrameEntry) -> None:
        """A request that was answered shows whose its connection is."""
        if self._ends is not None and asked.flow:
            self._ends.opens(asked)

    def _commit(
        self, entry: FrameEntry, asked: FrameEntry, place: Seen, topics: Iterable[Any], code: int
    ) -> tuple[list[GroupEvent], AnyGroup | None]:
        """A commit, answered: what was committed, and its group as it goes on, if that is known. topics: the
        answer's, if it has error codes; code: the first of them."""
        request: Any = asked.message
        events = self._commits.commit(entry, request, topics, place)
        known = self._groups.known(request.group_id)
        if known is None:
            return events, None
        generation = getattr(request, "generation_id_or_member_epoch", -1)
        known.alive(request, code, generation, asked, place, host_of(asked))
        return events, self._groups.current(known, None, place)

    def _events(self, events: Iterable[GroupEvent]) -> list[GroupEvent]:
        """The events, and what they cost."""
        found: list[GroupEvent] = []
        for event in events:
            if type(event) in self._completed:
                found += self._tell(event)
            else:
                found.append(event)
        return found

    def _tell(self, event: GroupEvent) -> Iterator[GroupEvent]:
        if self._ends is not None:
            event = self._ends.see(event)
        yield from self._commits.costs.see(event)

    def _read(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        message, asked = entry.message, entry.request
        if entry.error is not None or message is None:
            return self._unreadable(entry)
        place = self._last = place_of(entry)
        if entry.dialect != KAFKA:
            return () if self._dialect_groups is None else self._dialect_groups.feed(entry, place)
        if entry.direction == "request":
            return self._request(entry, message, place)
        if asked is not None and asked.message is not None and not asked.error:
            return self._response(entry, asked, asked.message, message, place)
        if asked is not None and asked.released:
            return self._unreadable(entry)  # without its request it says little more
        return ()

    def finish(self) -> Iterator[GroupEvent]:
        """What there is to say when the input is at its end."""
        for place, asked in self._waiting.items():
            yield unanswered(place, asked)
        self._waiting.clear()
        for group in self._groups:
            group.finish(self._last)
            yield from self._events(group.drain())
        if self._dialect_groups is not None:
            yield from self._dialect_groups.finish(self._last)
        yield from self._commits.costs.finish()

    def _unreadable(self, entry: FrameEntry) -> Iterator[GroupEvent]:
        """A frame that wasn't decoded whole: it answers its request, whatever it says."""
        asked = None if entry.request is None else place_of(entry.request)
        left = None if asked is None else self._waiting.pop(asked, None)
        if asked is None or left is None:
            return
        waiting = unanswered(asked, left, unreadable=True)
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
            known.unreadable(asked, code, waiting.member_id or "", place)
            yield from known.drain()

    # --- requests ---

    def _request(self, entry: FrameEntry, message: Any, place: Seen) -> Iterable[GroupEvent]:
        key = entry.api_key
        if key not in ABOUT_A_GROUP:
            return ()
        self._asks(entry, message, place)
        if key == _LEAVE:
            self._groups.of_classic(message.group_id).leave_request(message, place)
        elif key in (_JOIN, _SYNC):
            joins = place if key == _JOIN else None
            group = self._groups.of_classic(message.group_id, joins)
            if joins is not None:
                group.join_request(entry, message, place, host_of(entry))
            else:
                group.sync_request(message, place)
            return group.drain()
        return ()

    def _asks(self, entry: FrameEntry, message: Any, place: Seen) -> None:
        """A member's request waits for its answer."""
        key = entry.api_key
        assert key is not None
        group_id, member_id = message.group_id, message.member_id
        if self._ends is not None:
            self._ends.opens(entry)
            if member_id:
                self._ends.speaks(member_id, entry.flow, place)
        remember(self._waiting, place, (group_id, key, member_id or None, entry.client_id), MOST_UNANSWERED)
        if key in JOINING:
            return  # their members' sessions stop, or go on as they were
        renews = key not in COMMITS and getattr(message, "member_epoch", 0) >= 0
        self._groups.asks(group_id, MODERN.get(key, "classic"), member_id, place, renews=renews)

    # --- responses ---

    def _response(
        self, entry: FrameEntry, asked: FrameEntry, request: Any, message: Any, place: Seen
    ) -> Iterable[GroupEvent]:
        key = entry.api_key
        if key not in ABOUT_A_GROUP:
            self._opens(asked)
            return self._others.feed(entry, request, message, place) if key in OTHER_APIS else ()
        asked_place = place_of(asked)
        self._waiting.pop(asked_place, None)
        self._given(asked, request, message)
        events: list[GroupEvent] = [*errors_of(entry, request, message, place)]
        group: AnyGroup | None
        if key in BEATS:
            group = self._beat(entry, asked, message, place, asked_place)
        elif key in CLASSIC:
            group = self._of_classic(entry, asked, request, message, place, asked_place)
        else:
            codes = (one.error_code for topic in message.topics for one in topic.partitions)
            code = next(filter(None, codes), 0)
            more, group = self._commit(entry, asked, place, message.topics, code)
            events += more
        if group is not None and group.pending:
            events += group.drain()
        return events

    def _given(self, asked: FrameEntry, request: Any, message: Any) -> None:
        """A member may be given its id by an answer."""
        member_id = getattr(message, "member_id", None)
        if self._ends is not None and member_id and not request.member_id:
            self._ends.speaks(member_id, asked.flow, place_of(asked))

    def _beat(
        self, entry: FrameEntry, asked: FrameEntry, message: Any, place: Seen, asked_place: Seen
    ) -> AnyGroup | None:
        """A heartbeat, answered: the group that it is about as it goes on, if it is of this kind."""
        request: Any = asked.message
        group: AnyGroup | None
        self._given(asked, request, message)
        if entry.api_key == _HEARTBEAT:
            group = self._groups.of_classic(request.group_id)
            group.alive(request, message.error_code, request.generation_id, asked, place, host_of(asked))
        else:
            kind = MODERN[entry.api_key or 0]
            group = self._groups.of_heartbeat(kind, request, message, asked_place)
            if group is None:
                return None
            group.heartbeat(entry, request, message, place, asked_place, host_of(asked))
        return self._groups.current(group, request.member_id or None, place)

    def _of_classic(
        self, entry: FrameEntry, asked: FrameEntry, request: Any, message: Any, place: Seen, asked_place: Seen
    ) -> AnyGroup:
        """JoinGroup, SyncGroup or LeaveGroup, answered: the group as it goes on."""
        group: ClassicGroup | ConsumerGroup
        if entry.api_key == _JOIN:
            group = self._groups.of_join_answer(request.group_id, message, asked_place)
            group.join_response(request, message, place, asked_place)
        else:
            group = self._groups.of_classic(request.group_id)
            if entry.api_key == _SYNC:
                group.sync_response(request, message, asked, place, host_of(asked))
            else:
                group.leave_response(request, message, place, asked_place)
        return self._groups.current(group, request.member_id or None, place)


_new = tuple.__new__


def _is_sound(entry: FrameEntry) -> bool:
    """Whether it is known, without its message, that a frame is whole."""
    return len(entry.body) <= LONG and (entry.text or body_text(entry))[0] is not None
