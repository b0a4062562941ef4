"""The detailed design's coordinator: its election, its registry, its topics and its handlers."""

from __future__ import annotations

from typing import Any

from coordwire.designs.drafts.actions import Disconnect, DraftPartition, EndSession
from coordwire.designs.drafts.draft_settings import DraftError
from coordwire.designs.drafts.pinging_coordinator import GroupRegistry
from coordwire.designs.drafts.zookeeper_operations import CreateNode, DeleteNode, GetChildren, GetData
from coordwire.messages.draft_2 import (
    Draft2RegisterConsumerResponse,
    Draft2StartFetcherRequest,
    Draft2StopFetcherRequest,
)
from tests.designs.drafts.seen import Seen, run_until
from tests.designs.drafts.transcripts import queued
from tests.designs.drafts.worlds import World

PATH = "/consumers/coordinator"


def broker(world: World, number: int) -> Any:
    return world.nodes[f"broker-{number}"].machine


def registered(world: World, name: str, **settings: Any) -> Any:
    """A consumer that the coordinator has just taken up, as its registry has it."""
    group = settings.setdefault("group_id", "g")
    world.join(name, **settings)

    def known() -> bool:
        groups = world.coordinator.groups
        return group in groups and name in groups[group].members

    run_until(world, known)
    return world.coordinator.groups[group].members[name]


# --- the election ---


def test_the_first_broker_is_elected_at_once_and_its_node_goes_with_its_session() -> None:
    world = World(2, brokers=3)
    node = world.stat(PATH)
    assert world.read(PATH) == b"1"
    assert node.ephemeral_owner == broker(world, 1).coordinator_session
    assert [(note.name, note.what.text) for note in world.noted("Elected")] == [("broker-1", "1")]
    assert world.noted("Elected")[0].time <= 10
    for number in (1, 2, 3):
        assert broker(world, number).coordinator_of("g") == 1
        assert broker(world, number).offices == ({0} if number == 1 else set())
    assert not broker(world, 2).runs("topics")  # what a coordinator does, it does once it is elected
    assert (broker(world, 2).partitions, broker(world, 2).groups) == ({}, {})
    assert not broker(world, 2)._timers.is_set("committer")


def test_all_listen_to_the_path_and_elect_whenever_its_data_is_deleted() -> None:
    """Twice, as a watch fires once; one of those that live is the coordinator each time."""
    world = World(2, brokers=3, consumers="a")
    for _ in range(3):
        world.tree.apply(world.admin, DeleteNode(PATH), world.now)
        world.deliver_events()
        world.run(30)
        number = int(world.read(PATH) or b"0")
        assert world.coordinator is broker(world, number)
        assert world.stat(PATH).ephemeral_owner == broker(world, number).coordinator_session
        assert {broker(world, one).coordinator_of("g") for one in (1, 2, 3)} == {number}
        world.run(20_000)
        assert (world.owned(), world.overlaps()) == ("aaaa", {})
    for died in (1, 2, 3):  # and when the broker dies, whose it is
        number = int(world.read(PATH) or b"0")
        world.crash(f"broker-{number}")
        world.run(6_100)
        if died < 3:
            assert int(world.read(PATH) or b"0") not in (0, number)
            assert world.coordinator is broker(world, int(world.read(PATH) or b"0"))
    assert world.read(PATH) is None


def test_each_of_5_000_consumers_has_a_start() -> None:
    world = World(2, consumers="a")
    a = world.coordinator.groups["g"].members["a"]
    names = [f"c{number}" for number in range(5_000)]
    plan = {DraftPartition("t", f"1-{number}"): f"{name}-0" for number, name in enumerate(names)}
    starts = world.coordinator._starts(dict.fromkeys(names, a), plan, {})
    assert [len(starts[name].ownership_info[0].assigned_parts) for name in names] == [1] * 5_000


def test_at_any_time_one_broker_coordinates() -> None:
    """One that finds another's node at the path is the coordinator no longer."""
    world = World(2, consumers="a")
    session = broker(world, 2).coordinator_session
    for operation in (DeleteNode(PATH), CreateNode(PATH, b"2", ephemeral=True)):
        assert world.tree.apply(session, operation, world.now).ok
    world.deliver_events()
    world.run(30)
    assert [broker(world, number).offices for number in (1, 2)] == [set(), {0}]
    assert [note.name for note in world.noted("Resigned")] == ["broker-1"]
    assert broker(world, 1).groups == {}
    world.run(20_000)
    assert (world.owned(), world.overlaps()) == ("aaaa", {})


