"""Recorded traffic to the timelines of groups: `timeline` reads entries and yields what happened.

Strategy: each frame goes where it belongs: to its group's state (`group_table`, `draft_groups`), to commits
and lag (`commits`), to what is known of session timeouts (`member_death`), and here: coordinators, error
codes, requests without an answer. Rules: only messages that were decoded whole count, and an answer only with
its request; nothing raises, whatever their order; memory is bounded by the limits that the modules name, the
oldest is forgotten. What is inferred comes when it is inferred, with the time at which it must have happened.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from coordwire.capture.entries import Entry, FrameEntry
from coordwire.dialects.grammar import Dialect
from coordwire.enums import ErrorCode
from coordwire.groups.commits import Commits
from coordwire.groups.draft_groups import DraftGroups
from coordwire.groups.group_table import AnyGroup, GroupTable, TopicsById
from coordwire.groups.member_death import KnownTimeouts
from coordwire.groups.seen import Seen, remember
from coordwire.groups.timeline_events import CoordinatorFound, ErrorMet, GroupEvent, Kind, Unanswered
from coordwire.versions import ApiKey, api_name

__all__ = ["USED_APIS", "Timeline", "timeline"]

MOST_GROUPS = 10_000
MOST_UNANSWERED = 10_000

_CLASSIC = {ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP}
_MODERN: dict[int, Kind] = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "consumer",
    ApiKey.SHARE_GROUP_HEARTBEAT: "share",
    ApiKey.STREAMS_GROUP_HEARTBEAT: "streams",
}
_COMMITS = frozenset(map(int, (ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT)))
_ABOUT_A_GROUP = frozenset(map(int, (*_CLASSIC, *_MODERN, *_COMMITS)))
_JOINING = frozenset(map(int, (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP)))
_BEATS = frozenset(map(int, (ApiKey.HEARTBEAT, *_MODERN)))

_Asked = tuple[str, int, str | None, str | None]
"""A request about a group: the group, the API, the member's and the client's id."""

USED_APIS: frozenset[int] = frozenset({
    *_ABOUT_A_GROUP, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA, ApiKey.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR, ApiKey.CREATE_TOPICS, ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN, ApiKey.DESCRIBE_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS,
})  # fmt: skip
"""The APIs that a timeline draws on; what can't be read of others takes nothing from it."""


def timeline(entries: Iterable[Entry]) -> Iterator[GroupEvent]:
    """What the entries of one or several captures say of groups, in their order.

    Entries come in the order of time; those of several captures may be mixed.
    """
    story = Timeline()
    for entry in entries:
        yield from story.feed(entry)
    yield from story.finish()


