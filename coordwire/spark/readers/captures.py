"""A capture: its frames, and what couldn't be read.

Strategy: `coordwire.capture.reader.Capture` gives entries; a frame becomes a row, an unreadable range goes to
quarantine. What only the JSON line knows is taken from it (`frame_form`), and only where a column needs it.
The files of a rotated capture are read as one stream (`coordwire.capture.rotation`), and several tasks may
each read a share of one capture (`coordwire.capture.sharing`). Rules: a row says what
`coordwire decode --format json` says of the same frame.
"""

from __future__ import annotations

__all__ = [
    "ErrorRows", "FrameRows", "bad_of", "entries", "joined", "read_errors", "read_frames", "row_size",
]  # fmt: skip

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from coordwire.capture.answer_errors import ErrorPlace, error_code, error_places
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.jsonlines import encode, frame_form, text
from coordwire.capture.reader import Capture
from coordwire.capture.redaction.withheld import NOTHING, Withheld, withheld
from coordwire.capture.rotation import RotatedFiles
from coordwire.capture.sharing import Share
from coordwire.errors import DecodeError, Malformed, UnreadableRange
from coordwire.spark.columns import ERRORS, FRAMES, arrow_schema
from coordwire.spark.options import Options
from coordwire.spark.readers.files import open_stream
from coordwire.spark.readers.parts import Part
from coordwire.spark.readers.rows import KEPT, Bad, Builder, microseconds

if TYPE_CHECKING:
    import pyarrow

NINE = 9
"""Decimals of a second; the JSON line's own time isn't used."""

ERROR_SIZE = 300
"""About how many bytes a row of the errors table has."""

_NO_FORM: dict[str, Any] = {}


Open = Callable[[str], BinaryIO]
Failed = Callable[[str, OSError | DecodeError], None]


def joined(paths: Sequence[str], failed: Failed, opener: Open = open_stream) -> BinaryIO:
    """The files of a rotated capture as one stream, opened one at a time: there may be thousands.

    failed: is given those that can't be opened, and those whose compressed content ends early.
    """
    return cast(BinaryIO, io.BufferedReader(RotatedFiles(paths, opener, failed), 1 << 18))


def entries(part: Part, options: Options, failed: Failed, share: Share | None = None) -> Iterator[Entry]:
    """Everything in the capture, or one share of it, in order. Raises `OSError` and what `Capture` raises for
    no capture.

    failed: is given those of a rotated capture's files that can't be opened.
    """
    with ExitStack() as stack:
        paths = (part.path, *part.rest)
        stream = stack.enter_context(joined(paths, failed) if part.rest else open_stream(part.path))
        yield from Capture(stream, part.path, strict=options.strict, share=share).entries()


def read_frames(
    part: Part,
    options: Options,
    columns: Sequence[str],
    see: Callable[[Entry], None] | None = None,
    *,
    stories: bool = False,
    tell: Callable[[Entry], None] | None = None,
) -> Iterator[pyarrow.RecordBatch | Bad]:
    """The frames of the capture, or of the part's share of it, in batches of these columns of the frames
    table, and what couldn't be read.

    see: is shown every entry of the share. stories: whether the reader of the first share makes the stories
    of groups; tell: is then shown every entry of the capture. Raises `OSError` where a file can't be read; in
    failfast mode `DecodeError` for what couldn't be read or was refused.
    """
    schema = arrow_schema([column for name in columns for column in FRAMES if column.name == name])
    rows = FrameRows(columns, show_secrets=options.show_secrets)
    builder = Builder(schema, options.batch_size)
    missing: list[Bad] = []

    def failed(path: str, error: OSError | DecodeError) -> None:
        if options.failfast:
            raise error
        if isinstance(error, DecodeError) and part.share:  # the first share reports what is in files
            return
        missing.append(Bad(path, 0, 0, getattr(error, "strerror", None) or str(error)))

    share = Share(part.share, part.shares, stories=stories) if part.shares > 1 else None
    try:
        for entry in entries(part, options, failed, share if tell is None else None):
            if tell is not None:
                tell(entry)
                if share is not None and isinstance(entry, FrameEntry) and not share.takes(entry.size):
                    continue
            if see is not None:
                see(entry)
            if isinstance(entry, UnreadableRange):
                yield _bad(entry, part, options)
            elif wanted(entry, options):
                row = rows.row(entry)
                if options.failfast and entry.error is not None:
                    raise Malformed(f"{part.path}: frame {entry.number}: {entry.error}", entry.error.position)
                if (batch := builder.add(row, row_size(entry))) is not None:
                    yield batch
    except DecodeError as error:  # no capture at all
        if options.failfast:
            raise
        if part.share == 0:
            yield Bad(part.path, 0, part.size, error.reason, _head(part))
    yield from missing
    if (batch := builder.take()) is not None:
        yield batch


def read_errors(part: Part, options: Options, columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch | Bad]:
    """The error codes of the capture's responses in batches of these columns of the errors table, and what
    couldn't be read. Raises as `read_frames` does."""
    schema = arrow_schema([column for name in columns for column in ERRORS if column.name == name])
    builder = Builder(schema, options.batch_size)
    rows = ErrorRows(columns, show_secrets=options.show_secrets)
    full: list[pyarrow.RecordBatch] = []

    def see(entry: Entry) -> None:
        if isinstance(entry, FrameEntry) and wanted(entry, options):
            full.extend(builder.add_all(rows.rows(entry), ERROR_SIZE))

    for item in read_frames(part, options, ["frame"], see):
        if isinstance(item, Bad):
            yield item
        yield from full
        full.clear()
    yield from full
    if (batch := builder.take()) is not None:
        yield batch


