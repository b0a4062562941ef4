"""The new consumer's draft, by what its pages draw."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from coordwire.designs.drafts.actions import FetchersStarted
from coordwire.designs.drafts.draft_3_broker import GroupMetadata
from coordwire.designs.drafts.draft_3_consumer import NewConsumerState
from coordwire.designs.drafts.draft_settings import DraftError
from coordwire.designs.drafts.zookeeper_operations import SetData
from coordwire.dialects.grammar import Grammar
from coordwire.dialects.matching import Matching
from coordwire.errors import DecodeError
from coordwire.messages.draft_3 import (
    Draft3JoinGroupRequest,
    Draft3JoinGroupResponse,
    Draft3MetadataRequest,
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
    assert {message.what.consumer_id for message in world.sent(Draft3PingRequest)} == {join.what.consumer_id}
    assert len(world.sent(Draft3PingResponse)) == 3
    assert world.owned() == "aaaa"


def test_a_second_consumer_sends_the_first_back_to_join() -> None:
    world = World(3, consumers="ab")
    assert world.owned() == "aaaa"
    world.run(3_000)
    assert world.owned() == "aabb"
    assert world.overlaps() == {}
    errors = [message.what.error_code for message in world.sent(Draft3PingResponse, to="a")]
    assert DraftError.REBALANCE_IN_PROGRESS in errors
    assert {message.what.generation for message in world.sent(Draft3JoinGroupResponse)} == {1, 2}


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


def sent_to(world: World, broker: str) -> list[tuple[str, str]]:
    """Who sent which message of the protocol to a broker, in order; metadata left out."""
    return [
        (entry.name, type(entry.what).__name__.removeprefix("Draft3")) for entry in world.history
        if entry.peer == broker and isinstance(entry.what, Draft3PingRequest | Draft3JoinGroupRequest)
    ]  # fmt: skip


def test_failover_begins_with_a_ping() -> None:
    """Coordinator failure handling, steps 1 to 3: new metadata, a connection, heartbeats. The new coordinator
    knows nobody, so that each consumer joins then."""
    world = World(3, consumers="ab")
    world.run(5_000)
    world.crash("broker-1")
    world.run(40_000)
    for name in "ab":
        sent = [what for sender, what in sent_to(world, "broker-2") if sender == name]
        assert sent[:3] == ["PingRequest", "JoinGroupRequest", "PingRequest"]
    errors = [
        message.what.error_code for message in world.sent(Draft3PingResponse) if message.name == "broker-2"
    ]
    assert errors.count(DraftError.UNKNOWN_CONSUMER) == 2
    assert world.owned().count("a") == 2
    assert world.owned().count("b") == 2
    assert [note.name for note in world.noted("Elected")] == ["broker-1", "broker-2"]


def test_a_new_coordinator_that_loads_the_groups_takes_pings_as_normal() -> None:
    """The later revision: nobody joins, and nobody stops whose session is longer than the change of the
    coordinator takes; a member that is gone is found out as before."""
    world = World(3, broker={"loads_groups": True})
    for name in "abc":
        world.join(name, session_timeout_ms=20_000)
        world.run(3_000)
    owned = world.owned()
    world.history.clear()
    world.crash("broker-1")
    world.run(20_000)
    assert world.owned() == owned
    assert [entry for entry in world.history if isinstance(entry.what, FetchersStarted)] == []
    assert {what for _, what in sent_to(world, "broker-2")} == {"PingRequest"}
    assert {
        message.what.error_code for message in world.sent(Draft3PingResponse) if message.name == "broker-2"
    } == {0}
    world.crash("c")
    world.run(30_000)
    assert (world.owned(), world.overlaps()) == ("aabb", {})


def test_a_member_that_dies_with_its_coordinator_is_found_out_by_the_next() -> None:
    world = World(3, consumers="ab", broker={"loads_groups": True})
    world.run(5_000)
    world.crash("a")
    world.crash("broker-1")
    world.run(40_000)
    assert (world.owned(), world.overlaps()) == ("bbbb", {})
    assert [note.name for note in world.noted("ConsumerFailed")] == ["broker-2"]


def test_partitions_that_come_while_there_is_no_coordinator_are_divided_by_the_next() -> None:
    world = World(3, consumers="ab", broker={"loads_groups": True})
    world.run(5_000)
    world.crash("broker-1")
    world.topic("t", {number: [1] for number in range(6)})
    world.run(20_000)
    assert world.owned() == "aaabbb"


@pytest.mark.parametrize("loads_groups", [True, False])
def test_a_generation_is_written_before_it_begins(loads_groups: bool) -> None:
    """A coordinator that has lost ZooKeeper can begin none where groups are loaded; else it can."""
    world = World(3, consumers="a", broker={"loads_groups": loads_groups})
    if loads_groups:
        stored = GroupMetadata.parse(world.read("/consumers/g/metadata") or b"")
        assert (stored.generation, [len(member.owned) for member in stored.members.values()]) == (1, [4])
    world.run(200)
    world.cut_zookeeper("broker-1")
    world.run(10_000)
    world.cut("b", "broker-2")
    world.history.clear()
    world.join("b")
    world.run(4_000)
    names = [message.name for message in world.sent(Draft3JoinGroupResponse) if not message.what.error_code]
    assert names == ([] if loads_groups else ["broker-1"] * 2)


def test_a_node_that_cannot_be_read_is_passed_over() -> None:
    world = World(3, consumers="a", broker={"loads_groups": True})
    short = b'{"members":{"x":{"session_timeout":0,"subscribing":[],"owned":[]}},"generation":1}'
    member, number = b'{"members":{"x":1},"generation":1}', b'{"members":{},"generation":"1"}'
    for data in (b"{", b"{}", member, number, short):
        with pytest.raises(DecodeError):
            GroupMetadata.parse(data)
    world.tree.apply(world.admin, SetData("/consumers/g/metadata", b"{"), world.now)
    world.crash("broker-1")
    world.run(20_000)
    assert len(world.noted("UnreadableNode")) == 1
    assert world.owned() == "aaaa"


def test_a_join_over_its_connection_is_a_members_own() -> None:
    """No field of JoinGroupRequest names the consumer: one that only pinged over a new connection, and joins
    then, has the id that it had; one that is new there gets another."""
    world = World(3, consumers="ab")
    world.run(3_000)
    machine = world.nodes["a"].machine
    before = machine.consumer_id
    machine._retry()
    world.drain("a")
    world.run(1_000)
    machine.subscribe(("t",))
    world.drain("a")
    world.run(4_000)
    assert machine.consumer_id == before
    assert world.noted("ConsumerFailed") == []
    assert world.owned() == "aabb"


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
    cases: dict[str, dict[str, Any]] = {
        "short": {"session_timeout_ms": 10}, "long": {"session_timeout_ms": 1 << 31},
        "empty": {"group_id": ""}, "slash": {"group_id": "g/h"},
    }  # fmt: skip
    for name, settings in cases.items():
        world.join(name, **settings)
    world.run(20)
    assert {message.peer: message.what.error_code for message in world.sent(Draft3JoinGroupResponse)} == {
        "short": DraftError.INVALID_SESSION_TIMEOUT,
        "long": DraftError.INVALID_SESSION_TIMEOUT,
        "empty": DraftError.INVALID_GROUP_ID,
        "slash": DraftError.INVALID_GROUP_ID,
    }


@pytest.mark.parametrize(("version", "layout"), [
    (0, "0001 0000000000000007 000167 000361 3a31 0000000000001770 00000001 000174"),
    (1, "0001 0000000000000007 000167 0000000000001770 00000001 000174"),
])  # fmt: skip
def test_the_two_layouts_of_a_join(version: int, layout: str) -> None:
    """Revisions 38571844 and 38572009, and the text beside the former without ConsumerAddr. Which one a frame
    has is told by its bytes."""
    join = Draft3JoinGroupRequest(
        version=1, correlation_id=7, group_id="g", session_timeout=6_000, subscribing=["t"]
    )
    if not version:
        join.consumer_addr = "a:1"
    assert join.encode(version=version) == bytes.fromhex(layout)
    grammar = Grammar("draft-3")
    match = Matching(grammar).match(grammar.encode(join, version=version)[4:], "client")
    assert match.frame is not None
    assert (match.frame.message, match.frame.version) == (join, version)


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


def test_metadata_is_read_again_while_it_pings() -> None:
    """From the first ping on, every `metadata_refresh_ms`: after a join, and after a failover."""
    world = World(3, broker={"loads_groups": True})
    world.join("a", metadata_refresh_ms=1_000)
    world.run(100)
    (joined,) = world.sent(Draft3JoinGroupResponse)
    world.history.clear()
    world.run(3_500)
    reads = [entry.time - joined.time for entry in world.sent(Draft3MetadataRequest)]
    assert [round(one, -2) for one in reads] == [1_000, 2_000, 3_000]
    world.crash("broker-1")
    world.run(20_000)
    world.history.clear()
    world.run(3_000)
    assert len(world.sent(Draft3MetadataRequest, to="broker-2")) == 3