def test_the_startup_reads_the_topics_and_the_groups_and_listens() -> None:
    """coordinatorStartup, steps 2 to 5, in this order."""
    world = World(2, consumers="ab")
    world.topic("u", {0: [2]})
    world.run(10)
    seen = Seen(broker(world, 2))
    world.crash("broker-1")
    run_until(world, lambda: bool(seen.noted("Elected")))
    world.run(20)
    reads = [
        (type(operation).__name__, operation.path, getattr(operation, "watch", False))
        for done in seen.of(object)
        for operation in getattr(done.what, "operations", ())
        if isinstance(operation, (GetChildren, GetData))
        and operation.path.startswith(("/brokers/topics", "/consumers")) and operation.path != PATH
    ]  # fmt: skip
    topics = [
        ("GetChildren", "/brokers/topics", True), ("GetData", "/brokers/topics/t", True),
        ("GetData", "/brokers/topics/u", True),
    ]  # fmt: skip
    groups = [
        ("GetChildren", "/consumers", False), ("GetChildren", "/consumers/g/owners", False),
        ("GetChildren", "/consumers/g/owners/t", False),
    ]  # fmt: skip
    assert reads[:6] == topics + groups
    coordinator = broker(world, 2)
    assert coordinator.partitions == {"t": ["1-0", "1-1", "1-2", "1-3"], "u": ["2-0"]}
    group = coordinator.groups["g"]
    assert (group.topics, group.awaited, group.members) == ({"t"}, {"a", "b"}, {})
    assert coordinator._timers.is_set("committer")
    assert coordinator.runs("topics")
    assert len(coordinator._queues) == 4
    assert seen.messages(Draft2StopFetcherRequest) == []


def test_a_coordinator_that_knows_of_no_group_does_nothing_until_one_registers() -> None:
    world = World(2)
    coordinator = world.coordinator
    seen = Seen(coordinator)
    world.run(30_000)
    assert coordinator.groups == {}
    assert list(seen) == []
    member = registered(world, "a")
    assert list(coordinator.groups) == ["g"]
    assert coordinator.groups["g"].members == {"a": member}
    world.run(100)
    assert [one.what.consumer_id for one in seen.messages(Draft2StopFetcherRequest)] == ["a"]
    assert world.owned() == "aaaa"


def test_a_new_coordinator_rebalances_once_all_that_own_something_have_registered() -> None:
    """Section 2, step 2: none is started before the last of them is there, and then all are."""
    world = World(2, consumers="abc")
    world.run(3_000)
    world.crash("broker-1")
    world.cut("c", "broker-2")
    run_until(world, lambda: bool(world.read(PATH)) and world.read(PATH) == b"2")
    world.run(30)
    coordinator = broker(world, 2)
    seen, group = Seen(coordinator), coordinator.groups["g"]
    elected = world.noted("Elected")[-1].time
    run_until(world, lambda: set(group.members) == {"a", "b"})
    assert group.awaited == {"c"}
    world.run(elected + 3_500 - world.now)
    assert seen.messages(Draft2StopFetcherRequest) == []
    assert world.owned() == "----"
    world.heal("c", "broker-2")
    run_until(world, lambda: "c" in group.members)
    assert group.awaited == set()
    world.run(30)
    assert [one.what.consumer_id for one in seen.messages(Draft2StartFetcherRequest)] == ["a", "b", "c"]
    assert world.now < elected + 6_000
    assert (world.owned(), world.overlaps()) == ("aabc", {})


def test_one_that_does_not_register_is_waited_for_as_long_as_the_longest_session() -> None:
    for sessions, wait in (((6_000, 6_000), 6_000), ((6_000, 9_000), 9_000)):
        world = World(2)
        for name, session_ms in zip("abc", (*sessions, 6_000), strict=True):
            world.join(name, session_timeout_ms=session_ms)
            world.run(100)
        world.crash("broker-1")
        world.crash("c")
        run_until(world, lambda world=world: world.read(PATH) == b"2")  # type: ignore[misc]
        coordinator = broker(world, 2)
        seen = Seen(coordinator)
        world.run(20)
        elected = world.noted("Elected")[-1].time
        world.run(elected + wait - 1 - world.now)
        assert sorted(coordinator.groups["g"].members) == ["a", "b"]
        assert seen.messages(Draft2StopFetcherRequest) == []
        world.run(40)
        assert [one.what.consumer_id for one in seen.messages(Draft2StartFetcherRequest)] == ["a", "b"]
        assert world.owned() == "aabb"


