"""The pytest plugin, in runs of pytest of their own: fixtures, markers, options, and what a failure leaves.

Two runs serve all tests here, as each of them imports a broker.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SUITE = """
import asyncio
import pytest
from coordwire.broker.injection import FaultRule
from coordwire.messages import MetadataRequest
from tests.broker.blocking_peer import BlockingPeer

pytestmark = pytest.mark.kafka(topics={"orders": 2})

def test_of_the_module(kafka):
    kafka.produce("orders", "one")
    with BlockingPeer(kafka.bootstrap) as peer:
        answer = peer.ask(MetadataRequest(topics=None), 12)
    assert [len(topic.partitions) for topic in answer.topics] == [2]

@pytest.mark.kafka(nodes=3, kafka_defaults=True)
def test_a_broker_each(kafka):
    assert kafka.records("orders") == []
    assert kafka.bootstrap.count(",") == 2
    assert kafka.broker.broker.config.coordinator.initial_rebalance_delay_ms == 3000

class TestClass:
    def test_quick(self, kafka, kafka_session):
        assert kafka.broker.broker.config.coordinator.initial_rebalance_delay_ms == 0
        kafka_session.create_topic("kept")

    def test_session(self, kafka_session):
        assert kafka_session.records("kept") == []
        with BlockingPeer(kafka_session.bootstrap) as peer:
            peer.ask(MetadataRequest(topics=None), 12)
        assert kafka_session.exchange.one(MetadataRequest).topics is None

def test_modules_are_not_rewritten(kafka_session):
    import coordwire.broker.broker as module
    assert "Rewriting" not in type(module.__spec__.loader).__name__

def test_optional(kafka_session):
    kafka_session.faults.add("Fetch lose optional")

def test_never_fired(kafka):
    kafka.faults.add(FaultRule("Fetch", topic="orders", lose=True))

def test_never_fired_in_a_session(kafka_session):
    kafka_session.faults.add("Produce lose")

def test_the_next_of_the_session(kafka_session):
    assert kafka_session.exchange.all(MetadataRequest) == []
    assert kafka_session.faults.all == []

async def waits(kafka):
    kafka.group("g").stable()

def test_never_awaited(kafka):
    asyncio.run(waits(kafka))

@pytest.mark.parametrize("name", ["a/b"])
def test_of_a_group(kafka, name):
    kafka.faults.add(FaultRule("Heartbeat", group="g", error="REBALANCE_IN_PROGRESS"))
    with BlockingPeer(kafka.bootstrap, "client-1") as peer:
        member = peer.join("g", "orders", 2)
        assert peer.beat(member) == 0

@pytest.mark.kafka(3)
def test_marker(kafka):
    pass
"""

SETTINGS = """
import pytest
@pytest.fixture(scope='session')
def kafka_settings():
    return {'nodes': 2}
"""

WITH_OPTIONS = """
import asyncio
import pytest

def test_one(kafka_session, kafka):
    assert kafka_session.bootstrap.count(",") == 1
    assert kafka_session.broker.broker.config == kafka.broker.broker.config
    assert kafka.broker.broker.config.coordinator.initial_rebalance_delay_ms == 3000

def test_two(kafka):
    kafka.create_topic("none", cleanup_polcy="compact")

async def waits(kafka):
    await kafka.group("g").stable(timeout=0.05)

def test_three(kafka):
    asyncio.run(waits(kafka))

@pytest.mark.kafka(nodez=3)
def test_four(kafka):
    pass

def test_five(kafka):
    kafka.group("g").wait(lambda group: group.nothing, "something")

def test_six(kafka, monkeypatch):
    from coordwire.broker.log.partition_log import PartitionLog
    monkeypatch.setattr(PartitionLog, "limit", None)
    kafka.produce("orders", "one")
    kafka.records("orders")
