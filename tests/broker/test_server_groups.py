"""A `Server` with a group coordinator."""

from __future__ import annotations

import asyncio
import time

import pytest

from coordwire.broker import BrokerConfig, Server
from coordwire.client import connect
from coordwire.coordinator import GroupCoordinator, TopicsImage, log_entries
from coordwire.messages import (
    JoinGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
)
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.records import batches
from tests.broker.handler_server import TOPIC, At
from tests.broker.peer import Peer, run
from tests.cancelled import timers

pytestmark = pytest.mark.usefixtures("only_warnings")


def quick() -> GroupCoordinator:
    coordinator = GroupCoordinator(partitions=2, config=BrokerConfig().coordinator)
    coordinator.set_topics(TopicsImage([TOPIC]), now=0)
    return coordinator


def committed(offset: int) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=1, committed_offset=offset)
    topics = [OffsetCommitRequestTopic(name="orders", partitions=[partition])]
    return OffsetCommitRequest(group_id="tills", topics=topics)


def test_sessions_end_by_time_alone() -> None:
    async def main() -> None:
        coordinator = quick()
        async with Server({}, coordinator=coordinator) as server, Peer(At(server)) as peer:
            request = JoinGroupRequest(
                group_id="tills",
                session_timeout_ms=200,
                rebalance_timeout_ms=200,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range")],
            )
            joined = await peer.ask(request, 3)
            assert (joined.error_code, joined.generation_id) == (0, 1)
            assert not coordinator.groups["tills"].is_empty
            await asyncio.sleep(0.5)
            assert coordinator.groups["tills"].is_empty

    run(main())


def test_a_log_is_loaded_again() -> None:
    async def main() -> None:
        logs: dict[int, list[bytes]] = {0: [], 1: []}
        keep = lambda partition, batch: logs[partition].append(batch)  # noqa: E731
        async with Server({}, coordinator=quick(), append=keep) as server, Peer(At(server)) as peer:
            answer = await peer.ask(committed(17), 8)
            assert [part.error_code for part in answer.topics[0].partitions] == [0]
        assert sum(map(len, logs.values())) == 1

        def loaded(now: int) -> Server:
            coordinator = quick()
            for partition, log in logs.items():
                coordinator.load(partition, log_entries(batches(b"".join(log))), now=now)
            return Server({}, coordinator=coordinator)

        async with loaded(time.time_ns() // 1_000_000) as server, connect(server.bootstrap) as client:
            listed = await client.request(ListGroupsRequest())
        assert [group.group_id for group in listed.groups] == ["tills"]
        with pytest.raises(ValueError, match="ms since 1970"):
            await loaded(0).start()

    run(main())


def test_a_taken_address_leaves_no_timer() -> None:
    async def main() -> None:
        async with Server({}) as other:
            server = Server({}, coordinator=quick(), port=other.address[1])
            before = timers(asyncio.get_running_loop())
            with pytest.raises(OSError, match="address already in use"):
                await server.start()
            assert timers(asyncio.get_running_loop()) == before

    run(main())


def test_an_append_that_fails_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        def full(partition: int, batch: bytes) -> None:
            raise OSError("no space left")

        async with Server({}, coordinator=quick(), append=full) as server, Peer(At(server)) as peer:
            answer = await peer.ask(committed(17), 8)
            assert [part.error_code for part in answer.topics[0].partitions] != [0]
            assert "no space left" in caplog.text

    run(main())


def test_aiokafka_lists_what_there_is() -> None:
    admin_module = pytest.importorskip("aiokafka.admin")

    async def main() -> None:
        async with Server({}, coordinator=quick()) as server:
            admin = admin_module.AIOKafkaAdminClient(bootstrap_servers=server.bootstrap)
            await admin.start()
            assert await admin.list_topics() == ["orders"]
            assert await admin.list_consumer_groups() == []
            await admin.close()

    run(main())
