"""The entries that the options of `coordwire decode` select.

Strategy: a filter looks at an entry and, for a response, at its request too, so that a response matches with
its request. `--packets` and `--filter` look at the entry itself. Rules: an unreadable range has no names, and
an entry without a time is in no range of times: they are left out and counted, and the count is reported.
"""

from __future__ import annotations

import argparse
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from coordwire.capture.answer_errors import answer_errors, is_routine
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.printable import shown
from coordwire.capture.reader import Capture
from coordwire.cli import Failure
from coordwire.cli.selection import names, times
from coordwire.cli.selection.names import TopicNames
from coordwire.cli.selection.survey import Survey
from coordwire.cli.selection.times import TimeRange
from coordwire.connection.dialect import KAFKA
from coordwire.errors import UnreadableRange

if TYPE_CHECKING:
    from coordwire.cli.selection.conditions import Condition

FILTERS = ("api", "group", "member", "client_id", "errors", "since", "until", "filter", "packets")
"""The options that leave frames out."""

MOST_APIS = 1_000
"""The keys of APIs that are remembered; frames may name any."""

_PART = re.compile(r"\s*(?:(\d{1,18})|(\d{0,18})\s*-\s*(\d{0,18}))\s*", re.ASCII)
_LAST = 10**18


EPILOG = """\
filter expressions:
  --filter 'api == "JoinGroup" and error != 0 and latency > 100ms'
  --filter 'group =~ "^pay" or body.topics[].name in ("orders", "refunds")'
  --filter 'packet in (100..200, 350) and not clientId contains "till"'

  comparisons   == != < <= > >= contains, =~ (or matches: a regular expression,
                (?i) at its beginning ignores case), in (1, 2, 5..9);
                a field alone: it has a value
  combined by   and, or, not and brackets
  values        numbers, "texts", true, false, null; durations with ns, us, ms,
                s, min, h; sizes with B, kB, MB, KiB, MiB; times as for
                --since, in quotes
  fields        {fields};
                header.… and body.… as in the JSON lines (groupId, or
                group_id), [] through an array, [2] for an element;
                request.… of the request that a response answers

  A comparison is true where any value of the field meets it, so != is true
  where one value differs; not (topic == "a") is true where none is a. A field
  that a frame does not have, null and a redacted value meet nothing but
  == null. latency needs a unit; error is the codes of a response by number or
  name (0: none), refused why a frame could not be decoded.

--fields takes the same fields, with commas between them.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "filters", "all must match; an answer with its request, but --packets and --filter"
    )
    group.add_argument(
        "--api",
        action="append",
        type=names.apis,
        metavar="NAME|KEY",
        help="an API; separate several with commas or repeat the option",
    )
    group.add_argument(
        "--group", action="append", metavar="ID", help=f"frames that name this group: {names.HELP}"
    )
    group.add_argument(
        "--member",
        action="append",
        metavar="ID",
        help="frames that name this member id or instance id; as --group, or CLIENT/ID, the id shortened",
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
        help="only refused frames, and responses with an error code that is not routine (as "
        "MEMBER_ID_REQUIRED is)",
    )
    times.configure(group)
    group.add_argument(
        "--packets",
        type=PacketRanges,
        metavar="RANGES",
        help="frames in these packets, as Wireshark counts them: 100-200,350,900-",
    )
    group.add_argument("--filter", metavar="EXPRESSION", help="frames that meet an expression")


class EntryNames:
    """The names that the filters of a command line select, in any capture.

    entries: gives the entries of all inputs once more, to look for a value that equals a text; None where
    they can be read only once.
    """

    def __init__(
        self, options: argparse.Namespace, entries: Callable[[], Iterable[Entry]] | None = None
    ) -> None:
        def find(values: Callable[[FrameEntry], Iterable[object]]) -> names.Find | None:
            if entries is None:
                return None
            return lambda texts: _equal(texts, entries(), values)

        self.groups = names.Names(options.group, find(names.entry_groups))
        self.members = names.Names(options.member, find(names.entry_members))
        self.clients = names.Names(options.client_id, find(names.entry_clients))


def _equal(
    texts: Iterable[str], entries: Iterable[Entry], values: Callable[[FrameEntry], Iterable[object]]
) -> set[str]:
    """The texts that equal some entry's value."""
    remaining, matches = set(texts), set[str]()
    for entry in entries:
        if isinstance(entry, FrameEntry):
            equal = {value for value in values(entry) if isinstance(value, str)} & remaining
            matches |= equal
            remaining -= equal
            if not remaining:
                break
    return matches


