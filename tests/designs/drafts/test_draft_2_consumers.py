"""The detailed design's consumer: its startup, section 7, and how it handles requests, section 11."""

from __future__ import annotations

from typing import Any

import pytest

from coordwire.designs.drafts.actions import (
    AskZooKeeper,
    Connect,
    Disconnect,
    DraftPartition,
    FetchersStarted,
    FetchersStopped,
)
from coordwire.designs.drafts.consumer_streams import PartitionProgress
from coordwire.designs.drafts.draft_settings import BrokerAddress, DraftError
from coordwire.messages.draft_2 import (
    Draft2Broker,
    Draft2ClusterMetadataRequest,
    Draft2ClusterMetadataResponse,
    Draft2Ownership,
    Draft2PartitionOffset,
    Draft2PingRequest,
    Draft2PingResponse,
    Draft2RegisterConsumerRequest,
    Draft2RegisterConsumerResponse,
    Draft2StartFetcherRequest,
    Draft2StartFetcherResponse,
    Draft2StopFetcherRequest,
    Draft2StopFetcherResponse,
)
from tests.designs.drafts.cluster import Node
from tests.designs.drafts.seen import Seen, run_until
from tests.designs.drafts.worlds import World


def hosts(seen: Seen) -> list[str]:
    """The brokers that a consumer has connected to, in order."""
    return [one.what.host for one in seen.of(Connect)]


def ask(world: World, name: str, request: Any) -> list[Any]:
    """Let the coordinator send a consumer a request; what the consumer did."""
    coordinator = world.coordinator
    seen = Seen(world.nodes[name].machine)
    coordinator.send_to(coordinator.groups["g"].members[name], request)
    world.drain("broker-1")
    world.run(2)
    return [getattr(one.what, "message", one.what) for one in seen]


def offsets(*parts: tuple[str, int], topic: str = "t") -> list[Draft2PartitionOffset]:
    return [Draft2PartitionOffset(topic=topic, partition=name, offset=offset) for name, offset in parts]


# --- startup ---


def test_brokers_are_tried_in_turn_and_each_that_cannot_be_reached_is_logged() -> None:
    """consumerStartup, steps 1.1 and 1.2: without an end, until it is shut down."""
    world = World(2, brokers=3)
    for number in (1, 2, 3):
        world.crash(f"broker-{number}")
    consumer = world.join("a", retry_backoff_ms=500)
    seen = Seen(consumer)
    world.run(2_100)
    assert hosts(seen) == ["broker-2", "broker-3"] + ["broker-1", "broker-2", "broker-3"] * 4
    errors = [text for _, text in seen.noted("BrokerUnreachable")]
    assert errors == [f"broker-{number}:9092" for number in (1, 2, 3)] * 5
    assert [text for _, text in seen.noted("NoBrokerAvailable")] == ["1, 2, 3"] * 5
    world.run(60_000)
    assert len(hosts(seen)) > 300
    consumer.shut_down()
    count = len(hosts(seen))
    world.run(10_000)
    assert len(hosts(seen)) == count
    assert consumer.next_deadline() is None


def test_any_broker_tells_of_all_brokers_and_of_the_coordinator() -> None:
    """The coordinator is not the first of the list, and not the broker that is asked."""
    world = World(2, brokers=3)
    world.crash("broker-1")
    world.run(10_000)
    assert world.read("/consumers/coordinator") == b"2"
    world.add_broker(1)
    world.run(100)
    consumer = world.join("a")
    seen = Seen(consumer)
    assert consumer.state.name == "CONNECTING"
    run_until(world, lambda: bool(world.sent(Draft2ClusterMetadataResponse)))
    (request,) = world.sent(Draft2ClusterMetadataRequest)
    assert (request.name, request.peer, request.what.group_id) == ("a", "broker-1", "")
    (answer,) = world.sent(Draft2ClusterMetadataResponse)
    brokers = [Draft2Broker(id=number, host=f"broker-{number}", port=9092) for number in (1, 2, 3)]
    assert answer.what == Draft2ClusterMetadataResponse(coordinator_id=2, brokers_info=brokers)
    assert consumer.cluster == {number: BrokerAddress(f"broker-{number}", 9092) for number in (1, 2, 3)}
    assert hosts(seen) == ["broker-2"]
    assert len(seen.of(Disconnect)) == 1  # from the broker that it asked
    assert consumer.state.name == "REACHING"
    world.run(40)
    (registration,) = world.sent(Draft2RegisterConsumerRequest)
    assert (registration.name, registration.peer) == ("a", "broker-2")
    assert registration.what == Draft2RegisterConsumerRequest(
        group_id="g", consumer_id="a", topic_count='{"t":1}', auto_commit=True, auto_offset_rest="smallest",
        session_timeout_ms=6_000,
    )  # fmt: skip
    assert world.owned() == "aaaa"


