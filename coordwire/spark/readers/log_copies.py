"""Which files say how far groups have read, and how far they could: by names alone.

Rules: only files count that a broker still reads from: none that is deleted, being cleaned, or moved in. Of a
partition the last segment says where it ends. A folder without `meta.properties` counts to the cluster of the
others where there is only one.
"""

from __future__ import annotations

__all__ = ["OFFSETS_TOPIC", "CopiedSegment", "LagInputs", "LogCopy", "lag_inputs"]

from collections.abc import Iterable
from typing import NamedTuple

from coordwire.segments.names import file_name
from coordwire.segments.remote_storage import remote_name
from coordwire.spark.readers.files import File
from coordwire.spark.readers.origins import Origins

OFFSETS_TOPIC = "__consumer_offsets"
STATES = ("live", "remote")


class CopiedSegment(NamedTuple):
    """A segment. offset: of its name; offset_index: where its index would be."""

    path: str
    size: int
    offset: int
    offset_index: str | None


class LogCopy(NamedTuple):
    """A broker's copy of a partition: the segments of the offsets topic, of any other topic the last one."""

    cluster_id: str | None
    topic: str
    partition: int
    files: tuple[CopiedSegment, ...]


class LagInputs(NamedTuple):
    """commits: the copies of the offsets topic's partitions; ends: of all others."""

    commits: tuple[LogCopy, ...]
    ends: tuple[LogCopy, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(file.path for copy in (*self.commits, *self.ends) for file in copy.files)


def lag_inputs(files: Iterable[File], origins: Origins) -> LagInputs | None:
    """What lag follows from; None without segments of the offsets topic."""
    copies: dict[tuple[str | None, str | None, str, int], list[CopiedSegment]] = {}
    for file in files:
        if file.kind() != "segment" or file.trouble:
            continue
        origin = origins.of(file)
        said = remote_name(file.name) or file_name(file.name)
        if origin.topic is None or origin.partition is None or origin.state not in STATES:
            continue
        if said is not None and said.offset is not None:
            key = origin.cluster_id, origin.broker, origin.topic, origin.partition
            copies.setdefault(key, []).append(CopiedSegment(file.path, file.size, said.offset, file.index))
    known = {cluster for cluster, *_ in copies if cluster is not None}
    commits, ends = [], []
    for (cluster, _, topic, partition), found in sorted(copies.items(), key=repr):
        found.sort(key=lambda file: (file.offset, file.path))
        if cluster is None and len(known) == 1:  # a folder without meta.properties, beside some with
            (cluster,) = known
        if topic == OFFSETS_TOPIC:
            commits.append(LogCopy(cluster, topic, partition, tuple(found)))
        else:
            ends.append(LogCopy(cluster, topic, partition, (found[-1],)))
    return LagInputs(tuple(commits), tuple(ends)) if commits else None
