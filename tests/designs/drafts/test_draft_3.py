"""The new consumer's draft, by what its pages draw."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from coordwire.designs.drafts.draft_3_consumer import NewConsumerState
from coordwire.designs.drafts.draft_settings import DraftError
from coordwire.designs.drafts.join_group_body import JoinGroupBody
from coordwire.errors import Malformed, OutOfRange
from coordwire.messages.draft_3 import (
    Draft3JoinGroupRequest,
    Draft3JoinGroupResponse,
    Draft3MetadataResponse,
    Draft3Partition,
    Draft3PingRequest,
    Draft3PingResponse,
    Draft3TopicMetadata,
)
from tests.designs.drafts.worlds import World


def test_a_consumer_finds_the_coordinator_joins_and_pings() -> None:
    world = World(3, consumers="a")
    world.run(5_000)
    (metadata,) = world.sent(Draft3MetadataResponse)
    assert metadata.what.coordinator_ids == [1]
    assert [len(one.partitions) for one in metadata.what.topics_metadata] == [4]
    (join,) = world.sent(Draft3JoinGroupResponse)
    assert (join.what.generation, join.what.group_id) == (1, "g")
    assert {one.what.consumer_id for one in world.sent(Draft3PingRequest)} == {join.what.consumer_id}
    assert len(world.sent(Draft3PingResponse)) == 3
    assert world.owned() == "aaaa"


def test_a_second_consumer_sends_the_first_back_to_join() -> None:
    world = World(3, consumers="ab")
    assert world.owned() == "aaaa"
    world.run(3_000)
    assert world.owned() == "aabb"
    assert world.overlaps() == {}
    errors = [one.what.error_code for one in world.sent(Draft3PingResponse, to="a")]
    assert DraftError.REBALANCE_IN_PROGRESS in errors
    assert {one.what.generation for one in world.sent(Draft3JoinGroupResponse)} == {1, 2}


def test_a_consumer_that_dies_is_removed_after_its_session() -> None:
    world = World(3, consumers="ab")
    world.run(5_000)
    world.crash("a")
    world.run(20_000)
    assert world.owned() == "bbbb"
    assert len(world.noted("ConsumerFailed")) == 1


def test_a_consumer_that_is_cut_off_stops_first() -> None:
    world = World(3, consumers="ab")
    world.run(5_000)
    world.cut("a", "broker-1")
    world.run(30_000)
    assert world.owned() == "bbbb"
    assert world.overlaps() == {}
    world.heal("a", "broker-1")
    world.run(30_000)
    assert world.owned().count("a") == 2
    assert world.overlaps() == {}


def test_failover() -> None:
    """The consumers refresh their metadata, and are unknown to the new coordinator."""
    world = World(3, consumers="ab")
    world.run(5_000)
    world.crash("broker-1")
    world.run(40_000)
    assert world.owned().count("a") == 2
    assert world.owned().count("b") == 2
    assert [one.name for one in world.noted("Elected")] == ["broker-1", "broker-2"]


def test_new_partitions_trigger_a_rebalance() -> None:
    world = World(3, consumers="ab")
    world.run(5_000)
    world.topic("t", {number: [1] for number in range(6)})
    world.run(5_000)
    assert world.owned() == "aaabbb"


def test_a_changed_subscription_is_a_restart() -> None:
    world = World(3, consumers="a")
    world.topic("u", {0: [1]})
    world.run(10)
    world.nodes["a"].machine.subscribe(("u",))
    world.drain("a")
    world.run(100)
    assert [one.topic for one, names in world.owners.items() if names] == ["u"]


def test_joins_are_checked() -> None:
    world = World(3)
    world.join("short", session_timeout_ms=10)
    world.join("empty", group_id="")
    world.run(20)
    broken = world.join("broken")
    broken._join = lambda: broken.send(broken._connection, Draft3JoinGroupRequest(rest=b"\x00"))
    world.run(20)
    errors = {one.peer: one.what.error_code for one in world.sent(Draft3JoinGroupResponse)}
    assert errors == {
        "short": DraftError.INVALID_SESSION_TIMEOUT,
        "empty": DraftError.INVALID_GROUP_ID,
    } or errors == {
        "short": DraftError.INVALID_SESSION_TIMEOUT,
        "empty": DraftError.INVALID_GROUP_ID,
        "broken": DraftError.INVALID_REGISTRATION,
    }


def test_the_body_of_a_join() -> None:
    body = JoinGroupBody("g", "", 6_000, ("t", "ü"))
    data = body.encode()
    assert JoinGroupBody.decode(data) == body
    for end in range(len(data)):
        with pytest.raises(Malformed):
            JoinGroupBody.decode(data[:end])
    with pytest.raises(Malformed):
        JoinGroupBody.decode(data + b"\0")
    with pytest.raises(Malformed):
        JoinGroupBody.decode(b"\x00\x01\xff\x00\x00")
    with pytest.raises(Malformed):
        JoinGroupBody.decode(b"\x00\x00\x00\x00\x00\x00\x00\x00\x7f\xff\xff\xff")
    with pytest.raises(OutOfRange):
        JoinGroupBody("g" * 40_000, "", 1, ()).encode()
    with pytest.raises(OutOfRange):
        JoinGroupBody("g", "", -1, ()).encode()


def metadata_answer() -> Any:
    """What the consumer of a world's four partitions knows already."""
    partitions = [Draft3Partition(partition_index=number) for number in range(4)]
    topic = Draft3TopicMetadata(name="t", partitions=partitions)
    return SimpleNamespace(response=Draft3MetadataResponse(topics_metadata=[topic], coordinator_ids=[1]))


