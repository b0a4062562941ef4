"""What is known of each group now: for the screen, and as Prometheus reads it.

Strategy: `GroupStory` sums a group's events up; here is what they have not: the last cause, and the lag as
the ends of partitions move. Rules: a scrape gets the text of the last round, whole; label values are escaped
as the text format demands; partitions of a group are bounded, and so are groups. A group without members and
without committed offsets is gone, and is forgotten with the next look. The log is one cluster's; a tap may
show others, whose groups have rows of their own.
"""

from __future__ import annotations

import socket
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from typing import Any, NamedTuple, get_args

from coordwire.cli.watch.problems import Problem, ProblemKind, ProblemSubject
from coordwire.cli.watch.record_times import RecordTimes
from coordwire.timeline.events import (
    ClusterFound,
    GroupEvent,
    Kind,
    MemberJoined,
    MemberLeft,
    OffsetCommitted,
    RebalanceBegan,
    RebalanceEnded,
    TopicPartition,
)
from coordwire.timeline.evidence import remember
from coordwire.timeline.story.contents import group_name
from coordwire.timeline.story.event_lines import EventLines
from coordwire.timeline.story.member_numbers import MemberNumbers
from coordwire.timeline.story.wording import clock
from coordwire.timeline.totals import GroupStory, StoryKey, story_key

MOST_GROUPS = 100_000
MOST_PARTITIONS = 100_000
MOST_MEMBERS = 10_000
"""Members of a group whose names are kept."""

MOST_SAMPLES = 1_000
"""Problems of which Prometheus gets the begin and the reason."""

_METRICS = {
    "coordwire_group_members": ("gauge", "Members in the group."),
    "coordwire_group_rebalances_total": ("counter", "Rebalances in the log, by cause as far as it shows."),
    "coordwire_group_tapped_rebalances_total": ("counter", "Rebalances that a tap has seen, by cause."),
    "coordwire_group_rebalance_seconds_total": ("counter", "Time of rebalances whose length is known."),
    "coordwire_group_without_consumers_seconds_total": ("counter", "Time with a partition without consumer."),
    "coordwire_group_commits_total": ("counter", "Offsets committed."),
    "coordwire_group_committed_offset": ("gauge", "The committed offset: that of the record to read next."),
    "coordwire_group_lag": ("gauge", "Records after the committed offset."),
    "coordwire_group_lag_seconds": ("gauge", "Age of the record at the committed offset; 0: all are read."),
}


class KnownLag(NamedTuple):
    """The records after a committed offset, and the age in ms of the first of them: 0 where there is none,
    None where it is not known."""

    group: str
    place: TopicPartition
    committed: int
    records: int
    age_ms: int | None


class GroupView(NamedTuple):
    """What a screen shows of a group, named as in a story. members: the names of those that are in; cause: of
    the last rebalance, in the words of a story, with its time and where it comes from; lag: in records,
    age_ms: of the oldest of them, each None where it is not known."""

    group: str
    kind: Kind | None
    members: tuple[str, ...]
    rebalances: int
    cause: str
    idle_ns: int
    commits: int
    lag: int | None
    age_ms: int | None


@dataclass(slots=True)
class _Row:
    """story: by the log, or by the tap if the group is another cluster's; tapped: by the tap; numbers: of
    members, as they came; last: the last rebalance; is_tapped: whether a tap saw it."""

    story: GroupStory
    tapped: GroupStory | None = None
    numbers: MemberNumbers = field(default_factory=MemberNumbers)
    last: RebalanceBegan | RebalanceEnded | None = None
    is_tapped: bool = False
    committed: dict[TopicPartition, int] = field(default_factory=dict)
    lag: dict[TopicPartition, int] = field(default_factory=dict)
    lag_ms: dict[TopicPartition, int] = field(default_factory=dict)
    _words: tuple[tuple[str, ...], str] | None = None
    """The names of who is in, and the cause, until either changes."""

    @property
    def is_foreign(self) -> bool:
        """Whether the group is of another cluster than the log."""
        return self.story is self.tapped

    @property
    def is_gone(self) -> bool:
        return not (self.committed or self.story.members or (self.tapped is not None and self.tapped.members))

    def add(self, event: GroupEvent, *, is_tapped: bool) -> None:
        """Remember who joins, and the last rebalance."""
        if isinstance(event, MemberJoined):
            self.numbers.add((event,))
            self.numbers.forget(MOST_MEMBERS)
        elif isinstance(event, RebalanceBegan | RebalanceEnded):
            self.last, self.is_tapped = event, is_tapped
        elif not isinstance(event, MemberLeft):
            return
        self._words = None

    def view(self) -> GroupView:
        story = self.story
        if self._words is None:
            self._words = self._members(), self._cause()
        members, cause = self._words
        return GroupView(
            group_name(story), story.kind, members, story.rebalances, cause, story.idle_ns, story.commits,
            sum(self.lag.values()) if self.lag else None, max(self.lag_ms.values(), default=None),
        )  # fmt: skip

    def _members(self) -> tuple[str, ...]:
        """The names of who is in, by their numbers, and then those that are forgotten."""
        known, within = self.numbers.numbers, self.story.members
        order = sorted(within, key=lambda member_id: known.get(member_id, len(known) + self.story.joined))
        return tuple(map(self.numbers.name, order))

    def _cause(self) -> str:
        if self.last is None:
            return ""
        time = "" if self.last.time_ns is None else f" {clock(self.last.time_ns)}"
        origin = "seen by the tap" if self.is_tapped else "from the log"
        return f"last rebalance{time}: {EventLines(self.numbers, one_day=True).cause(self.last)} ({origin})"


