"""Kafka's VerifiableProducer and VerifiableConsumer, with consumers that are killed and started again.

Strategy: the producer writes numbers, and reports each one that was acknowledged; three consumers of a group
report what they read and what they have committed, as lines of JSON. One of them is killed (SIGKILL) again
and again and another is started, once in order. Rules: what was acknowledged is in the log once; the
consumers together have read it all; within one consumer's ownership of a partition nothing is read twice or
passed over; committed offsets end at the logs' ends.
"""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from coordwire.broker import Broker, BrokerThread
from tests.broker.suites.checks import Checks
from tests.interop.broker import Java

_TOPIC, _PARTITIONS, _GROUP = "verified", 6, "readers"
_MEMBERS, _KILLS = 3, 4
_PER_SECOND = 400
_WAIT = 90


class _Program:
    """A JVM that prints events."""

    def __init__(self, java: Java, output: Path, *arguments: str) -> None:
        self._output = output
        self.process: subprocess.Popen[bytes] = java.start(*arguments, output=output)

    def events(self, kind: str) -> Iterator[dict[str, Any]]:
        """The events of a kind so far, whole lines only."""
        for line in self._output.read_text(errors="replace").split("\n")[:-1]:
            if line.startswith("{"):
                event = json.loads(line)
                if event.get("name") == kind:
                    yield event

    def end(self, number: int) -> None:
        """Send a signal, and wait until it has ended."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def run(checks: Checks, only: tuple[str, ...] = ()) -> None:
    """Classic groups and KIP-848's; `only`: "classic" or "consumer"."""
    java = Java(flags=["-Xshare:auto"])
    for protocol in only or ("classic", "consumer"):
        checks.run(protocol, lambda protocol=protocol: _scenario(java, protocol))  # type: ignore[misc]


def _scenario(java: Java, protocol: str) -> None:
    with tempfile.TemporaryDirectory() as work, ExitStack() as ended:
        broker = ended.enter_context(Broker.in_thread(topics={_TOPIC: _PARTITIONS}, nodes=3))
        at = Path(work)
        programs: list[_Program] = []

        def started(name: str, *arguments: str) -> _Program:
            common = ("--bootstrap-server", broker.bootstrap, "--topic", _TOPIC)
            output = at / f"{len(programs)}-{name}.txt"
            program = _Program(java, output, f"org.apache.kafka.tools.{name}", *common, *arguments)
            ended.callback(program.end, signal.SIGKILL)
            programs.append(program)
            return program

        def consumer() -> _Program:
            more = ("--session-timeout", "6000") if protocol == "classic" else ()
            return started(
                "VerifiableConsumer", "--group-id", _GROUP, "--group-protocol", protocol, "--reset-policy",
                "earliest", *more,
            )  # fmt: skip

        producer = started("VerifiableProducer", "--throughput", str(_PER_SECOND), "--acks", "-1")
        members = [consumer() for _ in range(_MEMBERS)]
        _until(lambda: _read(members[-1]) > 0, "the last consumer reads")
        for number in range(_KILLS):
            gone = members.pop(0)
            gone.end(signal.SIGTERM if number == 1 else signal.SIGKILL)
            members.append(consumer())
            _until(lambda: _read(members[-1]) > 0, "a new consumer reads")
        producer.end(signal.SIGTERM)
        acknowledged = list(producer.events("producer_send_success"))
        assert not list(producer.events("producer_send_error"))
        _until(lambda: _lag(broker) == 0, "all is committed")
        for member in members:
            member.end(signal.SIGTERM)
        _judge(broker, acknowledged, [program for program in programs if program is not producer])


def _read(program: _Program) -> int:
    return sum(event["count"] for event in program.events("records_consumed"))


def _until(done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _WAIT
    while not done():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {_WAIT} s")
        time.sleep(0.2)


def _lag(broker: BrokerThread) -> int:
    """The records that the group has not committed."""
    from coordwire.messages import OffsetFetchRequest, OffsetFetchResponse
    from coordwire.messages.offset_fetch import OffsetFetchRequestGroup
    from tests.broker.core import asked_of

    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=_GROUP, topics=None)])

    def found(running: Broker) -> int:
        cluster = running.cluster
        ends = sum(partition.log.end_offset for partition in cluster.topics[_TOPIC].partitions)
        answer = asked_of(cluster, request, 8, cluster.groups.coordinator_of(_GROUP))
        assert isinstance(answer, OffsetFetchResponse)
        topics = answer.groups[0].topics
        return ends - sum(
            max(partition.committed_offset, 0) for topic in topics for partition in topic.partitions
        )

    return broker.call(found)


def _logs(broker: BrokerThread) -> dict[int, list[bytes | None]]:
    """All values, by partition; offsets count from 0 without gaps."""

    def found(running: Broker) -> dict[int, list[bytes | None]]:
        partitions = running.cluster.topics[_TOPIC].partitions
        return {
            partition.index: [record.value for batch in partition.log.batches() for record in batch]
            for partition in partitions
        }

    return broker.call(found)


def _judge(broker: BrokerThread, sent: list[dict[str, Any]], consumers: list[_Program]) -> None:
    logs = _logs(broker)
    for event in sent:
        result = logs[event["partition"]][event["offset"]]
        assert result == event["value"].encode(), f"acknowledged {event}, found {result!r}"
    values = [value for log in logs.values() for value in log]
    assert len(set(values)) == len(values), "a value is in the log twice"
    read: dict[int, set[int]] = defaultdict(set)
    for program in consumers:
        position: dict[int, int] = {}
        for event in _history(program):
            if event["name"] == "partitions_revoked" or event["name"] == "partitions_lost":
                for gone in event["partitions"]:
                    position.pop(gone["partition"], None)
                continue
            for part in event["partitions"]:
                index, first, last = part["partition"], part["minOffset"], part["maxOffset"]
                expected = position.get(index, first)
                assert first == expected, f"partition {index}: read from {first} on, expected {expected}"
                position[index] = last + 1
                read[index].update(range(first, last + 1))
    for index, log in logs.items():
        missing = set(range(len(log))) - read[index]
        assert not missing, f"partition {index}: {len(missing)} records were read by nobody"
    print(f"    {len(sent)} records acknowledged, {len(values)} in the logs, {len(consumers)} consumers")


def _history(program: _Program) -> Iterator[dict[str, Any]]:
    kinds = {"records_consumed", "partitions_revoked", "partitions_lost"}
    for line in program._output.read_text(errors="replace").split("\n")[:-1]:
        if line.startswith("{"):
            event = json.loads(line)
            if event.get("name") in kinds:
                yield event
