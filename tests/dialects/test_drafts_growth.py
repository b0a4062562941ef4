"""Stories of the drafts' groups are linear in their frames, whatever these say and whoever sends them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordwire.capture.entries import ConnectionEnd, FrameEntry
from coordwire.dialects import ConnectionDialect
from coordwire.messages import (
    Draft1PingRequest,
    Draft1RegisterRequest,
    Draft1StartRequest,
    Draft1StartResponse,
    Draft1StopRequest,
    Draft2RegisterConsumerRequest,
    Draft2RegisterConsumerResponse,
    Draft2StartFetcherRequest,
    Draft2StartFetcherResponse,
    Draft2StopFetcherRequest,
    Draft2StopFetcherResponse,
    Draft3JoinGroupRequest,
    Draft3JoinGroupResponse,
    Draft3PingRequest,
    Draft3PingResponse,
)
from coordwire.messages.draft_1 import Draft1PartitionOffset
from coordwire.messages.draft_2 import Draft2Ownership, Draft2PartitionOffset
from coordwire.messages.draft_3 import Draft3TopicAndPartition
from coordwire.timeline.from_wire.timeline import timeline
from tests.growth import assert_linear

MS = 1_000_000
START = 1_700_000_000_000 * MS
Entries = list[FrameEntry | ConnectionEnd]


class Script:
    """Frames of many consumers, a millisecond apart. broker: where what comes next goes."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self.entries: Entries = []
        self.now = START
        self.broker = "b0:9092"

    def ask(self, name: str, message: Any) -> FrameEntry:
        """A consumer's request, or one of its broker's."""
        return self._entry(name, message, "request", None, 0)

    def answer(self, name: str, request: FrameEntry, message: Any, version: int = 0) -> FrameEntry:
        return self._entry(name, message, "response", request, version)

    def _entry(
        self, name: str, message: Any, direction: Any, request: FrameEntry | None, version: int
    ) -> FrameEntry:
        self.now += MS
        entry = FrameEntry(
            capture="x", number=len(self.entries) + 1, time_ns=self.now, direction=direction, body=b"",
            flow=f"{name}:1 > {self.broker}", message=message, api_version=version, body_version=version,
            dialect=self.dialect, request=request,
        )  # fmt: skip
        self.entries.append(entry)
        return entry

    def end(self, name: str, sender: Any = "broker") -> None:
        self.now += MS
        flow = f"{name}:1 > {self.broker}"
        self.entries.append(
            ConnectionEnd(capture="x", flow=flow, time_ns=self.now, sender=sender, kind="fin")
        )

    # --- drafts 1 and 2 ---

    def registers(self, name: str, **fields: Any) -> FrameEntry:
        fields |= {"group_id": "g", "consumer_id": name}
        if self.dialect == "draft-1":
            return self.ask(name, Draft1RegisterRequest(**{"ping_interval_ms": 10**6, **fields}))
        return self.ask(name, Draft2RegisterConsumerRequest(**{"session_timeout_ms": 10**6, **fields}))

    def accepts(self, name: str, **fields: Any) -> None:
        if self.dialect == "draft-1":
            self.ask(name, Draft1PingRequest())
        else:
            self.answer(name, self.registers(name, **fields), Draft2RegisterConsumerResponse())

    def serves(self, name: str, request: FrameEntry, number: int) -> None:
        """An answer of draft 2's overview."""
        parts = [Draft2PartitionOffset(topic="t", partition=f"0-{number}")]
        self.answer(name, request, Draft2RegisterConsumerResponse(assigned_parts=parts), 1)

    def stops(self, name: str) -> None:
        if self.dialect == "draft-1":
            self.ask(name, Draft1StopRequest())
        else:
            request = self.ask(name, Draft2StopFetcherRequest(consumer_id=name))
            self.answer(name, request, Draft2StopFetcherResponse(consumer_id=name))

    def starts(self, name: str, number: int) -> Callable[[], object]:
        """A Start, whose answer comes when the result is called."""
        if self.dialect == "draft-1":
            part = Draft1PartitionOffset(topic="t", partition=f"0-{number}")
            request = self.ask(name, Draft1StartRequest(assigned_parts=[part]))
            return lambda: self.answer(name, request, Draft1StartResponse())
        threads = [
            Draft2Ownership(assigned_parts=[Draft2PartitionOffset(topic="t", partition=f"0-{number}")])
        ]
        request = self.ask(name, Draft2StartFetcherRequest(consumer_id=name, ownership_info=threads))
        return lambda: self.answer(name, request, Draft2StartFetcherResponse(consumer_id=name))

    def members(self, n: int) -> list[str]:
        """So many consumers that are started."""
        names = [f"c{k}" for k in range(n)]
        for name in names:
            if self.dialect == "draft-1":
                self.registers(name)
            self.accepts(name)
        self.rebalances(names)
        return names

    def rebalances(self, names: list[str]) -> None:
        for name in names:
            self.stops(name)
        for answer in [self.starts(name, k) for k, name in enumerate(names)]:
            answer()

    # --- draft 3 ---

    def joins(self, name: str) -> FrameEntry:
        return self.ask(name, Draft3JoinGroupRequest(group_id="g", session_timeout=10**6, subscribing=["t"]))

    def joined(self, name: str, request: FrameEntry, generation: int, number: int) -> None:
        parts = [Draft3TopicAndPartition(topic="t", partition=number)]
        message = Draft3JoinGroupResponse(
            error_code=0, generation=generation, group_id="g", consumer_id=name, partitions_to_own=parts
        )
        self.answer(name, request, message)

    def pings(self, name: str, code: int = 0) -> None:
        request = self.ask(name, Draft3PingRequest(group_id="g", consumer_id=name))
        self.answer(name, request, Draft3PingResponse(error_code=code))

    def joined_members(self, n: int) -> list[str]:
        names = [f"c{k}" for k in range(n)]
        for k, (name, request) in enumerate([(name, self.joins(name)) for name in names]):
            self.joined(name, request, 1, k)
        return names