def test_a_new_session_clears_what_the_coordinator_knows_and_stands_again() -> None:
    """handleNewSession, steps 1 to 3; twice, as the listener is to be there again."""
    world = World(2, consumers="ab")
    for first, second in ((1, 2), (2, 1)):
        old = broker(world, first)
        assert world.coordinator is old
        connections = sorted(old._consumers)
        assert len(connections) == 2
        world.cut_zookeeper(f"broker-{first}")
        run_until(world, lambda second=second: world.read(PATH) == b"%d" % second)  # type: ignore[misc]
        world.run(100)
        seen = Seen(old)
        session = old.coordinator_session
        old._queues[3].put("g")  # as if it waited for its handler
        world.heal_zookeeper(f"broker-{first}")
        assert world.nodes[f"broker-{first}"].session == old.session != session
        assert (old.groups, old._consumers, old._handled, old.partitions) == ({}, {}, {}, {})
        assert queued(old) == [[]] * 4
        assert sorted(one.what.connection for one in seen.of(Disconnect)) == connections
        assert not old._timers.is_set("committer")
        for name in "ab":
            assert not any(old._timers.is_set((kind, "g", name)) for kind in ("ping", "pong", "answer"))
        world.run(20)
        assert [one.what.path for one in seen.operations(CreateNode) if one.what.ephemeral][-1] == PATH
        assert PATH in [one.what.path for one in seen.operations(GetData) if one.what.watch]
        assert old.offices == set()
        assert old.coordinator_of("g") == second
        world.run(30_000)
        assert world.owned() == "aabb"
    world.crash("broker-1")  # which is the coordinator again; the other one still listens
    world.run(40_000)
    assert world.coordinator is broker(world, 2)
    assert world.owned() == "aabb"


def test_a_shutdown_closes_the_elector_then_the_threads_then_the_session() -> None:
    world = World(2, consumers="ab")
    world.cut("b", "broker-1")
    world.topic("t", {number: [1] for number in range(5)})  # so that a handler is at work
    world.run(50)
    old = broker(world, 1)
    assert any(old.runs(("handler", str(number))) for number in range(4))
    seen = Seen(old)
    old.shut_down()
    assert [one.what.path for one in seen.operations(DeleteNode)] == [PATH]
    assert old.offices == {0}  # until the node is gone
    world.drain("broker-1")
    run_until(world, lambda: bool(seen.noted("ShutDown")))
    order = [getattr(one.what, "name", type(one.what).__name__) for one in seen]
    assert order == [
        "AskZooKeeper", "Resigned", "Disconnect", "Disconnect", "AskZooKeeper", "ShutDown", "EndSession",
        "EndSession",
    ]  # fmt: skip
    assert [one.what.path for one in seen.operations(DeleteNode)] == [PATH, "/brokers/ids/1"]
    assert old.groups == {}
    assert not any(old.runs(("handler", str(number))) for number in range(4))
    assert not old._timers.is_set("committer")
    assert not any(old._timers.is_set((kind, "g", name)) for kind in ("ping", "pong") for name in "ab")
    assert [one.what.client for one in seen.of(EndSession)] == [1, 0]
    world.run(20)
    assert world.read(PATH) == b"2"


# --- the registry ---