def test_the_cluster_is_that_of_the_last_response() -> None:
    """Brokers that have gone are forgotten, others are learnt of."""
    world = World(2, brokers=3)
    consumer = world.join("a")
    world.run(100)
    for ids, error, coordinator in (((2, 7), 0, 7), ((1, 2), 0, 9), ((1, 3), 15, 1)):
        seen = Seen(consumer)
        consumer._on_Draft2ClusterMetadataResponse(Draft2ClusterMetadataResponse(
            error_code=error, coordinator_id=coordinator,
            brokers_info=[Draft2Broker(id=number, host=f"h{number}", port=number) for number in ids],
        ))  # fmt: skip
        assert consumer.cluster == {number: BrokerAddress(f"h{number}", number) for number in ids}
        reaches = coordinator in ids and not error
        assert [(one.what.host, one.what.port) for one in seen.of(Connect)] == [("h7", 7)] * reaches
        assert consumer.state.name == ("REACHING" if reaches else "WAITING")


def test_a_registration_says_what_the_consumer_was_told_to() -> None:
    world = World(2)
    world.join("a", group_id="h", topic_count="*2*t", auto_commit=False, auto_offset_reset="largest",
               session_timeout_ms=12_345)  # fmt: skip
    world.run(20)
    (registration,) = world.sent(Draft2RegisterConsumerRequest)
    assert registration.what == Draft2RegisterConsumerRequest(
        group_id="h", consumer_id="a", topic_count="*2*t", auto_commit=False, auto_offset_rest="largest",
        session_timeout_ms=12_345,
    )  # fmt: skip


def test_a_refused_registration_leads_back_to_the_brokers_in_their_turn() -> None:
    world = World(2, consumers="a")
    consumer = world.join("x", consumer_id="a")
    seen = Seen(consumer)
    run_until(world, lambda: bool(seen.noted("RegistrationRefused")))
    assert (consumer.state.name, consumer._connection, consumer.fetching) == ("WAITING", None, False)
    refused_at = world.now
    assert len(seen.of(Disconnect)) == 2
    world.run(520)
    assert hosts(seen) == ["broker-1", "broker-2", "broker-1"]  # the coordinator; the next broker; again
    assert seen.of(Connect)[1].time == refused_at + 500


def test_a_registered_consumer_fetches_nothing_before_its_start() -> None:
    world = World(2)
    world.coordinator.disable_rebalancing("g")
    consumer = world.join("a")
    seen = Seen(consumer)
    run_until(world, lambda: bool(world.sent(Draft2RegisterConsumerResponse)))
    (answer,) = world.sent(Draft2RegisterConsumerResponse)
    assert answer.what == Draft2RegisterConsumerResponse()
    world.run(5_000)
    assert consumer.state.name == "REGISTERED"
    assert (consumer.fetching, consumer.owned, seen.of(FetchersStarted), world.owned()) == (False, {}, [], "")
    assert len(world.sent(Draft2PingResponse)) == 2  # but it answers what it is asked
    world.coordinator.enable_rebalancing("g")
    world.drain("broker-1")
    world.run(20)
    assert (consumer.fetching, world.owned()) == (True, "aaaa")


