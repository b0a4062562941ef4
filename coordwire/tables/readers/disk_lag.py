"""Lag from disk: what groups have committed, by `__consumer_offsets`, against the ends of partitions' logs.

Strategy: the driver picks the files by their names (`lag_inputs`); one task reads the commits, as a
coordinator that loads its log does (`latest`), and of each partition that has any the last segment's end,
from its index on. Rules: only files count that a broker still reads from: none that is deleted, being
cleaned, or moved in. A folder without `meta.properties` counts to the cluster of the others where there is
only one. Of several brokers' copies of an offsets partition the one that reaches furthest counts; of a
partition's copies the furthest end. What was removed (a tombstone, an offset of -1), and a commit whose
transaction isn't committed, have no row; where a partition's log is not among the files, its end and lag are
null. A lag below 0 is kept: what is committed there is beyond the end of every copy.
"""

from __future__ import annotations

__all__ = ["OFFSETS_TOPIC", "lag_inputs", "lag_parts", "lag_rows", "log_end", "read_lag"]

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from coordwire.capture.jsonlines import text
from coordwire.codec import Message
from coordwire.errors import UnreadableRange
from coordwire.records import RecordBatch
from coordwire.segments.names import file_name
from coordwire.segments.remote_storage import remote_name
from coordwire.tables.columns import LAG, arrow_schema
from coordwire.tables.options import Options
from coordwire.tables.readers.coordinator_logs import time_of
from coordwire.tables.readers.file_origins import Origins
from coordwire.tables.readers.files import File, open_bytes
from coordwire.tables.readers.rows import Bad, Builder
from coordwire.tables.readers.segment_reader import SegmentReader
from coordwire.tables.readers.splits import CopiedSegment, LagInputs, LogCopy, Part
from coordwire.tables.stores import is_uri
from coordwire.timeline.from_log.compaction import latest
from coordwire.timeline.from_log.coordinator_log import CoordinatorRecord, LogItem, read_records

if TYPE_CHECKING:
    import pyarrow

# --- which files ---


OFFSETS_TOPIC = "__consumer_offsets"
STATES = ("live", "remote")


def lag_inputs(files: Iterable[File], origins: Origins) -> LagInputs | None:
    """The files that lag follows from; None without segments of the offsets topic."""
    copies: dict[tuple[str | None, str | None, str, int], list[CopiedSegment]] = {}
    for file in files:
        if file.kind() != "segment" or file.trouble:
            continue
        origin = origins.of(file)
        name = remote_name(file.name) or file_name(file.name)
        if origin.topic is None or origin.partition is None or origin.state not in STATES:
            continue
        if name is not None and name.offset is not None:
            key = origin.cluster_id, origin.broker, origin.topic, origin.partition
            copies.setdefault(key, []).append(CopiedSegment(file.path, file.size, name.offset, file.index))
    known = {cluster for cluster, *_ in copies if cluster is not None}
    commits, ends = [], []
    for (cluster, _, topic, partition), segments in sorted(copies.items(), key=repr):
        segments.sort(key=lambda file: (file.offset, file.path))
        if cluster is None and len(known) == 1:  # a folder without meta.properties, beside some with
            (cluster,) = known
        if topic == OFFSETS_TOPIC:
            commits.append(LogCopy(cluster, topic, partition, tuple(segments)))
        else:
            ends.append(LogCopy(cluster, topic, partition, (segments[-1],)))
    return LagInputs(tuple(commits), tuple(ends)) if commits else None


def lag_parts(files: Iterable[File], origins: Origins) -> list[Part]:
    """The one part by which all lag is read; none without segments of the offsets topic."""
    inputs = lag_inputs(files, origins)
    if inputs is None:
        return []
    size = sum(file.size for copy in inputs.commits for file in copy.files)
    path, *further = inputs.paths
    return [Part("segment", path, size, 0, size, OFFSETS_TOPIC, further_paths=tuple(further), lag=inputs)]


# --- the rows ---


COMMITS = ("OffsetCommit", "LegacyOffsetCommit")
TAIL = 1 << 20
"""Bytes at a segment's end in which its last batch is looked for first."""


class End(NamedTuple):
    """A log's end: the offset after its last record, and that record's batch's time, -1 for none."""

    offset: int
    timestamp_ms: int


