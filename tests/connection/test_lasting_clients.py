"""The client that servers and taps know, where only a connection's first request names it (KIP-1313).

Strategy: no API of a released Kafka has that header, so a process of its own serves, in which all flexible
requests have it. A peer of bytes is the client.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.bench.lasting_clients import SWITCH

_SERVED = (
    SWITCH
    + """
import asyncio, struct
from coordwire.broker import Broker, Server
from coordwire.frames import decode_response, encode_request
from coordwire.messages import (
    ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest, ListGroupsRequest, ListGroupsResponse,
)
from coordwire.tap import Tap

NAMED = {"client_id": "till-3", "header_tags": {0: bytes(16)}}
NAMELESS = {"header_tags": {0: bytes(16)}}
JOIN = ConsumerGroupHeartbeatRequest(
    group_id="g", member_id="m", member_epoch=0, rebalance_timeout_ms=1000, subscribed_topic_names=["t"],
    topic_partitions=[],
)

async def ask(streams, message, version, names):
    reader, writer = streams
    writer.write(encode_request(message, version=version, correlation_id=7, **names))
    size = struct.unpack(">i", await reader.readexactly(4))[0]
    wire = struct.pack(">i", size) + await reader.readexactly(size)
    return decode_response(wire, api_key=message.api_key, version=version).message

async def of_broker(first):
    async with Broker() as broker:
        host, port = broker.bootstrap.split(":")
        streams = await asyncio.open_connection(host, int(port))
        await ask(streams, ListGroupsRequest(), 4, first)
        await ask(streams, JOIN, 1, {})
        answer = await ask(streams, ConsumerGroupDescribeRequest(group_ids=["g"]), 0, {})
        streams[1].close()
    return [member.client_id for member in answer.groups[0].members]

async def of_server(first):
    seen = []
    def list_groups(request, call):
        seen.append(call.client_id)
        return ListGroupsResponse()
    async with Server({ListGroupsRequest: list_groups}) as server:
        host, port = server.bootstrap.split(":")
        streams = await asyncio.open_connection(host, int(port))
        for names in (first, {}):
            await ask(streams, ListGroupsRequest(), 4, names)
        streams[1].close()
    return seen

async def of_tap(first):
    async with Broker() as broker, Tap(broker.bootstrap) as tap:
        host, port = tap.bootstrap.split(":")
        streams = await asyncio.open_connection(host, int(port))
        await ask(streams, ListGroupsRequest(), 4, first)
        tap.faults.add("ListGroups client=till-3 error=COORDINATOR_NOT_AVAILABLE")
        answer = await ask(streams, ListGroupsRequest(), 4, {})
        streams[1].close()
    return answer.error_code

for first in (NAMED, NAMELESS, {}):
    print(asyncio.run(of_broker(first)), asyncio.run(of_server(first)), asyncio.run(of_tap(first)))
"""
)


@pytest.mark.parametrize("implementation", ["", "python"])
def test_servers_and_taps_remember_the_client(implementation: str) -> None:
    environment = {"COORDWIRE_IMPL": implementation} if implementation else {}
    result = subprocess.run(
        [sys.executable, "-c", _SERVED], capture_output=True, text=True, check=False, timeout=60,
        env=environment | {"PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "['till-3'] ['till-3', 'till-3'] 15", "[''] ['', ''] 0", "[''] ['', ''] 0",
    ]  # fmt: skip
