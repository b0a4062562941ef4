"""Entries for people: one exchange a block, request and response together, coloured.

Strategy: a request waits until its response comes and is written with it; what stays unanswered is written
when too much waits, or at the end. `message_lines` lays a message out; here are the blocks around it, and
rich, which knows the terminal. Where there are no styles, the text of a plain frame (its body's text is known
and nothing of it is withheld) is put together by the native half from the frame's bytes. Rules: a plain
frame's text is that of `_frame`, which serves for all else; what waits is bounded, and all other lines are
written as they are laid out; text from the wire reaches the terminal with its control characters escaped;
secrets and refusals are in their fields' places.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import StringIO
from typing import TYPE_CHECKING, TextIO

from coordwire.capture.body_text import body_text
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.flows import format_time
from coordwire.capture.plain_lines import PlainLines
from coordwire.capture.printable import Pieces, quoted, shown
from coordwire.capture.redaction.entry_secrets import (
    NOTHING,
    Withheld,
    has_nothing_to_redact,
    size_withheld,
    withheld,
)
from coordwire.cli import message_lines, record_sets
from coordwire.cli.embedded_json import sasl
from coordwire.cli.terminal import SLOW_NS, columns, is_plain, line_writer, packets, plain_text
from coordwire.codec.fields import VersionLayout
from coordwire.connection.dialect import KAFKA
from coordwire.embedded import open_embedded
from coordwire.errors import UnreadableRange, counted

if TYPE_CHECKING:
    from coordwire._speedups import _native

WAITING = 1000
WAITING_BYTES = 32 << 20
SAMPLE = 32
MOST_DEVIATIONS = 100
"""Deviations of one frame that are shown."""
LONGEST_KEPT = 32 << 10
"""Bytes of the frames of a block whose text is kept, to be written again, at most."""

PRODUCE = 0


class TreeFormat:
    """Writes blocks to standard output."""

    def __init__(self, *, show_secrets: bool, deep: bool) -> None:
        self._write = line_writer()
        self._is_plain = is_plain(self._write) and not deep
        self._width = max(columns(), 40)
        self._show_secrets = show_secrets
        self._deep = deep
        self._waiting: dict[int, tuple[FrameEntry, int]] = {}
        self._waiting_bytes = 0
        self._written: set[int] = set()
        self._block_texts: dict[tuple[int, ...], str] | None = None
        self._texts = PlainFrameTexts(self._width, show_secrets=show_secrets)

    @property
    def state(self) -> tuple[dict[int, tuple[FrameEntry, int]], int, set[int]]:
        """What the blocks so far have left for the next ones: requests that wait, and the numbers of those
        that were written without their answers."""
        return dict(self._waiting), self._waiting_bytes, set(self._written)

    @state.setter
    def state(self, state: tuple[dict[int, tuple[FrameEntry, int]], int, set[int]]) -> None:
        waiting, self._waiting_bytes, written = state
        self._waiting, self._written = dict(waiting), set(written)

    def keep(self, is_on: bool) -> None:
        """Keep the texts of blocks from now on, to write them again, or drop those that are kept."""
        self._block_texts = {} if is_on and self._is_plain else None

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
        texts = self._block_texts
        if self._is_plain and texts is None:
            self._plain_block(request, response, digits, sys.stdout)
            return
        entries = [entry for entry in (request, response) if entry is not None]
        if not self._is_plain or texts is None:
            self._print(self._lines(request, response, self._head_rule(entries, digits)))
        elif sum(len(entry.body) for entry in entries) > LONGEST_KEPT:
            self._plain_block(request, response, digits, sys.stdout)
        else:
            key = *(entry.number for entry in entries), entries[0].released
            text = texts.get(key)
            if text is None:
                out = StringIO()
                self._plain_block(request, response, digits, out)
                text = texts[key] = out.getvalue()
            sys.stdout.write(text)

    def _head_rule(self, entries: Sequence[FrameEntry], digits: int) -> Pieces:
        return self._rule(entries[0], digits, " ".join([f"#{entry.number}" for entry in entries]))

    def _plain_block(
        self, request: FrameEntry | None, response: FrameEntry | None, digits: int, out: TextIO
    ) -> None:
        """`_block` without styles."""
        write = out.write
        if request is not None and response is not None:
            text = self._texts.block(request, response, digits)
            if text is not None and _is_limited(text):
                write(text)
                return
        write(
            plain_text(self._head_rule([entry for entry in (request, response) if entry is not None], digits))
        )
        if request is not None:
            self._plain_frame(request, digits, out)
            if response is None and not request.token:
                write("  no response shown\n")
        if response is not None:
            self._plain_frame(response, digits, out)
            if request is None and (original := response.request) is not None:
                write(f"  answers #{original.number}{packets(original)}, shown before\n")
        write("\n")

    def _plain_frame(self, entry: FrameEntry, digits: int, out: TextIO) -> None:
        text = self._texts.line(entry, digits)
        if text is None:
            out.writelines(map(plain_text, self._frame(entry)))
        else:
            out.write(text if _is_limited(text) else _limited(text))

    def _lines(
        self, request: FrameEntry | None, response: FrameEntry | None, rule: Pieces
    ) -> Iterator[Pieces]:
        yield rule
        if request is not None:
            yield from self._frame(request)
            if response is None and not request.token:
                yield [("  no response shown", "note")]
        if response is not None:
            yield from self._frame(response)
            if request is None and (original := response.request) is not None:
                yield [(f"  answers #{original.number}{packets(original)}, shown before", "note")]

    def _rule(self, entry: Entry, digits: int, number: str) -> Pieces:
        time = _spaced(format_time(entry.time_ns, digits)) if entry.time_ns is not None else ""
        if isinstance(entry, UnreadableRange):
            stream = entry.tcp_stream
        else:
            stream = None if entry.connection is None else entry.connection.stream
        place = "" if stream is None else f"  tcp.stream {stream}"
        start = f"── {number}{place}  {time} ".rstrip() + " "
        flow = f" {shown(entry.flow)}" if entry.flow else ""
        line = "─" * max(self._width - len(start) - len(flow), 2)
        return [(start + line, "rule"), (flow, "flow")]

    def _frame(self, entry: FrameEntry) -> Iterator[Pieces]:
        text = body_text(entry)[0]
        is_whole = self._show_secrets or (text is not None and has_nothing_to_redact(entry))
        hidden = NOTHING if is_whole else withheld(entry)
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
        lines = [self._rule(entry, digits, "unread")]
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


class PlainFrameTexts(PlainLines):
    """The texts of plain frames: the line of a frame with those of its fields."""

    def __init__(self, width: int, *, show_secrets: bool) -> None:
        super().__init__(show_secrets=show_secrets)
        self.block: Callable[[FrameEntry, FrameEntry, int], str | None] = _no_block
        if self.native is not None:
            self.native.tree_width = width
            self.block = self.native.block

    def api_text(self, entry: FrameEntry) -> tuple[str, str]:
        return f"{'→' if entry.request is None else '←'} {entry.api_name} v{entry.api_version}  id ", ""

    def field_rows(self, layout: VersionLayout) -> tuple[_native.FieldLineRow, ...]:
        return message_lines.field_rows(layout)

    def place_texts(self, entry: FrameEntry) -> tuple[str, str] | None:
        connection = entry.connection
        return (
            None if connection is None else (f"  tcp.stream {connection.stream}  ", f" {shown(entry.flow)}")
        )

    def second_texts(self, seconds: int) -> tuple[str, str] | None:
        time = format_time(seconds * 1_000_000_000, 0)
        return None if time.startswith("@") else (_spaced(time), "")

    def error_text(self, entry: FrameEntry) -> str:
        return ""


def _is_limited(text: str) -> bool:
    """Whether no frame in a text has more lines than are shown."""
    return len(text) <= message_lines.MOST_LINES or text.count("\n") <= message_lines.MOST_LINES


def _limited(text: str) -> str:
    """The text of a plain frame with only as many lines of its message as are shown."""
    lines = text.split("\n")  # its own line, those of its message, and what follows the last one
    end = 1 + message_lines.MOST_LINES
    if (unshown := len(lines) - 1 - end) <= 0:
        return text
    return "\n".join(lines[:end]) + "\n" + plain_text(message_lines.more_lines(unshown, 1))


def _no_block(request: FrameEntry, answer: FrameEntry, digits: int) -> str | None:
    """No text."""
    return None


def _spaced(time: str) -> str:
    """A time as a rule has it."""
    return time.replace("T", " ").removesuffix("Z")


def _unanswered(entry: FrameEntry) -> bool:
    """Whether no answer is due: Produce with acks=0, and what other dialects don't answer."""
    if entry.dialect != KAFKA:
        return entry.call is not None and entry.call.response is None
    return entry.api_key == PRODUCE and getattr(entry.message, "acks", None) == 0


def latency_text(ns: int) -> str:
    """Milliseconds, as exactly as they are read."""
    return f"{ns / 1e6:.3f} ms" if ns < 10_000_000 else f"{ns / 1e6:,.1f} ms"
