"""Entries for scanning and for grep: one line a frame.

    08:16:52.366    41  10.0.0.1:53412 → 10.0.0.2:9092  JoinGroup v9   payments
    08:16:52.371    43  10.0.0.1:53412 ← 10.0.0.2:9092  JoinGroup v9   payments   5.1 ms  MEMBER_ID_REQUIRED

Strategy: time of day (with the date from the second day on), the packet of the frame's last byte (where the
input has none, # and the frame's number), client and broker, API and version, group, transactional id or
topics, latency, errors. The client is always on the left, and the arrow says who sends, so that an exchange
stays together under `grep`. Rules: nothing is held back; a column is as wide as its widest text so far, up to
a bound, so that lines are aligned; colours on a terminal only, and only where rich is installed.
"""

from __future__ import annotations

from functools import cache
from itertools import islice

from coordwire.capture.answer_errors import is_routine
from coordwire.capture.body_text import body_text
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.flows import TcpConnection, format_time
from coordwire.capture.printable import shown
from coordwire.capture.redaction.entry_secrets import is_shown_whole
from coordwire.cli.decode.tree import SLOW_NS
from coordwire.cli.selection.fields import FIELDS, EntryFields
from coordwire.cli.selection.topic_names import TopicNames
from coordwire.cli.terminal import Pieces, line_writer
from coordwire.codec.transcriber import HAS_CODES
from coordwire.codec.walk import FieldSelection
from coordwire.connection.dialect import KAFKA, Direction
from coordwire.errors import UnreadableRange, counted
from coordwire.messages import find_message
from coordwire.versions import ApiKey

TOPICS = 2
"""Topics of a frame that are named."""

LONGEST_NAME = 60
WIDEST = {"number": 10, "client": 47, "broker": 47, "api": 40, "about": 40, "latency": 14}
"""Widths up to which columns grow."""

MOST_ENDS = 10_000
"""The ends of so many connections are kept as text."""

_LEAST = {"number": 5, "client": 15, "broker": 15, "api": 22, "about": 16, "latency": 12}


class LineFormat:
    """Writes a line an entry to standard output."""

    def __init__(self, *, show_secrets: bool, names: TopicNames) -> None:
        self._write = line_writer()
        self._show_secrets = show_secrets
        self._names = names
        self._widths = dict(_LEAST)
        self._day: str | None = None
        self._ends: dict[tuple[int, str], tuple[TcpConnection, Pieces]] = {}

    def write(self, entry: Entry, digits: int) -> None:
        pieces: Pieces = [(self._time(entry, digits), "plain"), ("  ", "plain")]
        number = getattr(entry, "number", None)
        place = str(entry.packet) if entry.packet is not None else f"#{number}" if number else ""
        pieces.append((self._padded("number", place, right=True), "note"))
        if isinstance(entry, UnreadableRange):
            pieces += self._unreadable(entry)
        else:
            pieces += self._frame(entry, digits)
        while pieces and not pieces[-1][0].strip():
            pieces.pop()
        last, style = pieces[-1]
        pieces[-1] = last.rstrip(), style
        self._write([pieces])

    def finish(self) -> None:
        """Do nothing: every entry is written at once."""

    def _time(self, entry: Entry, digits: int) -> str:
        if entry.time_ns is None:
            return ""
        day, _, clock = format_time(entry.time_ns, digits).removesuffix("Z").partition("T")
        self._day = self._day or day
        return clock if day == self._day and clock else f"{day} {clock}".rstrip()

    def _padded(self, column: str, text: str, *, right: bool = False) -> str:
        """A text in its column, which grows with it."""
        width = self._widths[column]
        if len(text) > width and width < WIDEST[column]:
            width = self._widths[column] = min(len(text), WIDEST[column])
            self._ends.clear()
        return text.rjust(width) if right else text.ljust(width)

    def _unreadable(self, entry: UnreadableRange) -> Pieces:
        source, _, target = entry.flow.partition(" > ")
        flow = f"  {shown(source)} → {shown(target)}" if target else ""
        size = counted(entry.length, "byte", ",")
        description = f"  ✗ {size} not read, from byte {entry.position:,} on: {entry.reason}"
        return [(flow, "flow"), (description, "error")]

    def _ends_of(self, entry: FrameEntry) -> Pieces:
        """Client, arrow and broker of a frame, made once for each flow and width."""
        connection = entry.connection
        if connection is None:
            return [("  → " if entry.direction == "request" else "  ← ", entry.direction)]
        key = id(connection), entry.flow  # its own id for as long as it is kept
        known = self._ends.get(key)
        if known is None:
            client, broker = str(connection.client), str(connection.broker)
            arrow = " → " if entry.flow.startswith(f"{client} > ") else " ← "
            client, broker = self._padded("client", client), self._padded("broker", broker)
            if len(self._ends) >= MOST_ENDS:
                self._ends.clear()
            pieces = [(f"  {client}", "flow"), (arrow, entry.direction), (f"{broker}  ", "flow")]
            known = self._ends[key] = connection, pieces
        return known[1]

    def _frame(self, entry: FrameEntry, digits: int) -> Pieces:
        padded = self._padded
        text, flags = body_text(entry)
        is_plain = text is not None and (self._show_secrets or is_shown_whole(entry, text))
        subject = plain_subject(entry) if is_plain else None
        fields = None
        if subject is None or not is_plain or flags & HAS_CODES:
            fields = EntryFields(entry, digits, show_secrets=self._show_secrets, names=self._names)
            subject = subject or self._subject(fields)
        latency = entry.latency_ns
        latency_text = "" if latency is None else f"{latency / 1e6:,.3f} ms"
        style = "slow" if latency is not None and latency > SLOW_NS else "plain"
        pieces = [
            *self._ends_of(entry),
            (padded("api", _api(entry)), "api"),
            (f"  {padded('about', subject)}  ", "text"),
            (padded("latency", latency_text, right=True), style),
        ]
        return pieces if fields is None else [*pieces, *_troubles(entry, fields)]

    def _subject(self, fields: EntryFields) -> str:
        """The group that a frame is about, else the transactional id, else its topics."""
        for name in ("group", "transactionalId"):
            for value in FIELDS[name].values(fields):
                return _short(value)
        topics = list(islice(FIELDS["topic"].values(fields), TOPICS + 1))
        if len(topics) > TOPICS:
            topics[TOPICS:] = ["…"]
        return " ".join(_short(topic) for topic in topics)


