"""Nothing is left of brokers that were started and stopped with a client attached: no thread, no file, and no
object that grows with their number."""

from __future__ import annotations

import gc
import os
import threading

import pytest

from coordwire.broker.harness import Kafka
from coordwire.broker.injection import FaultRule
from coordwire.messages import MetadataRequest
from tests.broker.blocking_peer import BlockingPeer


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
