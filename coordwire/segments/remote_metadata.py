"""Which topic and partition a segment in remote storage is of, as `__remote_log_metadata` says it (KIP-405).

Each value of that topic is, in unsigned varints, a frame version, a record type and a version, then the
record. Types 0 (a segment's metadata) and 1 (its update) begin alike, with compact strings and tagged fields:

    topic name, topic id, partition, tagged fields; segment id, tagged fields; and more, which isn't read

Rules: a value of another type or form says nothing; no length in it is believed.
"""

from __future__ import annotations

__all__ = ["METADATA_TOPIC", "RemoteSegment", "remote_segment"]

from base64 import urlsafe_b64encode
from typing import NamedTuple

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
        taken = self._data[self._at : self._at + size]
        if len(taken) != size:
            raise _Short
        self._at += size
        return taken

    def uvarint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            (byte,) = self.take(1)
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise _Short

    def uuid(self) -> str:
        return urlsafe_b64encode(self.take(UUID_SIZE)).decode().rstrip("=")

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
