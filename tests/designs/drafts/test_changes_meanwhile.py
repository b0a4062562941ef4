"""What changes while a broker of the drafts reads, waits or is about to act: elections, groups, attempts.

Strategy: each test brings the change about at the one moment at which it matters, and looks at what the
machine does then. Rules: a message takes 1 ms, ZooKeeper's answer 2.
"""

from __future__ import annotations

from typing import Any

import pytest

from coordwire.designs.drafts.draft_settings import BrokerAddress
from coordwire.designs.drafts.zookeeper_operations import (
    CreateNode,
    DeleteNode,
    NodeExists,
    Operation,
    OperationOutcome,
)
from coordwire.messages.draft_2 import Draft2StartFetcherRequest, Draft2StopFetcherRequest
from tests.designs.drafts.seen import Seen, run_until
from tests.designs.drafts.transcripts import queued
from tests.designs.drafts.worlds import World

PATH = "/consumers/coordinator"
OFFICES = "/consumers/coordinators"


def broker(world: World, number: int) -> Any:
    return world.nodes[f"broker-{number}"].machine


def after(world: World, kind: type[Operation], path: str, number: int, change: Any) -> None:
    """Let something happen, once, right after a broker's operation on a path."""
    apply, changes = world.tree.apply, [change]

    def applied(session: int, operation: Operation, now: int) -> OperationOutcome:
        outcome = apply(session, operation, now)
        own = session in world.nodes[f"broker-{number}"].sessions.values()
        if changes and own and isinstance(operation, kind) and getattr(operation, "path", "") == path:
            changes.pop()()
        return outcome

    world.tree.apply = applied  # type: ignore[method-assign]


def delete(world: World, path: str) -> None:
    assert world.tree.apply(world.admin, DeleteNode(path), world.now).ok
    world.deliver_events()


# --- elections ---


def test_a_candidate_tries_again_where_the_elected_broker_goes_before_it_looks() -> None:
    """Its own node was refused, and the other one is gone when it reads: there is nobody to wait for."""
    world = World(2, brokers=1)
    world.known[2] = BrokerAddress("broker-2", 9092)
    world.nodes["broker-2"] = world.nodes["broker-1"]  # until it is there
    after(world, CreateNode, PATH, 2, lambda: world.tree.close_session(broker(world, 1).coordinator_session))
    world.add_broker(2)
    world.cut_zookeeper("broker-1")
    world.run(500)
    assert world.read(PATH) == b"2"
    assert broker(world, 2).offices == {0}
    assert broker(world, 2).coordinator_of("g") == 2


def test_who_does_not_stand_for_an_office_learns_who_has_it() -> None:
    """Several coordinators: each office has one candidate; all listen to it."""
    world = World(2, broker={"coordinators": 2})
    world.run(1_000)
    office_of = broker(world, 1).office_of
    names = [f"g-{number}" for number in range(9)]
    groups = [next(name for name in names if office_of(name) == office) for office in (0, 1)]
    assert [broker(world, number).offices for number in (1, 2)] == [{0}, {1}]
    for number in (1, 2):
        assert [broker(world, number).coordinator_of(name) for name in groups] == [1, 2]
    seen = Seen(broker(world, 2))
    world.run(10_000)
    assert list(seen) == []  # it waits, and asks for nothing
    world.cut_zookeeper("broker-1")
    delete(world, f"{OFFICES}/0")
    world.run(2_000)
    assert world.read(f"{OFFICES}/0") is None  # broker 2 is not its candidate
    assert [broker(world, 2).coordinator_of(name) for name in groups] == [-1, 2]
    world.heal_zookeeper("broker-1")
    world.run(100)
    assert world.read(f"{OFFICES}/0") == b"1"
    assert [broker(world, 2).coordinator_of(name) for name in groups] == [1, 2]
    assert broker(world, 2).offices == {1}


def test_an_office_without_its_node_is_over_for_a_broker_that_does_not_stand_for_it() -> None:
    world = World(2, brokers=1, broker={"coordinators": 2})
    world.run(1_000)
    assert broker(world, 1).offices == {0, 1}
    world.known[2] = BrokerAddress("broker-2", 9092)
    world.add_broker(2)
    world.run(1_000)
    assert broker(world, 1).offices == {0, 1}  # it stays with its broker as long as that lives
    world.cut_zookeeper("broker-2")
    delete(world, f"{OFFICES}/1")
    world.run(20)
    assert broker(world, 1).offices == {0}
    world.heal_zookeeper("broker-2")
    world.run(100)
    assert [broker(world, number).offices for number in (1, 2)] == [{0}, {1}]


def test_a_broker_that_becomes_the_candidate_while_it_reads_stands_at_once() -> None:
    world = World(2, broker={"coordinators": 2})
    world.run(1_000)
    second = broker(world, 2)

    def alone() -> None:
        second.brokers = {2: second.brokers[2]}
        second.on_cluster()

    after(world, NodeExists, f"{OFFICES}/0", 2, alone)
    world.cut_zookeeper("broker-1")
    delete(world, f"{OFFICES}/0")
    world.run(50)
    assert second.offices == {0, 1}


@pytest.mark.parametrize("draft", [1, 2])
def test_a_broker_in_a_new_session_knows_no_coordinator_until_it_has_looked(draft: int) -> None:
    world = World(draft, consumers="a")
    world.cut_zookeeper("broker-1")
    run_until(world, lambda: world.read(PATH) == b"2")
    old = broker(world, 1)
    assert old.coordinator_of("g") == 1
    world.heal_zookeeper("broker-1")
    assert old.coordinator_of("g") == -1
    world.run(20)
    assert old.coordinator_of("g") == 2


