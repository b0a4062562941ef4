"""Opening the bytes that groups' members put into messages: Kafka's own, and what must stay bytes."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import coordwire
from coordwire.codec import Message
from coordwire.messages import (
    AssignmentInfo,
    ConnectProtocolAssignment,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    CooperativeStickyAssignorUserData,
    DefaultPrincipalData,
    DescribeGroupsResponse,
    EnvelopeRequest,
    GroupMetadataValue,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    StickyAssignorUserData,
    SubscriptionInfoData,
    SyncGroupRequest,
    SyncGroupResponse,
    find_message,
)
from coordwire.messages.classic_group_records import MemberMetadata
from coordwire.messages.consumer_protocol import ConsumerProtocolAssignmentTopicPartition
from coordwire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from coordwire.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponseMember
from coordwire.messages.sync_group import SyncGroupRequestAssignment

SUBSCRIPTION = ConsumerProtocolSubscription(topics=["t"], user_data=b"\1\2", generation_id=4, rack_id="r")
ASSIGNMENT = ConsumerProtocolAssignment(
    assigned_partitions=[ConsumerProtocolAssignmentTopicPartition(topic="t", partitions=[0, 1])],
    user_data=None,
)


def versioned(message: coordwire.codec.Message, version: int) -> bytes:
    return struct.pack(">h", version) + message.encode(version=min(version, 3))


def join(metadata: bytes, kind: str = "consumer") -> JoinGroupRequest:
    return JoinGroupRequest(
        protocol_type=kind, protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)]
    )


def test_a_subscription() -> None:
    embedded = coordwire.open_embedded(join(versioned(SUBSCRIPTION, 3)))
    assert embedded == {"protocols[0].metadata": (SUBSCRIPTION, 3)}
    assert embedded["protocols[0].metadata"].message.user_data == b"\1\2"  # type: ignore[attr-defined]


def test_a_newer_version_is_read_as_our_newest() -> None:
    data = versioned(SUBSCRIPTION, 3)[2:] + b"something new"
    embedded = coordwire.open_embedded(join(struct.pack(">h", 9) + data))
    assert embedded == {"protocols[0].metadata": (SUBSCRIPTION, 9)}


def test_what_is_not_a_consumers_stays_bytes() -> None:
    for kind in ("connect", "somebody-elses"):
        assert coordwire.open_embedded(join(versioned(SUBSCRIPTION, 3), kind)) == {}
    for data in (b"", b"\0", b"\0\0", b"\xff\xff\0\0\0\0", b"\0\1\xff\xff\xff\xf0"):
        assert coordwire.open_embedded(join(data)) == {}
    assert coordwire.open_embedded(HeartbeatRequest(group_id="g")) == {}


KAFKA_GO = bytes.fromhex("0001 00000001 0001 6f ffffffff")
"""kafka-go 0.4.51's subscription to topic o: version 1 without ownedPartitions."""


@pytest.mark.parametrize(
    ("data", "topics", "position", "path"),
    [
        (KAFKA_GO, ["o"], 13, "owned_partitions"),
        (versioned(SUBSCRIPTION, 3) + b"x", SUBSCRIPTION.topics, len(versioned(SUBSCRIPTION, 3)), ""),
        (KAFKA_GO[:-2], ["o"], 9, "user_data"),
    ],
)
def test_a_subscription_that_is_not_of_its_version_is_read_as_far_as_it_goes(
    data: bytes, topics: list[str], position: int, path: str
) -> None:
    (result,) = coordwire.open_embedded(join(data)).values()
    assert isinstance(result.message, ConsumerProtocolSubscription)
    assert result.message.topics == topics
    assert result.version == struct.unpack_from(">h", data)[0]
    assert result.deviation is not None
    assert (result.deviation.position, result.deviation.path) == (position, path)
    copied = pickle.loads(pickle.dumps(result))
    assert (copied, copied.deviation) == (result, result.deviation)
    assert (
        coordwire.open_embedded(join(versioned(SUBSCRIPTION, 3)))["protocols[0].metadata"].deviation is None
    )


def test_answers_and_assignments() -> None:
    member = JoinGroupResponseMember(member_id="m", metadata=versioned(SUBSCRIPTION, 2 + 1))
    assert list(coordwire.open_embedded(JoinGroupResponse(members=[member]))) == ["members[0].metadata"]
    assignment = SyncGroupRequestAssignment(member_id="m", assignment=versioned(ASSIGNMENT, 0))
    assert coordwire.open_embedded(SyncGroupRequest(assignments=[assignment])) == {
        "assignments[0].assignment": (ASSIGNMENT, 0)
    }
    assert coordwire.open_embedded(SyncGroupRequest(assignments=[assignment], protocol_type="connect")) == {}
    assert coordwire.open_embedded(SyncGroupResponse(assignment=versioned(ASSIGNMENT, 1))) == {
        "assignment": (ASSIGNMENT, 1)
    }