def one_rebalance(n: int, dialect: str) -> Entries:
    script = Script(dialect)
    script.members(n)
    return script.entries


def one_is_started_repeatedly(n: int, dialect: str) -> Entries:
    """Each time is a rebalance of its own, which lists what all have."""
    script = Script(dialect)
    script.members(n)
    for _ in range(n):
        script.rebalances(["c0"])
    return script.entries


def starts_of_an_attempt_that_lacks_one(n: int, dialect: str) -> Entries:
    """All that were stopped have started, and one that wasn't is lost."""
    script = Script(dialect)
    names = script.members(n)
    script.end(names[-1])
    script.rebalances(names[:-1])
    for _ in range(n):
        script.starts("c0", 0)()
    return script.entries


def attempts_without_those_lost(n: int, dialect: str) -> Entries:
    """Two consumers are started in turn, an attempt each, and the connections of all others have ended."""
    script = Script(dialect)
    names = script.members(n)
    for name in names[2:]:
        script.end(name)
    for _ in range(n):
        for k, name in enumerate(names[:2]):
            script.stops(name)
            script.starts(name, k)()
    return script.entries


def starts_after_others_are_lost(n: int, dialect: str) -> Entries:
    """The connections of all but one end once they have started, and last that of one that does not start."""
    script = Script(dialect)
    script.registers("x")
    script.accepts("x")
    names = [f"c{k}" for k in range(n)]
    for name in names:
        script.registers(name)
        script.stops(name)
    for answer in [script.starts(name, k) for k, name in enumerate(names)][1:]:
        answer()
    for name in (*names[1:], "x"):
        script.end(name)
    for _ in range(n):
        script.starts("c0", 0)()
    return script.entries


def lost_ones_that_wait(n: int, dialect: str) -> Entries:
    """Consumers whose connections have ended register again, all but the last."""
    script = Script(dialect)
    names = script.members(n)
    for name in names[1:]:
        script.end(name)
    for name in names[1:-1]:
        script.registers(name)
    for k in range(n):
        script.stops("c0")
        script.starts("c0", k)()
    return script.entries


