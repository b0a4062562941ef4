"""The drafts and the ZooKeeper consumer in the simulation: faults, captures, the same bytes for a seed."""

from __future__ import annotations

import io

import pytest

from coordwire.capture import Capture, FrameEntry
from coordwire.designs.drafts.actions import Connect
from coordwire.designs.drafts.draft_3_consumer import NewConsumer, NewConsumerConfig
from coordwire.designs.drafts.draft_settings import BrokerAddress
from coordwire.designs.drafts.zookeeper_operations import (
    CheckVersion,
    CreateNode,
    DeleteNode,
    GetChildren,
    GetData,
    NodeExists,
    Operation,
    OperationOutcome,
    SetData,
    Transaction,
)
from coordwire.designs.drafts.zookeeper_tree import ZooKeeperTree
from coordwire.designs.simulator import PcapWriter, TapRecord, TapRecords, World, parse_faults, random_faults
from coordwire.designs.simulator.drafts import DRAFT_DESIGNS, ZOOKEEPER_PORT, add_design
from coordwire.designs.simulator.drafts.zookeeper_node import (
    ask_bytes,
    asked_operations,
    from_wire,
    operation_from,
    operation_words,
    outcome_from,
    outcome_words,
    replied_outcomes,
    reply_bytes,
    to_wire,
)
from coordwire.designs.simulator.runs import simulate
from coordwire.dialects import ConnectionDialect, Dialect
from coordwire.dialects.grammar import CALLS
from coordwire.timeline import RebalanceEnded, timeline

DRAFTS = ["draft-1", "draft-2", "draft-3"]
EVERY = [*DRAFTS, "zookeeper"]


def owners(world: World) -> list[int]:
    return [len(world.ownership.owners(partition)) for partition in world.ownership.partitions]


@pytest.mark.parametrize("design", EVERY)
def test_members_share_the_partitions(design: str) -> None:
    world = World(seed=1)
    run = add_design(world, design, members=4, partitions={"orders": 6, "payments": 2})
    world.run(30_000)
    assert owners(world) == [1] * 8
    assert {world.ownership.owners(partition)[0] for partition in world.ownership.partitions} == {
        f"consumer-{number}" for number in range(1, 5)
    }
    if design != "draft-1":
        assert world.ownership.duplicated_ms == 0
    assert run.zookeeper.counts["expired"] == 0


@pytest.mark.parametrize("design", ["draft-2", "draft-3", "zookeeper"])
@pytest.mark.parametrize(
    "plan",
    [
        "20s crash consumer-2; 25s crash coordinator-1 for 3s; 50s crash coordinator-1 for 20s",
        "20s cut consumer-1 coordinator-* for 20s; 25s cut consumer-2 zookeeper for 10s",
        "20s cut coordinator-1 zookeeper for 30s; 60s expire consumer-1; 70s expire coordinator-*",
        "20s freeze consumer-1 for 15s; 50s freeze coordinator-1 for 15s; 80s crash zookeeper for 4s",
        "20s drop consumer-* coordinator-*; 30s slow consumer-1 * 900ms for 9s; 60s topic zookeeper orders 8",
        "20s leave consumer-1; 30s leave consumer-2; 31s crash consumer-2; 40s topic zookeeper more 2",
    ],
)  # fmt: skip
def test_members_share_the_partitions_after_faults(design: str, plan: str) -> None:
    world = World(seed=2)
    add_design(world, design, members=3)
    world.plan(parse_faults(plan))
    world.run(160_000)
    assert owners(world) == [1] * len(world.ownership.partitions)


@pytest.mark.parametrize("design", EVERY)
def test_a_process_that_has_left_may_be_told_to_leave_again(design: str) -> None:
    """Its sessions are ended; nobody answers what it asks."""
    world = World(seed=2)
    run = add_design(world, design, members=2)
    world.plan(parse_faults("10s leave *; 12s topic zookeeper orders 8; 14s leave *; 15s expire *"))
    world.run(20_000)
    assert len(run.zookeeper.tree.sessions()) == 1  # its own


