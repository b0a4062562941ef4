"""The detailed design by its section 2: a rebalance breaks connections, registrations are answered late."""

from __future__ import annotations

from typing import Any

import pytest

from coordwire.designs.drafts.actions import Disconnect, DraftPartition, FetchersStarted, Send
from coordwire.designs.drafts.draft_settings import DraftError
from coordwire.messages.draft_2 import (
    Draft2ClusterMetadataRequest,
    Draft2PingResponse,
    Draft2RegisterConsumerRequest,
    Draft2RegisterConsumerResponse,
    Draft2StartFetcherRequest,
    Draft2StopFetcherRequest,
)
from tests.designs.drafts.checkers import check
from tests.designs.drafts.random_runs import random_run
from tests.designs.drafts.seen import Seen, run_until
from tests.designs.drafts.worlds import World


def overview(**settings: Any) -> World:
    return World(2, overview=True, **settings)


def test_the_answer_lists_what_the_consumer_owns() -> None:
    world = overview(consumers="a")
    (answer,) = world.sent(Draft2RegisterConsumerResponse)
    assert [part.partition for part in answer.what.assigned_parts] == ["1-0", "1-1", "1-2", "1-3"]
    assert world.owned() == "aaaa"
    assert world.read("/consumers/g/owners/t/1-2") == b"a-0"


def test_one_more_consumer_makes_all_others_register_again() -> None:
    """Steps 5 and 6; nobody is stopped or started by a message."""
    world = overview(consumers="ab")
    world.run(1_000)
    world.history.clear()
    world.join("c")
    world.run(200)
    names = [entry.name for entry in world.history if isinstance(entry.what, Draft2RegisterConsumerRequest)]
    assert sorted(names) == ["a", "b", "c"]
    assert (world.owned(), world.overlaps()) == ("aabc", {})
    assert world.sent(Draft2StopFetcherRequest) == world.sent(Draft2StartFetcherRequest) == []


def test_a_consumer_that_does_not_come_back_is_waited_for() -> None:
    """Its session timeout, and the third in which its last request may have come."""
    world = overview(consumers="ab")
    world.cut("b", "broker-1")
    world.join("c")
    world.run(7_900)
    assert set(world.owned()) <= {"-", "b"}
    world.run(200)
    assert world.owned() == "aacc"
    assert world.overlaps() == {}


def test_pings_are_answered_while_the_registration_waits() -> None:
    world = overview(consumers="ab")
    world.cut("b", "broker-1")
    world.join("c", session_timeout_ms=3_000)
    world.run(6_000)
    assert [message for message in world.sent(Draft2PingResponse) if message.name == "c"]
    assert not [note for note in world.noted("Silence") if note.name == "c"]


def test_a_refused_registration_is_answered_at_once() -> None:
    world = overview(consumers="a")
    world.join("x", session_timeout_ms=10)
    world.run(20)
    assert world.sent(Draft2RegisterConsumerResponse, to="x")[0].what.error_code == (
        DraftError.INVALID_SESSION_TIMEOUT
    )
    assert world.owned() == "aaaa"


def test_new_partitions_and_a_death_break_the_connections() -> None:
    world = overview(consumers="ab")
    world.topic("t", {number: [1] for number in range(6)})
    world.run(200)
    assert world.owned() == "aaabbb"
    world.crash("a")
    world.run(200)
    assert world.owned() == "bbbbbb"


def test_failover_waits_for_those_that_own_something() -> None:
    world = overview(consumers="abc")
    world.run(5_000)
    world.crash("broker-1")
    world.run(30_000)
    assert (world.owned(), world.overlaps()) == ("aabc", {})
    assert [note.name for note in world.noted("Elected")] == ["broker-1", "broker-2"]


def test_failover_waits_for_one_that_does_not_come() -> None:
    """What it owns may be read until its session timeout is over, so nobody else gets it before."""
    world = overview(consumers="abc")
    world.run(5_000)
    world.crash("broker-1")
    world.crash("c")
    world.run(30_000)
    assert world.owned() == "aabb"
    elected = world.noted("Elected")[-1].time
    answers = [
        message for message in world.sent(Draft2RegisterConsumerResponse) if message.name == "broker-2"
    ]
    assert min(answer.time for answer in answers) >= elected + 6_000


def test_what_was_read_since_the_last_ping_is_read_again() -> None:
    """A broken connection has no Stop that would bring the offsets."""
    world = overview(consumers="a")
    world.consume("a", 5)
    world.run(2_100)  # a ping brings it
    world.consume("a", 9)
    world.join("b")
    world.run(200)
    offsets = {part.offset for message in world.sent(Draft2RegisterConsumerResponse)[-2:]
               for part in message.what.assigned_parts}  # fmt: skip
    assert offsets == {5}


