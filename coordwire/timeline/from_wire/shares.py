"""One share of the groups in some captures: the timelines of several readers, which are one together.

Strategy: every reader goes through all entries and notes what is of all groups: connections, brokers, topics,
timeouts, commits and ends of partitions. It keeps the states of the groups in its share alone, which is most
of the work, and gives out their events, each with its place in the order of one reader (`Key`): the number of
the entry and, of entries that several groups have events of, a rank. Groups are dealt out as they come, one
to each share. What a share can't know, whether a member of another share's group has the same client, is left
open (`Question`) for the one that puts the shares together (`MergedShares`).

Rules: the events of all shares, by their keys, are those of one reader, up to the limits of what is
remembered of all groups together (`group_table`, `connection_ends`, requests that wait): these hold in each
share by itself. All readers ask for a group's share at the same entries, and so agree.
"""

from __future__ import annotations

__all__ = ["Key", "MergedShares", "Question", "ShareOfGroups"]

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

from coordwire.capture.body_text import has_no_codes
from coordwire.capture.entries import ConnectionSign, Entry, FrameEntry
from coordwire.capture.frame_decoding import UNDECODED
from coordwire.connection.dialect import KAFKA
from coordwire.errors import UnreadableRange
from coordwire.timeline.events import GroupEvent, Kind, MemberLeft, RebalanceEnded, TopicPartition
from coordwire.timeline.from_wire.connection_ends import ClientOrigin, ConnectionEnds, GroupKey, SharedClients
from coordwire.timeline.from_wire.group_frames import ABOUT_A_GROUP, BEATS, MODERN, place_of
from coordwire.timeline.from_wire.group_table import kept_as
from coordwire.timeline.from_wire.rebalance_cost import Costs
from coordwire.timeline.from_wire.timeline import Timeline, TimelineDialect
from coordwire.timeline.lag import Lag
from coordwire.timeline.sightings import MemberName, Seen

MOST_DEALT = 100_000
"""So many groups are dealt out one after the other; more by a hash of their ids."""

Key = tuple[int, ...]
"""An event's place among all: the number of its entry, and its rank among that one's, if other shares may
have events of it. Events of equal keys are in one share."""

MOST_GONE = 1_000
"""So many keys that are gone are remembered, and as many as there are."""

K = TypeVar("K")
V = TypeVar("V")
P = TypeVar("P")


class Question(NamedTuple):
    """What a share leaves open, or says so that others' questions can be answered.

    client: of a member that is in from now on; None of one that is out. If `alternative` is given, it is
    neither: whether the member has its client to itself, and if it hasn't, the event is this one instead of
    that at the position.
    """

    key: Key
    name: MemberName
    client: ClientOrigin | None = None
    position: int = 0
    alternative: Any = None


class _Order:
    """How far the readers have come. entry: the number of the entry that is read."""

    entry = 0


class _Numbered(OrderedDict[K, V]):
    """numbers: of the entries with which the keys came that are there, and of some that were."""

    def __init__(self, order: _Order) -> None:
        super().__init__()
        self.numbers: dict[K, int] = {}
        self._order = order

    def __setitem__(self, key: K, value: V) -> None:
        if key not in self:
            self.numbers[key] = self._order.entry
            if len(self.numbers) > 2 * len(self) + MOST_GONE:
                self.numbers = {key: number for key, number in self.numbers.items() if key in self}
                self.numbers[key] = self._order.entry
        super().__setitem__(key, value)


class _Dealt:
    """Which groups are in the share."""

    def __init__(self, index: int, count: int) -> None:
        self._index = index
        self._count = count
        self._shares: dict[str, int] = {}

    def __contains__(self, group: str) -> bool:
        share = self._shares.get(group)
        if share is None:
            if len(self._shares) < MOST_DEALT:
                share = self._shares[group] = len(self._shares) % self._count
            else:
                share = crc32(group.encode(errors="surrogatepass")) % self._count
        return share == self._index


