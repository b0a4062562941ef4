"""Client, broker, server, tap and watch are cancelled at each await: nothing is left or lost.

Strategy: a run without a cancellation counts the awaits of all its tasks; then one run for each of them,
twice: cancelled when it begins to wait, and when what it waits for has come. A part of a test has one in
PARTS of them; the first runs in any case. Rule: what a broker has acknowledged is in its folder.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from coordwire.broker import Broker, BrokerConfig, Server
from coordwire.cli.watch import cluster_reader, offsets_follower, open_follower
from coordwire.cli.watch.problems import Problems
from coordwire.client import ClientSettings, Scram, connect, connect_sync, settings_of
from coordwire.coordinator import GroupCoordinator
from coordwire.messages import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    ListGroupsRequest,
    ListGroupsResponse,
    MetadataRequest,
    ProduceRequest,
)
from coordwire.messages.metadata import MetadataRequestTopic
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.records import Record, batches, encode_batch
from coordwire.tap import Tap
from coordwire.timeline.events import TopicPartition
from tests.cancelled import Cancellation, CountingRunner, Work, cancelled_at
from tests.certificates import make_certificate

TOPICS = {"orders": 4}
PARTS = 12

in_parts = pytest.mark.parametrize("part", range(PARTS))
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


def produce(value: bytes) -> ProduceRequest:
    """A record for two partitions."""
    rows = [
        PartitionProduceData(index=index, records=encode_batch([Record(value=value)])) for index in (0, 1)
    ]
    topic = TopicProduceData(name="orders", partition_data=rows)
    return ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])


async def ask(settings: ClientSettings | str, acknowledged: list[bytes] | None = None) -> None:
    """A client's usual requests: several at once, for several nodes."""
    async with connect(settings) as client:
        await client.request(MetadataRequest(topics=[MetadataRequestTopic(name="orders")]))
        await asyncio.gather(
            client.request(ListGroupsRequest()),
            client.request(FindCoordinatorRequest(key="tills", key_type=0)),
        )
        value = b"%d" % (len(acknowledged or ()))
        answer = await client.request(produce(value))
        codes = [row.error_code for topic in answer.responses for row in topic.partition_responses]
        assert codes == [0, 0]
        if acknowledged is not None:
            acknowledged.append(value)


async def each(work: Work, part: int, ended: Callable[[], Awaitable[None]] | None = None) -> None:
    """Cancel a run at the awaits of a part. ended: waits for what is not the run's."""
    await cancelled_at(work, 0)  # what is made once
    awaits, found = await cancelled_at(work, 0)
    assert not found, found
    wrong = []
    for at in range(1 + part, awaits + 1, PARTS):
        for is_late in (False, True):
            reached, found = await cancelled_at(work, at, is_late=is_late)
            if reached < at:  # a faster run
                found.remove("ended: None")
            wrong += [f"await {at} of {awaits}{', late' * is_late}: {what}" for what in found]
            if ended is not None:
                await ended()
    assert not wrong, "\n".join(wrong)


def quiet(broker: Broker) -> Callable[[], Awaitable[None]]:
    async def wait() -> None:
        while broker.links:
            await asyncio.sleep(0.001)

    return wait


@pytest.mark.parametrize("is_secured", [False, True])
@in_parts
def test_a_client(part: int, is_secured: bool, certificate: tuple[Path, Path]) -> None:
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(*certificate)
    trusting = ssl.create_default_context(cafile=str(certificate[0]))

    async def main() -> None:
        config = BrokerConfig(users={"till": "secret"} if is_secured else {})
        async with Broker(
            topics=TOPICS, nodes=2, config=config, tls=served if is_secured else None
        ) as broker:
            (host, port), *_ = broker.addresses
            settings = ClientSettings(bootstrap=((host, port),))
            if is_secured:
                settings = replace(settings, tls=trusting, sasl=Scram("till", "secret"))
            await each(lambda: ask(settings), part, quiet(broker))

    asyncio.run(main())


