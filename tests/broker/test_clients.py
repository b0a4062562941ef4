"""Real clients against a broker, each in a process of its own, with the Python that has it.

COORDWIRE_CLIENTS names a virtual environment with kafka-python, aiokafka and confluent-kafka.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from coordwire.broker import Broker, BrokerConfig

pytestmark = pytest.mark.clients

COUNT = 300


def run(scenario: str, bootstrap: str) -> dict[str, Any]:
    """What a scenario of `clients_run.py` prints."""
    home = os.environ.get("COORDWIRE_CLIENTS")
    if not home:
        pytest.skip("COORDWIRE_CLIENTS names no virtual environment with Kafka clients")
    python = Path(home) / "bin" / "python"
    script = Path(__file__).with_name("clients_run.py")
    result = subprocess.run(
        [str(python), str(script), scenario, bootstrap], capture_output=True, text=True, timeout=120
    )
    if "ModuleNotFoundError" in result.stderr:
        pytest.skip(result.stderr.splitlines()[-1])
    assert result.returncode == 0, result.stderr
    report: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return report


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("scenario", ["confluent", "kip_848"])
def test_librdkafka(scenario: str, nodes: int) -> None:
    with Broker.in_thread(topics={"orders": 6}, nodes=nodes) as broker:
        result = run(scenario, broker.bootstrap)
    assert result == {
        "codecs": ["none", "gzip", "snappy", "lz4", "zstd"],
        "seen": COUNT,
        "shared": True,
        "committed": COUNT,
        "partitions": 3,
        "state": "EMPTY",
    }


def test_kafka_python() -> None:
    with Broker.in_thread(topics={"orders": 6}, nodes=3) as broker:
        result = run("kafka_python", broker.bootstrap)
    assert result == {"seen": COUNT, "ends": COUNT, "beginnings": 0, "committed": COUNT}


def test_aiokafka() -> None:
    with Broker.in_thread(topics={"orders": 6}, nodes=3) as broker:
        result = run("aiokafka", broker.bootstrap)
    assert result == {"seen": COUNT, "committed": COUNT}


def test_groups_and_offsets_outlive_a_restart(tmp_path: Path) -> None:
    """What a client committed is there after a restart from the folder, and so are the records."""
    with Broker.in_thread(topics={"orders": 6}, data=tmp_path) as broker:
        assert run("kafka_python", broker.bootstrap)["committed"] == COUNT
    with Broker.in_thread(data=tmp_path) as broker:
        result = run("kafka_python", broker.bootstrap)
    assert result["ends"] == result["committed"] == 2 * COUNT


COMMITTED = sorted(f"{value} {partition}" for value in ("one", "two") for partition in range(6))
CONFIGS = {"at once": BrokerConfig(), "later": BrokerConfig(marker_delay_ms=30)}


@pytest.mark.parametrize("markers", CONFIGS)
def test_transactions_of_librdkafka(markers: str) -> None:
    with Broker.in_thread(topics={"orders": 6}, nodes=3, config=CONFIGS[markers]) as broker:
        result = run("confluent_transactions", broker.bootstrap)
    assert result == {
        "committed": COMMITTED,
        "all": 18,
        "offsets": [5, 5],
        "fenced": "_FENCED",
        "after": ["kept"],
    }


@pytest.mark.parametrize("client", ["kafka_python", "aiokafka"])
@pytest.mark.parametrize("markers", CONFIGS)
def test_transactions_of_other_clients(client: str, markers: str) -> None:
    with Broker.in_thread(topics={"orders": 6}, nodes=3, config=CONFIGS[markers]) as broker:
        result = run(f"{client}_transactions", broker.bootstrap)
    assert result["seen"] == ["one"] * 6 + ["two"] * 6
    assert result["offsets"] == [5, 5]
    assert "Fenced" in result["fenced"]


def test_a_transaction_outlives_a_restart(tmp_path: Path) -> None:
    with Broker.in_thread(topics={"orders": 6}, data=tmp_path) as broker:
        run("leave_open", broker.bootstrap)
    with Broker.in_thread(data=tmp_path) as broker:
        assert run("take_over", broker.bootstrap) == {"seen": ["kept", "next"]}


def test_clients_authenticate() -> None:
    config = BrokerConfig(users={"ann": "p=,w"})
    with Broker.in_thread(topics={"orders": 6}, config=config) as broker:
        result = run("sasl", broker.bootstrap)
    expected = [True, "KafkaException", True]
    assert result == {"PLAIN": expected, "SCRAM-SHA-256": expected, "SCRAM-SHA-512": expected}
