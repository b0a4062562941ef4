"""A data folder goes from `coordwire.broker` to a Kafka broker and back, with its groups and transactions.

Strategy: a folder is written by one of them, through Kafka's own console tools, taken over by the other on
the same files, and then by the first again; each reads what both have written, a group goes on at its offset,
and both say the same of what an administrator has set (`kept_facts`). Kafka's broker is a KRaft node on
loopback that is its own controller. Rules: nothing is read twice by the group, and nothing is left out; a
producer that the one has fenced is fenced by the other. Both are of one release, as neither starts with
levels of features that are newer than it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coordwire.broker import Broker, BrokerConfig
from coordwire.coordinator import CoordinatorConfig
from tests.broker.suites import kept_facts
from tests.broker.suites.checks import Checks
from tests.interop.broker import Broker as KafkaBroker
from tests.interop.broker import Java
from tests.interop.maven import COMPLETE

_TOOLS = "org.apache.kafka.tools."
_EVERYBODY = "User:ANONYMOUS"
_SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": _EVERYBODY,
}
_TOPIC, _GROUP = "orders", "readers"


def run(checks: Checks, only: tuple[str, ...] = ()) -> None:
    """Both ways; `only`: "ours first" or "Kafka's first"."""
    java = Java()
    for name, first in (("ours first", True), ("Kafka's first", False)):
        if not only or name in only:
            checks.run(name, lambda first=first: _exchange(java, first))  # type: ignore[misc]


@contextmanager
def _ours(java: Java, folder: Path) -> Iterator[str]:
    config = BrokerConfig(
        coordinator=CoordinatorConfig(release=COMPLETE), authorizer=True, super_users=(_EVERYBODY,)
    )
    with Broker.in_thread(data=folder, config=config) as broker:
        yield broker.bootstrap


@contextmanager
def _kafkas(java: Java, folder: Path) -> Iterator[str]:
    static = (folder / "meta.properties").exists() and not _has_voters(folder)
    with KafkaBroker(java, folder, _SETTINGS, voters=static) as broker:
        yield broker.address


def _has_voters(folder: Path) -> bool:
    """Whether the folder says which nodes are the quorum's, as one that Kafka has formatted does."""
    return any(folder.glob("__cluster_metadata-0/*.checkpoint"))


def _exchange(java: Java, ours_first: bool) -> None:
    first, second = (_ours, _kafkas) if ours_first else (_kafkas, _ours)
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "data"
        number = 0
        for turn, brokers in enumerate((first, second, first, second)):
            with brokers(java, folder) as bootstrap:
                if not turn:
                    _topic(java, bootstrap)
                kept_facts.check(bootstrap, turn)
                _write(java, bootstrap, number, number + 100)
                read = _read(java, bootstrap, 100)
                assert read == list(range(number, number + 100)), f"turn {turn}: the group read {read}"
                number += 100
                _transactions(java, bootstrap, turn)
                everything = _everything(java, bootstrap, number)
                assert everything == list(range(number)), f"turn {turn}: {everything}"


def _topic(java: Java, bootstrap: str) -> None:
    at = ("--bootstrap-server", bootstrap, "--topic", _TOPIC)
    java.run(f"{_TOOLS}TopicCommand", *at, "--create", "--partitions", "3", "--config", "retention.ms=-1")


def _write(java: Java, bootstrap: str, start: int, end: int) -> None:
    lines = b"".join(b"%d\n" % number for number in range(start, end))
    java.pipe(lines, f"{_TOOLS}ConsoleProducer", "--bootstrap-server", bootstrap, "--topic", _TOPIC)


def _read(java: Java, bootstrap: str, count: int) -> list[int]:
    """What the group reads next."""
    return _consumed(java, bootstrap, count, "--group", _GROUP)


def _everything(java: Java, bootstrap: str, count: int) -> list[int]:
    return _consumed(java, bootstrap, count, "--isolation-level", "read_committed")


def _consumed(java: Java, bootstrap: str, count: int, *options: str) -> list[int]:
    result = java.run(
        f"{_TOOLS}consumer.ConsoleConsumer", "--bootstrap-server", bootstrap, "--topic", _TOPIC,
        "--from-beginning", "--max-messages", str(count), "--timeout-ms", "30000", *options,
    )  # fmt: skip
    return sorted(int(line) for line in result.splitlines() if line.isdecimal())


def _transactions(java: Java, bootstrap: str, turn: int) -> None:
    """A transactional producer goes on with its id: one epoch after the other, on whichever broker."""
    result = java.run(
        f"{_TOOLS}ProducerPerformance", "--topic", "ledger", "--num-records", "200", "--record-size", "50",
        "--throughput", "-1", "--bootstrap-server", bootstrap, "--transactional-id", "ledger",
        "--transaction-duration-ms", "50",
    )  # fmt: skip
    assert "200 records sent" in result, result
    at = ("--bootstrap-server", bootstrap)
    result = java.run(f"{_TOOLS}TransactionsCommand", *at, "describe", "--transactional-id", "ledger")
    assert "CompleteCommit" in result, result
    result = java.run(f"{_TOOLS}GetOffsetShell", *at, "--topic-partitions", "ledger:0", "--time", "latest")
    count = int(result.strip().rpartition(":")[2])
    assert count > 200 * (turn + 1), f"{count} records and markers after {turn + 1} turns"
