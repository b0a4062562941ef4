"""The detailed design's failure detection, offsets and retries: sections 5, 8, 9 and 12, with exact times."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from coordwire.designs.drafts.actions import Disconnect, DraftPartition, FetchersStopped
from coordwire.designs.drafts.draft_settings import BrokerSettings
from coordwire.designs.drafts.zookeeper_operations import CreateNode, SetData
from coordwire.messages.draft_2 import (
    Draft2PartitionOffset,
    Draft2PingRequest,
    Draft2PingResponse,
    Draft2StartFetcherRequest,
    Draft2StopFetcherRequest,
    Draft2StopFetcherResponse,
)
from tests.designs.drafts.seen import Seen, run_until
from tests.designs.drafts.worlds import World

ZERO = DraftPartition("t", "1-0")


def member(world: World, name: str, group: str = "g") -> Any:
    return world.coordinator.groups[group].members[name]


def times(done: list[Any]) -> list[int]:
    return [one.time for one in done]


def is_set(world: World, kind: str, name: str) -> bool:
    """Whether the coordinator has a timer of a consumer."""
    return bool(world.coordinator._timers.is_set((kind, "g", name)))


def test_each_consumer_is_pinged_every_third_of_its_own_session() -> None:
    world = World(2)
    seen = Seen(world.coordinator)
    registered = {}
    for name, session_ms in (("a", 6_000), ("b", 9_000)):
        world.join(name, session_timeout_ms=session_ms)
        run_until(world, lambda name=name: "g" in world.coordinator.groups  # type: ignore[misc]
                  and name in world.coordinator.groups["g"].members)  # fmt: skip
        registered[name] = world.now
        world.run(100)
    world.run(20_000)
    for name, third in (("a", 2_000), ("b", 3_000)):
        pings = seen.messages(Draft2PingRequest, name)
        expected = list(range(registered[name] + third, world.now + 1, third))
        assert times(pings) == expected
        assert {ping.what.num_retries for ping in pings} == {0}
    assert {ping.what.consumer_id for ping in seen.messages(Draft2PingRequest)} == {"a", "b"}


def test_a_ping_has_two_thirds_of_the_session_for_its_answer() -> None:
    """Section 8, steps 1, 3 and 4: one more than the retries that are allowed, then the consumer is removed,
    its connection closed, and its group rebalanced."""
    world = World(2, consumers="a", broker={"max_ping_retries": 2})
    world.join("b", session_timeout_ms=9_000)
    world.run(100)
    a, group = member(world, "a"), world.coordinator.groups["g"]
    run_until(world, lambda: a.pinged)
    assert is_set(world, "pong", "a")
    run_until(world, lambda: not a.pinged)
    assert not is_set(world, "pong", "a")  # the answer clears the watcher
    assert a.failures == 0
    connection = a.connection
    world.cut("a", "broker-1")
    seen = Seen(world.coordinator)
    run_until(world, lambda: a.pinged)
    pinged = world.now
    assert is_set(world, "pong", "a")
    for number in (1, 2, 3):
        world.run(3_999)
        assert (a.failures, number) == (number - 1, number)
        assert "a" in group.members
        world.run(1)
        assert a.failures == number
    pings = seen.messages(Draft2PingRequest, "a")
    assert times(pings) == [pinged, pinged + 4_000, pinged + 8_000]  # none while one waits
    assert [ping.what.num_retries for ping in pings] == [0, 1, 2]
    assert seen.noted("ConsumerFailed") == [(pinged + 12_000, "g/a")]
    assert [done.time for done in seen.of(Disconnect) if done.what.connection == connection] == [world.now]
    assert connection not in world.nodes["broker-1"].host.connections
    assert (a.connection, list(group.members)) == (None, ["b"])
    assert connection not in world.coordinator._consumers
    assert not any(is_set(world, kind, "a") for kind in ("ping", "pong", "answer"))
    world.run(20)
    (stop,) = seen.messages(Draft2StopFetcherRequest)
    assert stop.what.consumer_id == "b"
    world.run(30_000)
    assert times(seen.messages(Draft2PingRequest, "a")) == times(pings)
    assert world.owned() == "bbbb"


def test_an_answer_begins_the_count_of_failures_anew() -> None:
    world = World(2, consumers="a", broker={"max_ping_retries": 3})
    a = member(world, "a")
    for _ in range(2):
        world.blocked.add(("a", "broker-1"))  # what a answers waits
        run_until(world, lambda: a.failures == 2)
        world.heal("a", "broker-1")
        run_until(world, lambda: a.failures == 0)
    assert world.noted("ConsumerFailed") == []


def test_consumers_of_one_id_in_two_groups_have_watchers_of_their_own() -> None:
    world = World(2, broker={"max_ping_retries": 0})
    for process, group in (("one", "g"), ("two", "h")):
        world.join(process, process=process, consumer_id="same", group_id=group)
        world.run(100)
    assert [len(one.members) for one in world.coordinator.groups.values()] == [1, 1]
    world.cut("one", "broker-1")
    world.run(20_000)
    assert [note.what.text for note in world.noted("ConsumerFailed")] == ["g/same"]
    assert len(world.coordinator.groups["h"].members) == 1


def test_a_stop_has_two_thirds_of_its_consumers_session_for_its_answer() -> None:
    """And so the attempt; each retry comes after the backoff, and the last failure goes to the log."""
    for session_ms, backoff in ((6_000, 500), (9_000, 700)):
        world = World(2, consumers="a", broker={
            "max_ping_retries": 100, "rebalance_backoff_ms": backoff, "max_rebalance_retries": 2
        })  # fmt: skip
        world.join("b", session_timeout_ms=session_ms)
        world.run(200)
        world.cut("b", "broker-1")
        seen = Seen(world.coordinator)
        world.topic("t", {number: [1] for number in range(5)})
        run_until(world, lambda seen=seen: bool(seen.messages(Draft2StopFetcherRequest)))  # type: ignore[misc]
        began, due = world.now, session_ms * 2 // 3
        assert is_set(world, "answer", "b")
        world.run(3)
        assert not is_set(world, "answer", "a")  # it has answered
        world.run(40_000)
        failed = times(seen.noted("RebalanceAttemptFailed"))
        stops = times(seen.messages(Draft2StopFetcherRequest, "b"))
        assert len(failed) == len(stops) == 3
        assert failed[0] == began + due
        for stop, failure in zip(stops, failed, strict=True):
            assert failure - stop == due
        for failure, stop in zip(failed, stops[1:], strict=False):
            assert backoff < stop - failure <= backoff + 10  # ZooKeeper is read before
        assert seen.noted("ConsumerRebalanceFailedException") == [(failed[-1], "g after 2 retries")]
        assert seen.messages(Draft2StartFetcherRequest) == []
        group = world.coordinator.groups["g"]
        assert (group.handler, group.queued) == (None, False)


def test_a_start_has_two_thirds_of_its_consumers_session_for_its_answer() -> None:
    world = World(2, consumers="ab", broker={"max_ping_retries": 100, "rebalance_backoff_ms": 600})
    seen = Seen(world.coordinator)
    world.topic("t", {number: [1] for number in range(5)})
    run_until(world, lambda: bool(seen.messages(Draft2StartFetcherRequest)))
    world.cut("b", "broker-1")
    began = world.now
    assert is_set(world, "answer", "b")
    world.run(3_999)
    assert seen.noted("RebalanceAttemptFailed") == []
    assert len(seen.messages(Draft2StopFetcherRequest)) == 2
    world.run(1)
    assert seen.noted("RebalanceAttemptFailed") == [(began + 4_000, "g: attempt 1")]
    world.heal("b", "broker-1")
    world.run(1_000)
    again = seen.messages(Draft2StopFetcherRequest)[2:]
    assert [one.what.consumer_id for one in again] == ["a", "b"]
    assert 600 < again[0].time - began - 4_000 <= 610
    assert world.owned() == "aaabb"
    assert not is_set(world, "answer", "a")  # each answer clears its watcher
    assert not is_set(world, "answer", "b")
    world.run(10_000)
    assert len(seen.noted("RebalanceAttemptFailed")) == 1
    assert not world.coordinator.groups["g"].failed


def test_a_retry_begins_with_a_clean_bit() -> None:
    """A failed consumer fails the attempt at once; the next one succeeds, after one backoff."""
    world = World(2, consumers="abc", broker={"rebalance_backoff_ms": 1_000, "max_ping_retries": 100})
    seen = Seen(world.coordinator)
    world.cut("b", "broker-1")
    world.topic("t", {number: [1] for number in range(5)})
    run_until(world, lambda: world.coordinator.groups["g"].waiting == {"b"})
    world.crash("c")
    world.run(2)
    failed = seen.noted("RebalanceAttemptFailed")
    assert [(one.what, world.now - one.time <= 2) for one in failed] == [("g: attempt 1", True)]
    assert world.coordinator.groups["g"].failed
    world.heal("b", "broker-1")
    world.run(1_100)
    assert world.owned() == "aaabb"
    assert len(seen.noted("RebalanceAttemptFailed")) == 1
    stops = seen.messages(Draft2StopFetcherRequest, "a")
    assert 1_000 <= stops[1].time - failed[0].time <= 1_010


def test_a_request_over_a_closed_channel_fails_its_attempt_at_once() -> None:
    """sendStopFetcherRequest and sendStartFetcherRequest, section 12.7."""
    for kind in (Draft2StopFetcherRequest, Draft2StartFetcherRequest):
        world = World(2, consumers="ab")
        broker = world.coordinator
        seen, send = Seen(broker), broker.send_to

        def closes(consumer: Any, message: Any, kind: Any = kind, send: Any = send) -> bool:
            if isinstance(message, kind):
                consumer.connection = None
            return bool(send(consumer, message))

        broker.send_to = closes
        world.topic("t", {number: [1] for number in range(5)})
        world.run(30)
        (failed,) = seen.noted("RebalanceAttemptFailed")
        assert (failed.what, world.now - failed.time <= 30) == ("g: attempt 1", True)
        assert seen.messages(kind) == []


def test_a_coordinator_without_consumers_of_a_group_does_nothing_for_it() -> None:
    """The last one's failure rebalances nothing, and its registry stays."""
    world = World(2, consumers="a", broker={"max_ping_retries": 0})
    seen = Seen(world.coordinator)
    world.crash("a")
    world.run(20)
    group = world.coordinator.groups["g"]
    assert (group.members, group.queued, group.handler) == ({}, False, None)
    assert seen.messages(Draft2StopFetcherRequest) == []