class FrameRows:
    """Frames as rows of the frames table. columns: those that are wanted, by name."""

    def __init__(self, columns: Sequence[str], *, show_secrets: bool) -> None:
        self._getters = [_COLUMNS[name] for name in columns]
        self._formed = any(name in _FORMED for name in columns)
        self._show_secrets = show_secrets

    def row(self, entry: FrameEntry) -> list[Any]:
        """The values, in the order of the columns."""
        if not self._formed:
            return [get(entry, _NO_FORM) for get in self._getters]
        hidden = NOTHING if self._show_secrets else withheld(entry)
        form = frame_form(entry, NINE, show_secrets=self._show_secrets, hidden=hidden)
        form["answered"] = (None if hidden.body else error_code(entry)) or (None, None)
        return [get(entry, form) for get in self._getters]


class ErrorRows:
    """The error codes of responses as rows of the errors table. columns: those that are wanted, by name."""

    def __init__(self, columns: Sequence[str], *, show_secrets: bool) -> None:
        self._columns = columns
        self._show_secrets = show_secrets

    def rows(self, entry: FrameEntry) -> Iterator[list[Any]]:
        """One for each error code that is not 0, in the order of the columns."""
        hidden: Withheld | None = None
        for place in error_places(entry):
            if hidden is None:
                hidden = NOTHING if self._show_secrets else withheld(entry)
            if hidden.body:
                return
            row = _error_row(entry, place, hidden)
            yield [row[name] for name in self._columns]


def _error_row(entry: FrameEntry, place: ErrorPlace, hidden: Withheld) -> dict[str, Any]:
    found = {name: _COLUMNS[name](entry, _NO_FORM) for name in _OF_FRAME}
    return found | {
        "client_id": None if hidden.client else entry.client_id, "path": place.path,
        "error_code": place.code, "error_name": place.name,
        "error_message": None if place.message_path in hidden.paths else place.message,
        "topic": place.topic or None, "partition": place.partition, "group_id": place.group,
    }  # fmt: skip


def row_size(entry: FrameEntry) -> int:
    """About how many bytes a frame's row has: the body as JSON is seldom more than four times its bytes."""
    return 4 * entry.size + 200


def _head(part: Part) -> bytes:
    with open_stream(part.path) as stream:
        return stream.read(KEPT)


def bad_of(entry: UnreadableRange, path: str, *, show_secrets: bool) -> Bad:
    """An unreadable range of a capture, for quarantine. path: the capture's."""
    data = entry.data if show_secrets and entry.data else None
    return Bad(path, entry.position, entry.position + entry.length, entry.reason, data,
               entry.flow or None, entry.time_ns)  # fmt: skip


def _bad(entry: UnreadableRange, part: Part, options: Options) -> Bad:
    bad = bad_of(entry, part.path, show_secrets=options.show_secrets)
    if options.failfast:
        raise Malformed(str(bad), bad.start)
    return bad


def wanted(entry: FrameEntry, options: Options) -> bool:
    """Whether its time is in the range asked for; a frame without a time is in none."""
    start, end = options.starting_timestamp, options.ending_timestamp
    if start is None and end is None:
        return True
    if entry.time_ns is None:
        return False
    return (start is None or entry.time_ns >= start * 1_000_000) and (
        end is None or entry.time_ns < end * 1_000_000
    )


# --- columns ---

Getter = Callable[[FrameEntry, dict[str, Any]], Any]


def _json(name: str) -> Getter:
    def get(entry: FrameEntry, form: dict[str, Any]) -> str | None:
        value = form.get(name)
        return None if value is None else encode(value)

    return get


def _error(name: str) -> Getter:
    return lambda entry, form: (form["error"] or {}).get(name)


def _raw(entry: FrameEntry, form: dict[str, Any]) -> bytes | None:
    return entry.body if "raw" in form else None


def _latency(entry: FrameEntry, form: dict[str, Any]) -> float | None:
    latency = entry.latency_ns
    return None if latency is None else round(latency / 1e6, 6)


def _host(side: str) -> Getter:
    def get(entry: FrameEntry, form: dict[str, Any]) -> str | None:
        return None if entry.connection is None else str(getattr(entry.connection, side))

    return get


_FORMED: dict[str, Getter] = {
    "error_code": lambda entry, form: form["answered"][0],
    "error_name": lambda entry, form: form["answered"][1],
    "error_reason": _error("reason"),
    "error_position": _error("position"),
    "error_path": _error("path"),
    "body": _json("body"),
    "header_tags": _json("headerTags"),
    "raw": _raw,
    "redacted": lambda entry, form: form.get("redacted"),
    "deviations": _json("deviations"),
}
"""What only the JSON line knows."""

_COLUMNS: dict[str, Getter] = {
    "capture": lambda entry, form: text(entry.capture),
    "frame": lambda entry, form: entry.number,
    "flow": lambda entry, form: entry.flow,
    "client": _host("client"),
    "broker": _host("broker"),
    "time": lambda entry, form: microseconds(entry.time_ns),
    "time_ns": lambda entry, form: entry.time_ns,
    "direction": lambda entry, form: entry.direction,
    "api_key": lambda entry, form: entry.api_key,
    "api": lambda entry, form: entry.api_name,
    "api_version": lambda entry, form: entry.api_version,
    "body_version": lambda entry, form: entry.body_version,
    "correlation_id": lambda entry, form: entry.correlation_id,
    "client_id": lambda entry, form: entry.client_id,
    "size": lambda entry, form: entry.size,
    "latency_ms": _latency,
    "dialect": lambda entry, form: str(entry.dialect),
    "token": lambda entry, form: entry.token,
    **_FORMED,
}
_OF_FRAME = ("capture", "frame", "time", "api", "api_version", "client", "broker")
"""Columns that the table of errors has from that of frames."""
