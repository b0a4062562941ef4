"""Opening the bytes that consumers put into groups' messages."""

from __future__ import annotations

import struct

import coordwire
from coordwire.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    DescribeGroupsResponse,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordwire.messages.consumer_protocol import ConsumerProtocolAssignmentTopicPartition
from coordwire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from coordwire.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponseMember
from coordwire.messages.sync_group import SyncGroupRequestAssignment

SUBSCRIPTION = ConsumerProtocolSubscription(topics=["t"], user_data=b"\1\2", generation_id=4, rack_id="r")
ASSIGNMENT = ConsumerProtocolAssignment(
    assigned_partitions=[ConsumerProtocolAssignmentTopicPartition(topic="t", partitions=[0, 1])],
    user_data=None,
)


def versioned(message: coordwire.layout.Message, version: int) -> bytes:
    return struct.pack(">h", version) + message.encode(min(version, 3))


def join(metadata: bytes, kind: str = "consumer") -> JoinGroupRequest:
    return JoinGroupRequest(
        protocol_type=kind, protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)]
    )


def test_a_subscription() -> None:
    found = coordwire.open_embedded(join(versioned(SUBSCRIPTION, 3)))
    assert found == {"protocols[0].metadata": (SUBSCRIPTION, 3)}
    assert found["protocols[0].metadata"].message.user_data == b"\1\2"  # type: ignore[attr-defined]


def test_a_newer_version_is_read_as_our_newest() -> None:
    data = versioned(SUBSCRIPTION, 3)[2:] + b"something new"
    found = coordwire.open_embedded(join(struct.pack(">h", 9) + data))
    assert found == {"protocols[0].metadata": (SUBSCRIPTION, 9)}


def test_what_is_not_a_consumers_stays_bytes() -> None:
    assert coordwire.open_embedded(join(versioned(SUBSCRIPTION, 3), "connect")) == {}
    for data in (
        b"",
        b"\0",
        b"\0\0",
        b"\xff\xff\0\0\0\0",
        versioned(SUBSCRIPTION, 3) + b"x",
        versioned(SUBSCRIPTION, 1)[:-1],
    ):
        assert coordwire.open_embedded(join(data)) == {}
    assert coordwire.open_embedded(HeartbeatRequest(group_id="g")) == {}


def test_answers_and_assignments() -> None:
    member = JoinGroupResponseMember(member_id="m", metadata=versioned(SUBSCRIPTION, 2 + 1))
    assert list(coordwire.open_embedded(JoinGroupResponse(members=[member]))) == ["members[0].metadata"]
    given = SyncGroupRequestAssignment(member_id="m", assignment=versioned(ASSIGNMENT, 0))
    assert coordwire.open_embedded(SyncGroupRequest(assignments=[given])) == {
        "assignments[0].assignment": (ASSIGNMENT, 0)
    }
    assert coordwire.open_embedded(SyncGroupRequest(assignments=[given], protocol_type="connect")) == {}
    assert coordwire.open_embedded(SyncGroupResponse(assignment=versioned(ASSIGNMENT, 1))) == {
        "assignment": (ASSIGNMENT, 1)
    }


def test_without_a_protocol_type_the_bytes_must_be_whole() -> None:
    newer = struct.pack(">h", 9) + ASSIGNMENT.encode(3)
    assert coordwire.open_embedded(SyncGroupResponse(assignment=newer)) == {}
    assert len(coordwire.open_embedded(SyncGroupResponse(assignment=newer, protocol_type="consumer"))) == 1


def test_each_described_group_has_its_own_type() -> None:
    member = DescribedGroupMember(
        member_metadata=versioned(SUBSCRIPTION, 3), member_assignment=versioned(ASSIGNMENT, 3)
    )
    groups = [DescribedGroup(protocol_type=kind, members=[member]) for kind in ("connect", "consumer")]
    found = coordwire.open_embedded(DescribeGroupsResponse(groups=groups))
    assert list(found) == ["groups[1].members[0].member_metadata", "groups[1].members[0].member_assignment"]
