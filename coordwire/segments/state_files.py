"""The small files beside a partition's segments: its producers, its leaders' epochs, its topic's id.

    NNN.snapshot             int16 version, CRC-32C, the producers as of offset NNN (KIP-98)
    leader-epoch-checkpoint  version, count, and a line an epoch with its first offset (KIP-101)
    partition.metadata       "version: 0", "topic_id: …" (KIP-516)

Rule: they are read as Kafka reads them, and refused where Kafka refuses them, with the byte and the reason.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple
from uuid import UUID

from coordwire.errors import DecodeError, Malformed, Truncated, UnsupportedVersion
from coordwire.messages.producer_snapshot import ProducerEntry, ProducerSnapshot
from coordwire.records.backend import crc32c

EPOCHS, METADATA = "leader-epoch-checkpoint", "partition.metadata"
"""Names of the files that a partition has one of."""

_VERSION = Struct(">h")
_HEAD = Struct(">hI")
_SNAPSHOT_VERSION = ProducerSnapshot.versions[-1]
_EPOCH = re.compile(rb"([+-]?\d{1,10})\s+([+-]?\d{1,19})")
_INT32, _INT64 = 1 << 31, 1 << 63
_COLON = re.compile(rb":\s*")
_FROM_URL = bytes.maketrans(b"-_", b"+/")


class EpochEntry(NamedTuple):
    """A leader's epoch and the offset of the first record that it appended."""

    epoch: int
    start_offset: int


class PartitionMetadata(NamedTuple):
    """The content of `partition.metadata`: the file's version, and the topic's id."""

    version: int
    topic_id: UUID


def read_snapshot(data: bytes) -> ProducerSnapshot:
    """The producers in a `.snapshot` file.

    Raises `DecodeError`: `Truncated`, `UnsupportedVersion`, or `Malformed` for a wrong checksum too.
    """
    if len(data) < _HEAD.size:
        raise Truncated(f"a producer snapshot needs at least {_HEAD.size} bytes, got {len(data)}", len(data))
    version, stated = _HEAD.unpack_from(data)
    if version != _SNAPSHOT_VERSION:
        raise UnsupportedVersion(f"unknown producer snapshot version {version}", 0, "version")
    computed = crc32c(data[_HEAD.size :])
    if computed != stated:
        reason = f"the CRC-32C is {computed:#010x}, the file says {stated:#010x}"
        raise Malformed(reason, _VERSION.size, "crc")
    try:
        return ProducerSnapshot.decode(data[_VERSION.size :], version=version)
    except DecodeError as error:
        error.position += _VERSION.size
        raise


def write_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """The bytes of a `.snapshot` file with these producers. Raises `EncodeError` beyond the fields' types."""
    snapshot = ProducerSnapshot(producer_entries=list(entries))
    covered = snapshot.encode(version=_SNAPSHOT_VERSION)[_HEAD.size - _VERSION.size :]
    return _HEAD.pack(_SNAPSHOT_VERSION, crc32c(covered)) + covered


def read_leader_epochs(data: bytes) -> list[EpochEntry]:
    """The entries of a `leader-epoch-checkpoint` file. Raises `Malformed`."""
    lines = _lines(data)
    if len(lines) < 2:  # it is being written for the first time
        return []
    if lines[0][1] != b"0":
        raise Malformed(f"unknown checkpoint version {lines[0][1][:20]!r}", 0, "version")
    entries: list[EpochEntry] = []
    for at, line in lines[2:]:
        path = f"entries[{len(entries)}]"
        match = _EPOCH.fullmatch(line)
        if match is None:
            raise Malformed(f"expected an epoch and its offset, got {line[:40]!r}", at, path)
        entry = EpochEntry(int(match[1]), int(match[2]))
        if not -_INT32 <= entry.epoch < _INT32 or not -_INT64 <= entry.start_offset < _INT64:
            raise Malformed(f"{line[:40]!r} is beyond its type", at, path)
        entries.append(entry)
    at, line = lines[1]
    if line != b"%d" % len(entries):
        raise Malformed(f"{line[:20]!r} entries claimed, {len(entries)} found", at, "entries")
    return entries


def read_metadata(data: bytes) -> PartitionMetadata:
    """The content of a `partition.metadata` file. Raises `Malformed`."""
    properties = {}
    for at, line in _lines(data):
        name, *value = _COLON.split(line, maxsplit=1)
        if not value or name not in (b"version", b"topic_id"):
            raise Malformed(f"expected a version or a topic id, got {line[:40]!r}", at)
        properties[name] = at, value[0]
    for name in (b"version", b"topic_id"):
        if name not in properties:
            raise Malformed("missing", len(data), name.decode())
    at, version = properties[b"version"]
    if version != b"0":
        raise Malformed(f"unknown version {version[:20]!r}", at, "version")
    at, topic_id = properties[b"topic_id"]
    try:
        raw = a2b_base64(topic_id.translate(_FROM_URL) + b"==", strict_mode=True)
    except ValueError:
        raw = b""
    if len(raw) != 16:
        raise Malformed(f"expected a topic id, got {topic_id[:40]!r}", at, "topic_id")
    return PartitionMetadata(0, UUID(bytes=raw))


def _lines(data: bytes) -> list[tuple[int, bytes]]:
    """The lines, each with its place."""
    lines = []
    at = 0
    for line in data.splitlines(keepends=True):
        lines.append((at, line.strip()))
        at += len(line)
    return lines