def written(seen: Seen) -> list[tuple[int, str, bytes]]:
    """The offsets that a coordinator wrote."""
    return [
        (time, operation.path, operation.data)
        for kind in (SetData, CreateNode)
        for time, operation in seen.operations(kind, "/offsets/t/")
    ]


def test_the_committer_writes_each_groups_new_offsets_in_its_interval() -> None:
    """Sections 5 and 12: the bit is set by new offsets, and reset once they are written."""
    world = World(2, broker={"offset_commit_interval_ms": 5_000})
    elected = world.noted("Elected")[0].time
    for name, group in (("a", "g"), ("b", "h")):
        world.join(name, group_id=group, topic_count='{"t":1}')
        world.run(100)
    for group in ("g", "h"):
        world.run(200)
        for number in range(4):
            assert world.read(f"/consumers/{group}/offsets/t/1-{number}") is None  # nothing was consumed yet
    world.nodes["a"].machine.consumed(ZERO, 7)
    world.nodes["b"].machine.consumed(ZERO, 8)
    seen = Seen(world.coordinator)
    run_until(world, lambda: bool(world.coordinator.groups["g"].unsaved
                                  and world.coordinator.groups["h"].unsaved))  # fmt: skip
    assert world.coordinator.groups["g"].offsets[ZERO] == 7
    assert world.coordinator.groups["h"].offsets[ZERO] == 8
    assert written(seen) == []  # pings alone write nothing
    run_until(world, lambda: bool(written(seen)))
    began = world.now
    assert 0 <= began - elected - 5_000 <= 10  # after its startup, and every interval from then on
    world.run(20)
    assert world.read("/consumers/g/offsets/t/1-0") == b"7"
    assert world.read("/consumers/h/offsets/t/1-0") == b"8"
    assert world.coordinator.groups["g"].unsaved == world.coordinator.groups["h"].unsaved == {}
    seen.clear()
    world.cut("a", "broker-1")  # no new offsets: nothing is written again
    world.run(4_900)
    assert not [path for _, path, _ in written(seen) if path.startswith("/consumers/g/")]
    world.nodes["b"].machine.consumed(ZERO, 11)
    world.run(10_100)
    assert world.read("/consumers/h/offsets/t/1-0") == b"11"
    assert {time for time, path, _ in written(seen) if "/h/" in path} <= {
        began + 5_000 * n for n in (1, 2, 3)
    }
    assert not [path for _, path, _ in written(seen) if path.startswith("/consumers/g/")]