@pytest.mark.parametrize("is_secured", [False, True])
@in_parts
def test_a_broker(part: int, is_secured: bool, certificate: tuple[Path, Path], tmp_path: Path) -> None:
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(*certificate)
    acknowledged: list[bytes] = []

    async def work() -> None:
        tls = served if is_secured else None
        async with Broker(topics=TOPICS, nodes=2, data=tmp_path / "kafka", tls=tls) as broker:
            if not is_secured:
                await ask(broker.bootstrap, acknowledged)

    async def check() -> None:
        async with Broker(nodes=2, data=tmp_path / "kafka") as broker:
            for index in (0, 1):
                data = broker.cluster.topics["orders"].partitions[index].log.read(0, 1 << 30).data
                kept = [record.value for batch in batches(data) for record in batch]
                assert set(acknowledged) <= set(kept)

    async def main() -> None:
        await each(work, part)
        await check()

    asyncio.run(main())


@in_parts
def test_a_server(part: int) -> None:
    def list_groups(request: object, call: object) -> ListGroupsResponse:
        return ListGroupsResponse()

    async def work() -> None:
        coordinator = GroupCoordinator(partitions=1)
        async with (
            Server({ListGroupsRequest: list_groups}, coordinator=coordinator) as server,
            connect(server.bootstrap) as client,
        ):
            await client.request(ListGroupsRequest(), to="any")
            await client.request(HeartbeatRequest(group_id="tills"))

    asyncio.run(each(work, part))


@pytest.mark.parametrize("is_secured", [False, True])
@in_parts
def test_a_tap(part: int, is_secured: bool, certificate: tuple[Path, Path]) -> None:
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(*certificate)

    async def main() -> None:
        async with Broker(topics=TOPICS, nodes=2) as broker:

            async def work() -> None:
                async with Tap(broker.bootstrap, tls=served if is_secured else None) as tap:
                    if not is_secured:
                        await ask(tap.bootstrap)

            await each(work, part, quiet(broker))

    asyncio.run(main())


@in_parts
def test_a_watch(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by Ctrl-C, which ends the run that an `asyncio.Runner` has; a second one, the run that closes. One
    node does not answer, so that there is something to be cancelled at the end."""
    monkeypatch.setattr(cluster_reader, "PATIENCE_S", 0.05)
    monkeypatch.setattr(offsets_follower, "_WAIT_MS", 50)

    def watched(at: int, *, is_late: bool = False) -> tuple[int, list[str]]:
        cancellation = Cancellation(at, is_late=is_late)
        runner = CountingRunner(cancellation)
        monkeypatch.setattr(asyncio, "Runner", lambda: runner)
        ended = "None"
        try:
            with open_follower(settings, OrderedDict(), Problems()) as follower:
                list(follower.items(lambda: False))
                follower.measure([TopicPartition("orders", 1)])
                list(follower.items(lambda: False))
        except asyncio.CancelledError:
            ended = "cancelled"
        return cancellation.awaits, runner.left + [f"ended: {ended}"] * (
            ended != ("cancelled" if at else "None")
        )

    with Broker.in_thread(topics=TOPICS, nodes=2) as broker:
        broker.faults.add("Fetch node=2 times=all lose")
        with connect_sync(broker.bootstrap) as client:
            client.request(FindCoordinatorRequest(key="tills", key_type=0))  # which makes the log
        settings = settings_of({}, bootstrap=broker.bootstrap)
        awaits, found = watched(0)
        assert not found, found
        wrong = []
        for at in range(1 + part, awaits + 1, PARTS):
            for is_late in (False, True):
                reached, found = watched(at, is_late=is_late)
                if reached < at:  # a faster run
                    found.remove("ended: None")
                wrong += [f"await {at} of {awaits}{', late' * is_late}: {what}" for what in found]
    assert not wrong, "\n".join(wrong)
