"""Promises, and the runs of handlers that await them."""

from __future__ import annotations

import pytest

from coordwire.broker.cluster.promise import HandlerRun, Promise, immediate_result
from coordwire.broker.handlers import APIS
from coordwire.broker.handlers.api_call import ApiCall
from coordwire.codec import Message
from coordwire.messages import FetchRequest, HeartbeatRequest
from coordwire.messages.fetch import FetchPartition, FetchTopic
from tests.broker.core import Core


def test_a_run_goes_on_inside_the_call_that_fulfils_its_promise() -> None:
    first, second = Promise[int](), Promise[int]()
    results: list[int] = []

    async def handler() -> int:
        return await first + await second

    def advance() -> None:
        result = run.advance()
        if result is not None:
            results.append(result)

    run = HandlerRun(handler(), advance)
    advance()
    second.fulfil(2)
    assert not results
    first.fulfil(1)
    assert results == [3]
    first.fulfil(9)  # is ignored
    assert first.value == 1
    assert results == [3]
    run.close()  # has ended


def test_a_closed_run_cleans_up_and_is_not_resumed() -> None:
    promise = Promise[int]()
    steps: list[str] = []

    async def handler() -> None:
        try:
            await promise
            steps.append("resumed")
        finally:
            steps.append("closed")

    run = HandlerRun(handler(), lambda: steps.append("called"))
    run.advance()
    run.close()
    promise.fulfil(1)
    run.close()
    assert steps == ["closed"]


def test_a_result_at_once() -> None:
    async def handler(promise: Promise[int]) -> int:
        return await promise

    assert immediate_result(handler(Promise(5))) == 5
    with pytest.raises(RuntimeError, match="waits"):
        immediate_result(handler(Promise()))
    with pytest.raises(ValueError, match="unpack"):
        _ = Promise[int]().value


def test_a_fetch_of_a_client_that_leaves_listens_to_no_log() -> None:
    core = Core(topics={"orders": 1})
    topic = FetchTopic(topic="orders", partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)])
    answers, run = core.begin(FetchRequest(min_bytes=1, max_wait_ms=9_999, topics=[topic]), 12)
    partition = core.cluster.partition("orders", 0)
    assert partition is not None
    assert len(partition.log.listeners) == 1
    run.close()
    assert not partition.log.listeners
    core.pass_time(10_000)
    assert not answers


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4),
        (
            FetchRequest(
                max_wait_ms=0,
                topics=[FetchTopic(topic="orders", partitions=[FetchPartition(partition=0, fetch_offset=0)])],
            ),
            11,
        ),
    ],
    ids=["Heartbeat", "Fetch"],
)
def test_an_answer_that_is_there_at_once_costs_no_coroutine(message: Message, version: int) -> None:
    assert message.api_key is not None
    call = ApiCall(Core(topics={"orders": 1}).cluster, 1, message, version, "test", "/127.0.0.1")
    assert isinstance(APIS[message.api_key].handler(call), Message)
