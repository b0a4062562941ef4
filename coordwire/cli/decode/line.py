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

from itertools import islice

from coordwire.capture.answer_errors import is_routine
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.flows import format_time
from coordwire.capture.printable import shown
from coordwire.cli.decode.tree import SLOW_NS
from coordwire.cli.selection.fields import FIELDS, EntryFields
from coordwire.cli.selection.topic_names import TopicNames
from coordwire.cli.terminal import Pieces, line_writer
from coordwire.connection.dialect import KAFKA
from coordwire.errors import UnreadableRange, counted

TOPICS = 2
"""Topics of a frame that are named."""

LONGEST_NAME = 60
WIDEST = {"number": 10, "client": 47, "broker": 47, "api": 40, "about": 40, "latency": 14}
"""Widths up to which columns grow."""

_LEAST = {"number": 5, "client": 15, "broker": 15, "api": 22, "about": 16, "latency": 12}


class LineFormat:
    """Writes a line an entry to standard output."""

    def __init__(self, *, show_secrets: bool, names: TopicNames) -> None:
        self._write = line_writer()
        self._show_secrets = show_secrets
        self._names = names
        self._widths = dict(_LEAST)
        self._day: str | None = None

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
        if len(text) > width:
            width = self._widths[column] = min(len(text), WIDEST[column])
        return text.rjust(width) if right else text.ljust(width)

    def _unreadable(self, entry: UnreadableRange) -> Pieces:
        source, _, target = entry.flow.partition(" > ")
        flow = f"  {shown(source)} → {shown(target)}" if target else ""
        size = counted(entry.length, "byte", ",")
        description = f"  ✗ {size} not read, from byte {entry.position:,} on: {entry.reason}"
        return [(flow, "flow"), (description, "error")]

    def _frame(self, entry: FrameEntry, digits: int) -> Pieces:
        fields = EntryFields(entry, digits, show_secrets=self._show_secrets, names=self._names)
        request = entry.direction == "request"
        pieces: Pieces = [("  ", "plain")]
        from_client = request
        if entry.connection is not None:
            client, broker = str(entry.connection.client), str(entry.connection.broker)
            from_client = entry.flow.startswith(f"{client} > ")
            pieces.append((self._padded("client", client), "flow"))
            pieces.append((" → " if from_client else " ← ", entry.direction))
            pieces.append((self._padded("broker", broker), "flow"))
            pieces.append(("  ", "plain"))
        else:
            pieces.append(("→ " if from_client else "← ", entry.direction))
        pieces.append((self._padded("api", _api(entry)), "api"))
        pieces += [("  ", "plain"), (self._padded("about", self._subject(fields)), "text")]
        latency = entry.latency_ns
        text = "" if latency is None else f"{latency / 1e6:,.3f} ms"
        style = "slow" if latency is not None and latency > SLOW_NS else "plain"
        pieces += [("  ", "plain"), (self._padded("latency", text, right=True), style)]
        return [*pieces, *_troubles(entry, fields)]

    def _subject(self, fields: EntryFields) -> str:
        """The group that a frame is about, else the transactional id, else its topics."""
        for name in ("group", "transactionalId"):
            for value in FIELDS[name].values(fields):
                return _short(value)
        topics = list(islice(FIELDS["topic"].values(fields), TOPICS + 1))
        if len(topics) > TOPICS:
            topics[TOPICS:] = ["…"]
        return " ".join(_short(topic) for topic in topics)


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
