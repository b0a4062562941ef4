"""Entries as annotated hex: what each byte of a frame says.

Rules: every byte of a frame is shown once, in order; a secret's bytes are not, only how many they are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from coordwire.capture import secrets
from coordwire.capture.entries import Entry, FrameEntry, Stretch
from coordwire.capture.model import format_time
from coordwire.cli.inputs import shown
from coordwire.frames import PREFIX
from coordwire.spans import Span, annotated, body_spans, message_spans

UNREAD = ("refused", "rest")


class HexFormat:
    """Writes one dump a frame to standard output."""

    def __init__(self, *, show_secrets: bool, lenient: bool = False) -> None:
        self._show_secrets = show_secrets
        self._lenient = lenient

    def write(self, entry: Entry, digits: int) -> None:
        rows = self._stretch(entry) if isinstance(entry, Stretch) else self._frame(entry)
        sys.stdout.write(f"# {_title(entry, digits)}\n")
        sys.stdout.writelines(f"{row}\n" for row in rows)
        sys.stdout.write("\n")

    def finish(self) -> None:
        """Nothing is kept."""

    def _stretch(self, entry: Stretch) -> Iterator[str]:
        if not entry.data:
            return
        if self._show_secrets:
            yield from annotated(entry.data, [Span(0, len(entry.data), "", None, "rest", "")])
        else:
            yield _withheld(entry.position, entry.length, "")

    def _frame(self, entry: FrameEntry) -> Iterator[str]:
        hidden = set() if self._show_secrets else set(secrets.find(entry.message))
        shut = not self._show_secrets and (bool(hidden) or secrets.withheld(entry))
        for span in self._spans(entry):
            if span.path in hidden and span.sort == "value":
                yield _withheld(span.offset, span.length, span.path)
            elif shut and span.sort in UNREAD:
                if span.sort == "refused":
                    yield f"{span.offset:>8}  !! {span.path or '-'}: {span.value}"
                if span.length:
                    yield _withheld(span.offset, span.length, "")
            else:
                yield from annotated(entry.body, [span])
        for odd in entry.oddities:
            yield f"{odd.offset:>8}  ! odd: {odd.path or '-'}: {odd.reason}"

    def _spans(self, entry: FrameEntry) -> list[Span]:
        size = Span(-PREFIX, PREFIX, "size", entry.size, "size", "int32")
        if entry.api_key is None or entry.api_version is None:
            reason = "a SASL token" if entry.token else entry.error.reason if entry.error else ""
            return [size, Span(0, entry.size, "", reason, "refused", "")]
        if entry.call is not None:
            cls = entry.call.message(entry.direction)
            typed = entry.direction == "request" or entry.call.answer_typed
            spans = message_spans(entry.body, cls, entry.api_version, typed=typed, lenient=self._lenient)
            return [size, *spans]
        answered = (entry.api_key, entry.api_version) if entry.direction == "response" else (None, None)
        return [size, *body_spans(entry.body, *answered, lenient=self._lenient)]


def _withheld(offset: int, length: int, path: str) -> str:
    return f"{offset:>8}  {'**':<23}  {path or '-'}: {length} bytes withheld (--show-secrets)"


def _title(entry: Entry, digits: int) -> str:
    time = format_time(entry.time_ns, digits) if entry.time_ns is not None else ""
    place = [shown(entry.capture), entry.flow, time]
    if isinstance(entry, Stretch):
        place.append(f"{entry.length} bytes from byte {entry.position} on: {entry.reason}")
    else:
        name = "unknown" if entry.api_key is None else entry.api_name or f"api {entry.api_key}"
        version = "" if entry.api_version is None else f" v{entry.api_version}"
        place.append(f"frame {entry.number}: {name}{version} {entry.direction}")
        if entry.correlation_id is not None:
            place.append(f"correlation id {entry.correlation_id}")
        place.append(f"{entry.size} bytes")
    return "  ".join(part for part in place if part)
