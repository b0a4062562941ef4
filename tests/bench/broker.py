"""`python -m tests.bench.broker`: `coordwire serve` and kfake over loopback, in turns.

Strategy: requests are encoded once and sent in pipelines; answers are counted by their length prefixes, not
decoded, so that the client costs little. What is measured: heartbeats of a static member, Produce and Fetch
of batches of 16 KB. Rules: the best round; besides the time of the wall, which the client and the machine's
other work share, the processor's time of the server, of which a request has its part whatever else runs.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from coordwire import Connection
from coordwire.codec import Message
from coordwire.connection.events import ResponseReceived
from coordwire.messages import (
    FetchRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    MetadataRequest,
    ProduceRequest,
    SyncGroupRequest,
)
from coordwire.messages.fetch import FetchPartition, FetchTopic
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.messages.sync_group import SyncGroupRequestAssignment
from coordwire.records import Record, encode_batch
from tests.bench.kfake import VERSION, kfake
from tests.interop.broker import free_port
from tests.interop.maven import Unavailable

TOPIC = "orders"
_BATCH = 16_384
_DEPTH = 32
TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class _Sample(NamedTuple):
    """What one run of requests took, in seconds."""

    wall: float
    server: float


class Client:
    """A connection that sends what is encoded and counts what comes."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = Connection("client", client_id="bench")

    def ask(self, request: Message, version: int) -> Any:
        self._socket.sendall(self._connection.send(request, version=version))
        while (event := self._connection.next_event()) is None:
            self._connection.receive_data(self._socket.recv(1 << 20))
        assert isinstance(event, ResponseReceived), event
        return event.response

    def encoded(self, request: Message, version: int) -> bytes:
        return Connection("client", client_id="bench").send(request, version=version)

    def pipeline(self, frame: bytes, count: int, depth: int) -> int:
        """Send a frame so many times, `depth` at once; the bytes of the answers."""
        size = 0
        buffer = bytearray(1 << 20)
        for _ in range(count // depth):
            self._socket.sendall(frame * depth)
            size += self._frames(buffer, depth)
        return size

    def _frames(self, buffer: bytearray, count: int) -> int:
        """Read so many frames; their bytes."""
        filled = position = size = 0
        view = memoryview(buffer)
        while count:
            got = self._socket.recv_into(view[filled:])
            if not got:
                raise ConnectionResetError("the server has closed the connection")
            filled += got
            while filled - position >= 4 and count:
                length = 4 + int.from_bytes(buffer[position : position + 4])
                if filled - position < length:
                    break
                position += length
                size += length
                count -= 1
            if position == filled:
                filled = position = 0
            elif len(buffer) - filled < _BATCH * 2:
                buffer[: filled - position] = buffer[position:filled]
                filled, position = filled - position, 0
        return size

    def close(self) -> None:
        self._socket.close()


class Server:
    """A server in a process of its own, on a port that it prints."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        host, _, port = self._process.stdout.readline().decode().strip().rpartition(":")
        self.address = host, int(port)

    def spent(self) -> float:
        """The seconds of the processor that it has used; 0 on a system that does not say."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / TICK

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def _batch() -> bytes:
    value = bytes(range(256)) * 4
    count = (_BATCH - 61) // (len(value) + 12)
    return encode_batch(
        [Record(timestamp=int(time.time() * 1000), value=value) for _ in range(count)], base_offset=0
    )


def _heartbeat(client: Client) -> tuple[bytes, int]:
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    joined = client.ask(
        JoinGroupRequest(
            group_id="g", session_timeout_ms=60_000, rebalance_timeout_ms=60_000, group_instance_id="i",
            protocol_type="consumer", protocols=protocols,
        ),
        9,
    )  # fmt: skip
    who: dict[str, Any] = {
        "group_id": "g", "member_id": joined.member_id, "generation_id": joined.generation_id,
        "group_instance_id": "i",
    }  # fmt: skip
    share = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"")
    synced = client.ask(
        SyncGroupRequest(**who, assignments=[share], protocol_type="consumer", protocol_name="range"), 5
    )
    assert synced.error_code == 0
    assert client.ask(HeartbeatRequest(**who), 4).error_code == 0
    return client.encoded(HeartbeatRequest(**who), 4), 1


def _produce(client: Client) -> tuple[bytes, int]:
    part = PartitionProduceData(index=0, records=_batch())
    topics = [TopicProduceData(name=TOPIC, partition_data=[part])]
    request = ProduceRequest(acks=-1, timeout_ms=9_000, topic_data=topics)
    answer = client.ask(request, 9)
    assert answer.responses[0].partition_responses[0].error_code == 0
    return client.encoded(request, 9), _BATCH


def _fetch(client: Client) -> tuple[bytes, int]:
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=_BATCH)
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=_BATCH, session_epoch=-1,
        topics=[FetchTopic(topic=TOPIC, partitions=[part])],
    )  # fmt: skip
    answer = client.ask(request, 12)
    assert len(answer.responses[0].partitions[0].records) > _BATCH * 0.9
    return client.encoded(request, 12), _BATCH


_ROWS: dict[str, tuple[Callable[[Client], tuple[bytes, int]], int, int]] = {
    "heartbeats/s": (_heartbeat, 20_000, _DEPTH),
    "MB/s produced": (_produce, 2_000, 8),
    "MB/s fetched": (_fetch, 4_000, 8),
}
"""How a frame is made, how often it is sent, how many at once."""


def _measure(server: Server, rounds: int) -> dict[str, tuple[float, float]]:
    """Rates by the wall and by the server's processor, of the best rounds."""
    result: dict[str, list[tuple[float, float]]] = {name: [] for name in _ROWS}
    for _ in range(rounds):
        client = Client(server.address)
        client.ask(MetadataRequest(topics=None), 12)
        for name, (prepare, count, depth) in _ROWS.items():
            frame, unit = prepare(client)
            client.pipeline(frame, count // 10, depth)
            start, spent = time.perf_counter(), server.spent()
            client.pipeline(frame, count, depth)
            sample = _Sample(time.perf_counter() - start, server.spent() - spent)
            done = count // depth * depth * unit / (1 if unit == 1 else 1e6)
            result[name].append((done / sample.wall, done / max(sample.server, 1 / TICK)))
        client.close()
    return {
        name: (max(wall for wall, _ in samples), max(cpu for _, cpu in samples))
        for name, samples in result.items()
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.broker", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    serve = [sys.executable, "-m", "coordwire.cli", "serve", f"--port={free_port()}", f"--topic={TOPIC}:1"]
    commands = {"coordwire": serve}
    try:
        commands["kfake"] = [str(kfake())]
    except Unavailable as reason:
        print(f"no kfake: {reason}", file=sys.stderr)
    servers = {name: Server(command) for name, command in commands.items()}
    best: dict[str, dict[str, tuple[float, float]]] = {}
    try:
        for _ in range(options.rounds):
            for name, server in servers.items():
                for row, rates in _measure(server, 1).items():
                    old = best.setdefault(name, {}).get(row, (0.0, 0.0))
                    best[name][row] = max(old[0], rates[0]), max(old[1], rates[1])
    finally:
        for server in servers.values():
            server.end()
    print(f"best of {options.rounds} rounds; kfake {VERSION}\n")
    print("| | " + " | ".join(f"{name}, wall | {name}, a second of its processor" for name in best) + " |")
    print("|---|" + "---:|---:|" * len(best))
    for row in _ROWS:
        cells = [f"{rate:,.0f}" for name in best for rate in best[name][row]]
        print(f"| {row} | " + " | ".join(cells) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