def test_the_registry_has_what_a_registration_says() -> None:
    world = World(2, broker={"max_ping_retries": 7})
    world.topic("u", {0: [1]})
    world.run(10)
    a = registered(
        world, "a", topic_count='{"t":2,"u":1}', auto_commit=True, session_timeout_ms=9_000,
        auto_offset_reset="largest",
    )  # fmt: skip
    b = registered(world, "b", topic_count="*3*t.*", auto_commit=False, session_timeout_ms=6_000)
    c = registered(world, "c", group_id="h", topic_count="!1!t", auto_offset_reset="smallest")
    groups = world.coordinator.groups
    assert list(groups) == ["g", "h"]
    assert list(groups["g"].members.values()) == [a, b]
    assert list(groups["h"].members.values()) == [c]
    assert [(one.group_id, one.consumer_id) for one in (a, b, c)] == [("g", "a"), ("g", "b"), ("h", "c")]
    assert [one.auto_commit for one in (a, b, c)] == [True, False, True]
    assert [one.starts_at for one in (a, b, c)] == [-1, 0, 0]
    assert [(one.ping_ms, one.answer_ms) for one in (a, b, c)] == [
        (3_000, 6_000), (2_000, 4_000), (2_000, 4_000)
    ]  # fmt: skip
    assert {one.max_retries for one in (a, b, c)} == {7}
    topics = ["t", "tt", "u", "__consumer_offsets"]
    assert [one.interest.streams(topics) for one in (a, b, c)] == [
        {"t": 2, "u": 1}, {"t": 3, "tt": 3}, {"tt": 1, "u": 1}
    ]  # fmt: skip
    assert [one.interest.is_wildcard for one in (a, b, c)] == [False, True, True]
    assert (groups["g"].topics, groups["h"].topics) == ({"t", "u"}, {"u"})
    connections = world.nodes["broker-1"].host.connections
    for one, name in ((a, "a"), (b, "b"), (c, "c")):
        assert world.coordinator._consumers[one.connection] is one
        assert one.connection in connections
        assert world.peer("broker-1", one.connection) == name
    for one in (a, b, c):
        assert world.coordinator._timers.is_set(("ping", one.group_id, one.consumer_id))


def test_a_group_is_interested_in_what_any_of_its_consumers_reads() -> None:
    group = GroupRegistry("g")
    assert not group.wants("t")
    assert (group.members, group.topics, group.offsets, group.queued, group.handler) == (
        {}, set(), {}, False, None
    )  # fmt: skip
    world = World(2)
    registered(world, "a")
    registered(world, "b", topic_count="*1*v.*")
    group = world.coordinator.groups["g"]
    assert [group.wants(topic) for topic in ("t", "v", "vv", "u", "tt")] == [True, True, True, False, False]


def test_a_registration_is_checked_and_its_consumer_closes() -> None:
    """Section 7: unique in the same group, larger than the minimum; the coordinator keeps the connection."""
    world = World(2, consumers="a", broker={"min_session_timeout_ms": 3_000})
    coordinator = world.coordinator
    cases: list[tuple[str, dict[str, Any], int]] = [
        ("other group", {"consumer_id": "a", "group_id": "h"}, 0),
        ("other case", {"consumer_id": "A"}, 0),
        ("longer", {"session_timeout_ms": 3_001}, 0),
        ("same", {"session_timeout_ms": 3_000}, DraftError.INVALID_SESSION_TIMEOUT),
        ("twice", {"consumer_id": "a", "session_timeout_ms": 3_000}, DraftError.DUPLICATE_CONSUMER),
        ("taken", {"consumer_id": "a"}, DraftError.DUPLICATE_CONSUMER),
    ]
    for name, settings, error in cases:
        seen = Seen(coordinator)
        consumer = world.join(name, **settings)
        own = Seen(consumer)
        run_until(world, lambda name=name: bool(  # type: ignore[misc]
            world.sent(Draft2RegisterConsumerResponse, to=name)))  # fmt: skip
        (answer,) = world.sent(Draft2RegisterConsumerResponse, to=name)
        assert (name, answer.what.error_code) == (name, error)
        assert seen.of(Disconnect) == []
        if error:
            (note,) = own.noted("RegistrationRefused")
            assert note.what == f"error {error}"
            assert consumer.state.name == "WAITING"
            assert len(own.of(Disconnect)) == 2  # from the broker that it asked, then from the coordinator
            assert len(seen.noted("RegistrationRefused")) == 1
            world.run(400)
            assert seen.of(Disconnect) == []  # nor later
        else:
            assert consumer.state.name == "REGISTERED"
            assert len(own.of(Disconnect)) == 1
            world.run(100)
        world.crash(name)
        world.run(100)
    assert list(coordinator.groups["g"].members) == ["a"]
    world.join("unknown", group_id="never", session_timeout_ms=10)
    world.run(50)
    assert "never" not in coordinator.groups  # a refused one makes no group


# --- the topics ---


def stopped(seen: Seen) -> set[str]:
    return {one.what.consumer_id for one in seen.messages(Draft2StopFetcherRequest)}


