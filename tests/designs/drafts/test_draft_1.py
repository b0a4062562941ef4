"""The first draft, by the steps of its sections."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from coordwire.designs.drafts.actions import (
    Connect,
    DraftPartition,
    FetchersStarted,
    FetchersStopped,
    Noted,
)
from coordwire.designs.drafts.draft_settings import BrokerAddress, DraftError
from coordwire.messages.draft_1 import (
    Draft1ConsultRequest,
    Draft1ConsultResponse,
    Draft1PartitionOffset,
    Draft1PingRequest,
    Draft1PingResponse,
    Draft1RegisterRequest,
    Draft1StartRequest,
    Draft1StartResponse,
    Draft1StopRequest,
)
from tests.designs.drafts.cluster import Entry
from tests.designs.drafts.seen import Seen, run_until
from tests.designs.drafts.worlds import World


def test_consumers_register_and_share_the_partitions() -> None:
    world = World(1, consumers="ab")
    assert world.owned() == "aabb"
    assert world.read("/consumers/g/owners/t/1-2") == b"b-0"
    (answer,) = world.sent(Draft1ConsultResponse, to="a")
    assert (answer.what.error_code, answer.what.coordinator_id) == (0, 1)
    assert [one.id for one in answer.what.brokers_info] == [1, 2]


def test_a_rebalance_stops_and_starts_at_once_and_waits_for_the_answers() -> None:
    world = World(1, consumers="a")
    world.history.clear()
    world.join("b")
    world.run(200)
    kinds = [type(entry.what) for entry in world.history]
    expected = [
        kind for kind in kinds if kind in (Draft1StopRequest, Draft1StartRequest, Draft1StartResponse)
    ]
    assert expected == [Draft1StopRequest] * 2 + [Draft1StartRequest] * 2 + [Draft1StartResponse] * 2


def test_consumers_without_partitions_are_stopped_and_started_too() -> None:
    """One that has lost all, and one that never had any."""
    world = World(1, partitions=2, consumers="bcd")
    assert world.owned() == "bc"
    world.history.clear()
    world.join("a")
    world.run(200)
    assert world.owned() == "ab"
    for name, parts in (("a", ["1-0"]), ("b", ["1-1"]), ("c", []), ("d", [])):
        assert len(world.sent(Draft1StopRequest, to=name)) == 1
        (start,) = world.sent(Draft1StartRequest, to=name)
        assert [part.partition for part in start.what.assigned_parts] == parts


def test_offsets_come_with_pings_and_go_with_starts() -> None:
    world = World(1, consumers="a")
    world.consume("a", 8)
    world.run(2_100)
    assert world.read("/consumers/g/offsets/t/1-0") == b"8"
    world.join("b")
    world.run(200)
    (start,) = world.sent(Draft1StartRequest, to="b")
    assert [assigned_part.offset for assigned_part in start.what.assigned_parts] == [8, 8]


def test_without_auto_commit_pings_bring_no_offsets() -> None:
    world = World(1)
    world.join("a", auto_commit=False, auto_offset_reset="largest")
    world.run(20_000)
    responses = world.sent(Draft1PingResponse)
    assert len(responses) > 2  # the first comes before anything is owned
    assert {len(message.what.offset_info) for message in responses} == {0}
    (start,) = world.sent(Draft1StartRequest)
    assert {assigned_part.offset for assigned_part in start.what.assigned_parts} == {-1}


def test_a_consumer_fails_after_its_own_number_of_retries() -> None:
    world = World(1, consumers="b")
    world.join("a", ping_interval_ms=1_000, max_ping_retries=2)
    world.run(1_500)
    cut_at = world.now
    world.cut("a", "broker-1")
    world.run(30_000)
    (failed,) = world.noted("ConsumerFailed")
    assert 3_000 <= failed.time - cut_at <= 4_000  # three pings in vain, a second each
    assert "b" in world.owners[DraftPartition("t", "1-0")]


def test_a_consumer_that_dies_is_replaced_and_its_channel_is_not_held() -> None:
    world = World(1, consumers="ab")
    world.crash("a")
    world.run(30_000)
    assert world.owned() == "bbbb"
    assert len(world.noted("ConsumerFailed")) == 1


def test_a_start_out_of_state_is_an_illegal_state() -> None:
    world = World(1, consumers="a")
    coordinator = world.coordinator
    (consumer,) = coordinator.groups["g"].members.values()
    world.history.clear()
    coordinator.send_to(consumer, Draft1StartRequest(assigned_parts=[]))
    world.drain("broker-1")
    world.run(10)
    (answer,) = world.sent(Draft1StartResponse)
    assert answer.what.error_code == DraftError.ILLEGAL_STATE
    assert world.noted("IllegalStateException")
    assert world.owned() == "aaaa"


def test_a_start_without_partitions_is_a_start() -> None:
    """Then fetchers are not stopped: one with other partitions is out of state until a Stop has come."""
    world = World(1, consumers="a")
    coordinator = world.coordinator
    other = Draft1StartRequest(assigned_parts=[Draft1PartitionOffset(topic="t", partition="1-0")])
    empty, stop = Draft1StartRequest(), Draft1StopRequest()
    for requests, errors in (([stop, empty, other], [0, DraftError.ILLEGAL_STATE]), ([stop, other], [0])):
        world.history.clear()
        for request in requests:
            coordinator.send_to(coordinator.groups["g"].members["a"], request)
        world.drain("broker-1")
        world.run(10)
        assert [one.what.error_code for one in world.sent(Draft1StartResponse)] == errors


@pytest.mark.parametrize(
    "settings",
    [
        {"topic_count": "{"}, {"topic_count": "*1*("}, {"group_id": "a/b"}, {"consumer_id": ""},
        {"ping_interval_ms": 0, "idle_timeout_ms": 5_000}, {"max_ping_retries": -1, "idle_timeout_ms": 5_000},
    ],
)  # fmt: skip
def test_a_refused_registration_closes_the_connection(settings: dict[str, Any]) -> None:
    world = World(1)
    world.join("a", **settings)
    world.run(200)
    assert world.noted("RegistrationRefused")
    assert world.owned() == ""


def test_a_second_registration_on_a_connection_closes_it() -> None:
    world = World(1, consumers="a")
    machine = world.nodes["a"].machine
    machine.send(machine._connection, machine.registration())
    world.drain("a")
    world.run(100)
    (refusal,) = world.noted("RegistrationRefused")
    assert "once" in refusal.what.text


def test_a_consumer_registers_again_under_its_id() -> None:
    """Its new connection takes the place of the old one."""
    world = World(1, consumers="ab")
    world.nodes["a"].machine.retry()
    world.drain("a")
    world.run(5_000)
    assert len(world.sent(Draft1RegisterRequest)) == 3
    assert world.owned() == "aabb"
    assert len(world.coordinator.groups["g"].members) == 2


def test_without_a_known_broker_it_gives_up() -> None:
    world = World(1)
    world.crash("broker-1")
    world.crash("broker-2")
    consumer = world.join("a")
    world.run(100)
    assert len(world.noted("AllKnownBrokersNotAvailable")) == 1
    assert consumer.next_deadline() is None


def test_the_brokers_of_the_list_are_asked_where_it_says_that_they_are() -> None:
    """Each at its own host and port, and none that a consumer has learned of since."""
    world = World.larger(1)
    addresses = dict(world.known)
    world.known = {5: addresses[5]}
    consumer = world.join("a")
    world.run(100)
    assert consumer.cluster == addresses
    world.crash("broker-1")
    world.run(9_000)
    assert len(world.sent(Draft1ConsultRequest)) > 3
    assert {entry.peer for entry in world.sent(Draft1ConsultRequest)} == {"broker-5"}
    assert world.coordinator is world.nodes["broker-2"].machine
    assert world.owned() == "aaa"
    world.known = addresses
    for number in (2, 5):
        world.crash(f"broker-{number}")
    consumer = world.join("c")
    first, seen = consumer._address, Seen(consumer)
    world.run(50)
    tried = [first, *(BrokerAddress(one.what.host, one.what.port) for one in seen.of(Connect))]
    assert sorted(set(tried)) == sorted(addresses.values())


def test_failover_and_a_coordinator_without_its_session() -> None:
    world = World(1, brokers=3, consumers="a")
    world.crash("broker-1")
    world.run(30_000)
    assert world.owned() == "aaaa"
    assert [note.name for note in world.noted("Elected")] == ["broker-1", "broker-2"]
    world.cut_zookeeper("broker-2")
    world.run(10_000)
    world.heal_zookeeper("broker-2")
    world.run(30_000)
    assert world.owned() == "aaaa"
    assert world.coordinator is world.nodes["broker-3"].machine


def test_new_topics_reach_wildcards() -> None:
    world = World(1)
    world.join("a", topic_count="!2!t")
    world.run(100)
    assert world.owned() == ""
    world.topic("u", {0: [2], 1: [1], 2: [1]})
    world.run(100)
    assert {one: names for one, names in world.owners.items() if names} == {
        DraftPartition("u", name): {"a"} for name in ("1-1", "1-2", "2-0")
    }
    assert world.read("/consumers/g/owners/u/2-0") == b"a-1"


def test_of_several_topics_that_change_together_one_of_interest_is_enough() -> None:
    world = World(1)
    world.join("a", topic_count='{"v":1}')
    world.run(100)
    for name in ("t", "u", "v", "w"):
        world.topic(name, {0: [1], 1: [1]})
    world.run(100)
    assert {one: names for one, names in world.owners.items() if names} == {
        DraftPartition("v", name): {"a"} for name in ("1-0", "1-1")
    }


def test_pings_say_how_often_they_were_in_vain() -> None:
    world = World(1, consumers="a")
    world.freeze("a")
    world.run(5_000)
    world.thaw("a")
    world.run(6_000)
    retries = [message.what.num_retries for message in world.sent(Draft1PingRequest)]
    assert retries[:1] == [0]
    assert 1 in retries
    assert retries[-1] == 0
    assert world.noted("ConsumerFailed") == []


def test_groups_of_one_handler_follow_each_other() -> None:
    """A handler that waits for one group's answers makes the next one wait."""
    world = World(1, broker={"rebalance_handlers": 1})
    world.join("a", group_id="one", ping_interval_ms=10_000)
    world.run(200)
    world.cut("a", "broker-1")
    world.topic("t", {number: [1] for number in range(5)})
    world.run(200)
    world.join("b", group_id="two")
    world.run(5_000)
    assert world.sent(Draft1StartRequest, to="b") == []
    world.heal("a", "broker-1")
    world.run(200)
    assert len(world.sent(Draft1StartRequest, to="b")) == 1