@pytest.mark.parametrize("seed", range(1, 3))
def test_draft_2_has_one_owner_for_each_partition_at_any_time(seed: int) -> None:
    """As far as consumers run: a frozen one owns what it had, and knows nothing."""
    world = World(seed=seed)
    run = add_design(world, "draft-2", members=4)
    world.plan(
        random_fault for random_fault in random_faults(seed, members=4) if random_fault.kind != "freeze"
    )
    world.run(200_000)
    assert world.ownership.duplicated_ms == 0
    assert owners(world) == [1] * 6
    assert [noted.name for _, _, noted in run.log if noted.name == "Elected"]


@pytest.mark.parametrize("design", DRAFTS)
def test_a_coordinator_that_is_gone_for_good_is_replaced(design: str) -> None:
    """Each broker knows all others, though they registered while it was reading; so each consumer finds one
    that is left."""
    world = World(seed=1)
    run = add_design(world, design, members=2)
    world.run(30_000)
    assert [sorted(run.machine(f"coordinator-{number}").brokers) for number in (1, 2)] == [[1, 2], [1, 2]]
    world.plan(parse_faults("30s crash coordinator-1"))
    world.run(70_000)
    if design != "draft-1":  # a consumer that meets two refusals in a row gives up there
        assert owners(world) == [1] * 6


def test_a_consumer_of_draft_3_asks_the_brokers_of_its_list_too() -> None:
    """What it has learned is one broker, which is gone."""
    known = {number: BrokerAddress(f"b{number}", 9092) for number in (1, 2)}
    consumer = NewConsumer(NewConsumerConfig(group_id="g", client_id="c", topics=("t",)), known)
    consumer.cluster = {1: known[1]}
    consumer.start()
    asked = set()
    for time in range(0, 3_000, 500):
        consumer.advance(time)
        for action in consumer.actions():
            if isinstance(action, Connect):
                asked.add(action.host)
                consumer.closed(action.connection)
    assert asked == {"b1", "b2"}


class Filtered:
    """A tap without ZooKeeper's links, whose messages are not of a dialect."""

    def __init__(self, file: io.BytesIO) -> None:
        self.inner = PcapWriter(file)

    def __call__(self, record: TapRecord) -> None:
        if not record.server.endswith(f":{ZOOKEEPER_PORT}"):
            self.inner(record)


def test_the_headers_of_0_8_change_nothing_but_the_frames() -> None:
    """The detailed design's section 13: a run with them has the same messages, owners and notes."""
    logs, messages, sizes = [], [], []
    for name in (Dialect.DRAFT_2, Dialect.DRAFT_2_IN_08):
        file = io.BytesIO()
        world = World(seed=3, tap=Filtered(file))
        run = add_design(world, "draft-2", members=3, dialect=name)
        world.plan(parse_faults("8s crash consumer-2 for 3s; 16s crash coordinator-1"))
        world.run(40_000)
        assert owners(world) == [1] * 6
        entries = list(Capture(io.BytesIO(file.getvalue()), "run", dialect=ConnectionDialect(name)).entries())
        frames = [entry for entry in entries if isinstance(entry, FrameEntry)]
        assert len(frames) == len(entries) > 100
        assert not [entry for entry in frames if entry.error is not None]
        logs.append(run.log)
        messages.append([(entry.time_ns, entry.message) for entry in frames])
        sizes.append(sum(entry.size for entry in frames))
        if name is Dialect.DRAFT_2_IN_08:
            asked = [entry for entry in frames if entry.direction == "request"]
            assert {entry.client_id for entry in asked} >= {"consumer-1", "coordinator-1"}
            assert {entry.api_version for entry in asked} == {0}
            for entry in frames:
                if entry.request is not None:
                    assert entry.request.correlation_id == entry.correlation_id
    assert logs[0] == logs[1]
    assert messages[0] == messages[1]
    assert sizes[0] < sizes[1]