def test_a_change_of_topics_rebalances_the_groups_that_it_affects() -> None:
    """Section 6; each consumer is a group of its own."""
    world = World(2)
    world.topic("u", {0: [1]})
    interests = {
        "static": '{"t":1}', "both": '{"t":1,"u":1}', "wild": "*1*t.*", "black": "!1!u.*",
        "later": '{"tz":1,"u":1}',
    }  # fmt: skip
    for name, topic_count in interests.items():
        world.join(name, group_id=f"g-{name}", topic_count=topic_count)
        world.run(100)
    tried: set[str] = set()
    try_rebalance = world.coordinator.try_rebalance

    def tries(group: GroupRegistry) -> None:
        tried.add(group.group_id.removeprefix("g-"))
        try_rebalance(group)

    world.coordinator.try_rebalance = tries
    changes: list[tuple[str, int, set[str]]] = [
        ("t", 5, {"static", "both", "wild", "black"}),
        ("t", 6, {"static", "both", "wild", "black"}),  # once more, as a watch fires once
        ("u", 2, {"both", "later"}),
        ("ty", 1, {"wild", "black"}),
        ("uu", 1, set()),
        ("tz", 1, {"wild", "black", "later"}),
        ("tz", 2, {"wild", "black", "later"}),  # what was made later is listened to as well
        ("ty", 3, {"wild", "black"}),
        ("uu", 2, set()),
        ("t", 7, {"static", "both", "wild", "black"}),
    ]
    for topic, count, affected in changes:
        seen = Seen(world.coordinator)
        world.topic(topic, {number: [1] for number in range(count)})
        world.run(100)
        assert (topic, stopped(seen), tried) == (topic, affected, affected)
        tried.clear()
        for number in range(count):
            owners = world.owners.get(DraftPartition(topic, f"1-{number}"), set())
            assert owners >= affected
        assert world.coordinator.partitions[topic] == [f"1-{number}" for number in range(count)]


def test_a_group_that_waits_in_a_queue_is_not_pushed_again() -> None:
    """The bit is set when it is pushed, and reset when it is taken, not when it is done."""
    world = World(2, consumers="ab", broker={"rebalance_handlers": 3, "max_ping_retries": 100})
    coordinator, group = world.coordinator, world.coordinator.groups["g"]
    assert (group.queued, group.handler) == (False, None)
    world.cut("b", "broker-1")
    coordinator.on_topics_changed({"t"})
    (number,) = [number for number, queue in enumerate(coordinator._queues) if queue.groups]
    assert (group.queued, group.handler) == (True, number)
    for _ in range(3):
        coordinator.on_topics_changed({"t"})
        coordinator.try_rebalance(group)
    assert [names for names in queued(coordinator) if names] == [["g"]]
    group.stopped = True  # a reason for a rebalance
    run_until(world, lambda: group.waiting == {"b"})
    assert (group.queued, group.handler, queued(coordinator)[number]) == (False, number, [])
    for _ in range(3):
        coordinator.try_rebalance(group)
        assert (group.queued, group.handler) == (True, number)
        assert [names for names in queued(coordinator) if names] == [["g"]]
        assert queued(coordinator)[number] == ["g"]
    assert coordinator._handled == {number: "g"}
    world.heal("b", "broker-1")
    world.run(200)
    assert (group.queued, group.handler, coordinator._handled) == (False, None, {})
    assert world.owned() == "aabb"
    world = World(2, consumers="ab", broker={"max_rebalance_retries": 0, "max_ping_retries": 100})
    coordinator, group = world.coordinator, world.coordinator.groups["g"]
    world.cut("b", "broker-1")
    group.stopped = True
    coordinator.try_rebalance(group)
    run_until(world, lambda: bool(coordinator._handled))
    run_until(world, lambda: not coordinator._handled)
    assert world.owned() != "aabb"
    assert (group.queued, group.handler) == (False, None)  # a task that failed for good is done too


def test_handlers_take_groups_in_turn_and_work_beside_each_other() -> None:
    """addRebalanceRequest, and section 9: groups wait at one handler, and those of the other go on."""
    world = World(2, broker={"rebalance_handlers": 2, "max_ping_retries": 100})
    for name in "abcde":
        world.join(name, group_id=f"g-{name}")
        world.run(100)
    coordinator = world.coordinator
    groups = [coordinator.groups[f"g-{name}"] for name in "abcde"]
    assert [group.handler for group in groups] == [None] * 5
    assert len(coordinator._queues) == 2
    world.cut("a", "broker-1")
    seen = Seen(coordinator)
    world.topic("t", {number: [1] for number in range(5)})
    run_until(world, lambda: groups[0].waiting == {"a"})
    assert [group.handler for group in groups] == [1, 0, 1, 0, 1]
    world.run(60)
    assert [group.handler for group in groups] == [1, None, 1, None, 1]
    assert (queued(coordinator)[1], coordinator._handled) == (["g-c", "g-e"], {1: "g-a"})
    assert stopped(seen) == {"a", "b", "d"}
    assert [one.what.consumer_id for one in seen.messages(Draft2StartFetcherRequest)] == ["b", "d"]
    coordinator.try_rebalance(groups[0])  # the same group, to the same handler, whoever is next
    coordinator.try_rebalance(groups[2])
    assert queued(coordinator) == [[], ["g-c", "g-e", "g-a"]]
    world.heal("a", "broker-1")
    world.run(100)
    assert stopped(seen) == {"a", "b", "c", "d", "e"}
    assert [group.handler for group in groups] == [None] * 5
    assert not any(group.queued for group in groups)


