"""Kafka's own KafkaShareConsumer: every record is delivered, and none again after a member was done with it.

Strategy: members that acknowledge implicitly, explicitly, and with releases and rejections read partitions
together, beside one that keeps what it gets until its locks end, and is killed. What was confirmed to members
is compared with what was produced, and Kafka's share group tool must see no lag at the end. The limit of
deliveries is so high that no record is released as often. Kafka's console share consumer and its share group
tool then do all that they can.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from pathlib import Path

from coordwire.broker import Broker
from tests.broker.suites.checks import Checks
from tests.interop.broker import Java

_MEMBER = str(Path(__file__).parent / "java" / "ShareMember.java")
_CONFIG = "kafka.admin.ConfigCommand"
_TOOL = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
_CONSOLE = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
_RECORDS = 4_000
_IDLE_MS = 8_000
_WAIT = 240


def run(checks: Checks, only: tuple[str, ...] = ()) -> None:
    """One round of each number of partitions."""
    java = Java(flags=["-Xshare:auto"])
    for partitions in (1, 3):
        name = f"share consumers of {partitions} partitions"
        if not only or name in only:
            checks.run(name, lambda partitions=partitions: _round(java, partitions))  # type: ignore[misc]
    if not only or "tools" in only:
        checks.run("tools", lambda: _tools(java))


def _round(java: Java, partitions: int) -> None:
    with (
        tempfile.TemporaryDirectory() as work,
        Broker.in_thread(topics={"orders": partitions}) as broker,
    ):
        at, folder = broker.bootstrap, Path(work)
        _configure(
            java,
            at,
            "share.auto.offset.reset=earliest,share.record.lock.duration.ms=3000,share.delivery.count.limit=10",
        )
        half = _RECORDS // 2
        java.run(_MEMBER, "produce", at, "orders", "0", str(half - 1), wait=_WAIT)
        slow = java.start(_MEMBER, "consume", "slow", at, "orders", "g", "600000", output=folder / "slow")
        try:
            deadline = time.monotonic() + _WAIT
            while "holds" not in _said(folder / "slow"):
                assert time.monotonic() < deadline, _said(folder / "slow")
                time.sleep(0.2)
            members = [
                java.start(
                    _MEMBER, "consume", mode, at, "orders", "g", str(_IDLE_MS), str(number),
                    output=folder / str(number),
                )
                for number, mode in enumerate(("implicit", "explicit", "mixed", "mixed"))
            ]  # fmt: skip
            java.run(_MEMBER, "produce", at, "orders", str(half), str(_RECORDS - 1), wait=_WAIT)
            time.sleep(4)  # longer than a lock
        finally:
            slow.kill()
            slow.wait()
        assert [member.wait(_WAIT) for member in members] == [0] * len(members)
        events = [
            line.split()
            for number in range(len(members))
            for line in _said(folder / str(number)).splitlines()
        ]
        done = Counter((words[1], words[2]) for words in events if words[0] in ("accept", "reject"))
        assert not [words for words in events if words[0] == "error"]
        assert len(done) == _RECORDS, f"{len(done)} records of {_RECORDS} were accepted or rejected"
        assert set(done.values()) == {1}, f"{sum(count > 1 for count in done.values())} came again after that"
        shown = java.run(_TOOL, "--bootstrap-server", at, "--describe", "--group", "g", wait=_WAIT)
        lags = [line.split()[-1] for line in shown.splitlines() if line.startswith("g ")]
        assert lags == ["0"] * partitions, shown


def _tools(java: Java) -> None:
    with Broker.in_thread(topics={"orders": 2}) as broker:
        at = broker.bootstrap

        def group(*arguments: str) -> str:
            return java.run(_TOOL, "--bootstrap-server", at, *arguments, wait=_WAIT)

        def read(count: int, *arguments: str) -> list[str]:
            events = java.run(
                _CONSOLE, "--bootstrap-server", at, "--topic", "orders", "--group", "g", "--timeout-ms",
                str(_IDLE_MS), "--max-messages", str(count), *arguments, wait=_WAIT,
            )  # fmt: skip
            return sorted((line for line in events.splitlines() if line.isdigit()), key=int)

        def starts() -> list[tuple[str, ...]]:
            """Partition, start offset and lag of what the tool shows."""
            shown = (line.split() for line in group("--describe", "--group", "g").splitlines())
            return sorted(tuple(words[2:]) for words in shown if words[:2] == ["g", "orders"])

        _configure(java, at, "share.auto.offset.reset=earliest")
        java.run(_MEMBER, "produce", at, "orders", "0", "99", wait=_WAIT)
        numbers = [str(number) for number in range(100)]
        assert read(100, "--release") == numbers
        assert read(100) == numbers
        assert "g" in group("--list").split()
        assert "Empty" in group("--describe", "--group", "g", "--state")
        assert [words[2] for words in starts()] == ["0", "0"]
        group("--reset-offsets", "--group", "g", "--topic", "orders", "--to-earliest", "--execute")
        assert sum(int(words[2]) for words in starts()) == 100
        assert read(100, "--reject") == numbers
        group("--delete-offsets", "--group", "g", "--topic", "orders")
        assert starts() == []
        group("--delete", "--group", "g")
        assert "g" not in group("--list").split()


def _configure(java: Java, bootstrap: str, settings: str) -> None:
    java.run(
        _CONFIG, "--bootstrap-server", bootstrap, "--alter", "--entity-type", "groups", "--entity-name", "g",
        "--add-config", settings, wait=_WAIT,
    )  # fmt: skip


def _said(path: Path) -> str:
    return path.read_text() if path.exists() else ""