def survey(options: argparse.Namespace) -> Survey | None:
    """A survey of the entries for the filters of a command line; None without a filter."""
    texts_by_kind = {
        "groups": options.group, "members": options.member, "client ids": options.client_id
    }  # fmt: skip
    values: dict[str, Callable[[FrameEntry], Iterable[object]]] = {
        "groups": names.entry_groups, "members": names.entry_members, "client ids": names.entry_clients
    }  # fmt: skip
    kinds = {name: values[name] for name, texts in texts_by_kind.items() if texts}
    if options.api or getattr(options, "filter", None):
        kinds["APIs"] = lambda entry: (entry.api_name or "unknown",)
    timed = options.since is not None or options.until is not None
    if not (kinds or timed or any(getattr(options, name, None) for name in FILTERS)):
        return None
    return Survey(
        "frames",
        kinds,
        {name: texts for name, texts in texts_by_kind.items() if texts},
        (lambda entry: entry.time_ns) if timed else None,
    )


class Filter:
    """The filters of one command line, over one capture. `passed_over`: entries that can't be decided."""

    def __init__(self, options: argparse.Namespace, entry_names: EntryNames | None = None) -> None:
        entry_names = entry_names or EntryNames(options)
        self.passed_over = 0
        self._keys = set().union(*options.api) if options.api else None
        self._apis: dict[int | None, bool] = {}
        self._groups = entry_names.groups
        self._members = entry_names.members
        self._clients = entry_names.clients
        self._errors = options.errors
        self._times = TimeRange(options.since, options.until)
        self.keys = (
            None if self._keys is None or any(isinstance(key, str) for key in self._keys) else self._keys
        )
        """The keys of the APIs that are selected; None for all, and where another dialect's are."""
        self.has_times = bool(self._times)
        self._has_names = bool(self._keys is not None or self._groups or self._members or self._clients)

    def __call__(self, entry: Entry) -> bool:
        """Whether to show an entry."""
        if entry.time_ns not in self._times:
            self.passed_over += entry.time_ns is None
            return False
        if isinstance(entry, UnreadableRange):
            self.passed_over += self._has_names
            return not self._has_names
        if self._has_names and not self._matches_names(entry):
            return False
        return not self._errors or entry.error is not None or has_error(entry)

    def _matches_names(self, entry: FrameEntry) -> bool:
        if self._keys is not None and not self._is_of_api(entry):
            return False
        if self._clients and not self._clients(entry.client_id):
            return False
        if self._groups and not self._groups.selects_any(names.entry_groups(entry)):
            return False
        return not self._members or self._members.selects_any(names.entry_members(entry, shortened=True))

    def _is_of_api(self, entry: FrameEntry) -> bool:
        """Whether an entry is of a selected API; its key is enough in Kafka's own protocol."""
        is_of = self._apis.get(entry.api_key) if entry.dialect == KAFKA else None
        if is_of is None:
            assert self._keys is not None
            is_of = not self._keys.isdisjoint((entry.api_key, (entry.api_name or "").lower()))
            if entry.dialect == KAFKA and len(self._apis) < MOST_APIS:
                self._apis[entry.api_key] = is_of
        return is_of


def has_error(entry: FrameEntry) -> bool:
    """Whether a response carries an error code that is not routine."""
    return any(not is_routine(entry, error.code) for error in answer_errors(entry))


# --- --packets and --filter ---


