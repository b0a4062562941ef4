"""`coordwire watch`: what happens to a live cluster's groups, from its `__consumer_offsets`.

    watch BROKER                        a screen that updates; into a pipe a line of JSON an event
    watch BROKER --metrics :9400        the same for Prometheus
    watch BROKER --tap FILE             with the requests in a capture that `coordwire tap --save` writes

Strategy: offsets_follower.py reads the log, through cluster_reader.py, which asks each broker for itself; the
reader of coordinators' logs makes events of it, tap_follower.py has those of a tap, record_times.py finds how
old the records are that groups read next, group_board.py sums all up, and gives the sums to Prometheus,
board_screen.py shows them, `LagLines` writes lags, `ProblemLines` what problems.py has. Rules: nothing is
written to the cluster. What the log has is exact: members, generations, assignments, commits, and lag as of
the last look at the partitions. It does not have heartbeats, requests and their errors, so that the cause of
a rebalance is inferred; a tap sees these. Each cause says which of the two it comes from, and whether it is
inferred. It ends by Ctrl-C, or after --rounds; at the start also where no broker accepts the
connection, an option cannot be used, or --tap is not a capture. Whatever happens later is a problem that is
shown with its begin, and that ends when what it is about is seen again.

A line of a lag has the fields of the timeline's `lagMeasured` that are known here, and `lagMs`: how long ago
the record at the committed offset was written, 0 where all are read, null where that is not known. It comes
when a group's lag or offset in a partition has changed, at most once a second.

A line of a problem: `problemBegan`, again when its reason changes, and `problemEnded`, with `kind`
("cluster", "broker", "log", "end" or "tap"), `topic` and `partition`, or the broker's `node`, `reason` and
`since`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from coordwire.capture.flows import format_time
from coordwire.capture.jsonlines import encode
from coordwire.capture.printable import shown
from coordwire.cli import Failure
from coordwire.cli.watch.group_board import KnownLag
from coordwire.cli.watch.problems import Problem, Problems, ProblemSubject
from coordwire.timeline.events import (
    ClusterFound,
    ErrorMet,
    GroupEvent,
    RebalanceBegan,
    RebalanceCost,
    RebalanceEnded,
    TopicPartition,
    Unanswered,
)

if TYPE_CHECKING:
    from coordwire.cli.watch.group_board import GroupBoard
    from coordwire.cli.watch.offsets_follower import OffsetsFollower
    from coordwire.cli.watch.record_times import RecordTimes
    from coordwire.client import ClientSettings

__all__ = ["LagLines", "ProblemLines", "configure", "open_follower", "run"]

TAPPED = (ClusterFound, RebalanceBegan, RebalanceEnded, RebalanceCost, ErrorMet, Unanswered)
"""The events that are shown of a tap: what the log does not have, or knows less well."""

REQUEST_TIMEOUT_MS = 10_000
"""For one answer, at most."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("broker", metavar="BROKER", help="HOST:PORT, or several: HOST:PORT,HOST:PORT")
    parser.add_argument("--group", action="append", metavar="ID", help="only this group; repeatable")
    parser.add_argument("--config", metavar="FILE", type=Path, help="Kafka's client.properties")
    parser.add_argument(
        "--format",
        choices=("screen", "json"),
        help="default: screen on a terminal; json lines into a pipe or a file, which have no screen",
    )
    parser.add_argument(
        "--metrics",
        metavar="[HOST]:PORT",
        help="serve the sums to Prometheus, on loopback unless HOST is given",
    )
    parser.add_argument(
        "--tap",
        metavar="FILE",
        type=Path,
        help="the capture that `coordwire tap --save` writes: exact causes of rebalances",
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="end after so many looks at the log")