class Timeline:
    """As `timeline`, entry by entry."""

    def __init__(self) -> None:
        self._names = TopicsById()
        self._timeouts = KnownTimeouts()
        self._groups = GroupTable(self._names, self._timeouts)
        self._commits = Commits(self._names.name_of)
        self._drafts = DraftGroups()
        self._coordinators: OrderedDict[str, int] = OrderedDict()
        self._waiting: OrderedDict[Seen, _Asked] = OrderedDict()
        self._last = Seen(None, "", 0)

    def feed(self, entry: Entry) -> Iterable[GroupEvent]:
        """What one entry adds. It must be drawn before the next entry is fed.

        Most frames are heartbeats of groups that nothing happens to, and requests; they take the short way.
        """
        if type(entry) is not FrameEntry or entry.dialect is not Dialect.KAFKA or entry.error is not None:
            return self._events(self._read(entry))
        message: Any = entry.message
        key = entry.api_key
        if message is None or key in _JOINING:
            return self._events(self._read(entry))
        if entry.direction == "request":
            place = self._last = _place(entry)
            if key in _ABOUT_A_GROUP:
                self._asks(entry, message, place)
            return ()
        asked = entry.request
        if key not in _BEATS or asked is None or asked.message is None or asked.error or message.error_code:
            return self._events(self._read(entry))
        place = self._last = _place(entry)
        asked_place = _place(asked)
        self._waiting.pop(asked_place, None)
        group = self._beat(entry, asked, message, place, asked_place)
        return self._events(group.drain()) if group is not None and group.pending else ()

    def _events(self, events: Iterable[GroupEvent]) -> Iterator[GroupEvent]:
        """The events, and what they cost."""
        for event in events:
            yield from self._commits.costs.see(event)

    def _read(self, entry: Entry) -> Iterator[GroupEvent]:
        if not isinstance(entry, FrameEntry):
            return
        if entry.error is not None or entry.message is None:
            yield from self._unreadable(entry)
            return
        place = self._last = _place(entry)
        if entry.dialect is not Dialect.KAFKA:
            yield from self._drafts.feed(entry, place)
        elif entry.direction == "request":
            yield from self._request(entry, entry.message, place)
        elif entry.request is not None and entry.request.message is not None and not entry.request.error:
            yield from self._response(entry, entry.request, entry.request.message, entry.message, place)
        elif entry.request is not None and entry.request.released:
            yield from self._unreadable(entry)  # without its request it says little more

    def finish(self) -> Iterator[GroupEvent]:
        """What there is to say when the input is at its end."""
        for place, asked in self._waiting.items():
            yield _unanswered(place, asked)
        self._waiting.clear()
        for group in self._groups:
            group.finish(self._last)
            for event in group.drain():
                yield from self._commits.costs.see(event)
        yield from self._drafts.finish(self._last)
        yield from self._commits.costs.finish()

    def _unreadable(self, entry: FrameEntry) -> Iterator[GroupEvent]:
        """A frame that wasn't decoded whole: it answers its request, whatever it says."""
        asked = None if entry.request is None else _place(entry.request)
        left = None if asked is None else self._waiting.pop(asked, None)
        if asked is None or left is None:
            return
        waiting = _unanswered(asked, left, unreadable=True)
        yield waiting
        code = getattr(entry.message, "error_code", 0)
        place = _place(entry)
        if code:
            yield ErrorMet(
                group=waiting.group, **place._asdict(), api=waiting.api, error_code=code,
                member_id=waiting.member_id, client_id=waiting.client_id,
            )  # fmt: skip
        known = self._groups.known(waiting.group)
        if known is not None and entry.api_key in _CLASSIC:
            known.unreadable(asked, code, waiting.member_id or "", place)
            yield from known.drain()

    # --- requests ---

    def _request(self, entry: FrameEntry, message: Any, place: Seen) -> Iterator[GroupEvent]:
        key = entry.api_key
        if key not in _ABOUT_A_GROUP:
            return
        self._asks(entry, message, place)
        if key in (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP):
            joins = place if key == ApiKey.JOIN_GROUP else None
            group = self._groups.of_classic(message.group_id, joins)
            if joins is not None:
                group.join_request(entry, message, place, _host(entry))
            else:
                group.sync_request(message, place)
            yield from group.drain()

    def _asks(self, entry: FrameEntry, message: Any, place: Seen) -> None:
        """A member's request waits for its answer."""
        key = entry.api_key
        assert key is not None
        group_id, member_id = message.group_id, message.member_id
        remember(self._waiting, place, (group_id, key, member_id or None, entry.client_id), MOST_UNANSWERED)
        self._groups.asks(group_id, _MODERN.get(key, "classic"), member_id, place)

    # --- responses ---

    def _response(
        self, entry: FrameEntry, asked: FrameEntry, request: Any, message: Any, place: Seen
    ) -> Iterator[GroupEvent]:
        key = entry.api_key
        if key in _ABOUT_A_GROUP:
            self._waiting.pop(_place(asked), None)
            yield from self._errors(entry, request, message, place)
        if key in _BEATS:
            beaten = self._beat(entry, asked, message, place, _place(asked))
            yield from () if beaten is None else beaten.drain()
        elif key in _CLASSIC:
            yield from self._of_classic(entry, asked, request, message, place)
        elif key in _COMMITS:
            yield from self._commits.commit(entry, request, message, place)
            known = self._groups.known(request.group_id)
            if known is not None:
                codes = [one.error_code for topic in message.topics for one in topic.partitions]
                generation = getattr(request, "generation_id_or_member_epoch", -1)
                code = next((code for code in codes if code), 0)
                known.alive(request, code, generation, asked, place, _host(asked))
                yield from self._of(known, None, place)
        else:
            yield from self._others(entry, request, message, place)

    def _beat(
        self, entry: FrameEntry, asked: FrameEntry, message: Any, place: Seen, asked_place: Seen
    ) -> AnyGroup | None:
        """A heartbeat, answered: the group that it is about as it goes on, if it is of this kind."""
        request: Any = asked.message
        group: AnyGroup | None
        if entry.api_key == ApiKey.HEARTBEAT:
            group = self._groups.of_classic(request.group_id)
            group.alive(request, message.error_code, request.generation_id, asked, place, _host(asked))
        else:
            kind = _MODERN[ApiKey(entry.api_key or 0)]
            group = self._groups.of_heartbeat(kind, request, message, asked_place)
            if group is None:
                return None
            group.heartbeat(entry, request, message, place, asked_place, _host(asked))
        return self._groups.current(group, request.member_id or None, place)

    def _of_classic(
        self, entry: FrameEntry, asked: FrameEntry, request: Any, message: Any, place: Seen
    ) -> Iterator[GroupEvent]:
        group = self._groups.of_classic(request.group_id)
        match entry.api_key:
            case ApiKey.JOIN_GROUP:
                group.join_response(request, message, place, _place(asked))
            case ApiKey.SYNC_GROUP:
                group.sync_response(request, message, asked, place, _host(asked))
            case ApiKey.LEAVE_GROUP:
                group.leave_response(request, message, place, _place(asked))
        yield from self._of(group, request.member_id or None, place)

    def _of(self, group: AnyGroup, member_id: str | None, place: Seen) -> Iterator[GroupEvent]:
        """What happened to a group by a frame of this member, its conversion included."""
        yield from self._groups.current(group, member_id, place).drain()

    def _others(self, entry: FrameEntry, request: Any, message: Any, place: Seen) -> Iterator[GroupEvent]:
        match entry.api_key:
            case ApiKey.FETCH:
                yield from self._commits.ends(message, place)
            case ApiKey.OFFSET_FETCH:
                yield from self._commits.fetched(request, message, place)
            case ApiKey.LIST_OFFSETS:
                yield from self._commits.listed(request, message, place)
            case ApiKey.METADATA | ApiKey.CREATE_TOPICS:
                self._names.learn(message)
            case ApiKey.DESCRIBE_CONFIGS:
                self._timeouts.described(message)
            case ApiKey.INCREMENTAL_ALTER_CONFIGS:
                self._timeouts.altered(request, message)
            case ApiKey.API_VERSIONS if message.error_code:
                yield self._versions_refused(entry, message, place)
            case ApiKey.FIND_COORDINATOR if request.key_type == 0:
                yield from self._coordinator(entry, request, message, place)
            case ApiKey.INIT_PRODUCER_ID:
                yield from self._commits.init(request, message, place)
            case ApiKey.ADD_PARTITIONS_TO_TXN:
                yield from self._commits.add_partitions(request, message, place)
            case ApiKey.ADD_OFFSETS_TO_TXN:
                yield from self._commits.add_offsets(request, message, place)
            case ApiKey.END_TXN:
                yield from self._commits.end(request, message, place)

    def _coordinator(
        self, entry: FrameEntry, request: Any, message: Any, place: Seen
    ) -> Iterator[GroupEvent]:
        found = [(one.key, one) for one in message.coordinators] or [(request.key, message)]
        for group, one in found:
            if one.error_code:
                known = self._groups.known(group)
                if known is not None:
                    known.unavailable(place)
                yield ErrorMet(
                    group=group, **place._asdict(), api="FindCoordinator", error_code=one.error_code,
                    member_id=None, client_id=entry.client_id, message=one.error_message,
                )  # fmt: skip
                continue
            before = self._coordinators.get(group)
            if before != one.node_id:
                remember(self._coordinators, group, one.node_id, MOST_GROUPS)
                yield CoordinatorFound(
                    group=group, **place._asdict(), node_id=one.node_id, host=one.host, port=one.port,
                    moved=before is not None,
                )  # fmt: skip

    def _errors(self, entry: FrameEntry, request: Any, message: Any, place: Seen) -> Iterator[GroupEvent]:
        member_id = request.member_id or None
        common: dict[str, Any] = {
            "group": request.group_id, **place._asdict(), "api": entry.api_name, "client_id": entry.client_id,
        }  # fmt: skip
        code = getattr(message, "error_code", 0)
        if code and code != ErrorCode.MEMBER_ID_REQUIRED:
            text = getattr(message, "error_message", None)
            yield ErrorMet(**common, error_code=code, member_id=member_id, message=text)
        if entry.api_key == ApiKey.LEAVE_GROUP:
            for one in message.members:
                if one.error_code:
                    yield ErrorMet(**common, error_code=one.error_code, member_id=one.member_id or None)
        if entry.api_key in _COMMITS:
            codes = dict.fromkeys(one.error_code for topic in message.topics for one in topic.partitions)
            for code in codes:
                if code:
                    yield ErrorMet(**common, error_code=code, member_id=member_id)

    def _versions_refused(self, entry: FrameEntry, message: Any, place: Seen) -> ErrorMet:
        """A broker that doesn't have the version in which it was asked for its versions."""
        own = next((one for one in message.api_keys if one.api_key == ApiKey.API_VERSIONS), None)
        text = f"the broker doesn't have version {entry.api_version} of ApiVersions"
        if own is not None:
            text += f", but {own.min_version} to {own.max_version}"
        return ErrorMet(
            group="", **place._asdict(), api="ApiVersions", error_code=message.error_code, member_id=None,
            client_id=entry.client_id, message=text,
        )  # fmt: skip


def _place(entry: FrameEntry) -> Seen:
    return Seen(entry.time_ns, entry.capture, entry.number, entry.packet)


def _host(entry: FrameEntry) -> str | None:
    """The client's address, by its request's flow."""
    return entry.flow.partition(" > ")[0] or None


def _unanswered(place: Seen, asked: _Asked, *, unreadable: bool = False) -> Unanswered:
    group, key, member_id, client_id = asked
    return Unanswered(
        group=group, **place._asdict(), api=api_name(key) or str(key), member_id=member_id,
        client_id=client_id, unreadable=unreadable,
    )  # fmt: skip