class PacketRanges:
    """The packets of `--packets 100-200,350,900-`, as Wireshark counts them.

    The ranges do not touch, and are in order. A range includes both ends, and is open where an end is left
    out. A frame is in it if any of its packets is, from that of its first byte to that of its last.
    """

    def __init__(self, text: str) -> None:
        ranges = []
        for part in text.split(","):
            match = _PART.fullmatch(part)
            if match is None or not (match[1] or match[2] or match[3]):
                raise argparse.ArgumentTypeError(
                    f"{part!r} is not a packet's number or a range of them, such as 100-200"
                )
            low, high = int(match[1] or match[2] or 1), int(match[1] or match[3] or _LAST)
            if low < 1 or high < low:
                reason = "packets are counted from 1" if low < 1 else "its end is before its beginning"
                raise argparse.ArgumentTypeError(f"{part.strip()!r}: {reason}")
            ranges.append((low, high))
        self._ranges: list[tuple[int, int]] = []
        for low, high in sorted(ranges):
            if self._ranges and low <= self._ranges[-1][1] + 1:
                self._ranges[-1] = self._ranges[-1][0], max(high, self._ranges[-1][1])
            else:
                self._ranges.append((low, high))
        self._ends = [high for _, high in self._ranges]

    def overlap(self, first: int, last: int) -> bool:
        """Whether any packet from the first to the last is in a range."""
        index = bisect_left(self._ends, first)
        return index < len(self._ranges) and self._ranges[index][0] <= last


def epilog() -> str:
    """The part of the help about expressions."""
    import textwrap

    from coordwire.cli.selection.fields import FIELDS

    names = textwrap.wrap(", ".join(FIELDS), 63)
    return EPILOG.replace("{fields}", f"\n{' ' * 16}".join(names))


def parsed_condition(text: str) -> Condition:
    """The condition of an option --filter. Raises `Failure`."""
    from coordwire.cli.selection.conditions import condition
    from coordwire.cli.selection.expressions import FilterError

    try:
        return condition(text)
    except FilterError as error:
        raise Failure(f"--filter: {error.pointed(text)}") from None


def _misses(
    keys: set[int | str] | None, precondition: Callable[[FrameEntry], bool] | None
) -> Callable[[Entry], bool]:
    """Whether an entry is a frame of Kafka's of another API, or one that doesn't meet the precondition."""

    def of_another_api(entry: Entry) -> bool:
        return isinstance(entry, FrameEntry) and entry.api_key not in keys and entry.dialect == KAFKA  # type: ignore[operator]

    def unmet(entry: Entry) -> bool:
        return isinstance(entry, FrameEntry) and not precondition(entry) and entry.dialect == KAFKA  # type: ignore[misc]

    if precondition is None:
        return of_another_api
    return unmet if keys is None else lambda entry: of_another_api(entry) or unmet(entry)


class Selection:
    """--packets and --filter of a command line, over all inputs. `passed_over`: entries that could not be
    judged."""

    def __init__(self, options: argparse.Namespace, names: TopicNames) -> None:
        self.passed_over = 0
        self._packets: PacketRanges | None = options.packets
        self._show_secrets = options.show_secrets
        self._names = names
        self._expression: str | None = options.filter
        self._condition = None if options.filter is None else parsed_condition(options.filter)

    def misses(self, filter_: Filter) -> Callable[[Entry], bool] | None:
        """Whether an entry is surely left out, here or by a filter, at the cost of a look at its API or its
        bytes; None where all entries need a closer look. An entry that isn't judged may be counted."""
        if self._packets is not None or filter_.has_times:
            return None
        keys, precondition = filter_.keys, None
        if self._expression is not None:
            from coordwire.cli.selection import conditions

            precondition = conditions.precondition(self._expression)
        if keys is None and precondition is None:
            return None
        return _misses(keys, precondition)

    def check(self, capture: Capture) -> None:
        """Refuse options that do not apply to an input. Raises `Failure`."""
        if self._packets is not None and capture.format not in ("pcap", "pcapng"):
            raise Failure(
                f"{shown(capture.name)}: --packets selects from pcap and pcapng, which number their packets; "
                f"this input is {capture.format}"
            )

    def __call__(self, entry: Entry, digits: int) -> bool:
        """Whether to show an entry. digits: decimals of a second that its time has."""
        if self._packets is not None:
            if entry.packet is None:
                self.passed_over += 1
                return False
            if not self._packets.overlap(entry.first_packet or entry.packet, entry.packet):
                return False
        if self._condition is None:
            return True
        from coordwire.cli.selection.fields import EntryFields

        fields = EntryFields(entry, digits, show_secrets=self._show_secrets, names=self._names)
        if self._condition(fields):
            return True
        self.passed_over += isinstance(entry, UnreadableRange)
        return False
