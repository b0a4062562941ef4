"""Recorded traffic of one cluster to the timelines of its groups.

Strategy: each frame goes where it belongs: to its group's state (`group_table`), to commits
and lag (`commits`), or to what else is known (`other_answers`: coordinators, topics, session timeouts); error
codes and requests without an answer are found here. Rules: only messages that were decoded whole count, and
an answer only with its request; nothing raises, whatever their order; memory is bounded by the limits that
the modules name, the oldest is forgotten. What is inferred comes when it is inferred, with the time at which
it must have happened.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from coordwire.capture.body_text import has_no_codes
from coordwire.capture.entries import AnswerHeld, ConnectionEnd, ConnectionSign, Entry, FrameEntry
from coordwire.capture.frame_decoding import UNDECODED, LazyEntry
from coordwire.capture.framing import MID_STREAM
from coordwire.capture.redaction.entry_secrets import is_fully_decoded, texts_account_for
from coordwire.capture.tcp.reassembly import ENDED as LOST_AT_END
from coordwire.capture.tcp.reassembly import FULL, MISSED
from coordwire.connection.dialect import KAFKA
from coordwire.enums import ErrorCode
from coordwire.errors import UnreadableRange
from coordwire.timeline.events import (
    CaptureHole,
    ClusterFound,
    CoordinatorFound,
    ErrorMet,
    GroupDeleted,
    GroupEvent,
    Kind,
)
from coordwire.timeline.evidence import MemberName, Seen, remember
from coordwire.timeline.from_wire.classic_group import ClassicGroup
from coordwire.timeline.from_wire.cluster_answers import OTHER_APIS, OtherAnswers
from coordwire.timeline.from_wire.clusters import CLUSTER_APIS, Clusters
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
    place_of,
    unanswered,
)  # fmt: skip
from coordwire.timeline.from_wire.group_table import AnyGroup, GroupTable, TopicsById, kept_as
from coordwire.timeline.from_wire.member_death import KnownTimeouts
from coordwire.timeline.from_wire.migrating_group import ConsumerGroup
from coordwire.timeline.from_wire.modern_group import ModernGroup
from coordwire.timeline.from_wire.rebalance_cost import COSTLY
from coordwire.timeline.from_wire.repeated_answers import RepeatedAnswers
from coordwire.timeline.group import UNAVAILABLE, Group
from coordwire.timeline.stalls import RESUMES_NS, STALL_NS
from coordwire.versions import ApiKey

__all__ = ["SECOND_CLUSTER", "USED_APIS", "ClusterTimeline", "DialectGroups", "TimelineDialect", "message_of"]

_Handler = Callable[[FrameEntry], Iterable[GroupEvent]]

MOST_UNANSWERED = 10_000
FETCHES_BY_ID = 13
"""The version of Fetch that has topics' ids instead of their names."""

_HEARTBEAT, _API_VERSIONS, _METADATA = map(int, (ApiKey.HEARTBEAT, ApiKey.API_VERSIONS, ApiKey.METADATA))
_DELETE_GROUPS = int(ApiKey.DELETE_GROUPS)
_LOADS = int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
_NO_CODE = bytes(2)
_FETCH, _SHARE_FETCH = int(ApiKey.FETCH), int(ApiKey.SHARE_FETCH)
_JOIN, _SYNC, _LEAVE = int(ApiKey.JOIN_GROUP), int(ApiKey.SYNC_GROUP), int(ApiKey.LEAVE_GROUP)
_KEPT_AS: dict[int, Kind] = {key: kept_as(MODERN.get(key, "classic")) for key in ABOUT_A_GROUP}
"""By an API, the kind that its groups are kept as."""

NEVER_CAPTURED = frozenset((LOST_AT_END, FULL, MISSED))
"""Why bytes are unreadable that were on the wire, and are not in the capture."""

NOT_READ = frozenset(map(int, (*UNAVAILABLE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)))
"""Errors of answers to a request that restarted no session."""

USED_APIS: frozenset[int] = ABOUT_A_GROUP | OTHER_APIS - {_API_VERSIONS}
"""The APIs that a timeline draws on; what can't be read of others takes nothing from it."""


SECOND_CLUSTER: list[GroupEvent] = [ClusterFound(group="", time_ns=None, source="", number=0)]
"""In place of the events of an answer that shows a second cluster, and has had no effect."""