@pytest.mark.parametrize("seed", range(3))
def test_it_keeps_its_invariants(seed: int) -> None:
    world = random_run(2, seed, overview=True)
    assert check(world) == []
    assert set(world.owned()).isdisjoint("-+")


def test_a_registration_waits_for_all_that_lived_and_says_what_each_owns() -> None:
    """Steps 5 and 6: the connections of those that remain are killed, each looks for the coordinator again,
    and none has its answer before the last one has registered."""
    world = overview(consumers="ab")
    world.consume("a", 7)
    world.run(2_100)  # a ping brings it
    coordinator = world.coordinator
    group = coordinator.groups["g"]
    seen, world.history = Seen(coordinator), []
    lost = {name: group.members[name].connection for name in "ab"}
    world.cut("b", "broker-1")
    world.join("c")
    run_until(world, lambda: "c" in group.members)
    assert sorted(one.what.connection for one in seen.of(Disconnect)) == sorted(lost.values())
    assert (group.awaited, list(group.members)) == ({"a", "b"}, ["c"])
    run_until(world, lambda: "a" in group.members)
    assert [entry.name for entry in world.sent(Draft2ClusterMetadataRequest)] == ["c", "a"]
    assert group.awaited == {"b"}
    assert world.owned() == "--bb"  # a noticed it; b has not yet
    world.run(1_000)
    assert seen.messages(Draft2RegisterConsumerResponse) == []
    world.heal("b", "broker-1")
    run_until(world, lambda: bool(seen.messages(Draft2RegisterConsumerResponse)))
    answers = {
        world.peer("broker-1", one.what.connection): [
            (part.topic, part.partition, part.offset) for part in one.what.message.assigned_parts
        ]
        for one in seen.of(Send) if isinstance(one.what.message, Draft2RegisterConsumerResponse)
    }  # fmt: skip
    assert answers == {
        "c": [("t", "1-3", 0)], "a": [("t", "1-0", 7), ("t", "1-1", 7)], "b": [("t", "1-2", 0)]
    }  # fmt: skip
    owners = [world.read(f"/consumers/g/owners/t/1-{number}") for number in range(4)]
    assert owners == [b"a-0", b"a-0", b"b-0", b"c-0"]
    world.run(5)
    started = {entry.name: entry.what.partitions for entry in world.history
               if isinstance(entry.what, FetchersStarted)}  # fmt: skip
    assert started["a"] == {DraftPartition("t", "1-0"): 7, DraftPartition("t", "1-1"): 7}
    assert started["b"] == {DraftPartition("t", "1-2"): 0}
    assert started["c"] == {DraftPartition("t", "1-3"): 0}
    assert (world.owned(), world.overlaps()) == ("aabc", {})
    assert group.awaited == set()
    assert not group.queued


def test_a_dead_consumer_is_removed_and_the_others_get_its_partitions() -> None:
    """Steps 3 to 5: by the failure detection, and without waiting for it."""
    world = overview(consumers="abc", broker={"max_ping_retries": 0})
    coordinator = world.coordinator
    group, seen = coordinator.groups["g"], Seen(coordinator)
    world.cut("c", "broker-1")
    run_until(world, lambda: bool(seen.noted("ConsumerFailed")))
    assert [text for _, text in seen.noted("ConsumerFailed")] == ["g/c"]
    assert sorted(text for _, text in seen.noted("ConnectionBroken")) == ["g/a", "g/b"]
    assert (group.members, group.awaited) == ({}, {"a", "b"})
    failed = world.now
    run_until(world, lambda: len(seen.messages(Draft2RegisterConsumerResponse)) == 2)
    assert world.now <= failed + 100
    world.run(5)
    assert world.owned() == "aabb"
    assert world.overlaps() == {}
    assert sorted(group.members) == ["a", "b"]
    assert all(world.read(f"/consumers/g/owners/t/1-{n}") == b"b-0" for n in (2, 3))


def test_connections_are_broken_for_the_groups_that_a_change_affects() -> None:
    world = overview(consumers="a")
    world.join("b", group_id="h", topic_count='{"u":1,"later":1}')
    world.run(100)
    for topic, affected in (("u", {"h/b"}), ("t", {"g/a"}), ("later", {"h/b"}), ("other", set())):
        seen = Seen(world.coordinator)
        world.topic(topic, {number: [1] for number in range(6)})
        world.run(100)
        assert {text for _, text in seen.noted("ConnectionBroken")} == affected
        if affected:
            assert len(seen.messages(Draft2RegisterConsumerResponse)) == 1
    assert world.owners[DraftPartition("later", "1-5")] == {"b"}
    assert world.owners[DraftPartition("t", "1-5")] == {"a"}
