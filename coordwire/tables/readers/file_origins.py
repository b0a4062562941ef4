"""The origin of a segment: topic, partition, broker, cluster, and state (live, deleted, moved, …).

Strategy: names say topic, partition and state (`coordwire.segments.names`, `remote_names`); broker and
cluster are in `meta.properties` of the log folder, which is read once a folder. A segment in remote storage
is named by ids; `__remote_log_metadata`, if it is among the files, has their topics. Rules: a log folder
without `meta.properties` counts as a broker of its own, by its path, so that two brokers' copies are never
confused; what is unknown is null, never guessed.
"""

from __future__ import annotations

__all__ = ["FileOrigin", "Origins", "segment_identity"]

import re
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

from coordwire.errors import CoordwireError
from coordwire.records import batches
from coordwire.segments.names import file_name, file_state, live_path
from coordwire.segments.remote_storage import (
    METADATA_TOPIC,
    RemoteSegment,
    remote_name,
    remote_place,
    remote_segment,
)
from coordwire.tables.readers.files import File, open_bytes, open_stream
from coordwire.tables.stores import is_uri

META = "meta.properties"
MOST_META = 64 << 10
"""Bytes of a `meta.properties` that are read."""

MOST_LOOKUPS = 64
"""Log folders in a store whose `meta.properties` is looked for where the listing doesn't have it."""

_PROPERTY = re.compile(r"\s*(node\.id|broker\.id|cluster\.id)\s*[=:]\s*(\S+)\s*")
_NUMBER = re.compile(r"[0-9]{1,10}")


class FileOrigin(NamedTuple):
    """state: as `file_state` has it, or remote; None where the name says nothing."""

    topic: str | None
    partition: int | None
    broker: str | None
    cluster_id: str | None
    state: str | None


def segment_identity(path: str, size: int, origin: FileOrigin) -> list[Any]:
    """What identifies a segment wherever its broker moves it."""
    name = live_path(path).rpartition("/")[2]
    return [origin.cluster_id, origin.broker, origin.topic, origin.partition, name, size]


_Broker = tuple[str | None, str | None]
"""The broker and the cluster's id."""


class Origins:
    """The origins of files that were listed together. indexes: the paths of offset indexes among these."""

    def __init__(self, files: Iterable[File]) -> None:
        files = list(files)
        self._meta_files = {file.path for file in files if file.name == META}
        self.indexes = {file.path for file in files if ".index" in file.name}
        self._brokers: dict[str, _Broker | None] = {}
        self._lookups = 0
        self._metadata = [file for file in files if file.topic == METADATA_TOPIC and file.kind() == "segment"]

    def of(self, file: File) -> FileOrigin:
        """The origin of a segment, or of another file as far as its path shows one."""
        if remote_name(file.name) is not None and file_name(file.name) is None:
            return self._remote(file)
        folder = file.path.rpartition("/")[0]
        log_folder = folder if file.topic is None else folder.rpartition("/")[0]
        unknown = None if file.topic is None else log_folder or "/"
        broker, cluster = self._broker(log_folder) or (unknown, None)
        return FileOrigin(file.topic, file.partition, broker, cluster, file_state(file.path))

    def _remote(self, file: File) -> FileOrigin:
        """The origin of a segment in remote storage: metadata records count for more than a folder's name."""
        name, place = remote_name(file.name), remote_place(file.path.rpartition("/")[0])
        known = self._segments.get(name.segment_id) if name is not None else None
        if known is not None:
            return FileOrigin(known.topic, known.partition, None, None, "remote")
        if place is None:
            return FileOrigin(None, None, None, None, "remote")
        topic = place.topic or self._topics.get(place.topic_id)
        return FileOrigin(topic, place.partition if topic else None, None, None, "remote")

    @cached_property
    def _segments(self) -> dict[str, RemoteSegment]:
        """What `__remote_log_metadata` says, by the segments' ids; nothing if it is not among the files."""
        segments = {}
        for file in self._metadata:
            with suppress(OSError, CoordwireError):
                for batch in batches(open_bytes(file.path), on_error="skip"):
                    for record in () if batch.is_control else batch:
                        if (segment := remote_segment(record.value)) is not None:
                            segments[segment.segment_id] = segment
        return segments

    @cached_property
    def _topics(self) -> dict[str, str]:
        """Topics by their ids, as far as the same log knows them."""
        return {segment.topic_id: segment.topic for segment in self._segments.values()}

    def _broker(self, folder: str) -> _Broker | None:
        """What the log folder's `meta.properties` says; None if there is none."""
        if folder not in self._brokers:
            self._brokers[folder] = self._read(f"{folder}/{META}")
        return self._brokers[folder]

    def _read(self, path: str) -> _Broker | None:
        if is_uri(path) and path not in self._meta_files:
            self._lookups += 1
            if self._lookups > MOST_LOOKUPS:
                return None
        try:
            with open_stream(path) as stream:
                text = stream.read(MOST_META).decode("utf-8", "replace")
        except (OSError, CoordwireError):
            return None
        lines = map(_PROPERTY.fullmatch, text.splitlines())
        properties = {line[1]: line[2] for line in lines if line is not None}
        node = properties.get("node.id") or properties.get("broker.id")
        if node is None or not _NUMBER.fullmatch(node):
            return None
        return node, properties.get("cluster.id")