def test_a_start_of_an_earlier_attempt_that_is_answered_late_is_not_the_answer_to_a_newer_one() -> None:
    world = World(1, consumers="a")
    world.blocked.add(("a", "broker-1"))  # what a answers waits; what it is sent arrives
    world.join("b")
    world.run(5_000)
    group = world.coordinator.groups["g"]
    assert len(world.noted("RebalanceAttemptFailed")) == 2
    line, side = world._lines["a", world.nodes["a"].machine._connection]
    answers = line.held[side]
    assert len(answers) == 3  # to the Start of each attempt
    assert group.waiting == {"a"}
    for remaining in ({"a"}, {"a"}, set()):
        answers.pop(0)()
        assert group.waiting == remaining
        assert group.members["a"].is_rebalancing is bool(remaining)
    assert world.owned() == "aabb"
    world.run(10)
    assert world.read("/consumers/g/owners/t/1-3") == b"b-0"


def test_the_attempt_after_a_consumers_last_failure_is_without_it() -> None:
    """Its watcher expires once too often while a Start waits for it: the next attempt is for the others."""
    world = World(1, consumers="b")
    world.join("a", max_ping_retries=2)
    world.run(100)
    world.blocked.add(("broker-1", "a"))  # what a is sent waits
    world.topic("t", {number: [1] for number in range(5)})
    run_until(world, lambda: bool(world.noted("ConsumerFailed")))
    failed = [entry.time for entry in world.noted("RebalanceAttemptFailed")]
    assert failed[-1] == world.noted("ConsumerFailed")[0].time
    world.run(100)
    assert len(world.noted("RebalanceAttemptFailed")) == len(failed)
    assert world.owned()[-1] == "b"
    assert [world.read(f"/consumers/g/owners/t/1-{number}") for number in range(5)] == [b"b-0"] * 5


