"""Handlers of a `Server` that fail, wait, and answer clients that send no more."""

from __future__ import annotations

import asyncio
import logging
import ssl
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from coordwire.broker import Server, ServerCall
from coordwire.broker.server import link
from coordwire.messages import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatResponse,
)
from tests.broker.handler_server import GROUPS, HANDLERS, At, broken, describe, exchanged, reasons
from tests.broker.peer import Peer, run

pytestmark = pytest.mark.usefixtures("only_warnings")


async def broken_later(request: Any, call: ServerCall) -> Any:
    await asyncio.sleep(0)
    raise KeyError("no such till")


async def cancelled(request: Any, call: ServerCall) -> Any:
    raise asyncio.CancelledError("no such till")


def of_another_class(request: Any, call: ServerCall) -> Any:
    return HeartbeatResponse()


def no_message(request: Any, call: ServerCall) -> Any:
    return b"no such till"


def too_large(request: Any, call: ServerCall) -> Any:
    return DescribeGroupsResponse(throttle_time_ms="no such till")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "handler", [broken, broken_later, cancelled, of_another_class, no_message, too_large]
)
def test_a_handler_that_fails_is_reported(
    handler: Callable[[Any, ServerCall], Any], caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with Server({DescribeGroupsRequest: handler}) as server:
            assert await exchanged(server, GROUPS) == b""
            (record,) = caplog.records
            assert "DescribeGroupsRequest version 5 from 127.0.0.1:" in record.message
            assert record.levelno == logging.ERROR
            assert record.exc_info is not None
            said = f"{record.exc_info[1]}"
            assert "no such till" in said or "HeartbeatResponse" in said or "throttle_time_ms" in said

    run(main())


def test_a_request_that_gets_no_answer_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with Server({DescribeGroupsRequest: lambda request, call: None}) as server:
            assert await exchanged(server, GROUPS) == b""
            assert reasons(caplog) == ["the handler of DescribeGroupsRequest has no answer"]

    run(main())


@pytest.mark.parametrize("ends", ["client", "server"])
def test_a_handler_that_waits_ends_with_its_connection(
    ends: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "LAST_ANSWERS", 0.2)

    async def main() -> None:
        began, ended = asyncio.Event(), asyncio.Event()

        async def wait(request: DescribeGroupsRequest, call: ServerCall) -> DescribeGroupsResponse:
            began.set()
            try:
                await asyncio.sleep(60)
            finally:
                ended.set()
            raise AssertionError

        async with Server({DescribeGroupsRequest: wait}) as server:
            _, writer = await asyncio.open_connection(*server.address)
            writer.write(GROUPS)
            await began.wait()
            assert "1 connection" in repr(server)
            if ends == "client":
                writer.close()
            else:
                await server.stop()
            await ended.wait()
            writer.close()
        assert reasons(caplog) == []

    run(main())


def test_stop_waits_for_what_handlers_clean_up() -> None:
    async def main() -> None:
        began, cleaned = asyncio.Event(), []

        async def wait(request: DescribeGroupsRequest, call: ServerCall) -> DescribeGroupsResponse:
            began.set()
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(0.2)
                cleaned.append(call.client_id)
            raise AssertionError

        async with Server({DescribeGroupsRequest: wait}) as server:
            for ends_before in (True, False):
                began.clear()
                _, writer = await asyncio.open_connection(*server.address)
                writer.write(GROUPS)
                await began.wait()
                if ends_before:
                    writer.transport.abort()
                    await asyncio.sleep(0.05)
            await server.stop()
            assert len(cleaned) == 2
            writer.close()

    run(main())


def test_a_handler_may_stop_the_server() -> None:
    async def main() -> None:
        stopped = asyncio.Event()

        async def stop(request: DescribeGroupsRequest, call: ServerCall) -> None:
            try:
                await server.stop()
            finally:
                stopped.set()

        server = Server({DescribeGroupsRequest: stop})
        async with server:
            assert await exchanged(server, GROUPS) == b""
            await stopped.wait()

    run(main())


@pytest.mark.parametrize("begun", [b"", b"\x16\x03\x01"])
def test_stop_ends_handshakes(begun: bytes, certificate: tuple[Path, Path]) -> None:
    """A client that connects, begins TLS and sends no more."""
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(*certificate)

    async def main() -> None:
        async with Server(HANDLERS, tls=served) as server:
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(begun)
            await asyncio.sleep(0.1)
            await server.stop()
            with suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 5) == b""
            writer.close()

    run(main())


def test_handshakes_are_bounded(certificate: tuple[Path, Path], caplog: pytest.LogCaptureFixture) -> None:
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(*certificate)
    trusting = ssl.create_default_context(cafile=str(certificate[0]))

    async def main() -> None:
        async with Server(HANDLERS, tls=served, max_connections=1) as server:
            _, begun = await asyncio.open_connection(*server.address)
            await asyncio.sleep(0.1)
            with pytest.raises(ConnectionError):
                await asyncio.open_connection(*server.address, ssl=trusting)
            assert reasons(caplog) == ["there are max_connections already"]
            begun.close()
            await asyncio.sleep(0.1)
            async with Peer(At(server), tls=trusting) as peer:
                assert (await peer.ask(DescribeGroupsRequest(groups=["g"]), 5)).groups

    run(main())


# --- clients that have sent all ---


def later(seconds: float) -> Callable[..., Any]:
    async def handle(request: DescribeGroupsRequest, call: ServerCall) -> DescribeGroupsResponse:
        await asyncio.sleep(seconds)
        return describe(request, call)

    return handle


@pytest.mark.parametrize("seconds", [0, 0.2])
def test_a_client_that_sends_no_more_gets_its_answers(
    seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with Server({DescribeGroupsRequest: later(seconds)}) as server:
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(GROUPS * 3 + GROUPS[:7])
            writer.write_eof()
            answers = await reader.read()
            (size,) = struct.unpack_from(">i", answers)
            assert len(answers) == 3 * (4 + size)
            writer.close()
            assert reasons(caplog) == ["it ended 7 bytes into a request"]

    run(main())


def test_a_client_that_is_gone_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "LAST_ANSWERS", 0.2)

    async def main() -> None:
        async with Server({DescribeGroupsRequest: later(60)}) as server:
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(GROUPS)
            writer.write_eof()
            with suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()

    run(main())
