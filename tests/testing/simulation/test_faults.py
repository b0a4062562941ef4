"""Plans of faults: their text, what a seed draws, and that each kind happens and ends."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from math import inf, nan
from pathlib import Path

import pytest

from coordwire.broker.cluster.facts import LogDirState
from coordwire.errors import Malformed
from coordwire.testing.fault_plans import written_faults
from coordwire.testing.simulation import (
    KINDS,
    DrawnFaults,
    SimulatedKafka,
    SimulatedWorld,
    Simulation,
    parse_plan,
)
from coordwire.testing.simulation.load import LOADS
from coordwire.testing.simulation.runs import read_faults
from tests.testing.simulation.service import GROUP, TOPIC, correct_service, run_service

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "simulation.md"
PLAN = "".join(
    f"{line.partition('  ')[0]}\n"
    for line in re.findall(r"^```text\n(.*?)^```$", PAGE.read_text(), re.M | re.S)[0].splitlines()
)
"""The plan of the reference."""


def test_a_plan_is_text_and_text_is_a_plan() -> None:
    plan = parse_plan(PLAN)
    assert written_faults(plan) == PLAN.replace("60s", "1m")
    assert parse_plan(written_faults(plan)) == plan
    assert {fault.kind for fault in plan} == {
        "crash", "freeze", "cut", "block", "drop", "half-open", "slow", "skew", "coordinate", "lead", "fill",
        "fail", "inject", "stop", "load", "busy",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("10s burn orders-1", "expected one of crash"),
        ("10s block orders-1 broker-1", "'for'"),
        ("10s fill broker-1", "'for'"),
        ("10s skew orders-1 later for 5s", "a time such as 30s"),
        ("10s coordinate broker-1", "GROUP"),
        ("10s lead broker-1 orders", "TOPIC PARTITION"),
        ("10s lead broker-1 orders x", "TOPIC PARTITION"),
        ("10s inject broker-1 Heartbeet error=NONE", "Heartbeat"),
        ("10s inject broker-1 Heartbeat", "got none"),
        ("soon crash orders-1", "a time such as"),
        ("10s half-open orders-1", "2 targets"),
        ("10s half-open orders-1 broker-1 soon", "a time such as 100s"),
        ("10s lead broker-1 orders ²", "TOPIC PARTITION"),
        ("10s lead broker-1 orders " + "9" * 5_000, "TOPIC PARTITION"),
        ("10s skew orders-1 -" + "9" * 400 + "s for 5s", "a time such as 30s"),
        ("9" * 400 + "s crash orders-1", "a time such as"),
        ("10s crash orders-1 orders-2 for 5s", "no more after crash"),
        ("10s drop orders-1 broker-1 for 5s", "no duration"),
        ("10s stop orders-1 soon for 5s", "a number of awaits"),
    ],
)
def test_a_wrong_plan_says_why(text: str, reason: str) -> None:
    with pytest.raises(Malformed, match=reason.replace("(", r"\(")):
        parse_plan(text)


def test_what_a_test_says_about_faults() -> None:
    assert read_faults(None) == []
    assert read_faults("any") == DrawnFaults()
    assert read_faults("network", until=9, most=2) == DrawnFaults(("network",), 9, 2)
    assert read_faults(["network", "brokers"]) == DrawnFaults(("network", "brokers"))
    plan = parse_plan(PLAN)
    assert read_faults(PLAN) == read_faults(plan) == plan
    for wrong in ({"until": 1}, {"until": nan}, {"until": inf}, {"most": 0}, {"kinds": ("fire",)}):
        with pytest.raises(ValueError, match="expected"):
            DrawnFaults(**wrong)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("1s crash order-1 for 1s", "expected one of orders-1, broker-1, broker-2, broker-3, got 'order-1'"),
        ("1s cut orders-* broker-4 for 1s", "broker-3, world, test, orders-1, got 'broker-4'"),
        ("1s skew broker-1 30s for 1s", "expected one of orders-1, got 'broker-1'"),
        ("1s stop broker-1 for 1s", "expected one of orders-1, got 'broker-1'"),
        ("1s inject orders-1 Heartbeat error=NOT_COORDINATOR", "broker-3, got 'orders-1'"),
    ],
)
def test_a_fault_that_can_happen_to_nothing_fails_the_run(fault: str, reason: str) -> None:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        world.start("orders-1", asyncio.sleep, 5)
        await world.calm()

    outcome = Simulation(test=test, faults=parse_plan(fault)).run(0)
    assert outcome.kind == ("Violation", "Plan")
    assert reason in outcome.reason


def test_every_kind_happens_and_ends() -> None:
    """The service goes on after all of them; what each has done is looked at while it lasts."""
    observed: dict[str, object] = {}

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        async def look() -> None:
            moves, nodes = kafka.moves, kafka.broker.broker.cluster.nodes
            for at, name, value in (
                (12, "crash", lambda: [service.is_up for service in world.services("orders-1")]),
                (16, "started", lambda: [service.starts for service in world.services("orders-1")]),
                (61, "coordinate", lambda: moves.coordinator_of(group=GROUP)),
                (66, "lead", lambda: moves.leader_of(TOPIC, 0)),
                (72, "fill", lambda: nodes[2].log_dir is not LogDirState.ONLINE),
                (76, "fail", lambda: nodes[3].log_dir),
                (95, "restored", lambda: {node.log_dir for node in nodes.values()}),
            ):
                await asyncio.sleep(at - world.now)
                observed[name] = value()

        looking = asyncio.create_task(look())
        await run_service(kafka, world, correct_service)
        await looking
        (fault,) = kafka.faults.all
        observed["inject"] = fault.hits

    text = PLAN.replace("books", GROUP).replace("fail broker-2 for 20s", "fail broker-3 for 2s")
    plan = [
        fault for fault in parse_plan(text.replace("OffsetCommit", "Heartbeat")) if fault.kind not in LOADS
    ]
    simulation = Simulation(test=test, faults=plan, settings={"topics": {TOPIC: 4}})
    outcome = simulation.run(3)
    assert outcome.failure is None, outcome.reason
    assert list(outcome.plan) == plan
    assert observed == {
        "crash": [False],
        "started": [2],
        "coordinate": 3,
        "lead": 1,
        "fill": True,
        "fail": LogDirState.OFFLINE,
        "restored": {LogDirState.ONLINE},
        "inject": 2,
    }


def test_a_broker_that_stops_and_freezes() -> None:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        nodes = kafka.broker.broker.cluster.nodes
        await asyncio.sleep(6)
        assert list(nodes) == [1, 3]
        await asyncio.sleep(15)
        assert list(nodes) == [1, 2, 3]
        reader, writer = await asyncio.open_connection("broker-1", 9092)
        writer.write(b"\0\0\0\x0e\0\x12\0\0\0\0\0\1\0\4test")  # ApiVersions
        await reader.readexactly(4)
        assert world.now > 60
        writer.close()

    plan = parse_plan("5s crash broker-2 for 10s; 20s freeze broker-1 for 40s")
    outcome = Simulation(test=test, faults=plan).run(0)
    assert outcome.failure is None, outcome.reason


def test_a_node_that_stops_resets_its_connections_in_their_order() -> None:
    """Not in that of their addresses in memory, which differs from process to process."""
    names = [f"till-{number}" for number in range(30)]

    async def wait(world: SimulatedWorld, number: int) -> None:
        await asyncio.sleep(number * 0.1)
        reader, _writer = await asyncio.open_connection("127.0.0.1", 9092)
        await reader.read()

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        for number, name in enumerate(names):
            world.start(name, wait, world, number)
        await world.calm()

    simulation = Simulation(test=test, nodes=2, faults=parse_plan("5s crash broker-1 for 5s"))
    lines = simulation.run(0, keep_trace=True).lines or ()
    resets = [line.split()[3] for line in lines if " reset broker-1 " in line]
    assert resets[: len(names)] == names


def test_a_seed_draws_all_kinds() -> None:
    kinds: Counter[str] = Counter()
    half_open: Counter[str] = Counter()

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        world.start("orders-1", asyncio.sleep, 100)
        world.observed.groups["known"] = None
        async for _ in world.load("orders", range(10), every=5):
            await world.slow(0.1)
        await world.calm()

    simulation = Simulation(test=test, faults=DrawnFaults(most=12), settings={"topics": ["orders"]})
    for seed in range(20):
        outcome = simulation.run(seed)
        assert outcome.failure is None, outcome.reason
        kinds.update(fault.kind for fault in outcome.plan)
        assert all(fault.at + (fault.duration or 0) <= 60_000 for fault in outcome.plan)
        assert parse_plan(written_faults(outcome.plan)) == list(outcome.plan)
        half_open.update(" ".join(fault.words) for fault in outcome.plan if fault.kind == "half-open")
    drawable = {kind for group in KINDS.values() for kind in group} - {"crash-node", "freeze-node"}
    assert set(kinds) == drawable
    assert half_open["100s"] > half_open.total() / 2


def test_faults_strike_while_a_process_starts_again() -> None:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        world.start("orders-1", asyncio.sleep, 100)
        await world.calm()

    simulation = Simulation(test=test, nodes=1, faults=DrawnFaults(("network", "processes"), most=4))
    starts = early = 0
    for seed in range(60):
        plan = simulation.run(seed).plan
        assert len(plan) <= 4
        for fault in plan[:-1]:
            if fault.kind in ("crash", "stop") and fault.duration:
                starts += 1
                early += any(other.at == fault.at + fault.duration for other in plan)
    assert starts / 5 < early < starts


def test_the_plan_that_happened_gives_the_same_run() -> None:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        world.start("orders-1", correct_service, kafka.bootstrap, world, "orders-1")
        async for number in world.load(TOPIC, range(10), every=6):
            kafka.produce(TOPIC, f"{number}")
            await world.slow(1)

    settings = {"topics": {TOPIC: 4}}
    for seed in (1,):
        first = Simulation(test=test, faults=DrawnFaults(), settings=settings, checkers=()).run(seed)
        second = Simulation(test=test, faults=first.plan, settings=settings, checkers=()).run(seed)
        assert first.plan == second.plan
        assert first.digest == second.digest