def plain_subject(entry: FrameEntry) -> str | None:
    """The group or transactional id of a frame of which nothing is withheld, by its API's own field for it;
    None where `LineFormat` must look further."""
    if entry.request is not None:
        if _is_about(entry.api_key, entry.direction):
            return None
        entry = entry.request
    name = _subject_field(entry.api_key, entry.direction)
    subject = None if name is None else getattr(entry.message, name, None)
    return _short(subject) if subject else None


@cache
def _is_about(key: int | None, direction: Direction) -> bool:
    """Whether any field of a message may name what a line is about."""
    return key is None or bool(_ABOUT.fields(find_message(key, direction)))


@cache
def _subject_field(key: int | None, direction: Direction) -> str | None:
    """The field of the message itself that comes first among those which may name what a line is about."""
    if key is None or key == ApiKey.FIND_COORDINATOR:
        return None
    cls = find_message(key, direction)
    fields = _GROUPS.fields(cls) or _TRANSACTIONS.fields(cls)
    return fields[0].name if fields and fields[0].struct is None and not fields[0].array else None


_GROUPS = FieldSelection(lambda field: field.entity == "group_id")
_TRANSACTIONS = FieldSelection(lambda field: field.entity == "transactional_id")
_ABOUT = FieldSelection(
    lambda field: field.entity in ("group_id", "transactional_id", "topic_name") or field.name == "topic_id"
)


def _short(name: str) -> str:
    return shown(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…")


def _api(entry: FrameEntry) -> str:
    if entry.token:
        return "SASL token"
    if entry.api_key is None:
        return "unknown"
    name = entry.api_name or f"api {entry.api_key}"
    return f"{name} v{entry.api_version}" if entry.dialect == KAFKA else name


def _troubles(entry: FrameEntry, fields: EntryFields) -> Pieces:
    pieces: Pieces = []
    for error in fields.errors:
        times = f" ×{error.times}" if error.times > 1 else ""
        style = "odd" if is_routine(entry, error.code) else "error"
        pieces += [("  " if not pieces else ", ", "plain"), (error.name + times, style)]
    if entry.error is not None:
        place = f", {entry.error.path}" if entry.error.path else ""
        pieces.append((f"  ✗ refused at byte {entry.error.position}{place}: {entry.error.reason}", "error"))
    if entry.deviations:
        many = "" if len(entry.deviations) == 1 else f" (and {len(entry.deviations) - 1} more)"
        pieces.append((f"  ! {entry.deviations[0].reason}{many}", "odd"))
    return pieces
