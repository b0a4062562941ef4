"""A server with two handlers, and what its tests ask of it."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from coordwire import encode_request
from coordwire.broker import Handlers, Server, ServerCall
from coordwire.coordinator import TopicImage
from coordwire.messages import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from coordwire.messages.describe_groups import DescribedGroup
from coordwire.messages.list_groups import ListedGroup

TOPIC = TopicImage(UUID(int=7), "orders", 2)


def describe(request: DescribeGroupsRequest, call: ServerCall) -> DescribeGroupsResponse:
    state = f"{call.client_id} v{call.version}"
    groups = [DescribedGroup(group_id=name, group_state=state) for name in request.groups]
    return DescribeGroupsResponse(groups=groups)


async def list_groups(request: ListGroupsRequest, call: ServerCall) -> ListGroupsResponse:
    await asyncio.sleep(0)
    host, port = call.address
    return ListGroupsResponse(groups=[ListedGroup(group_id=f"{host}:{port} of {call.peer[0]}")])


def broken(request: Any, call: ServerCall) -> Any:
    raise KeyError("no such till")


HANDLERS: Handlers = {DescribeGroupsRequest: describe, ListGroupsRequest: list_groups}

GROUPS = encode_request(DescribeGroupsRequest(groups=["g"]), version=5, correlation_id=1)


class At:
    """What `Peer` needs of a server."""

    def __init__(self, server: Server) -> None:
        self.addresses = [server.address]


def reasons(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged, without clients' ports."""
    return [record.message.split(": ", 1)[-1] for record in caplog.records if record.name != "asyncio"]


async def exchanged(server: Server, data: bytes) -> bytes:
    """What the server sends for these bytes until it closes the connection."""
    reader, writer = await asyncio.open_connection(*server.address)
    writer.write(data)
    answer = await reader.read()
    writer.close()
    return answer