def test_a_consumer_never_asks_zookeeper() -> None:
    world = World(2)
    ask, asked = world._ask, set()

    def asks(node: Node, action: AskZooKeeper) -> None:
        asked.add(node.name)
        ask(node, action)

    world._ask = asks  # type: ignore[method-assign]
    consumer = world.join("a", topic_count="*1*t.*")
    world.run(100)
    world.topic("tt", {0: [1]})
    world.run(10_000)
    world.crash("broker-1")
    world.run(20_000)
    assert consumer.owned.keys() == {DraftPartition("t", f"1-{n}") for n in range(4)} | {
        DraftPartition("tt", "1-0")
    }  # fmt: skip
    assert asked == {"broker-1", "broker-2"}


def test_a_lost_connection_ends_the_fetchers_and_leads_to_the_new_coordinator() -> None:
    world = World(2, brokers=3, consumers="a")
    world.run(1_000)
    consumer = world.nodes["a"].machine
    seen = Seen(consumer)
    world.crash("broker-1")
    world.run(2)
    assert [type(one.what).__name__ for one in seen] == ["FetchersStopped"]
    assert (consumer.owned, consumer.fetching, consumer.state.name) == ({}, False, "WAITING")
    world.run(30_000)
    coordinator = int(world.read("/consumers/coordinator") or b"0")
    assert coordinator in (2, 3)
    assert hosts(seen)[0] == "broker-2"  # the one after that it asked first
    assert hosts(seen)[-1] == f"broker-{coordinator}"
    assert world.owned() == "aaaa"


# --- requests ---


def test_an_answer_to_a_ping_has_each_partitions_offset_with_auto_commit_alone() -> None:
    for auto_commit in (True, False):
        world = World(2)
        world.topic("u", {0: [2]})
        consumer = world.join("a", auto_commit=auto_commit, topic_count='{"t":1,"u":1}')
        world.run(200)
        for number in range(4):
            consumer.consumed(DraftPartition("t", f"1-{number}"), 10 + number)
        consumer.consumed(DraftPartition("t", "1-9"), 99)  # which it does not own
        parts = offsets(*((f"1-{number}", 10 + number) for number in range(4)))
        parts += offsets(("2-0", 0), topic="u")
        assert ask(world, "a", Draft2PingRequest(consumer_id="a")) == [
            Draft2PingResponse(consumer_id="a", offset_info=parts if auto_commit else [])
        ]
        last = world.sent(Draft2PingResponse)[-1]
        assert len(last.what.offset_info) == (5 if auto_commit else 0)
        assert consumer.fetching
        (answer,) = ask(world, "a", Draft2PingRequest(consumer_id="b"))
        assert (answer.error_code, answer.consumer_id) == (DraftError.UNKNOWN_CONSUMER, "a")


@pytest.mark.parametrize("auto_commit", [True, False])
def test_a_stop_ends_all_fetchers_cleans_the_queues_and_brings_the_offsets(auto_commit: bool) -> None:
    world = World(2)
    consumer = world.join("a", topic_count='{"t":2}', auto_commit=auto_commit)
    world.run(200)
    names = [DraftPartition("t", f"1-{number}") for number in range(4)]
    for name in names:
        consumer.fetchers.leader_found(name, "broker-1" if name == names[0] else "broker-2")
        consumer.fetched(name, 5)
    assert consumer.take("t", "a-0") == (names[0], 0)
    assert len(consumer.fetchers.fetchers) == 2
    streams = consumer.streams.all()
    assert [stream.has_room for stream in streams] == [True, False]
    reported = offsets(("1-0", 1), ("1-1", 0), ("1-2", 0), ("1-3", 0))
    done = ask(world, "a", Draft2StopFetcherRequest(consumer_id="a"))
    assert done == [
        FetchersStopped(dict(zip(names, (1, 0, 0, 0), strict=True))),
        Draft2StopFetcherResponse(consumer_id="a", offset_info=reported if auto_commit else []),
    ]
    assert world.sent(Draft2StopFetcherResponse)[-1].what.offset_info == (reported if auto_commit else [])
    assert (consumer.fetching, consumer.fetchers.fetchers, consumer.fetchers.partitions) == (False, {}, {})
    assert consumer.fetchers.without_leader == set()
    assert consumer.take("t", "a-0") is consumer.take("t", "a-1") is None  # what waited was not consumed
    assert all(stream.has_room for stream in streams)
    assert consumer.state.name == "REGISTERED"
    assert consumer._connection is not None
    assert not any(world.owners.values())


