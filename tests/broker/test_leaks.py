"""Nothing is left of brokers that were started and stopped with a client attached: no thread, no file, and no
object that grows with their number."""

from __future__ import annotations

import asyncio
import gc
import os
import threading

import pytest

from coordwire.broker import Broker
from coordwire.broker.connections.client_link import ClientLink
from coordwire.broker.harness import Kafka
from coordwire.broker.injection import FaultRule
from coordwire.messages import MetadataRequest
from tests.broker.blocking_peer import BlockingPeer
from tests.broker.peer import run


def start_and_stop() -> None:
    kafka = Kafka(topics={"orders": 3})
    kafka.broker.start()
    kafka.faults.add(FaultRule("Metadata", delay=30, nth=2))
    with BlockingPeer(kafka.bootstrap) as peer:
        peer.ask(MetadataRequest(topics=None), 12)
        peer.socket.sendall(peer.connection.send(MetadataRequest(topics=None), version=12))
        kafka.broker.stop()


def left() -> tuple[int, int, int]:
    """Threads, open files, objects."""
    for _ in range(3):
        gc.collect()  # PyPy frees what has finalizers in a later one
    folder = "/proc/self/fd"
    return (
        threading.active_count(),
        len(os.listdir(folder)) if os.path.isdir(folder) else 0,
        len(gc.get_objects()),
    )


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.long)])
def test_nothing_is_left(count: int) -> None:
    for _ in range(10):
        start_and_stop()
    threads, files, objects = left()
    for _ in range(count):
        start_and_stop()
    now = left()
    assert now[:2] == (threads, files)
    assert now[2] - objects < count / 4


def test_a_connection_may_end_after_its_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that the loop ends later than `stop` waits for."""
    monkeypatch.setattr(ClientLink, "abort", lambda link: None)
    lost, errors = ClientLink.connection_lost, list[dict[str, object]]()
    is_over = asyncio.Event()

    def connection_lost(link: ClientLink, exc: Exception | None) -> None:
        is_over.set()
        lost(link, exc)

    monkeypatch.setattr(ClientLink, "connection_lost", connection_lost)

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        broker = Broker()
        await broker.start()
        _, writer = await asyncio.open_connection(*broker.addresses[0])
        while not broker.links:
            await asyncio.sleep(0.01)
        await broker.stop()
        writer.close()
        await is_over.wait()

    run(main())
    assert errors == []