def test_the_pool_has_as_many_handlers_as_the_setting_says() -> None:
    for handlers in (1, 3, 5):
        world = World(2, broker={"rebalance_handlers": handlers})
        coordinator = world.coordinator
        assert len(coordinator._queues) == handlers
        chosen = [coordinator.find_handler(GroupRegistry(f"g-{number}")) for number in range(7)]
        assert chosen == [number % handlers for number in range(7)]
        for number in range(handlers):
            group = GroupRegistry("g", handler=number)
            assert [coordinator.find_handler(group) for _ in range(3)] == [number] * 3
        assert coordinator.find_handler(GroupRegistry("last")) == 7 % handlers


def test_a_handler_is_idle_until_it_has_a_task_and_then_takes_all_that_wait() -> None:
    world = World(2, broker={"rebalance_handlers": 1})
    coordinator = world.coordinator
    assert not coordinator.runs(("handler", "0"))
    for name in "abc":
        registered(world, name, group_id=f"g-{name}")
    world.run(200)
    assert not coordinator.runs(("handler", "0"))
    seen = Seen(coordinator)
    world.topic("t", {number: [1] for number in range(5)})
    world.run(200)
    order = [one.what.consumer_id for one in seen.messages(Draft2StopFetcherRequest)]
    assert order == ["a", "b", "c"]
    starts = {one.what.consumer_id: one.time for one in seen.messages(Draft2StartFetcherRequest)}
    stops = {one.what.consumer_id: one.time for one in seen.messages(Draft2StopFetcherRequest)}
    assert stops["a"] < starts["a"] < stops["b"] < starts["b"] < stops["c"] < starts["c"]
    assert not coordinator.runs(("handler", "0"))


def test_each_handler_takes_the_groups_of_its_own_queue() -> None:
    """As threads: one does not wait for another."""
    world = World(2, broker={"rebalance_handlers": 2})
    coordinator = world.coordinator
    for name in "abc":
        registered(world, name, group_id=f"g-{name}")
    world.run(200)
    seen, handlers, find = Seen(coordinator), dict[str, int](), coordinator.find_handler

    def noted(group: GroupRegistry) -> int:
        number: int = find(group)
        return handlers.setdefault(group.group_id.removeprefix("g-"), number)

    coordinator.find_handler = noted
    world.topic("t", {number: [1] for number in range(5)})
    world.run(200)
    assert set(handlers.values()) == {0, 1}
    stops = {one.what.consumer_id: one.time for one in seen.messages(Draft2StopFetcherRequest)}
    starts = {one.what.consumer_id: one.time for one in seen.messages(Draft2StartFetcherRequest)}
    assert stops.keys() == starts.keys() == set("abc")
    (alone,) = (one for one in "abc" if list(handlers.values()).count(handlers[one]) == 1)
    first, second = (one for one in "abc" if one != alone)
    assert stops[alone] < starts[first] < stops[second]
    assert stops[first] < starts[alone]


def test_a_group_that_has_a_consumer_again_is_not_deleted() -> None:
    """Section 13: while its offsets are written, somebody registers."""
    world = World(2, consumers="a", broker={"delete_empty_groups": True})
    world.consume("a", 5)
    group = world.coordinator.groups["g"]
    run_until(world, lambda: bool(group.unsaved))
    world.crash("a")
    world.run(10)
    assert group.members == {}
    world.join("b", auto_commit=False)
    world.run(30_000)
    assert world.coordinator.groups == {"g": group}
    assert list(group.members) == ["b"]
    assert world.owned() == "bbbb"
    assert set(world.nodes["b"].machine.owned.values()) == {5}