def run(options: argparse.Namespace) -> int:
    from coordwire.client import ClientError, SettingsError, read_properties, settings_of

    try:
        properties = {} if options.config is None else read_properties(options.config)
        settings = settings_of(properties, bootstrap=options.broker)
    except SettingsError as error:
        raise Failure(f"watch: {error}") from None
    try:
        _watch(options, settings)
    except ClientError as error:
        raise Failure(f"watch: {shown(str(error))}") from None
    return 0


@contextmanager
def open_follower(
    settings: ClientSettings, names: OrderedDict[str, str], problems: Problems
) -> Iterator[OffsetsFollower]:
    """A follower of a cluster of which a broker has accepted the connection. Raises `ClientError`."""
    from coordwire.cli.watch.offsets_follower import OffsetsFollower
    from coordwire.client import connect

    # The watch itself tries again, and a broker that is silent is not to be waited for as long as by others.
    timeout_ms = min(settings.request_timeout_ms, REQUEST_TIMEOUT_MS)
    client = connect(replace(settings, retries=0, request_timeout_ms=timeout_ms))
    with asyncio.Runner() as runner:
        runner.run(client.__aenter__())
        try:
            with closing(OffsetsFollower(client, names, problems, runner)) as follower:
                yield follower
        finally:  # also where a second Ctrl-C ends the follower's close
            runner.run(client.close())


def _watch(options: argparse.Namespace, settings: ClientSettings) -> None:
    from coordwire.cli.timeline.json_lines import TimelineJsonFormat
    from coordwire.cli.watch import LagLines, ProblemLines
    from coordwire.cli.watch.group_board import GroupBoard
    from coordwire.cli.watch.record_times import RecordTimes
    from coordwire.timeline.from_log.events import log_timeline

    board, lags, rounds, problems, problem_lines = GroupBoard(), LagLines(), 0, Problems(), ProblemLines()
    names: OrderedDict[str, str] = OrderedDict()
    is_screen = (options.format or ("screen" if sys.stdout.isatty() else "json")) == "screen"
    lines = None if is_screen else TimelineJsonFormat()
    with (
        open_follower(settings, names, problems) as follower,
        _tapped(options, problems) as tapped,
        _metrics(options, lambda: board.metrics(problems)) as publish,
        _screen(board, problems, follower, options.broker, is_screen) as refresh,
    ):
        times = RecordTimes(follower.list_offsets)

        def has_rounds_left() -> bool:
            return options.rounds is None or rounds < options.rounds

        def round_ended() -> bool:
            nonlocal rounds
            rounds += 1
            board.cluster = follower.cluster_id
            for event in tapped():
                is_of_group = not options.group or event.group in options.group
                if not is_of_group and not isinstance(event, ClusterFound):
                    continue
                board.add_tapped(event)
                if lines is not None and isinstance(event, TAPPED):
                    lines.write(event)
            _measure(follower, board, times)
            news = problems.news()
            if lines is not None:
                problem_lines.write(news)
                lags.write(board.lags(), time.time_ns())
            publish()
            refresh()
            sys.stdout.flush()
            return has_rounds_left()

        while has_rounds_left():
            for event in log_timeline(follower.items(round_ended), names):
                if options.group and event.group not in options.group:
                    continue
                board.add(event)
                if lines is not None:
                    lines.write(event)
            if has_rounds_left():  # another log has taken the place of the one before
                board.clear()
        publish()


def _measure(follower: OffsetsFollower, board: GroupBoard, times: RecordTimes) -> None:
    """Look at the ends of partitions, and at the times of records that groups have not read."""
    board.measure(follower.measure(board.partitions()))
    now_ms = time.time_ns() // 1_000_000
    times.look(board.unread(), now_ms)
    board.date(times, now_ms)