def test_without_a_protocol_type_the_bytes_must_be_whole() -> None:
    newer = struct.pack(">h", 9) + ASSIGNMENT.encode(version=3)
    assert coordwire.open_embedded(SyncGroupResponse(assignment=newer)) == {}
    assert len(coordwire.open_embedded(SyncGroupResponse(assignment=newer, protocol_type="consumer"))) == 1


def test_each_described_group_has_its_own_type() -> None:
    member = DescribedGroupMember(
        member_metadata=versioned(SUBSCRIPTION, 3), member_assignment=versioned(ASSIGNMENT, 3)
    )
    groups = [DescribedGroup(protocol_type=kind, members=[member]) for kind in ("connect", "consumer")]
    embedded = coordwire.open_embedded(DescribeGroupsResponse(groups=groups))
    assert list(embedded) == [
        "groups[1].members[0].member_metadata",
        "groups[1].members[0].member_assignment",
    ]


# --- Kafka's own bytes ---


class Sample(NamedTuple):
    name: str
    version: int
    data: bytes


def samples() -> list[Sample]:
    text = (Path(__file__).parent / "data/inside/samples.tsv").read_text()
    rows = (line.split("\t") for line in text.splitlines())
    return [Sample(name, int(version), bytes.fromhex(data)) for name, version, data in rows]


MESSAGES = [sample for sample in samples() if not sample.name.startswith(("Scram", "OAuth"))]
PROTOCOLS = {
    "StickyAssignorUserData": "sticky",
    "CooperativeStickyAssignorUserData": "cooperative-sticky",
    "SubscriptionInfoData": "stream",
    "AssignmentInfo": "stream",
}


def outer(sample: Sample) -> tuple[Message, str]:
    """A message that holds a sample, and its path."""
    name, _, data = sample
    protocol = PROTOCOLS.get(name, "default")
    match name:
        case "DefaultPrincipalData":
            return EnvelopeRequest(request_principal=data), "request_principal"
        case "ConnectProtocolSubscription":
            return join(data, "connect"), "protocols[0].metadata"
        case "ConnectProtocolAssignment":
            return SyncGroupResponse(assignment=data, protocol_type="connect"), "assignment"
        case "AssignmentInfo":
            given = versioned(ConsumerProtocolAssignment(user_data=data), 0)
            return SyncGroupResponse(assignment=given, protocol_type="consumer", protocol_name=protocol), (
                "assignment.user_data"
            )
    metadata = versioned(ConsumerProtocolSubscription(user_data=data), 3)
    offer = JoinGroupRequestProtocol(name=protocol, metadata=metadata)
    return JoinGroupRequest(protocol_type="consumer", protocols=[offer]), "protocols[0].metadata.user_data"


@pytest.mark.parametrize("sample", MESSAGES, ids=lambda sample: f"{sample.name}-v{sample.version}")
def test_kafkas_own_bytes_open(sample: Sample) -> None:
    message, path = outer(sample)
    content, version = coordwire.open_embedded(message)[path]
    assert (type(content).__name__, version) == (sample.name, sample.version)
    data = content.encode(version=version)
    assert sample.data.endswith(data)
    prefix = sample.data[: -len(data)]
    assert prefix == (struct.pack(">h", version) if "P" in sample.name else b"")


def test_every_version_has_a_sample() -> None:
    """But sticky's v0, which no Kafka since 2.3 writes."""
    seen = {(sample.name, sample.version) for sample in MESSAGES}
    expected = {(name, version) for name, _, _ in MESSAGES for version in find_message(name).versions}
    assert expected - seen == {("StickyAssignorUserData", 0)}


def test_what_they_say() -> None:
    said = {(sample.name, sample.version): outer(sample) for sample in MESSAGES}
    message, path = said["ConnectProtocolSubscription", 1]
    assert coordwire.open_embedded(message)[path].message.url == "http://w1:8083/"  # type: ignore[attr-defined]
    tasks = next(s for s in MESSAGES if s.name == "ConnectProtocolSubscription" and len(s.data) > 60)
    held = coordwire.open_embedded(join(tasks.data, "connect"))["protocols[0].metadata.allocation"]
    assert isinstance(held.message, ConnectProtocolAssignment)
    assert held.message.assignment is not None
    assert [(one.connector, one.tasks) for one in held.message.assignment] == [("sink", [-1, 0, 3])]
    message, path = said["AssignmentInfo", 11]
    info = coordwire.open_embedded(message)[path].message
    assert isinstance(info, AssignmentInfo)
    assert info.partitions_by_host[0].partitions[0].topic_index == info.topics[0].index
    assert "".join(map(chr, info.active_tasks[0].named_topology)) == "north"
    message, path = said["SubscriptionInfoData", 11]
    subscribed = coordwire.open_embedded(message)[path].message
    assert isinstance(subscribed, SubscriptionInfoData)
    assert (subscribed.user_end_point, subscribed.client_tags[0].value) == (b"app-1:8080", b"r1")


