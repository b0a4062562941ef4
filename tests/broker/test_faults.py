"""Faults over sockets: each kind reaches the client, and handles report it."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from coordwire.broker import Broker, BrokerConfig
from coordwire.broker.injection import FaultNotReached, FaultRule, FaultyRule, Incoming, parse_fault
from coordwire.broker.injection.lawful_rules import LAWFUL_RULES
from coordwire.enums import ErrorCode
from coordwire.messages import (
    FetchRequest,
    HeartbeatRequest,
    MetadataRequest,
    ProduceRequest,
    SaslHandshakeRequest,
)
from coordwire.messages.fetch import FetchPartition, FetchTopic
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from tests.broker.core import batch
from tests.broker.peer import Peer, run

TOPICS = {"orders": 2}
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


@pytest.fixture(autouse=True)
def _nothing_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def produced(acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=batch(b"value"))
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name="orders", partition_data=[data])]
    )


def end_of(broker: Broker) -> int:
    partition = broker.cluster.partition("orders", 0)
    assert partition is not None
    return partition.log.end_offset


async def ends(peer: Peer) -> bytes:
    """What a connection still brings before it ends."""
    data = b""
    while piece := await peer.reader.read(1 << 16):
        data += piece
    return data


def test_an_error_once_and_the_next_is_as_ever() -> None:
    async def main() -> None:
        async with Broker(topics=TOPICS) as broker, Peer(broker, client_id="a") as peer:
            fault = broker.faults.add(
                FaultRule(
                    "Heartbeat", group="g", client="a", member="m", nth=2, error="REBALANCE_IN_PROGRESS"
                )
            )
            errors = [(await peer.ask(HEARTBEAT, 4)).error_code for _ in range(4)]
            unknown = int(ErrorCode.UNKNOWN_MEMBER_ID)
            assert errors == [unknown, int(ErrorCode.REBALANCE_IN_PROGRESS), unknown, unknown]
            assert (fault.hits, fault.matches, fault.is_spent) == (1, 2, True)
            assert await fault.wait() == 1
            assert fault.requests[0].message == HEARTBEAT
            broker.faults.check()

    run(main())


@pytest.mark.parametrize(
    ("conditions", "matches"),
    [
        ({"apis": HeartbeatRequest}, True),
        ({"apis": 12}, True),
        ({"apis": ["Fetch", "heartbeat"]}, True),
        ({"apis": "*"}, True),
        ({"node": 1, "group": "g"}, True),
        ({"when": lambda request: request.message.generation_id == 1}, True),
        ({"apis": "Fetch"}, False),
        ({"node": 2}, False),
        ({"group": "h"}, False),
        ({"member": "n"}, False),
        ({"client": "b"}, False),
        ({"topic": "orders"}, False),
        ({"partition": 0}, False),
        ({"transactional_id": "g"}, False),
        ({"when": lambda request: request.version == 3}, False),
    ],
)
def test_conditions(conditions: dict[str, Any], matches: bool) -> None:
    async def main() -> None:
        async with Broker() as broker, Peer(broker) as peer:
            fault = broker.faults.add(FaultRule(**conditions, error="ILLEGAL_GENERATION"))
            answer = await peer.ask(HEARTBEAT, 4)
            assert (answer.error_code == ErrorCode.ILLEGAL_GENERATION) == matches
            assert fault.hits == matches

    run(main())


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("acks", [-1, 0])
def test_a_disconnect_before_and_after_the_work(after: bool, acks: int) -> None:
    async def main() -> None:
        async with Broker(topics=TOPICS) as broker, Peer(broker) as peer, Peer(broker) as other:
            broker.faults.add(FaultRule("Produce", nth=2, disconnect=True, after=after))
            for _ in range(3):
                peer.send(produced(acks), 9)
            received = await ends(peer)
            assert (len(received) > 0) == bool(acks)
            assert end_of(broker) == (2 if after else 1)
            await other.ask(MetadataRequest(topics=None), 12)

    run(main())


def test_an_answer_that_is_lost() -> None:
    """The work is done, and the connection stays, without a word."""

    async def main() -> None:
        async with Broker(topics=TOPICS) as broker, Peer(broker) as peer:
            fault = broker.faults.add(FaultRule("Produce", lose=True))
            peer.send(produced(), 9)
            peer.send(produced(), 9)
            await fault.wait()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await peer.receive()
            assert end_of(broker) == 1
            assert not peer.reader.at_eof()

    run(main())


@pytest.mark.parametrize("with_delay", [False, True])
def test_half_a_frame(with_delay: bool) -> None:
    async def main() -> None:
        async with Broker(topics=TOPICS) as broker, Peer(broker) as peer, Peer(broker) as whole:
            request = MetadataRequest(topics=None)
            whole.send(request, 12)
            size = int.from_bytes(await whole.reader.readexactly(4), "big") + 4
            broker.faults.add(FaultRule("Metadata", half=True, delay=0.01 if with_delay else 0))
            peer.send(request, 12)
            assert len(await ends(peer)) == size // 2

    run(main())


@pytest.mark.parametrize("after", [False, True])
def test_a_request_is_held_and_released(after: bool) -> None:
    async def main() -> None:
        async with Broker(topics=TOPICS) as broker, Peer(broker) as peer:
            fault = broker.faults.add(FaultRule("Produce", hold=True, after=after))
            peer.send(produced(), 9)
            await fault.wait()
            assert fault.held == 1
            assert end_of(broker) == int(after)
            fault.release()
            assert (await peer.receive()).responses[0].partition_responses[0].base_offset == 0
            assert fault.held == 0

    run(main())


def test_a_client_that_leaves_ends_what_is_held() -> None:
    async def main() -> None:
        async with Broker(topics=TOPICS) as broker:
            fault = broker.faults.add(FaultRule("Produce", hold=True, delay=30, times=None))
            async with Peer(broker) as peer:
                peer.send(produced(), 9)
                await fault.wait()
            while broker.links:
                await asyncio.sleep(0.001)
            assert fault.held == 0
            fault.remove()
            assert end_of(broker) == 0

    run(main())


def test_a_delay_and_a_throttle_time() -> None:
    async def main() -> None:
        async with Broker(topics=TOPICS) as broker, Peer(broker) as peer:
            fault = broker.faults.add(FaultRule("Produce", delay=0.05, throttle=1.5, after=True))
            waiting = asyncio.create_task(peer.ask(produced(), 9))
            await fault.wait()
            assert end_of(broker) == 1
            assert not waiting.done()
            assert (await waiting).throttle_time_ms == 1500
            assert (await peer.ask(produced(), 9)).throttle_time_ms == 0

    run(main())


def test_a_delayed_fetch_still_waits_for_records() -> None:
    """What a handler answers later comes after a delay too, and its alarm rings."""

    async def main() -> None:
        async with Broker(topics=TOPICS) as broker, Peer(broker) as peer:
            broker.faults.add(FaultRule("Fetch", delay=0.01))
            topic = FetchTopic(
                topic="orders",
                partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)],
            )
            answer = await peer.ask(FetchRequest(max_wait_ms=30, min_bytes=1, topics=[topic]), 11)
            assert answer.responses[0].partitions[0].error_code == 0

    run(main())


def test_an_error_of_a_produce_without_answer_closes_its_connection() -> None:
    async def main() -> None:
        async with Broker(topics=TOPICS) as broker, Peer(broker) as peer:
            broker.faults.add(FaultRule("Produce", topic="orders", error="NOT_LEADER_OR_FOLLOWER"))
            peer.send(produced(0), 9)
            assert await ends(peer) == b""
            assert end_of(broker) == 0

    run(main())


def test_authentication_can_fail_by_a_fault() -> None:
    async def main() -> None:
        config = BrokerConfig(users={"ann": "secret"})
        async with Broker(config=config) as broker, Peer(broker) as peer:
            broker.faults.add(FaultRule("SaslHandshake", error="UNSUPPORTED_SASL_MECHANISM"))
            answers = [await peer.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1) for _ in range(2)]
            assert [answer.error_code for answer in answers] == [33, 0]

    run(main())


def test_probability_is_drawn_by_its_seed() -> None:
    async def main(seed: int) -> list[bool]:
        async with Broker() as broker, Peer(broker) as peer:
            broker.faults.add(
                FaultRule("Heartbeat", times=None, probability=0.5, seed=seed, error="ILLEGAL_GENERATION")
            )
            return [
                (await peer.ask(HEARTBEAT, 4)).error_code == ErrorCode.ILLEGAL_GENERATION for _ in range(20)
            ]

    first = run(main(1))
    assert first == run(main(1)) != run(main(2))
    assert 0 < sum(first) < 20


# --- what tests learn ---


def test_a_seed_draws_what_a_client_has_to_live_with() -> None:
    drawn = [[handle.rule for handle in Broker().faults.draw(seed)] for seed in (*range(30), 17)]
    assert drawn[17] == drawn[-1]
    assert len({tuple(map(str, rules)) for rules in drawn}) == 30
    everything = {f"{replace(rule, times=1, probability=1.0, seed=0)}" for rules in drawn for rule in rules}
    lasting = {text for text in LAWFUL_RULES if not re.search(r"delay|lose|Metadata", text)}
    assert everything == {f"{replace(parse_fault(text), optional=True)}" for text in lasting}

    async def main() -> None:
        async with Broker(topics=TOPICS) as broker, Peer(broker) as peer:
            handles = [handle for handle in broker.faults.draw(7) if "Heartbeat" in f"{handle.rule}"]
            codes = {(await peer.ask(HEARTBEAT, 4)).error_code for _ in range(100)}
            hits = sum(handle.hits for handle in handles)
            assert codes == {ErrorCode.UNKNOWN_MEMBER_ID, *(handle.rule.code for handle in handles)}
            assert 5 < hits < 100 * len(handles)
            broker.faults.check()  # none of them has to fire

    run(main())


def test_a_rule_that_never_fired_is_reported() -> None:
    async def main() -> None:
        async with Broker() as broker, Peer(broker) as peer:
            fault = broker.faults.add(FaultRule("Heartbeat", nth=2, lose=True))
            broker.faults.add(FaultRule("Fetch", lose=True, optional=True))
            await peer.ask(HEARTBEAT, 4)
            with pytest.raises(FaultNotReached, match=r"^never fired: Heartbeat nth=2 lose \(1 requests"):
                broker.faults.check()
            with pytest.raises(TimeoutError, match=r"waited 0.01 s for 1 hit of .*; it had 0, of 1 requests"):
                await fault.wait(timeout=0.01)
            fault.remove()
            broker.faults.check()

    run(main())


def test_a_predicate_that_fails_is_reported() -> None:
    def wrong(request: Incoming) -> bool:
        raise KeyError(request.node)

    async def main() -> None:
        async with Broker() as broker, Peer(broker) as peer:
            broker.faults.add(FaultRule("Heartbeat", when=wrong, lose=True, optional=True))
            await peer.ask(HEARTBEAT, 4)
            with pytest.raises(FaultNotReached, match=r"raised KeyError\(1\)"):
                broker.faults.check()

    run(main())


def test_threads_wait_and_release() -> None:
    """A program that blocks, with the broker on a thread of its own."""
    with Broker.in_thread(topics=TOPICS) as broker:
        fault = broker.faults.add(FaultRule("Metadata", hold=True))

        async def client() -> None:
            async with Peer(broker.broker) as peer:
                await peer.ask(MetadataRequest(topics=None), 12)

        thread = threading.Thread(target=asyncio.run, args=(client(),))
        thread.start()
        assert fault.wait().value == 1
        assert fault.wait(1).value == 1
        fault.release()
        thread.join(10)
        assert not thread.is_alive()
        broker.faults.check()
        with pytest.raises(TimeoutError):
            fault.wait(2, timeout=0.01)


def test_what_a_coroutine_does_not_await_is_known() -> None:
    async def main() -> None:
        async with Broker() as broker, Peer(broker) as peer:
            fault = broker.faults.add(FaultRule("Heartbeat", error="ILLEGAL_GENERATION"))
            waiting = fault.wait()
            assert broker.faults.waits.unawaited() == [
                "<1 hit of the fault Heartbeat error=ILLEGAL_GENERATION: not there yet>"
            ]
            with pytest.raises(RuntimeError, match="to be awaited first"):
                _ = waiting.value
            await peer.ask(HEARTBEAT, 4)
            assert await waiting == waiting.value == 1
            assert broker.faults.waits.unawaited() == []

    run(main())


# --- text ---


@pytest.mark.parametrize(
    "text",
    [
        "Heartbeat group=g nth=3 error=REBALANCE_IN_PROGRESS",
        'Produce,Fetch node=2 topic="my topic" partition=0 times=all delay=200ms',
        "* client=a times=3 probability=0.25 seed=7 throttle=1500ms optional",
        'EndTxn transactional_id="a \\"b\\" \\\\" disconnect after',
        "OffsetFetch member=m error=UNSTABLE_OFFSET_COMMIT at=partition after",
        "Produce lose",
        "Metadata hold half",
    ],
)
def test_a_rule_as_text_and_back(text: str) -> None:
    rule = parse_fault(text)
    assert str(rule) == text
    assert parse_fault(str(rule)) == rule


def test_words_in_any_order_and_other_spellings() -> None:
    expected = parse_fault("JoinGroup group='it is' delay=1.5s error=25")
    assert expected == parse_fault("  join_group error=unknown_member_id  delay=1500ms group=it' 'is ")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected an API and what becomes of its requests, got an empty text"),
        (
            "Heartbeet lose",
            "expected the name of an API, got 'Heartbeet', at character 1; did you mean Heartbeat?",
        ),
        (
            "Fetch,Prduce lose",
            "expected the name of an API, got 'Prduce', at character 7; did you mean Produce?",
        ),
        ("Fetch", "expected an error, delay, hold, disconnect, lose, half or throttle, got none in 'Fetch'"),
        (
            "Fetch grup=g lose",
            "expected a condition or an action, got 'grup=g', at character 7; did you mean group?",
        ),
        ("Fetch lose=1", "expected lose without a value, got 'lose=1', at character 7"),
        ("Fetch group lose", "expected group=VALUE, got 'group', at character 7"),
        ("Fetch lose lose", "expected lose once, got it again, at character 12"),
        (
            "Fetch error=NOT_LEADER",
            "expected Kafka's name of an error, got 'NOT_LEADER', at character 13; "
            "did you mean NOT_LEADER_OR_FOLLOWER?",
        ),
        ("Fetch delay=5", "expected a time such as 200ms or 1.5s, got '5', at character 13"),
        ("Fetch nth=-1 lose", "expected a number for nth, got '-1', at character 11"),
        ("Fetch nth=0 lose", "expected nth to be at least 1, got 0 in 'Fetch nth=0 lose'"),
        ("Fetch probability=2 lose", "expected a probability above 0 and up to 1, got '2', at character 19"),
        ("Fetch topic='a lose", "expected the quote ' to be closed, at character 13"),
        ("Fetch lose half", "expected one end of the connection, got lose and half in 'Fetch lose half'"),
        (
            "Fetch disconnect error=2",
            "expected no error or throttle time with a disconnect before the work in 'Fetch disconnect"
            " error=2'",
        ),
        ("Fetch at=row error=2", None),
        ("Fetch error=NONE", "expected an error code, got NONE in 'Fetch error=NONE'"),
    ],
)
def test_a_text_that_is_wrong(text: str, reason: str | None) -> None:
    with pytest.raises(FaultyRule) as error_info:
        parse_fault(text)
    if reason is None:
        reason = (
            "expected one of request, group, transaction, coordinator, resource, topic, member, partition,"
            " got 'row', at character 10"
        )
    assert str(error_info.value) == reason