def test_a_start_over_a_connection_that_was_left_is_not_carried_out() -> None:
    world = World(1)
    world.join("a", max_ping_retries=99, idle_timeout_ms=6_000)
    world.run(100)
    world.blocked.add(("broker-1", "a"))  # what a is sent waits
    world.join("b")
    world.run(9_000)
    assert world.noted("Silence")
    assert world.owned() == "aa++"
    world.history.clear()
    world.heal("a", "broker-1")
    world.run(20)
    assert world.sent(Draft1RegisterRequest)
    assert world.sent(Draft1StopRequest, to="a") == world.sent(Draft1StartRequest, to="a") == []
    assert world.owned() == "aa++"


def test_groups_that_have_owners_are_known_at_startup() -> None:
    """coordinatorStartup, step 2: before any consumer has found the new coordinator."""
    world = World(1, consumers="a")
    world.cut("a", "broker-2")
    world.crash("broker-1")
    world.run(7_000)
    assert world.coordinator is world.nodes["broker-2"].machine
    group = world.coordinator.groups["g"]
    assert (group.members, group.topics) == ({}, {"t"})


def test_offsets_that_are_batched_are_committed_from_the_startup_on() -> None:
    """coordinatorStartup: the committer of a broker that batches the offsets of pings."""
    for batches in (False, True):
        world = World(1, consumers="a", broker={"batch_offsets": batches})
        assert world.coordinator._timers.is_set("committer") == batches