def read_lag(part: Part, options: Options, columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch | Bad]:
    """The lag of each group in each partition, in batches of these columns of the lag table.

    Raises in failfast mode the error of reading a file of commits.
    """
    assert part.lag is not None
    builder = Builder(
        arrow_schema([column for name in columns for column in LAG if column.name == name]),
        options.batch_size,
    )
    yield from builder.add_all(([row[name] for name in columns] for row in lag_rows(part.lag, options)), 200)
    if (batch := builder.take()) is not None:
        yield batch


def lag_rows(
    lag: LagInputs, options: Options, unread: Callable[[UnreadableRange], None] | None = None
) -> Iterator[dict[str, Any]]:
    """The rows of the lag table. unread: called with each unreadable range of the commits.

    Raises in failfast mode the error of reading a file of commits.
    """
    copies_of: dict[tuple[str | None, str, int], list[LogCopy]] = {}
    for copy in (*lag.ends, *lag.commits):
        copies_of.setdefault(copy[:3], []).append(copy)
    ends: dict[tuple[str | None, str, int], End | None] = {}
    for key in sorted({copy[:3] for copy in lag.commits}, key=repr):
        copy = max(copies_of[key], key=lambda copy: log_end(copy).offset)
        for commit in latest(_items(copy, options, unread)).records:
            if not options.wants(commit.topic, commit.partition):
                continue
            place = copy.cluster_id, commit.topic or "", commit.partition or 0
            if place not in ends:
                log_ends = [log_end(log_copy) for log_copy in copies_of.get(place, ())]
                ends[place] = max(log_ends, default=None)
            row = _row(commit, ends[place])
            if row is not None:
                yield row


def _items(
    copy: LogCopy, options: Options, unread: Callable[[UnreadableRange], None] | None
) -> Iterator[LogItem]:
    """A copy's records; what can't be read is in quarantine by the units of the segments themselves."""
    for file in copy.files:
        try:
            data = open_bytes(file.path)
        except OSError:
            if options.failfast:
                raise
            continue
        for item in read_records(data, log="consumer_offsets", file=file.path, log_partition=copy.partition):
            if unread is not None and isinstance(item, UnreadableRange):
                unread(item)
            yield item


def _row(commit: CoordinatorRecord, end: End | None) -> dict[str, object] | None:
    value = commit.value
    if commit.kind not in COMMITS or commit.refusal is not None or not isinstance(value, Message):
        return None
    committed: int = value.offset  # type: ignore[attr-defined]
    if committed < 0 or commit.group is None or commit.topic is None or commit.partition is None:
        return None
    times = [commit.timestamp_ms, -1 if end is None else end.timestamp_ms]
    known = [micros for time in times if time >= 0 and (micros := time_of(time)) is not None]
    lag = None if end is None else end.offset - committed
    return {
        "time": max(known, default=None), "group_id": commit.group, "topic": commit.topic,
        "partition": commit.partition, "committed_offset": committed,
        "end_offset": None if end is None else end.offset,
        "lag": lag, "reason": "committed_beyond_end" if lag is not None and lag < 0 else None,
        "input_file": text(commit.file), "seen_in": "log", "frame": None, "packet": None,
        "log_offset": commit.log_offset, "cluster_id": None,
    }  # fmt: skip


def log_end(copy: LogCopy) -> End:
    """The end of a copy, as far as it is readable; at least the offset in the name of its last file."""
    file = copy.files[-1]
    try:
        size = file.size if is_uri(file.path) else os.stat(file.path).st_size  # it may have grown
        last = _last(file, max(0, size - TAIL), size) or _last(file, 0, size)
    except OSError:
        last = None
    if last is None:
        return End(file.offset, -1)
    return End(max(last.last_offset + 1, file.offset), last.max_timestamp)


def _last(file: CopiedSegment, start: int, size: int) -> RecordBatch | None:
    """The last batch with a right checksum that begins at `start` or after it."""
    last = None
    part = Part("segment", file.path, size, start, size, index=file.offset_index)
    with closing(SegmentReader(part, Options())) as reader:
        for item in reader.items():
            if not isinstance(item, Bad):
                last = item
    return last
