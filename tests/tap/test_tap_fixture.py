"""The fixture `kafka_tap`, in a run of pytest of its own: its cluster, and what a failure leaves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from coordwire.broker import Broker

ROOT = Path(__file__).parents[2]

SUITE = """
import pytest
from coordwire.messages import MetadataRequest
from tests.broker.blocking_peer import BlockingPeer

def asked(bootstrap):
    with BlockingPeer(bootstrap, "till-3") as peer:
        return peer.ask(MetadataRequest(topics=None), 12)

def test_a_given_cluster(kafka_tap):
    assert [topic.name for topic in asked(kafka_tap.bootstrap).topics] == ["of-the-option"]
    assert kafka_tap.exchange.one(MetadataRequest, client_id="till-3").topics is None
    assert kafka_tap.counts.changed == {"addresses": 1}

@pytest.mark.kafka(topics=["of-the-fixture"])
def test_the_broker_of_the_test(kafka, request):
    request.config.option.kafka_upstream = None
    tap = request.getfixturevalue("kafka_tap")
    fault = tap.faults.add("Metadata topic=of-the-fixture error=LEADER_NOT_AVAILABLE")
    assert asked(tap.bootstrap).topics[0].error_code == 5
    assert fault.hits == 1
    assert kafka.faults.all == []

def test_never_fired(kafka_tap):
    kafka_tap.faults.add("Fetch lose")

def test_of_a_group(kafka_tap):
    kafka_tap.faults.add("Heartbeat group=g error=REBALANCE_IN_PROGRESS")
    with BlockingPeer(kafka_tap.bootstrap, "till-3") as peer:
        member = peer.join("g", "of-the-option", 1)
        assert peer.beat(member) == 0

@pytest.mark.kafka_tap(upstream="a:b:c")
def test_no_address(kafka_tap):
    pass

@pytest.mark.kafka_tap(port="x", no_such=1)
def test_no_setting(kafka_tap):
    pass

@pytest.mark.kafka_tap(1)
def test_no_name(kafka_tap):
    pass
"""


def test_a_run(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    captures = tmp_path / "captures"
    with Broker.in_thread(topics=["of-the-option"]) as broker:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_suite.py", "-rA"]
        command += ["--kafka-upstream", broker.bootstrap, "--kafka-captures", str(captures)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    text = done.stdout
    assert "2 passed, 2 failed, 3 errors" in text or "2 failed, 2 passed, 3 errors" in text, text
    assert "never fired: Fetch lose (0 requests matched)" in text
    assert "assert 27 == 0" in text
    assert "g · classic group" in text
    assert "expected HOST:PORT, got 'a:b:c'" in text
    assert "the settings of the fixture: " in text
    assert "the marker kafka_tap takes names only, got (1,)" in text
    assert [path.name for path in captures.iterdir() if path.name.endswith("-tap.pcap")]
