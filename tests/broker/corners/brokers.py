"""The brokers that answer the cases: Apache Kafka's, and this one with Kafka's settings."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from coordwire.broker import Broker, BrokerConfig
from coordwire.coordinator import CoordinatorConfig
from coordwire.messages import FindCoordinatorRequest
from tests.interop.broker import Broker as KafkaBroker
from tests.interop.broker import BrokerError, Java, ask

RELEASE = "4.4.0"
_SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "5",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "auto.create.topics.enable": "true",
}
_FEATURES = {"eligible.leader.replicas.version": 0}
"""This broker has no eligible leader replicas, with which a cluster sets `min.insync.replicas` of its own."""

_WAIT = 60


@contextmanager
def kafka(release: str = RELEASE) -> Iterator[tuple[str, int]]:
    """The address of a real broker whose coordinators are ready. Raises `Unavailable`."""
    with TemporaryDirectory() as place:
        folder = Path(place) / "logs"
        folder.mkdir()
        with KafkaBroker(Java(release, "recording"), folder, _SETTINGS, features=_FEATURES) as broker:
            for key_type in (0, 1):
                _wait_for_coordinator(broker.port, key_type)
            yield "127.0.0.1", broker.port


def _wait_for_coordinator(port: int, key_type: int) -> None:
    deadline = time.monotonic() + _WAIT
    while time.monotonic() < deadline:
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["any"])
        answer = ask(port, request, version=4)
        if answer.coordinators[0].error_code == 0:  # type: ignore[attr-defined]
            return
        time.sleep(0.2)
    raise BrokerError(f"no coordinator of type {key_type} in {_WAIT} s")


@contextmanager
def ours() -> Iterator[tuple[str, int]]:
    """The address of this package's broker."""
    config = BrokerConfig.kafka(
        coordinator=CoordinatorConfig(initial_rebalance_delay_ms=0),
        offsets_partitions=5,
        transactions_partitions=5,
    )
    with Broker.in_thread(config=config) as broker:
        address = broker.addresses[0]
        for key_type in (0, 1):
            _wait_for_coordinator(address[1], key_type)
        yield address
