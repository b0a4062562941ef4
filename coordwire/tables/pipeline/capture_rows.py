"""One reading of a capture to the rows of all of its tables, and what a checkpoint keeps of it.

Strategy: frames become rows by `read_frames`; on the way each is counted, given to the timeline and added
to the traffic. A chain is read in stages (`coordwire.tables.readers.chains`), each of which has a unit of its
own; between the settled files and the last one all rows that came out are the first unit's, and all that is
known, the sums of the minutes that are not over among it, is its checkpoint. Rules: a checkpoint that is
damaged, missing or of another version is reported in the unit's note, and the files before are read again,
without rows; one that can't be made is left out, and the next run reads the chain again.
"""

from __future__ import annotations

__all__ = ["OF_FRAMES", "CaptureRows"]

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from coordwire.capture.answer_errors import KnownAnswers
from coordwire.capture.body_text import NO_TEXT, body_text, is_refused
from coordwire.capture.entries import FrameEntry
from coordwire.capture.plain_lines import PlainFrames
from coordwire.capture.reader import ReaderState
from coordwire.codec.program import HAS_CODES
from coordwire.codec.walk import entity_values
from coordwire.dialects import find_alternative, find_dialect
from coordwire.tables.columns import TABLES
from coordwire.tables.options import Options
from coordwire.tables.readers.captures import read_frames
from coordwire.tables.readers.chains import ChainReading, ChainStage
from coordwire.tables.readers.frame_rows import ERROR_SIZE, ErrorRows
from coordwire.tables.readers.frame_selection import is_selected
from coordwire.tables.readers.group_rows import STORIES, EventRows
from coordwire.tables.readers.rows import Bad, builders_of
from coordwire.tables.readers.sources import guarded_call
from coordwire.tables.readers.traffic_rows import TRAFFIC_SIZE, TrafficRows
from coordwire.tables.storage.checkpoints import NoCheckpoint, load_checkpoint, save_checkpoint
from coordwire.timeline.from_wire.timeline import Timeline
from coordwire.versions import api_name

if TYPE_CHECKING:
    import pyarrow

    from coordwire.capture.entries import ConnectionSign, Entry
    from coordwire.tables.pipeline.units import Work
    from coordwire.tables.storage.folders import Output

    Rows = Iterator[tuple[Work, str, pyarrow.RecordBatch]]

OF_FRAMES = ("frames", "errors")
"""The tables that a capture's frames have rows in one by one, whichever share they are in."""

PREFIX = 4
"""Bytes of a frame's size prefix."""


