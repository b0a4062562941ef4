"""The five messages of the benchmarks: what members, committers and clients of a real cluster exchange.

Rules: values are constant, so that two runs encode the same bytes; the bytes are bodies, without any header.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from coordwire.codec import Message
from coordwire.messages.heartbeat import HeartbeatRequest
from coordwire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from coordwire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from coordwire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

MEMBER = "consumer-1-0f7a5a9a-6f2a-4b7e-9d57-2a6c7d7d9a11"


@dataclass(frozen=True)
class Case:
    """One message in one version, and its bytes."""

    label: str
    message: Message
    version: int
    wire: bytes


def _heartbeat() -> Message:
    return HeartbeatRequest(group_id="payments", generation_id=3, member_id=MEMBER)


def _join_request() -> Message:
    return JoinGroupRequest(
        group_id="payments",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        member_id=MEMBER,
        protocol_type="consumer",
        protocols=[
            JoinGroupRequestProtocol(name="range", metadata=b"x" * 60),
            JoinGroupRequestProtocol(name="cooperative-sticky", metadata=b"x" * 60),
        ],
        reason="joining",
    )


def _join_response() -> Message:
    members = [f"consumer-{number}-0f7a5a9a-6f2a-4b7e-9d57-2a6c7d7d9a11" for number in range(50)]
    return JoinGroupResponse(
        generation_id=4,
        protocol_type="consumer",
        protocol_name="range",
        leader=members[0],
        member_id=members[0],
        members=[JoinGroupResponseMember(member_id=member, metadata=b"y" * 60) for member in members],
    )


def _offset_commit() -> Message:
    return OffsetCommitRequest(
        group_id="payments",
        generation_id_or_member_epoch=3,
        member_id=MEMBER,
        topics=[
            OffsetCommitRequestTopic(
                name=f"orders-{topic}",
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=12_345_678 + partition,
                        committed_leader_epoch=5,
                        committed_metadata="",
                    )
                    for partition in range(20)
                ],
            )
            for topic in range(10)
        ],
    )


def _metadata(topics: int = 50, partitions: int = 12) -> Message:
    return MetadataResponse(
        cluster_id="kV7uUpF3Q0eYvYcJr1g2wA",
        controller_id=1,
        brokers=[
            MetadataResponseBroker(node_id=node, host=f"broker-{node}.example.com", port=9092, rack="r1")
            for node in range(20)
        ],
        topics=[
            MetadataResponseTopic(
                name=f"orders-{topic}",
                topic_id=UUID(int=0x5EED_0000_0000_4000_8000_0000_0000_0000 + topic),
                partitions=[
                    MetadataResponsePartition(
                        partition_index=partition,
                        leader_id=partition % 20,
                        leader_epoch=7,
                        replica_nodes=[partition % 20, (partition + 1) % 20, (partition + 2) % 20],
                        isr_nodes=[partition % 20, (partition + 1) % 20, (partition + 2) % 20],
                    )
                    for partition in range(partitions)
                ],
            )
            for topic in range(topics)
        ],
    )


def cases() -> list[Case]:
    """All of them, from the smallest to the largest."""
    made = [
        ("Heartbeat request v4", _heartbeat(), 4),
        ("JoinGroup request v9", _join_request(), 9),
        ("JoinGroup response v9, 50 members", _join_response(), 9),
        ("OffsetCommit request v8, 10 topics × 20", _offset_commit(), 8),
        ("Metadata response v12, 20 brokers, 50 topics × 12", _metadata(), 12),
    ]
    return [
        Case(label, message, version, message.encode(version=version)) for label, message, version in made
    ]


def commits(count: int) -> list[Case]:
    """So many OffsetCommit requests of ten topics of twenty; no name, id or offset is in them twice."""
    made = []
    for number in range(count):
        topics = [
            OffsetCommitRequestTopic(
                name=f"{number:06}-orders-{topic}",
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=12_345_678 + (number * 10 + topic) * 20 + partition,
                        committed_metadata=f"{number}/{topic}/{partition}",
                    )
                    for partition in range(20)
                ],
            )
            for topic in range(10)
        ]
        message = OffsetCommitRequest(
            group_id=f"payments-{number}", member_id=f"{number:06}-{MEMBER}", topics=topics
        )
        made.append(
            Case("OffsetCommit request v8, nothing comes twice", message, 8, message.encode(version=8))
        )
    return made


def metadata(size: int) -> Case:
    """A Metadata response of so many partitions, ten a topic."""
    message = _metadata(topics=size // 10, partitions=10)
    return Case(f"Metadata response v12, {size:,} partitions", message, 12, message.encode(version=12))
