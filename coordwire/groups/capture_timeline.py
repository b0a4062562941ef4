"""Recorded traffic to the stories of groups: `timeline` reads entries and yields what happened.

Strategy: each frame goes to those whom it concerns: its group's state (`classic`, `modern`, `drafts`), to
commits and lag (`commits`), and here: coordinators, error codes, requests that nobody answered. Rules: only
messages that were decoded whole get in, and an answer only with its request; nothing raises, whatever their
order; memory is bounded by the caps that the modules name, the oldest is forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from coordwire.capture.entries import Entry, FrameEntry
from coordwire.codec.entities import entity_values
from coordwire.dialects.grammar import Dialect
from coordwire.enums import ErrorCode
from coordwire.groups.classic import ClassicGroup
from coordwire.groups.commits import Commits
from coordwire.groups.draft_groups import DraftGroups
from coordwire.groups.group import Seen, id_text, remember
from coordwire.groups.modern import ModernGroup
from coordwire.groups.timeline_events import CoordinatorFound, ErrorMet, GroupEvent, Kind, Unanswered
from coordwire.versions import ApiKey

__all__ = ["TOLD_BY", "Timeline", "timeline"]

MOST_GROUPS = 10_000
MOST_TOPICS = 100_000
MOST_UNANSWERED = 10_000

_CLASSIC = {ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP}
_MODERN: dict[int, Kind] = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "consumer",
    ApiKey.SHARE_GROUP_HEARTBEAT: "share",
    ApiKey.STREAMS_GROUP_HEARTBEAT: "streams",
}
_COMMITS = {ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT}
_ABOUT_A_GROUP = {*_CLASSIC, *_MODERN, *_COMMITS}

TOLD_BY: frozenset[int] = frozenset({
    *_ABOUT_A_GROUP, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA, ApiKey.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR, ApiKey.CREATE_TOPICS, ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN,
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
        self._groups: OrderedDict[tuple[str, Kind], ClassicGroup | ModernGroup] = OrderedDict()
        self._commits = Commits(self._name_of)
        self._drafts = DraftGroups()
        self._names: OrderedDict[str, str] = OrderedDict()
        self._coordinators: OrderedDict[str, int] = OrderedDict()
        self._waiting: OrderedDict[Seen, Unanswered] = OrderedDict()
        self._last = Seen(None, "", 0)

    def feed(self, entry: Entry) -> Iterator[GroupEvent]:
        """What one entry adds."""
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
        yield from self._waiting.values()
        self._waiting.clear()
        for group in self._groups.values():
            group.finish(self._last)
            yield from group.drain()
        yield from self._drafts.finish(self._last)

    def _unreadable(self, entry: FrameEntry) -> Iterator[GroupEvent]:
        """A frame that wasn't decoded whole: it answers its request, whatever it says."""
        asked = None if entry.request is None else _place(entry.request)
        waiting = None if asked is None else self._waiting.pop(asked, None)
        if asked is None or waiting is None:
            return
        yield replace(waiting, unreadable=True)
        code = getattr(entry.message, "error_code", 0)
        place = _place(entry)
        if code:
            yield ErrorMet(
                group=waiting.group, **place._asdict(), api=waiting.api, error_code=code,
                member_id=waiting.member_id, client_id=waiting.client_id,
            )  # fmt: skip
        known = self._groups.get((waiting.group, "classic"))
        if isinstance(known, ClassicGroup) and entry.api_key in _CLASSIC:
            known.unreadable(asked, code, waiting.member_id or "", place)
            yield from known.drain()

    # --- requests ---

    def _request(self, entry: FrameEntry, message: Any, place: Seen) -> Iterator[GroupEvent]:
        key = entry.api_key
        if key not in _ABOUT_A_GROUP:
            return
        remember(self._waiting, place, _unanswered(entry, message, place), MOST_UNANSWERED)
        if key in (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP):
            group = self._classic(message.group_id)
            if key == ApiKey.JOIN_GROUP:
                group.join_request(entry, message, place, _host(entry))
            else:
                group.sync_request(message, place)
            yield from group.drain()

    # --- responses ---

    def _response(
        self, entry: FrameEntry, asked: FrameEntry, request: Any, message: Any, place: Seen
    ) -> Iterator[GroupEvent]:
        key = entry.api_key
        if key in _ABOUT_A_GROUP:
            self._waiting.pop(_place(asked), None)
            yield from self._errors(entry, request, message, place)
        if key in _CLASSIC:
            yield from self._of_classic(entry, asked, request, message, place)
        elif key in _MODERN:
            group = self._group(request.group_id, _MODERN[key])
            assert isinstance(group, ModernGroup)
            group.heartbeat(entry, request, message, place, _place(asked), _host(asked))
            yield from group.drain()
        elif key in _COMMITS:
            yield from self._commits.commit(entry, request, message, place)
            known = self._groups.get((request.group_id, "classic"))
            if isinstance(known, ClassicGroup):
                codes = [one.error_code for topic in message.topics for one in topic.partitions]
                known.alive(request, next((code for code in codes if code), 0), place)
                yield from known.drain()
        else:
            yield from self._others(entry, request, message, place)

    def _of_classic(
        self, entry: FrameEntry, asked: FrameEntry, request: Any, message: Any, place: Seen
    ) -> Iterator[GroupEvent]:
        group = self._classic(request.group_id)
        match entry.api_key:
            case ApiKey.JOIN_GROUP:
                group.join_response(request, message, place, _place(asked))
            case ApiKey.SYNC_GROUP:
                group.sync_response(request, message, place)
            case ApiKey.HEARTBEAT:
                group.alive(request, message.error_code, place)
            case ApiKey.LEAVE_GROUP:
                group.leave_response(request, message, place, _place(asked))
        yield from group.drain()

    def _others(self, entry: FrameEntry, request: Any, message: Any, place: Seen) -> Iterator[GroupEvent]:
        match entry.api_key:
            case ApiKey.FETCH:
                yield from self._commits.ends(message, place)
            case ApiKey.OFFSET_FETCH:
                yield from self._commits.fetched(request, message, place)
            case ApiKey.LIST_OFFSETS:
                yield from self._commits.listed(request, message, place)
            case ApiKey.METADATA | ApiKey.CREATE_TOPICS:
                self._learn_names(message)
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
        told: dict[str, Any] = {
            "group": request.group_id, **place._asdict(), "api": entry.api_name, "client_id": entry.client_id,
        }  # fmt: skip
        code = getattr(message, "error_code", 0)
        if code and code != ErrorCode.MEMBER_ID_REQUIRED:
            text = getattr(message, "error_message", None)
            yield ErrorMet(**told, error_code=code, member_id=member_id, message=text)
        if entry.api_key == ApiKey.LEAVE_GROUP:
            for one in message.members:
                if one.error_code:
                    yield ErrorMet(**told, error_code=one.error_code, member_id=one.member_id or None)
        if entry.api_key in _COMMITS:
            codes = dict.fromkeys(entity_values(message, "error_code"))
            for code in codes:
                if code:
                    yield ErrorMet(**told, error_code=code, member_id=member_id)

    # --- what is known ---

    def _classic(self, group_id: str) -> ClassicGroup:
        group = self._group(group_id, "classic")
        assert isinstance(group, ClassicGroup)
        return group

    def _group(self, group_id: str, kind: Kind) -> ClassicGroup | ModernGroup:
        group = self._groups.get((group_id, kind))
        if group is None:
            group = (
                ClassicGroup(group_id) if kind == "classic" else ModernGroup(group_id, kind, self._name_of)
            )
            remember(self._groups, (group_id, kind), group, MOST_GROUPS)
        return group

    def _learn_names(self, message: Any) -> None:
        for topic in message.topics:
            if topic.name and topic.topic_id.int:
                remember(self._names, id_text(topic.topic_id), topic.name, MOST_TOPICS)

    def _name_of(self, topic: str) -> str:
        """A topic's name by its id; the id where nobody has said the name."""
        return self._names.get(topic, topic)


def _place(entry: FrameEntry) -> Seen:
    return Seen(entry.time_ns, entry.capture, entry.number)


def _host(entry: FrameEntry) -> str | None:
    """The client's address, by its request's flow."""
    return entry.flow.partition(" > ")[0] or None


def _unanswered(entry: FrameEntry, message: Any, place: Seen) -> Unanswered:
    return Unanswered(
        group=message.group_id, **place._asdict(), api=entry.api_name or str(entry.api_key),
        member_id=message.member_id or None, client_id=entry.client_id,
    )  # fmt: skip
