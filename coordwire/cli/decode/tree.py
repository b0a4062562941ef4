"""Entries for people: one exchange a block, request and response together, coloured.

Strategy: a request waits until its response comes and is written with it; what stays unanswered is written
when too much waits, or at the end. `message_lines` lays a message out; here are the blocks around it, and
rich, which knows the terminal. Rules: what waits is bounded, and lines are written as they are laid out; text
from the wire reaches the terminal with its control characters escaped; secrets and refusals are in their
fields' places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.flows import format_time
from coordwire.capture.printable import Pieces, quoted, shown
from coordwire.capture.redaction.entry_secrets import (
    NOTHING,
    Withheld,
    size_withheld,
    withheld,
)
from coordwire.cli import message_lines, record_sets, telemetry
from coordwire.cli.embedded_json import sasl
from coordwire.cli.terminal import SLOW_NS, columns, line_writer, packets
from coordwire.connection.dialect import KAFKA
from coordwire.embedded import open_embedded
from coordwire.errors import UnreadableRange, counted

WAITING = 1000
WAITING_BYTES = 32 << 20
SAMPLE = 32
MOST_DEVIATIONS = 100
"""Deviations of one frame that are shown."""

PRODUCE = 0


class TreeFormat:
    """Writes blocks to standard output."""

    def __init__(self, *, show_secrets: bool, deep: bool) -> None:
        self._write = line_writer()
        self._width = max(columns(), 40)
        self._show_secrets = show_secrets
        self._deep = deep
        self._waiting: dict[int, tuple[FrameEntry, int]] = {}
        self._waiting_bytes = 0
        self._written: set[int] = set()

    def write(self, entry: Entry, digits: int) -> None:
        if isinstance(entry, UnreadableRange):
            self._unreadable(entry, digits)
        elif entry.direction == "response":
            request = entry.request
            if request is not None:
                request = self._forget(request) or request
                if request.number in self._written:
                    self._written.discard(request.number)
                    request = None
            self._block(request, entry, digits)
        elif entry.token or _unanswered(entry):
            self._block(entry, None, digits)
        else:
            self._waiting[entry.number] = (entry, digits)
            self._waiting_bytes += entry.size
            while len(self._waiting) > WAITING or self._waiting_bytes > WAITING_BYTES:
                self._give_up()

    def finish(self) -> None:
        while self._waiting:
            self._give_up()
        self._written.clear()

    def _forget(self, request: FrameEntry) -> FrameEntry | None:
        """A request that waits, and does no longer; its answer may point to a copy without its message."""
        request_waiting, _ = self._waiting.pop(request.number, (None, 0))
        if request_waiting is not None:
            self._waiting_bytes -= request_waiting.size
        return request_waiting

    def _give_up(self) -> None:
        """Write the request that has waited longest."""
        request, digits = next(iter(self._waiting.values()))
        self._forget(request)
        self._written.add(request.number)
        self._block(request, None, digits)

    # --- blocks ---

    def _block(self, request: FrameEntry | None, response: FrameEntry | None, digits: int) -> None:
        self._print(self._lines(request, response, digits))

    def _lines(
        self, request: FrameEntry | None, response: FrameEntry | None, digits: int
    ) -> Iterator[Pieces]:
        entries = [entry for entry in (request, response) if entry is not None]
        yield from self._rule(entries[0], digits, " ".join([f"#{entry.number}" for entry in entries]))
        if request is not None:
            yield from self._frame(request)
            if response is None and not request.token:
                yield [("  no response shown", "note")]
        if response is not None:
            yield from self._frame(response)
            if request is None and (original := response.request) is not None:
                yield [(f"  answers #{original.number}{packets(original)}, shown before", "note")]

    def _rule(self, entry: Entry, digits: int, number: str) -> Iterator[Pieces]:
        """The head of a block; its flow has a line of its own where there is no room for it."""
        time = format_time(entry.time_ns, digits) if entry.time_ns is not None else ""
        time = time.replace("T", " ").removesuffix("Z")
        if isinstance(entry, UnreadableRange):
            stream = entry.tcp_stream
        else:
            stream = None if entry.connection is None else entry.connection.stream
        place = "" if stream is None else f"  tcp.stream {stream}"
        start = f"── {number}{place}  {time} ".rstrip() + " "
        flow = f" {shown(entry.flow)}" if entry.flow else ""
        has_room = len(start) + len(flow) + 2 <= self._width
        line = "─" * (self._width - len(start) - (len(flow) if has_room else 0))
        yield [(start + line, "rule"), *([(flow, "flow")] if has_room else [])]
        if not has_room:
            yield [(f"  {flow}", "flow")]

    def _frame(self, entry: FrameEntry) -> Iterator[Pieces]:
        hidden = NOTHING if self._show_secrets else withheld(entry)
        yield self._head(entry, hidden)
        if entry.header is not None and entry.header.tags:
            tags = entry.header.tags
            pieces = message_lines.tags(tags, self._width, set(tags) if hidden.tags else ())
            yield [("  header_tags: ", "name"), *pieces]
        if entry.message is not None and entry.body_version is not None and not hidden.body:
            contents: dict[str, message_lines.Inside] = {}
            if self._deep:
                contents |= open_embedded(entry.message)
                secrets = self._show_secrets
                contents |= record_sets.layouts(entry.message, show_secrets=secrets, hidden=hidden.paths)
                contents |= telemetry.layouts(entry.message)
            yield from message_lines.MessageLines(
                entry.message, entry.body_version, set(hidden.paths), self._width, entry.error, contents,
                self._show_secrets,
            ).lines()  # fmt: skip
        elif entry.error is not None:
            yield message_lines.refusal(entry.error, 1)
        if entry.message is None or hidden.body:
            yield self._raw(entry, hidden)
        if self._deep and not hidden.body and (token := sasl(entry)) is not None:
            yield from message_lines.sasl_lines(token, show_secrets=self._show_secrets)
        for deviation in entry.deviations[:MOST_DEVIATIONS]:
            place = f", {deviation.path}" if deviation.path else ""
            yield [(f"  ! deviation at byte {deviation.position}{place}: {deviation.reason}", "odd")]
        if len(entry.deviations) > MOST_DEVIATIONS:
            yield [(f"  … {counted(len(entry.deviations) - MOST_DEVIATIONS, 'more deviation', ',')}", "odd")]

    def _head(self, entry: FrameEntry, hidden: Withheld) -> Pieces:
        """→ JoinGroup v9  #17  client  231 B"""
        request = entry.direction == "request"
        pieces: Pieces = [("→ " if request else "← ", entry.direction)]
        if entry.token:
            pieces.append(("SASL token", "api"))
        elif entry.api_key is None:
            pieces.append((f"unknown {entry.direction}", "api"))
        else:
            name = entry.api_name or f"api {entry.api_key}"
            version = f" v{entry.api_version}" if entry.dialect == KAFKA else f" ({entry.dialect})"
            pieces.append((name + version, "api"))
        if entry.body_version != entry.api_version:
            pieces.append((f" (body v{entry.body_version})", "odd"))
        if entry.correlation_id is not None:
            pieces.append((f"  id {entry.correlation_id}", "plain"))
        if request and entry.client_id is not None:
            pieces.append(("  ", "plain"))
            client_id = (quoted(entry.client_id, self._width), "text")
            pieces.append(message_lines.SECRET if hidden.client else client_id)
        elif request and entry.client_is_unknown:
            pieces.append(("  client unknown", "note"))
        pieces.append((f"  {entry.size:,} B", "note"))
        if (latency := entry.latency_ns) is not None:
            pieces.append((f"  {latency_text(latency)}", "slow" if latency > SLOW_NS else "plain"))
        pieces.append((packets(entry), "note"))
        return pieces

    def _raw(self, entry: FrameEntry, hidden: Withheld) -> Pieces:
        if hidden.raw:
            return [(f"  {size_withheld(entry)} (--show-secrets)", "odd")]
        return [("  bytes ", "note"), *message_lines.octets(entry.body, SAMPLE)]

    def _unreadable(self, entry: UnreadableRange, digits: int) -> None:
        lines = [*self._rule(entry, digits, "unread")]
        description = (
            f"✗ {counted(entry.length, 'byte', ',')} from byte {entry.position:,} on: {entry.reason}"
        )
        lines.append([(description, "error"), (packets(entry), "note")])
        if entry.data and self._show_secrets:
            lines.append([("  bytes ", "note"), *message_lines.octets(entry.data, SAMPLE)])
        elif entry.data:
            lines.append([(f"  {size_withheld(entry)} (--show-secrets)", "odd")])
        self._print(lines)

    def _print(self, lines: Iterable[Pieces]) -> None:
        """Write a block, and an empty line after it."""
        self._write(lines)
        self._write([[]])


def _unanswered(entry: FrameEntry) -> bool:
    """Whether no answer is due: Produce with acks=0, and what other dialects don't answer."""
    if entry.dialect != KAFKA:
        return entry.call is not None and entry.call.response is None
    return entry.api_key == PRODUCE and getattr(entry.message, "acks", None) == 0


def latency_text(ns: int) -> str:
    """Milliseconds, as exactly as they are read."""
    return f"{ns / 1e6:.3f} ms" if ns < 10_000_000 else f"{ns / 1e6:,.1f} ms"