class ShareOfGroups(Timeline):
    """The timeline of one share. index: from 0; count: how many shares there are."""

    _ends: _ShareEnds

    def __init__(self, index: int, count: int, *, dialect: TimelineDialect | None = None) -> None:
        self._order = _Order()
        super().__init__(ends=True, dialect=dialect)
        self._dealt = _Dealt(index, count)
        self._costs = self._commits.costs = _ShareCosts(self._commits.lag, self._order)
        self._keyed_events: list[tuple[Key, GroupEvent]] = []
        self._questions: list[Question] = []
        self._looked_at = 0
        self._requests_in_order: _Numbered[Seen, Any] = _Numbered(self._order)
        self._waiting = self._requests_in_order
        self._groups_in_order: _Numbered[GroupKey, Any] = _Numbered(self._order)
        self._groups.every = self._groups_in_order
        self._groups.at = self._groups.every.get

    def _new_ends(self) -> _ShareEnds:
        return _ShareEnds(self._order)

    # --- events with their keys ---

    @property
    def entries(self) -> int:
        """How many entries were read."""
        return self._order.entry

    def take(self) -> tuple[list[tuple[Key, GroupEvent]], list[Question]]:
        """The share's events since the last call, and what is open of them, by the positions of these."""
        events, questions = self._keyed_events, self._questions
        self._keyed_events, self._questions, self._looked_at = [], [], 0
        return events, questions

    def feed_share(self, entries: Iterable[Entry | ConnectionSign]) -> None:
        """Read entries."""
        keyed = self._keyed_events
        order, of_request, of_answer = self._order, self._requests.get, self._answers.get
        ranks = self._costs.ranks
        for entry in entries:
            order.entry += 1
            if ranks:
                ranks.clear()
            if type(entry) in UNDECODED and entry.api_key in ABOUT_A_GROUP:  # type: ignore[union-attr,operator]
                frame: Any = entry
                self._last_frame = frame
                handler: Any = (of_request if frame.request is None else of_answer)(frame.api_key)
                if not (events := handler(frame)):
                    continue
                key = (order.entry,)
                keyed += [(key, event) for event in events]
            elif isinstance(entry, FrameEntry) and entry.dialect != KAFKA:
                self._feed_other(entry)
            else:
                keyed += self._keyed(entry)
            if self._ends.open:
                self._ask()

    def finish_share(self) -> None:
        """The input is at its end."""
        self._order.entry += 1
        self._costs.ranks.clear()
        for step, subject, events in self._last_events():
            key: Key = (self._order.entry, step)
            if isinstance(subject, Seen):
                key += (self._requests_in_order.numbers.get(subject, 0),)
            elif subject is not None:
                key += (self._groups_in_order.numbers.get((subject.group, kept_as(subject.kind)), 0),)
            self._keyed_events += self._ranked(key, events)
            if self._ends.open:
                self._ask()

    def _feed_other(self, entry: FrameEntry) -> None:
        """A frame of another dialect, whose groups every share follows."""
        self._last_frame = entry
        for rank, event in enumerate(self._read(entry)):
            if event.group in self._dealt:
                key = self._order.entry, rank
                self._keyed_events += [(key, completed) for completed in self._events([event])]
                if self._ends.open:
                    self._ask()

    def _keyed(self, entry: Entry | ConnectionSign) -> Iterator[tuple[Key, GroupEvent]]:
        """The events of one entry."""
        key: Key = (self._order.entry,)
        if isinstance(entry, UnreadableRange):
            self._ends.flows_asked = 0
            for event in self.feed(entry):
                yield key + self._ends.rank, event
        elif isinstance(entry, FrameEntry) and entry.api_key in ABOUT_A_GROUP:
            for event in self.feed(entry):
                yield key, event
        else:
            yield from self._ranked(key, self.feed(entry))

    def _ranked(self, key: Key, events: Iterable[GroupEvent]) -> Iterator[tuple[Key, GroupEvent]]:
        """Of events of several groups those of the share. Costs are only known of groups in the share; all
        other events count for the rank."""
        costs, rank = self._costs.ranks, 0
        for event in events:
            if (cost := costs.get(id(event))) is not None:
                yield (*key, rank, 0, *cost), event
                continue
            if event.group in self._dealt:
                yield (*key, rank, 1), event
            rank += 1

    def _ask(self) -> None:
        """Note what is open since the last call."""
        keyed = self._keyed_events
        key = keyed[-1][0]
        positions = {id(keyed[at][1]): at for at in range(self._looked_at, len(keyed))}
        self._looked_at = len(keyed)
        for name, client, event, alternative in self._ends.open:
            position = positions.get(id(event), 0)
            self._questions.append(Question(key, name, client, position, alternative))
        self._ends.open.clear()

    # --- frames about a group ---

    def _requested(self, entry: FrameEntry, message: Any) -> Iterable[GroupEvent]:
        if message.group_id in self._dealt:
            return super()._requested(entry, message)
        key: Any = entry.api_key
        if key in BEATS:
            self._beats.learn_request(entry, message, kept_as(MODERN.get(key, "classic")))
        self._ends.opens(entry)
        return ()

    def _beat_request(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        beat = self._beats.find(entry)
        if beat is not None and beat.name.group not in self._dealt:
            return ()
        return super()._beat_request(entry)

    def _beat_answer(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        request_entry: Any = entry.request
        beat = self._beats.find(request_entry)
        if beat is not None and beat.name.group not in self._dealt:
            return ()
        return super()._beat_answer(entry)

    def _group_answer(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        return super()._group_answer(entry) if self._is_answered_here(entry) else ()

    def _commit_answer(self, entry: FrameEntry) -> Iterable[GroupEvent]:
        if self._is_answered_here(entry):
            return super()._commit_answer(entry)
        request_entry: Any = entry.request
        message = None if has_no_codes(entry) else self._message_of(entry)
        if message is not None or has_no_codes(entry):  # lags are known of all groups
            topics = () if message is None else message.topics
            self._commits.commit(entry, request_entry.message, topics, place_of(entry))
        return ()

    def _is_answered_here(self, entry: FrameEntry) -> bool:
        """Whether an answer about a group may be of one in the share: what it is about its request says."""
        request_entry: Any = entry.request
        request = request_entry.message
        return request is None or request_entry.error is not None or request.group_id in self._dealt


class _ShareEnds(ConnectionEnds):
    """As far as the members of a share show them. open: what the one that puts the shares together is to
    know; rank: of the last member that `speakers_of` gave, among those of all shares."""

    def __init__(self, order: _Order) -> None:
        super().__init__()
        self._order = order
        self._since: dict[str, dict[GroupKey, int]] = {}
        self.flows_asked = 0
        self.rank: Key = ()
        self.open: list[tuple[MemberName, ClientOrigin | None, MemberLeft | None, MemberLeft | None]] = []
        self._shared = _ShareClients(self.open)

    def _speaks_on(self, flow: str, name: MemberName, kept_as: Kind) -> None:
        super()._speaks_on(flow, name, kept_as)
        self._since.setdefault(flow, {}).setdefault((name.group, kept_as), self._order.entry)

    def _forget(self, flow: str) -> None:
        super()._forget(flow)
        self._since.pop(flow, None)

    def speakers_of(self, flow: str) -> Iterator[tuple[GroupKey, MemberName]]:
        self.flows_asked += 1
        since = self._since.get(flow, {})
        for key, name in super().speakers_of(flow):
            self.rank = self.flows_asked, since[key]
            yield key, name

    def _ended(self, event: MemberLeft, name: MemberName) -> MemberLeft:
        ended = super()._ended(event, name)
        if self._shared.is_alone(name):
            if_shared = replace(event, ending=self._ending(event, name, is_alone=False))
            if if_shared != ended:
                self.open.append((name, None, ended, if_shared))
        return ended


class _ShareClients(SharedClients):
    """Those of a share's members, who come and go. open: where that is noted for others."""

    def __init__(self, open: list[Any]) -> None:
        super().__init__()
        self._open = open

    def joins(self, name: MemberName, client: ClientOrigin) -> None:
        super().joins(name, client)
        self._open.append((name, client, None, None))

    def leaves(self, name: MemberName) -> None:
        super().leaves(name)
        self._open.append((name, None, None, None))


class _ShareCosts(Costs):
    """Of the groups in a share. ranks: of the events that `ends` and `finish` gave, among those of all
    shares, by their objects' ids."""

    def __init__(self, lag: Lag, order: _Order) -> None:
        super().__init__(lag)
        self.ranks: dict[int, Key] = {}
        self._order = order
        self._ends_known = 0
        self._since: dict[str, int] = {}

    def ends(self, partition: TopicPartition) -> Iterable[GroupEvent]:
        self._ends_known += 1
        return super().ends(partition)

    def finish(self) -> Iterator[GroupEvent]:
        self._ends_known += 1
        return super().finish()

    def _measure(self, event: RebalanceEnded) -> None:
        super()._measure(event)
        if event.group in self._open:
            self._since[event.group] = self._order.entry

    def _forget(self, group: str) -> Any:
        self._since.pop(group, None)
        return super()._forget(group)

    def _report(self, group: str) -> Iterator[GroupEvent]:
        since = self._since.get(group, 0)
        for event in super()._report(group):
            self.ranks[id(event)] = self._ends_known, since
            yield event


class MergedShares:
    """Puts the events of all shares in their order, a part of the input at a time."""

    def __init__(self) -> None:
        self._clients = SharedClients()

    def merged(self, parts: Iterable[tuple[list[tuple[Key, P]], list[Question]]]) -> Iterator[P]:
        """What all shares gave of the same entries; `P` may be anything that has taken the place of events,
        in `Question.alternative` too."""
        shares = list(parts)
        questions = [(*question, keyed) for keyed, open in shares for question in open]
        questions.sort(key=itemgetter(0))
        for _, name, client, position, alternative, keyed in questions:
            if client is not None:
                self._clients.joins(name, client)
            elif alternative is None:
                self._clients.leaves(name)
            elif not self._clients.is_alone(name):
                keyed[position] = keyed[position][0], alternative
        events = [event for keyed, _ in shares for event in keyed]
        events.sort(key=itemgetter(0))
        return (event for _, event in events)
