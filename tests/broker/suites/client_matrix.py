"""Eight clients of five languages: classic groups, KIP-848's, transactions, moves; a table at the end.

Strategy: a program for each client does the same (`clients/python_clients.py` says what): it produces, two
processes share a group, a transactional producer commits, aborts, puts offsets into a transaction and is
fenced; with a producer and a group at work, leaders and the coordinator move, and a node goes down and comes
back. The broker judges, not the client alone: what is in its logs, which members its coordinator had, with
which protocol, what was committed. Rule: a cell that a client does not know is named with its cause.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from coordwire.broker.harness import Kafka
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
)
from tests.broker.suites.checks import Checks
from tests.broker.suites.client_programs import CLIENTS, MatrixClient
from tests.interop.maven import Unavailable

_PARTITIONS, _COUNT = 6, 300
_WAIT = 60
_MODES = ("classic", "consumer", "transactions", "moves")
_HEADINGS = ["client", "language", "classic", "KIP-848", "transactions", "moves"]
_NODES = 3


def run(checks: Checks, only: tuple[str, ...] = ()) -> None:
    """`only`: clients' names, or modes."""
    names = {client.name for client in CLIENTS} & set(only)
    rows: list[list[str]] = []
    for client in CLIENTS:
        if names and client.name not in names:
            continue
        row = [client.name, client.language]
        try:
            command = client.command()
        except Unavailable as reason:
            print(f"    {client.name}: not to be had here: {reason}")
            rows.append([*row, *["?"] * len(_MODES)])
            continue
        for mode in _MODES:
            row.append(_cell(checks, client, command, mode, set(only) - names))
        rows.append(row)
    for row in [_HEADINGS, ["---"] * len(_HEADINGS), *rows]:
        print(f"    | {' | '.join(row)} |")


def _cell(checks: Checks, client: MatrixClient, command: list[str], mode: str, modes: set[str]) -> str:
    if modes and mode not in modes:
        return "?"
    if mode == "consumer" and client.no_kip_848:
        return client.no_kip_848
    name = f"{client.name} {mode}"
    judged = {"transactions": _transactions, "moves": _moves}.get(mode, _group)
    return "passes" if checks.run(name, lambda: judged(command, mode)) else checks.failures[name]


class _Program:
    """A client's process, with what it prints."""

    def __init__(self, command: list[str], folder: Path, *arguments: str) -> None:
        self._output = folder / f"{time.monotonic_ns()}.txt"
        self._errors = self._output.with_suffix(".errors")
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [*command, *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=errors, cwd=folder
            )

    def lines(self) -> list[str]:
        return self._output.read_text().splitlines()

    def wait(self) -> list[str]:
        """What it printed until its end, which must be in order."""
        try:
            status = self._process.wait(_WAIT)
        except subprocess.TimeoutExpired:
            status = None
        errors = self._errors.read_text(errors="replace")[-1500:]
        assert status == 0, f"status {status}; it said {self.lines()[-3:]} {errors}"
        return self.lines()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def _started(command: list[str], *topics: str) -> Iterator[tuple[Kafka, Callable[..., _Program]]]:
    with (
        tempfile.TemporaryDirectory() as work,
        Kafka(
            topics=dict.fromkeys(topics, _PARTITIONS), nodes=_NODES, default_replication_factor=_NODES
        ) as kafka,
        ExitStack() as ended,
    ):

        def start(*arguments: str) -> _Program:
            program = _Program(command, Path(work), *arguments)
            ended.callback(program.kill)
            return program

        yield kafka, start


def _group(command: list[str], protocol: str) -> None:
    """Two members share what a producer wrote."""
    with _started(command, "orders") as (kafka, start):
        start("produce", kafka.bootstrap, "orders", str(_COUNT)).wait()
        members = _members(kafka, start, protocol)
        _finish(kafka, members, list(range(_COUNT)))
        asked = JoinGroupRequest if protocol == "classic" else ConsumerGroupHeartbeatRequest
        assert kafka.exchange.all(asked), f"the client sent no {asked.__name__}"


