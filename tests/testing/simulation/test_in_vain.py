"""What must not pass in vain: names that nothing has, crashes in a loop, calls without their `await`."""

from __future__ import annotations

import asyncio
import gc
import sys
import warnings
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from coordwire.broker.harness.cluster_view import ask_coordinator
from coordwire.messages import OffsetCommitRequest
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.testing.simulation import RunOutcome, SimulatedKafka, SimulatedWorld, Simulation, parse_plan

GROUP, TOPIC = "books", "orders"
Body = Callable[[SimulatedKafka, SimulatedWorld], Awaitable[None]]


def run(body: Body, plan: str = "") -> RunOutcome:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        await body(kafka, world)

    faults = parse_plan(plan) if plan else ()
    return Simulation(test=test, nodes=1, settings={"topics": {TOPIC: 2}}, faults=faults).run(0)


def commit(kafka: SimulatedKafka) -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    topic = OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
    request = OffsetCommitRequest(group_id=GROUP, topics=[topic])
    answer: Any = ask_coordinator(kafka.broker.broker.cluster, GROUP, request, 8)
    assert answer.topics[0].partitions[0].error_code == 0


@pytest.mark.parametrize(
    ("group", "topic", "reason"),
    [
        (GROUP, TOPIC, None),
        ("boks", TOPIC, "caught_up: no group is named 'boks'; there are books"),
        (GROUP, "ordrs", "caught_up: no topic is named 'ordrs'; there are orders"),
    ],
)
def test_a_group_that_is_to_catch_up_exists(group: str, topic: str, reason: str | None) -> None:
    async def body(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        commit(kafka)
        await world.caught_up(group, topic)

    outcome = run(body)
    assert (outcome.failure and outcome.reason) == reason


def test_a_group_that_comes_later_may_be_awaited() -> None:
    async def later(kafka: SimulatedKafka) -> None:
        await asyncio.sleep(30)
        commit(kafka)

    async def body(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        world.start("late", later, kafka)
        await world.caught_up(GROUP, TOPIC)
        assert world.now > 30

    assert run(body).failure is None


def test_a_group_catches_up_with_something() -> None:
    async def body(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        await world.caught_up(GROUP)

    assert isinstance(run(body).failure, TypeError)


@pytest.mark.parametrize(
    ("lives", "seconds", "is_found"), [(99, 1.0, True), (4, 1.0, False), (99, 20.0, False)]
)
def test_a_process_that_crashes_again_and_again_is_found(lives: int, seconds: float, is_found: bool) -> None:
    async def crashes(world: SimulatedWorld) -> None:
        await asyncio.sleep(seconds)
        if services[0].starts <= lives:
            raise OSError("no such order")
        await asyncio.Event().wait()

    services: list[Any] = []

    async def body(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        services.append(world.start("books-1", crashes, world))
        await asyncio.sleep(1)

    outcome = run(body)
    if not is_found:
        assert outcome.failure is None, outcome.reason
        return
    assert outcome.reason == (
        "CrashLoop: books-1 ended 5 times in a row, without a fault, by OSError('no such order')"
    )


def test_what_is_awaited_in_vain_says_where_processes_wait() -> None:
    async def books(kafka: SimulatedKafka) -> None:
        commit(kafka)
        await asyncio.Event().wait()

    async def caught_up(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        world.start("books-1", books, kafka)
        kafka.produce(TOPIC, "tea")
        await world.caught_up(GROUP, TOPIC)

    async def until(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        world.start("books-1", books, kafka)
        await world.until(lambda: False)

    line = books.__code__.co_firstlineno + 2
    for body in (caught_up, until):
        reason = run(body).reason
        assert reason.startswith(f"{body.__name__}: ")
        assert reason.endswith(f"; these tasks wait: books-1 (test_in_vain.py:{line})")


def test_crashes_while_there_are_faults_are_none() -> None:
    async def fails_at_first(world: SimulatedWorld) -> None:
        if world.now < 40:
            raise OSError("not yet")
        await asyncio.Event().wait()

    async def body(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        world.start("books-1", fails_at_first, world)
        await world.calm()

    assert run(body).failure is not None
    assert run(body, "1s slow books-1 * 200ms for 60s").failure is None


async def book() -> None:
    """Called without `await`."""


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("in_process", [False, True])
def test_a_forgotten_await_is_found(in_process: bool) -> None:
    async def forgets() -> None:
        book()  # type: ignore[unused-coroutine]
        await asyncio.sleep(1)

    async def body(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        if in_process:
            world.start("books-1", forgets)
            await asyncio.sleep(1)
        else:
            await forgets()

    before = warnings.filters[:], warnings.showwarning, sys.get_coroutine_origin_tracking_depth()
    outcome = run(body)
    line = forgets.__code__.co_firstlineno + 1
    assert outcome.reason == f"NeverAwaited: no await for book, made at {__file__}:{line}"
    assert (warnings.filters[:], warnings.showwarning, sys.get_coroutine_origin_tracking_depth()) == before


def test_other_warnings_are_shown_as_ever() -> None:
    async def body(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        warnings.warn("the cake is late", RuntimeWarning, stacklevel=2)

    with pytest.warns(RuntimeWarning, match="the cake is late"):
        assert run(body).failure is None


def test_what_a_run_leaves_behind_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """Its coroutines are closed when it has failed, and begin others that nothing runs any more."""

    async def close() -> None:
        """Never begins."""

    async def till() -> None:
        try:
            await asyncio.sleep(1_000)
        finally:
            task = asyncio.create_task(close())
            asyncio.get_running_loop().call_later(1, task.cancel)
            await task

    worlds: list[weakref.ref[SimulatedWorld]] = []

    async def body(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        worlds.append(weakref.ref(world))
        for number in range(3):
            world.start(f"till-{number}", till)
        await asyncio.sleep(1)
        world.services("till-1")[0].crash()
        raise ValueError("in any case")

    outcome = run(body)
    assert outcome.reason == "ValueError: in any case"
    assert worlds[0]() is None
    assert outcome.pcapng is not None
    assert outcome.timeline is not None
    assert (outcome.pcapng()[:4].hex(), outcome.timeline()) == ("0a0d0d0a", [])
    del outcome
    gc.collect()
    assert capfd.readouterr().err == ""
