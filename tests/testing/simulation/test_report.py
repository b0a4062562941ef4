"""The report of a failure: excerpts of the groups and the log, and whose the members are."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

pytest.importorskip("aiokafka", reason="aiokafka isn't installed")

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from coordwire.testing.simulation import (
    RunOptions,
    RunOutcome,
    SimulatedKafka,
    SimulatedWorld,
    Simulation,
    SimulationFailed,
    kafka_simulation,
)
from coordwire.timeline.story import story_lines

TOPIC = "orders"


def test_an_excerpt_begins_before_the_faults_and_keeps_its_end(tmp_path: Path) -> None:
    """Of the group's usual work it has what the reason names; what comes after the test is in the file."""
    story = [
        *(f"   00:00:{second:02}.000  1  · #1 (till) commits orders-{second % 2} → 7" for second in range(9)),
        *(f"   00:00:{second:02}.000  1  ✗ #1 (till) Heartbeat" for second in range(9, 60)),
        "   00:01:59.000  1  - #1 (till) left",
    ]

    @kafka_simulation(seeds=1, faults="10s drop test broker-*", nodes=1, repeat=0)
    async def fails(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        world.start("till", asyncio.sleep, 200)
        await asyncio.sleep(50)
        assert not world.driver.inflicted, "orders-1 was not sold"

    with pytest.raises(SimulationFailed) as raised:
        fails(kafka_simulation_options=RunOptions(folder=tmp_path, story=lambda events: story))
    groups = str(raised.value).partition("The groups")[2].partition("\n\n")[0]
    seconds = [int(time) for time in re.findall(r"(\d+)\.000  1", groups)]
    assert seconds == [5, 7, *range(9, 17), *range(57, 60), 119]
    assert "… 40 more" in groups
    assert "Heartbeat" in (tmp_path / "seed-0.txt").read_text().partition("     57.000")[2]


async def wait() -> None:
    await asyncio.sleep(1_000)


async def sell(bootstrap: str) -> None:
    """Its members have the library's client id."""
    consumer = AIOKafkaConsumer(
        TOPIC, bootstrap_servers=bootstrap, group_id="books", enable_auto_commit=False
    )
    await consumer.start()
    await asyncio.gather(wait(), wait())


@pytest.fixture(scope="module")
def in_vain() -> RunOutcome:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        kafka.produce(TOPIC, "tea")
        for name in ("till-1", "till-2"):
            world.start(name, sell, kafka.bootstrap)
        await kafka.group("books").stable(members=2, timeout=100)
        AIOKafkaProducer.flush(None)  # without its await
        await world.caught_up("books", TOPIC, within=10)

    return Simulation(test=test, nodes=1, settings={"topics": {TOPIC: 1}}).run(0)


def test_members_have_the_names_of_their_processes(in_vain: RunOutcome) -> None:
    assert "; its members are till-1, till-2; these tasks wait: " in in_vain.reason
    assert in_vain.timeline is not None
    story = "\n".join(story_lines(in_vain.timeline()))
    assert re.search(r"\+ #1 \(till-\d\) is in", story)
    assert re.search(r"\+ #2 \(till-\d\) is in", story)


def test_a_task_that_waits_says_whose_it_is(in_vain: RunOutcome) -> None:
    for name in ("till-1", "till-2"):
        assert re.search(rf"Task-\d+ of {name} \(", in_vain.reason)


def test_what_was_never_awaited_is_told_though_something_else_failed(in_vain: RunOutcome) -> None:
    (text,) = in_vain.unawaited
    assert text.startswith("AIOKafkaProducer.flush, made at ")