def _moves(command: list[str], mode: str) -> None:
    """Two members of a classic group and a producer go on while the cluster changes under them."""
    with _started(command, "orders") as (kafka, start):
        members = _members(kafka, start, "classic")
        producer = start("produce", kafka.bootstrap, "orders", str(_COUNT))
        for partition in range(_PARTITIONS):
            kafka.moves.leader(
                "orders", partition, to=kafka.moves.leader_of("orders", partition) % _NODES + 1
            )
        place = kafka.broker.call(lambda broker: broker.cluster.groups.partition_of("readers"))
        coordinator = kafka.moves.leader_of("__consumer_offsets", place) % _NODES + 1
        kafka.moves.coordinator(group="readers", to=coordinator)
        producer.wait()
        kafka.moves.stop_node(coordinator)
        start("produce", kafka.bootstrap, "orders", str(_COUNT)).wait()
        kafka.moves.start_node(coordinator)
        _found(kafka)
        _finish(kafka, members, sorted([*range(_COUNT), *range(_COUNT)]))


def _members(kafka: Kafka, start: Callable[..., _Program], protocol: str) -> list[_Program]:
    consume = ("consume", protocol, kafka.bootstrap, "orders", "readers", "read_uncommitted")
    members = [start(*consume, str(_PARTITIONS // 2)) for _ in range(2)]
    _shared(kafka, protocol)
    return members


def _shared(kafka: Kafka, protocol: str) -> None:
    group = kafka.group("readers").wait(
        lambda group: group.is_stable and [len(member.partitions) for member in group.members] == [3, 3],
        "two members with three partitions each",
        timeout=_WAIT,
    )
    assert group.value.kind == protocol, f"the group is {group.value}"


def _found(kafka: Kafka) -> None:
    """Wait until all members have found their coordinator, which some look for with a heartbeat only."""
    said = len(list(kafka.exchange.entries()))
    deadline = time.monotonic() + _WAIT
    while time.monotonic() < deadline:
        _shared(kafka, "classic")
        member_ids = {
            entry.request.message.member_id
            for entry in list(kafka.exchange.entries())[said:]
            if isinstance(entry.message, HeartbeatResponse) and not entry.message.error_code
            if entry.request is not None and isinstance(entry.request.message, HeartbeatRequest)
        }
        if member_ids >= {member.id for member in kafka.group("readers").state.members}:
            return
        time.sleep(0.1)
    raise AssertionError(f"only {len(member_ids)} members found their coordinator")


def _finish(kafka: Kafka, members: list[_Program], expected: list[int]) -> None:
    """Let the members end; these numbers are in the log, were all read, and their offsets are committed."""
    for partition in range(_PARTITIONS):
        kafka.produce("orders", "stop", partition=partition)
    read = {tuple(line.split(" ", 2)) for member in members for line in member.wait()}
    records = kafka.records("orders")
    numbers = sorted(int(record.value or b"") for record in records if record.value != b"stop")
    assert numbers == expected, f"{len(numbers)} records in the log, expected {len(expected)}"
    kept = {(str(record.partition), str(record.offset), (record.value or b"").decode()) for record in records}
    assert read == kept, f"{len(kept - read)} records were not read"
    ends = {("orders", index): 0 for index in range(_PARTITIONS)}
    for one in records:
        ends["orders", one.partition] = max(ends["orders", one.partition], one.offset + 1)
    assert kafka.committed("readers") == ends, f"committed {kafka.committed('readers')}, expected {ends}"
    kafka.group("readers").empty(timeout=_WAIT)


def _transactions(command: list[str], mode: str) -> None:
    """What is committed is read, with its offsets; what is aborted is not; the older producer is fenced."""
    with _started(command, "ledger", "input") as (kafka, start):
        kafka.produce("input", *("given" for _ in range(5)))
        said = start("transact", kafka.bootstrap, "ledger", "input", "bookkeeper", "books").wait()
        fenced = said[-1].partition("fenced: ")[2]
        assert fenced not in ("", "no"), f"the older producer was not fenced: {said}"
        expected = sorted(value for value in (b"one", b"two") for _ in range(_PARTITIONS))
        results = sorted(record.value or b"" for record in kafka.records("ledger", committed=True))
        assert results == expected, f"committed: {results}"
        everything = [record.value for record in kafka.records("ledger")]
        assert everything.count(b"lost") == _PARTITIONS, f"all records: {everything}"
        committed = kafka.committed("books")
        assert committed == {("input", 0): 5}, f"the transaction's offsets are {committed}"
        for partition in range(_PARTITIONS):
            kafka.produce("ledger", "stop", partition=partition)
        consume = ("consume", "classic", kafka.bootstrap, "ledger", "readers", "read_committed")
        read = [line.split(" ", 2)[2] for line in start(*consume, str(_PARTITIONS)).wait()]
        values = sorted(text.decode() for text in [*expected, *[b"stop"] * _PARTITIONS])
        assert sorted(read) == values, f"a reader of committed records got {sorted(read)}"