def test_metadata_do_not_end_the_wait_for_a_ping() -> None:
    """Both are asked over one connection; a coordinator that answers one and is lost is noticed."""
    world = World(3, consumers="a")
    world.run(3_000)
    world.cut("a", "broker-1")
    world.run(2_500)
    machine = world.nodes["a"].machine
    machine.on_response(machine._connection, metadata_answer())
    assert machine.state is NewConsumerState.PINGING
    world.run(6_000)
    assert machine.state is not NewConsumerState.PINGING


def test_metadata_do_not_end_a_join() -> None:
    world = World(3, consumers="ab")
    world.run(3_000)
    world.cut("b", "broker-1")
    machine = world.nodes["a"].machine
    machine.subscribe(("t",))
    world.drain("a")
    assert machine.state is NewConsumerState.JOINING
    joins = machine._connection
    machine.on_response(joins, metadata_answer())
    assert (machine.state, machine._connection) == (NewConsumerState.JOINING, joins)
    world.run(20_000)
    assert world.owned() == "aaaa"


def test_a_topic_that_is_asked_for_often_is_answered_once() -> None:
    """An answer has at most what the cluster has, however long the request is."""
    world = World(3, consumers="a")
    machine = world.nodes["a"].machine
    machine.topics = ("t", "x") * 1_000
    machine._refresh()
    world.drain("a")
    world.run(20)
    answer = world.sent(Draft3MetadataResponse)[-1].what
    assert [one.name for one in answer.topics_metadata] == ["t", "x"]


def test_an_answer_to_a_join_that_took_longer_than_the_session_starts_nothing() -> None:
    """The coordinator counts the member as failed by then; its partitions are another's."""
    world = World(3, consumers="a")
    world.run(3_000)
    world.join("b")
    world.run(14)  # its join is with the coordinator
    world.cut("b", "broker-1")  # the answer waits
    world.run(9_000)
    assert world.owned() == "aaaa"
    world.heal("b", "broker-1")
    world.run(2)
    assert world.overlaps() == {}
    world.run(20_000)
    assert world.owned() == "aabb"
    assert world.overlaps() == {}