@contextmanager
def _tapped(options: argparse.Namespace, problems: Problems) -> Iterator[Callable[[], Iterable[GroupEvent]]]:
    """A function that gives the tap's events since the last call; none without --tap."""
    if options.tap is None:
        yield lambda: ()
        return
    from coordwire.cli.watch.tap_follower import TapFollower

    try:
        follower = TapFollower(options.tap)
    except OSError as error:
        raise Failure(f"watch: --tap: {error}") from None
    try:

        def events() -> Iterator[GroupEvent]:
            yield from follower.events()
            failure = follower.failure
            if failure is not None and not follower.is_capture:
                raise Failure(f"watch: --tap: {options.tap}: {shown(str(failure))}")
            if failure is not None:
                problems.begin(ProblemSubject("tap"), f"nothing more of it is read: {failure}")

        yield events
    finally:
        follower.close()


@contextmanager
def _metrics(options: argparse.Namespace, text: Callable[[], str]) -> Iterator[Callable[[], None]]:
    """A function that hands the sums to Prometheus; it does nothing without --metrics. text: gives the
    sums."""
    if options.metrics is None:
        yield lambda: None
        return
    from coordwire.cli.watch.group_board import MetricsServer
    from coordwire.client import SettingsError
    from coordwire.client.settings import address, shown_address

    place: str = options.metrics
    try:
        host, port = address(
            f"127.0.0.1{place}" if place.startswith(":") else place, default_port=None, any_port=True
        )
    except SettingsError as error:
        raise Failure(f"watch: --metrics: {error}") from None
    try:
        server = MetricsServer(host, port)
    except OSError as error:
        raise Failure(f"watch: --metrics: {options.metrics}: {error.strerror or error}") from None
    print(f"coordwire: metrics at http://{shown_address((host, server.port))}/metrics", file=sys.stderr)
    try:

        def publish() -> None:
            server.text = text()

        yield publish
    finally:
        server.close()


@contextmanager
def _screen(
    board: GroupBoard, problems: Problems, follower: OffsetsFollower, bootstrap: str, is_wanted: bool
) -> Iterator[Callable[[], None]]:
    """A function that shows the board again, if a screen is wanted."""
    if not is_wanted:
        yield lambda: None
        return
    from coordwire.cli.watch.board_screen import BoardScreen, open_screen

    def place() -> str:
        name = follower.cluster_id
        return f"cluster {name} at {bootstrap}" if name else f"cluster at {bootstrap}"

    with open_screen(BoardScreen(board, problems, place, time.time_ns)) as refresh:
        yield refresh


_APART_NS = 1_000_000_000


class LagLines:
    """Writes the lines to standard output."""

    def __init__(self) -> None:
        self._written: dict[tuple[str, TopicPartition], tuple[int, KnownLag]] = {}

    def write(self, lags: Iterable[KnownLag], now_ns: int) -> None:
        """Write what has changed. lags: all that are known now."""
        written = {}
        for lag in lags:
            key = lag.group, lag.place
            before_ns, before = self._written.get(key, (0, None))
            is_same = before is not None and before[:4] == lag[:4]
            if before is not None and (is_same or now_ns - before_ns < _APART_NS):
                written[key] = before_ns, before
                continue
            written[key] = now_ns, lag
            form = {
                "event": "lagMeasured", "group": lag.group, "time": format_time(now_ns, 6),
                "topic": lag.place.topic, "partition": lag.place.partition,
                "committed": lag.committed, "lag": lag.records, "lagMs": lag.age_ms,
            }  # fmt: skip
            sys.stdout.write(encode(form) + "\n")
        self._written = written


class ProblemLines:
    """Writes the lines to standard output."""

    def write(self, problems: Iterable[Problem]) -> None:
        """Write what has changed."""
        for problem in problems:
            now_ns = problem.ended_ns or time.time_ns()
            form = {
                "event": "problemBegan" if problem.ended_ns is None else "problemEnded", "group": None,
                "time": format_time(now_ns, 6), **problem.subject._asdict(),
                "reason": problem.reason, "since": format_time(problem.since_ns, 6),
            }  # fmt: skip
            sys.stdout.write(encode(form) + "\n")
