"""Which entries the user asked for.

Strategy: a filter looks at an entry and, for a response, at its request too, so that an answer is found by
what was asked. Rules: an unreadable range can't be matched with what is asked for, nor an entry without a
time placed in one: they are left out and counted, and the count is reported.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

from coordwire.capture.answer_errors import answer_errors, is_routine
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.cli import Failure, name_patterns
from coordwire.cli.survey import Survey
from coordwire.codec import Struct
from coordwire.codec.entities import entity_values
from coordwire.codec.names import suggestion
from coordwire.designs.dialects.grammar import CALLS
from coordwire.errors import UnreadableRange
from coordwire.messages.keys import FACTS

FILTERS = ("api", "group", "member", "client_id", "errors", "since", "until", "filter", "packets")
"""The options that leave frames out."""

SECOND = 1_000_000_000
DAY = 86_400 * SECOND
LATEST = 1 << 63
"""Seconds since 1970 beyond any real time."""

_KEY = re.compile(r"-?[0-9]{1,6}")
_RELATIVE = re.compile(r"([+-])(\d{1,15}(?:\.\d{1,9})?)(ns|us|µs|ms|s|min|h|d)")
_UNITS = {
    "ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": SECOND, "min": 60 * SECOND,
    "h": 3600 * SECOND, "d": DAY,
}  # fmt: skip
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?")
_FRACTION = re.compile(r"(.*:\d\d)\.(\d{1,9})(.*)")


def configure(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "filters", "a frame must match all of them; a response matches if its request does"
    )
    group.add_argument(
        "--api",
        action="append",
        type=apis,
        metavar="NAME|KEY",
        help="an API; separate several with commas or repeat the option",
    )
    group.add_argument(
        "--group", action="append", metavar="ID", help=f"frames that name this group: {name_patterns.HELP}"
    )
    group.add_argument(
        "--member",
        action="append",
        metavar="ID",
        help="frames that name this member id or instance id; as --group, or CLIENT/ID as timelines say it",
    )
    group.add_argument(
        "--client-id",
        action="append",
        metavar="ID",
        help="frames of this client, and their responses; as --group",
    )
    group.add_argument(
        "--errors",
        action="store_true",
        help="only refused frames, and responses with an error code, but for those that are routine: "
        "MEMBER_ID_REQUIRED of JoinGroup, UNSUPPORTED_VERSION of ApiVersions",
    )
    configure_times(group)


def configure_times(parser: argparse._ActionsContainer) -> None:
    """--since and --until, for a `TimeRange`."""
    parser.add_argument(
        "--since",
        type=moment,
        metavar="TIME",
        help="first time (UTC): ISO 8601, epoch seconds, HH:MM[:SS] of the day on which the input begins; "
        "+30s: so long after the input's first frame, -10min: before its last (ms, s, min, h, d)",
    )
    parser.add_argument(
        "--until", type=moment, metavar="TIME", help="last time, as --since; both ends are included"
    )


def apis(text: str) -> set[int | str]:
    """API names or keys, with commas between them."""
    return {_wanted(part.strip()) for part in text.split(",") if part.strip()}


def _wanted(text: str) -> int | str:
    """A key, or a name in lower case: of an API, or of what another dialect asks."""
    drafts = {call.name.lower() for calls in CALLS.values() for call in calls}
    return text.lower() if text.lower() in drafts else api(text)


def api(text: str) -> int:
    """The key of an API that is given by its name, in any case, or its key."""
    if _KEY.fullmatch(text):
        return int(text)
    names = {facts.name.lower(): key for key, facts in FACTS.items()}
    if text.lower() in names:
        return names[text.lower()]
    hint = suggestion(text, (facts.name for facts in FACTS.values()))
    raise argparse.ArgumentTypeError(f"no API is called {text!r}{hint}")


class Moment(int):
    """Nanoseconds: since 1970 in UTC; if `clock`, since the midnight before the first entry; after the
    input's `beginning`, or before (less than 0) its `end`, if it is relative to one of them."""

    clock = False
    relative: Literal["beginning", "end"] | None = None


TimeSpan = tuple[int, int]
"""The times of an input's first and last entry."""


