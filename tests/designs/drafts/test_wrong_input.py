"""Nothing that comes in raises out of a machine: any messages, in any order, any bytes, any answers."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordwire.connection import Connection
from coordwire.connection.dialect import Dialect, Side
from coordwire.connection.events import RequestReceived
from coordwire.designs.drafts.actions import AskZooKeeper, Connect, Disconnect
from coordwire.designs.drafts.machine import Machine, MachineHost, SendBytes
from coordwire.designs.drafts.zookeeper_consumer import ZooKeeperConsumer, ZooKeeperConsumerConfig
from coordwire.designs.drafts.zookeeper_operations import (
    EventKind,
    NodeStat,
    OperationOutcome,
    WatchEvent,
    ZooKeeperError,
)
from coordwire.dialects.connection import ConnectionDialect
from coordwire.dialects.grammar import CALLS
from coordwire.errors import EncodeError
from coordwire.messages import Draft2ClusterMetadataRequest, find_message
from coordwire.testing.strategies import messages
from tests.designs.drafts.worlds import DIALECTS, World

texts = st.sampled_from([
    "", "g", "a", "/", "..", '{"t":1}', "*1*t", "!2!(", '{"t":"x"}', "smallest", "1-0", "x-y", "t", "\0"
])  # fmt: skip
numbers = st.sampled_from([-1, 0, 1, 2, 6_000, 0x7FFF])


def hostile(cls: Any) -> st.SearchStrategy[Any]:
    """Messages of a class whose texts and numbers are often those that a machine looks at."""

    def change(message: Any, words: list[str], found: list[int], keep: bool) -> Any:
        if not keep:
            for field in message.__slots__:
                value = getattr(message, field)
                if isinstance(value, str) and words:
                    setattr(message, field, words.pop())
                elif type(value) is int and found and field != "correlation_id":
                    setattr(message, field, found.pop())
        return message

    return st.builds(
        change, messages(cls, version=0, unknown_tags=False), st.lists(texts, max_size=5),
        st.lists(numbers, max_size=4), st.booleans(),
    )  # fmt: skip


def sent_by(dialect: Dialect, side: Side) -> st.SearchStrategy[Any]:
    classes = [find_message(call.request) for call in CALLS[dialect] if call.asker == side]
    return st.one_of([hostile(cls) for cls in classes])


@pytest.mark.parametrize("draft", [1, 2, 3])
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_broker_takes_anything(draft: int, data: st.DataObject) -> None:
    """From peers that connect, register, answer wrongly, and go; time passes in between."""
    world = World(draft, brokers=1)
    host, dialect = world.nodes["broker-1"].host, DIALECTS[draft]
    peers: dict[int, tuple[Connection, list[RequestReceived]]] = {}
    for _ in range(data.draw(st.integers(1, 8))):
        if not peers or data.draw(st.booleans()):
            peers[host.accept()] = Connection("client", dialect=ConnectionDialect(dialect)), []
        number = data.draw(st.sampled_from(sorted(peers)))
        connection, asked = peers[number]
        what = data.draw(st.sampled_from(["message", "message", "message", "answer", "bytes", "close"]))
        if what == "message":
            message = data.draw(sent_by(dialect, "client"))
            names_group = isinstance(message, Draft2ClusterMetadataRequest) and bool(message.group_id)
            host.receive(number, connection.send(message, version=int(names_group)))
        elif what == "answer" and asked:
            request = asked.pop(0)
            answer = find_message(request.frame.call.response or "")  # type: ignore[union-attr]
            with suppress(EncodeError):
                host.receive(number, connection.send(data.draw(hostile(answer)), request=request))
        elif what == "bytes":
            host.receive(number, data.draw(st.binary(max_size=40)))
        elif what == "close":
            host.closed(number)
        deliver(host, peers)
        world.drain("broker-1")
        world.run(data.draw(st.sampled_from([0, 10, 3_000])))
        deliver(host, peers)


def deliver(host: MachineHost, peers: dict[int, tuple[Connection, list[RequestReceived]]]) -> None:
    """Take what the machine sends its peers; leave the rest to the world."""
    remaining: list[Any] = []
    for action in host.actions():
        if isinstance(action, SendBytes) and action.connection in peers:
            connection, asked = peers[action.connection]
            connection.receive_data(action.data)
            asked += [
                event for event in connection.events()
                if isinstance(event, RequestReceived) and event.expects_response
            ]  # fmt: skip
        elif not isinstance(action, Disconnect):
            remaining.append(action)
    for action in remaining:
        host.machine.do(action)


@pytest.mark.parametrize("draft", [1, 2, 3])
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_consumer_takes_anything(draft: int, data: st.DataObject) -> None:
    """From a broker that answers and asks what it likes."""
    world = World(draft, brokers=0)
    dialect = DIALECTS[draft]
    world.known = {1: World(draft, brokers=1).known[1]}
    world.join("a")
    host = world.nodes["a"].host
    servers: dict[int, tuple[Connection, list[RequestReceived]]] = {}
    host.machine.advance(0)
    for _ in range(data.draw(st.integers(1, 12))):
        for action in host.actions():
            match action:
                case Connect(connection=number):
                    servers[number] = Connection("server", dialect=ConnectionDialect(dialect)), []
                    host.opened(number)
                case SendBytes(connection=number, data=sent):
                    connection, asked = servers[number]
                    connection.receive_data(sent)
                    asked += [
                        event for event in connection.events()
                        if isinstance(event, RequestReceived) and event.expects_response
                    ]  # fmt: skip
        if servers:
            number = max(servers)
            connection, asked = servers[number]
            try:
                if len(asked) > 0 and data.draw(st.booleans()):
                    request = asked.pop(0)
                    answer = find_message(request.frame.call.response or "")  # type: ignore[union-attr]
                    host.receive(number, connection.send(data.draw(hostile(answer)), request=request))
                elif draft != 3 and data.draw(st.booleans()):
                    host.receive(number, connection.send(data.draw(sent_by(dialect, "server"))))
                elif data.draw(st.booleans()):
                    host.receive(number, data.draw(st.binary(max_size=40)))
                else:
                    host.closed(number)
            except EncodeError:
                pass
        machine: Machine = host.machine
        machine.advance(machine.now + data.draw(st.sampled_from([0, 10, 1_000, 7_000])))


NODE_DATA = [
    b"", b"x", b"{}", b"1", b"-5", b"\xff", b'{"version":1,"partitions":{"0":[1],"1":[]}}',
    b'{"version":1,"subscription":{"t":1},"pattern":"static"}', b'{"host":"h:1","topics":{}}',
    b'{"version":1,"subscription":{"(":1},"pattern":"white_list"}', b'{"version":1,"host":"h","port":9}',
]  # fmt: skip
CHILDREN = ["a", "1", "t", "g", "1-0", "coordinator"]
PATHS = [
    "/", "/x", "/brokers/ids", "/brokers/topics", "/brokers/topics/t", "/consumers/coordinator"
]  # fmt: skip


def any_outcome(random: Random) -> OperationOutcome:
    error = random.choice([ZooKeeperError.OK] * 4 + list(ZooKeeperError))
    children = tuple(random.sample(CHILDREN, random.randrange(4)))
    stat = NodeStat(1, 1, 0, 0, 0, 0, random.choice([0, 7]), 0, 0)
    return OperationOutcome(error, "/x", random.choice(NODE_DATA), children, stat)


@pytest.mark.parametrize("kind", ["zookeeper", 1, 2, 3])
def test_a_machine_takes_any_answer_of_zookeeper(kind: Any) -> None:
    for seed in range(30):
        random = Random(seed)
        machine: Machine
        if kind == "zookeeper":
            config = ZooKeeperConsumerConfig(group_id="g", consumer_id="a", topic_count='{"t":1}')
            machine = ZooKeeperConsumer(config)
        else:
            machine = World(kind, brokers=1).nodes["broker-1"].machine
            machine.end_all()
        machine.start(7)
        for _ in range(25):
            for action in list(machine.actions()):
                if isinstance(action, AskZooKeeper):
                    machine.zookeeper_reply(
                        action.number, tuple(any_outcome(random) for _ in action.operations)
                    )
            if random.random() < 0.3:
                kinds = list(EventKind)
                machine.zookeeper_event(WatchEvent(7, random.choice(kinds), random.choice(PATHS)))
            if random.random() < 0.1:
                machine.session_expired(8)
            machine.advance(machine.now + random.choice([0, 500, 5_000]))
