"""Segments in remote storage (KIP-405): their names, and their topic and partition.

Two layouts are known, both of which name files OFFSET-SEGMENTID, ids as Kafka prints them (22 characters):

    TOPIC-TOPICID/PARTITION/OFFSET-SEGMENTID.log      Aiven's plugin for object stores
    TOPIC-PARTITION-TOPICID/OFFSET-SEGMENTID.log      Apache's LocalTieredStorage; once SEGMENTID.log

Where a folder's name does not say the topic, the records of `__remote_log_metadata` do. Each value there is,
in unsigned varints, a frame version, a record type and a version, then the record. Types 0 (a segment's
metadata) and 1 (its update) begin alike, with compact strings and tagged fields:

    topic name, topic id, partition, tagged fields; segment id, tagged fields; and more, which is not read

Rules: an id is the base64 of 16 bytes, so that 2 bits of its last character are always 0; a name or value of
another form gives nothing; no length in a value is trusted.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from coordwire.codec.primitives import as_uuid, uuid_text

_ID = "[A-Za-z0-9_-]{21}[AQgw]"
_PARTS = (
    "index|timeindex|time_index|txnindex|txn_index|snapshot|producer_snapshot|leader-epoch-checkpoint"
    "|leader_epoch_checkpoint|indexes|rsm-manifest"
)
_FILE = re.compile(rf"(?:(?P<offset>[0-9]{{1,20}})-)?(?P<id>{_ID})\.(?P<kind>log|{_PARTS})")
_TOPIC = r"(?P<topic>[A-Za-z0-9._-]{1,249})"
_STORE = re.compile(rf"(?:.*/)?{_TOPIC}-(?P<id>{_ID})/(?P<partition>[0-9]{{1,10}})", re.DOTALL)
_LOCAL = re.compile(rf"(?:.*/)?{_TOPIC}-(?P<partition>[0-9]{{1,10}})-(?P<id>{_ID})", re.DOTALL)
_BY_ID = re.compile(rf"(?:.*/)?(?P<id>{_ID})/(?P<partition>[0-9]{{1,10}})", re.DOTALL)
_INT32, _INT64 = 1 << 31, 1 << 63


class RemoteName(NamedTuple):
    """A file's name. kind: log, or index for all that is kept beside it. offset: of the first record."""

    kind: Literal["log", "index"]
    segment_id: str
    offset: int | None


class RemotePlace(NamedTuple):
    """A folder's name. topic: None where only its id is there."""

    topic: str | None
    partition: int
    topic_id: str


def remote_name(name: str) -> RemoteName | None:
    """The parts of the name of a file in remote storage; None if it is of another form."""
    match = _FILE.fullmatch(name)
    if match is None:
        return None
    offset = None if match["offset"] is None else int(match["offset"])
    if offset is not None and offset >= _INT64:
        return None
    return RemoteName("log" if match["kind"] == "log" else "index", match["id"], offset)


def remote_place(folder: str) -> RemotePlace | None:
    """The parts of the path of a segment's folder; None if it is of another form."""
    match = _STORE.fullmatch(folder) or _LOCAL.fullmatch(folder)
    by_id = match is None
    match = match or _BY_ID.fullmatch(folder)
    if match is None or int(match["partition"]) >= _INT32:
        return None
    return RemotePlace(None if by_id else match["topic"], int(match["partition"]), match["id"])


# --- the log of their metadata ---

METADATA_TOPIC = "__remote_log_metadata"
FRAME_VERSION = 1
TYPES = (0, 1)
UUID_SIZE, MOST_NAME, MOST_TAGS = 16, 249, 16


class RemoteSegment(NamedTuple):
    """Ids are as Kafka prints them, and as files are named."""

    segment_id: str
    topic_id: str
    topic: str
    partition: int


class _Short(Exception):
    """The value ends early, or isn't of this form."""


class _Fields:
    """A value, field by field."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        data = self._data[self._at : self._at + size]
        if len(data) != size:
            raise _Short
        self._at += size
        return data

    def uvarint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            (byte,) = self.take(1)
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise _Short

    def uuid(self) -> str:
        return uuid_text(as_uuid(self.take(UUID_SIZE)))

    def name(self) -> str:
        size = self.uvarint() - 1
        if not 0 < size <= MOST_NAME:
            raise _Short
        return self.take(size).decode("utf-8")

    def skip_tags(self) -> None:
        count = self.uvarint()
        if count > MOST_TAGS:
            raise _Short
        for _ in range(count):
            self.uvarint()
            self.take(self.uvarint())


def remote_segment(value: bytes | None) -> RemoteSegment | None:
    """The segment that a record of `__remote_log_metadata` is about; None for one that isn't about one."""
    fields = _Fields(value or b"")
    try:
        if fields.uvarint() != FRAME_VERSION or fields.uvarint() not in TYPES:
            return None
        fields.uvarint()  # the version: both begin alike
        topic, topic_id = fields.name(), fields.uuid()
        partition = int.from_bytes(fields.take(4), "big", signed=True)
        fields.skip_tags()
        segment_id = fields.uuid()
        fields.skip_tags()
    except (_Short, UnicodeDecodeError):
        return None
    return RemoteSegment(segment_id, topic_id, topic, partition) if partition >= 0 else None
