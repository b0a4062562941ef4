"""Bodies at Kafka's limits of counts, and one beyond: elements of an array, tagged fields of a struct."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from coordwire.codec import Message
from coordwire.messages import (
    DeleteTopicsRequest,
    DescribeGroupsRequest,
    FetchRequest,
    HeartbeatRequest,
    LeaveGroupRequest,
    MetadataResponse,
)
from coordwire.messages.delete_topics import DeleteTopicState
from coordwire.messages.leave_group import MemberIdentity
from coordwire.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

ELEMENTS = 1_000_000
TAGS = 10_000


class Count(NamedTuple):
    """A body that Kafka reads, and one with one more, which it refuses."""

    message: type[Message]
    version: int
    valid: bytes
    beyond: bytes


def _count(at_most: int, version: int, make: object) -> Count:
    valid, beyond = (make(count) for count in (at_most, at_most + 1))  # type: ignore[operator]
    return Count(type(valid), version, valid.encode(version=version), beyond.encode(version=version))


def _replicas(count: int) -> MetadataResponse:
    partition = MetadataResponsePartition(isr_nodes=[1] * count)
    return MetadataResponse(topics=[MetadataResponseTopic(name="t", partitions=[partition])])


def arrays() -> dict[str, Count]:
    """Of each kind of element."""
    return {
        "numbers": _count(ELEMENTS, 8, _replicas),
        "compact numbers": _count(ELEMENTS, 12, _replicas),
        "strings": _count(ELEMENTS, 4, lambda count: DescribeGroupsRequest(groups=[""] * count)),
        "compact strings": _count(ELEMENTS, 5, lambda count: DescribeGroupsRequest(groups=[""] * count)),
        "structs": _count(
            ELEMENTS, 3, lambda count: LeaveGroupRequest(group_id="g", members=[MemberIdentity()] * count)
        ),
        "uuids": _count(
            ELEMENTS,
            6,
            lambda count: DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=UUID(int=7))] * count),
        ),
    }


def tags() -> dict[str, Count]:
    """After a struct that has none of its own in the version, and after one that has."""
    return {
        "unknown tags": _count(
            TAGS, 4, lambda count: HeartbeatRequest(tags=dict.fromkeys(range(count), b""))
        ),
        "known and unknown tags": _count(
            TAGS,
            12,
            lambda count: FetchRequest(cluster_id="c", tags=dict.fromkeys(range(100, 99 + count), b"")),
        ),
    }
