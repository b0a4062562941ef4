"""What the names of segments in remote storage say: topic, topic id, partition, offset, segment id.

Two layouts are known, both of which name files OFFSET-SEGMENTID, ids as Kafka prints them (22 characters):

    TOPIC-TOPICID/PARTITION/OFFSET-SEGMENTID.log      Aiven's plugin for object stores
    TOPIC-PARTITION-TOPICID/OFFSET-SEGMENTID.log      Apache's LocalTieredStorage; once SEGMENTID.log

Rules: an id is the base64 of 16 bytes, so that 2 bits of its last character are always 0; a folder of another
form gives no topic, even where the file's name is known: the log of the segments' metadata may know it.
"""

from __future__ import annotations

__all__ = ["RemoteName", "RemotePlace", "remote_name", "remote_place"]

import re
from typing import Literal, NamedTuple

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
    """What the name of a file in remote storage says; None if it is of another form."""
    found = _FILE.fullmatch(name)
    if found is None:
        return None
    offset = None if found["offset"] is None else int(found["offset"])
    if offset is not None and offset >= _INT64:
        return None
    return RemoteName("log" if found["kind"] == "log" else "index", found["id"], offset)


def remote_place(folder: str) -> RemotePlace | None:
    """What the path of a segment's folder says; None if it is of another form."""
    found = _STORE.fullmatch(folder) or _LOCAL.fullmatch(folder)
    by_id = found is None
    found = found or _BY_ID.fullmatch(folder)
    if found is None or int(found["partition"]) >= _INT32:
        return None
    return RemotePlace(None if by_id else found["topic"], int(found["partition"]), found["id"])
