"""Coordinators' records for people: a table, in chunks as they come.

Strategy: rich lays a chunk of rows out; a commit and a classic group have texts of their own, other values
are laid out by `message_lines`. A terminal too narrow for five columns gets lines instead: a value that does
not fit beside its record follows below it. Rules: the rows that wait are bounded; text from the log reaches
the terminal with its control characters escaped; secrets are shown on request only.
"""

from __future__ import annotations

import re
from typing import Any

from coordwire.capture.flows import format_time
from coordwire.capture.printable import Pieces, quoted, shown
from coordwire.capture.redaction import secret_fields
from coordwire.cli import message_lines
from coordwire.cli.terminal import STYLES, rich_console, table_output
from coordwire.codec import Message
from coordwire.codec.walk import fields_of
from coordwire.embedded import Embedded, open_embedded
from coordwire.errors import UnreadableRange, counted
from coordwire.messages import ConsumerProtocolAssignment
from coordwire.timeline.from_log.coordinator_log import CoordinatorRecord, LogItem, Marker

MS = 1_000_000
CHUNK = 200
"""Rows that are laid out together."""

WIDE = 120
"""Columns from which on there is a table."""

BESIDE = 58
"""Columns that time, offset, group and kind take in it, about."""

BELOW = 4
"""Columns by which what follows below a record is indented."""

MOST_GROUP = 24
CLOCK = len("00:00:00.000")
SAMPLE = 24
FEW = 3
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


class OffsetsTableFormat:
    """Writes to standard output."""

    def __init__(self, *, show_secrets: bool) -> None:
        self._console = rich_console("the table", table_output())
        self._wide = self._console.width >= WIDE
        self._width = max(self._console.width - (BESIDE if self._wide else BELOW), 40)
        self._show_secrets = show_secrets
        self._rows: list[tuple[str, str, str, str, list[Pieces]]] = []
        self._file = ""
        self._day = ""

    def write(self, item: LogItem, *, pending: bool = False) -> None:
        if item.file != self._file:
            self.finish()
            self._file, self._day = item.file, ""
        match item:
            case CoordinatorRecord():
                lines = self._record_lines(item, pending)
                kind = _words(item.kind) if item.kind else "" if item.type is None else f"type {item.type}"
                self._add(item.timestamp_ms, str(item.log_offset), item.group or "", kind, lines)
            case Marker():
                lines = [_marker(item)]
                self._add(item.timestamp_ms, str(item.log_offset), "", item.kind, lines)
            case UnreadableRange():
                place = f"{counted(item.length, 'byte', ',')} at byte {item.position:,}"
                description = f"✗ {place} unread: {shown(item.reason)}"
                self._add(-1, "", "", "", [[(description, "error")]])

    def _add(self, timestamp_ms: int, offset: str, group: str, kind: str, lines: list[Pieces]) -> None:
        time = "" if timestamp_ms < 0 else format_time(timestamp_ms * MS, 3).replace("T", " ")[:-1]
        self._rows.append((time, offset, shown(group), kind, lines))
        if len(self._rows) >= CHUNK:
            self.finish()

    def finish(self) -> None:
        if not self._rows:
            return
        if self._wide:
            self._table()
        else:
            self._blocks()
        self._rows.clear()

    def _table(self) -> None:
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="dim", title_justify="left", title_style="cyan")
        table.title = shown(self._file)
        table.add_column("time", no_wrap=True, style="dim")
        table.add_column("offset", justify="right", no_wrap=True)
        table.add_column("group", style="bold", overflow="fold", max_width=MOST_GROUP)
        table.add_column("record", style="cyan", overflow="fold", max_width=22)
        table.add_column("says", overflow="fold")
        for *cells, lines in self._rows:
            table.add_row(*cells, _text(lines))
        self._console.print(table)

    def _blocks(self) -> None:
        """A line a record, its day above it where that is another, and below it what has no room beside."""
        from rich.padding import Padding
        from rich.text import Text

        if not self._day:
            self._console.print(Text(shown(self._file), "cyan", overflow="fold"))
        digits = max(len(row[1]) for row in self._rows)
        letters = min(max(len(row[2]) for row in self._rows), MOST_GROUP)
        for time, offset, group, kind, lines in self._rows:
            day, _, clock = time.partition(" ")
            if day != self._day and day:
                self._day = day
                self._console.print(Text(day, "dim"))
            head: Pieces = [(f"{clock:<{CLOCK}}  {offset:>{digits}}", "note")]
            if letters:
                head.append((f"  {group:<{letters}}", "api"))
            head.append((f"  {kind}", "name"))
            line, content = _text([head]), _text(lines)
            content.overflow = "fold"
            if len(lines) == 1 and line.cell_len + 2 + content.cell_len <= self._console.width:
                self._console.print(Text.assemble(line, "  ", content))
                continue
            if time or kind:
                self._console.print(line, overflow="fold")
            if content:
                self._console.print(Padding(content, (0, 0, 0, BELOW), expand=False))

    # --- what a record says ---

    def _record_lines(self, record: CoordinatorRecord, pending: bool) -> list[Pieces]:
        lines = self._key(record)
        value = record.value
        if record.refusal is not None:
            reason = f"✗ refused: {record.refusal.path}: {record.refusal.reason}"
            lines.append([(shown(reason), "error")])
        if record.unknown is not None:
            lines.append([(shown(record.unknown), "odd")])
        if isinstance(value, bytes):
            if not self._show_secrets and secret_fields.may_hide(record.log, record.type):
                lines.append([("bytes withheld: they may hold a secret (--show-secrets)", "odd")])
            else:
                lines.append(message_lines.octets(value, SAMPLE))
        elif record.tombstone:
            lines.append([("removed", "odd")])
        elif value is not None:
            lines += self._value(record, value)
        if record.transactional:
            state = "pending in a transaction" if pending else "committed in a transaction"
            lines.append([(f"{state} (producer {record.producer_id})", "odd" if pending else "note")])
        return _joined(lines)

    def _key(self, record: CoordinatorRecord) -> list[Pieces]:
        """The fields of the key beside the group."""
        key: Any = record.key
        if not isinstance(key, Message):
            return []
        if record.topic is not None:
            return [[(f"{shown(record.topic)}-{record.partition}", "plain")]]
        fields = [field.name for field in fields_of(key) if field.entity != "group_id"]
        return [[(shown(f"{name} {getattr(key, name)}"), "plain")] for name in fields]

    def _value(self, record: CoordinatorRecord, value: Any) -> list[Pieces]:
        match record.kind:
            case "OffsetCommit" | "LegacyOffsetCommit":
                return [_commit(value)]
            case "GroupMetadata":
                return [_group(value), *_members(value)]
        assert record.version is not None
        hidden = set() if self._show_secrets else set(secret_fields.find(value))
        return [
            *message_lines.MessageLines(
                value,
                record.version,
                hidden,
                self._width,
                embedded=open_embedded(value),
                show_secrets=self._show_secrets,
            ).lines(0)
        ]


