"""The detailed design, section 12.7: the coordinator's own ZooKeeper client, and a server without one."""

from __future__ import annotations

from typing import Any

import pytest

from coordwire.designs.drafts.zookeeper_operations import GetData
from coordwire.designs.simulator import World as SimulatedWorld
from coordwire.designs.simulator.drafts import add_design
from coordwire.messages.draft_2 import Draft2ClusterMetadataResponse, Draft2RegisterConsumerResponse
from tests.designs.drafts.worlds import World


def expire(world: World, name: str, client: int) -> None:
    node = world.nodes[name]
    world.tree.close_session(node.sessions[client])
    world.deliver_events()
    world.reach_zookeeper(node)


@pytest.mark.parametrize("draft", [1, 2, 3])
def test_the_coordinators_client_is_another_than_the_servers(draft: int) -> None:
    for settings in ({}, {"coordinator_has_client": False}):
        world = World(draft, broker=settings, consumers="ab" if draft < 3 else "")
        sessions = {
            path: world.stat(path).ephemeral_owner for path in ("/brokers/ids/1", "/consumers/coordinator")
        }
        assert sessions["/brokers/ids/1"] == world.nodes["broker-1"].session
        assert len(set(sessions.values())) == (1 if settings else 2)
        assert draft == 3 or world.owned() == "aabb"


def test_a_coordinator_whose_own_session_expires_resigns_and_its_broker_stays() -> None:
    world = World(2, consumers="ab")
    before = world.stat("/brokers/ids/1").ephemeral_owner
    expire(world, "broker-1", 1)
    machine = world.nodes["broker-1"].machine
    assert (machine.offices, machine.groups) == (set(), {})
    world.run(30_000)
    assert world.noted("Resigned")[0].name == "broker-1"
    assert world.stat("/brokers/ids/1").ephemeral_owner == before
    assert world.coordinator is world.nodes["broker-2"].machine
    assert (world.owned(), world.overlaps()) == ("aabb", {})


def test_a_server_whose_session_expires_registers_again_and_coordinates_on() -> None:
    world = World(2, consumers="ab")
    before = world.stat("/brokers/ids/1").ephemeral_owner
    world.history.clear()
    expire(world, "broker-1", 0)
    world.run(10_000)
    assert world.stat("/brokers/ids/1").ephemeral_owner not in (before, 0)
    assert not world.noted("Resigned")
    assert world.coordinator is world.nodes["broker-1"].machine
    world.join("c")
    world.run(200)
    assert world.owned() == "aabc"
    world.topic("t", {number: [1] for number in range(6)})  # which its coordinator watches still
    world.run(200)
    assert world.owned() == "aabbcc"


def test_a_server_that_shuts_down_ends_both_sessions() -> None:
    world = World(2, consumers="ab")
    world.nodes["broker-1"].machine.shut_down()
    world.drain("broker-1")
    world.run(50)
    assert world.read("/brokers/ids/1") is None
    assert world.read("/consumers/coordinator") == b"2"
    assert not any(world.tree.renew(one, world.now) for one in world.nodes["broker-1"].sessions.values())


@pytest.mark.parametrize("draft", [1, 2, 3])
def test_a_server_without_zookeeper_has_no_coordinator(draft: int) -> None:
    """ "if ZookeeperEnabled is true"."""
    world = World(draft, broker={"zookeeper_enabled": False})
    assert world.read("/consumers/coordinator") is None
    assert world.read("/brokers/ids/1") is None
    assert not world.noted("Elected")
    consumer = world.join("a")
    world.run(2_000)
    assert world.owned() == ""
    if draft == 2:
        answer = world.sent(Draft2ClusterMetadataResponse)[0].what
        assert (answer.error_code, answer.coordinator_id) == (15, -1)
        consumer.reach_coordinator(0, 1, world.known)
        world.drain("a")
        world.run(50)
        assert world.sent(Draft2RegisterConsumerResponse)[0].what.error_code == 16
    broker = world.nodes["broker-1"].machine
    broker.create_topic("u", 1)
    broker.shut_down()
    world.drain("broker-1")
    assert len(world.noted("ShutDown")) == 1


@pytest.mark.parametrize("own", [True, False])
def test_a_simulated_broker_has_the_sessions_of_its_clients(own: bool) -> None:
    """They end by themselves: the coordinator's takes the office with it."""
    world = SimulatedWorld(seed=1)
    run = add_design(world, "draft-2", broker={"coordinator_has_client": own})
    world.run(10_000)
    tree = run.zookeeper.tree
    paths = ("/brokers/ids/1", "/consumers/coordinator")
    sessions = {_ephemeral_owner(run.zookeeper, path) for path in paths}
    assert len(sessions) == (2 if own else 1)
    assert sessions <= set(tree.sessions())
    machine = run.machine("coordinator-1")
    run.zookeeper.end_session(machine.coordinator_session)
    world.run(40_000)
    assert (machine.session in sessions) is own
    assert machine.coordinator_session not in sessions
    assert not machine.coordinates
    assert run.machine("coordinator-2").coordinates
    assert all(len(world.ownership.owners(partition)) == 1 for partition in world.ownership.partitions)


def _ephemeral_owner(zookeeper: Any, path: str) -> int:
    stat = zookeeper.tree.apply(zookeeper._admin, GetData(path), zookeeper.node.now).stat
    return int(stat.ephemeral_owner)
