"""Entries for scanning and for grep: one line a frame.

    08:16:52.366    41  10.0.0.1:53412 → 10.0.0.2:9092  JoinGroup v9   payments
    08:16:52.371    43  10.0.0.1:53412 ← 10.0.0.2:9092  JoinGroup v9   payments   5.1 ms  MEMBER_ID_REQUIRED

Strategy: time of day (with the date from the second day on), the packet of the frame's last byte (where the
input has none, # and the frame's number), client and broker, API and version, group, transactional id or
topics, latency, errors. The client is always on the left, and the arrow says who sends, so that an exchange
stays together under `grep`. A frame whose body's text is known and of which nothing is withheld is not
decoded where that text, or its request's, begins with the group. Rules: nothing is held back; a column is as
wide as its widest text so far, up to a bound, so that lines are aligned; colours on a terminal only, and only
where rich is installed.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import islice

from coordwire.capture.answer_errors import AnswerError, is_routine
from coordwire.capture.body_text import body_text
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.flows import TcpConnection, format_time
from coordwire.capture.printable import Pieces, shown
from coordwire.capture.redaction.entry_secrets import shown_text
from coordwire.cli.selection.fields import FIELDS, EntryFields
from coordwire.cli.selection.names import TopicNames
from coordwire.cli.terminal import SLOW_NS, line_writer
from coordwire.codec.program import HAS_CODES
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

MOST_KEPT = 50_000
"""The ends of so many connections are kept."""

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

    @property
    def state(self) -> tuple[dict[str, int], str | None]:
        """What the lines so far have left for the next ones: the widths of columns, and the first day."""
        return dict(self._widths), self._day

    @state.setter
    def state(self, state: tuple[dict[str, int], str | None]) -> None:
        widths, self._day = state
        self._widths = dict(widths)
        self._ends.clear()

    def write(self, entry: Entry, digits: int) -> None:
        self._write([self._pieces(entry, digits)])

    def _pieces(self, entry: Entry, digits: int) -> Pieces:
        pieces: Pieces = [(self._clock(entry, digits), "plain"), ("  ", "plain")]
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
        return pieces

    def finish(self) -> None:
        """Do nothing: every entry is written at once."""

    def _clock(self, entry: Entry, digits: int) -> str:
        if entry.time_ns is None:
            return ""
        return self._on_first_day(format_time(entry.time_ns, digits))

    def _on_first_day(self, time: str) -> str:
        """A time without its date, if that is the first line's."""
        day, _, clock = time.removesuffix("Z").partition("T")
        self._day = self._day or day
        return clock if day == self._day and clock else f"{day} {clock}".rstrip()

    def _padded(self, column: str, text: str, *, right: bool = False) -> str:
        """A text in its column, which grows with it."""
        width = self._widths[column]
        if len(text) > width and width < WIDEST[column]:
            width = self._widths[column] = min(len(text), WIDEST[column])
            self._ends.clear()  # its texts have the widths in them
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
            if len(self._ends) >= MOST_KEPT:
                self._ends.clear()
            pieces = [(f"  {client}", "flow"), (arrow, entry.direction), (f"{broker}  ", "flow")]
            known = self._ends[key] = connection, pieces
        return known[1]

    def _frame(self, entry: FrameEntry, digits: int) -> Pieces:
        padded = self._padded
        text = shown_text(entry, show_secrets=self._show_secrets)
        subject = None if text is None else plain_subject(entry)
        fields = None
        if subject is None or body_text(entry)[1] & HAS_CODES:
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
        return _joined(FIELDS["topic"].values(fields))


def plain_subject(entry: FrameEntry) -> str | None:
    """The group or transactional id of a frame of which nothing is withheld, by its API's own field for it;
    None where `LineFormat` must look further."""
    first = _first_name(entry)
    if first is not None:
        return _short(first) if first else None
    if entry.request is not None:
        if _has_own_subject(entry.api_key):
            return None
        entry = entry.request
    name = _subject_field(entry.api_key, entry.direction)[0]
    value = None if name is None else getattr(entry.message, name, None)
    return _short(value) if value else None


def _first_name(entry: FrameEntry) -> str | None:
    """The same as far as the body's text, or the request's, begins with it; perhaps empty."""
    if entry.request is not None:
        if _has_own_subject(entry.api_key):
            return None
        entry = entry.request
    beginning = _subject_field(entry.api_key, entry.direction)[1]
    text = (entry.text or body_text(entry))[0]
    if not beginning or text is None or not text.startswith(beginning):
        return None
    name = text[len(beginning) : text.index('"', len(beginning))]
    return None if "\\" in name else name  # which may be before a quotation mark


def _joined(topics: Iterable[str]) -> str:
    first = list(islice(topics, TOPICS + 1))
    if len(first) > TOPICS:
        first[TOPICS:] = ["…"]
    return " ".join(_short(topic) for topic in first)


@cache
def _has_own_subject(key: int | None) -> bool:
    """Whether an answer may name what its line is about before its request does."""
    if key is None or key == ApiKey.FIND_COORDINATOR:
        return True
    request, answer = find_message(key, "request"), find_message(key, "response")
    if _GROUPS.fields(answer):
        return True
    return not _GROUPS.fields(request) and bool(_TRANSACTIONS.fields(answer))


@cache
def _subject_field(key: int | None, direction: Direction) -> tuple[str | None, str]:
    """The field of the message itself that comes first among those which may name what a line is about; and
    how a body's text begins that has it first."""
    if key is None or key == ApiKey.FIND_COORDINATOR:
        return None, ""
    cls = find_message(key, direction)
    fields = _GROUPS.fields(cls) or _TRANSACTIONS.fields(cls)
    if not fields or fields[0].struct is not None or fields[0].array:
        return None, ""
    return fields[0].name, f'{{"{fields[0].json_name}":"'


_GROUPS = FieldSelection(lambda field: field.entity == "group_id")
_TRANSACTIONS = FieldSelection(lambda field: field.entity == "transactional_id")


def _short(name: str) -> str:
    return shown(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…")


def _api(entry: FrameEntry) -> str:
    if entry.token:
        return "SASL token"
    if entry.api_key is None:
        return "unknown"
    name = entry.api_name or f"api {entry.api_key}"
    return f"{name} v{entry.api_version}" if entry.dialect == KAFKA else name


def _error_pieces(entry: FrameEntry, errors: list[AnswerError]) -> Pieces:
    pieces: Pieces = []
    for error in errors:
        times = f" ×{error.times}" if error.times > 1 else ""
        style = "odd" if is_routine(entry, error.code) else "error"
        pieces += [("  " if not pieces else ", ", "plain"), (error.name + times, style)]
    return pieces


def _troubles(entry: FrameEntry, fields: EntryFields) -> Pieces:
    pieces = _error_pieces(entry, fields.errors)
    if entry.error is not None:
        place = f", {entry.error.path}" if entry.error.path else ""
        pieces.append((f"  ✗ refused at byte {entry.error.position}{place}: {entry.error.reason}", "error"))
    if entry.deviations:
        many = "" if len(entry.deviations) == 1 else f" (and {len(entry.deviations) - 1} more)"
        pieces.append((f"  ! {entry.deviations[0].reason}{many}", "odd"))
    return pieces