def test_offsets_come_with_pings_and_with_stops_of_partitions_that_are_there() -> None:
    world = World(2, consumers="a")
    broker, a = world.coordinator, member(world, "a")
    group, gone = broker.groups["g"], DraftPartition("t", "1-9")
    parts = [Draft2PartitionOffset(topic="t", partition=name, offset=5) for name in ("1-0", "1-9")]
    broker._on_Draft2PingResponse(a, Draft2PingResponse(offset_info=parts), Draft2PingRequest())
    assert (group.offsets[ZERO], group.unsaved[ZERO]) == (5, 5)
    parts[0].offset = 6
    broker._on_Draft2StopFetcherResponse(
        a, Draft2StopFetcherResponse(offset_info=parts), Draft2StopFetcherRequest()
    )
    assert (group.offsets[ZERO], group.unsaved[ZERO]) == (6, 6)
    assert gone not in group.offsets
    a.auto_commit = False
    parts[0].offset = 7
    broker._on_Draft2PingResponse(a, Draft2PingResponse(offset_info=parts), Draft2PingRequest())
    assert group.offsets[ZERO] == 6


def test_a_third_of_the_time_without_a_request_ends_the_fetchers() -> None:
    """Section 8.5; by section 10 the whole session timeout. The connection ends with them, and the consumer
    looks for the coordinator again."""
    for thirds, silence in ((1, 2_000), (3, 6_000)):
        world = World(2)
        consumer = world.join("a", silent_thirds=thirds)
        world.run(200)
        seen = Seen(consumer)
        heard = [entry.time for entry in world.history if entry.peer == "a"][-1]
        world.cut("a", "broker-1")
        world.run(heard + silence - 1 - world.now)
        assert world.owned() == "aaaa"
        connection = consumer._connection
        world.run(1)
        assert world.owned() == "----"
        assert [one.time for one in seen.of(FetchersStopped)] == [heard + silence]
        assert [one.what.connection for one in seen.of(Disconnect)] == [connection]
        assert (consumer._connection, consumer.owned, consumer.fetching) == (None, {}, False)
        assert consumer.state.name == "WAITING"
        world.heal("a", "broker-1")
        world.run(1_000)
        assert world.owned() == "aaaa"