def moment(text: str) -> Moment:
    """A time as the user writes it."""
    if found := _CLOCK.fullmatch(text):
        hours, minutes, seconds = (int(part or 0) for part in found.group(1, 2, 3))
        if hours > 24 or minutes > 59 or seconds > 60:
            raise argparse.ArgumentTypeError(f"expected a time of day, got {text!r}")
        result = Moment(((hours * 60 + minutes) * 60 + seconds) * SECOND + _nanoseconds(found[4]))
        result.clock = True
        return result
    if found := _RELATIVE.fullmatch(text):
        ns = int(Decimal(found[2]) * _UNITS[found[3]])
        result = Moment(ns if found[1] == "+" else -ns)
        result.relative = "beginning" if found[1] == "+" else "end"
        return result
    try:
        epoch = Decimal(text)
        if epoch.is_finite() and abs(epoch) < LATEST:
            return Moment(epoch * SECOND)
    except (ArithmeticError, ValueError):
        pass
    fraction = _FRACTION.fullmatch(text)
    plain, more = (fraction[1] + fraction[3], fraction[2]) if fraction else (text, "")
    try:
        when = datetime.fromisoformat(plain)
        when = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"expected a time (ISO 8601, HH:MM:SS, epoch seconds, +30s or -10min), got {text!r}"
        ) from None
    return Moment(
        (when - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000 + _nanoseconds(more)
    )


def _nanoseconds(digits: str | None) -> int:
    return int((digits or "0").ljust(9, "0"))


class TimeRange:
    """From --since to --until. What has no time is in it only if it has no ends; a time of day is that of the
    first time asked about. Moments that are relative must have been made absolute (`absolute`)."""

    def __init__(self, since: Moment | None, until: Moment | None) -> None:
        self._since, self._until = since, until
        self._midnight: int | None = None

    def __bool__(self) -> bool:
        return self._since is not None or self._until is not None

    def __contains__(self, time_ns: int | None) -> bool:
        if not self:
            return True
        if time_ns is None:
            return False
        if self._midnight is None:
            self._midnight = time_ns - time_ns % DAY
        return (self._since is None or time_ns >= self._absolute(self._since)) and (
            self._until is None or time_ns <= self._absolute(self._until)
        )

    def _absolute(self, when: Moment) -> int:
        return when + (self._midnight or 0) if when.clock else when


def absolute(options: argparse.Namespace, find: Callable[[], TimeSpan | None] | None) -> None:
    """Make --since and --until absolute that are relative to the input. find: gives the input's span, by
    another reading; None where it can be read only once. Raises `Failure`."""
    asked = [name for name in ("since", "until") if getattr(getattr(options, name), "relative", None)]
    if not asked:
        return
    if find is None:
        text = "standard input and live captures are read once: name a file, or give a time"
        raise Failure(f"--{asked[0]} relative to the input needs its first and last time; {text}")
    span = find()
    for name in asked:
        when: Moment = getattr(options, name)
        moved = None if span is None else Moment(when + span[when.relative == "end"])
        setattr(options, name, moved)


def span_of(times: Iterable[int | None]) -> TimeSpan | None:
    """From the first to the last of all times; None where there are none."""
    first = last = None
    for time_ns in times:
        if time_ns is not None:
            first = time_ns if first is None or time_ns < first else first
            last = time_ns if last is None or time_ns > last else last
    return None if first is None or last is None else (first, last)


class EntryNames:
    """The names that the filters of a command line ask for, whatever the capture.

    entries: gives the entries of all inputs once more, to look for a value that equals a text; None where
    they can be read only once.
    """

    def __init__(
        self, options: argparse.Namespace, entries: Callable[[], Iterable[Entry]] | None = None
    ) -> None:
        def find(values: Callable[[FrameEntry], Iterable[object]]) -> name_patterns.Find | None:
            if entries is None:
                return None
            return lambda texts: _equal(texts, entries(), values)

        self.groups = name_patterns.Names(options.group, find(entry_groups))
        self.members = name_patterns.Names(options.member, find(entry_members))
        self.clients = name_patterns.Names(options.client_id, find(entry_clients))


def _equal(
    texts: Iterable[str], entries: Iterable[Entry], values: Callable[[FrameEntry], Iterable[object]]
) -> set[str]:
    """Those of the texts that some entry's value equals."""
    left, found = set(texts), set[str]()
    for entry in entries:
        if isinstance(entry, FrameEntry):
            equal = {value for value in values(entry) if isinstance(value, str)} & left
            found |= equal
            left -= equal
            if not left:
                break
    return found


def survey(options: argparse.Namespace) -> Survey | None:
    """What goes by, for where nothing matches; None without a filter."""
    asked = {
        "groups": options.group, "members": options.member, "client ids": options.client_id
    }  # fmt: skip
    values: dict[str, Callable[[FrameEntry], Iterable[object]]] = {
        "groups": entry_groups, "members": entry_members, "client ids": entry_clients
    }  # fmt: skip
    kinds = {name: values[name] for name, texts in asked.items() if texts}
    if options.api or getattr(options, "filter", None):
        kinds["APIs"] = lambda entry: (entry.api_name or "unknown",)
    timed = options.since is not None or options.until is not None
    if not (kinds or timed or any(getattr(options, name, None) for name in FILTERS)):
        return None
    return Survey(
        "frames",
        kinds,
        {name: texts for name, texts in asked.items() if texts},
        (lambda entry: entry.time_ns) if timed else None,
    )


class Filter:
    """The filters of one command line, over one capture. `passed_over`: entries that can't be decided."""

    def __init__(self, options: argparse.Namespace, asked: EntryNames | None = None) -> None:
        asked = asked or EntryNames(options)
        self.passed_over = 0
        self._keys = set().union(*options.api) if options.api else None
        self._groups = asked.groups
        self._members = asked.members
        self._clients = asked.clients
        self._errors = options.errors
        self._times = TimeRange(options.since, options.until)
        self._asks = bool(self._keys is not None or self._groups or self._members or self._clients)

    def __call__(self, entry: Entry) -> bool:
        """Whether to show an entry."""
        if entry.time_ns not in self._times:
            self.passed_over += entry.time_ns is None
            return False
        if isinstance(entry, UnreadableRange):
            self.passed_over += self._asks
            return not self._asks
        if self._asks and not self._asked(entry):
            return False
        return not self._errors or entry.error is not None or has_error(entry)

    def _asked(self, entry: FrameEntry) -> bool:
        if self._keys is not None and self._keys.isdisjoint((entry.api_key, (entry.api_name or "").lower())):
            return False
        if self._clients and not self._clients(entry.client_id):
            return False
        if self._groups and not self._groups.any(entry_groups(entry)):
            return False
        return not self._members or self._members.any(entry_members(entry, shortened=True))


def entry_groups(entry: FrameEntry) -> Iterator[Any]:
    """The groups that an entry or its request names."""
    return _both(entry, groups)


def entry_members(entry: FrameEntry, *, shortened: bool = False) -> Iterator[Any]:
    """The members that an entry or its request names; shortened: also as CLIENT/ID."""
    for value in _both(entry, members):
        yield value
        if shortened and entry.client_id:
            yield f"{entry.client_id}/{value}"


def entry_clients(entry: FrameEntry) -> Iterator[str | None]:
    """The client of an entry."""
    yield entry.client_id


def _both(entry: FrameEntry, of: Any) -> Iterator[Any]:
    """What `of` finds in an entry's message, and in its request's."""
    yield from of(entry.message)
    if entry.request is not None:
        yield from of(entry.request.message)


def groups(message: Struct | None) -> Iterator[Any]:
    """The groups that a message names."""
    yield from entity_values(message, "group_id")
    # The key of FindCoordinator is a group's only for one of its types.
    if type(message).__name__ == "FindCoordinatorRequest" and getattr(message, "key_type", 0) == 0:
        yield getattr(message, "key", None)
        yield from getattr(message, "coordinator_keys", None) or ()


def members(message: Struct | None) -> Iterator[Any]:
    """The members that a message names, by member id or as static members."""
    return entity_values(message, "member_id", "instance_id")


def has_error(entry: FrameEntry) -> bool:
    """Whether a response carries an error code that is not routine."""
    return any(not is_routine(entry, one.code) for one in answer_errors(entry))