@pytest.mark.parametrize("topic_count", ["*2*t.*", '{"t":2,"tt":2}'])
def test_a_stop_cleans_the_queues_and_a_start_makes_a_wildcards_streams_again(topic_count: str) -> None:
    """handleStopRequest, step 1.2; handleStartRequest, step 1. A Start names no threads: they get ranges."""
    world = World(1)
    consumer = world.join("a", topic_count=topic_count)
    world.run(200)
    streams, partition = consumer.streams.all(), DraftPartition("t", "1-3")
    assert consumer.fetched(partition, 5)
    assert consumer.take("t", "a-0") is None
    assert consumer.take("t", "a-1") == (partition, 0)
    world.topic("tt", {0: [1]})
    world.run(200)
    assert len(world.sent(Draft1StartRequest)) == 2
    assert consumer.take("t", "a-1") is None
    assert consumer.fetched(DraftPartition("tt", "1-0"), 1)
    assert consumer.take("tt", "a-0") == (DraftPartition("tt", "1-0"), 0)
    is_wildcard = topic_count.startswith("*")
    assert len(consumer.streams.all()) == (2 if is_wildcard else 4)
    assert (consumer.streams.all() == streams) is not is_wildcard


def test_a_consumer_sends_registrations_and_answers_alone() -> None:
    """It "never pro-actively" sends requests to the coordinator; and to a Stop there is no answer."""
    world = World(1, consumers="ab")
    world.run(20_000)
    sent = Counter(type(entry.what) for entry in world.history if entry.name in ("a", "b"))
    assert sent.keys() - {Draft1ConsultRequest, Draft1PingResponse, Draft1StartResponse, Noted} == {
        Draft1RegisterRequest, FetchersStarted, FetchersStopped
    }  # fmt: skip
    assert sent[Draft1RegisterRequest] == 2
    answered = Counter(
        type(entry.what) for entry in world.history if entry.name == "broker-1" and entry.peer in ("a", "b")
    )
    assert sent[Draft1PingResponse] == answered[Draft1PingRequest]
    assert sent[Draft1StartResponse] == answered[Draft1StartRequest]


def test_nothing_of_consumers_is_in_zookeeper_but_owners_and_offsets() -> None:
    """ "Paths Stored in ZooKeeper": no ids; owners are persistent, and stay when their consumer dies."""
    world = World(1, consumers="ab")
    world.consume("a", 3)
    world.run(5_000)
    paths = [path for path in world.tree.paths() if path.startswith("/consumers/")]
    kinds = {path.split("/")[3] for path in paths if path.count("/") > 2}
    assert kinds == {"offsets", "owners"}
    world.crash("a")
    world.crash("broker-1")
    world.crash("broker-2")
    world.run(60_000)
    assert world.read("/consumers/g/owners/t/1-0") == b"a-0"
    assert world.read("/consumers/coordinator") is None


