"""The detailed design, by the steps of its sections."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from coordwire.designs.drafts.actions import DraftPartition, FetchersStarted
from coordwire.designs.drafts.draft_settings import DraftError
from coordwire.designs.drafts.rebalance_queue import RebalanceQueue
from coordwire.designs.drafts.zookeeper_operations import DeleteNode
from coordwire.designs.drafts.zookeeper_steps import rebalance_reason, write_owners
from coordwire.messages.draft_2 import (
    Draft2CommitOffsetRequest,
    Draft2CommitOffsetResponse,
    Draft2PingRequest,
    Draft2PingResponse,
    Draft2RegisterConsumerResponse,
    Draft2StartFetcherRequest,
    Draft2StartFetcherResponse,
    Draft2StopFetcherRequest,
    Draft2StopFetcherResponse,
)
from tests.designs.drafts.worlds import World


def test_consumers_register_and_share_the_partitions() -> None:
    world = World(2, consumers="a")
    assert world.owned() == "aaaa"
    world.join("b")
    world.run(100)
    assert world.owned() == "aabb"
    assert world.overlaps() == {}
    assert world.read("/consumers/g/owners/t/1-2") == b"b-0"
    assert world.read("/consumers/coordinator") == b"1"


def test_a_rebalance_stops_all_waits_commits_starts_all_waits_and_writes() -> None:
    """Section 9, step 4, with auto-commit on and off."""
    world = World(2, consumers="a")
    world.consume("a", 5)
    world.history.clear()
    world.join("b", auto_commit=False)
    world.run(200)
    kinds = [type(entry.what).__name__ for entry in world.history if "Fetcher" in type(entry.what).__name__]
    assert [kind for kind in kinds if kind.startswith("Draft2")] == (
        ["Draft2StopFetcherRequest"] * 2 + ["Draft2StopFetcherResponse"] * 2
        + ["Draft2StartFetcherRequest"] * 2 + ["Draft2StartFetcherResponse"] * 2
    )  # fmt: skip
    for one in world.sent(Draft2StartFetcherRequest):
        parts = [part for thread in one.what.ownership_info for part in thread.assigned_parts]
        assert [part.offset for part in parts] == [5, 5]
    offsets = {
        message.name: len(message.what.offset_info) for message in world.sent(Draft2StopFetcherResponse)
    }
    assert offsets == {"a": 4, "b": 0}
    assert world.read("/consumers/g/offsets/t/1-0") == b"5"


def test_pings_go_every_third_of_the_session_and_bring_offsets() -> None:
    world = World(2, consumers="a")
    world.consume("a", 9)
    world.history.clear()
    world.run(12_000)
    times = [message.time for message in world.sent(Draft2PingRequest)]
    assert [after - before for before, after in pairwise(times)] == [2_000] * 5
    assert {
        part.offset for message in world.sent(Draft2PingResponse) for part in message.what.offset_info
    } == {9}
    assert world.read("/consumers/g/offsets/t/1-3") == b"9"  # by the committer


def test_a_consumer_that_is_cut_off_stops_before_its_partitions_are_given_away() -> None:
    world = World(2, consumers="ab", broker={"max_ping_retries": 1})
    world.run(5_000)
    world.cut("a", "broker-1")
    world.run(20_000)
    assert world.owned() == "bbbb"
    (failed,) = world.noted("ConsumerFailed")
    assert world.noted("Silence")
    assert world.overlaps() == {}
    retries = [message.what.num_retries for message in world.sent(Draft2PingRequest, to="a")]
    assert retries == sorted(retries)
    world.heal("a", "broker-1")
    world.run(20_000)
    assert world.owned() == "aabb"
    assert failed.what.text == "g/a"


def test_a_failed_consumer_fails_the_running_rebalance_at_once() -> None:
    world = World(2, consumers="ab")
    world.cut("b", "broker-1")
    world.join("c")
    world.run(1_000)
    assert world.owned() == "--bb"
    world.crash("a")
    world.run(10)
    assert world.noted("RebalanceAttemptFailed")
    world.run(40_000)
    assert world.owned() in ("bbcc", "cccc")


def test_retries_back_off_and_end() -> None:
    """Section 9: maxRebalanceRetries, then ConsumerRebalanceFailedException. The consumer that does not
    answer a Stop has not failed yet, as its pings may be many."""
    world = World(2, consumers="ab", broker={"max_ping_retries": 100, "rebalance_backoff_ms": 500})
    world.cut("b", "broker-1")
    world.topic("t", {number: [1] for number in range(5)})
    world.run(60_000)
    attempts = world.noted("RebalanceAttemptFailed")
    assert len(attempts) == 5
    apart = [after.time - before.time for before, after in pairwise(attempts)]
    assert [between // 100 for between in apart] == [45] * 4  # each has its backoff, and its Stop its time
    assert len(world.noted("ConsumerRebalanceFailedException")) == 1


def test_registrations_are_checked() -> None:
    world = World(2, consumers="a")
    world.run(1_000)
    cases: dict[str, dict[str, Any]] = {
        "same id": {"consumer_id": "a"},
        "short": {"session_timeout_ms": 1_000},
        "slash": {"group_id": "g/h"},
        "count": {"topic_count": "{"},
        "streams": {"topic_count": '{"t":2000000000}'},
        "wildcard": {"topic_count": "*1*("},
    }
    for name, settings in cases.items():
        world.join(name, **settings)
        world.run(200)
        world.crash(name)
    refused = {
        message.peer: message.what.error_code for message in world.sent(Draft2RegisterConsumerResponse)
    }
    assert refused == {
        "a": 0,
        "same id": DraftError.DUPLICATE_CONSUMER,
        "short": DraftError.INVALID_SESSION_TIMEOUT,
        "slash": DraftError.INVALID_GROUP_ID,
        "count": DraftError.INVALID_REGISTRATION,
        "streams": DraftError.INVALID_REGISTRATION,
        "wildcard": DraftError.INVALID_REGISTRATION,
    }
    assert world.owned() == "aaaa"


def test_a_broker_that_is_not_the_coordinator_says_so() -> None:
    world = World(2)
    consumer = world.join("a")
    consumer.reach_coordinator(0, 2, world.known)
    world.drain("a")
    world.run(50)
    (answer,) = world.sent(Draft2RegisterConsumerResponse)
    assert answer.what.error_code == DraftError.NOT_COORDINATOR
    world.run(2_000)
    assert world.owned() == "aaaa"


@pytest.mark.parametrize("kind", ["topic", "partitions", "wildcard"])
def test_new_topics_and_partitions_trigger_a_rebalance(kind: str) -> None:
    world = World(2)
    world.join("a", topic_count="*1*t.*" if kind == "wildcard" else '{"t":1,"u":1}')
    world.run(100)
    if kind == "partitions":
        world.topic("t", {number: [1] for number in range(6)})
    else:
        world.topic("tu" if kind == "wildcard" else "u", {0: [1], 1: [1]})
    world.run(100)
    assert sum(len(names) for names in world.owners.values()) == 6


def test_nothing_changes_no_rebalance() -> None:
    world = World(2, consumers="ab")
    world.history.clear()
    world.topic("other", {0: [1]})
    world.run(30_000)
    assert world.sent(Draft2StopFetcherRequest) == []


def test_failover_waits_for_the_consumers_that_own_something() -> None:
    """Sections 2 and 10. Every consumer notices, stops, and registers again; then one rebalance."""
    world = World(2, consumers="abc")
    world.run(5_000)
    world.crash("broker-1")
    world.run(400)
    assert world.owned() == "----"
    world.run(30_000)
    assert world.owned() == "aabc"
    assert [note.name for note in world.noted("Elected")] == ["broker-1", "broker-2"]
    starts = [message for message in world.sent(Draft2StartFetcherRequest) if message.name == "broker-2"]
    assert len(starts) == 3
    assert world.overlaps() == {}


def test_a_consumer_that_is_gone_at_failover_is_waited_for_once() -> None:
    world = World(2, consumers="ab")
    world.run(5_000)
    world.crash("a")
    world.crash("broker-1")
    world.run(60_000)
    assert world.owned() == "bbbb"


def test_a_coordinator_whose_session_expires_resets_and_stands_again() -> None:
    world = World(2, consumers="ab")
    world.cut_zookeeper("broker-1")
    world.run(10_000)
    assert [note.name for note in world.noted("Elected")] == ["broker-1", "broker-2"]
    world.heal_zookeeper("broker-1")
    world.run(20_000)
    assert world.noted("Resigned")[0].name == "broker-1"
    assert world.owned() == "aabb"
    assert world.coordinator is world.nodes["broker-2"].machine


def test_shutdown_waits_for_pings() -> None:
    """Section 11, PingRequest, step 1."""
    for auto_commit, pings in ((False, 1), (True, 2)):
        world = World(2)
        consumer = world.join("a", auto_commit=auto_commit)
        world.run(100)
        consumer.shut_down()
        world.history.clear()
        world.run(10_000)
        assert len(world.sent(Draft2PingResponse)) == pings
        assert world.owned() == "----"


def test_fetchers_that_failed_are_found_out_at_the_next_ping() -> None:
    """Section 11, PingRequest, step 2: the consumer reconnects, which triggers a rebalance."""
    world = World(2, consumers="ab")
    world.nodes["a"].machine.fail_fetchers()
    world.drain("a")
    assert world.owned() == "--bb"
    world.run(10_000)
    assert world.owned() == "aabb"


def test_a_request_for_another_consumer_is_an_error() -> None:
    world = World(2, consumers="a")
    coordinator = world.coordinator
    (consumer,) = coordinator.groups["g"].members.values()
    world.history.clear()
    for request in (Draft2StopFetcherRequest(consumer_id="x"), Draft2StartFetcherRequest(consumer_id="x")):
        coordinator.send_to(consumer, request)
        world.drain("broker-1")
    world.run(10)
    for kind in (Draft2StopFetcherResponse, Draft2StartFetcherResponse):
        (answer,) = world.sent(kind)
        assert answer.what.error_code == DraftError.UNKNOWN_CONSUMER
    assert world.owned() == "aaaa"


def test_the_reasons_for_a_rebalance() -> None:
    """D6: section 9, steps 3.1 to 3.5."""
    zero, partition = DraftPartition("t", "1-0"), DraftPartition("t", "1-1")
    plan, partitions = {zero: "a-0", partition: "b-0"}, {"t": ["1-0", "1-1"]}
    gone = DraftPartition("t", "1-7")
    assert rebalance_reason(plan, {}, partitions) == "no registered ownership"
    assert rebalance_reason(plan, {zero: "a-0"}, partitions) == "partitions without an owner"
    assert rebalance_reason(plan, plan | {gone: "a-0"}, partitions) == "partitions that no longer exist"
    assert rebalance_reason(plan, {zero: "b-0", partition: "a-0"}, partitions) == "another ownership"
    assert rebalance_reason(plan, plan, partitions) is None
    assert rebalance_reason({}, {}, {}) is None


def test_a_late_answer_of_an_attempt_before_is_not_one_of_this() -> None:
    """A Start that was answered late does not stand for the Stop that is awaited."""
    world = World(2, consumers="ab")
    world.cut("b", "broker-1")
    world.join("c")
    world.run(500)
    broker = world.nodes["broker-1"].machine
    group = broker.groups["g"]
    assert group.waiting == {"b"}
    member = group.members["b"]
    stop, start = member.pending, Draft2StartFetcherRequest(consumer_id="b")
    broker._on_Draft2StartFetcherResponse(member, Draft2StartFetcherResponse(consumer_id="b"), start)
    world.drain("broker-1")
    world.run(500)
    assert group.waiting == {"b"}
    assert world.owned() == "--bb"
    broker._on_Draft2StopFetcherResponse(member, Draft2StopFetcherResponse(consumer_id="b"), stop)
    world.drain("broker-1")
    world.run(500)
    assert group.waiting == {"b"}  # for its Start
    assert len(world.sent(Draft2StartFetcherRequest, to="c")) == 1


def test_a_start_reaches_the_threads_that_it_names() -> None:
    world = World(2)
    consumer = world.join("a", topic_count='{"t":3}')
    world.run(200)
    assert consumer.threads == {
        DraftPartition("t", "1-0"): "a-0", DraftPartition("t", "1-1"): "a-0",
        DraftPartition("t", "1-2"): "a-1", DraftPartition("t", "1-3"): "a-2",
    }  # fmt: skip
    (started,) = [entry.what for entry in world.history if isinstance(entry.what, FetchersStarted)]
    assert started.threads == consumer.threads


def test_starts_bring_the_cluster_as_it_is() -> None:
    """A broker of its list that has gone is not asked again, once a Start has come without it."""
    world = World(2, brokers=3, consumers="a")
    world.crash("broker-3")
    world.run(10_000)
    world.join("b")
    world.run(200)
    assert sorted(world.nodes["a"].machine.cluster) == [1, 2]


def test_a_coordinator_that_is_shut_down_closes_its_elector_first() -> None:
    """Section 12.7: another one is elected at once, and the consumers find it as soon as their connections
    end; after a crash that takes a session timeout of ZooKeeper."""
    elected, began = {}, {}
    for text in ("shut down", "crash"):
        world = World(2, consumers="ab")
        world.run(5_000)
        began[text] = world.now
        if text == "crash":
            world.crash("broker-1")
        else:
            world.nodes["broker-1"].machine.shut_down()
            world.drain("broker-1")
        world.run(30_000)
        assert (world.owned(), world.overlaps()) == ("aabb", {})
        elected[text] = world.noted("Elected")[-1].time - began[text]
        order = [one.what.name for one in world.noted("Resigned") + world.noted("ShutDown")]
        assert order == ([] if text == "crash" else ["Resigned", "ShutDown"])
    assert elected["shut down"] < 20
    assert elected["crash"] > 5_000


def test_a_broker_that_was_shut_down_takes_no_registration() -> None:
    world = World(2, consumers="a")
    world.nodes["broker-1"].machine.shut_down()
    world.drain("broker-1")
    world.run(20)
    world.history.clear()
    consumer = world.join("b")
    consumer.reach_coordinator(0, 1, world.known)
    world.drain("b")
    world.run(20_000)
    assert {message.name for message in world.sent(Draft2RegisterConsumerResponse)} == {"broker-2"}
    assert world.owned() == "aabb"


@pytest.mark.parametrize(("thirds", "losses"), [(3, 0), (1, 1)])
def test_a_soft_failure_is_noticed_within_a_third_of_the_session(thirds: int, losses: int) -> None:
    """Section 8.5 against 10. By 8.5 two owners are ruled out sooner; but pings come once in that time, so
    that one which takes longer than the one before it counts as a lost coordinator."""
    world = World(2)
    world.join("a", silent_thirds=thirds)
    world.run(5_000)
    world.cut("a", "broker-1")
    world.run(6_000 * thirds // 3 + 2)
    assert world.owned() == "----"
    quiet = World(2, latency=(1, 40), seed=3)
    quiet.join("a", silent_thirds=thirds)
    quiet.run(60_000)
    assert bool(quiet.noted("Silence")) is bool(losses)


def test_retries_without_end_succeed_once_the_consumer_answers() -> None:
    """Section 13: the backoff depends on the session timeout, and nothing is thrown."""
    world = World(2, consumers="ab", broker={"max_ping_retries": 100, "endless_retries": True})
    world.cut("b", "broker-1")
    world.topic("t", {number: [1] for number in range(5)})
    world.run(90_000)
    attempts = world.noted("RebalanceAttemptFailed")
    assert len(attempts) > 6
    assert {(after.time - before.time) // 100 for before, after in pairwise(attempts)} == {60}
    assert world.noted("ConsumerRebalanceFailedException") == []
    world.heal("b", "broker-1")
    world.run(20_000)
    assert world.owned() == "aaabb"


@pytest.mark.parametrize("delete", [False, True])
def test_groups_without_consumers_are_deleted(delete: bool) -> None:
    """Section 13, for groups with random names; what they had consumed is written before."""
    world = World(2, broker={"delete_empty_groups": delete})
    for name in "abc":
        world.join(name, group_id=f"console-{name}")
        world.run(200)
        world.consume(name, 5)
        world.run(3_000)
        world.crash(name)
    world.run(20_000)
    assert len(world.coordinator.groups) == (0 if delete else 3)
    assert world.read("/consumers/console-a/offsets/t/1-0") == b"5"
    world.join("d", group_id="console-a")
    world.run(200)
    assert "d" in world.owners[DraftPartition("t", "1-0")]


def test_consumers_commit_actively() -> None:
    """Section 13: before the next ping, and without auto-commit."""
    world = World(2)
    consumer = world.join("a", auto_commit=False)
    consumer.commit_offsets()  # it is not registered: there is nobody to ask
    world.run(200)
    assert world.sent(Draft2CommitOffsetResponse) == []
    world.consume("a", 7)
    consumer.commit_offsets()
    world.drain("a")
    world.run(20)
    (answer,) = world.sent(Draft2CommitOffsetResponse)
    assert answer.what.error_code == 0
    assert world.read("/consumers/g/offsets/t/1-0") == b"7"
    consumer.config = replace(consumer.config, consumer_id="x")
    consumer.commit_offsets()
    world.drain("a")
    world.run(20)
    assert world.sent(Draft2CommitOffsetResponse)[-1].what.error_code == DraftError.UNKNOWN_CONSUMER
    assert world.noted("CommitRefused")


def test_each_thread_reads_what_a_start_gives_it() -> None:
    world = World(2)
    consumer = world.join("a", topic_count='{"t":3}')
    world.run(200)
    for number in range(4):
        assert consumer.fetched(DraftPartition("t", f"1-{number}"), 1)
    assert [consumer.take("t", "a-0") for _ in range(3)] == [
        (DraftPartition("t", "1-0"), 0), (DraftPartition("t", "1-1"), 0), None
    ]  # fmt: skip
    assert consumer.take("t", "a-2") == (DraftPartition("t", "1-3"), 0)
    world.run(2_100)
    offsets = {part.partition: part.offset for part in world.sent(Draft2PingResponse)[-1].what.offset_info}
    assert offsets == {"1-0": 1, "1-1": 1, "1-2": 0, "1-3": 1}  # of 1-2, a-1 has taken nothing


def test_a_start_makes_a_wildcards_streams_again() -> None:
    """handleStartFetcherRequest, step 1 (WildcardStreamsHandler)."""
    world = World(2)
    consumer = world.join("a", topic_count="*2*t.*")
    world.run(200)
    streams = consumer.streams.all()
    assert consumer.fetched(DraftPartition("t", "1-3"), 5)
    world.topic("tt", {0: [1]})
    world.run(200)
    assert (len(consumer.streams.all()), consumer.streams.all() == streams) == (2, False)
    assert consumer.take("t", "a-1") is None
    assert consumer.fetched(DraftPartition("tt", "1-0"), 1)
    assert consumer.take("tt", "a-0") == (DraftPartition("tt", "1-0"), 0)


@pytest.mark.parametrize("auto_commit", [True, False])
def test_streams_that_are_created_once_more_go_on_where_the_consumer_was(auto_commit: bool) -> None:
    """KAFKA-242: no offset is incorrect after a second createMessageStreams; without auto-commit the
    application commits first."""
    world = World(2)
    consumer = world.join("a", auto_commit=auto_commit)
    world.join("b", auto_commit=auto_commit)
    world.topic("u", {0: [1]})
    world.run(200)
    world.consume("a", 8)
    world.history.clear()
    if not auto_commit:
        consumer.commit_offsets()
    consumer.subscribe('{"t":1,"u":1}')
    world.drain("a")
    world.run(5_000)
    assert world.owned() == "aabba"
    begun = {
        (partition.topic, partition.partition): offset
        for entry in world.history if isinstance(entry.what, FetchersStarted)
        for partition, offset in entry.what.partitions.items()
    }  # fmt: skip
    assert begun[("t", "1-0")] == begun[("t", "1-1")] == 8
    assert len(world.sent(Draft2CommitOffsetRequest)) == 1  # its own, or the application's
    assert world.read("/consumers/g/offsets/t/1-0") == b"8"
    assert world.overlaps() == {}


@pytest.mark.parametrize("overview", [False, True])
def test_rebalancing_can_be_disabled(overview: bool) -> None:
    """KAFKA-364: as while consumers are restarted. What happened meanwhile counts once it is enabled."""
    world = World(2, consumers="ab", overview=overview)
    coordinator = world.coordinator
    coordinator.disable_rebalancing("g")
    world.history.clear()
    world.join("c")
    world.topic("t", {number: [1] for number in range(6)})
    world.run(3_000)
    assert world.owned() == "aabb"
    assert world.sent(Draft2StopFetcherRequest) == world.noted("ConnectionBroken") == []
    world.join("d", group_id="other")
    world.run(200)
    assert "d" in world.owners[DraftPartition("t", "1-5")]  # the other group is not affected
    coordinator.enable_rebalancing("g")
    world.drain("broker-1")
    world.crash("d")
    world.run(5_000)
    assert world.owned() == "aabbcc"
    world.history.clear()
    coordinator.disable_rebalancing("g")
    coordinator.enable_rebalancing("g")
    assert not coordinator.groups["g"].queued  # as there was no reason
    world.drain("broker-1")
    world.run(200)
    assert world.sent(Draft2StartFetcherRequest) == world.noted("ConnectionBroken") == []


def test_nothing_of_consumers_is_in_zookeeper_but_owners_and_offsets() -> None:
    """ "Paths Stored in ZooKeeper": no ids; owners are persistent, and stay when all have died."""
    world = World(2, consumers="ab")
    world.consume("a", 3)
    world.run(15_000)
    paths = [path for path in world.tree.paths() if path.startswith("/consumers/")]
    assert {path.split("/")[3] for path in paths if path.count("/") > 2} == {"offsets", "owners"}
    for name in ("a", "b", "broker-1", "broker-2"):
        world.crash(name)
    world.run(60_000)
    assert world.read("/consumers/g/owners/t/1-0") == b"a-0"
    assert world.read("/consumers/coordinator") is None


def test_a_consumer_that_finds_no_broker_reports_it_and_goes_on() -> None:
    """consumerStartup, steps 1.1 and 1.2: round after round, until one is there."""
    world = World(2, brokers=3)
    for number in (1, 2, 3):
        world.crash(f"broker-{number}")
    world.join("a")
    world.run(2_000)
    assert len(world.noted("NoBrokerAvailable")) > 2
    world.add_broker(3)
    world.run(30_000)
    assert world.owned() == "aaaa"


def test_a_partition_without_an_offset_begins_where_its_consumer_says() -> None:
    world = World(2)
    world.join("a", auto_offset_reset="largest")
    world.run(200)
    (start,) = world.sent(Draft2StartFetcherRequest)
    assert {part.offset for thread in start.what.ownership_info for part in thread.assigned_parts} == {-1}


def test_groups_go_to_the_handlers_in_turn() -> None:
    """addRebalanceRequest; a group that is done has no handler, so that its next one may be another."""
    world = World(2, broker={"rebalance_handlers": 2})
    coordinator, handlers = world.coordinator, []
    for name in "abc":
        world.join(name, group_id=f"g-{name}")
        for _ in range(20):
            world.run(1)
            if f"g-{name}" in coordinator.groups:
                break
        handlers.append(coordinator.groups[f"g-{name}"].handler)
        world.run(100)
        assert coordinator.groups[f"g-{name}"].handler is None
    assert handlers == [0, 1, 0]


def test_a_consumer_has_nothing_to_do_with_zookeeper() -> None:
    """Section 12.6; of a wildcard's topics it knows by what it is started with."""
    world = World(2)
    world.join("a", topic_count="*1*t.*")
    world.cut_zookeeper("a")
    world.run(200)
    world.topic("tt", {0: [1]})
    world.run(30_000)
    assert world.owners[DraftPartition("tt", "1-0")] == {"a"}
    assert not world.nodes["a"].held


