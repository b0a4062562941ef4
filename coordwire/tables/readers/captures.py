"""A capture: its frames, and what couldn't be read.

Strategy: `coordwire.capture.reader.Capture` gives entries; a frame becomes a row (`frame_rows`), an
unreadable range goes to quarantine. Frames are made into rows some at a time, which takes the processor
less than one by one in between. The files of a rotated capture are read as one stream
(`coordwire.capture.rotation`). Of a large one each unit gives its share of the frames (`DealtFrames`).
"""

from __future__ import annotations

__all__ = [
    "bad_of",
    "entries",
    "joined",
    "read_errors",
    "read_frames",
    "together",
    "was_overwritten",
]

import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import compress, groupby, repeat
from typing import TYPE_CHECKING, BinaryIO, TypeAlias, cast

from coordwire.capture.body_text import is_refused
from coordwire.capture.entries import ConnectionSign, Entry, FrameEntry
from coordwire.capture.reader import Capture
from coordwire.capture.rotation import RotatedFiles
from coordwire.dialects import find_alternative, find_dialect
from coordwire.errors import DecodeError, Malformed, UnreadableRange
from coordwire.tables.columns import ERRORS, FRAMES, arrow_schema
from coordwire.tables.options import Options
from coordwire.tables.readers.files import File, first_captured, open_stream
from coordwire.tables.readers.frame_rows import ERROR_SIZE, ErrorRows, FrameRows
from coordwire.tables.readers.frame_selection import is_selected
from coordwire.tables.readers.rows import KEPT, Bad, Builder
from coordwire.tables.readers.splits import CapturedFile, DealtFrames, Part
from coordwire.tables.stores import is_uri, local_path

if TYPE_CHECKING:
    import pyarrow

    from coordwire.tables.readers.chains import ChainReading, ChainStage

TOGETHER, HELD = 256, 1 << 20
"""How many frames are made into rows at once, at most, or bytes of frames."""

Together: TypeAlias = tuple[list[Entry | ConnectionSign], list[FrameEntry]]
"""Some of what is in a capture, in order, and the frames of it."""

Open = Callable[[str], BinaryIO]
Failed = Callable[[str, OSError | DecodeError], None]


def joined(paths: Sequence[str], failed: Failed, opener: Open = open_stream) -> BinaryIO:
    """The files of a rotated capture as one stream, opened one at a time: there may be thousands.

    failed: called with each file that can't be opened, or whose compressed content ends early.
    """
    return _stream(RotatedFiles(paths, opener, failed))


def _stream(files: RotatedFiles) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(files, 1 << 18))


def together(lists: Iterable[Sequence[Entry | ConnectionSign]]) -> Iterator[Together]:
    """What is read of a capture, in lists that are worth a column: of `TOGETHER` entries or `HELD` bytes."""
    waiting: list[Entry | ConnectionSign] = []
    frames: list[FrameEntry] = []
    size, failure = 0, None
    try:
        for entries in lists:
            own = [entry for entry in entries if isinstance(entry, FrameEntry)]
            waiting += entries
            frames += own
            size += sum([len(entry.body) for entry in own])
            if len(waiting) >= TOGETHER or size >= HELD:
                yield waiting, frames
                waiting, frames, size = [], [], 0
    except (OSError, DecodeError) as error:
        failure = error
    if waiting:
        yield waiting, frames
    if failure is not None:
        raise failure


def entries(
    part: Part, options: Options, failed: Failed, share: DealtFrames | None = None
) -> Iterator[tuple[bool, Together]]:
    """Everything in the capture, or one share of it, in order, and whether other units have its rows; frames
    are lazy. Raises `OSError`, and what `Capture` raises for a file that is not a capture.

    failed: called with each file of a rotated capture that can't be opened.
    """
    paths, known = part.stream_paths, part.known
    switches: list[tuple[int, bool]] = []
    with ExitStack() as stack:
        files = RotatedFiles(
            paths, open_stream, failed, known,
            lambda is_known: switches.append((capture.counts.packets if capture else 0, is_known)),
        )  # fmt: skip
        alone = len(paths) == 1 and not known
        stream = stack.enter_context(open_stream(part.path) if alone else _stream(files))
        capture: Capture | None = None
        capture = Capture(
            stream, part.path, strict=options.strict, lazy=True,
            dialect=find_dialect(options.dialect), alternative=find_alternative(options.dialect),
        )  # fmt: skip
        batches = capture.batches() if share is None else map(share.own, capture.batches())
        if not known:
            yield from zip(repeat(False), together(batches))
            return
        # What can be read of the bytes so far is drawn before more are read; holes are given up later.
        for is_known, lists in groupby(batches, lambda _: files.is_known):
            for items in lists:
                for was_known, alike in groupby(items, partial(_was_known, switches, is_known)):
                    yield from zip(repeat(was_known), together([list(alike)]))


def _was_known(switches: Sequence[tuple[int, bool]], is_known: bool, entry: Entry | ConnectionSign) -> bool:
    """Whether the bytes that end an entry were read before. switches: after how many packets this changed,
    and to what; is_known: of the last bytes."""
    packet = entry.packet if isinstance(entry, FrameEntry | UnreadableRange) else None
    if packet is None:
        return is_known
    return next((known for after, known in reversed(switches) if after < packet), True)


