"""Where a segment is from: topic, partition, broker, cluster, and what the broker was doing with it.

Strategy: names say topic, partition and state (`coordwire.segments.names`, `remote_names`); broker and
cluster are in `meta.properties` of the log folder, which is read once a folder. Rules: a log folder without
`meta.properties` counts as a broker of its own, by its path, so that two brokers' copies are never taken for
one; what isn't known is null, never guessed.
"""

from __future__ import annotations

__all__ = ["FileOrigin", "Origins"]

import re
from collections.abc import Iterable
from typing import NamedTuple

from coordwire.errors import CoordwireError
from coordwire.segments.names import file_name, file_state
from coordwire.segments.remote_names import remote_name
from coordwire.spark.readers.files import File, is_uri, open_stream

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


class _Broker(NamedTuple):
    broker: str | None
    cluster_id: str | None


class Origins:
    """The origins of files that were listed together. indexes: the paths of offset indexes among these."""

    def __init__(self, files: Iterable[File]) -> None:
        self._listed, self.indexes = set[str](), set[str]()
        for file in files:
            if file.name == META:
                self._listed.add(file.path)
            elif ".index" in file.name:
                self.indexes.add(file.path)
        self._brokers: dict[str, _Broker | None] = {}
        self._lookups = 0

    def of(self, file: File) -> FileOrigin:
        """A segment's, or another file's as far as it has any."""
        if remote_name(file.name) is not None and file_name(file.name) is None:
            return self._remote(file)
        folder = file.path.rpartition("/")[0]
        found = self._broker(folder if file.topic is None else folder.rpartition("/")[0])
        if found is None and file.topic is not None:
            found = _Broker(folder.rpartition("/")[0] or "/", None)
        broker, cluster = found or (None, None)
        return FileOrigin(file.topic, file.partition, broker, cluster, file_state(file.path))

    def _remote(self, file: File) -> FileOrigin:
        return FileOrigin(file.topic, file.partition, None, None, "remote")

    def _broker(self, folder: str) -> _Broker | None:
        """What the log folder's `meta.properties` says; None if there is none."""
        if folder not in self._brokers:
            self._brokers[folder] = self._read(f"{folder}/{META}")
        return self._brokers[folder]

    def _read(self, path: str) -> _Broker | None:
        if is_uri(path) and path not in self._listed:
            self._lookups += 1
            if self._lookups > MOST_LOOKUPS:
                return None
        try:
            with open_stream(path) as stream:
                text = stream.read(MOST_META).decode("utf-8", "replace")
        except (OSError, CoordwireError):
            return None
        lines = map(_PROPERTY.fullmatch, text.splitlines())
        found = {line[1]: line[2] for line in lines if line is not None}
        node = found.get("node.id") or found.get("broker.id")
        if node is None or not _NUMBER.fullmatch(node):
            return None
        return _Broker(node, found.get("cluster.id"))
