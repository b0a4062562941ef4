"""Programs of others through a tap, with the results that they have without: Kafka's Verifiable tools and its
Streams, suites of franz-go and kafka-python, clients of many kinds, and Apache Kafka itself behind it.

Strategy: a suite's broker is one with a tap before it, whose addresses are all that the suite sees. Rules: no
request is lost, and no response whose connection goes on; what changed is addresses alone.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Self

import pytest

from coordwire.broker import Broker, BrokerConfig, BrokerThread
from coordwire.broker.harness import Kafka
from coordwire.coordinator import CoordinatorConfig, StreamsGroupConfig
from coordwire.tap import KafkaTap, Tap, TapCounts, TapThread
from tests.broker.faults_run import COUNT
from tests.broker.streams_application import WordCount
from tests.broker.suites import (
    aiokafka_tests,
    client_matrix,
    kafka_python,
    kgo,
    share_consumers,
    verifiable,
)
from tests.broker.suites.checks import Checks
from tests.broker.test_fault_clients import KINDS, UNANSWERED, _reached, faults_of, franz_go, python_client
from tests.interop.broker import Broker as ApacheBroker
from tests.interop.broker import Java
from tests.interop.maven import Unavailable
from tests.tap.upstream import Addressed


class TappedBroker:
    """In the place of `Broker` in a suite: its thread has the bootstrap servers of a tap before it."""

    taps: list[TapThread]

    def __init__(self, broker: BrokerThread) -> None:
        self._broker = broker
        self._tap: TapThread | None = None

    @classmethod
    def in_thread(cls, **settings: Any) -> Self:
        return cls(Broker.in_thread(**settings))

    def __enter__(self) -> Self:
        self._broker.start()
        self._tap = Tap.in_thread(self._broker.bootstrap)
        self._tap.start()
        self.taps.append(self._tap)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._tap is not None
        self._tap.stop()
        self._broker.stop()

    @property
    def bootstrap(self) -> str:
        assert self._tap is not None
        return self._tap.bootstrap

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return Addressed(self.bootstrap).addresses

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)


class TappedKafka:
    """In the place of `Kafka` in a suite, as `TappedBroker`. settings: of `Kafka`."""

    taps: list[TapThread]

    def __init__(self, **settings: Any) -> None:
        self._kafka = Kafka(**settings)
        self._tap: TapThread | None = None

    def __enter__(self) -> Self:
        self._kafka.__enter__()
        self._tap = Tap.in_thread(self._kafka.bootstrap)
        self._tap.start()
        self.taps.append(self._tap)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._tap is not None
        self._tap.stop()
        self._kafka.__exit__(kind, error, trace)

    @property
    def bootstrap(self) -> str:
        assert self._tap is not None
        return self._tap.bootstrap

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kafka, name)


_ONE_NODE = {"offsets.topic.replication.factor": "1"}

MATRIX = [
    (client, mode)
    for client in ("confluent-kafka", "aiokafka", "kafka-python", "kafka-clients")
    for mode in ("classic", "consumer", "transactions", "moves")
    if mode != "consumer" or client in ("confluent-kafka", "kafka-clients")  # the others have no KIP-848
]
"""Clients and what they do."""

KNOWN_FAILURES = {
    "admin": {"test_create_describe_delete_acls", "test_create_partitions"},
    "aiokafka": {"test_consumer_invalid_session_timeout"},
}
"""By check, the tests of kafka-python and aiokafka that fail at this broker without a tap, too."""

Suite = Callable[[Checks, tuple[str, ...]], None]
SUITES: list[tuple[ModuleType, Suite, tuple[str, ...]]] = [
    (kgo, kgo.run, ("client",)),
    (kgo, kgo.run, ("groups",)),
    (verifiable, verifiable.run, ("classic",)),
    (verifiable, verifiable.run, ("consumer",)),
    (share_consumers, share_consumers.run, ()),
    (aiokafka_tests, aiokafka_tests.run, ()),
    *((kafka_python, kafka_python.run, (name,)) for name in ("consumer", "producer", "admin")),
    *((client_matrix, client_matrix.run, names) for names in MATRIX),
]


@pytest.mark.suites
@pytest.mark.parametrize(
    "case", SUITES, ids=lambda case: "-".join((case[0].__name__.rpartition(".")[2], *case[2]))
)
def test_a_suite_passes(
    case: tuple[ModuleType, Suite, tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    module, run, only = case
    taps: list[TapThread] = []
    for name, tapped in (("Broker", TappedBroker), ("Kafka", TappedKafka)):
        monkeypatch.setattr(tapped, "taps", taps, raising=False)
        monkeypatch.setattr(module, name, tapped, raising=False)
    checks = Checks(f"tapped-{only}")
    try:
        run(checks, only)
    except Unavailable as reason:
        pytest.skip(str(reason))
    if module is client_matrix and not (checks.passed or checks.failures):
        pytest.skip("the client is not to be had here")
    failed = {check: set(re.findall(r"::(test_\w+)", text)) for check, text in checks.failures.items()}
    assert all(tests == KNOWN_FAILURES.get(check) for check, tests in failed.items()), checks.failures
    assert failed or checks.passed
    for tap in taps:
        passed_unchanged(tap.counts, may_end="moves" in only)


def passed_unchanged(counts: TapCounts, *, may_end: bool = False) -> None:
    """Whether all that came passed, and addresses alone were changed. may_end: a node was stopped."""
    print(counts)
    assert counts.requests_in > 0
    assert counts.requests_in == counts.requests_out
    assert counts.responses_in == counts.responses_out
    assert set(counts.changed) <= {"addresses"}
    assert counts.unmatched == 0
    assert may_end or counts.refused == 0


@pytest.mark.suites
@pytest.mark.maven
def test_kafkas_streams_count_words_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An application in a streams group, one of whose two instances is killed."""
    taps: list[TapThread] = []
    monkeypatch.setattr(TappedKafka, "taps", taps, raising=False)
    streams = StreamsGroupConfig(
        session_timeout_ms=6_000, heartbeat_interval_ms=500, assignment_interval_ms=0,
        initial_rebalance_delay_ms=0,
    )  # fmt: skip
    config = BrokerConfig(coordinator=CoordinatorConfig(streams=streams))
    with TappedKafka(topics={"lines": 4, "counts": 3}, config=config) as kafka:
        tapped: Any = kafka
        try:
            application = WordCount(tapped, tmp_path)
        except Unavailable as reason:
            pytest.skip(str(reason))
        with application:
            application.start("a")
            application.until_stable(1)
            application.write(200)
            application.start("b")
            application.until_stable(2)
            application.write(200)
            application.until_counted()
            application.kill("a")
            application.write(100)
            application.until_stable(1)
            application.until_counted()
        passed_unchanged(taps[0].counts)