def read_frames(
    part: Part,
    options: Options,
    columns: Sequence[str],
    see: Callable[[Sequence[FrameEntry]], None] | None = None,
    *,
    stories: bool = False,
    tell: Callable[[Sequence[Entry | ConnectionSign], Sequence[FrameEntry], bool], Sequence[bool]]
    | None = None,
    read_entries: Iterable[Entry] | None = None,
    chain: ChainReading | None = None,
) -> Iterator[pyarrow.RecordBatch | Bad | ChainStage]:
    """The frames of the capture, or of the part's share of it, in batches of these columns of the frames
    table, and what couldn't be read.

    see: called with the frames of the share, some at a time. stories: whether the reader of the first share
    makes the stories of groups; tell: called by that reader, whose share is empty if there are others, with
    what `entries` gives of the capture; it returns `is_plain` of each frame. read_entries: the entries, if
    they were read already. chain: reads the files in stages; the name of each comes before what is in it.
    Raises `OSError` where a file can't be read; in failfast mode `DecodeError` for
    what couldn't be read or was refused.
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
        reason = getattr(error, "strerror", None) or str(error)
        missing.append(Bad(path, 0, 0, reason, is_lost=isinstance(error, OSError)))

    stage: ChainStage | None = None
    name = part.path if chain is None else chain.name
    share = DealtFrames(part.share, part.shares, stories=stories) if part.shares > 1 else None
    has_shares = tell is not None and share is not None  # frames' rows are other shares'
    try:
        told_share = share if tell is None else None
        lists: Iterable[tuple[bool | ChainStage, Together]]
        if chain is not None:
            lists = chain.lists(failed, told_share)
        elif read_entries is None:
            lists = entries(part, options, failed, told_share)
        else:
            lists = zip(repeat(False), together([entry] for entry in read_entries))
        for place, (batch, frames) in lists:
            is_known = place is True or place == "known"
            if not isinstance(place, bool) and place != stage:
                if (rows_left := builder.take()) is not None:
                    yield rows_left
                yield place
                stage = place
            has_other_shares = has_shares and place != "open"
            plain = None if tell is None else tell(batch, frames, is_known)
            if is_known:
                continue
            if options.failfast:
                _refuse(batch, part, options, frames_too=not has_other_shares)
            if not has_other_shares:
                if see is not None:
                    see(frames)
                selected = frames
                if options.selects_frames:
                    has_rows = [is_selected(entry, options) for entry in frames]
                    selected = list(compress(frames, has_rows))
                    plain = None if plain is None else list(compress(plain, has_rows))
                yield from rows.add(selected, builder, plain)
            if len(batch) > len(frames):
                for entry in batch:
                    if isinstance(entry, UnreadableRange):
                        yield bad_of(entry, name, show_secrets=options.show_secrets)
    except DecodeError as error:  # no capture at all
        if options.failfast:
            raise
        if part.share == 0:
            yield Bad(name, 0, part.size, error.reason, _head(part) if options.show_secrets else None)
    yield from missing
    if (batch := builder.take()) is not None:
        yield batch


def _refuse(
    entries: Sequence[Entry | ConnectionSign], part: Part, options: Options, *, frames_too: bool
) -> None:
    """Raise `DecodeError` for the first unreadable range or, with the frames, refused frame, if any."""
    for entry in entries:
        if isinstance(entry, UnreadableRange):
            bad_range = bad_of(entry, part.path, show_secrets=options.show_secrets)
            raise Malformed(str(bad_range), bad_range.start)
        if not (frames_too and isinstance(entry, FrameEntry) and is_selected(entry, options)):
            continue
        if is_refused(entry):
            reason = f"{part.path}: frame {entry.number}: {entry.error}"
            raise Malformed(reason, entry.error.position if entry.error else 0)


def read_errors(
    part: Part, options: Options, columns: Sequence[str], *, read_entries: Iterable[Entry] | None = None
) -> Iterator[pyarrow.RecordBatch | Bad]:
    """The error codes of the capture's responses in batches of these columns of the errors table, and what
    couldn't be read. Raises as `read_frames` does."""
    schema = arrow_schema([column for name in columns for column in ERRORS if column.name == name])
    builder = Builder(schema, options.batch_size)
    rows = ErrorRows(columns, show_secrets=options.show_secrets)
    full: list[pyarrow.RecordBatch] = []

    def see(frames: Sequence[FrameEntry]) -> None:
        in_range = [entry for entry in frames if is_selected(entry, options)]
        full.extend(builder.add_all(rows.rows(in_range), ERROR_SIZE))

    for item in read_frames(part, options, ["frame"], see, read_entries=read_entries):
        if isinstance(item, Bad):
            yield item
        yield from full
        full.clear()
    yield from full
    if (batch := builder.take()) is not None:
        yield batch


def was_overwritten(file: CapturedFile) -> bool:
    """Whether a local file is another one now than it was when it was listed, or shorter. One that is gone
    by now was read."""
    if is_uri(file.path) or not file.digest:
        return False
    try:
        size = os.stat(local_path(file.path)).st_size
    except OSError:
        return False
    first = first_captured(File(file.path, size, 0))
    return first is None or first.digest != file.digest or size < file.size


def _head(part: Part) -> bytes:
    with open_stream(part.path) as stream:
        return stream.read(KEPT)


def bad_of(entry: UnreadableRange, path: str, *, show_secrets: bool) -> Bad:
    """An unreadable range of a capture, for quarantine. path: the capture's."""
    data = entry.data if show_secrets and entry.data else None
    return Bad(path, entry.position, entry.position + entry.length, entry.reason, data,
               entry.flow or None, entry.time_ns)  # fmt: skip