def _words(name: str) -> str:
    """ "OffsetCommit": "offset commit"."""
    return _CAPITAL.sub(" ", name).lower()


def _joined(lines: list[Pieces]) -> list[Pieces]:
    """A few lines as one, else the lines."""
    if len(lines) > FEW:
        return lines
    return [[piece for line in lines for piece in [*line, ("  ", "plain")]][:-1]]


def _commit(value: Any) -> Pieces:
    pieces: Pieces = [("→ ", "note"), (str(value.offset), "api")]
    if (epoch := getattr(value, "leader_epoch", -1)) >= 0:
        pieces.append((f"  epoch {epoch}", "note"))
    if value.metadata:
        pieces += [("  ", "plain"), (quoted(value.metadata, 60), "text")]
    if (expiry := getattr(value, "expire_timestamp", -1)) >= 0:
        pieces.append((f"  expires {format_time(expiry * MS, 0)}", "note"))
    return pieces


def _group(value: Any) -> Pieces:
    protocol = f", {shown(value.protocol)}" if value.protocol else ""
    kind = shown(value.protocol_type) or "no protocol type"
    count = len(value.members)
    members = "1 member" if count == 1 else counted(count, "member")
    return [(f"generation {value.generation}", "api"), (f"  {kind}{protocol}, {members}", "plain")]


def _members(value: Any) -> list[Pieces]:
    opened = open_embedded(value)
    lines: list[Pieces] = []
    for index, member in enumerate(value.members):
        name = member.member_id
        host = f"{member.client_id} {member.client_host}"
        pieces: Pieces = [("- ", "note"), (shown(name), "text"), (f"  {shown(host)}", "note")]
        if member.group_instance_id is not None:
            pieces.append((f"  static {shown(member.group_instance_id)}", "name"))
        if name == value.leader:
            pieces.append(("  leader", "api"))
        lines.append(pieces)
        lines.append([("  ", "plain"), *_assignment(opened.get(f"members[{index}].assignment"), member)])
    return lines


def _assignment(opened: Embedded | None, member: Any) -> Pieces:
    message = None if opened is None else opened.message
    if not isinstance(message, ConsumerProtocolAssignment):
        return message_lines.octets(member.assignment, SAMPLE)
    topics = [f"{part.topic}{part.partitions}" for part in message.assigned_partitions]
    return [(shown(" ".join(topics)) or "nothing assigned", "plain")]


def _marker(marker: Marker) -> Pieces:
    if marker.producer_id < 0:  # the quorum's, which ends no transaction
        return []
    pieces: Pieces = [(f"producer {marker.producer_id} epoch {marker.producer_epoch}", "plain")]
    commits = [
        f"{record.group} {record.topic}-{record.partition} → {getattr(record.value, 'offset', None)}"
        for record in marker.decided
    ]
    if commits:
        pieces.append((shown(f" of {', '.join(commits)}"), "plain"))
    return pieces


def _text(lines: list[Pieces]) -> Any:
    from rich.text import Text

    return Text("\n").join(
        Text.assemble(*((text, STYLES.get(style, "")) for text, style in line)) for line in lines
    )
