"""What untrusted bytes may cost: elements and memory, charged before anything is allocated."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from coordwire import LimitExceeded, Truncated, limits
from coordwire.codec import Message
from coordwire.codec.interpreter.decoder import MOST_DEVIATIONS
from coordwire.codec.primitives import uvarint
from coordwire.errors import Deviation
from coordwire.limits import current
from coordwire.messages import (
    DeleteTopicsRequest,
    DescribeGroupsRequest,
    LeaveGroupRequest,
    MetadataRequest,
    MetadataResponse,
    ShareGroupHeartbeatResponse,
)
from coordwire.messages.delete_topics import DeleteTopicState
from coordwire.messages.leave_group import MemberIdentity
from coordwire.messages.metadata import MetadataRequestTopic, MetadataResponseTopic

MEBI = 1 << 20


def peak(decode: Callable[[], object]) -> int:
    """Bytes that Python allocates meanwhile, at most."""
    tracemalloc = pytest.importorskip("tracemalloc", reason="PyPy does not trace memory")
    tracemalloc.start()
    try:
        decode()
        return int(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


def refused(cls: type[Message], wire: bytes, version: int) -> LimitExceeded:
    with pytest.raises(LimitExceeded) as error_info:
        cls.decode(wire, version=version)
    return error_info.value


def members(count: int) -> bytes:
    """LeaveGroup v4 with tiny members, three bytes each."""
    return b"\x02g" + uvarint(count + 1) + b"\x01\x00\x00" * count + b"\x00"


def test_elements_are_counted() -> None:
    wire = LeaveGroupRequest(members=[MemberIdentity(tags={9: b""})] * 6).encode(version=4)
    with limits(elements=12):
        LeaveGroupRequest.decode(wire, version=4)
    with limits(elements=11):
        error = refused(LeaveGroupRequest, wire, 4)
    assert (error.path, error.position > 0) == ("members[5]", True)
    assert "elements" in error.reason
    with limits(elements=5):
        error = refused(LeaveGroupRequest, wire, 4)
    assert (error.path, error.position) == ("members", 1)


@pytest.mark.parametrize(
    ("count", "elements", "reason"),
    [(4 * MEBI // 3, 10**7, "Kafka's limit"), (10**6, 10**6 - 1, "elements"), (10**6, 10**6, "memory")],
)
def test_a_hostile_frame_of_megabytes_stays_within_its_budget(count: int, elements: int, reason: str) -> None:
    wire = members(count)
    with limits(elements=elements):
        assert reason in refused(LeaveGroupRequest, wire, 4).reason
        assert peak(lambda: refused(LeaveGroupRequest, wire, 4)) < MEBI


TINY: list[tuple[Message, int]] = [
    (LeaveGroupRequest(members=[MemberIdentity()] * 20_000), 3),
    (LeaveGroupRequest(members=[MemberIdentity()] * 20_000), 4),
    (LeaveGroupRequest(members=[MemberIdentity()] * 20_000), 5),
    (DescribeGroupsRequest(groups=[chr(i % 100 + 900) for i in range(20_000)]), 5),
    (DescribeGroupsRequest(groups=[f"{i}" for i in range(20_000)]), 0),
    (MetadataRequest(topics=[MetadataRequestTopic(name="ü")] * 20_000), 12),
    (DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=UUID(int=i + 1)) for i in range(20_000)]), 6),
    (MetadataResponse(tags=dict.fromkeys(range(10_000), b"")), 12),
    (ShareGroupHeartbeatResponse(tags={i + 9**9: b"x" for i in range(10_000)}), 1),
]


@pytest.mark.parametrize(
    ("message", "version"), TINY, ids=[f"{type(m).__name__}-{n}" for n, (m, _) in enumerate(TINY)]
)
def test_what_is_accepted_costs_no_more_than_was_charged(message: Message, version: int) -> None:
    cls, wire = type(message), message.encode(version=version)
    low, high = 0, 64 * MEBI  # the least budget with which it still decodes
    while high - low > 1024:
        middle = (low + high) // 2
        with limits(memory=middle, memory_factor=4):
            try:
                cls.decode(wire, version=version)
            except LimitExceeded:
                low = middle
            else:
                high = middle
    with limits(memory=high, memory_factor=4):
        budget = current().memory_for(len(wire))
        assert peak(lambda: cls.decode(wire, version=version)) <= budget + 4096


@pytest.mark.parametrize(
    ("cls", "wire", "version"),
    [
        (LeaveGroupRequest, b"\0\1g\x7f\xff\xff\xff", 3),
        (LeaveGroupRequest, b"\x02g" + uvarint(0xFFFF_FFFF) + bytes(300), 4),
        (DescribeGroupsRequest, b"\0\0\0\x80" + bytes(128 * 2 - 1), 0),
        (MetadataRequest, uvarint(40_000_001) + bytes(500_000), 12),
    ],
)
def test_a_count_beyond_the_bytes_left_is_refused_before_it_allocates(
    cls: type[Message], wire: bytes, version: int
) -> None:
    with pytest.raises(Truncated, match="claimed") as error_info:
        cls.decode(wire, version=version)
    assert error_info.value.path

    def again() -> None:
        with pytest.raises(Truncated):
            cls.decode(wire, version=version)

    assert peak(again) < MEBI


def test_a_bomb_of_33_kilobytes_is_no_bomb() -> None:
    wire = members(11_000)
    assert 33_000 < len(wire) < 34_000
    assert peak(lambda: LeaveGroupRequest.decode(wire, version=4)) < current().memory_for(len(wire))


def test_oddities_are_listed_up_to_a_number() -> None:
    topics = [MetadataResponseTopic(name="", is_internal=True) for _ in range(3 * MOST_DEVIATIONS)]
    wire = MetadataResponse(topics=topics).encode(version=1).replace(b"\1\0\0\0\0", b"\2\0\0\0\0")
    deviations: list[Deviation] = []
    message = MetadataResponse.decode(wire, version=1, strict=False, deviations=deviations)
    assert message.topics is not None
    assert len(message.topics) == len(topics)
    assert len(deviations) == MOST_DEVIATIONS + 1
    assert [deviation.path for deviation in deviations[-2:]] == [
        f"topics[{MOST_DEVIATIONS + n}].is_internal" for n in (-1, 0)
    ]
    assert deviations[-1].reason == "more than 1,000 deviations: the rest are not listed"