class DialectGroups(Protocol):
    """The groups in frames of a protocol other than Kafka's."""

    def feed(self, entry: FrameEntry, place: Seen) -> Iterable[GroupEvent]:
        """The events that one frame adds."""

    def end(self, end: ConnectionEnd, place: Seen) -> Iterable[GroupEvent]:
        """The events that the end of a connection adds."""

    def finish(self, place: Seen) -> Iterable[GroupEvent]:
        """The events at the end of the input."""


class TimelineDialect(Protocol):
    """A protocol other than Kafka's that has groups."""

    def groups(self) -> DialectGroups:
        """No groups yet, for one timeline."""


class ClusterTimeline:
    """The events of the entries that are fed. clusters: what learns of them, until there is a second one;
    second: the answer that showed it."""

    def __init__(
        self, *, ends: bool = False, dialect: TimelineDialect | None = None, clusters: Clusters | None = None
    ) -> None:
        self.clusters = clusters
        self.second: FrameEntry | None = None
        self._ends = ConnectionEnds() if ends else None
        self._names = TopicsById()
        self._timeouts = KnownTimeouts()
        self._groups = GroupTable(self._names, self._timeouts, self._ends)
        self._coordinators = Coordinators(self._groups, self._ends)
        self._commits = Commits(self._names)
        self._dialect = dialect
        self._dialect_groups: DialectGroups | None = None
        self._other_answers = OtherAnswers(self._names, self._timeouts, self._groups, self._commits)
        self._waiting: OrderedDict[Seen, Asked] = OrderedDict()
        self._last_frame: FrameEntry | None = None
        self._repeated = RepeatedAnswers(self._names)
        self._requests: dict[int | None, _Handler] = {
            None: self._unknown_answer,
            **dict.fromkeys(USED_APIS, self._other_request),
            **dict.fromkeys((_FETCH, _SHARE_FETCH), self._fetch_request),
            **dict.fromkeys(ABOUT_A_GROUP, self._group_request),
        }
        """By their API; no others' requests say anything. An answer without its request is among them."""
        self._answers: dict[int | None, _Handler] = {
            **dict.fromkeys(OTHER_APIS, self._other_answer),
            _API_VERSIONS: self._versions_answer,
            _METADATA: self._topics_answer,
            _FETCH: self._fetch_answer,
            _DELETE_GROUPS: self._deletion_answer,
            **dict.fromkeys(ABOUT_A_GROUP, self._group_answer),
            **dict.fromkeys(COMMITS, self._commit_answer),
        }

    @property
    def group_count(self) -> int:
        """The groups that are known."""
        return sum(1 for _ in self._groups)

    def feed_all(self, entries: Iterable[Entry | ConnectionSign]) -> list[GroupEvent]:
        """The events of some entries, as `feed` gives them one by one, up to one that sets `second`."""
        all_events: list[GroupEvent] = []
        of_request, of_answer, unused_answer = self._requests.get, self._answers.get, self._unused_answer
        for entry in entries:
            if type(entry) in UNDECODED:  # a call less than `feed`
                frame: Any = entry
                self._last_frame = frame
                if frame.request is not None:
                    events = of_answer(frame.api_key, unused_answer)(frame)
                elif (handle := of_request(frame.api_key)) is not None:
                    events = handle(frame)
                else:
                    continue
            else:
                events = self.feed(entry)
            if events:
                if events is SECOND_CLUSTER:
                    break
                all_events += events
        return all_events

    def feed(self, entry: Entry | ConnectionSign) -> Iterable[GroupEvent]:
        """The events of one entry. They must be drawn before the next entry is fed."""
        if type(entry) not in UNDECODED:
            if not isinstance(entry, FrameEntry):
                return self._sign(entry)
            self._last_frame = entry
            if entry.dialect != KAFKA:
                return self._events(self._read(entry))
        frame: Any = entry
        self._last_frame = frame
        if frame.request is not None:
            return self._answers.get(frame.api_key, self._unused_answer)(frame)
        handle = self._requests.get(frame.api_key)
        return () if handle is None else handle(frame)

    @property
    def _last(self) -> Seen:
        """Where the last frame was seen, whatever it is."""
        return Seen(None, "", 0) if self._last_frame is None else place_of(self._last_frame)

    def _sign(self, entry: UnreadableRange | ConnectionSign) -> Iterable[GroupEvent]:
        """The events of all but frames."""
        if isinstance(entry, ConnectionEnd) and self._dialect_groups is not None:
            place = Seen(entry.time_ns, entry.capture, self._last.number, entry.packet)
            return list(self._dialect_groups.end(entry, place))
        if self._ends is not None and isinstance(entry, ConnectionEnd):
            outage = self._ends.ends(entry)
            if outage is not None:
                self._coordinators.leaves(outage, self._last.number)
        elif self._ends is not None and isinstance(entry, AnswerHeld):
            self._asked_unseen(entry.flow, Seen(entry.time_ns, entry.capture, 0, entry.packet))
        elif isinstance(entry, UnreadableRange) and entry.flow and entry.reason != MID_STREAM:
            self._groups.holes.count += 1
            if entry.reason in NEVER_CAPTURED:
                return self._hole(entry)
        return ()

    # --- commits whose answers say nothing ---

    def _commit_answer(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        """A commit's answer, which isn't read where it is known to have no error code."""
        request_entry: Any = entry.request
        if request_entry.message is None or request_entry.error is not None or not has_no_codes(entry):
            return self._group_answer(entry)
        place = place_of(entry)
        self._waiting.pop(place_of(request_entry), None)
        events, group = self._commit(entry, request_entry, place, (), 0)
        if group is not None and group.pending:
            events += self._events(group.drain())
        return events

    # --- frames about no group ---

    def _unknown_answer(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        """An answer whose request is not in the capture."""
        if self._ends is not None and entry.direction == "response":
            broker, _, client = entry.flow.partition(" > ")
            self._asked_unseen(f"{client} > {broker}", place_of(entry))
        return ()

    def _fetch_request(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        """A Fetch or ShareFetch: its client consumes."""
        if self._ends is not None:
            self._ends.fetches(entry)
        return self._other_request(entry) if entry.api_key == _FETCH else ()

    def _other_request(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        """A request that says nothing before its answer; it is decoded, unless it is known to be whole, since
        what can't be read of it counts for who feeds it."""
        if isinstance(entry, LazyEntry) and not _has_text(entry):
            entry.decode()
        return ()

    def _fetch_answer(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        """The answer to a Fetch, most of which say where partitions end."""
        request_entry: Any = entry.request
        ends = self._repeated.find(entry)
        if ends is None:
            message = message_of(entry)
            if message is None:
                return ()
            ends = self._commits.ends_in(message)
            self._repeated.remember(entry, ends)
        if not (_has_text(request_entry) or _was_read(request_entry)):
            return ()
        self._opens(request_entry)
        by_name = (entry.api_version or 0) < FETCHES_BY_ID
        return self._commits.ends(ends, place_of(entry), by_name=by_name) if ends else ()

    def _other_answer(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        """An answer about something else than a group's members."""
        request_entry: Any = entry.request
        message = message_of(entry)
        if message is None or not _was_read(request_entry):
            return ()
        clusters = self.clusters
        if clusters is not None and entry.api_key in CLUSTER_APIS:
            clusters.learn(entry, message)
            if clusters.several:
                self.second = entry
                return SECOND_CLUSTER
        self._opens(request_entry)
        place = place_of(entry)
        events = list(self._other_answers.feed(entry, request_entry.message, message, place))
        for event in events:
            if type(event) is CoordinatorFound and event.moved:
                self._coordinators.moves(self._groups.of_id(event.group), place)
        if entry.api_key == _METADATA:
            self._repeated.remember(entry)
        return events

    def _deletion_answer(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        """The answer to DeleteGroups."""
        request_entry: Any = entry.request
        message = message_of(entry)
        if message is None or not _was_read(request_entry):
            return ()
        self._opens(request_entry)
        place = place_of(entry)
        events: list[GroupEvent] = []
        for result in message.results:
            if not result.error_code:
                group = self._groups.deleted(result.group_id, entry.client_id, place, place_of(request_entry))
                events += self._events(group.drain())
        return events

    def _topics_answer(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        """The answer to Metadata, which names topics."""
        request_entry: Any = entry.request
        if self._repeated.find(entry) is None:
            return self._other_answer(entry)
        if _was_read(request_entry):
            self._opens(request_entry)
        return ()

    def _versions_answer(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        """The answer to ApiVersions, of which only a refusal says something; its error code comes first."""
        if entry.body[4:6] == _NO_CODE:
            request_entry: Any = entry.request
            is_new = self._ends is not None and self._ends.knows(request_entry) is None
            events = self._unused_answer(entry)
            if self._ends is not None and is_new:
                self._ends.begun_count += 1
                self._names_software(request_entry)
            return events
        message: Any = entry.message
        is_refusal = entry.error is None and message is not None and message.error_code
        return self._other_answer(entry) if is_refusal else self._unused_answer(entry)

    def _names_software(self, request_entry: FrameEntry) -> None:
        """ApiVersions was asked first on a connection, with the client's software from version 3 on."""
        request: Any = message_of(request_entry) if (request_entry.api_version or 0) >= 3 else None
        if request is not None and self._ends is not None:
            self._ends.names_software(
                request_entry, request.client_software_name, request.client_software_version
            )

    def _unused_answer(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        """An answer that says only that its connection is in use; it is read if that isn't known yet."""
        request_entry: Any = entry.request
        if self._ends is None or not request_entry.flow or self._ends.knows(request_entry):
            return ()
        if self._repeated.find(entry) is None:
            if message_of(entry) is None:
                return ()
            self._repeated.remember(entry)
        if _was_read(request_entry):
            self._ends.opens(request_entry)
        return ()

    def _hole(self, entry: UnreadableRange) -> Iterable[GroupEvent]:
        """The events of bytes that the capture lacks: one for each group that the connection is about."""
        source, _, target = entry.flow.partition(" > ")
        place = Seen(entry.time_ns, entry.file, self._last.number, entry.packet)
        for flow in (entry.flow, f"{target} > {source}"):
            for group_key, name in self._ends.speakers_of(flow) if self._ends is not None else ():
                if (group := self._groups.at(group_key)) is not None and name.member_id in group.members:
                    group.report(
                        CaptureHole, place, member_id=name.member_id, flow=entry.flow, size=entry.length
                    )
                    yield from self._events(group.drain())

    def _asked_unseen(self, flow: str, place: Seen) -> None:
        """A request on a connection, which the capture lacks, was answered."""
        for group_key, name in self._ends.speakers_of(flow) if self._ends is not None else ():
            if (group := self._groups.at(group_key)) is not None:
                group.record_unseen_request(name.member_id, place)

    def _opens(self, request_entry: FrameEntry) -> None:
        """Note the connection of a request that was answered."""
        if self._ends is not None and request_entry.flow:
            self._ends.opens(request_entry)

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

    def _events(self, events: Iterable[GroupEvent]) -> list[GroupEvent]:
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

    def _read(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        message, request_entry = entry.message, entry.request
        if entry.error is not None or message is None:
            return self._unreadable(entry)
        place = place_of(entry)
        if entry.dialect != KAFKA:
            if self._dialect is None:
                return ()
            if self._dialect_groups is None:
                self._dialect_groups = self._dialect.groups()
            return self._dialect_groups.feed(entry, place)
        if request_entry is None:
            return ()
        if request_entry.message is None or request_entry.error is not None:
            # Without its request it says little more.
            return self._unreadable(entry) if request_entry.released else ()
        self._opens(request_entry)
        if entry.api_key not in OTHER_APIS:
            return ()
        return self._other_answers.feed(entry, request_entry.message, message, place)

    def finish(self) -> Iterator[GroupEvent]:
        """The events that only the end of the input shows."""
        for place, request in self._waiting.items():
            yield unanswered(place, request)
        self._waiting.clear()
        for group in self._coordinators.finish(self._last):
            yield from self._events(group.drain())
        for group in self._groups:
            group.finish(group.outage.place if group.outage is not None and group.is_away else self._last)
            yield from self._events(group.drain())
        if self._dialect_groups is not None:
            yield from self._dialect_groups.finish(self._last)
        yield from self._commits.costs.finish()
        yield from self._commits.lag.finish()

    def _unreadable(self, entry: FrameEntry) -> Iterator[GroupEvent]:
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

    # --- requests ---

    def _group_request(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        """A request about a group."""
        message = message_of(entry)
        if message is None:
            return self._events(self._unreadable(entry))
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
        return self._events(group.drain()) if group.pending else ()

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

    # --- responses ---

    def _group_answer(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        """An answer about a group."""
        message: Any = message_of(entry)
        request_entry: Any = entry.request
        if message is None:
            return self._events(self._unreadable(entry))
        request: Any = request_entry.message
        if request is None or request_entry.error is not None:
            return self._events(self._read(entry))
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
        return self._events(events) if events else ()

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
        if code == _LOADS and group.outage is None:
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


_new = tuple.__new__


def message_of(entry: FrameEntry) -> Any:
    """The message of a frame that was read whole; None of any other, whose names may be a secret."""
    if isinstance(entry, LazyEntry) and entry.decode() and texts_account_for(entry.api_key):
        return entry.message
    if entry.error is not None or not is_fully_decoded(entry):
        return None
    return entry.message


def _has_text(entry: FrameEntry) -> bool:
    """Whether the text of a frame was made, which only whole frames have."""
    return entry.text is not None and entry.text[0] is not None


def _was_read(request_entry: FrameEntry) -> bool:
    """Whether a request was read to its end."""
    return request_entry.error is None and request_entry.message is not None