class CaptureRows:
    """works: of the units that one reading serves: one; those of a capture's stories and of its frames; or
    these of a chain's settled files, and that of its last one."""

    def __init__(
        self, works: Sequence[Work], options: Options, tables: Sequence[str], output: Output
    ) -> None:
        first = works[0]
        self._part = part = first.unit.part
        alike = [work for work in works if work.unit.part.stage == part.stage]
        if len(alike) > 1:
            self._part = part = replace(part, shares=1, end=part.size)
        self._works = {work.unit.part.stage: (work, work) for work in works}
        self._now: tuple[Work, Work] | None = (first, alike[-1])
        self._works[part.stage] = self._now
        self._options, self._tables, self._output = options, tables, output
        self._stage: ChainStage | None = None
        self._has_timeline = any(name in tables for name in STORIES)
        self._has_traffic = "traffic" in tables
        self._telling = (self._has_timeline or self._has_traffic) and part.share == 0  # members' connections
        dialect = options.dialect
        self._timeline = Timeline(ends=True, dialect=find_dialect(dialect) or find_alternative(dialect))
        self._traffic = TrafficRows(show_secrets=options.show_secrets)
        self._chain = self._read_chain(works) if part.stage else None
        self._new_since: int | None = None if part.known and not part.stage else 0
        self._builders = builders_of(
            [name for name in (*STORIES, "errors", "traffic") if name in tables], options.batch_size
        )
        self._stories = EventRows(self._builders, "capture")
        self._ready: list[tuple[str, pyarrow.RecordBatch]] = []
        self._apis: Counter[int | None] = Counter()
        self._refused: Counter[int | None] = Counter()
        self._codes = KnownAnswers(_codes)
        self._judge = PlainFrames(show_secrets=options.show_secrets)
        self._error_rows = ErrorRows(
            [column.name for column in TABLES["errors"]], show_secrets=options.show_secrets
        )

    def rows(self) -> Rows:
        """The batches of all tables, each with the work of the unit that it belongs to."""
        columns = [column.name for column in TABLES["frames"]]
        if "frames" not in self._tables:
            columns = ["frame"]
        reader = partial(
            read_frames, stories=self._has_timeline or self._has_traffic,
            tell=self._tell if self._telling else None, chain=self._chain,
        )  # fmt: skip
        for item in guarded_call(reader, self._part, self._options, columns, self._see):
            if isinstance(item, str):
                yield from self._begin(cast("ChainStage", item))
            elif self._now is not None:
                if isinstance(item, Bad):
                    self._now[0].quarantine(item)
                else:
                    yield self._now[1], "frames", item
                yield from self._take()
        if self._telling and self._stage != "settled":
            yield from self._finish()
        yield from self._end_stage()

    # --- stages

    def _read_chain(self, works: Sequence[Work]) -> ChainReading:
        """The reading of a chain, from the checkpoint of the files before, if there are any."""
        further = (work.unit.part for work in works[1:])
        parts = [works[0].unit.part, *(part for part in further if part.stage == "open")]
        after = self._part.after
        if after:
            try:
                name, state, self._timeline, self._traffic = _checked(load_checkpoint(self._output, after))
            except (NoCheckpoint, OSError) as error:
                reason = error.reason if isinstance(error, NoCheckpoint) else error.strerror or str(error)
                works[0].notices.append(
                    f"{parts[0].stream_paths[0]}: what goes on in the next file was read again in the "
                    f"{len(parts[0].before)} before it, as their checkpoint can't be used: {reason}"
                )
            else:
                return ChainReading(parts, self._options, state, name)
        return ChainReading(parts, self._options)

    def _begin(self, stage: ChainStage) -> Rows:
        """Go on with the next stage of a chain; what is known of the files before has no rows here."""
        if self._stage is not None:
            yield from self._end_stage()
        self._stage = stage
        self._now = self._works.get(stage)

    def _end_stage(self) -> Rows:
        """Give all rows that came out, and count; of settled files keep what is known."""
        self._ready += self._stories.finish()
        for name in ("errors", "traffic"):
            if name in self._builders and (rows := self._builders[name].take()) is not None:
                self._ready.append((name, rows))
        yield from self._take()
        if self._now is not None:
            self._count(self._now[1])
        if self._chain is not None and self._now is not None:
            self._now[0].chain = self._now[1].chain = self._chain.name
            if self._stage == "settled":
                self._save(self._chain, self._now[0])

    def _save(self, chain: ChainReading, work: Work) -> None:
        """Write the checkpoint of a chain's settled files, if they end between two packets; the reader of
        their first share does."""
        if not chain.is_exact or self._part.share:
            return
        state = chain.name, chain.state, self._timeline, self._traffic
        try:
            save_checkpoint(self._output, work.unit.name, state)
        except NoCheckpoint as error:
            work.notices.append(
                f"{chain.name}: there is no checkpoint, so that the capture is read again as a whole when a "
                f"file follows: {error.reason}"
            )
        else:
            work.is_saved = True

    def _take(self) -> Rows:
        """The batches that are complete."""
        if self._now is not None:
            for table, batch in self._ready:
                yield self._now[table in OF_FRAMES], table, batch
        self._ready.clear()

    def _count(self, work: Work) -> None:
        for counts, is_bad in ((self._apis - self._refused, False), (self._refused, True)):
            for key, count in counts.items():
                name = None if key is None else api_name(key)
                work.apis[name or "unknown", is_bad] += count
        work.refused += self._refused.total()
        self._apis.clear()
        self._refused.clear()

    # --- frames

    def _see(self, frames: Sequence[FrameEntry]) -> None:
        """Count frames, and the error codes in them."""
        assert self._now is not None
        work = self._now[1]
        work.read_bytes += PREFIX * len(frames) + sum([len(entry.body) for entry in frames])
        work.rows += len(frames)
        self._apis.update([entry.api_key for entry in frames])
        coded = []
        for entry in frames:
            body, flags = entry.text or body_text(entry)
            if body is None or flags & HAS_CODES:
                coded.append(entry)
        for entry in coded:
            if is_refused(entry):
                self._refused[entry.api_key] += 1
            elif entry.direction == "response":
                text = (entry.text or NO_TEXT)[0]
                for code in _codes(entry) if text is None else self._codes.of(entry, text):
                    work.error_codes[entry.api_name or "unknown", code] += 1
        if "errors" in self._tables:
            in_range = [entry for entry in coded if is_selected(entry, self._options)]
            batches = self._builders["errors"].add_all(self._error_rows.rows(in_range), ERROR_SIZE)
            self._ready.extend(("errors", batch) for batch in batches)

    def _tell(
        self, entries: Sequence[Entry | ConnectionSign], frames: Sequence[FrameEntry], is_known: bool
    ) -> Sequence[bool]:
        """Give the timeline and the traffic what was read; `is_plain` of each frame. is_known: whether
        other units have its rows. Of a chain's files before all rows are made, and dropped where the stage
        ends, as they are in the run that had them."""
        is_known = is_known and self._chain is None
        plain = self._judge.flags(frames)
        if self._has_timeline and (events := self._timeline.feed_all(entries)) and not is_known:
            self._ready.extend(self._stories.add(events))
        if self._new_since is None and not is_known:
            self._new_since = min(
                (entry.time_ns for entry in entries if entry.time_ns is not None), default=None
            )
        if self._has_traffic:
            counted = None
            if self._options.selects_frames or is_known:
                counted = [not is_known and is_selected(entry, self._options) for entry in frames]
            self._add_traffic(self._traffic.feed(frames, plain, counted))
        if self._now is None:
            self._ready.clear()
        return plain

    def _add_traffic(self, rows: list[tuple[Any, ...]]) -> None:
        batches = self._builders["traffic"].add_all(rows, TRAFFIC_SIZE)
        self._ready.extend(("traffic", batch) for batch in batches)

    def _finish(self) -> Rows:
        """What only the end of the capture shows."""
        since = self._new_since
        events = (
            event
            for event in self._timeline.finish()
            if since is not None and (event.time_ns is None or event.time_ns >= since)
        )
        for batch in self._stories.add_all(events):
            self._ready.append(batch)
            yield from self._take()
        if self._has_traffic:
            self._add_traffic(self._traffic.finish())


def _codes(entry: FrameEntry) -> set[int]:
    """The error codes of a response other than 0."""
    return {*entity_values(entry.message, "error_code")} - {0}


def _checked(state: Any) -> tuple[str, ReaderState, Timeline, TrafficRows]:
    """What a checkpoint has. Raises `NoCheckpoint` for anything else."""
    kinds = (str, ReaderState, Timeline, TrafficRows)
    if isinstance(state, tuple) and tuple(map(type, state)) == kinds:
        return cast("tuple[str, ReaderState, Timeline, TrafficRows]", state)
    raise NoCheckpoint("it has something else")