def two_coordinators(n: int, dialect: str) -> Entries:
    """Consumers at one broker, and one at another; both go on."""
    script = Script(dialect)
    script.members(n)
    for _ in range(n):
        script.broker = "b1:9092"
        script.registers("d")
        script.stops("d")
        script.broker = "b0:9092"
        script.stops("c0")
    return script.entries


def others_are_removed(n: int, dialect: str) -> Entries:
    """Half of those that shall start have done so, and are given up before the others have."""
    script = Script(dialect)
    names = [f"c{k}" for k in range(2 * n)]
    for k, name in enumerate(names):
        script.registers(name, **({"ping_interval_ms": 10 * n} if dialect == "draft-1" and k < n else {}))
        script.stops(name)
    answers = [script.starts(name, k) for k, name in enumerate(names)]
    for answer in answers[:n]:
        answer()
    for name in names[:n]:
        script.end(name)
    script.now += 60 * n * MS
    for answer in answers[n:]:
        answer()
    return script.entries


def consumers_that_come_and_go(n: int, dialect: str) -> Entries:
    """Each of them, with many there."""
    script = Script(dialect)
    script.members(n)
    for k in range(n):
        script.registers(f"d{k}")
        script.stops(f"d{k}")
        script.end(f"d{k}", "client")
    return script.entries


def served_one_by_one(n: int, dialect: str) -> Entries:
    """Each registration's answer is a rebalance of its own, while others wait at another broker."""
    script = Script(dialect)
    for k in range(n):
        script.broker = "b1:9092"
        script.registers(f"w{k}")
    script.broker = "b0:9092"
    for k in range(n):
        script.serves(f"c{k}", script.registers(f"c{k}"), k)
    return script.entries


def joined_in_one_generation(n: int, dialect: str) -> Entries:
    script = Script(dialect)
    script.joined_members(n)
    return script.entries


def generations_of_one(n: int, dialect: str) -> Entries:
    script = Script(dialect)
    script.joined_members(n)
    for k in range(n):
        script.joined("c0", script.joins("c0"), 2 + k, 0)
    return script.entries


def pings_of_two_coordinators(n: int, dialect: str) -> Entries:
    script = Script(dialect)
    script.joined_members(n)
    for _ in range(n):
        script.broker = "b1:9092"
        script.pings("c0")
        script.broker = "b0:9092"
        script.pings("c1")
    return script.entries


def connections_that_end(n: int, dialect: str) -> Entries:
    """Those of one broker end, while another has many open ones."""
    script = Script(dialect)
    script.joined_members(n)
    script.broker = "b1:9092"
    for k in range(n):
        script.joins(f"d{k}")
        script.end(f"d{k}")
    return script.entries


def joins_that_wait(n: int, dialect: str) -> Entries:
    script = Script(dialect)
    script.joined_members(n)
    for k in range(n):
        script.joins(f"c{k}")
    for k in range(n):
        script.pings("d", 27)
        script.joined("d", script.joins("d"), 2 + k, 0)
    return script.entries


STARTED = [
    one_rebalance, one_is_started_repeatedly, starts_of_an_attempt_that_lacks_one, lost_ones_that_wait,
    attempts_without_those_lost, two_coordinators, others_are_removed, consumers_that_come_and_go,
]  # fmt: skip
JOINED = [
    joined_in_one_generation, generations_of_one, pings_of_two_coordinators, connections_that_end,
    joins_that_wait,
]  # fmt: skip
CASES = [
    *((make, dialect) for dialect in ("draft-1", "draft-2") for make in STARTED),
    (starts_after_others_are_lost, "draft-1"),
    (served_one_by_one, "draft-2"),
    *((make, "draft-3") for make in JOINED),
]


@pytest.mark.parametrize(("make", "name"), CASES, ids=lambda value: getattr(value, "__name__", value))
def test_stories(make: Callable[[int, str], Entries], name: str) -> None:
    dialect = ConnectionDialect(name)

    def read(entries: Entries) -> None:
        for _ in timeline(entries, ends=True, dialect=dialect):
            pass

    assert_linear(lambda n: make(n, name), read, 100, charges={"keys": lambda _, owner: len(owner)})