# --- user data ---


def user_data(data: bytes, protocol: str) -> dict[str, coordwire.embedded_name.Embedded]:
    """What is found in a subscription's user data."""
    metadata = versioned(ConsumerProtocolSubscription(user_data=data), 3)
    offer = JoinGroupRequestProtocol(name=protocol, metadata=metadata)
    embedded = coordwire.open_embedded(JoinGroupRequest(protocol_type="consumer", protocols=[offer]))
    return {path: inside for path, inside in embedded.items() if path.endswith("user_data")}


def test_sticky_before_it_had_a_generation() -> None:
    message = StickyAssignorUserData.decode(bytes.fromhex("00000001 0001 74 00000001 00000005"), version=0)
    (result,) = user_data(message.encode(version=0), "sticky").values()
    assert result == (message, 0)
    (result,) = user_data(message.encode(version=1), "sticky").values()
    assert result == (message, 1)


def test_another_assignors_user_data_stays_bytes() -> None:
    data = CooperativeStickyAssignorUserData(generation=4).encode(version=0)
    assert len(user_data(data, "cooperative-sticky")) == 1
    assert user_data(data, "range") == {}
    assert user_data(data, "mine") == {}


def test_streams_without_a_protocols_name() -> None:
    """Up to v4 SyncGroup names none: bytes that say their version and are whole are enough."""
    sample = next(s for s in MESSAGES if s.name == "AssignmentInfo" and s.version == 11)
    assignment = SyncGroupRequestAssignment(
        assignment=versioned(ConsumerProtocolAssignment(user_data=sample.data), 0)
    )
    embedded = coordwire.open_embedded(SyncGroupRequest(assignments=[assignment]))
    assert list(embedded) == ["assignments[0].assignment", "assignments[0].assignment.user_data"]
    for data in (sample.data + b"x", sample.data[:-1], struct.pack(">i", 12) + sample.data[4:], b"\0\0\0"):
        assignment.assignment = versioned(ConsumerProtocolAssignment(user_data=data), 0)
        embedded = coordwire.open_embedded(SyncGroupRequest(assignments=[assignment]))
        assert list(embedded) == ["assignments[0].assignment"]


def test_sticky_without_a_protocols_name_stays_bytes() -> None:
    sample = next(s for s in MESSAGES if s.name == "CooperativeStickyAssignorUserData")
    member = JoinGroupResponseMember(
        metadata=versioned(ConsumerProtocolSubscription(user_data=sample.data), 1)
    )
    assert list(coordwire.open_embedded(JoinGroupResponse(members=[member]))) == ["members[0].metadata"]
    named = JoinGroupResponse(members=[member], protocol_name="cooperative-sticky")
    assert list(coordwire.open_embedded(named)) == ["members[0].metadata", "members[0].metadata.user_data"]


def test_groups_in_the_log() -> None:
    sample = next(s for s in MESSAGES if s.name == "SubscriptionInfoData")
    member = MemberMetadata(
        subscription=versioned(ConsumerProtocolSubscription(user_data=sample.data), 0),
        assignment=versioned(ASSIGNMENT, 0),
    )
    group = GroupMetadataValue(protocol_type="consumer", protocol="stream", members=[member])
    assert {path: type(found.message) for path, found in coordwire.open_embedded(group).items()} == {
        "members[0].subscription": ConsumerProtocolSubscription,
        "members[0].subscription.user_data": SubscriptionInfoData,
        "members[0].assignment": ConsumerProtocolAssignment,
    }


def test_a_principal() -> None:
    principal = DefaultPrincipalData(type="User", name="ann")
    embedded = coordwire.open_embedded(
        EnvelopeRequest(request_principal=b"\0\0" + principal.encode(version=0))
    )
    assert embedded == {"request_principal": (principal, 0)}
    assert coordwire.open_embedded(EnvelopeRequest(request_principal=b"\0\0junk")) == {}
    assert coordwire.open_embedded(EnvelopeRequest(request_principal=None)) == {}


@given(st.binary(max_size=60), st.sampled_from(["consumer", "connect", "", "x"]), st.sampled_from(
    [*PROTOCOLS.values(), "range", ""]
))  # fmt: skip
def test_no_bytes_make_it_raise(data: bytes, kind: str, protocol: str) -> None:
    metadata = versioned(ConsumerProtocolSubscription(user_data=data), 1)
    for content in (data, metadata):
        offer = JoinGroupRequestProtocol(name=protocol, metadata=content)
        embedded = coordwire.open_embedded(JoinGroupRequest(protocol_type=kind, protocols=[offer]))
        assert kind != "x" or not embedded