def test_a_group_whose_topics_are_not_there_waits_for_them() -> None:
    """handleNewGroup, step 3.2."""
    world = World(1)
    world.join("a", topic_count='{"later":1}')
    world.run(1_000)
    group = world.coordinator.groups["g"]
    assert (group.queued, world.sent(Draft1StartRequest)) == (False, [])
    world.topic("later", {0: [1]})
    world.run(200)
    assert world.owners[DraftPartition("later", "1-0")] == {"a"}


def test_a_group_without_consumers_is_not_rebalanced() -> None:
    """handleGroupMemberChange, step 2.1."""
    world = World(1, consumers="a")
    world.crash("a")
    world.run(30_000)
    world.history.clear()
    world.topic("t", {number: [1] for number in range(6)})
    world.run(1_000)
    assert world.coordinator.groups["g"].members == {}
    assert world.history == []


def test_a_known_broker_that_is_gone_is_passed_over() -> None:
    """consumerStartup, step 1.1; any broker answers the ConsultRequest."""
    for seed in range(6):
        world = World(1, brokers=3)
        world.crash("broker-3")
        world.history += [Entry(0, "", Noted("seed"))] * seed  # what the consumer's choices follow from
        world.join("a")
        world.run(8_000)
        assert world.owned() == "aaaa"
        (consulted,) = world.sent(Draft1ConsultRequest)
        assert consulted.peer in ("broker-1", "broker-2")


def test_a_broker_that_is_consulted_has_no_coordinator_yet() -> None:
    """The consumer asks again until one is elected."""
    world = World(1, brokers=1)
    broker = world.nodes["broker-1"].machine
    broker._coordinator_ids.clear()
    world.join("a")
    world.run(400)
    (answer,) = world.sent(Draft1ConsultResponse)
    assert answer.what.error_code == DraftError.COORDINATOR_NOT_AVAILABLE
    broker._coordinator_ids[0] = 1
    world.run(1_000)
    assert world.owned() == "aaaa"


def test_a_new_topics_partitions_are_watched_too() -> None:
    """TopicChangeListener, step 2.1, and TopicPartitionChangeListener."""
    world = World(1)
    world.join("a", topic_count='{"later":1}')
    world.topic("later", {0: [1]})
    world.run(200)
    world.topic("later", {0: [1], 1: [1]})
    world.run(200)
    assert world.owners[DraftPartition("later", "1-1")] == {"a"}


def test_the_first_request_is_expected_within_the_ping_interval() -> None:
    """RegisterRequest: not for as long as pings may be in vain afterwards. The coordinator pings at once."""
    world = World(1, consumers="b")
    world.join("a", ping_interval_ms=1_000, max_ping_retries=9)
    while not world.sent(Draft1RegisterRequest, to="broker-1")[1:]:
        world.run(1)
    registered_at = world.now
    world.cut("a", "broker-1")
    world.run(1_100)
    (silence,) = world.noted("Silence")
    assert 995 <= silence.time - registered_at <= 1_005
    assert silence.name == "a"
    world.run(200)
    world.cut("b", "broker-1")  # which has had a request: 2 s, four times
    world.run(6_000)
    assert {entry.name for entry in world.noted("Silence")} == {"a"}


def test_the_first_ping_comes_before_the_first_interval_is_over() -> None:
    """Also where no rebalance sends a Stop: more consumers than partitions of an ownership that stays."""
    world = World(1, consumers="ab", partitions=1)
    world.join("c", ping_interval_ms=1_000)
    world.run(500)
    assert world.sent(Draft1PingRequest, to="c")
    world.run(10_000)
    assert not world.noted("Silence")


def test_a_consumer_that_registers_again_before_its_start_is_stopped_first() -> None:
    """Its Stop went over the connection that it has left: over the new one it gets no Start."""
    world = World(1, consumers="a", broker={"handler_us": 300_000})
    world.run(2_000)
    consumer = world.nodes["a"].machine
    world.cut("a", "broker-1")
    world.join("b")
    world.run(50)
    assert world.sent(Draft1StopRequest, to="b")
    consumer.discover()
    world.drain("a")
    world.heal("a", "broker-1")
    world.run(5_000)
    assert [entry.what.text for entry in world.noted("RebalanceAttemptFailed")] == ["g: attempt 1"]
    assert not world.noted("IllegalStateException")
    assert world.owned() == "aabb"