class GroupBoard:
    """The groups, by their ids. cluster: the log's, None while its id is not known."""

    def __init__(self) -> None:
        self.cluster: str | None = None
        self._rows: OrderedDict[StoryKey, _Row] = OrderedDict()
        self._several = False  # whether the tap shows several clusters

    def clear(self) -> None:
        """Forget all groups: their log is gone."""
        self._rows.clear()

    def add(self, event: GroupEvent) -> None:
        """Take an event in."""
        row = self._row(event.group)
        row.story.add(event)
        if row.tapped is None or isinstance(event, MemberJoined | MemberLeft):
            row.add(event, is_tapped=False)
        if isinstance(event, OffsetCommitted) and not event.error_code:
            place = TopicPartition(event.topic, event.partition)
            if event.removed:
                row.committed.pop(place, None)
                row.lag.pop(place, None)
                row.lag_ms.pop(place, None)
            elif len(row.committed) < MOST_PARTITIONS:
                row.committed[place] = event.offset

    def add_tapped(self, event: GroupEvent) -> None:
        """Take in an event that a tap has seen: from then on, the causes of a group of the log's cluster are
        the tap's."""
        if isinstance(event, ClusterFound):
            self._name_cluster(event.cluster or "")
            return
        is_own = event.cluster in (None, self.cluster)
        row = self._row(event.group if is_own else story_key(event))
        if row.tapped is None:
            row.tapped = GroupStory(event.group) if is_own else row.story
        row.tapped.add(event)
        row.add(event, is_tapped=True)

    def _name_cluster(self, cluster: str) -> None:
        """There are several clusters: what the tap has seen so far is this one's."""
        self._several = True
        for key, row in list(self._rows.items()) if cluster != self.cluster else ():
            if isinstance(key, str) and row.tapped is not None:
                row.tapped.cluster = cluster
                self._rows[key] = _Row(row.story, numbers=row.numbers)
                remember(self._rows, (key, cluster), _Row(row.tapped, row.tapped, row.numbers), MOST_GROUPS)

    def _row(self, key: StoryKey) -> _Row:
        row = self._rows.get(key)
        if row is None:
            row = _Row(GroupStory(key) if isinstance(key, str) else GroupStory(*key))
            remember(self._rows, key, row, MOST_GROUPS)
        return row

    def _sorted(self) -> list[_Row]:
        """The rows by their groups' ids, and those of the log's cluster first."""
        for row in self._rows.values() if self._several else ():
            if not row.is_foreign:
                row.story.cluster = self.cluster
        return sorted(
            self._rows.values(), key=lambda row: (row.story.group, row.is_foreign, row.story.cluster or "")
        )

    def partitions(self) -> set[TopicPartition]:
        """The partitions that groups have committed offsets of."""
        return {place for row in self._rows.values() for place in row.committed}

    def measure(self, ends: dict[TopicPartition, int]) -> None:
        """Compute lags from the ends of partitions, and forget the groups that are gone."""
        for group in [group for group, row in self._rows.items() if row.is_gone]:
            del self._rows[group]
        for row in self._rows.values():
            row.lag = {
                place: max(ends[place] - offset, 0)
                for place, offset in row.committed.items()
                if place in ends
            }

    def unread(self) -> set[tuple[TopicPartition, int]]:
        """The committed offsets at which a record is, which a group has not read."""
        return {
            (place, row.committed[place])
            for row in self._rows.values()
            for place, lag in row.lag.items()
            if lag
        }

    def date(self, times: RecordTimes, now_ms: int) -> None:
        """Compute lags in time, as far as the times of records are known."""
        for row in self._rows.values():
            written = {
                place: times.time_ms(place, row.committed[place]) if lag else now_ms
                for place, lag in row.lag.items()
            }
            row.lag_ms = {place: max(now_ms - time, 0) for place, time in written.items() if time is not None}

    def lags(self) -> Iterator[KnownLag]:
        """The lag of each group in each partition."""
        for row in self._sorted():
            for place, lag in sorted(row.lag.items()):
                yield KnownLag(row.story.group, place, row.committed[place], lag, row.lag_ms.get(place))

    # --- what is shown ---

    def views(self) -> Iterator[GroupView]:
        """Each group, in the order of their ids."""
        for row in self._sorted():
            yield row.view()

    def metrics(self, problems: Iterable[Problem] = ()) -> str:
        """All groups, and what cannot be seen, in Prometheus' text format, version 0.0.4."""
        lines, rows = list(_problem_lines(problems)), self._sorted()
        for name, (kind, text) in _METRICS.items():
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
            for row in rows:
                group = _group_labels(row)
                lines += [
                    f"{name}{{{_labels([*group, *labels])}}} {value}" for labels, value in _samples(name, row)
                ]
        return "\n".join(lines) + "\n"


