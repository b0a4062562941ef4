"""What members' bytes say, remembered or not, is what `open_embedded` finds in their messages."""

from __future__ import annotations

import random
from typing import Any

import pytest

from coordwire.embedded import open_embedded
from coordwire.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    JoinGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordwire.messages.consumer_protocol import ConsumerProtocolAssignmentTopicPartition
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.sync_group import SyncGroupRequestAssignment
from coordwire.timeline import consumer_data
from coordwire.timeline.consumer_data import assigned_partitions, assignment_of, subscribe, subscribe_by_offer
from coordwire.timeline.members import Member

KINDS = (None, "", "consumer", "connect", "other")


def versioned(message: Any, version: int) -> bytes:
    return version.to_bytes(2, "big") + bytes(message.encode(version=version))


def bytes_of(chance: random.Random) -> bytes:
    """An assignment, a subscription, or neither; short and long."""
    partitions = list(range(chance.choice((0, 1, 400))))
    topics = [ConsumerProtocolAssignmentTopicPartition(topic="t", partitions=partitions)]
    made = [
        versioned(ConsumerProtocolAssignment(assigned_partitions=topics), chance.randrange(4)),
        versioned(ConsumerProtocolSubscription(topics=["b", "a"]), chance.randrange(4)),
        b"", chance.randbytes(9), b"\0\1\0\0\0\0\xff\xff\xff\xff",
    ]  # fmt: skip
    data = chance.choice(made)
    return data[: chance.randrange(len(data) + 1)] if chance.random() < 0.2 else data


@pytest.mark.parametrize("most", [1024, 2])
def test_remembered_or_not(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_data, "REMEMBERED", most)
    for known in (consumer_data._ASSIGNMENTS, consumer_data._SUBSCRIPTIONS):
        known.clear()
    chance = random.Random(most)
    sample = [(chance.choice(KINDS), bytes_of(chance)) for _ in range(150)]
    result = 0
    for kind, data in sample * 2:
        answer = SyncGroupResponse(protocol_type=kind, assignment=data)
        expected = assigned_partitions(open_embedded(answer).get("assignment"))
        result += expected is not None
        assert assignment_of(answer, kind) == expected
        share = SyncGroupRequestAssignment(assignment=data)
        request = SyncGroupRequest(protocol_type=kind, assignments=[share])
        assert assignment_of(share, kind) == assigned_partitions(
            open_embedded(request).get("assignments[0].assignment")
        )
        offer = JoinGroupRequestProtocol(name="range", metadata=data)
        joining = JoinGroupRequest(protocol_type=kind or "", protocols=[offer])
        member, other = Member("m"), Member("m")
        subscribe_by_offer(member, offer, joining.protocol_type)
        subscribe(other, open_embedded(joining).get("protocols[0].metadata"))
        assert member == other
        assert len(consumer_data._ASSIGNMENTS) <= most
        assert len(consumer_data._SUBSCRIPTIONS) <= most
    assert result > 20
    kept = [*consumer_data._ASSIGNMENTS, *consumer_data._SUBSCRIPTIONS]
    assert all(len(data) <= consumer_data.LONGEST for _, data, _ in kept)