def test_an_attempt_fails_at_once_with_a_consumer_that_is_removed() -> None:
    """It does not wait until the answer's time is over: the answer will not come."""
    world = World(2, consumers="ab")
    world.cut("b", "broker-1")
    seen = Seen(world.coordinator)
    world.topic("t", {number: [1] for number in range(5)})
    run_until(world, lambda: bool(seen.messages(Draft2StopFetcherRequest, "b")))
    world.run(3)
    assert is_set(world, "answer", "b")
    coordinator = world.coordinator
    coordinator.remove(coordinator.groups["g"].members["b"])
    world.drain("broker-1")
    world.run(1)
    assert times(seen.noted("RebalanceAttemptFailed"))[0] in (world.now - 1, world.now)
    world.run(3_000)
    assert world.owned() == "aa++a"  # it is cut off, and has not noticed


def test_every_kind_of_request_of_the_coordinator_is_heard() -> None:
    """Section 10: "either Ping or Stop/StartFetcher"."""
    for request in (Draft2PingRequest, Draft2StopFetcherRequest, Draft2StartFetcherRequest):
        world = World(2, consumers="a")
        broker, a = world.coordinator, member(world, "a")
        broker.cancel_timer(("ping", "g", "a"))
        world.run(5_000)
        broker.send_to(a, request(consumer_id="a"))
        world.drain("broker-1")
        world.run(5_900)
        assert world.noted("Silence") == []
        world.run(200)
        assert [note.name for note in world.noted("Silence")] == ["a"]


def test_the_settings_have_these_values_where_nobody_sets_them() -> None:
    """The names are the document's; the values that Kafka 0.8 has are its."""
    settings = BrokerSettings(broker_id=1, address=("h", 1))  # type: ignore[arg-type]
    assert settings.rebalance_handlers == 4
    assert settings.min_session_timeout_ms == 1_000
    assert settings.max_ping_retries == 3
    assert settings.offset_commit_interval_ms == 10_000
    assert settings.max_rebalance_retries == 4
    assert settings.rebalance_backoff_ms == 2_000


def test_pings_go_on_while_a_rebalance_waits() -> None:
    """Section 13, "Conflict of HeartbeatRequest": a channel is read and written at once."""
    world = World(2, consumers="ab", broker={"max_ping_retries": 100})
    seen, group = Seen(world.coordinator), world.coordinator.groups["g"]
    world.cut("b", "broker-1")
    world.topic("t", {number: [1] for number in range(5)})
    run_until(world, lambda: group.waiting == {"b"})
    world.run(30_000)
    assert len(seen.noted("RebalanceAttemptFailed")) >= 4
    assert [len(seen.messages(kind, "a")) for kind in (Draft2StopFetcherRequest, Draft2PingRequest)] == [
        5,
        15,
    ]
    apart = [after - before for before, after in pairwise(times(seen.messages(Draft2PingRequest, "a")))]
    assert apart == [2_000] * 14
    assert {note.name for note in world.noted("Silence")} == {"b"}