def start(*threads: tuple[str, list[Draft2PartitionOffset]], name: str = "a") -> Draft2StartFetcherRequest:
    return Draft2StartFetcherRequest(
        consumer_id=name,
        ownership_info=[
            Draft2Ownership(consumer_thread_id=thread, assigned_parts=parts) for thread, parts in threads
        ],
        brokers_info=[Draft2Broker(id=2, host="broker-2", port=9092), Draft2Broker(id=8, host="h", port=5)],
    )


def test_a_start_is_what_the_consumer_reads_from_then_on() -> None:
    """handleStartFetcherRequest, steps 2 to 5."""
    world = World(2)
    consumer = world.join("a", topic_count='{"t":2}')
    world.run(200)
    ask(world, "a", Draft2StopFetcherRequest(consumer_id="a"))
    parts = [DraftPartition("t", name) for name in ("1-3", "1-0", "1-1")]
    begun = dict(zip(parts, (30, -1, 11), strict=True))
    threads = dict(zip(parts, ("a-1", "a-1", "a-0"), strict=True))
    request = start(("a-1", offsets(("1-3", 30), ("1-0", -1))), ("a-0", offsets(("1-1", 11))))
    done = ask(world, "a", request)
    assert done == [FetchersStarted(begun, threads), Draft2StartFetcherResponse(consumer_id="a")]
    assert (consumer.owned, consumer.threads, consumer.fetching) == (begun, threads, True)
    progress = {
        name: PartitionProgress(offset, offset) for name, offset in zip(parts, (30, 0, 11), strict=True)
    }
    assert consumer.fetchers.partitions == progress
    assert consumer.fetchers.without_leader == set(parts)
    assert consumer.cluster == {2: BrokerAddress("broker-2", 9092), 8: BrokerAddress("h", 5)}
    assert consumer.fetched(parts[0], 31)
    assert (consumer.take("t", "a-0"), consumer.take("t", "a-1")) == (None, (parts[0], 30))
    # Another one replaces all of it.
    done = ask(world, "a", start(("a-0", offsets(("1-2", 4)))))
    assert [type(one).__name__ for one in done] == [
        "FetchersStopped", "FetchersStarted", "Draft2StartFetcherResponse"
    ]  # fmt: skip
    two = DraftPartition("t", "1-2")
    assert (consumer.owned, consumer.threads) == ({two: 4}, {two: "a-0"})
    assert world.owned() == "--a-"


def test_a_request_for_another_consumer_changes_nothing() -> None:
    world = World(2, consumers="a")
    consumer = world.nodes["a"].machine
    before = (dict(consumer.owned), dict(consumer.threads), dict(consumer.cluster))
    (answer,) = ask(world, "a", start(("x-0", offsets(("1-0", 3))), name="x"))
    assert answer == Draft2StartFetcherResponse(error_code=25, consumer_id="a")
    (answer,) = ask(world, "a", Draft2StopFetcherRequest(consumer_id="x"))
    assert (answer.error_code, answer.consumer_id) == (25, "a")
    assert (consumer.owned, consumer.threads, consumer.cluster) == before
    assert consumer.fetching


