"""`coordwire timeline`: what happened to groups, from captures and from coordinators' logs.

Strategy: `inputs` gives the events of captures and logs; a filter selects events, a format writes
them. Rules: what could not be read is counted on standard error, and the status is 1 (`coordwire decode`
shows it); where a filter matches nothing, the values that it looked at are reported.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Collection
from typing import Protocol

from coordwire.capture.printable import shown
from coordwire.capture.reader import FORMATS
from coordwire.cli import live_capture, progress
from coordwire.cli.inputs import collect_seldom
from coordwire.cli.selection import names, times
from coordwire.cli.selection.names import Find, Names
from coordwire.cli.selection.survey import Survey
from coordwire.cli.timeline.inputs import TimelineInputs
from coordwire.dialects import dialect_options
from coordwire.timeline.events import (
    BrokerAway,
    CaptureHole,
    ErrorMet,
    GroupEvent,
    MemberLeft,
    OffsetCommitted,
    RebalanceBegan,
    RebalanceCost,
    RebalanceEnded,
    TransactionStep,
    Unanswered,
)


class TimelineFormat(Protocol):
    """Writes events. is_quiet: whether nothing is written before `finish`."""

    is_quiet: bool

    def write(self, event: GroupEvent, *, is_listed: bool = True) -> None:
        """Write one event. is_listed: whether it has a line; it counts in any case."""

    def learn(self, event: GroupEvent) -> None:
        """Read an event of a selected group outside the selected times: it may name a member of later
        events."""

    def heading(self, place: str, span: times.TimeSpan | None) -> None:
        """The input, and the times of its first and last frame if it has any; called before `finish`."""

    def finish(self) -> None:
        """Write what is left, after the last event."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE|DIR",
        help="captures, __consumer_offsets segments, also compressed, or directories with them",
    )
    live_capture.configure(parser)
    parser.add_argument(
        "--format", choices=("story", "json"), default="story", help="json: a line an event (default: story)"
    )
    parser.add_argument(
        "--input", choices=FORMATS, help="format of the captures (default: detected from the content)"
    )
    parser.add_argument(
        "--port",
        type=int,
        action="append",
        default=[],
        metavar="N",
        help="a broker's port; repeatable",
    )
    parser.add_argument("--jobs", nargs="?", const="", type=_no_jobs, help=argparse.SUPPRESS)
    parser.add_argument("--strict", action="store_true", help="refuse deviations that Apache Kafka accepts")
    group = parser.add_argument_group("filters", "all of them must match")
    group.add_argument("--group", action="append", metavar="ID", help=f"only this group: {names.HELP}")
    group.add_argument(
        "--errors",
        action="store_true",
        help="only what went wrong: errors, requests without an answer, lost members, unfinished rebalances",
    )
    group.add_argument(
        "--rebalances",
        action="store_true",
        help="only rebalances: how they began, what they changed and cost",
    )
    parser.add_argument(
        "--events", action="store_true", help="the story as a line an event, in the order of time"
    )
    parser.add_argument(
        "--commits", action="store_true", help="as --events, with a line for each commit instead of a member"
    )
    parser.add_argument(
        "--rebalance", type=_number, metavar="N", help="rebalance N of the story's table in full"
    )
    parser.add_argument("--summary", action="store_true", help="only the summary of each group")
    times.configure(group)
    dialect_options.configure_name(parser)


def run(options: argparse.Namespace) -> int:
    live_capture.check_inputs(options)
    collect_seldom()
    reading = TimelineInputs(options)
    output = _format(options)
    if output.is_quiet and options.interface is None:
        progress.quietly()
    second_reading = TimelineInputs(options, quiet=True) if reading.is_lasting else None
    times.make_absolute(options, None if second_reading is None else second_reading.whole_span)
    groups = Names(options.group, _find(options))
    time_range = times.TimeRange(options.since, options.until)
    survey = _survey(options)
    events = reading.events()
    if not (groups or survey.is_timed or options.errors or options.rebalances):
        for event in events:
            survey.saw(event, True)
            output.write(event)
    for event in events:
        of_group = not groups or groups(event.group)
        is_wanted = of_group and event.time_ns in time_range
        is_listed = (not options.errors or _went_wrong(event)) and (
            not options.rebalances or isinstance(event, RebalanceBegan | RebalanceEnded | RebalanceCost)
        )
        survey.saw(event, is_wanted and is_listed)
        if is_wanted:
            output.write(event, is_listed=is_listed)
        elif of_group:
            output.learn(event)
    progress.end()
    output.heading(reading.place, reading.span)
    output.finish()
    if survey.counts.total:
        survey.report(reading.place)
    else:
        reading.report_no_groups()
    return reading.conclude()


def _find(options: argparse.Namespace) -> Find | None:
    """Which texts a group's name equals, by a second reading; None where there can be none."""
    if options.interface is not None or "-" in options.files:
        return None

    def find(texts: Collection[str]) -> set[str]:
        second_reading = TimelineInputs(options, quiet=True)
        return {event.group for event in second_reading.events()} & set(texts)

    return find


def _survey(options: argparse.Namespace) -> Survey:
    timed = options.since is not None or options.until is not None
    return Survey(
        "events",
        {"groups": lambda event: (event.group,)},
        {"groups": options.group or ()},
        (lambda event: event.time_ns) if timed else None,
    )


def _format(options: argparse.Namespace) -> TimelineFormat:
    if options.format == "json":
        from coordwire.cli.timeline.json_lines import SummaryJsonFormat, TimelineJsonFormat

        return SummaryJsonFormat() if options.summary else TimelineJsonFormat()
    from coordwire.cli.timeline.story import StoryFormat

    by_events = options.events or options.commits or options.errors or options.rebalances
    return StoryFormat(
        summary=options.summary, commits=options.commits, by_events=by_events, rebalance=options.rebalance,
        command=_command(options), is_part=options.since is not None or options.until is not None,
        of_groups=bool(options.group),
    )  # fmt: skip


def _command(options: argparse.Namespace) -> str | None:
    """What reads the same inputs again, whole; None where they can't be."""
    if options.interface is not None or "-" in options.files:
        return None
    words = ["coordwire", "timeline", *options.files]
    words += [f"--port={port}" for port in options.port]
    words += [f"--input={options.input}"] if options.input else []
    words += [f"--dialect={options.dialect}"] if options.dialect != "kafka" else []
    return shown(shlex.join(words))


def _no_jobs(text: str) -> None:
    raise argparse.ArgumentTypeError("one process makes a timeline: leave --jobs out")


def _number(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("not a number of a rebalance")
    return number


def _went_wrong(event: GroupEvent) -> bool:
    match event:
        case ErrorMet() | Unanswered() | BrokerAway() | CaptureHole():
            return True
        case OffsetCommitted() | TransactionStep():
            return event.error_code != 0
        case MemberLeft():
            return event.how not in ("left", "left_for_now")
        case RebalanceEnded():
            return event.outcome in ("superseded", "unfinished")
    return False
