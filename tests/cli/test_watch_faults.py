"""`coordwire watch` goes on whatever brokers do: what it cannot see is a problem until that is seen again,
and all else is shown meanwhile."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import queue
import socket
import struct
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, redirect_stdout
from types import SimpleNamespace
from typing import Any

import pytest

from coordwire.broker import Broker
from coordwire.cli.__main__ import main
from coordwire.cli.watch import cluster_reader, group_board
from coordwire.cli.watch.cluster_reader import Backoff, ClusterReader
from coordwire.cli.watch.group_board import GroupBoard, MetricsServer
from coordwire.cli.watch.offsets_follower import TOPIC
from coordwire.cli.watch.problems import LONGEST_REASON, Problems, ProblemSubject
from coordwire.client import (
    AuthenticationRefused,
    BrokerUnreachable,
    ClientError,
    DeadlineExceeded,
    UnreadableAnswer,
    VersionUnavailable,
    connect_sync,
)
from coordwire.messages import (
    FetchResponse,
    GroupMetadataValue,
    ListOffsetsResponse,
    MetadataResponse,
    OffsetCommitRequest,
)
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.records import Record, encode_batch
from coordwire.tap import Script, Tap
from coordwire.timeline.events import MemberJoined, MemberLeft, OffsetCommitted
from coordwire.timeline.from_log.coordinator_log import LogItem, read_records
from coordwire.timeline.from_log.events import log_timeline

Form = dict[str, Any]
LONGEST_S = 30.0
"""After which a test fails whose line does not come."""


class _Lines(io.TextIOBase):
    """Standard output of a watch, which ends it once nobody reads any more."""

    def __init__(self) -> None:
        self.lines: queue.Queue[Form] = queue.Queue()
        self.is_over = False

    def write(self, text: str) -> int:
        for line in text.splitlines():
            self.lines.put(json.loads(line))
        return len(text)

    def flush(self) -> None:
        if self.is_over:
            raise KeyboardInterrupt


@contextmanager
def watching(bootstrap: str) -> Iterator[Callable[..., Form]]:
    """Gives what waits for a line with these fields, which was not waited for before."""
    out, unused = _Lines(), list[Form]()
    statuses: list[int] = []

    def run() -> None:
        statuses.append(main(["watch", bootstrap, "--format", "json"]))

    def expect(**fields: Any) -> Form:
        end = time.monotonic() + LONGEST_S
        first = 0
        while True:
            for position in range(first, len(unused)):
                if all(unused[position].get(name) == value for name, value in fields.items()):
                    return unused.pop(position)
            first = len(unused)
            unused.append(out.lines.get(timeout=max(end - time.monotonic(), 0.01)))

    thread = threading.Thread(target=run)
    with redirect_stdout(out):
        thread.start()
        try:
            yield expect
            assert thread.is_alive()
        finally:
            out.is_over = True
            thread.join(LONGEST_S)
    assert statuses == [130]


def commit(bootstrap: str, group: str, topic: str = "orders", partition: int = 0, offset: int = 0) -> None:
    with connect_sync(bootstrap) as kafka:
        row = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
        answer = kafka.request(
            OffsetCommitRequest(
                group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=[row])]
            ),
            version=8,
        )
        assert answer.topics[0].partitions[0].error_code == 0


# --- a cluster's nodes ---


def test_a_fresh_cluster_is_waited_for() -> None:
    with Broker.in_thread(topics={"orders": 1}) as broker, watching(broker.bootstrap) as expect:
        problem = expect(event="problemBegan", kind="log", topic=TOPIC, partition=None)
        assert problem["reason"].startswith("UNKNOWN_TOPIC_OR_PARTITION")
        commit(broker.bootstrap, "payments")
        ended = expect(event="problemEnded", kind="log", topic=TOPIC)
        assert ended["since"] == problem["since"] <= ended["time"]
        expect(event="offsetCommitted", group="payments")


@pytest.mark.parametrize("node", [1, 2])
def test_a_node_that_dies_and_comes_back(node: int) -> None:
    """The first is the one that the watch has its first connection to."""
    with Broker.in_thread(topics={"orders": 3}, nodes=3) as broker:
        commit(broker.bootstrap, "payments-0")
        with watching(broker.bootstrap) as expect:
            for number in range(4):  # the leaders of what is committed are looked up in the rounds after it
                expect(event="offsetCommitted", group=f"payments-{number}")
                commit(broker.bootstrap, f"payments-{number + 1}")
            broker.broker.moves.stop_node(node)
            expect(event="problemBegan")
            for number in range(6):  # of other coordinators too
                commit(broker.bootstrap, f"billing-{number}")
                expect(event="offsetCommitted", group=f"billing-{number}")
            broker.broker.moves.start_node(node)
            expect(event="problemEnded")
            commit(broker.bootstrap, "audit")
            expect(event="offsetCommitted", group="audit")


def test_a_whole_cluster_that_is_another_one_after_its_restart() -> None:
    broker = Broker.in_thread(topics={"orders": 1})
    broker.start()
    port = broker.addresses[0][1]
    commit(broker.bootstrap, "payments", offset=0)
    with watching(broker.bootstrap) as expect:
        try:
            expect(event="offsetCommitted", group="payments")
        finally:
            broker.stop()
        expect(event="problemBegan", kind="broker")
        expect(event="problemBegan", kind="cluster")
        with Broker.in_thread(topics={"orders": 1}, port=port) as again:
            commit(again.bootstrap, "billing")
            expect(event="problemEnded", kind="cluster")
            expect(event="offsetCommitted", group="billing")


def test_a_log_that_was_cut_goes_on_at_its_end() -> None:
    with Broker.in_thread(topics={"orders": 1}) as broker:
        for _ in range(3):
            commit(broker.bootstrap, "payments", offset=0)
        moves = broker.broker.moves
        partition = next(
            number
            for number in range(50)
            if broker.call(lambda b, n=number: _end(b, n)) == 3  # type: ignore[misc]
        )
        with watching(broker.bootstrap) as expect:
            for _ in range(3):
                expect(event="offsetCommitted", group="payments")
            assert moves.truncate(TOPIC, partition, 1) == 1
            lost = expect(event="problemBegan", kind="log", partition=partition)
            assert "offset 3" in lost["reason"]
            commit(broker.bootstrap, "payments", offset=0)
            expect(event="problemEnded", kind="log", partition=partition)
            commit(broker.bootstrap, "payments", offset=0)
            expect(event="offsetCommitted", group="payments")


def _end(broker: Broker, partition: int) -> int:
    entry = broker.cluster.partition(TOPIC, partition)
    return 0 if entry is None else entry.log.end_offset


# --- answers ---


class _Changes:
    """Changes answers while `change` is set."""

    def __init__(self, change: Callable[[Any], None] | None = None) -> None:
        self.change = change
        self.script = Script(None, self._respond)

    def _respond(self, exchange: Any) -> None:
        if self.change is not None:
            self.change(exchange.response)


def _set_code(code: int) -> Callable[[Any], None]:
    def change(answer: Any) -> None:
        if isinstance(answer, FetchResponse):
            for topic in answer.responses:
                for part in topic.partitions:
                    part.error_code, part.records = code, b""

    return change


def _leave_out(answer: Any) -> None:
    if isinstance(answer, FetchResponse):
        answer.responses = []


def _of_others(answer: Any) -> None:
    if isinstance(answer, FetchResponse):
        for topic in answer.responses:
            for part in topic.partitions:
                part.partition_index += 1_000


def _garbage(answer: Any) -> None:
    if isinstance(answer, FetchResponse):
        for topic in answer.responses:
            for part in topic.partitions:
                part.records = b"\xff\x00garbage" * 40


def _no_log(answer: Any) -> None:
    if isinstance(answer, MetadataResponse):
        answer.topics = []
    else:
        _set_code(6)(answer)


def _denied(answer: Any) -> None:
    if isinstance(answer, MetadataResponse):
        for topic in answer.topics:
            topic.error_code, topic.partitions = 29, []
    else:
        _set_code(29)(answer)


@pytest.mark.parametrize(
    "change",
    [*(_set_code(code) for code in (3, 6, 9, 29, 56, 74, -1, 31_999)), _leave_out, _of_others, _garbage,
     _no_log, _denied],
)  # fmt: skip
def test_a_wrong_answer_is_a_problem_until_the_next(change: Callable[[Any], None]) -> None:
    changes = _Changes()
    with (
        Broker.in_thread(topics={"orders": 1}) as broker,
        Tap.in_thread(broker.bootstrap, script=changes.script) as tap,
    ):
        commit(broker.bootstrap, "payments")
        with watching(tap.bootstrap) as expect:
            expect(event="offsetCommitted", group="payments")
            changes.change = change
            expect(event="problemBegan", kind="log")
            changes.change = None
            expect(event="problemEnded", kind="log")
            commit(broker.bootstrap, "billing")
            expect(event="offsetCommitted", group="billing")


def test_a_partition_without_leader_is_a_problem_of_its_own() -> None:
    def leaderless(answer: Any) -> None:
        if isinstance(answer, MetadataResponse):
            for topic in answer.topics:
                for part in topic.partitions if topic.name == "down" else ():
                    part.error_code, part.leader_id = 5, -1

    changes = _Changes(leaderless)
    with (
        Broker.in_thread(topics={"orders": 1, "down": 1}) as broker,
        Tap.in_thread(broker.bootstrap, script=changes.script) as tap,
    ):
        commit(broker.bootstrap, "payments")
        commit(broker.bootstrap, "billing", "down")
        with watching(tap.bootstrap) as expect:
            problem = expect(event="problemBegan", kind="end", topic="down", partition=0)
            assert problem["reason"] == "no leader"
            expect(event="lagMeasured", topic="orders")
            changes.change = None
            expect(event="problemEnded", kind="end", topic="down", partition=0)
            expect(event="lagMeasured", topic="down")


# --- requests ---


class _Client:
    """A client of two nodes. answers: makes the answer, by node; raises, or never ends."""

    def __init__(self, answers: dict[int, Callable[[], Coroutine[Any, Any, Any]]]) -> None:
        self.cluster = SimpleNamespace(nodes={1: ("a", 1), 2: ("b", 2)})
        self.answers = answers
        self.requests = 0

    async def request(self, message: Any, *, to: int | None = None) -> Any:
        self.requests += 1
        return await self.answers[to or 1]()


async def _answer() -> Any:
    return ListOffsetsResponse()


async def _silence() -> Any:
    await asyncio.sleep(3_600)


@pytest.mark.parametrize(
    "error",
    [
        BrokerUnreachable("b: Connection refused"), AuthenticationRefused("b: SASL_AUTHENTICATION_FAILED"),
        UnreadableAnswer("b: not Kafka's"), VersionUnavailable("b: no Fetch"),
        DeadlineExceeded("b: too late"), ClientError("b" * 100_000),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_an_error_of_one_node_leaves_the_others(error: ClientError, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail() -> Any:
        raise error

    async def run() -> None:
        client, problems = _Client({1: _answer, 2: fail}), Problems()
        reader = ClusterReader(client, OrderedDict(), problems)  # type: ignore[arg-type]
        requests: Any = {1: ListOffsetsResponse(), 2: ListOffsetsResponse()}
        for _ in range(50):
            assert len(await reader.exchange(requests)) == 1
        (problem,) = problems
        assert problem.subject == ProblemSubject("broker", node=2)
        assert problem.reason == error.reason[:LONGEST_REASON]
        assert client.requests == 51  # the pause is not over
        monkeypatch.setattr("coordwire.cli.watch.cluster_reader.time.monotonic", lambda: 1e9)
        client.answers[2] = _answer
        assert len(await reader.exchange(requests)) == 2
        assert len(problems) == 0
        assert [news.ended_ns is None for news in problems.news()] == [True, False]

    asyncio.run(run())


def test_a_silent_node_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_reader, "PATIENCE_S", 0.05)
    monkeypatch.setattr(cluster_reader, "SILENCE_S", 0.1)

    async def run() -> None:
        problems = Problems()
        reader = ClusterReader(_Client({1: _answer, 2: _silence}), OrderedDict(), problems)  # type: ignore[arg-type]
        requests: Any = {1: ListOffsetsResponse(), 2: ListOffsetsResponse()}
        assert len(await reader.exchange(requests)) == 1
        await asyncio.sleep(0.15)
        started = time.monotonic()
        for _ in range(100):
            assert len(await reader.exchange(requests)) == 1
        assert time.monotonic() - started < 100 * 0.05  # or it waits for it each time
        assert [problem.subject for problem in problems] == [ProblemSubject("broker", node=2)]
        await reader.close()

    asyncio.run(run())


def test_pauses_grow_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("coordwire.cli.watch.cluster_reader.time.monotonic", lambda: now)
    backoff, pauses = Backoff(4.0), []
    for _ in range(2_000):
        backoff.fails()
        start = now
        while not backoff.is_due:
            now += 0.25
        pauses.append(now - start)
    assert pauses[:6] == [0.25, 0.5, 1.0, 2.0, 4.0, 4.0]
    assert max(pauses) == 4.0
    backoff.succeeds()
    assert backoff.is_due


def test_problems_are_bounded_and_news_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coordwire.cli.watch.problems.MOST_PROBLEMS", 10)
    problems = Problems(now_ns=lambda: 7)
    for number in range(100):
        problems.begin(ProblemSubject("end", "orders", number), "no leader")
        problems.begin(ProblemSubject("end", "orders", 0), "no leader")
    assert len(problems) == len(problems.news()) == 10
    assert problems.news() == []
    problems.begin(ProblemSubject("end", "orders", 0), "another reason")
    problems.end(ProblemSubject("end", "orders", 99))
    (news,) = problems.news()
    assert (news.reason, news.since_ns, news.ended_ns) == ("another reason", 7, None)
    problems.end_others("end", {ProblemSubject("end", "orders", 0)})
    assert len(problems.news()) == 9


# --- the board ---


def committed(group: str, partition: int = 0, *, removed: bool = False) -> OffsetCommitted:
    return OffsetCommitted(
        group=group, time_ns=1, source="", number=1, member_id=None, client_id=None, generation=-1,
        topic="t", partition=partition, offset=3, leader_epoch=-1, metadata=None, removed=removed,
    )  # fmt: skip


def test_groups_that_are_gone_are_forgotten() -> None:
    board = GroupBoard()
    joined = MemberJoined(
        group="members", time_ns=1, source="", number=1, kind="classic", member_id="m", client_id="c",
        host=None, instance_id=None, rejoined=False,
    )  # fmt: skip
    board.add(joined)
    for number in range(100):
        board.add(committed(f"console-{number}"))
        board.add(committed(f"console-{number}", removed=number > 0))
    board.measure({})
    assert [view.group for view in board.views()] == ["console-0", "members"]
    assert "console-1" not in board.metrics()
    board.add(
        MemberLeft(
            group="members", time_ns=1, source="", number=1, member_id="m", client_id="c", how="left",
            reason=None, inferred=True,
        )
    )  # fmt: skip
    board.measure({})
    assert [view.group for view in board.views()] == ["console-0"]


def test_the_log_of_groups_that_are_gone_takes_no_memory() -> None:
    value = GroupMetadataValue(
        protocol_type="consumer", generation=1, protocol=None, leader=None, current_state_timestamp=1,
        members=[],
    )  # fmt: skip
    records = [
        Record(key=b"\0\2\0\4" + b"%04d" % number, value=content)
        for number in range(300)
        for content in (b"\0\3" + value.encode(version=3), None)
    ]
    known: list[int] = []

    def items() -> Iterator[LogItem]:
        yield from read_records(encode_batch(records, base_offset=0), log="consumer_offsets")
        gc.collect()
        known.append(sum(type(thing).__name__ == "_LogGroup" for thing in gc.get_objects()))

    before = sum(type(thing).__name__ == "_LogGroup" for thing in gc.get_objects())
    assert list(log_timeline(items())) == []
    assert known[0] - before <= 1


def test_groups_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_board, "MOST_GROUPS", 10)
    board = GroupBoard()
    for number in range(100):
        board.add(committed(f"group-{number:02}"))
    assert [view.group for view in board.views()] == [f"group-{number}" for number in range(90, 100)]


# --- scrapers ---


def test_scrapers_that_reset_and_drip_leave_no_trace(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_board, "MOST_CONNECTIONS", 4)
    server = MetricsServer("127.0.0.1", 0)
    server.text = "x 1\n" * 200_000
    dripping = []
    try:
        for request in (b"GET /metrics HTTP/1.1\r\n\r\n", b"GET /met"):
            with socket.create_connection(("127.0.0.1", server.port)) as scraper:
                scraper.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                scraper.sendall(request)
        threads = threading.active_count()
        for _ in range(20):
            dripping.append(socket.create_connection(("127.0.0.1", server.port)))
            dripping[-1].sendall(b"GET")
        with socket.create_connection(("127.0.0.1", server.port), timeout=LONGEST_S) as scraper:
            scraper.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            received = b""
            while data := scraper.recv(1 << 16):
                received += data
        assert received.endswith(b"x 1\n")
        assert threading.active_count() <= threads + 5
    finally:
        for scraper in dripping:
            scraper.close()
        server.close()
    captured = capsys.readouterr()
    assert captured.err == captured.out == ""


def test_a_port_that_is_taken_is_an_error_at_the_start(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker.in_thread() as broker, socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert main(["watch", broker.bootstrap, "--metrics", f":{port}", "--rounds", "1"]) == 2
    assert "--metrics" in capsys.readouterr().err