@pytest.mark.parametrize("draft", [1, 2])
@pytest.mark.parametrize("moment", ["rebalance", "commit", "startup", "deletion", "rest"])
def test_nothing_of_a_coordinator_goes_on_without_its_office(draft: int, moment: str) -> None:
    """Another broker's node is at the path; the session lives, so that nothing else ends what it does."""
    world = World(draft, consumers="ab", broker={
        "max_ping_retries": 99, "delete_empty_groups": True, "batch_offsets": True
    })  # fmt: skip
    old, second = broker(world, 1), broker(world, 2)
    if moment == "startup":
        world.cut_zookeeper("broker-1")
        delete(world, PATH)
        run_until(world, lambda: bool(second.offices))
        old, second = second, old
    group = old.groups.get("g")
    if moment == "rebalance":
        world.cut("b", "broker-1")
        world.topic("t", {number: [1] for number in range(5)})
        run_until(world, lambda: group.waiting == {"b"})
    if moment in ("commit", "deletion"):
        world.consume("a", 5)
        run_until(world, lambda: bool(group.unsaved))
        if moment == "deletion":
            for name in list(group.members):
                old.on_consumer_failed(group.members[name])
            assert old.runs(("delete", "g"))
        else:
            world.run(100)
            old.start_commit(group)
            assert old.runs(("commit", "g"))
    outcome = OperationOutcome(path=PATH, data=b"2", stat=world.stat("/brokers"))
    old._know_coordinator(0, outcome)
    assert (old.offices, old.groups, old._consumers, old._handled) == (set(), {}, {}, {})
    assert set(old._procedures) <= {"cluster", ("election", "0")}
    assert not old._timers.is_set("committer")
    assert not any(
        old._timers.is_set((kind, "g", name)) for kind in ("ping", "pong", "answer") for name in "ab"
    )
    assert old.partitions == {}


# --- rebalances ---


def test_an_attempt_whose_consumer_fails_while_zookeeper_is_read_stops_nobody() -> None:
    """Section 8, step 4: an ongoing rebalance fails directly."""
    world = World(2, consumers="abc", broker={"rebalance_backoff_ms": 1_000})
    seen, coordinator = Seen(world.coordinator), world.coordinator
    world.topic("t", {number: [1] for number in range(5)})
    run_until(world, lambda: bool(coordinator._handled))
    world.crash("c")
    run_until(world, lambda: bool(seen.noted("RebalanceAttemptFailed")))
    world.run(500)
    assert seen.messages(Draft2StopFetcherRequest) == []
    world.run(1_000)
    assert [one.what.consumer_id for one in seen.messages(Draft2StartFetcherRequest)] == ["a", "b"]
    assert world.owned() == "aaabb"


def test_an_attempt_whose_consumer_fails_while_offsets_are_read_starts_nobody() -> None:
    world = World(2, consumers="abc", broker={"rebalance_backoff_ms": 1_000})
    seen, group = Seen(world.coordinator), world.coordinator.groups["g"]
    world.topic("t", {number: [1] for number in range(5)})
    run_until(world, lambda: bool(group.waiting))
    run_until(world, lambda: not group.waiting)
    world.crash("c")
    run_until(world, lambda: bool(seen.noted("RebalanceAttemptFailed")))
    world.run(500)
    assert len(seen.messages(Draft2StopFetcherRequest)) == 3
    assert seen.messages(Draft2StartFetcherRequest) == []
    world.run(1_000)
    assert [one.what.consumer_id for one in seen.messages(Draft2StartFetcherRequest)] == ["a", "b"]
    assert world.owned() == "aaabb"


@pytest.mark.parametrize("draft", [1, 2])
def test_groups_that_find_their_handlers_queue_full_wait_for_room(draft: int) -> None:
    """None of the requests is lost, and they are served in order."""
    settings = {"rebalance_handlers": 1, "rebalance_queue_size": 1, "handler_us": 30_000}
    world = World(draft, broker=settings)
    names = "dbecfa"
    for name in names:
        world.join(name, group_id=f"g-{name}", topic_count='{"t":1,"v":1}')
        world.run(300)
    done: list[str] = []
    on_rebalanced = world.coordinator.on_rebalanced

    def rebalanced(group: Any, succeeded: bool) -> None:
        done.append(group.group_id)
        on_rebalanced(group, succeeded)

    world.coordinator.on_rebalanced = rebalanced
    world.topic("v", {0: [1]})
    world.run(20)
    assert len(queued(world.coordinator)[0]) >= len(names) - 1
    world.run(3_000)
    assert done == [f"g-{name}" for name in names]
    assert len(world.noted("RebalanceQueueFull")) >= len(names) - 2


# --- consumers ---


@pytest.mark.parametrize("overview", [False, True])
@pytest.mark.parametrize("loss", ["crash", "silence"])
def test_a_consumer_that_shuts_down_is_done_when_its_coordinator_is_lost(overview: bool, loss: str) -> None:
    """The ping that it waits for will not come, and it does not look for another coordinator."""
    world = World(2, consumers="a", overview=overview)
    consumer = world.nodes["a"].machine
    seen = Seen(consumer)
    consumer.shut_down()
    if loss == "crash":
        world.crash("broker-1")
    else:
        world.cut("broker-1", "a")
    world.run(30_000)
    assert consumer.state.name == "CLOSED"
    assert world.owned() == "----"
    assert consumer.next_deadline() is None
    assert [type(one.what).__name__ for one in seen if type(one.what).__name__ == "Connect"] == []