@pytest.mark.parametrize("design", DRAFTS)
def test_a_run_is_a_capture_with_every_message(design: str) -> None:
    """It decodes, encodes back to the same bytes, and is a story of the group."""
    file = io.BytesIO()
    world = World(seed=3, tap=Filtered(file))
    add_design(world, design, members=2)
    world.run(20_000)
    design_dialect = DRAFT_DESIGNS[design]
    dialect = ConnectionDialect(design_dialect)
    entries = list(Capture(io.BytesIO(file.getvalue()), "run", dialect=dialect).entries())
    seen = set()
    for entry in entries:
        assert isinstance(entry, FrameEntry)
        assert entry.error is None
        assert entry.message is not None
        assert entry.call is not None
        seen.add(type(entry.message).__name__)
        data = entry.call.encode(entry.message, entry.direction, version=entry.api_version or 0)
        assert data[4:] == entry.body
    calls = [one for one in CALLS[design_dialect] if one.name != "CommitOffset"]  # only on request
    assert seen == {call.request for call in calls} | {call.response for call in calls if call.response}
    events = list(timeline(entries, dialect=dialect))
    assert {event.group for event in events} == {"group"}
    assert any(isinstance(event, RebalanceEnded) for event in events)


@pytest.mark.parametrize("design", EVERY)
def test_a_seed_gives_the_same_bytes(design: str) -> None:
    runs = []
    for seed in (5, 5):
        records = TapRecords()
        world = World(seed=seed, tap=records)
        add_design(world, design, members=3)
        world.plan(random_faults(5, members=3))
        world.run(40_000)
        runs.append((records, world.ownership.duplicated_ms, world.ownership.orphaned_ms))
    assert runs[0] == runs[1]


def test_every_operation_and_outcome_goes_over_the_wire() -> None:
    tree = ZooKeeperTree()
    session = tree.open_session(1_000, 0)
    operations: list[Operation] = [
        CreateNode("/a", b"\x00\xff", ephemeral=False), CreateNode("/a/n-", sequential=True),
        GetData("/a", watch=True), NodeExists("/b", watch=True), GetChildren("/a"), SetData("/a", b"1", 0),
        CheckVersion("/a", 7), DeleteNode("/a"),
        Transaction((CheckVersion("/a"), CreateNode("/b", ephemeral=True), DeleteNode("/a"))),
    ]  # fmt: skip
    outcomes = []
    for operation in operations:
        assert operation_from(from_wire(to_wire(*operation_words(operation)))) == operation
        outcomes.append(tree.apply(session, operation, 0))
        assert outcome_from(from_wire(to_wire(*outcome_words(outcomes[-1])))) == outcomes[-1]
    ask, reply = ask_bytes(tuple(operations)), reply_bytes(tuple(outcomes))
    assert ask == to_wire("ask", len(operations), list(map(operation_words, operations)))
    assert reply == to_wire("reply", len(outcomes), list(map(outcome_words, outcomes)))
    assert asked_operations(bytes(ask)) == tuple(operations)
    assert replied_outcomes(bytes(reply)) == tuple(outcomes)


def test_what_was_encoded_here_is_not_decoded_again() -> None:
    operations = tuple(GetData(f"/{number}") for number in range(100))
    outcomes = tuple(OperationOutcome(path=operation.path) for operation in operations)
    assert asked_operations(ask_bytes(operations)) is operations
    assert replied_outcomes(reply_bytes(outcomes)) is outcomes


def test_a_registration_during_the_startup_waits_for_what_zookeeper_knows() -> None:
    """A consumer that registers while the new coordinator still reads who owns what does not get everything:
    the frozen coordinator's other consumers read on until their session timeout."""
    plan = parse_faults("25100ms freeze coordinator-1 for 8s")
    result = simulate("draft-2", members=4, partitions=12, seed=26, duration_ms=36_000, plan=plan)
    assert [note.node for note in result.run.notes() if note.name == "Elected"] == [
        "coordinator-1", "coordinator-2",
    ]  # fmt: skip
    assert result.measures.duplicated_ms == 0
    assert result.measures.orphaned_ms > 0