def _problem_lines(problems: Iterable[Problem]) -> Iterator[str]:
    name = "coordwire_watch_problems"
    yield f"# HELP {name} Brokers and partitions that cannot be seen now, by kind."
    yield f"# TYPE {name} gauge"
    counts = Counter(problem.subject.kind for problem in problems)
    for kind in get_args(ProblemKind):
        yield f"{name}{{{_labels([('kind', kind)])}}} {counts[kind]}"
    name = "coordwire_watch_problem_since_seconds"
    yield f"# HELP {name} Since when each cannot be seen, in seconds since 1970 UTC."
    yield f"# TYPE {name} gauge"
    for problem in islice(problems, MOST_SAMPLES):
        names = zip(ProblemSubject._fields, problem.subject, strict=True)
        labels = [(label, str(value)) for label, value in names if value is not None]
        yield f"{name}{{{_labels([*labels, ('reason', problem.reason)])}}} {problem.since_ns / 1e9}"


def _group_labels(row: _Row) -> list[tuple[str, str]]:
    """Those of a group of the log's cluster stay as they are, whatever a tap shows."""
    labels = [("group", row.story.group)]
    return [*labels, ("cluster", row.story.cluster or "")] if row.is_foreign else labels


def _samples(name: str, row: _Row) -> Iterable[tuple[list[tuple[str, str]], float]]:
    story = row.story
    match name.removeprefix("coordwire_group_"):
        case "members":
            return [([], len(story.members))]
        case "rebalances_total":
            return [] if row.is_foreign else _by_cause(story)
        case "tapped_rebalances_total":
            return [] if row.tapped is None else _by_cause(row.tapped)
        case "rebalance_seconds_total":
            return [([], story.rebalancing_ns / 1e9)]
        case "without_consumers_seconds_total":
            return [([], story.idle_ns / 1e9)]
        case "commits_total":
            return [([], story.commits)]
        case "lag_seconds":
            return _by_partition({place: lag / 1e3 for place, lag in row.lag_ms.items()})
        case "committed_offset":
            return _by_partition(row.committed)
    return _by_partition(row.lag)


def _by_cause(story: GroupStory) -> list[tuple[list[tuple[str, str]], float]]:
    causes = sum(story.caused.values(), Counter())
    unexplained = story.rebalances - sum(causes.values())
    samples = [([("cause", str(cause))], float(times)) for cause, times in sorted(causes.items())]
    return [*samples, ([("cause", "")], float(unexplained))] if unexplained > 0 or not samples else samples


def _by_partition(
    values: Mapping[TopicPartition, float],
) -> list[tuple[list[tuple[str, str]], float]]:
    return [
        ([("topic", place.topic), ("partition", str(place.partition))], value)
        for place, value in sorted(values.items())
    ]


def _labels(pairs: list[tuple[str, str]]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_TIMEOUT = 10.0
MOST_CONNECTIONS = 32


class _Server(ThreadingHTTPServer):
    """Serves a bounded number of connections: the oldest makes room for the next."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: OrderedDict[Any, None] = OrderedDict()
        self._lock = threading.Lock()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            oldest = next(iter(self._open)) if len(self._open) >= MOST_CONNECTIONS else None
            self._open.pop(oldest, None)
            self._open[request] = None
        if oldest is not None:
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)  # which ends its thread
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: a scraper may go away at any time."""


class MetricsServer:
    """Serves on a thread of its own, until it is closed. Raises `OSError` where it cannot listen."""

    def __init__(self, host: str, port: int) -> None:
        self.text = ""
        owner = self

        class Handler(BaseHTTPRequestHandler):
            timeout = _TIMEOUT

            def do_GET(self) -> None:
                is_known = self.path.partition("?")[0] in ("/metrics", "/")
                body = owner.text.encode() if is_known else b"not found\n"
                self.send_response(200 if is_known else 404)
                self.send_header("Content-Type", _TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: object) -> None:
                """Print nothing: standard error is the command's."""

        self._server = _Server((host, port), Handler)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the server and its thread."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