@pytest.mark.clients
@pytest.mark.parametrize("client", ["confluent", "kafka-python", "aiokafka", "franz-go"])
def test_every_kind_of_fault_reaches_a_client(client: str) -> None:
    """Those of the broker's own tests, made by a tap before a broker that has none. What is held has its own
    test."""
    run = franz_go() if client == "franz-go" else python_client(client)
    kinds = [kind for kind in KINDS if kind != "hold"]
    with Kafka(topics=kinds, nodes=3) as kafka, KafkaTap(kafka.bootstrap) as tap:
        faulted: Any = tap
        faults = {kind: faults_of(faulted, kind) for kind in kinds}
        command = [*run, tap.bootstrap.split(",")[0], *kinds]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        if "ModuleNotFoundError" in done.stderr:
            pytest.skip(done.stderr.splitlines()[-1])
        assert done.returncode == 0, done.stderr[-3000:]
        tap.check()
        seen = json.loads(done.stdout.splitlines()[-1])
        expected = [str(number) for number in range(COUNT)]
        for kind, of_kind in faults.items():
            assert seen[kind] == {"failures": [], "seen": expected}, kind
            assert kafka.committed(kind) == {(kind, 0): COUNT}
            for api, fault in of_kind.items():
                _reached(faulted, kind, api, fault)
        assert tap.counts.dropped["fault"] == 3 * len(UNANSWERED)


@pytest.mark.maven
def test_apache_kafka_behind_it(tmp_path: Path) -> None:
    """Kafka 4.4 with Kafka's own producer, a group's consumer and the tool for groups before the tap."""
    try:
        java = Java()
        with ApacheBroker(java, tmp_path / "data", _ONE_NODE) as broker, KafkaTap(broker.address) as tap:
            at = ("--bootstrap-server", tap.bootstrap)
            java.run(
                "org.apache.kafka.tools.TopicCommand", *at, "--create", "--topic", "t", "--partitions", "3"
            )
            produced = java.run(
                "org.apache.kafka.tools.VerifiableProducer", *at, "--topic", "t", "--max-messages", "500"
            )
            assert '"acked":500' in produced
            consumed = java.run(
                "org.apache.kafka.tools.VerifiableConsumer",
                *at, "--topic", "t", "--group-id", "g", "--max-messages", "500",
            )  # fmt: skip
            assert '"name":"offsets_committed"' in consumed
            described = java.run(
                "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
                *at,
                "--describe",
                "--group",
                "g",
            )
            lags = re.findall(r"^g +t +\d+ +(\d+) +(\d+) +0 ", described, re.MULTILINE)
            assert sum(int(committed) for committed, _ in lags) == 500
            counts, timeline = tap.counts, tap.timeline()
    except Unavailable as reason:
        pytest.skip(str(reason))
    passed_unchanged(counts)
    assert counts.changed["addresses"]
    assert counts.unread == 0
    assert timeline