"""


def run(folder: Path, source: str, *options: str) -> str:
    """The output of a run of pytest."""
    (folder / "test_it.py").write_text(source)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict-markers", *options]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": paths}
    result = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, timeout=120, env=environment, check=False
    )
    return result.stdout + result.stderr


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    return run(tmp_path_factory.mktemp("suite"), SUITE)


def test_fixtures_and_markers(output: str) -> None:
    failed = re.findall(r"^(?:FAILED|ERROR) test_it.py::(\S+)", output, re.MULTILINE)
    assert sorted(failed) == [
        "test_marker",
        "test_never_awaited",
        "test_never_fired",
        "test_never_fired_in_a_session",
        "test_of_a_group[a/b]",
    ]
    assert "4 failed, 7 passed, 1 error in" in output
    assert "the marker kafka takes names only, got (3,)" in output


def test_a_fault_that_never_fired_fails_its_test(output: str) -> None:
    assert "\nnever fired: Fetch topic=orders lose (0 requests matched)" in output
    assert "\nnever fired: Produce lose (0 requests matched)" in output
    # By lines: where CI is set, pytest's summary contains a reason a second time, after its test's name.
    assert output.count("\nnever fired: Fetch topic=orders lose") == 1
    assert "another exception occurred" not in output
    assert "\nnever awaited: <the group g to be stable: not there yet>" in output


def test_what_a_failed_test_leaves(output: str) -> None:
    report = output[output.index("__ test_of_a_group[a/b] __") :]
    assert re.search(r"^── g .*classic group", report, re.MULTILINE)
    assert "client-1" in report
    assert "<fault Heartbeat group=g error=REBALANCE_IN_PROGRESS: it had 1, of 1 requests" in report
    result = re.search(r"^capture: (.+\.pcap) ", report, re.MULTILINE)
    assert result is not None
    assert Path(result[1]).read_bytes()[:4] == b"\x4d\x3c\xb2\xa1"


@pytest.mark.slow
def test_options_and_settings_of_the_session(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(SETTINGS)
    output = run(tmp_path, WITH_OPTIONS, "--kafka-defaults", "--kafka-captures", "kept")
    assert "4 failed, 1 passed, 1 error in" in output
    assert "expected a setting of a topic, got 'cleanup_polcy'; did you mean cleanup_policy?" in output
    names = [f"test_it.py-test_{number}.pcap" for number in ("two", "three", "five", "six")]
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == sorted(names)
    assert f"capture: kept/{names[0]}" in output


def frames(output: str, test: str) -> set[str]:
    """The files in the traceback of a test."""
    report = re.split(r"^_+ (?:ERROR at setup of )?(\w+) _+$", output, flags=re.MULTILINE)
    (text,) = [text for name, text in zip(report[1::2], report[2::2], strict=True) if name == test]
    result = re.findall(r"^([\w./-]+\.py):\d+: ", text, re.MULTILINE)
    return {Path(name).name for name in result}


@pytest.mark.slow
def test_a_mistake_is_shown_where_the_test_made_it(tmp_path: Path) -> None:
    output = run(tmp_path, WITH_OPTIONS)
    for test in ("test_two", "test_three", "test_five"):
        assert frames(output, test) == {"test_it.py"}
    assert frames(output, "test_four") == set()
    wrong = "expected a setting of Broker or BrokerConfig, got 'nodez'; did you mean nodes?"
    assert f"\nthe settings of the fixture: {wrong}\n" in output
    assert "another exception occurred" not in output
    # Nothing is hidden of what goes wrong in the broker, nor where all is asked for.
    assert {"test_it.py", "cluster_view.py", "partition_log.py"} <= frames(output, "test_six")
    full = run(tmp_path, WITH_OPTIONS, "--full-trace", "-k", "test_two")
    assert {"test_it.py", "cluster_view.py", "thread.py"} <= frames(full, "test_two")


WITHOUT_A_CODEC = """
import sys
from coordwire.records import Record, encode_batch
from tests.broker.blocking_peer import BlockingPeer
from tests.broker.core import batch
from coordwire.messages import ProduceRequest
from coordwire.messages.produce import PartitionProduceData, TopicProduceData

def test_stored(kafka, kafka_session, monkeypatch):
    data = batch(b"one", codec="zstd")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    for running in (kafka, kafka_session):
        running.create_topic("orders")
        with BlockingPeer(running.bootstrap) as peer:
            part = PartitionProduceData(index=0, records=data)
            topic = TopicProduceData(name="orders", partition_data=[part])
            answer = peer.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic]), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
    monkeypatch.undo()
    assert [record.value for record in kafka.records("orders")] == [b"one"]
"""


def test_a_missing_codec_is_named_once(tmp_path: Path) -> None:
    pytest.importorskip("zstandard")
    output = run(tmp_path, WITHOUT_A_CODEC)
    assert "1 passed" in output
    assert output.count("zstd needs the package zstandard: pip install 'coordwire[compression]'") == 1


def test_other_runs_import_nothing(tmp_path: Path) -> None:
    """A run that uses none of the fixtures loads the plugin's two modules, and no other of this package."""
    (tmp_path / "conftest.py").write_text(
        "import sys\n"
        "def pytest_unconfigure():\n"
        "    print(sorted(name for name in sys.modules if 'coordwire' in name and name[0] != '_'))\n"
    )
    expected = "['pytest_coordwire', 'pytest_coordwire.simulated_worlds']"
    assert run(tmp_path, "def test_one(): pass\n").splitlines()[-1] == expected
