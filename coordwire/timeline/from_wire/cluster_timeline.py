"""Recorded traffic of one cluster to the timelines of its groups.

Strategy: each frame goes where it belongs: requests and answers about groups to `group_conversations`, ends
of partitions to `commits`, what else is known to `cluster_answers` (coordinators, topics, session timeouts);
what shows only a connection in use is not read. Rules: only messages that were decoded whole count, and
an answer only with its request; nothing raises, whatever their order; memory is bounded by the limits that
the modules name, the oldest is forgotten. What is inferred comes when it is inferred, with the time at which
it must have happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from coordwire.capture.entries import AnswerHeld, ConnectionEnd, ConnectionSign, Entry, FrameEntry
from coordwire.capture.frame_decoding import UNDECODED, LazyEntry
from coordwire.capture.framing import MID_STREAM
from coordwire.capture.tcp.reassembly import ENDED as LOST_AT_END
from coordwire.capture.tcp.reassembly import FULL, MISSED
from coordwire.connection.dialect import KAFKA
from coordwire.errors import UnreadableRange
from coordwire.timeline.events import ClusterFound, CoordinatorFound, GroupEvent
from coordwire.timeline.evidence import Seen
from coordwire.timeline.from_wire.cluster_answers import OTHER_APIS, OtherAnswers
from coordwire.timeline.from_wire.clusters import CLUSTER_APIS, Clusters
from coordwire.timeline.from_wire.commits import Commits
from coordwire.timeline.from_wire.connection_ends import ConnectionEnds
from coordwire.timeline.from_wire.coordinators import Coordinators
from coordwire.timeline.from_wire.group_conversations import GroupConversations
from coordwire.timeline.from_wire.group_frames import ABOUT_A_GROUP, COMMITS, message_of, place_of, was_read
from coordwire.timeline.from_wire.group_table import GroupTable, TopicsById
from coordwire.timeline.from_wire.member_death import KnownTimeouts
from coordwire.timeline.from_wire.repeated_answers import RepeatedAnswers
from coordwire.versions import ApiKey

__all__ = ["SECOND_CLUSTER", "USED_APIS", "ClusterTimeline", "DialectGroups", "TimelineDialect"]

_Handler = Callable[[FrameEntry], Iterable[GroupEvent]]

FETCHES_BY_ID = 13
"""The version of Fetch that has topics' ids instead of their names."""

_API_VERSIONS, _METADATA = int(ApiKey.API_VERSIONS), int(ApiKey.METADATA)
_DELETE_GROUPS = int(ApiKey.DELETE_GROUPS)
_NO_CODE = bytes(2)
_FETCH, _SHARE_FETCH = int(ApiKey.FETCH), int(ApiKey.SHARE_FETCH)

NEVER_CAPTURED = frozenset((LOST_AT_END, FULL, MISSED))
"""Why bytes are unreadable that were on the wire, and are not in the capture."""

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
        self._conversations = GroupConversations(self._groups, self._coordinators, self._commits, self._ends)
        self._dialect = dialect
        self._dialect_groups: DialectGroups | None = None
        self._other_answers = OtherAnswers(self._names, self._timeouts, self._groups, self._commits)
        self._last_frame: FrameEntry | None = None
        self._repeated = RepeatedAnswers(self._names)
        self._requests: dict[int | None, _Handler] = {
            None: self._unknown_answer,
            **dict.fromkeys(USED_APIS, self._other_request),
            **dict.fromkeys((_FETCH, _SHARE_FETCH), self._fetch_request),
            **dict.fromkeys(ABOUT_A_GROUP, self._conversations.request),
        }
        """By their API; no others' requests say anything. An answer without its request is among them."""
        self._answers: dict[int | None, _Handler] = {
            **dict.fromkeys(OTHER_APIS, self._other_answer),
            _API_VERSIONS: self._versions_answer,
            _METADATA: self._topics_answer,
            _FETCH: self._fetch_answer,
            _DELETE_GROUPS: self._conversations.deletion_answer,
            **dict.fromkeys(ABOUT_A_GROUP, self._conversations.answer),
            **dict.fromkeys(COMMITS, self._conversations.commit_answer),
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
                return self._conversations.completed(self._of_dialect(entry))
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
            self._conversations.asked_unseen(entry.flow, Seen(entry.time_ns, entry.capture, 0, entry.packet))
        elif isinstance(entry, UnreadableRange) and entry.flow and entry.reason != MID_STREAM:
            self._groups.holes.count += 1
            if entry.reason in NEVER_CAPTURED:
                return self._conversations.hole(
                    entry, Seen(entry.time_ns, entry.file, self._last.number, entry.packet)
                )
        return ()

    # --- frames about no group ---

    def _unknown_answer(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        """An answer whose request is not in the capture."""
        if self._ends is not None and entry.direction == "response":
            broker, _, client = entry.flow.partition(" > ")
            self._conversations.asked_unseen(f"{client} > {broker}", place_of(entry))
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
        if not (_has_text(request_entry) or was_read(request_entry)):
            return ()
        self._conversations.opens(request_entry)
        by_name = (entry.api_version or 0) < FETCHES_BY_ID
        return self._commits.ends(ends, place_of(entry), by_name=by_name) if ends else ()

    def _other_answer(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        """An answer about something else than a group's members."""
        request_entry: Any = entry.request
        message = message_of(entry)
        if message is None or not was_read(request_entry):
            return ()
        clusters = self.clusters
        if clusters is not None and entry.api_key in CLUSTER_APIS:
            clusters.learn(entry, message)
            if clusters.several:
                self.second = entry
                return SECOND_CLUSTER
        self._conversations.opens(request_entry)
        place = place_of(entry)
        events = list(self._other_answers.feed(entry, request_entry.message, message, place))
        for event in events:
            if type(event) is CoordinatorFound and event.moved:
                self._coordinators.moves(self._groups.of_id(event.group), place)
        if entry.api_key == _METADATA:
            self._repeated.remember(entry)
        return events

    def _topics_answer(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        """The answer to Metadata, which names topics."""
        request_entry: Any = entry.request
        if self._repeated.find(entry) is None:
            return self._other_answer(entry)
        if was_read(request_entry):
            self._conversations.opens(request_entry)
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
        if was_read(request_entry):
            self._ends.opens(request_entry)
        return ()

    def _of_dialect(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        """A frame of a protocol other than Kafka's."""
        if entry.error is not None or entry.message is None:
            return self._conversations.unreadable(entry)
        if self._dialect is None:
            return ()
        if self._dialect_groups is None:
            self._dialect_groups = self._dialect.groups()
        return self._dialect_groups.feed(entry, place_of(entry))

    def finish(self) -> Iterator[GroupEvent]:
        """The events that only the end of the input shows."""
        yield from self._conversations.finish()
        for group in self._coordinators.finish(self._last):
            yield from self._conversations.completed(group.drain())
        for group in self._groups:
            group.finish(group.outage.place if group.outage is not None and group.is_away else self._last)
            yield from self._conversations.completed(group.drain())
        if self._dialect_groups is not None:
            yield from self._dialect_groups.finish(self._last)
        yield from self._commits.costs.finish()
        yield from self._commits.lag.finish()


def _has_text(entry: FrameEntry) -> bool:
    """Whether the text of a frame was made, which only whole frames have."""
    return entry.text is not None and entry.text[0] is not None
