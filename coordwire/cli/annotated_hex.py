"""Entries as annotated hex: the meaning of each byte of a frame.

Rules: every byte of a frame is shown once, in order; a secret's bytes are not, only how many they are. Lines
are written as the frame is read, and nothing of it is gathered.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.flows import format_time
from coordwire.capture.printable import shown
from coordwire.capture.redaction.entry_secrets import NOTHING, is_fully_decoded, withheld
from coordwire.capture.redaction.secret_fields import WIDE
from coordwire.cli.terminal import folded_text, packets
from coordwire.errors import UnreadableRange, counted
from coordwire.frames import PREFIX
from coordwire.spans import Show, Span, annotated, show_body, show_message

WORDS = 35
"""The column in which the meaning of bytes begins."""


class HexFormat:
    """Writes one dump a frame to standard output."""

    def __init__(self, *, show_secrets: bool, strict: bool = False) -> None:
        self._show_secrets = show_secrets
        self._strict = strict

    def write(self, entry: Entry, digits: int) -> None:
        sys.stdout.write(folded_text(_title(entry, digits), sys.stdout, prefix="# ") + "\n")
        if isinstance(entry, UnreadableRange):
            _write(self._unreadable(entry))
        else:
            self._frame(entry)
        sys.stdout.write("\n")

    def finish(self) -> None:
        """Do nothing: every entry is written at once."""

    def _unreadable(self, entry: UnreadableRange) -> Iterator[str]:
        if not entry.data:
            return
        if self._show_secrets:
            yield from annotated(entry.data, [Span(0, len(entry.data), "", None, "rest", "")])
        else:
            yield _withheld(entry.position, entry.length, "")

    def _frame(self, entry: FrameEntry) -> None:
        hidden = NOTHING if self._show_secrets else withheld(entry)
        paths = frozenset(hidden.paths)
        size = Span(-PREFIX, PREFIX, "size", entry.size, "size", "int32")
        _write(annotated(entry.body, [size]))

        def show(span: Span) -> None:
            header = (hidden.tags and span.path.startswith("tags[")) or (
                hidden.client and span.path == "client_id"
            )
            if (span.path in paths or header) and span.sort == "value":
                _write([_withheld(span.position, span.length, span.path)])
            elif paths and span.sort == "value" and span.kind in WIDE:
                _write([f"{span.position:>8}  {'**':<23}  {span.path} = {span.value}"])
            else:
                _write(annotated(entry.body, [span]))

        if hidden.raw and not is_fully_decoded(entry):
            _write(_refused(entry))
        else:
            self._show(entry, show)
        for deviation in entry.deviations:
            _write([f"{deviation.position:>8}  ! deviation: {deviation.path or '-'}: {deviation.reason}"])

    def _show(self, entry: FrameEntry, show: Show) -> None:
        if entry.api_key is None or entry.api_version is None:
            reason = "a SASL token" if entry.token else entry.error.reason if entry.error else ""
            show(Span(0, entry.size, "", reason, "refused", ""))
        elif entry.call is not None:
            cls = entry.call.message(entry.direction)
            header = entry.call.header(entry.direction)
            show_message(show, entry.body, cls, entry.api_version, header=header, strict=self._strict)
        else:
            answered = (entry.api_key, entry.api_version) if entry.direction == "response" else (None, None)
            show_body(show, entry.body, *answered, strict=self._strict)


def _refused(entry: FrameEntry) -> Iterator[str]:
    """A frame whose bytes aren't shown: where it was refused, and how many they are."""
    if entry.error is not None:
        yield f"{entry.error.position:>8}  !! {entry.error.path or '-'}: {entry.error.reason}"
    yield _withheld(0, entry.size, "")


def _write(lines: Iterator[str] | list[str]) -> None:
    sys.stdout.writelines(f"{folded_text(line, sys.stdout, WORDS)}\n" for line in lines)


def _withheld(offset: int, length: int, path: str) -> str:
    return f"{offset:>8}  {'**':<23}  {path or '-'}: {counted(length, 'byte')} withheld (--show-secrets)"


def _title(entry: Entry, digits: int) -> str:
    time = format_time(entry.time_ns, digits) if entry.time_ns is not None else ""
    name = entry.file if isinstance(entry, UnreadableRange) else entry.capture
    place = [shown(name), entry.flow, time]
    if isinstance(entry, UnreadableRange):
        place.append(f"{counted(entry.length, 'byte')} from byte {entry.position} on: {entry.reason}")
    else:
        name = "unknown" if entry.api_key is None else entry.api_name or f"api {entry.api_key}"
        version = "" if entry.api_version is None else f" v{entry.api_version}"
        place.append(f"frame {entry.number}: {name}{version} {entry.direction}")
        if entry.correlation_id is not None:
            place.append(f"correlation id {entry.correlation_id}")
        place.append(counted(entry.size, "byte"))
        if entry.request is not None:
            place.append(f"answers frame {entry.request.number}")
    place.append(packets(entry).strip())
    return "  ".join(part for part in place if part)