def test_a_wildcards_streams_are_made_again_at_each_start_and_others_once() -> None:
    for topic_count, remade in (("*2*t.*", True), ("!2!u", True), ('{"t":2}', False)):
        world = World(2)
        consumer = world.join("a", topic_count=topic_count)
        world.run(200)
        streams = consumer.streams.all()
        assert len(streams) == 2
        for _ in range(2):
            ask(world, "a", Draft2StopFetcherRequest(consumer_id="a"))
            assert consumer.streams.all() == streams
            ask(world, "a", start(("a-0", offsets(("1-0", 3)))))
            assert (topic_count, consumer.streams.all() != streams) == (topic_count, remade)
            assert len(consumer.streams.all()) == 2
            streams = consumer.streams.all()


def test_a_shutdown_waits_for_the_ping_that_has_the_offsets_to_be_read() -> None:
    """handlePingRequest, step 1: with auto-commit the next ping after the one that it answers."""
    for auto_commit, pings in ((False, 1), (True, 2)):
        world = World(2)
        consumer = world.join("a", auto_commit=auto_commit)
        world.run(200)
        world.consume("a", 7)
        consumer.shut_down()
        seen = Seen(consumer)
        world.run(1)
        assert (consumer.state.name, consumer.fetching) == ("REGISTERED", True)
        for number in range(1, pings + 1):
            assert consumer.state.name == "REGISTERED"
            run_until(world, lambda seen=seen, number=number: (  # type: ignore[misc]
                len(seen.messages(Draft2PingResponse)) == number))  # fmt: skip
        assert consumer.state.name == "CLOSED"
        assert not any(world.owners.values())
        kinds = [type(getattr(one.what, "message", one.what)).__name__ for one in seen]
        assert kinds == ["Draft2PingResponse"] * pings + ["FetchersStopped", "Disconnect"]
        world.run(20)
        assert len(world.sent(Draft2PingResponse)) == pings  # the last one was answered as well
        assert world.coordinator.groups["g"].members == {}
        recorded = world.coordinator.groups["g"].offsets
        assert set(recorded.values()) == ({7} if auto_commit else set())
        world.run(10_000)
        assert len(seen.of(Connect)) == 0


def test_fetchers_out_of_range_make_the_next_ping_a_reconnection() -> None:
    """handlePingRequest, step 2: no answer, no connection, no fetchers; it triggers a rebalance."""
    world = World(2, consumers="ab")
    consumer = world.nodes["a"].machine
    consumer.fail_fetchers()
    seen, coordinator = Seen(consumer), Seen(world.coordinator)
    connection = consumer._connection
    run_until(world, lambda: bool(seen.of(Disconnect)))
    assert [one.what.connection for one in seen.of(Disconnect)] == [connection]
    assert seen.messages(Draft2PingResponse) == []
    assert (consumer.state.name, consumer.owned, consumer.fetching) == ("WAITING", {}, False)
    world.run(20)
    assert [one.what.consumer_id for one in coordinator.messages(Draft2StopFetcherRequest)] == ["b"]
    world.run(1_000)
    assert len(seen.messages(Draft2RegisterConsumerRequest)) == 1
    assert [one.what.consumer_id for one in coordinator.messages(Draft2StartFetcherRequest)] == [
        "b",
        "b",
        "a",
    ]
    assert world.owned() == "aabb"
    world.run(5_000)
    assert len(seen.messages(Draft2PingResponse)) >= 2  # once, not at each ping


def test_offsets_that_a_consumer_commits_are_written_before_the_next_interval() -> None:
    """Section 13; the coordinator reads and writes the channel at once."""
    world = World(2, consumers="a", broker={"offset_commit_interval_ms": 1_000_000})
    consumer = world.nodes["a"].machine
    for number in range(4):
        consumer.consumed(DraftPartition("t", f"1-{number}"), 20 + number)
    consumer.commit_offsets()
    world.drain("a")
    world.run(20)
    written = [world.read(f"/consumers/g/offsets/t/1-{number}") for number in range(4)]
    assert written == [b"20", b"21", b"22", b"23"]
    group = world.coordinator.groups["g"]
    assert group.offsets[DraftPartition("t", "1-2")] == 22
    assert group.unsaved == {}
    assert consumer._connection is not None
    assert len(world.sent(Draft2PingResponse)) == 0