def test_a_consumer_that_comes_during_a_rebalance_is_in_the_next() -> None:
    """Section 12.7: an attempt's members are those it began with."""
    world = World(2, consumers="a")
    world.blocked.add(("a", "broker-1"))
    world.join("b")
    world.run(500)
    world.join("c")
    world.run(500)
    world.history.clear()
    world.heal("a", "broker-1")
    world.run(2_000)
    starts = [message.peer for message in world.sent(Draft2StartFetcherRequest)]
    assert sorted(starts[:2]) == ["a", "b"]
    assert sorted(starts[2:]) == ["a", "b", "c"]
    assert world.owned() == "aabc"


def test_each_broker_that_refuses_a_connection_is_an_error_in_the_log() -> None:
    """consumerStartup, step 1.1: in turn, until one accepts."""
    world = World(2, brokers=4)
    for number in (1, 2):
        world.crash(f"broker-{number}")
    world.join("a")
    world.run(200)
    refused = [entry.what.text for entry in world.noted("BrokerUnreachable")]
    assert refused[:2] == ["broker-1:9092", "broker-2:9092"]
    assert set(refused) == set(refused[:2])
    world.run(20_000)
    assert world.owned() == "aaaa"


def test_a_consumer_that_shuts_down_answers_its_ping_though_its_fetchers_failed() -> None:
    """Section 11, PingRequest: step 1 comes before step 2."""
    world = World(2, consumers="ab")
    consumer = world.nodes["a"].machine
    consumer.consumed(DraftPartition("t", "1-0"), 7)
    consumer.fail_fetchers()
    consumer.shut_down()
    world.drain("a")
    world.history.clear()
    world.run(4_000)
    answers = [entry for entry in world.sent(Draft2PingResponse) if entry.name == "a"]
    assert len(answers) == 2
    assert 7 in [part.offset for part in answers[0].what.offset_info]
    world.run(10_000)
    assert world.owned() == "bbbb"
    assert len(world.sent(Draft2RegisterConsumerResponse, to="a")) == 0


