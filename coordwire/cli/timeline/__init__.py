"""`coordwire timeline`: what happened to groups, from captures and from coordinators' logs.

Strategy: `inputs` gives the events of captures and logs; a filter selects events, a format writes them:
`story`, with `live_story` before its end, `html_page` or `json_lines`. Rules: what could not be read is
counted on standard error, and the status is 1 (`coordwire decode` shows it); where a filter matches nothing,
the values that it looked at are reported.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from typing import Protocol

from coordwire.capture.printable import shown
from coordwire.capture.reader import FORMATS
from coordwire.cli import Failure, live_capture, progress
from coordwire.cli.inputs import collect_seldom
from coordwire.cli.selection import names, times
from coordwire.cli.selection.names import Find, Names
from coordwire.cli.selection.survey import Survey
from coordwire.cli.timeline.inputs import TimelineInputs
from coordwire.dialects import dialect_options
from coordwire.timeline.events import (
    BrokerAway,
    CaptureHole,
    ClusterFound,
    CoordinatorStalled,
    ErrorMet,
    GroupEvent,
    MemberLeft,
    OffsetCommitted,
    ProducerFenced,
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
        "--live",
        action="store_true",
        help="print a line an event as it happens, and the story at the end, as with -i",
    )
    parser.add_argument(
        "--format",
        choices=("story", "html", "json"),
        default="story",
        help="html: the story as a page, with pictures; json: a line an event (default: story)",
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
        "--rebalance",
        type=_number,
        metavar="N",
        help="rebalance N in full: its number in the story's table",
    )
    parser.add_argument("--summary", action="store_true", help="only the summary of each group")
    times.configure(group)
    dialect_options.configure_name(parser)


def run(options: argparse.Namespace) -> int:
    live_capture.check_inputs(options)
    _check_page(options)
    collect_seldom()
    reading = TimelineInputs(options)
    with _output(options, reading) as output:
        second_reading = TimelineInputs(options, quiet=True) if reading.is_lasting else None
        times.make_absolute(options, None if second_reading is None else second_reading.whole_span)
        groups = Names(options.group, _find(options))
        survey = _survey(options)
        _write_events(options, reading.events(), output, groups, survey)
    progress.end()
    output.heading(reading.place, reading.span)
    output.finish()
    if survey.counts.total:
        survey.report(reading.place)
    else:
        reading.report_no_groups()
    return reading.conclude()


def _check_page(options: argparse.Namespace) -> None:
    """Refuse options that select other lines than those of the whole story, which a page has."""
    selecting = ("live", "errors", "rebalances", "events", "commits", "rebalance", "summary")
    for name in selecting if options.format == "html" else ():
        if getattr(options, name):
            raise Failure(f"timeline: --format html is the whole story: leave --{name} out")


def _write_events(
    options: argparse.Namespace,
    events: Iterator[GroupEvent],
    output: TimelineFormat,
    groups: Names,
    survey: Survey,
) -> None:
    """Write what is selected."""
    time_range = times.TimeRange(options.since, options.until)
    if not (groups or survey.is_timed or options.errors or options.rebalances):
        for event in events:
            survey.saw(event, True)
            output.write(event)
    for event in events:
        if isinstance(event, ClusterFound):  # it is of all groups
            output.write(event)
            continue
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


@contextmanager
def _output(options: argparse.Namespace, reading: TimelineInputs) -> Iterator[TimelineFormat]:
    """What writes the events of the block."""
    is_live = options.live or options.interface is not None
    if options.format == "json":
        output = _json_format(options)
        with live_capture.lines_at_once() if is_live else nullcontext():
            if output.is_quiet and not is_live:
                progress.quietly()
            yield output
        return
    if options.format == "html":
        from coordwire.cli.timeline.html_page import HtmlFormat

        progress.quietly()
        yield HtmlFormat(_command(options))
        return
    from coordwire.cli.timeline.story import StoryFormat

    by_events = options.events or options.commits or options.errors or options.rebalances
    story = StoryFormat(
        summary=options.summary or (is_live and by_events),  # else all lines came twice
        commits=options.commits, by_events=by_events, rebalance=options.rebalance,
        command=_command(options), is_part=options.since is not None or options.until is not None,
        of_groups=bool(options.group),
    )  # fmt: skip
    if not is_live:
        progress.quietly()
        yield story
        return
    from coordwire.cli.timeline.live_story import LiveStory

    live = LiveStory(
        story, lambda: reading.traffic, lists_commits=options.events or options.commits,
        lists_events=not options.summary and options.rebalance is None,
    )  # fmt: skip
    with live.running():
        yield live


def _json_format(options: argparse.Namespace) -> TimelineFormat:
    from coordwire.cli.timeline.json_lines import SummaryJsonFormat, TimelineJsonFormat

    return SummaryJsonFormat() if options.summary else TimelineJsonFormat()


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
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text)):
        raise argparse.ArgumentTypeError(f"expected the number of a rebalance, from 1 on, got {text!r}")
    return int(text)


def _went_wrong(event: GroupEvent) -> bool:
    match event:
        case (
            ErrorMet() | Unanswered() | BrokerAway() | CoordinatorStalled() | CaptureHole() | ProducerFenced()
        ):
            return True
        case OffsetCommitted() | TransactionStep():
            return event.error_code != 0
        case MemberLeft():
            return event.how not in ("left", "left_for_now")
        case RebalanceEnded():
            return event.outcome in ("superseded", "unfinished")
    return False
