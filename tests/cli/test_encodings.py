"""Whatever the encoding of a terminal or pipe, and whatever names a capture holds, no command fails to write,
and nothing from outside reaches the terminal as a control character."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coordwire.capture.text import shown
from coordwire.frames import encode_request, encode_response
from coordwire.layout import Message
from coordwire.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    ProduceRequest,
    ProduceResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordwire.messages.consumer_protocol import ConsumerProtocolAssignmentTopicPartition
from coordwire.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponseMember
from coordwire.messages.leave_group import MemberIdentity, MemberResponse
from coordwire.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from coordwire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from coordwire.messages.sync_group import SyncGroupRequestAssignment
from coordwire.records import Record, encode_batch

from ..capture import build

EVIL = "\x1b]0;pwn\x07\x1b[31m\r\n\u202e\u2066\x9b31m<script>alert(1)</script>\"'>&\u2028\0\x7f\ue000"
BAD = {
    chr(code)
    for code in (*range(10), *range(11, 32), *range(127, 160), 0x2028, 0x2029, *range(0x202A, 0x202F), 0x2066)
}
"""Control characters but for the end of a line, and what changes the direction of text."""

LOGS = Path(__file__).parent.parent / "data" / "logs"


def exchanges() -> list[tuple[Message, int, Message]]:
    """A member's life; every name in it is hostile."""
    subscription = b"\0\1" + ConsumerProtocolSubscription(topics=[EVIL], user_data=b"\x1b[31m").encode(1)
    owned = ConsumerProtocolAssignmentTopicPartition(topic=EVIL, partitions=[0, 1])
    assignment = b"\0\1" + ConsumerProtocolAssignment(assigned_partitions=[owned]).encode(1)
    member = f"{EVIL}m"
    records = encode_batch([Record(key=EVIL.encode(), value=EVIL.encode(), headers=((EVIL, EVIL.encode()),))])
    return [
        (
            FindCoordinatorRequest(key=EVIL), 1,
            FindCoordinatorResponse(error_message=EVIL, node_id=1, host=EVIL, port=9092),
        ),
        (
            JoinGroupRequest(
                group_id=EVIL, session_timeout_ms=1, group_instance_id=EVIL, protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name=EVIL, metadata=subscription)], reason=EVIL,
            ), 9,
            JoinGroupResponse(
                generation_id=1, protocol_type="consumer", protocol_name=EVIL, leader=member,
                member_id=member,
                members=[
                    JoinGroupResponseMember(
                        member_id=member, group_instance_id=EVIL, metadata=subscription
                    )
                ],
            ),
        ),
        (
            SyncGroupRequest(
                group_id=EVIL, generation_id=1, member_id=member, group_instance_id=EVIL,
                protocol_type="consumer", protocol_name=EVIL,
                assignments=[SyncGroupRequestAssignment(member_id=member, assignment=assignment)],
            ), 5,
            SyncGroupResponse(protocol_type="consumer", protocol_name=EVIL, assignment=assignment),
        ),
        (
            OffsetCommitRequest(
                group_id=EVIL, generation_id_or_member_epoch=1, member_id=member,
                topics=[
                    OffsetCommitRequestTopic(
                        name=EVIL,
                        partitions=[
                            OffsetCommitRequestPartition(committed_offset=5, committed_metadata=EVIL)
                        ],
                    )
                ],
            ), 8,
            OffsetCommitResponse(
                topics=[
                    OffsetCommitResponseTopic(
                        name=EVIL, partitions=[OffsetCommitResponsePartition(error_code=27)]
                    )
                ]
            ),
        ),
        (
            ProduceRequest(
                transactional_id=EVIL, acks=1,
                topic_data=[
                    TopicProduceData(name=EVIL, partition_data=[PartitionProduceData(records=records)])
                ],
            ), 9,
            ProduceResponse(
                responses=[
                    TopicProduceResponse(
                        name=EVIL,
                        partition_responses=[PartitionProduceResponse(error_code=5, error_message=EVIL)],
                    )
                ]
            ),
        ),
        (
            LeaveGroupRequest(
                group_id=EVIL, members=[MemberIdentity(member_id=member, reason=EVIL)]
            ), 5,
            LeaveGroupResponse(members=[MemberResponse(member_id=member, error_code=25)]),
        ),
    ]  # fmt: skip


def frames() -> list[tuple[bytes, bytes]]:
    return [
        (
            encode_request(asked, version=version, correlation_id=number, client_id=EVIL),
            encode_response(told, version=version, correlation_id=number),
        )
        for number, (asked, version, told) in enumerate(exchanges(), 70_000)
    ]


def capture() -> bytes:
    """The exchanges in one TCP connection."""
    return CAPTURE(frames())


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "evil\x1b[31m\u202e<b>.pcap"
    path.write_bytes(capture())
    return path


def command(*arguments: str, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """`coordwire …` in a process of its own, with these variables."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("LC_ALL", "LANG", "LC_CTYPE", "PYTHONUTF8", "PYTHONIOENCODING")
    }
    return subprocess.run(
        [sys.executable, "-m", "coordwire.cli", *(one.replace("\0", "") for one in arguments)],
        input=stdin,
        capture_output=True,
        env={**inherited, **environment},
        timeout=120,
        check=False,
    )