def test_a_handler_has_a_queue_of_a_fixed_size() -> None:
    """Section 5: what is put into a full queue waits, and is done in the order in which it came."""
    settings = {"rebalance_handlers": 2, "rebalance_queue_size": 1, "handler_us": 200_000}
    world = World(2, broker=settings)
    queues = world.coordinator._queues
    assert len(queues) == 2
    names = [f"g{number}" for number in range(8)]
    longest = waiting = 0
    for name in names:
        world.join(name, group_id=name)
        world.run(10)
        longest = max(longest, *(len(queue.groups) for queue in queues))
        waiting = max(waiting, *(len(queue.blocked) for queue in queues))
    assert (longest, waiting) == (1, 2)
    assert len(world.noted("RebalanceQueueFull")) == 4
    world.run(5_000)
    starts = [entry.name for entry in world.history if isinstance(entry.what, FetchersStarted)]
    assert starts[::2] == names[::2]
    assert starts[1::2] == names[1::2]


def test_a_coordinator_that_resigns_empties_its_queues() -> None:
    """Those that wait for room too, and a group of another office moves up."""
    queue = RebalanceQueue(1)
    assert [queue.put(name) for name in ("a", "b", "c")] == [True, False, False]
    queue.remove({"a", "b"})
    assert queue.take() == "c"
    assert queue.take() is None


@pytest.mark.parametrize(("kept", "deleted"), [((), (0, 1, 2)), ((1,), (0, 2))])
def test_the_owner_of_each_partition_that_is_read_no_more_is_deleted(
    kept: tuple[int, ...], deleted: tuple[int, ...]
) -> None:
    before = {DraftPartition("t", f"1-{number}"): "g_a-0" for number in range(3)}
    plan = {DraftPartition("t", f"1-{number}"): "g_a-0" for number in kept}
    deletions = next(write_owners("g", plan, before))
    assert deletions == tuple(DeleteNode(f"/consumers/g/owners/t/1-{number}") for number in deleted)
